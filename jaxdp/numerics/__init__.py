"""Exact and compensated sums, small linear algebra, and control over XLA's kernels, for any number of lanes."""
