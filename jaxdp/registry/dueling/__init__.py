"""Entries of dueling bandits."""
