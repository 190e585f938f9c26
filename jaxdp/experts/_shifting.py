"""Independent losses for which the best expert changes from one segment of rounds to the next."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Scalar, factory, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._comparators import Comparison, add_round, add_rounds, check_switches, init_comparison, metrics
from jaxdp.experts._lane_kernels import entry_at
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry, widen_index
from jaxdp.random import beta, binomial
from jaxdp.random.coins import coins_but_one
from jaxdp.validation import check_choice, check_count, check_horizon, check_list, check_positive, check_within

TIMES = ("equal", "drawn")
EXPERTS = ("drawn", "own_parts")
DISTRIBUTIONS = ("bernoulli", "beta")


@pytree_dataclass
class ShiftingParams:
    """The environment's parameters, which JAX traces: mean losses, and the rounds in which the good expert changes.

    Attributes:
        gap: [] float > 0, the mean loss of all other experts minus the good expert's mean loss.
        other_mean: [] float in (0, 1], the mean loss of every expert except the good one.
        good_mean: [] float in [0, 1), the mean loss of the good expert.
        concentration: [] float, the concentration c of Beta losses; NaN if losses are 0 or 1.
        num_shifts: [] integer >= 0, the number of changes of the good expert.
        shift_times: [maximum num_shifts] integer, the first rounds of all segments after the first; unused entries are
            the horizon. If times are drawn, all entries are the horizon.
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
        shift_times: [maximum num_shifts] integer, ascending, the first rounds of all segments after the first; unused
            entries are the horizon.
        good_experts: [maximum num_shifts + 1] int32, the good expert of each segment.
        comparison: sums of past losses, for metrics; () without metrics in hindsight.
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
    distribution: str = "bernoulli",
    gap: float = 0.2,
    num_switches: int | None = None,
) -> Environment:
    """Independent losses from a shifting adversary: in each segment of rounds, one expert has the smallest mean loss.

    Shift times and good experts are drawn from the lane's key, so they are the same for all learners and all gaps. With
    the same key and losses of 0 or 1, a smaller mean never gives a larger loss.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1, which are divided into segments.
        num_shifts: the maximum number of shifts, in [0, horizon), and the default of the value `num_shifts` (see
            Values). It must be given, unless shift_times is a list; then it must be None or the length of the list.
        shift_times: the first rounds of all segments except the first; rounds are numbered from 0. "equal": segment s =
            0, 1, ... begins in round floor(s T / (num_shifts + 1)). "drawn": num_shifts distinct rounds from 1 to T -
            1; all sets of rounds are equally likely. Or a list of rounds in [1, T), in ascending order.
        good_experts: the good expert of each segment. "drawn": the first good expert is uniform, and each later one is
            uniform on all experts except its predecessor. "own_parts": let k be the maximum number of segments; the
            good expert of segment s = 0, 1, ... is uniform on the experts floor(s N / k) to floor((s + 1) N / k) - 1,
            so the good experts of all segments are distinct. Or a list of num_shifts + 1 experts, each different from
            its predecessor.
        distribution: distribution of a loss, "bernoulli" (0 or 1) or "beta".
        gap: default of the value `gap` (see Values), in (0, 1/2]; for "beta" in (0, 1/2).
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, in [0, horizon). If
            None, the environment has no metrics in hindsight.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_experts) and losses ([num_experts] float in [0,
        1]). It supports blocks. Outcomes: `loss`, the loss of the expert played; `pseudo_regret`, this expert's mean
        loss minus the good expert's mean loss; `planted_regret`, this expert's loss minus the good expert's loss, which
        is the regret against the planted sequence. All outcomes are NaN for an expert outside [0, num_experts). If
        num_switches is given, metrics in hindsight are as for `loss_sequence`. Bernoulli losses without num_switches
        support feedback totals, for `engine="counts"`: [num_experts] integer, the number of each expert's losses that
        are 1. If such a total covers rounds of several segments in which several experts are played, the outcomes are
        NaN, because it is unknown which expert was played in which segment; the feedback is correct also in this case.

    Raises:
        ValueError: if a size or the default gap is out of range; if a string is not one of the names above; if a list
            of times is not ascending or not in [1, horizon); if a list of experts is not num_shifts + 1 experts in [0,
            num_experts), each different from its predecessor; or if "own_parts" has more segments than experts. The
            result's `params` raises this error if a value is out of range.

    Values:
        gap: in (0, other_mean], the mean loss of all other experts minus the good expert's mean loss; by default the
            argument `gap`.
        other_mean: in (0, 1], the mean loss of all other experts, by default 1/2.
        num_shifts: number of changes of the good expert, an integer from 0 to the argument `num_shifts`, which is the
            default. `params` does not take it if shift_times is a list.
        concentration: c, only for Beta losses. A loss of mean m has the distribution Beta(m c, (1 - m) c), with
            variance m (1 - m) / (c + 1). Both parameters must be >= 1 for both means, so the good expert's mean must be
            > 0 and other_mean < 1. By default c is the maximum of 10 and the smallest c with this property.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), section 3 (segments of equal distributions).

    Deviations:
        In float32 a probability is a multiple of 2^-24, except in feedback totals. The integers from which times are
        drawn are uniform up to a relative error of horizon * 2^-32.

    Examples:
        >>> shifts = shifting_losses(num_experts=3, horizon=90, num_shifts=2, good_experts=[2, 0, 1])
        >>> shifts.params(gap=0.1).shift_times.tolist()
        [30, 60]
    """
    size, rounds = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    check_choice("distribution", distribution, DISTRIBUTIONS)
    is_beta, switches = distribution == "beta", check_switches(num_switches, rounds)
    given_times = None if isinstance(shift_times, str) else _check_times(shift_times, num_shifts, rounds)
    if given_times is None:
        check_choice("shift_times", shift_times, TIMES)  # pyright: ignore[reportArgumentType]
        largest_shifts = _check_shifts("num_shifts", num_shifts, rounds - 1)
    else:
        largest_shifts = len(given_times)
    is_drawn, integer = (
        shift_times == "drawn" if given_times is None else False,
        np.dtype(jax.dtypes.canonicalize_dtype(int)),
    )
    experts = _expert_sampler(good_experts, size, largest_shifts)
    default_gap, largest = gap, largest_shifts
    fixed_times = None if given_times is None else given_times.astype(integer)  # all gaps share this object

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
        good_mean, shifts = other_mean - gap, _check_shifts("num_shifts", num_shifts, largest)
        spread = _concentration(concentration, good_mean, other_mean) if is_beta else np.nan
        return ShiftingParams(
            gap=scalar_leaf("gap", gap),
            other_mean=scalar_leaf("other_mean", other_mean),
            good_mean=scalar_leaf("other_mean - gap", good_mean),
            concentration=scalar_leaf("concentration", spread),
            num_shifts=integer.type(shifts),
            shift_times=_shift_times(shifts, largest, rounds, is_drawn).astype(integer)
            if fixed_times is None
            else fixed_times,
        )

    names = (
        "gap",
        "other_mean",
        *(("num_shifts",) if fixed_times is None else ()),
        *(("concentration",) if is_beta else ()),
    )
    values = only(params, names)
    values()  # checks the defaults

    def init(key, params: ShiftingParams) -> Segments:
        key_times, key_experts = jax.random.split(key)
        times = jnp.asarray(params.shift_times)
        if is_drawn:
            times = _draw_times(key_times, jnp.asarray(params.num_shifts), largest_shifts, rounds)
        good = experts(key_experts)
        start = () if switches is None else init_comparison(size, switches)
        return Segments(jnp.zeros((), integer), times, good, start)

    def means_of(params: ShiftingParams, good: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns whether each expert is the good expert, and each expert's mean loss, [num_experts] each."""
        is_good = jnp.arange(size, dtype=jnp.int32) == good
        return is_good, jnp.where(is_good, params.good_mean, jnp.asarray(params.other_mean))

    def draw_losses(key, params: ShiftingParams, world: Segments, round_, action):
        segment = jnp.sum(round_ >= world.shift_times, dtype=jnp.int32)
        good = entry_at(world.good_experts, segment)
        is_good, means = means_of(params, good)
        if is_beta:
            losses = beta(key, means * params.concentration, (1 - means) * params.concentration)
        else:
            losses = coins_but_one(key, size, good, jnp.asarray(params.good_mean), jnp.asarray(params.other_mean))
        loss, gap, expert = entry(losses, action), jnp.asarray(params.gap), widen_index(action)
        is_known = (expert >= 0) & (expert < size)
        return losses, {
            "loss": loss,
            "pseudo_regret": jnp.where(is_known, jnp.where(expert == good.astype(expert.dtype), 0, gap), jnp.nan),
            "planted_regret": loss - jnp.sum(jnp.where(is_good, losses, 0)),
        }

    def feedback(key, params: ShiftingParams, world: Segments, action):
        losses, outcome = draw_losses(key, params, world, world.round, action)
        comparison = () if switches is None else add_round(_comparison_of(world), losses, outcome["loss"])
        return world._replace(round=world.round + 1, comparison=comparison), losses, outcome

    def block(keys, params: ShiftingParams, world: Segments, contexts: None, actions):
        del contexts
        rounds_ = world.round + jnp.arange(len(keys), dtype=integer)
        losses, outcome = jax.vmap(lambda key, round_, action: draw_losses(key, params, world, round_, action))(
            keys, rounds_, actions
        )
        comparison = () if switches is None else add_rounds(_comparison_of(world), losses, outcome["loss"])
        times, good = (jnp.broadcast_to(leaf[None], (len(keys), *leaf.shape)) for leaf in world[1:3])
        return Segments(rounds_ + 1, times, good, comparison), losses, outcome

    def feedback_totals(key, params: ShiftingParams, world: Segments, counts):
        played, inside = _split(world, counts, rounds)
        is_good, means = jax.vmap(lambda good: means_of(params, good))(world.good_experts)
        played_ones, other_ones = binomial(key, jnp.stack([played, inside - played]), jnp.stack([means, means]))
        losses, dtype = played_ones + other_ones, means.dtype
        has_one_expert, has_one_segment = jnp.sum(counts > 0) <= 1, jnp.sum(inside[:, 0] > 0) <= 1
        loss, good_loss = played_ones.sum().astype(dtype), jnp.sum(jnp.where(is_good, losses, 0)).astype(dtype)
        outcome = {
            "loss": loss,
            "pseudo_regret": jnp.sum(jnp.where(is_good, 0, played)).astype(dtype) * params.gap,
            "planted_regret": loss - good_loss,
        }
        outcome_or_nan = jax.tree.map(
            lambda value: jnp.where(has_one_expert | has_one_segment, value, jnp.nan), outcome
        )
        next_world = world._replace(round=world.round + counts.sum(dtype=integer))
        return next_world, losses.sum(axis=0, dtype=losses.dtype), outcome_or_nan

    return Environment(
        params=values,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=None if switches is None else lambda params, world: metrics(_comparison_of(world), is_switching=True),
        block=block,
        feedback_totals=None if is_beta or switches is not None else feedback_totals,
        interface=losses_interface(size),
        horizon=rounds,
    )


def _comparison_of(world: Segments) -> Comparison:
    assert isinstance(world.comparison, Comparison)
    return world.comparison


def _split(world: Segments, counts: jax.Array, horizon: int) -> tuple[jax.Array, jax.Array]:
    """Returns each expert's plays in each segment, and the segments' rounds, [segments, num_experts] integer each."""
    # The result is correct only if a single expert is played in all rounds, or all rounds are in a single segment.
    times = world.shift_times.astype(counts.dtype)
    starts = jnp.concatenate([jnp.zeros(1, counts.dtype), times])
    ends = jnp.concatenate([times, jnp.full(1, horizon, counts.dtype)])
    first = world.round.astype(counts.dtype)
    last = first + counts.sum(dtype=counts.dtype)
    inside = jnp.maximum(jnp.minimum(ends, last) - jnp.maximum(starts, first), 0)
    inside = jnp.broadcast_to(inside[:, None], (len(inside), len(counts)))
    return jnp.minimum(counts[None], inside), inside


def _check_shifts(name: str, value: Any, largest: int) -> int:
    shifts = check_count(name, value, 0)
    if shifts > largest:
        raise ValueError(f"{name} must be an integer in [0, {largest}], got {value}")
    return shifts


def _concentration(value: float | None, good_mean: float, other_mean: float) -> float:
    """Returns the concentration, by default the larger of 10 and the least valid value; checks it for both means."""
    smallest = min(good_mean, 1 - other_mean)
    if value is None and smallest > 0:
        return max(10.0, (1 + 1e-6) / smallest)  # rounding may decrease a product of floats below 1
    if value is None or not check_positive("concentration", value) * smallest >= 1:
        raise ValueError(
            "concentration must make the parameters m c and (1 - m) c of Beta distributions >= 1 for the means m = "
            f"{good_mean:g} and {other_mean:g}, got {value}"
        )
    return value


def _check_times(times: Sequence[int], num_shifts: int | None, horizon: int) -> np.ndarray:
    checked_times = [check_count("shift_times", time, 1) for time in check_list("shift_times", times)]
    if num_shifts is not None and num_shifts != len(checked_times):
        raise ValueError(
            f"num_shifts must be None or the number of shift_times, {len(checked_times)}, got {num_shifts}"
        )
    if not all(early < late for early, late in pairwise([0, *checked_times, horizon])):
        raise ValueError(f"shift_times must be ascending, in [1, horizon = {horizon}), got {checked_times}")
    return np.array(checked_times, np.int64)


def _expert_sampler(choice: str | Sequence[int], num_experts: int, num_shifts: int) -> Callable[[jax.Array], jax.Array]:
    """Returns a function that draws the good experts ([num_shifts + 1] int32) of all segments."""
    segments = num_shifts + 1
    if not isinstance(choice, str):
        experts = [check_count("good_experts", expert, 0) for expert in check_list("good_experts", choice)]
        differ = all(early != late for early, late in pairwise(experts))
        if len(experts) != segments or max(experts) >= num_experts or not differ:
            raise ValueError(
                f"good_experts must be {segments} of {num_experts} experts with different neighbours, got {experts}"
            )
        return lambda key: jnp.asarray(experts, jnp.int32)
    if check_choice("good_experts", choice, EXPERTS) == "drawn":
        return lambda key: _draw_changing_experts(key, num_experts, segments)
    if segments > num_experts:
        raise ValueError(f"own_parts must have an expert for each of {segments} segments, got {num_experts} experts")
    edges = np.array([segment * num_experts // segments for segment in range(segments + 1)], np.int32)
    return lambda key: jax.random.randint(key, (segments,), edges[:-1], edges[1:], jnp.int32)


def _draw_changing_experts(key: jax.Array, num_experts: int, segments: int) -> jax.Array:
    """Draws experts, [segments] int32; each expert is uniform on all experts except its predecessor."""
    is_later = jnp.arange(segments, dtype=jnp.int32) > 0
    steps = jax.random.randint(key, (segments,), is_later.astype(jnp.int32), num_experts, jnp.int32)

    def add(before: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        expert = (before + step) % num_experts
        return expert, expert

    return jax.lax.scan(add, jnp.int32(0), steps)[1]


def _shift_times(shifts: int, size: int, horizon: int, is_drawn: bool) -> np.ndarray:
    equal = [segment * horizon // (shifts + 1) for segment in range(1, shifts + 1)]
    return np.array([horizon] * size if is_drawn else [*equal, *[horizon] * (size - shifts)], np.int64)


def _draw_times(key: jax.Array, num_shifts: jax.Array, size: int, horizon: int) -> jax.Array:
    """Draws num_shifts distinct rounds from 1 to horizon - 1, in ascending order, padded with the horizon to [size]."""
    # Floyd's algorithm, in Bentley & Floyd (1987), "A sample of brilliance".
    positions = jnp.arange(size, dtype=num_shifts.dtype)

    def step(index: jax.Array, drawn_times: jax.Array) -> jax.Array:
        top = horizon - num_shifts + index  # candidates are 1 to top
        time = jax.random.randint(jax.random.fold_in(key, index), (), 1, top + 1, num_shifts.dtype)
        time = jnp.where(jnp.any(drawn_times == time), top, time)
        return jnp.where((positions == index) & (index < num_shifts), time, drawn_times)

    drawn_times = jax.lax.fori_loop(0, size, step, jnp.full(size, horizon, num_shifts.dtype))
    return jnp.sort(drawn_times)
