"""Updates of the weights of sequences that switch: in plain form, for one row of many experts, and as kernels."""
