"""Stochastic bandits with bounded rewards or with heavy-tailed rewards."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits._people import means_of_person
from jaxdp.bandits.environments import bandit_of, gap_outcome, instance_leaves, means_vector
from jaxdp.core import Environment, Scalar, Space, Visits, add_visits, factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.gaps import instance, unit_instance
from jaxdp.numerics.lookup import entry
from jaxdp.random import beta
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_above, check_finite, check_number, check_positive, check_within

LEAST_CONCENTRATION = 10.0


@pytree_dataclass
class BoundedParams:
    """The environment's parameters, which JAX traces.

    Attributes:
        means: [num_arms] float in (0, 1), the arms' mean rewards.
        gaps: [num_arms] float >= 0, the largest mean minus each arm's mean.
        concentration: [] float, c, the sum of the two parameters of each Beta distribution.
    """

    means: np.ndarray
    gaps: np.ndarray
    concentration: Scalar


@pytree_dataclass
class HeavyTailedParams:
    """The environment's parameters, which JAX traces.

    Attributes:
        means: [num_arms] float, the arms' mean rewards.
        gaps: [num_arms] float >= 0, the largest mean minus each arm's mean.
        scale: [] float > 0, the factor that multiplies the noise.
        degrees_of_freedom: [] float > 1, the degrees of freedom of the noise, which has Student's t distribution.
    """

    means: np.ndarray
    gaps: np.ndarray
    scale: Scalar
    degrees_of_freedom: Scalar


@factory
def bounded_bandit(means: ArrayLike, *, visits: Visits | None = None, taste: float = 0.0) -> Environment:
    """Rewards in [0, 1] with distribution Beta(m c, (1 - m) c) for an arm of mean m, and variance m (1 - m) / (c + 1).

    Args:
        means: [num_arms] in (0, 1).
        visits: as for `bernoulli_bandit`.
        taste: as for `bernoulli_bandit`; a person's means are clipped to [1 / c, 1 - 1 / c], where c is the
            concentration.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] float in [0, 1]). Without visits it supports blocks.
        Outcomes and recommendations are as for `bernoulli_bandit`; an arm outside [0, num_arms) pays NaN, and its
        regret is NaN.

    Raises:
        ValueError: if means are not a vector of at least two numbers in (0, 1), visits are not a `Visits`, or taste is
            out of range. The result's `params` raises this error if a value is out of range or results in a mean
            outside (0, 1), or if `gap` is given and all means are equal.

    Values:
        gap: > 0, the difference between the largest mean and the next lower mean; by default the difference in `means`.
            All gaps are rescaled in proportion. The largest mean stays the same unless `best_mean` is given.
        best_mean: in (0, 1), the largest mean, from which gaps are subtracted; by default the largest of `means`.
        concentration: c. Both m c and (1 - m) c must be >= 1 for every arm's mean m. By default c is the maximum of 10
            and the smallest c with this property.

    Source:
        Standard.

    Deviations:
        None.
    """
    base_means = means_vector(check_within("means", means, 0.0, 1.0))

    def params(
        *, gap: float | None = None, best_mean: float | None = None, concentration: float | None = None
    ) -> BoundedParams:
        exact, gaps = unit_instance(base_means, gap, best_mean)
        nearest_end = float(np.minimum(exact, 1 - exact).min())
        if not nearest_end > 0:
            raise ValueError(f"means must be in (0, 1), got {exact.tolist()}")
        least = 1 / nearest_end
        if concentration is None:
            concentration = max(LEAST_CONCENTRATION, least)
        check_number("concentration", concentration)
        if not concentration >= least * (1 - 1e-9):
            raise ValueError(f"concentration must be at least {least:.4g} for these means, got {concentration}")
        leaf = scalar_leaf("concentration", concentration)
        means, gaps = instance_leaves(exact, gaps)
        return BoundedParams(means=means, gaps=gaps, concentration=leaf)

    def feedback(key, params: BoundedParams, world, action):
        mean = entry(jnp.asarray(params.means), action)
        finite_mean = jnp.where(jnp.isnan(mean), 0.5, mean)  # an arm outside [0, num_arms) pays NaN below
        shapes = [
            jnp.maximum(share * params.concentration, 1)[None] for share in (finite_mean, 1 - finite_mean)
        ]  # because of rounding, products may be slightly below 1
        paid = beta(key, *shapes)[0]
        return world, jnp.where(jnp.isnan(mean), jnp.nan, jnp.clip(paid, 0, 1)), gap_outcome(params, action)

    bandit = bandit_of(len(base_means), params, feedback, None, Space("numbers", (), 0, 1))

    def limits(params: BoundedParams) -> tuple[Any, Any]:
        return 1 / params.concentration, 1 - 1 / params.concentration

    return add_visits(bandit, visits, means_of_person(taste, visits, limits))


@factory
def heavy_tailed_bandit(
    means: ArrayLike,
    *,
    degrees_of_freedom: float = 3.0,
    scale: float = 1.0,
    visits: Visits | None = None,
    taste: float = 0.0,
) -> Environment:
    """Environment with rewards means[k] + scale * t. The noise t has Student's t distribution.

    Moments of high order are infinite. In each round the same variate t is the noise of every arm. Private learners
    clip rewards. The means of the clipped rewards have the same order as `means`; regret is computed from `means`.

    Args:
        means: [num_arms] finite.
        degrees_of_freedom: default of the value `degrees_of_freedom` (see Values).
        scale: default of the value `scale` (see Values).
        visits: as for `bernoulli_bandit`.
        taste: as for `bernoulli_bandit`, without clipping.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] float, unbounded). Without visits it supports
        blocks. Outcomes and recommendations are as for `bernoulli_bandit`; an arm outside [0, num_arms) pays NaN, and
        its regret is NaN.

    Raises:
        ValueError: if means are not a vector of at least two finite numbers, degrees_of_freedom is not finite and > 1,
            scale is not finite and > 0, visits are not a `Visits`, or taste is out of range. The result's `params`
            raises this error if a value is out of range, or if `gap` is given and all means are equal.

    Values:
        degrees_of_freedom: > 1 and finite; by default the argument `degrees_of_freedom`. With d degrees of freedom, the
            variance of t is infinite if d <= 2, and d / (d - 2) otherwise.
        scale: > 0 and finite; by default the argument `scale`.
        gap: > 0, the difference between the largest mean and the next lower mean; by default the difference in `means`.
            All gaps are rescaled in proportion. The largest mean stays the same unless `best_mean` is given.
        best_mean: the largest mean, by default the largest of `means`. Means are `best_mean` minus the gaps.

    Source:
        Bailey (1994), "Polar generation of random variates with the t-distribution".

    Deviations:
        |t| is at most sqrt(d (U^(-2 / d) - 1)), where U is a uniform number. In float32 U is at least 2^-24, so |t| is
        always below sqrt(d) 2^(24 / d). An exact variate would exceed this bound with probability at most 6e-8.
    """
    base_means = means_vector(check_finite("means", means))

    def params(
        *,
        degrees_of_freedom: float = degrees_of_freedom,
        scale: float = scale,
        gap: float | None = None,
        best_mean: float | None = None,
    ) -> HeavyTailedParams:
        check_number("degrees_of_freedom", check_above("degrees_of_freedom", degrees_of_freedom, 1.0))
        means, gaps = instance_leaves(*instance(base_means, gap, best_mean))
        return HeavyTailedParams(
            means=means,
            gaps=gaps,
            scale=scalar_leaf("scale", check_positive("scale", scale)),
            degrees_of_freedom=scalar_leaf("degrees_of_freedom", degrees_of_freedom),
        )

    def feedback(key, params: HeavyTailedParams, world, action):
        mean = entry(jnp.asarray(params.means), action)
        far, angle = two_uniforms(key).astype(mean.dtype)
        degrees = jnp.asarray(params.degrees_of_freedom, mean.dtype)
        far = jnp.log(far + 0.5 * float(jnp.finfo(mean.dtype).eps))
        radius = jnp.sqrt(degrees * jnp.expm1(-2 * far / degrees))
        noise = params.scale * radius * jnp.cos(2 * math.pi * angle)
        # No fused multiply-add: blocks and single rounds must give the same rounding errors.
        return world, mean + jax.lax.optimization_barrier(noise), gap_outcome(params, action)

    bandit = bandit_of(len(base_means), params, feedback, None, Space("numbers"))
    return add_visits(bandit, visits, means_of_person(taste, visits, lambda params: (-jnp.inf, jnp.inf)))
