"""Updates the weights of sequences: a plain form, and forms for CPUs (`kernels`, and `columns` for many experts)."""
