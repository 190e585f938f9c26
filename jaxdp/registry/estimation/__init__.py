"""Entries of offline estimators."""
