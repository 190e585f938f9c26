"""Updates of the weights of sequences: the plain form, and forms for CPUs (`kernels`; `columns` for many experts)."""
