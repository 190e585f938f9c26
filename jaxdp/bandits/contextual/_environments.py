"""Contextual bandits whose rewards follow a linear or a generalized linear model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits.contextual._contexts import (
    context_distribution,
    directions,
    enforce_gap,
    largest,
    make_contexts,
    products,
)
from jaxdp.core import Environment, Interface, Scalar, Space, arms, default_float, factory, only, scalar_leaf
from jaxdp.numerics.lookup import entry
from jaxdp.preferences import Link, logistic
from jaxdp.preferences.links import check_link
from jaxdp.validation import check_choice, check_finite, check_number, check_positive, check_within

REWARDS = ("uniform", "gaussian", "binary")
TOLERANCE = 1e-6  # of |theta| beyond 1


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        theta: [dim] float, the model; empty where each lane draws its own.
        theta_norm: [] float in (0, 1], |theta|.
        noise: [] float >= 0, half the width or the standard deviation of the noise; zero for binary rewards.
        gap: [] float >= 0, by how much the best arm leads; zero where contexts stay as they are drawn.
    """

    theta: np.ndarray
    theta_norm: Scalar
    noise: Scalar
    gap: Scalar


class World(NamedTuple):
    """A lane's problem.

    Attributes:
        round: [] integer, rounds played.
        key: [] key of all contexts; those of round t are drawn from its fold with t, so that a round's reward is that
            of the contexts that were shown.
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
    """Arms with contexts x in the unit ball whose mean reward is x.theta.

    Args:
        contexts: "sphere" or "ball": each round's arms are uniform on the unit sphere, or in the ball; "cube": in the
            cube [-1/sqrt(dim), 1/sqrt(dim)]^dim, which the ball holds and which costs the least time. Or
            [num_arms, dim], of norm at most 1: arms that are the same in every round.
        num_arms: arms in a round, >= 2; not to be given with arms that stay.
        dim: of contexts, >= 1; as num_arms.
        theta: [dim], not zero, of norm at most 1; None: each lane's is uniform on a sphere.
        rewards: what is added to the mean: "uniform", a uniform number of [-noise, noise]; "gaussian", a normal one of
            standard deviation noise. Or "binary": a reward is 1 or -1.
        gap: None: contexts stay as they are drawn.

    Returns:
        An environment for actions in [0, num_arms), contexts ([num_arms, dim] float, of norm at most 1) and rewards ([]
        float), with blocks, which equal rounds but for rounding. Outcomes: `pseudo_regret`, the largest mean among this
        round's arms less that of the arm played, against the policy that knows theta; `best_arm_plays`. An arm outside
        [0, num_arms) pays NaN, and its regret is NaN. An answer is a model ([dim] float): `theta_error` is its distance
        from theta.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Values:
        theta_norm: |theta|, in (0, 1], by default that of theta, or 1/2 where lanes draw theirs.
        noise: >= 0, by default 1/2, of rewards that are not binary.
        gap: with the argument gap: > 0, by default the argument, at most 2 theta_norm: contexts are moved along theta
            until the best arm's mean lies that far above all others. At the defaults no reward is larger than 1 in
            absolute value, which is what learners clip to at theirs.

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
    """Arms with contexts x in the unit ball whose mean reward is F(x.theta), in (0, 1).

    Args:
        contexts: as for `linear_contexts`.
        num_arms: as there.
        dim: as there.
        link: F; `jaxdp.preferences.logistic` or `probit`, another `Link`, or the name of one.
        theta: as there.
        rewards: "binary": a reward is 1 or 0; "uniform" or "gaussian" as there.
        gap: as there.

    Returns:
        As `linear_contexts`.

    Raises:
        ValueError: if an argument is out of range, or there is no such link; from `params`, if a value is out of range.

    Values:
        theta_norm: |theta|, in (0, 1], by default that of theta, or 1 where lanes draw theirs.
        noise, gap: as for `linear_contexts`, where gap is one of x.theta.

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
    """The environment of a model: `mean` of x.theta, binary rewards of `low` and 1, `norm` by default."""
    num_arms, dim, draw = context_distribution(contexts, num_arms, dim)
    kind = check_choice("rewards", rewards, REWARDS)
    with_gap = gap is not None
    unit = None
    if theta is not None:
        given = check_finite("theta", theta).astype(np.float64)
        norm = float(np.sqrt(np.sum(given * given))) if given.shape == (dim,) else np.nan
        if not 0 < norm <= 1 + TOLERANCE:
            raise ValueError(f"theta must be [{dim}], not zero, of norm at most 1, got {given.tolist()}")
        norm, unit = min(norm, 1.0), given / norm

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
        return shown(params, world)

    def many_contexts(keys, params: Params, world: World) -> jax.Array:
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        return jax.vmap(lambda round_: shown(params, world._replace(round=round_)))(rounds)

    def shown(params: Params, world: World) -> jax.Array:
        key = jax.random.fold_in(world.key, world.round.astype(jnp.uint32))
        return make_contexts(drawn, key, jnp.asarray(params.gap), world.theta)

    def drawn(key: jax.Array, gap: jax.Array, theta: jax.Array) -> jax.Array:
        return enforce_gap(draw(key), theta, gap) if with_gap else draw(key)

    def answered(key, params: Params, theta: jax.Array, contexts: jax.Array, action):
        """A reward, and the outcomes."""
        means = mean(products(contexts, theta))
        own = entry(means, action)
        if kind == "gaussian":
            # Blocks and single rounds must round alike: no fused multiply-add in one of them only.
            reward = own + jax.lax.optimization_barrier(params.noise * jax.random.normal(key, dtype=own.dtype))
        else:
            uniform = jax.random.uniform(key, dtype=own.dtype)
            if kind == "uniform":
                reward = own + jax.lax.optimization_barrier(params.noise * (2 * uniform - 1))
            else:
                is_one = (1 - low) * uniform < own - low
                reward = jnp.where(jnp.isnan(own), jnp.nan, jnp.where(is_one, 1.0, low)).astype(own.dtype)
        gap = largest(means) - own
        return reward, {"pseudo_regret": gap, "best_arm_plays": gap == 0}

    def feedback(key, params: Params, world: World, action):
        return world._replace(round=world.round + 1), *answered(
            key, params, world.theta, context(key, params, world), action
        )

    def block(keys, params: Params, world: World, contexts, actions):
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)

        def one(key, round_, context, action):
            return World(round_ + 1, world.key, world.theta), *answered(key, params, world.theta, context, action)

        return jax.vmap(one)(keys, rounds, contexts, actions)

    def judge(params: Params, world: World, answer: Any) -> dict[str, jax.Array]:
        del params
        difference = answer - world.theta
        return {"theta_error": jnp.sqrt(jnp.sum(difference * difference))}

    def means(params: Params) -> np.ndarray:
        """Returns the least and the largest mean of any context."""
        return np.asarray(mean(jnp.asarray([-params.theta_norm, params.theta_norm])))

    is_binary = kind == "binary"
    names = ("theta_norm", *(() if is_binary else ("noise",)), *(("gap",) if with_gap else ()))
    values = only(params, names)
    values()  # refuses what no value can mend, now
    return Environment(
        params=values,
        init=init,
        context=context,
        feedback=feedback,
        judge=judge,
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
