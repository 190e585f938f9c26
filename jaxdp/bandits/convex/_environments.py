"""Convex losses on a ball whose best points have closed forms.

Every loss is f_t(x) = g(x) + <h_t, x> + q_t with g(0) = 0: a mean loss g, a linear part h_t whose mean is 0, and a
number q_t. Differences of a loss between two points, and what a point loses against the best one, come from one
function, `rise(centre, offset)` = g(centre + offset) - g(centre - offset), which is written so that it does not cancel.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import compensated
from jaxdp.bandits.convex._ball import convex_interface, length, project
from jaxdp.core import Environment, Scalar, ball, default_float, factory, scalar_leaf
from jaxdp.validation import (
    check_at_least,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_positive,
    check_probability,
)

BITS = 32  # of a random word


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        shape: what g is made of, by name; the names are those of the environment's values.
        best: [dim] float, the best point of the mean losses.
        noise: [] float >= 0, standard deviation of q_t.
        tilt: [] float >= 0, length of the random linear part.
        drift: [] float >= 0, length of the linear part that turns.
        period: [] int, rounds in which it turns once.
        push: [] float >= 0, length of the linear part that follows the plays; zero where the adversary does not look.
    """

    shape: dict[str, Any]
    best: Any
    noise: Scalar
    tilt: Scalar
    drift: Scalar
    period: Any
    push: Scalar


class World(NamedTuple):
    """What happened.

    Attributes:
        round: [] integer, rounds played.
        plays: [dim] sum of the points played; empty where the adversary does not look.
        tilts: [dim] sum of the linear parts h_t; empty without hindsight.
        excess: [] sum of f_t(x_t) - f_t(best), of the losses as they were; empty without hindsight.
    """

    round: jax.Array
    plays: Any = ()
    tilts: Any = ()
    excess: Any = ()


class Losses(NamedTuple):
    """A family of losses.

    Attributes:
        shape: (**own values) -> (shape, best), on the host in float64.
        rise: (shape, centre, offset) -> g(centre + offset) - g(centre - offset).
        sample: (key, shape) -> what a round's loss is made of, for `rise_of`; None if it is g but for its linear part.
        rise_of: (shape, sample, centre, offset) -> as `rise`, of the round's loss without its linear part.
        hindsight: (params, rounds, tilts) -> what `best` has lost so far against the best point in hindsight; None
            where that has no closed form.
    """

    shape: Callable[..., tuple[dict[str, float], np.ndarray]]
    rise: Callable[..., jax.Array]
    sample: Callable[..., Any] | None = None
    rise_of: Callable[..., jax.Array] | None = None
    hindsight: Callable[..., jax.Array] | None = None


@factory
def linear_losses(
    *, dim: int, radius: float = 1.0, feedback: str = "point", hindsight: bool = False, adaptive: bool = False
) -> Environment:
    """Losses whose mean is linear: g(x) = slope <e, x>, where all entries of the unit vector e are equal.

    The best point, -radius e, lies on the boundary.

    Values: `slope`, > 0, by default 0.5. What changes from round to round is told by four more, by default 0, 0, 0 and
    1000: `noise`, >= 0, the standard deviation of a normal variate that a round's losses have in common, so that the
    difference of two does not have it; `tilt`, >= 0, the length of a random linear part, tilt s / sqrt(dim) with random
    signs s; `drift`, >= 0, the length of a linear part that turns once in `period` rounds, a whole number >= 2. With
    adaptive also `push`, >= 0, by default 0.25: the linear part push m / radius, where m is the mean of all plays so
    far.

    Args:
        dim: of points, >= 1.
        radius: of the ball in which they lie, finite and > 0.
        feedback: "point": an action is a point ([dim] float), the answer its loss. "difference": an action is
            `Probe(centre, offset)`, the answer f(centre + offset) - f(centre - offset), computed without cancellation.
        hindsight: whether to sum what `regret` needs.
        adaptive: whether the adversary looks at the plays, and makes points worse near which the learner has been.

    Returns:
        An environment with feedback [] float, unbounded if `noise` > 0. Outcomes: `pseudo_regret`, the round's loss,
        in the mean over noise and tilt, less that of the best point of g; `loss`, of this round; both are means over
        the two points of a probe, and NaN if a point lies outside the ball by more than rounding. Losses are 0 at the
        centre but for `noise`, at most slope + tilt + drift + push per unit of distance elsewhere, which is also their
        Lipschitz constant. Summary, with hindsight: `regret`, the sum of losses less that of the best fixed point in
        hindsight.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Source: standard.
    Deviations: none.
    """
    towards = _diagonal(dim)

    def shape(*, slope: float = 0.5):
        return {"slope": check_positive("slope", slope)}, -radius * towards

    def rise(shape, centre, offset):
        del centre
        return 2 * shape["slope"] * jnp.sum(jnp.asarray(towards, offset.dtype) * offset)

    def lost(params: Params, rounds, tilts):
        along = jnp.asarray(towards, tilts.dtype)
        ahead = rounds * params.shape["slope"] + jnp.sum(tilts * along)
        across = tilts - jnp.sum(tilts * along) * along
        total = jnp.sqrt(ahead * ahead + jnp.sum(across * across))
        # The length of the whole gradient less its part along e, without the cancellation where the latter is > 0.
        return radius * jnp.where(
            ahead > 0, jnp.sum(across * across) / jnp.where(ahead > 0, total + ahead, 1), total - ahead
        )

    return _environment(dim, radius, feedback, hindsight, adaptive, Losses(shape, rise, hindsight=lost))


