"""Stochastic bandits with finitely many arms."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, arms, factory, scalar_leaf
from jaxdp.lookup import entry
from jaxdp.random import binomial
from jaxdp.validation import check_above, check_finite, check_number, check_within


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """An instance.

    Attributes:
        means: [num_arms] float, the arms' mean rewards.
        gaps: [num_arms] float >= 0, how far each lies below the largest.
        stddev: [] float, of a Gaussian reward; NaN where there is none.
    """

    means: np.ndarray
    gaps: np.ndarray
    stddev: np.ndarray


@factory
def bernoulli_bandit(means: ArrayLike) -> Environment:
    """Rewards of 0 or 1. One uniform a round decides what every arm would pay: arm k pays if it is below means[k].

    Args:
        means: [num_arms] in [0, 1].

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] int32 in {0, 1}), with blocks and tallies. Outcomes:
        `pseudo_regret`, the largest mean less the mean of the arm played; `best_arm_plays`, plays of an arm whose gap
        is zero. An arm outside [0, num_arms) pays 0, and its regret is NaN.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1].

    Source: standard.
    Deviations: in float32 the uniform is a multiple of 2^-23, and so are probabilities, but for tallies.
    """
    means = check_within("means", means, 0.0, 1.0)
    params = _instance(means, np.nan)

    def feedback(key, params: Params, world, action):
        mean = entry(jnp.asarray(params.means), action)
        uniform = jax.random.uniform(key, dtype=mean.dtype)
        return world, (uniform < mean).astype(jnp.int32), _outcome(params, action)

    def tally(key, params: Params, world, counts):
        return world, binomial(key, counts, params.means), _totals(params, counts)

    return _bandit(feedback, tally, params, Space("integers", (), 0, 1))


@factory
def gaussian_bandit(means: ArrayLike, *, stddev: float = 1.0) -> Environment:
    """Rewards N(means[k], stddev^2). One normal variate a round is the noise of every arm.

    Args:
        means: [num_arms] finite.
        stddev: of a reward, > 0.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] float, unbounded), with blocks. Outcomes as for
        `bernoulli_bandit`; an arm outside [0, num_arms) pays NaN. It has no tallies: a private learner clips each
        reward, and totals cannot tell what was clipped.

    Raises:
        ValueError: if means are not a vector of at least two finite numbers, or stddev is not finite and > 0.

    Source: standard.  Deviations: none.
    """
    means = check_finite("means", means)
    params = _instance(means, scalar_leaf("stddev", check_number("stddev", check_above("stddev", stddev, 0.0))))

    def feedback(key, params: Params, world, action):
        mean = entry(jnp.asarray(params.means), action)
        noise = params.stddev * jax.random.normal(key, dtype=mean.dtype)
        # Blocks and single rounds must round alike: no fused multiply-add in one of them only.
        return world, mean + jax.lax.optimization_barrier(noise), _outcome(params, action)

    return _bandit(feedback, None, params, Space("numbers"))


def _instance(means: np.ndarray, stddev: float | np.floating) -> Params:
    if means.ndim != 1 or len(means) < 2:
        raise ValueError(f"means must be a vector of at least two arms, got shape {means.shape}")
    dtype = jax.dtypes.canonicalize_dtype(float)
    exact = means.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        params = Params(
            means=exact.astype(dtype), gaps=(exact.max() - exact).astype(dtype), stddev=np.asarray(stddev, dtype)
        )
    if not (np.isfinite(params.means).all() and np.isfinite(params.gaps).all()):
        raise ValueError(f"means and their differences must be within the range of {dtype}, got {means.tolist()}")
    return params


def _outcome(params: Params, action: jax.Array) -> dict[str, jax.Array]:
    gap = entry(jnp.asarray(params.gaps), action)
    return {"pseudo_regret": gap, "best_arm_plays": gap == 0}


def _totals(params: Params, counts: jax.Array) -> dict[str, jax.Array]:
    regret = jnp.sum(counts.astype(params.gaps.dtype) * params.gaps)
    return {"pseudo_regret": regret, "best_arm_plays": jnp.sum(jnp.where(params.gaps == 0, counts, 0))}


def _bandit(feedback, tally, params: Params, rewards: Space) -> Environment:
    """An environment without a memory: its world is empty, and a block is its rounds side by side."""

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        return jax.vmap(lambda key, action: feedback(key, params, world, action))(keys, actions)

    return Environment(
        params=lambda: params,  # one object: held once, however many grid points
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        block=block,
        tally=tally,
        interface=Interface(arms(len(params.means)), rewards),
    )
