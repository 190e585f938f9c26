"""Counts of what programs do on a GPU, and descriptions of cards."""