@factory
def quadratic_losses(
    *, dim: int, radius: float = 1.0, feedback: str = "point", hindsight: bool = False, adaptive: bool = False
) -> Environment:
    """Losses whose mean is quadratic: g(x) = curvature (|x - m|^2 - |m|^2) / 2, m = target e, all entries of e equal.

    They are strongly convex and smooth, both with the constant `curvature`. The best point is m, or that of the ball
    nearest to it.

    Values: `curvature`, > 0, by default 0.5; `target`, the distance of m from the centre, by default half the radius;
    it may be more than the radius. `noise`, `tilt`, `drift`, `period` and `push` as for `linear_losses`.

    Args:
        dim: as for `linear_losses`.
        radius: as there.
        feedback: as there.
        hindsight: as there.
        adaptive: as there.

    Returns:
        An environment as `linear_losses`. Losses are 0 at the centre but for `noise`, at most curvature (radius^2 / 2 +
        target radius) + (tilt + drift + push) radius elsewhere; their Lipschitz constant is curvature (radius +
        target) + tilt + drift + push.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Source: standard.
    Deviations: none.
    """
    towards = _diagonal(dim)

    def shape(*, curvature: float = 0.5, target: float = radius / 2):
        found = {"curvature": check_positive("curvature", curvature), "target": check_at_least("target", target, 0.0)}
        return found, min(target, radius) * towards

    def middle(shape, like):
        return shape["target"] * jnp.asarray(towards, like.dtype)

    def rise(shape, centre, offset):
        return 2 * shape["curvature"] * jnp.sum((centre - middle(shape, centre)) * offset)

    def lost(params: Params, rounds, tilts):
        best = jnp.asarray(params.best)
        shifted = middle(params.shape, tilts) - tilts / (params.shape["curvature"] * jnp.maximum(rounds, 1))
        found = project(shifted, jnp.asarray(radius, tilts.dtype))
        half = (best - found) / 2
        return rounds * rise(params.shape, (best + found) / 2, half) + 2 * jnp.sum(tilts * half)

    return _environment(dim, radius, feedback, hindsight, adaptive, Losses(shape, rise, hindsight=lost))


@factory
def huber_losses(*, dim: int, radius: float = 1.0, feedback: str = "point", adaptive: bool = False) -> Environment:
    """Losses whose mean is a Huber function of the distance from m = target e, less its value at the centre.

    g(x) = slope h(|x - m|), h(r) = r^2 / (2 width) up to r = width and r - width / 2 from there on. They are convex and
    smooth with the constant slope / width, and not strongly convex. The best point is m, or that of the ball nearest to
    it.

    Values: `slope`, > 0, by default 0.5; `width`, > 0, by default a quarter of the radius; `target`, >= 0, the distance
    of m from the centre, by default half the radius. `noise`, `tilt`, `drift`, `period` and `push` as for
    `linear_losses`.

    Args:
        dim: as for `linear_losses`.
        radius: as there.
        feedback: as there.
        adaptive: as there.

    Returns:
        An environment as `linear_losses`, without `regret`. Their Lipschitz constant is slope + tilt + drift + push.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Source: Huber (1964).
    Deviations: none.
    """
    towards = _diagonal(dim)

    def shape(*, slope: float = 0.5, width: float = radius / 4, target: float = radius / 2):
        found = {
            "slope": check_positive("slope", slope),
            "width": check_positive("width", width),
            "target": check_at_least("target", target, 0.0),
        }
        return found, min(target, radius) * towards

    def rise(shape, centre, offset):
        width, away = shape["width"], centre - shape["target"] * jnp.asarray(towards, centre.dtype)
        ends = length(away + offset), length(away - offset)
        # The difference of the distances, by that of their squares: the distances' own difference would cancel.
        both = ends[0] + ends[1]
        further = 4 * jnp.sum(away * offset) / jnp.where(both > 0, both, 1)
        near, far = jnp.minimum(*ends), jnp.maximum(*ends)
        # The mean of h' between the two: by the trapezium, and what the kink lies above it.
        apart = jnp.where(far > near, far - near, 1)
        kink = jnp.maximum(width - near, 0) * jnp.maximum(far - width, 0) / (2 * apart)
        mean = ((jnp.minimum(near, width) + jnp.minimum(far, width)) / 2 + kink) / width
        return shape["slope"] * further * mean

    return _environment(dim, radius, feedback, False, adaptive, Losses(shape, rise))


