"""Entries of bandits."""
