"""Statistics of sweeps: intervals, paired differences, exponents, smallest sufficient epsilons, crossings of curves.

Functions take xarray DataArrays with a dimension of independent repetitions, by default `seed`, and work on each point
of the other dimensions. `replay_interval` takes the Dataset of a replay, and `seeds_needed` takes no data. Lazy arrays
are computed in float64. NaNs are never skipped: a NaN makes the result at its point NaN, and in `smallest_epsilon` it
makes the test of its epsilon fail. Unless stated otherwise, intervals are Student's t intervals. With a single seed
their limits are NaN.

>>> import xarray as xr
>>> regret = xr.DataArray([[3.0, 4.0, 5.0], [1.0, 2.0, 3.5]], {"learner": ["mine", "theirs"]}, ("learner", "seed"))
>>> result = paired(regret, "learner", against="theirs").sel(learner="mine")
>>> print(f"{result.difference:.2f} in [{result.low:.2f}, {result.high:.2f}], p = {result.p_value:.3f}")
1.83 in [1.12, 2.55], p = 0.008
"""

from jaxdp.stats._all_pairs import all_pairs
from jaxdp.stats._crossover import crossover
from jaxdp.stats._paired import paired
from jaxdp.stats._power_law import power_law
from jaxdp.stats._replay_interval import replay_interval
from jaxdp.stats._seeds_needed import seeds_needed
from jaxdp.stats._smallest_epsilon import smallest_epsilon
from jaxdp.stats.intervals import mean_interval, share_interval

__all__ = [
    "all_pairs",
    "crossover",
    "mean_interval",
    "paired",
    "power_law",
    "replay_interval",
    "seeds_needed",
    "share_interval",
    "smallest_epsilon",
]
