"""Independent losses whose best expert changes from segment to segment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Scalar, factory, only, scalar_leaf
from jaxdp.experts._comparators import Comparison, add_round, add_rounds, check_switches, init_comparison, metrics
from jaxdp.experts._lane_kernels import entry_at
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry, wide
from jaxdp.random import beta, binomial
from jaxdp.random.coins import coins_but_one
from jaxdp.validation import check_choice, check_count, check_horizon, check_positive, check_within

TIMES = ("equal", "drawn")
EXPERTS = ("drawn", "own_parts")
LAWS = ("bernoulli", "beta")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class ShiftingParams:
    """Two mean losses, and when the expert with the smaller one changes.

    Attributes:
        gap: [] float > 0, how far the good expert's mean lies below that of the others.
        other_mean: [] float in (0, 1], the mean loss of all experts but the good one.
        good_mean: [] float in [0, 1), the mean loss of the good one.
        concentration: [] float, of Beta losses; NaN where losses are 0 or 1.
        num_shifts: [] integer >= 0, how often the good expert changes.
        shift_times: [largest num_shifts] integers, the first rounds of later segments, and the horizon in the place of
            those that are not; of drawn times all are the horizon.
    """

    gap: Scalar
    other_mean: Scalar
    good_mean: Scalar
    concentration: Scalar
    num_shifts: Scalar
    shift_times: np.ndarray


class Segments(NamedTuple):
    """The segments of one lane.

    Attributes:
        round: [] integer, rounds played.
        shift_times: [largest num_shifts] integers, ascending, the first rounds of later segments; the horizon for none.
        good_experts: [largest num_shifts + 1] int32, the good expert of each segment.
        comparison: the losses so far; () without a comparator.
    """

    round: jax.Array
    shift_times: jax.Array
    good_experts: jax.Array
    comparison: Comparison | tuple[()]


@factory
def shifting_losses(
    *,
    num_experts: int,
    horizon: int,
    num_shifts: int | None = None,
    shift_times: str | Sequence[int] = "equal",
    good_experts: str | Sequence[int] = "drawn",
    law: str = "bernoulli",
    gap: float = 0.2,
    num_switches: int | None = None,
) -> Environment:
    """Independent losses, of which one expert at a time has a smaller mean than all others: a shifting adversary.

    Shift times and good experts come from the lane's key: with drawn times, all learners and all gaps meet the same
    ones. At equal keys a smaller mean never has a larger loss of 0 or 1.

    Args:
        num_experts: number of experts, >= 2.
        horizon: rounds T, >= 1, of which shift times are drawn or which equal segments divide.
        num_shifts: the largest number of shifts, in [0, horizon); the default of the value. None where times are given.
        shift_times: "equal": segment s begins in round floor(s T / (num_shifts + 1)); "drawn": a set of num_shifts of
            the rounds 1 to T - 1, all equally likely; or the first rounds of later segments, ascending, in [1, T).
        good_experts: "drawn": the first is uniform, each later one uniform on all but the one before; "own_parts":
            uniform among the experts floor(s N / k) to floor((s + 1) N / k) - 1 in segment s of at most k; or the
            [num_shifts + 1] experts, neighbours of which differ.
        law: of a loss, "bernoulli" (0 or 1) or "beta".
        gap: the default of the value.
        num_switches: how often the sequence of experts may switch that `dynamic_regret` compares with, in
            [0, horizon); None: the environment has no summaries.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_experts) and losses ([num_experts] float in
        [0, 1]), with blocks. Outcomes, all NaN for an expert outside [0, num_experts): `loss`, of the expert played;
        `pseudo_regret`, its mean loss less the good expert's; `planted_regret`, its loss less the good expert's, which
        is the regret against the planted sequence. Summaries, with num_switches: as for `loss_sequence`.
        Tallies, of Bernoulli losses without num_switches: totals of feedback are [num_experts] integers, as counts
        of losses of 1 have to be exact. A tally of several experts that spans a shift does not say who was played when:
        its feedback is right, and its outcomes are NaN.

    Raises:
        ValueError: if a size is out of range, given times are not ascending or not in [1, horizon), given experts are
            not num_shifts + 1, not of [0, num_experts) or neighbours are equal, or more segments than experts are to
            have parts of their own; from `params`, if a value is out of range.

    Values:
        gap: in (0, other_mean], how far the good expert's mean lies below that of the others; by default the argument.
        other_mean: in (0, 1], by default 1/2.
        num_shifts: a whole number in [0, the argument], how often the good expert changes; by default the argument; not
            a value where the times are given.
        concentration: of Beta losses only: the law is Beta(m c, (1 - m) c) for the mean m, whose variance is m (1 - m)
            / (c + 1); both parameters have to be >= 1; by default 10, or the least that makes them so.

    Source:
        Tracking the best expert under privacy, section 3 (segments of equal laws).

    Deviations:
        In float32 a probability is a multiple of 2^-24, but for tallies. Drawn times come from integers whose law is
        uniform up to 2^-32 horizon.

    Examples:
        >>> shifts = shifting_losses(num_experts=3, horizon=90, num_shifts=2, good_experts=[2, 0, 1])
        >>> shifts.params(gap=0.1).shift_times.tolist()
        [30, 60]
    """
    size, rounds = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    check_choice("law", law, LAWS)
    is_beta, switches = law == "beta", check_switches(num_switches, rounds)
    given_times = None if isinstance(shift_times, str) else _given_times(shift_times, num_shifts, rounds)
    if given_times is None:
        check_choice("shift_times", shift_times, TIMES)  # pyright: ignore[reportArgumentType]
        most = _shifts("num_shifts", num_shifts, rounds - 1)
    else:
        most = len(given_times)
    is_drawn, integer = (
        shift_times == "drawn" if given_times is None else False,
        np.dtype(jax.dtypes.canonicalize_dtype(int)),
    )
    experts = _choice_of_experts(good_experts, size, most)
    default_gap, largest = gap, most
    fixed = None if given_times is None else given_times.astype(integer)  # one object at every gap

    def params(
        *,
        gap: float = default_gap,
        other_mean: float = 0.5,
        num_shifts: int = largest,
        concentration: float | None = None,
    ) -> ShiftingParams:
        check_positive("gap", gap)
        check_within("other_mean", check_positive("other_mean", other_mean), 0.0, 1.0)
        if not gap <= other_mean:
            raise ValueError(f"gap must be <= other_mean = {other_mean}, got {gap}")
        good_mean, shifts = other_mean - gap, _shifts("num_shifts", num_shifts, largest)
        spread = _concentration(concentration, good_mean, other_mean) if is_beta else np.nan
        return ShiftingParams(
            gap=scalar_leaf("gap", gap),
            other_mean=scalar_leaf("other_mean", other_mean),
            good_mean=scalar_leaf("other_mean - gap", good_mean),
            concentration=scalar_leaf("concentration", spread),
            num_shifts=integer.type(shifts),
            shift_times=_times(shifts, largest, rounds, is_drawn).astype(integer) if fixed is None else fixed,
        )

    names = ("gap", "other_mean", *(("num_shifts",) if fixed is None else ()), *(("concentration",) if is_beta else ()))
    values = only(params, names)
    values()  # refuses a bad default now

    def init(key, params: ShiftingParams) -> Segments:
        key_times, key_experts = jax.random.split(key)
        times = jnp.asarray(params.shift_times)
        if is_drawn:
            times = _drawn_times(key_times, jnp.asarray(params.num_shifts), most, rounds)
        good = experts(key_experts)
        start = () if switches is None else init_comparison(size, switches)
        return Segments(jnp.zeros((), integer), times, good, start)

    def means_of(params: ShiftingParams, good: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[num_experts] whether it is the good one, and its mean."""
        is_good = jnp.arange(size, dtype=jnp.int32) == good
        return is_good, jnp.where(is_good, params.good_mean, jnp.asarray(params.other_mean))

    def shown(key, params: ShiftingParams, world: Segments, round_, action):
        segment = jnp.sum(round_ >= world.shift_times, dtype=jnp.int32)
        good = entry_at(world.good_experts, segment)
        is_good, means = means_of(params, good)
        if is_beta:
            losses = beta(key, means * params.concentration, (1 - means) * params.concentration)
        else:
            losses = coins_but_one(key, size, good, jnp.asarray(params.good_mean), jnp.asarray(params.other_mean))
        loss, gap, expert = entry(losses, action), jnp.asarray(params.gap), wide(action)
        is_known = (expert >= 0) & (expert < size)
        return losses, {
            "loss": loss,
            "pseudo_regret": jnp.where(is_known, jnp.where(expert == good.astype(expert.dtype), 0, gap), jnp.nan),
            "planted_regret": loss - jnp.sum(jnp.where(is_good, losses, 0)),
        }

    def feedback(key, params: ShiftingParams, world: Segments, action):
        losses, outcome = shown(key, params, world, world.round, action)
        comparison = () if switches is None else add_round(_compared(world), losses, outcome["loss"])
        return world._replace(round=world.round + 1, comparison=comparison), losses, outcome

    def block(keys, params: ShiftingParams, world: Segments, contexts: None, actions):
        del contexts
        places = world.round + jnp.arange(len(keys), dtype=integer)
        losses, outcome = jax.vmap(lambda key, place, action: shown(key, params, world, place, action))(
            keys, places, actions
        )
        comparison = () if switches is None else add_rounds(_compared(world), losses, outcome["loss"])
        times, good = (jnp.broadcast_to(x[None], (len(keys), *x.shape)) for x in world[1:3])
        return Segments(places + 1, times, good, comparison), losses, outcome

    def tally(key, params: ShiftingParams, world: Segments, counts):
        played, inside = _split(world, counts, rounds)
        is_good, means = jax.vmap(lambda good: means_of(params, good))(world.good_experts)
        own, others = binomial(key, jnp.stack([played, inside - played]), jnp.stack([means, means]))
        losses, dtype = own + others, means.dtype
        is_one, is_inside = jnp.sum(counts > 0) <= 1, jnp.sum(inside[:, 0] > 0) <= 1
        loss, good_loss = own.sum().astype(dtype), jnp.sum(jnp.where(is_good, losses, 0)).astype(dtype)
        outcome = {
            "loss": loss,
            "pseudo_regret": jnp.sum(jnp.where(is_good, 0, played)).astype(dtype) * params.gap,
            "planted_regret": loss - good_loss,
        }
        known = jax.tree.map(lambda value: jnp.where(is_one | is_inside, value, jnp.nan), outcome)
        after_these = world._replace(round=world.round + counts.sum(dtype=integer))
        return after_these, losses.sum(axis=0, dtype=losses.dtype), known

    return Environment(
        params=values,
        init=init,
        context=None,
        feedback=feedback,
        summary=None if switches is None else lambda params, world: metrics(_compared(world), is_switching=True),
        block=block,
        tally=None if is_beta or switches is not None else tally,
        interface=losses_interface(size),
        horizon=rounds,
    )


