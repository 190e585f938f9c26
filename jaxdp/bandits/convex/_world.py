"""Builds environments of convex losses: adds linear parts and noise to a family of mean losses, and computes regret.

The loss of round t is f_t(x) = g_t(x) + <h_t, x> + q_t, with a convex g_t, a linear part h_t and a number q_t. Here
g_t(0) = 0. The mean of g_t is g in all rounds; in most families g_t = g. Each family has a function `rise(centre,
offset)` = g(centre + offset) - g(centre - offset). It computes, without cancellation, differences of a loss between two
points and regret against the best point.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import inner
from jaxdp.bandits.convex._domain import Domain
from jaxdp.core import Environment, Scalar, default_float, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane
from jaxdp.validation import check_at_least, check_count, check_flag, check_number

BITS = 32  # number of bits in a random word


@pytree_dataclass
class Params:
    """The environment's parameters, which JAX traces.

    Attributes:
        shape: the parameters of g keyed by name, such as `slope`.
        best: [dim] float, the best point of the mean losses.
        noise: [] float >= 0, standard deviation of q_t, which is added to all losses of a round.
        tilt: [] float >= 0, norm of the random linear part.
        drift: [] float >= 0, norm of the rotating linear part.
        period: [] int, number of rounds of a full turn of the rotating part.
        push: [] float >= 0, maximum norm of the linear part in the direction of the mean of all points played; zero if
            the adversary is not adaptive.
    """

    shape: dict[str, Any]
    best: Any
    noise: Scalar
    tilt: Scalar
    drift: Scalar
    period: Any
    push: Scalar


class World(NamedTuple):
    """Sums over the rounds played.

    Attributes:
        round: [] integer, rounds played.
        plays: [dim] sum of the points played (for a probe, its centre); () if the adversary is not adaptive.
        linear_sum: [dim] sum of the linear parts h_t; () if the environment does not compute regret in hindsight.
        excess: [] sum of f_t(x_t) - f_t(best), where best is the best point of the mean losses; for a probe, f_t(x_t)
            is the mean loss of its two points. () if the environment does not compute regret in hindsight.
    """

    round: jax.Array
    plays: Any = ()
    linear_sum: Any = ()
    excess: Any = ()


class Losses(NamedTuple):
    """A family of convex losses with the mean loss g, where g(0) = 0.

    Attributes:
        shape: (**values of the family) -> (the parameters of g, the best point of g), on the host in float64.
        rise: (shape, centre, offset) -> g(centre + offset) - g(centre - offset).
        sample: (key, shape) -> the random parameters of a round's loss, for `rise_of`; None if the loss is g plus its
            linear part.
        rise_of: (shape, sample, centre, offset) -> the same difference for the round's loss, without the loss's linear
            part.
        hindsight: (params, rounds, linear_sum) -> the total loss of `params.best` in these rounds minus the smallest
            total loss of any point; None if this difference has no closed form.
    """

    shape: Callable[..., tuple[dict[str, float], np.ndarray]]
    rise: Callable[..., jax.Array]
    sample: Callable[..., Any] | None = None
    rise_of: Callable[..., jax.Array] | None = None
    hindsight: Callable[..., jax.Array] | None = None


def diagonal(dim: int) -> np.ndarray:
    """Returns the unit vector e with all entries equal, [dim] float64."""
    return np.full(dim, 1 / math.sqrt(dim))


def _across(dim: int) -> np.ndarray:
    """Returns a unit vector orthogonal to `diagonal(dim)`, [dim] float64; the zero vector if dim is 1."""
    return np.zeros(1) if dim == 1 else np.concatenate([[1, -1], np.zeros(dim - 2)]) / math.sqrt(2)


def _signs(key: jax.Array, dim: int) -> jax.Array:
    """Draws random signs, [dim] float in {-1, 1}, one from each bit of the random words."""
    words = jax.random.bits(key, (-(-dim // BITS),), jnp.uint32)
    index = np.arange(dim, dtype=np.uint32)
    bits = (words[index // BITS] >> jnp.asarray(index % BITS)) & jnp.uint32(1)
    return 1 - 2 * bits.astype(default_float())


def _with_signature(
    params: Callable[..., Params], shape: Callable[..., Any], left_out: tuple[str, ...]
) -> Callable[..., Params]:
    """Wraps `params` with a signature that has the parameters of `shape` in place of **values, and omits `left_out`."""
    shape_parameters, common = inspect.signature(shape).parameters, inspect.signature(params).parameters
    signature = inspect.Signature(
        [
            *shape_parameters.values(),
            *(p for p in common.values() if p.kind is not p.VAR_KEYWORD and p.name not in left_out),
        ]
    )

    def bind_params(**values: Any) -> Params:
        try:
            signature.bind(**values)
        except TypeError as error:
            raise TypeError(f"{params.__qualname__}(): {error}") from None
        return params(**values)

    bind_params.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    bind_params.__qualname__ = params.__qualname__
    return bind_params


def convex_environment(body: Domain, feedback: str, hindsight: bool, adaptive: bool, losses: Losses) -> Environment:
    """Returns the environment for points of `body` with losses from the family `losses`.

    `feedback` is "point" or "difference". If `hindsight` is true, the environment also reports `regret` in hindsight.
    If `adaptive` is true, losses increase in the direction of the mean of all points played so far.
    """
    dim = body.dim
    interface, adaptive = convex_interface(body.points, feedback), check_flag("adaptive", adaptive)
    hindsight = check_flag("hindsight", hindsight)
    are_points = feedback == "point"
    turning_plane = diagonal(dim), _across(dim)

    def params(
        *,
        noise: float = 0.0,
        tilt: float = 0.0,
        drift: float = 0.0,
        period: int = 1000,
        push: float = 0.25,
        **values: float,
    ) -> Params:
        shape, best = losses.shape(**values)
        period = check_count("period", period, 2, maximum=np.iinfo(np.int32).max)
        push = push if adaptive else 0.0
        for name, value in (("noise", noise), ("tilt", tilt), ("drift", drift), ("push", push)):
            check_number(name, check_at_least(name, value, 0.0))
        for name, value in shape.items():
            check_number(name, value)
        return Params(
            shape={name: scalar_leaf(name, value) for name, value in shape.items()},
            best=best.astype(default_float()),
            noise=scalar_leaf("noise", noise),
            tilt=scalar_leaf("tilt", tilt),
            drift=scalar_leaf("drift", drift),
            period=np.int32(period),
            push=scalar_leaf("push", push),
        )

    def init(key, params: Params) -> World:
        del key
        start = jnp.zeros((), jnp.result_type(int))
        best = jnp.asarray(params.best)
        none = compensated.zero(jnp.zeros_like(best))
        sums = (none, compensated.zero(jnp.zeros_like(best[0]))) if hindsight else ((), ())
        return World(start, none if adaptive else (), *sums)

    def rotating_part(params: Params, round_: jax.Array) -> jax.Array:  # [dim] float
        dtype = default_float()
        share = (round_ % params.period.astype(round_.dtype)).astype(dtype) / params.period.astype(dtype)
        angle = 2 * math.pi * share
        along, across = (jnp.asarray(direction, dtype) for direction in turning_plane)
        return params.drift * (jnp.cos(angle) * along + jnp.sin(angle) * across)

    def vary(key, params: Params, round_: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Draws the noise ([] float) of a round, and the tilt and drift ([dim] float each) of the round's loss."""

        def draw(key):
            key_noise, key_tilt = jax.random.split(key)
            noise = params.noise * jax.random.normal(key_noise, dtype=default_float())
            return noise, params.tilt / math.sqrt(dim) * _signs(key_tilt, dim), rotating_part(params, round_)

        def none(key):
            del key
            nothing = jnp.zeros(dim, default_float())
            return nothing[0], nothing, nothing

        is_varied = (params.noise > 0) | (params.tilt > 0) | (params.drift > 0)
        # These parts are computed only if some lane of the batch has noise, tilt or drift.
        return jax.lax.cond(any_lane(jnp.asarray(is_varied)), draw, none, key)

    def feedback_of(key, params: Params, world: World, action):
        key_varied, key_sample = (key, None) if losses.sample is None else jax.random.split(key)
        noise, tilt, drifting = vary(key_varied, params, world.round)
        if adaptive:
            mean = world.plays.total / jnp.maximum(world.round, 1).astype(drifting.dtype)
            drifting = drifting + params.push / body.reach * mean
        tilted = drifting + tilt
        sample = None if losses.sample is None else losses.sample(key_sample, params.shape)
        best = jnp.asarray(params.best)

        def rise(centre, offset):
            nonlinear_rise = (
                losses.rise(params.shape, centre, offset)
                if losses.rise_of is None
                else losses.rise_of(params.shape, sample, centre, offset)
            )
            return nonlinear_rise + 2 * inner(tilted, offset)

        def mean_rise(centre, offset):
            return losses.rise(params.shape, centre, offset) + 2 * inner(drifting, offset)

        played = (action,) if are_points else (action.centre + action.offset, action.centre - action.offset)
        inside = jnp.stack([body.holds(x) for x in played]).all()

        def average(value_at):
            """Returns the mean of value_at(x) over the points x played; NaN if a point lies outside the domain."""
            return jnp.where(inside, sum(value_at(x) for x in played) / len(played), jnp.nan)

        def regret_against_best(rises):
            return average(lambda x: rises((x + best) / 2, (x - best) / 2))

        value = average(lambda x: rise(x / 2, x / 2)) + noise
        outcome = {"pseudo_regret": regret_against_best(mean_rise), "loss": value}
        observation = rise(action / 2, action / 2) + noise if are_points else rise(action.centre, action.offset)
        after = world._replace(round=world.round + 1)
        if adaptive:
            after = after._replace(plays=compensated.add(world.plays, action if are_points else action.centre))
        if hindsight:
            after = after._replace(
                linear_sum=compensated.add(world.linear_sum, tilted),
                excess=compensated.add(world.excess, regret_against_best(rise)),
            )
        return after, observation, outcome

    def metrics_in_hindsight(params: Params, world: World):
        assert losses.hindsight is not None
        rounds = world.round.astype(default_float())
        return {"regret": world.excess.total + losses.hindsight(params, rounds, world.linear_sum.total)}

    return Environment(
        params=_with_signature(params, losses.shape, () if adaptive else ("push",)),
        init=init,
        context=None,
        feedback=feedback_of,
        hindsight=metrics_in_hindsight if hindsight else None,
        interface=interface,
    )
