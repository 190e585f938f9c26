"""Upper and lower bounds from the papers as functions: one module for each paper, with theorem numbers.

Bounds are NumPy float64 and broadcast over their arguments. "Order" bounds hold up to an unspecified constant, the
argument `scale`: compare their slopes, not their heights. Constants are as printed; a function with `corrected=True`
applies the corrections that its docstring names.
"""

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking

__all__ = ["contextual", "dueling", "ldp_bandits", "linear_dueling", "reward_estimation", "tracking"]