@factory
def logistic_losses(*, dim: int, radius: float = 1.0, feedback: str = "point", adaptive: bool = False) -> Environment:
    """Logistic losses of random labels: f_t(x) = ln(1 + exp(-y steepness x_j)) - ln 2, coordinate j and label y random.

    The coordinate is uniform and y = 1 with probability `label_prob`, else -1. Losses are convex, smooth with the
    constant steepness^2 / 4, and their mean is strongly convex on the ball. All entries of the best point are equal:
    ln(label_prob / (1 - label_prob)) / steepness, or that of the ball nearest to it.

    Values: `steepness`, > 0, by default 1; `label_prob`, in (0, 1), by default 0.6. `noise`, `tilt`, `drift`,
    `period` and `push` as for `linear_losses`.

    Args:
        dim: as for `linear_losses`.
        radius: as there.
        feedback: as there.
        adaptive: as there.

    Returns:
        An environment as `linear_losses`, without `regret`. Their Lipschitz constant is steepness + tilt + drift +
        push.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Source: standard.
    Deviations: none.
    """

    def shape(*, steepness: float = 1.0, label_prob: float = 0.6):
        chance, steepness = check_probability("label_prob", label_prob), check_positive("steepness", steepness)
        found = (math.log(chance) - math.log1p(-chance)) / steepness * math.sqrt(dim)
        return {"steepness": steepness, "label_prob": chance}, max(-radius, min(radius, found)) * _diagonal(dim)

    def rise(shape, centre, offset):
        middle, half, chance = shape["steepness"] * centre, shape["steepness"] * offset, shape["label_prob"]
        return jnp.mean(chance * _logistic_rise(middle, half) + (1 - chance) * _logistic_rise(-middle, -half))

    def sample(key, shape):
        key_coordinate, key_label = jax.random.split(key)
        label = jnp.where(jax.random.uniform(key_label, dtype=default_float()) < shape["label_prob"], 1, -1)
        return jax.random.randint(key_coordinate, (), 0, dim), label

    def rise_of(shape, sample, centre, offset):
        coordinate, label = sample
        factor = shape["steepness"] * label
        return _logistic_rise(factor * centre[coordinate], factor * offset[coordinate])

    return _environment(dim, radius, feedback, False, adaptive, Losses(shape, rise, sample, rise_of))


def _logistic_rise(middle: jax.Array, half: jax.Array) -> jax.Array:
    """ln(1 + exp(-(middle + half))) - ln(1 + exp(-(middle - half)))."""
    size = jnp.abs(half)
    small = jnp.minimum(size, 1)
    close = jnp.log1p(jnp.expm1(-2 * small) * jax.nn.sigmoid(small - middle))
    apart = jax.nn.softplus(-(middle + size)) - jax.nn.softplus(size - middle)
    return jnp.where(half < 0, -1, 1) * jnp.where(size > 1, apart, close)


def _diagonal(dim: int) -> np.ndarray:
    """The unit vector e, whose entries are all equal: [dim] float64."""
    return np.full(check_count("dim", dim), 1 / math.sqrt(dim))


def _across(dim: int) -> np.ndarray:
    """A unit vector that is orthogonal to e; zero in one dimension."""
    return np.zeros(1) if dim == 1 else np.concatenate([[1, -1], np.zeros(dim - 2)]) / math.sqrt(2)


