"""Upper and lower bounds from papers as functions, one module for each paper, with the numbers of theorems.

Bounds are NumPy float64 and broadcast over their arguments. An order bound holds up to an unspecified constant, which
the argument `scale` stands for: compare slopes of order bounds, not their values. Other constants are as the paper
prints them; with `corrected=True` a function applies the corrections that its docstring names.
"""

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking

__all__ = ["contextual", "dueling", "ldp_bandits", "linear_dueling", "reward_estimation", "tracking"]
