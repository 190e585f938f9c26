"""Contextual bandits with rewards from a linear or a generalized linear model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits.contextual._contexts import (
    LANES_LAST,
    context_distribution,
    directions,
    enforce_gap,
    largest,
    make_contexts,
    products,
)
from jaxdp.core import Environment, Interface, Scalar, Space, arms, default_float, factory, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics.kernels import lanes_last
from jaxdp.numerics.lookup import entry
from jaxdp.preferences import Link, logistic
from jaxdp.preferences.links import check_link
from jaxdp.validation import check_choice, check_finite, check_number, check_positive, check_within

REWARDS = ("uniform", "gaussian", "binary")
TOLERANCE = 1e-6  # |theta| may exceed 1 by this


@pytree_dataclass
class Params:
    """The environment's parameters, which JAX traces.

    Attributes:
        theta: [dim] float, the model; empty if each lane draws its own model.
        theta_norm: [] float in (0, 1], |theta|.
        noise: [] float >= 0, half the width of the interval of uniform noise, or the standard deviation of Gaussian
            noise; zero for binary rewards.
        gap: [] float >= 0, the minimum difference of x^T theta between the best arm and every other arm; zero if
            contexts are not changed.
    """

    theta: np.ndarray
    theta_norm: Scalar
    noise: Scalar
    gap: Scalar


class World(NamedTuple):
    """A lane's problem.

    Attributes:
        round: [] integer, rounds played.
        key: [] the key of all contexts. The contexts of round t are drawn from `fold_in(key, t)`, so that the reward is
            computed from the same contexts that the learner saw.
        theta: [dim] float, the model.
    """

    round: jax.Array
    key: jax.Array
    theta: jax.Array


@factory
def linear_contexts(
    contexts: ArrayLike | str = "sphere",
    *,
    num_arms: int | None = None,
    dim: int | None = None,
    theta: ArrayLike | None = None,
    rewards: str = "uniform",
    gap: float | None = None,
) -> Environment:
    """Arms with contexts x in the unit ball and mean rewards x^T theta.

    Args:
        contexts: a distribution, from which each round's contexts are drawn independently: "sphere" (uniform on the
            unit sphere), "ball" (uniform in the unit ball) or "cube" (uniform in [-1/sqrt(dim), 1/sqrt(dim)]^dim, which
            lies in the unit ball; this is the fastest). Or an array [num_arms, dim] of norms at most 1: contexts that
            are the same in every round.
        num_arms: number of arms in a round, >= 2; None for fixed contexts.
        dim: dimension of contexts, >= 1; None for fixed contexts.
        theta: [dim], not zero, of norm at most 1. If None, each lane draws theta uniformly from the sphere of radius
            `theta_norm`.
        rewards: "uniform": the mean plus uniform noise in [-`noise`, `noise`]. "gaussian": the mean plus Gaussian noise
            with standard deviation `noise`. "binary": 1 or -1.
        gap: default of the value `gap` (see Values); if None, contexts are not changed.

    Returns:
        An environment for actions in [0, num_arms), contexts ([num_arms, dim] float, of norms at most 1) and rewards
        ([] float). It supports blocks, with the same results as round by round up to rounding. Outcomes:
        `pseudo_regret`, the largest mean among this round's arms minus the mean of the arm played; `best_arm_plays`,
        the number of rounds in which this regret is 0. An arm outside [0, num_arms) pays NaN, and its regret is NaN. A
        recommendation is a model ([dim] float), and `theta_error` is its distance from theta. If each lane draws theta,
        all values have their defaults, and rewards are not "gaussian", then no reward exceeds 1 in absolute value,
        which is the default bound of learners.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        theta_norm: |theta|, in (0, 1]; by default the norm of the argument theta, or 1/2 if each lane draws theta.
        noise: finite and >= 0, by default 1/2; only for uniform and Gaussian rewards.
        gap: > 0 and at most 2 theta_norm; only if the argument gap is given, and by default this argument. Contexts are
            moved along theta such that the best arm's mean exceeds all other means by at least this value.

    Source:
        Standard.

    Deviations:
        None.

    Examples:
        >>> environment = linear_contexts(num_arms=4, dim=3)
        >>> params = environment.params()
        >>> world = environment.init(jax.random.key(0), params)
        >>> environment.context(jax.random.key(1), params, world).shape
        (4, 3)
    """
    return _environment(contexts, num_arms, dim, theta, rewards, gap, lambda margin: margin, -1.0, 0.5)


@factory
def generalized_linear_contexts(
    contexts: ArrayLike | str = "sphere",
    *,
    num_arms: int | None = None,
    dim: int | None = None,
    link: Link | str = logistic,
    theta: ArrayLike | None = None,
    rewards: str = "binary",
    gap: float | None = None,
) -> Environment:
    """Arms with contexts x in the unit ball and mean rewards F(x^T theta), in (0, 1).

    Args:
        contexts: as for `linear_contexts`.
        num_arms: as for `linear_contexts`.
        dim: as for `linear_contexts`.
        link: the link F, which is `jaxdp.preferences.logistic`, `probit`, another `Link`, or the name of a link.
        theta: as for `linear_contexts`.
        rewards: "binary": 1 or 0. "uniform" or "gaussian": as for `linear_contexts`.
        gap: as for `linear_contexts`.

    Returns:
        An environment with the actions, contexts, outcomes and recommendations of `linear_contexts`. Rewards are []
        float; with uniform or Gaussian noise they may lie outside [0, 1].

    Raises:
        ValueError: if an argument is out of range, or there is no such link. The result's `params` raises this error if
            a value is out of range.

    Values:
        theta_norm: |theta|, in (0, 1]; by default the norm of the argument theta, or 1 if each lane draws theta.
        noise, gap: as for `linear_contexts`; gap is a difference of x^T theta.

    Source:
        Filippi, Cappe, Garivier & Szepesvari (2010).

    Deviations:
        None.
    """
    return _environment(contexts, num_arms, dim, theta, rewards, gap, check_link(link).cdf, 0.0, 1.0)


def _environment(
    contexts: ArrayLike | str,
    num_arms: int | None,
    dim: int | None,
    theta: ArrayLike | None,
    rewards: str,
    gap: float | None,
    mean: Callable[[jax.Array], jax.Array],
    low: float,
    norm: float,
) -> Environment:
    """Returns an environment with mean rewards mean(x^T theta); binary rewards are `low` or 1.

    `norm` is the default of |theta| if each lane draws theta. The other arguments are as for `linear_contexts`.
    """
    num_arms, dim, draw = context_distribution(contexts, num_arms, dim)
    kind = check_choice("rewards", rewards, REWARDS)
    with_gap = gap is not None
    unit = None
    if theta is not None:
        theta_values = check_finite("theta", theta).astype(np.float64)
        norm = float(np.sqrt(np.sum(theta_values * theta_values))) if theta_values.shape == (dim,) else np.nan
        if not 0 < norm <= 1 + TOLERANCE:
            raise ValueError(f"theta must be [{dim}], not zero, of norm at most 1, got {theta_values.tolist()}")
        norm, unit = min(norm, 1.0), theta_values / norm

    def params(*, theta_norm: float = norm, noise: float = 0.5, gap: float = gap or 0.0) -> Params:
        check_within("theta_norm", check_positive("theta_norm", theta_norm), 0.0, 1.0)
        if kind != "binary":
            noise = float(check_within("noise", check_number("noise", noise), 0.0, np.inf))
        if with_gap and check_positive("gap", gap) > 2 * theta_norm:
            raise ValueError(f"gap must be at most 2 theta_norm, {2 * theta_norm:g}, got {gap}")
        dtype = default_float()
        return Params(
            theta=np.zeros(0, dtype) if unit is None else (theta_norm * unit).astype(dtype),
            theta_norm=scalar_leaf("theta_norm", theta_norm),
            noise=scalar_leaf("noise", noise if kind != "binary" else 0.0),
            gap=scalar_leaf("gap", gap if with_gap else 0.0),
        )

    def init(key, params: Params) -> World:
        key_theta, key_contexts = jax.random.split(key)
        model = jnp.asarray(params.theta) if unit is not None else params.theta_norm * directions(key_theta, (dim,))
        return World(jnp.zeros((), jnp.result_type(int)), key_contexts, model)

    def context(key, params: Params, world: World) -> jax.Array:
        del key
        return round_contexts(params, world)

    def many_contexts(keys, params: Params, world: World) -> jax.Array:
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        return jax.vmap(lambda round_: round_contexts(params, world._replace(round=round_)))(rounds)

    def round_contexts(params: Params, world: World) -> jax.Array:
        key = jax.random.fold_in(world.key, world.round.astype(jnp.uint32))
        return make_contexts(draw_with_gap, key, jnp.asarray(params.gap), world.theta)

    def draw_with_gap(key: jax.Array, gap: jax.Array, theta: jax.Array) -> jax.Array:
        return enforce_gap(draw(key), theta, gap) if with_gap else draw(key)

    def reward_and_outcome(key, params: Params, theta: jax.Array, contexts: jax.Array, action):
        """Returns the reward ([] float) of the arm played in a round, and the outcomes of the round."""
        means = lanes_last(mean(products(contexts, theta)), LANES_LAST)
        expected = entry(means, action)
        if kind == "gaussian":
            # No fused multiply-add: blocks and single rounds must give the same rounding errors.
            reward = expected + jax.lax.optimization_barrier(
                params.noise * jax.random.normal(key, dtype=expected.dtype)
            )
        else:
            uniform = jax.random.uniform(key, dtype=expected.dtype)
            if kind == "uniform":
                reward = expected + jax.lax.optimization_barrier(params.noise * (2 * uniform - 1))
            else:
                is_one = (1 - low) * uniform < expected - low
                reward = jnp.where(jnp.isnan(expected), jnp.nan, jnp.where(is_one, 1.0, low)).astype(expected.dtype)
        gap = largest(means) - expected
        return reward, {"pseudo_regret": gap, "best_arm_plays": gap == 0}

    def feedback(key, params: Params, world: World, action):
        return world._replace(round=world.round + 1), *reward_and_outcome(
            key, params, world.theta, context(key, params, world), action
        )

    def block(keys, params: Params, world: World, contexts, actions):
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)

        def single_round(key, round_, context, action):
            return World(round_ + 1, world.key, world.theta), *reward_and_outcome(
                key, params, world.theta, context, action
            )

        return jax.vmap(single_round)(keys, rounds, contexts, actions)

    def evaluate(params: Params, world: World, recommendation: Any) -> dict[str, jax.Array]:
        del params
        difference = recommendation - world.theta
        return {"theta_error": jnp.sqrt(jnp.sum(difference * difference))}

    def means(params: Params) -> np.ndarray:
        """Returns the smallest and the largest mean reward ([2] float) that a context in the unit ball can have."""
        return np.asarray(mean(jnp.asarray([-params.theta_norm, params.theta_norm])))

    is_binary = kind == "binary"
    names = ("theta_norm", *(() if is_binary else ("noise",)), *(("gap",) if with_gap else ()))
    values = only(params, names)
    values()  # raises now if the default values are not valid
    return Environment(
        params=values,
        init=init,
        context=context,
        feedback=feedback,
        evaluate=evaluate,
        block=block,
        contexts=many_contexts,
        means=means,
        interface=Interface(
            arms(num_arms),
            Space("numbers", (), low, 1.0) if is_binary else Space("numbers"),
            Space("numbers", (num_arms, dim), -1.0, 1.0),
            Space("numbers", (dim,)),
        ),
    )
