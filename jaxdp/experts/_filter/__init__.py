"""The step of weights over sequences that switch: plain, in columns, and in kernels."""
