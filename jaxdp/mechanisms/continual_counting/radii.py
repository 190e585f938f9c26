"""Computes error radii of sums of noise: Chernoff bounds for Laplace noise, exact radii for normal noise."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.typing import ArrayLike

from jaxdp.mechanisms.continual_counting.arity import best_arity, check_arity, digits_of, level_variances, num_digits
from jaxdp.mechanisms.continual_counting.counter import check_times
from jaxdp.validation import check_above, check_choice, check_finite, check_horizon, check_probability

CONSTANTS = ("tight", "paper")
POINTS = 48
HUGE = 1e30  # stands for infinity, but 0 * HUGE is 0


def laplace_sum_radius(scales: npt.ArrayLike, failure_prob: float, *, constants: str = "tight") -> float:
    """Returns a radius that the sum of independent Laplace variables exceeds with probability at most failure_prob.

    "tight" is Chernoff's bound, min over 0 < l < 1 / max(b) of (ln(2 / q) - sum ln(1 - l^2 b_i^2)) / l, where q is
    failure_prob. "paper" is v * sqrt(8 ln(2 / q)) with v = max(sqrt(sum b_i^2), max(b) * sqrt(2 ln(2 / q))).

    Args:
        scales: [m] floats >= 0, m >= 1, the scale b_i of each variable.
        failure_prob: in (0, 1).
        constants: "tight" or "paper".

    Returns:
        The radius, for the absolute value of the sum.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Chan, Shi & Song (2011), Lemma 2.8 (Corollary 2.9 for the probability of both tails), for "paper".

    Deviations:
        None.

    Examples:
        >>> [round(laplace_sum_radius(np.ones(20), 0.01, constants=constants), 2) for constants in ("tight", "paper")]
        [21.82, 29.12]
    """
    scales = np.asarray(check_finite("scales", scales), np.float64).ravel()
    if not (scales.size and scales.min() >= 0):
        raise ValueError(f"scales must be at least one number, all >= 0, got {scales}")
    log_inverse = _log_inverse(failure_prob)
    if check_choice("constants", constants, CONSTANTS) == "paper":
        spread = max(math.sqrt(np.square(scales).sum()), scales.max() * math.sqrt(2 * log_inverse))
        return spread * math.sqrt(8 * log_inverse)
    if scales.max() == 0:
        return 0.0
    squares = np.square(scales / scales.max())
    return float(scales.max()) * _chernoff(lambda rate: -np.log1p(-rate * rate * squares).sum(), 1.0, log_inverse)


def tree_radius(
    times: npt.ArrayLike,
    *,
    horizon: int,
    epsilon: float,
    failure_prob: float,
    arity: int | None = None,
    combine: bool = True,
    constants: str = "tight",
) -> np.ndarray:
    """Returns a radius that the error of a Laplace tree counter exceeds with probability at most failure_prob.

    Args:
        times: [...] integers in 1..horizon; the probability is for each time separately.
        horizon: >= 1.
        epsilon: > 0, the budget of a counter with l1_sensitivity 1.
        failure_prob: in (0, 1).
        arity: arity of the tree; None means `best_arity(horizon, combine=combine)`.
        combine: as for `tree_counter`.
        constants: "tight" is Chernoff's bound for the exact sum of noises. "paper" is the published bound for the
            binary tree, 4 * ln(1 / q) * ln(horizon)^2.5 / epsilon at all times, with q = failure_prob; here the bound
            is used for any tree. This bound is loose, but at the horizons 1 and 2 it is too small.

    Returns:
        [...] float64.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Saha & Asi (2024), Lemma 1, for "paper"; after Chan, Shi & Song (2011).

    Deviations:
        None.
    """
    horizon, epsilon = check_horizon(horizon, spare=1), check_above("epsilon", epsilon, 0.0)
    times, log_inverse = check_times(times, horizon), _log_inverse(failure_prob)
    if check_choice("constants", constants, CONSTANTS) == "paper":
        bound = 4 * -math.log(failure_prob) * math.log(horizon) ** 2.5 / epsilon
        return np.full(times.shape, bound)
    arity = best_arity(horizon, combine=combine) if arity is None else check_arity(arity)
    levels = num_digits(horizon, arity)
    variances = level_variances(arity, levels, combine)
    blocks, where = np.unique(digits_of(times, arity, levels).reshape(-1, levels), axis=0, return_inverse=True)
    radii = [_tree_chernoff(row, arity, variances, log_inverse) for row in blocks]
    return levels / epsilon * np.asarray(radii)[where.reshape(times.shape)]


def level_cumulants(rates: np.ndarray, arity: int, variances: np.ndarray) -> np.ndarray:
    """Returns log E exp(rate * error) of the estimate of a block of each level, if a node's noise is Laplace(1).

    The error of a block's estimate is v times the noise of its node plus (1 - v) times the sum of its children's
    errors. All terms are independent.

    Args:
        rates: [...] > 0.
        arity: arity of the tree.
        variances: [levels] variances of blocks' estimates relative to one node; they are the weights v.

    Returns:
        [levels, ...] float64; infinity if the expectation is infinite.
    """
    return np.stack([block_cumulant(h, rates, arity, variances) for h in range(len(variances))])


def block_cumulant(level: int, rates: np.ndarray, arity: int, variances: np.ndarray) -> np.ndarray:
    """Returns log E exp(rate * error) for a block of this level, [...]: one entry of `level_cumulants`."""
    rates, total, blocks = np.asarray(rates, np.float64), np.zeros(np.shape(rates)), 1.0
    for h in range(level, -1, -1):
        with np.errstate(divide="ignore"):
            total = total - blocks * np.log1p(-np.minimum(np.square(rates * variances[h]), 1.0))
        if variances[h] == 1:  # the block's estimate is its noisy sum
            break
        rates, blocks = rates * (1 - variances[h]), blocks * arity
    return total


def rate_grid(variances: np.ndarray) -> np.ndarray:
    """Returns a grid of rates, [POINTS]; for every arity up to about 10^4, one of the rates is nearly optimal."""
    return np.geomspace(0.01, 0.995 / variances.min(), POINTS)


def chernoff(totals: jax.Array, grid: np.ndarray, failure_prob: ArrayLike) -> jax.Array:
    """Returns Chernoff's bound on the absolute value of an error, minimised over a grid of rates; may be traced.

    Args:
        totals: [..., POINTS] float, logarithm of E exp(rate * error).
        grid: [POINTS] rates.
        failure_prob: [] float.

    Returns:
        [...] float.
    """
    log_inverse = jnp.log(2 / jnp.asarray(failure_prob, totals.dtype))
    rates = jnp.asarray(grid.reshape((1,) * (totals.ndim - 1) + grid.shape), totals.dtype)
    return ((totals + log_inverse) / rates).min(axis=-1)


def normal_radius(stddevs: jax.Array, failure_prob: ArrayLike) -> jax.Array:
    """Returns the radius around its mean that a normal variable leaves with probability failure_prob; may be traced."""
    return stddevs * -jax.scipy.special.ndtri(jnp.asarray(failure_prob, stddevs.dtype) / 2)


def _tree_chernoff(digits: np.ndarray, arity: int, variances: np.ndarray, log_inverse: float) -> float:
    live = np.flatnonzero(digits).tolist()
    limit = 1 / max(_largest_weight(h, variances) for h in live)

    def total(rate: float) -> float:
        return sum(digits[h] * float(block_cumulant(h, np.asarray(rate), arity, variances)) for h in live)

    return _chernoff(total, limit, log_inverse)


def _largest_weight(level: int, variances: np.ndarray) -> float:
    weights = [variances[level]]
    factor = 1.0
    for h in range(level, 0, -1):
        factor *= 1 - variances[h]
        weights.append(factor * variances[h - 1])
    return max(weights)


def _chernoff(total, limit: float, log_inverse: float) -> float:
    """Returns the minimum of (log_inverse + total(rate)) / rate over 0 < rate < limit, which has a single minimum."""

    def bound(logit: float) -> float:
        rate = limit / (1 + math.exp(-logit))
        with np.errstate(over="ignore"):
            return (log_inverse + float(total(rate))) / rate if rate < limit else math.inf

    from scipy.optimize import minimize_scalar  # SciPy is only imported where it is used

    minimum: Any = minimize_scalar(bound, bounds=(-30.0, 30.0), method="bounded", options={"xatol": 1e-6})
    return float(minimum.fun)


def _log_inverse(failure_prob: float) -> float:
    return math.log(2 / check_probability("failure_prob", failure_prob))
