"""Attacks on the privacy claims of published code, in checkouts that the user names."""
