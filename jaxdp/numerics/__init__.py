"""Arithmetic on short arrays, in as many lanes as there are."""