def _compared(world: Segments) -> Comparison:
    assert isinstance(world.comparison, Comparison)
    return world.comparison


def _split(world: Segments, counts: jax.Array, horizon: int) -> tuple[jax.Array, jax.Array]:
    """[segments, num_experts] integers: how often each expert is played in a segment, and how many rounds it has.

    Right where one expert is played or one segment is met.
    """
    times = world.shift_times.astype(counts.dtype)
    starts = jnp.concatenate([jnp.zeros(1, counts.dtype), times])
    ends = jnp.concatenate([times, jnp.full(1, horizon, counts.dtype)])
    first = world.round.astype(counts.dtype)
    last = first + counts.sum(dtype=counts.dtype)
    inside = jnp.maximum(jnp.minimum(ends, last) - jnp.maximum(starts, first), 0)
    inside = jnp.broadcast_to(inside[:, None], (len(inside), len(counts)))
    return jnp.minimum(counts[None], inside), inside


def _shifts(name: str, value: Any, most: int) -> int:
    shifts = check_count(name, value, 0)
    if shifts > most:
        raise ValueError(f"{name} must be a whole number in [0, {most}], got {value}")
    return shifts


def _concentration(value: float | None, good_mean: float, other_mean: float) -> float:
    """The value, or its default, if the sampler's parameters are at least 1 for both means."""
    smallest = min(good_mean, 1 - other_mean)
    if value is None and smallest > 0:
        return max(10.0, (1 + 1e-6) / smallest)  # a product of floats may fall short of 1 by rounding
    if value is None or not check_positive("concentration", value) * smallest >= 1:
        raise ValueError(
            "concentration must make the parameters m c and (1 - m) c of Beta laws >= 1 for the means m = "
            f"{good_mean:g} and {other_mean:g}, got {value}"
        )
    return value


