"""The filter over sequences that switch: its step, in columns and in kernels."""