def _signs(key: jax.Array, dim: int) -> jax.Array:
    """Random signs, [dim] float: the bits of as few words as will do."""
    words = jax.random.bits(key, (-(-dim // BITS),), jnp.uint32)
    place = np.arange(dim, dtype=np.uint32)
    bits = (words[place // BITS] >> jnp.asarray(place % BITS)) & jnp.uint32(1)
    return 1 - 2 * bits.astype(default_float())


def _named(
    params: Callable[..., Params], shape: Callable[..., Any], left_out: tuple[str, ...]
) -> Callable[..., Params]:
    """The same `params`, whose signature names the values of `shape` first in place of **values."""
    own, common = inspect.signature(shape).parameters, inspect.signature(params).parameters
    kept = inspect.Signature(
        [*own.values(), *(p for p in common.values() if p.kind is not p.VAR_KEYWORD and p.name not in left_out)]
    )

    def named(**values: Any) -> Params:
        try:
            kept.bind(**values)
        except TypeError as error:
            raise TypeError(f"{params.__qualname__}(): {error}") from None
        return params(**values)

    named.__signature__ = kept  # pyright: ignore[reportFunctionMemberAccess]
    named.__qualname__ = params.__qualname__
    return named


def _environment(
    dim: int, radius: float, feedback: str, hindsight: bool, adaptive: bool, losses: Losses
) -> Environment:
    """The environment of a family of losses."""
    interface, adaptive = convex_interface(dim, radius, feedback), check_flag("adaptive", adaptive)
    hindsight = check_flag("hindsight", hindsight)
    are_points, points = check_choice("feedback", feedback, ("point", "difference")) == "point", ball(dim, radius)
    turning = _diagonal(dim), _across(dim)

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
            period=np.int32(check_count("period", period, 2)),
            push=scalar_leaf("push", push),
        )

    def init(key, params: Params) -> World:
        del key
        start = jnp.zeros((), jnp.result_type(int))
        best = jnp.asarray(params.best)
        none = compensated.zero(jnp.zeros_like(best))
        sums = (none, compensated.zero(jnp.zeros_like(best[0]))) if hindsight else ((), ())
        return World(start, none if adaptive else (), *sums)

    def turned(params: Params, round_: jax.Array) -> jax.Array:
        """The linear part that turns, [dim] float."""
        dtype = default_float()
        share = (round_ % params.period.astype(round_.dtype)).astype(dtype) / params.period.astype(dtype)
        angle = 2 * math.pi * share
        along, across = (jnp.asarray(each, dtype) for each in turning)
        return params.drift * (jnp.cos(angle) * along + jnp.sin(angle) * across)

    def answered(key, params: Params, world: World, action):
        key_noise, key_tilt, key_sample = jax.random.split(key, 3)
        drifting = turned(params, world.round)
        if adaptive:
            mean = world.plays.total / jnp.maximum(world.round, 1).astype(drifting.dtype)
            drifting = drifting + params.push / radius * mean
        tilted = drifting + params.tilt / math.sqrt(dim) * _signs(key_tilt, dim)
        sample = None if losses.sample is None else losses.sample(key_sample, params.shape)
        best = jnp.asarray(params.best)

        def rise(centre, offset):
            """Of this round's loss."""
            own = (
                losses.rise(params.shape, centre, offset)
                if losses.rise_of is None
                else losses.rise_of(params.shape, sample, centre, offset)
            )
            return own + 2 * jnp.sum(tilted * offset)

        def mean_rise(centre, offset):
            return losses.rise(params.shape, centre, offset) + 2 * jnp.sum(drifting * offset)

        noise = params.noise * jax.random.normal(key_noise, dtype=best.dtype)
        played = (action,) if are_points else (action.centre + action.offset, action.centre - action.offset)
        inside = jnp.stack([points.holds(x) for x in played]).all()

        def averaged(one):
            """The mean over the points played; NaN if one of them lies outside."""
            return jnp.where(inside, sum(one(x) for x in played) / len(played), jnp.nan)

        def against(rises):
            return averaged(lambda x: rises((x + best) / 2, (x - best) / 2))

        value = averaged(lambda x: rise(x / 2, x / 2)) + noise
        outcome = {"pseudo_regret": against(mean_rise), "loss": value}
        shown = rise(action / 2, action / 2) + noise if are_points else rise(action.centre, action.offset)
        after = world._replace(round=world.round + 1)
        if adaptive:
            after = after._replace(plays=compensated.add(world.plays, action if are_points else action.centre))
        if hindsight:
            after = after._replace(
                tilts=compensated.add(world.tilts, tilted), excess=compensated.add(world.excess, against(rise))
            )
        return after, shown, outcome

    def summary(params: Params, world: World):
        assert losses.hindsight is not None
        rounds = world.round.astype(default_float())
        return {"regret": world.excess.total + losses.hindsight(params, rounds, world.tilts.total)}

    return Environment(
        params=_named(params, losses.shape, () if adaptive else ("push",)),
        init=init,
        context=None,
        feedback=answered,
        summary=summary if hindsight else None,
        interface=interface,
    )