def _given_times(times: Sequence[int], num_shifts: int | None, horizon: int) -> np.ndarray:
    found = [check_count("shift_times", time, 1) for time in times]
    if num_shifts is not None and num_shifts != len(found):
        raise ValueError(f"num_shifts must be None or the number of shift_times, {len(found)}, got {num_shifts}")
    if not all(early < late for early, late in pairwise([0, *found, horizon])):
        raise ValueError(f"shift_times must be ascending, in [1, horizon = {horizon}), got {found}")
    return np.array(found, np.int64)


def _choice_of_experts(
    given: str | Sequence[int], num_experts: int, num_shifts: int
) -> Callable[[jax.Array], jax.Array]:
    """A function that draws the [num_shifts + 1] good experts, int32."""
    segments = num_shifts + 1
    if not isinstance(given, str):
        found = [check_count("good_experts", expert, 0) for expert in given]
        differ = all(early != late for early, late in pairwise(found))
        if len(found) != segments or max(found) >= num_experts or not differ:
            raise ValueError(
                f"good_experts must be {segments} of {num_experts} experts, neighbours of which differ, got {found}"
            )
        return lambda key: jnp.asarray(found, jnp.int32)
    if check_choice("good_experts", given, EXPERTS) == "drawn":
        return lambda key: _others_in_turn(key, num_experts, segments)
    if segments > num_experts:
        raise ValueError(f"own_parts must have an expert for each of {segments} segments, got {num_experts} experts")
    edges = np.array([segment * num_experts // segments for segment in range(segments + 1)], np.int32)
    return lambda key: jax.random.randint(key, (segments,), edges[:-1], edges[1:], jnp.int32)


def _others_in_turn(key: jax.Array, num_experts: int, segments: int) -> jax.Array:
    """Experts, each uniform on all but the one before it."""
    lowest = jnp.arange(segments, dtype=jnp.int32) > 0
    steps = jax.random.randint(key, (segments,), lowest.astype(jnp.int32), num_experts, jnp.int32)

    def add(before: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        now = (before + step) % num_experts
        return now, now

    return jax.lax.scan(add, jnp.int32(0), steps)[1]


def _times(shifts: int, most: int, horizon: int, is_drawn: bool) -> np.ndarray:
    equal = [segment * horizon // (shifts + 1) for segment in range(1, shifts + 1)]
    return np.array([horizon] * most if is_drawn else [*equal, *[horizon] * (most - shifts)], np.int64)


def _drawn_times(key: jax.Array, num_shifts: jax.Array, most: int, horizon: int) -> jax.Array:
    """A set of num_shifts of the rounds 1 to horizon - 1, ascending, filled up with the horizon.

    Source:
        Floyd's algorithm, in Bentley & Floyd (1987), "A sample of brilliance".
    """
    places = jnp.arange(most, dtype=num_shifts.dtype)

    def step(index: jax.Array, found: jax.Array) -> jax.Array:
        top = horizon - num_shifts + index  # the candidates are 1 to top
        time = jax.random.randint(jax.random.fold_in(key, index), (), 1, top + 1, num_shifts.dtype)
        time = jnp.where(jnp.any(found == time), top, time)
        return jnp.where((places == index) & (index < num_shifts), time, found)

    found = jax.lax.fori_loop(0, most, step, jnp.full(most, horizon, num_shifts.dtype))
    return jnp.sort(found)
