"""Many lanes: a grid of parameters and seeds, planned, compiled, computed here or elsewhere, and replayed."""
