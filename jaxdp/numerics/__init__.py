"""Exact and compensated sums, small linear algebra, and control over XLA's kernels, in any number of lanes."""
