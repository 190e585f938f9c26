"""Arithmetic on short arrays, in any number of lanes."""
