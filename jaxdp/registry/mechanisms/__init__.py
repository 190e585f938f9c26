"""Entries of mechanisms, as one release."""
