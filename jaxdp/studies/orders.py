"""Upper bounds of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) up to constant factors, drawn as dotted curves."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from jaxdp import plotting
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.theory import reward_estimation as theory

Order = Callable[[np.ndarray, float, Any], np.ndarray]  # (num_samples, epsilon, row) -> bound up to a factor

LABEL = "order of Thm 5.3 (no privacy, central) or Thm 4.5 (local), through the first mark"
FAILURE_PROB = 0.05
FEWEST = 4  # minimum number of comparisons for the bound of Theorem 4.5
UNCOVERED = ("_cut", "_k_norm")  # suffixes of estimators that no theorem covers, with cut weights or K-norm noise
# Radius and coverage only scale a bound, and the drawn curve is rescaled to pass through the first mark. `_noise`
# also assumes feature norms at most 1.
_UNITS: Any = {"feature_norm": 1.0, "radius": 1.0, "coverage": 1.0, "failure_prob": FAILURE_PROB}


def sample_orders(names: Collection[str], delta: float, dim: Callable[[Any], int] = int) -> dict[str, Order]:
    """Returns upper bounds on the l2 error as functions of the number of comparisons, up to a constant factor.

    Local estimators have the bound of Theorem 4.5. It is NaN below 4 comparisons, where ln ln n makes the bound
    meaningless. Non-private and central estimators have the bound of Theorem 5.3 with their noise. This theorem covers
    Gaussian noise and equal weights, so central estimators with K-norm noise or cut weights have no bound.

    Args:
        names: names of estimators.
        delta: delta of the central estimators.
        dim: function from a row of the figure to the number of features.

    Returns:
        A function(num_samples, epsilon, row) that returns the bound, for the name of each estimator that has a bound.
    """
    covered = [name for name in names if not name.endswith(UNCOVERED)]
    return {name: _local if name.endswith("_rr") else _central(_noise(name, delta), dim) for name in covered}


def with_orders(orders: Mapping[str, Order], label: str, row: str) -> Callable[[Axes, xr.DataArray], None]:
    """Returns a function that draws each estimator's bound, scaled through the first mark of the estimator's curve.

    Args:
        orders: bounds by estimator name, from `sample_orders`. No bound is drawn for other estimators.
        label: legend text of the bounds.
        row: the dimension with one row of panels for each value.

    Returns:
        A function to pass to `plotting.facets` as `also`.
    """

    def draw(ax: Axes, values: xr.DataArray) -> None:
        at, epsilon, row_value = values.num_samples.values, float(values.epsilon), values[row].item()
        for name in (name for name in values.estimator.values if name in orders):
            plotting.bound(ax, at, orders[name](at, epsilon, row_value), through=name, label=label)

    return draw


def _local(num_samples: np.ndarray, epsilon: float, row: Any) -> np.ndarray:
    del row
    bound = theory.local_l2_upper(epsilon, np.maximum(num_samples, FEWEST), **_UNITS)
    return np.where(num_samples >= FEWEST, bound, np.nan)


def _central(noise: Callable[[float], float], dim: Callable[[Any], int]) -> Order:
    def order(num_samples: np.ndarray, epsilon: float, row: Any) -> np.ndarray:
        return theory.central_l2_upper(num_samples, dim(row), noise_stddev=noise(epsilon), **_UNITS)

    return order


def _noise(name: str, delta: float) -> Callable[[float], float]:
    """Returns a function from epsilon to the standard deviation of an estimator's noise, for feature norms at most 1.

    `name` is the estimator's name, and `delta` its delta. The function returns 0 for estimators without central noise.
    """
    if name.startswith("literal"):
        return lambda epsilon: float(theory.objective_perturbation_stddev(epsilon, delta, 1.0))
    if name.endswith("objective_perturbation"):
        return lambda epsilon: analytic_gaussian(epsilon, delta, l2_sensitivity=2.0)
    return lambda epsilon: 0.0
