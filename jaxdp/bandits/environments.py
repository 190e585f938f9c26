"""Stochastic bandits with finitely many arms."""

from collections.abc import Callable
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits._people import means_of_person
from jaxdp.core import (
    Environment,
    Interface,
    Space,
    Visits,
    add_visits,
    arms,
    default_float,
    factory,
    repeat_outcome,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.gaps import instance, unit_instance
from jaxdp.numerics.lookup import entry
from jaxdp.random import binomial, uniform_from_key
from jaxdp.validation import check_finite, check_positive, check_within


class HasGaps(Protocol):
    """The parameters of a bandit environment, with the means and the gaps of the arms."""

    @property
    def means(self) -> np.ndarray:
        """[num_arms] float, the arms' mean rewards."""
        ...

    @property
    def gaps(self) -> np.ndarray:
        """[num_arms] float >= 0, the largest mean minus each arm's mean."""
        ...


@pytree_dataclass
class Params:
    """The environment's parameters, which JAX traces.

    Attributes:
        means: [num_arms] float, the arms' mean rewards.
        gaps: [num_arms] float >= 0, the largest mean minus each arm's mean.
        stddev: [] float, standard deviation of a Gaussian reward; NaN for Bernoulli rewards.
    """

    means: np.ndarray
    gaps: np.ndarray
    stddev: np.ndarray


@factory
def bernoulli_bandit(means: ArrayLike, *, visits: Visits | None = None, taste: float = 0.0) -> Environment:
    """Rewards of 0 or 1: in each round, arm k pays 1 if u < means[k], with the same uniform number u for all arms.

    Args:
        means: [num_arms] in [0, 1].
        visits: a `jaxdp.Visits`, the schedule of people's participation in rounds; None for an environment without
            people. With visits, a round's context is the person who participates, with the number of the person's
            earlier rounds, and learners made by `jaxdp.per_person` learn from the first rounds of each person. If taste
            is 0, the results of all other learners are the same as without visits, bit for bit.
        taste: finite and >= 0, the standard deviation of mean rewards over people, before they are clipped. In each
            lane, each person has their own mean rewards: `means` plus normal noise that is drawn once, clipped to [0,
            1]. Regret is computed from `means`. Must be 0 without visits.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] int32 in {0, 1}). Without visits it supports
        blocks and feedback totals. Outcomes: `pseudo_regret`, the largest mean minus the mean of the arm played;
        `best_arm_plays`, the number of plays of arms with gap zero. An arm outside [0, num_arms) pays 0, and its regret
        is NaN. Recommendations are arms; `correct` is true if the arm's gap is zero, and `simple_regret` is the gap.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1], visits are not a `Visits`, or taste is
            out of range. The result's `params` raises this error if a value is out of range or results in a mean
            outside [0, 1], or if `gap` is given and all means are equal.

    Values:
        gap: > 0, the difference between the largest mean and the next lower mean; by default the difference in `means`.
            All gaps are rescaled in proportion. The largest mean stays the same unless `best_mean` is given.
        best_mean: in [0, 1], the largest mean, by default the largest of `means`. Means are `best_mean` minus the gaps.

    Source:
        Standard.

    Deviations:
        In float32 the uniform number is a multiple of 2^-23, and so are probabilities, except in feedback totals.
    """
    base_means = means_vector(check_within("means", means, 0.0, 1.0))

    def params(*, gap: float | None = None, best_mean: float | None = None) -> Params:
        return _instance(*unit_instance(base_means, gap, best_mean), np.nan)

    def feedback(key, params: Params, world, action):
        mean = entry(jnp.asarray(params.means), action)
        uniform = uniform_from_key(key, mean.dtype)
        return world, (uniform < mean).astype(jnp.int32), gap_outcome(params, action)

    def feedback_totals(key, params: Params, world, counts):
        return world, binomial(key, counts, params.means), _totals(params, counts)

    bandit = bandit_of(len(base_means), params, feedback, feedback_totals, Space("integers", (), 0, 1))
    return add_visits(bandit, visits, means_of_person(taste, visits, lambda params: (0.0, 1.0)))


@factory
def gaussian_bandit(
    means: ArrayLike, *, stddev: float = 1.0, visits: Visits | None = None, taste: float = 0.0
) -> Environment:
    """Rewards N(means[k], stddev^2); in each round, the same normal variate is the noise of every arm.

    Args:
        means: [num_arms] finite.
        stddev: standard deviation of a reward, > 0; default of the value `stddev` (see Values).
        visits: as for `bernoulli_bandit`.
        taste: as for `bernoulli_bandit`, without clipping.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] float, unbounded). Without visits it supports
        blocks. Outcomes and recommendations are as for `bernoulli_bandit`, except that an arm outside [0, num_arms)
        pays NaN. There are no feedback totals, because a private learner clips each reward, and this cannot be
        reproduced from totals.

    Raises:
        ValueError: if means are not a vector of at least two finite numbers, stddev is not finite and > 0, visits are
            not a `Visits`, or taste is out of range. The result's `params` raises this error if a value is out of
            range, or if `gap` is given and all means are equal.

    Values:
        stddev: > 0, the standard deviation of a reward; by default the argument `stddev`.
        gap: > 0, the difference between the largest mean and the next lower mean; by default the difference in `means`.
            All gaps are rescaled in proportion. The largest mean stays the same unless `best_mean` is given.
        best_mean: the largest mean, by default the largest of `means`. Means are `best_mean` minus the gaps.

    Source:
        Standard.

    Deviations:
        None.
    """
    base_means = means_vector(check_finite("means", means))

    def params(*, stddev: float = stddev, gap: float | None = None, best_mean: float | None = None) -> Params:
        leaf = scalar_leaf("stddev", check_positive("stddev", stddev))
        return _instance(*instance(base_means, gap, best_mean), leaf)

    def feedback(key, params: Params, world, action):
        mean = entry(jnp.asarray(params.means), action)
        noise = params.stddev * jax.random.normal(key, dtype=mean.dtype)
        # No fused multiply-add: blocks and single rounds must give the same rounding errors.
        return world, mean + jax.lax.optimization_barrier(noise), gap_outcome(params, action)

    bandit = bandit_of(len(base_means), params, feedback, None, Space("numbers"))
    return add_visits(bandit, visits, means_of_person(taste, visits, lambda params: (-jnp.inf, jnp.inf)))


def means_vector(means: np.ndarray) -> np.ndarray:
    """Returns a copy of `means` if they are a vector of at least two numbers.

    Raises:
        ValueError: if `means` is not such a vector.
    """
    if means.ndim != 1 or len(means) < 2:
        raise ValueError(f"means must be a vector of at least two arms, got shape {means.shape}")
    return means.copy()  # the caller's array may change before a run reads it


def _instance(means: np.ndarray, gaps: np.ndarray, stddev: float | np.floating) -> Params:
    means, gaps = instance_leaves(means, gaps)
    return Params(means=means, gaps=gaps, stddev=np.asarray(stddev, means.dtype))


def instance_leaves(means: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Converts means and gaps to `Params` leaves, [num_arms] of JAX's default float dtype each.

    Raises:
        ValueError: if a number overflows in JAX's default float dtype.
    """
    dtype = default_float()
    with np.errstate(over="ignore", under="ignore"):
        leaves = means.astype(dtype), gaps.astype(dtype)
    if not (np.isfinite(leaves[0]).all() and np.isfinite(leaves[1]).all()):
        raise ValueError(f"means and their differences must be within the range of {dtype}, got {means.tolist()}")
    return leaves


def gap_outcome(params: HasGaps, action: jax.Array) -> dict[str, jax.Array]:
    """Returns the outcomes `pseudo_regret` (NaN for an arm outside [0, num_arms)) and `best_arm_plays` of one round."""
    gap = entry(jnp.asarray(params.gaps), action)
    return {"pseudo_regret": gap, "best_arm_plays": gap == 0}


def _evaluate(params: HasGaps, world, recommendation: jax.Array) -> dict[str, jax.Array]:
    del world
    gap = entry(jnp.asarray(params.gaps), recommendation)
    return {"correct": gap == 0, "simple_regret": gap}


def _totals(params: Params, counts: jax.Array) -> dict[str, jax.Array]:
    regret = jnp.sum(counts.astype(params.gaps.dtype) * params.gaps)
    return {"pseudo_regret": regret, "best_arm_plays": jnp.sum(jnp.where(params.gaps == 0, counts, 0))}


def bandit_of(num_arms: int, params: Callable[..., HasGaps], feedback, feedback_totals, rewards: Space) -> Environment:
    """Returns the stateless bandit that the given functions define; the rounds of a block are computed in parallel.

    Args:
        num_arms: number of arms.
        params: as `Environment.params`; outcomes are computed from the gaps of its result.
        feedback: as `Environment.feedback`.
        feedback_totals: as `Environment.feedback_totals`; None if it is not supported.
        rewards: the space of rewards.
    """
    params()  # raises now if the default values are not valid

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        return jax.vmap(lambda key, action: feedback(key, params, world, action))(keys, actions)

    def unheard(params: Params, world, action, rounds):
        return world, repeat_outcome(gap_outcome(params, action), rounds)

    return Environment(
        params=params,
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        evaluate=_evaluate,
        block=block,
        feedback_totals=feedback_totals,
        interface=Interface(arms(num_arms), rewards, recommendation=arms(num_arms)),
        means=lambda params: params.means,
        unheard=unheard,
    )
