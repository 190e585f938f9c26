"""Upper and lower bounds on regret and on estimation errors, as functions; each docstring names the bound's source.

Bounds are NumPy float64 and broadcast over their arguments. An order bound holds up to an unspecified constant, for
which the argument `scale` stands: compare slopes of order bounds, not their values. Other constants are as the source
prints them, unless the docstring derives them; with `corrected=True` a function applies the corrections that its
docstring names.
"""

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking

__all__ = ["contextual", "dueling", "ldp_bandits", "linear_dueling", "reward_estimation", "tracking"]
