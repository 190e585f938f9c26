"""Entries of learners that predict from experts' advice."""
