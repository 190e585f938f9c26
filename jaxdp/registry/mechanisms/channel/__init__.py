"""Entries of channels, as mechanisms whose input is one user's value."""
