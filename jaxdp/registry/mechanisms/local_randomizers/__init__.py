"""Entries of local randomizers, as mechanisms whose input is one user's value."""
