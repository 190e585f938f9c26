"""Functions that compute upper and lower bounds on regret and on estimation errors, with the sources of the bounds.

Bounds are NumPy float64, and arguments are broadcast. Some bounds hold only up to a constant factor that the source
does not specify; the argument `scale` is this factor. So compare the slopes of such bounds, not their values. All other
constants are as printed in the source, unless the docstring says that they are derived. With `corrected=True`, a
function applies the corrections that its docstring describes.
"""

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking

__all__ = ["contextual", "dueling", "ldp_bandits", "linear_dueling", "reward_estimation", "tracking"]
