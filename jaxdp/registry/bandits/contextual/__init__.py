"""Entries of contextual bandits."""
