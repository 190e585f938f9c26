"""Upper and lower bounds from the papers as functions, one module a paper, each with its number in the paper.

Bounds are NumPy float64 and broadcast over their arguments. "Order" bounds hold up to an unspecified constant, which
is the argument `scale`: compare their slopes, not their heights. Constants are as printed; a function that takes
`corrected=True` then applies the corrections that its docstring names.
"""

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking

__all__ = ["contextual", "dueling", "ldp_bandits", "linear_dueling", "reward_estimation", "tracking"]
