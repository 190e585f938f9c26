"""Regret against the best fixed expert, and against the best sequence of experts with few switches."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import default_float
from jaxdp.numerics import compensated
from jaxdp.validation import check_count


class Comparison(NamedTuple):
    """The statistics of past losses from which regrets are computed.

    Attributes:
        best: [num_switches + 1, num_experts] compensated sums. Entry (c, j) is the smallest total loss of a sequence of
            experts that has at most c switches and ends in expert j. Row 0 contains the total losses of fixed experts.
        loss: [] compensated sum of the learner's losses.
    """

    best: compensated.Sum
    loss: compensated.Sum


def check_switches(num_switches: Any, horizon: int | None = None) -> int | None:
    """Checks the comparator's number of switches, and returns it as an int; None if it is None.

    Raises:
        ValueError: if num_switches is not an integer >= 0, or a horizon is given and num_switches is not below it.
    """
    if num_switches is None:
        return None
    switches = check_count("num_switches", num_switches, 0)
    if horizon is not None and not switches < horizon:
        raise ValueError(f"num_switches must be < horizon = {horizon}, got {num_switches}")
    return switches


def init_comparison(num_experts: int, num_switches: int | None) -> Comparison:
    """Returns the `Comparison` before the first round; without switches if `num_switches` is None."""
    zeros = jnp.zeros(((num_switches or 0) + 1, num_experts), default_float())
    return Comparison(compensated.zero(zeros), compensated.zero(zeros[0, 0]))


def add_round(before: Comparison, losses: jax.Array, loss: jax.Array) -> Comparison:
    """Updates the comparison by one round, with O((num_switches + 1) num_experts) operations.

    Args:
        before: the comparison before this round.
        losses: [num_experts] float, the losses of the round.
        loss: [] float, the learner's loss.

    Source:
        Dynamic programming over (switches, expert), as in Herbster & Warmuth (1998), "Tracking the best expert".
    """
    best = before.best
    if len(best.total) > 1:
        switched = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:-1, None], best.total[1:].shape), _least(best))
        stay = jax.tree.map(lambda leaf: leaf[1:], best)
        is_better = _difference(switched, stay) < 0
        best = jax.tree.map(
            lambda all_rows, switch_sum, stay_sum: jnp.concatenate(
                [all_rows[:1], jnp.where(is_better, switch_sum, stay_sum)]
            ),
            best,
            switched,
            stay,
        )
    losses = jnp.broadcast_to(losses[None], best.total.shape)
    return Comparison(compensated.add(best, losses), compensated.add(before.loss, loss))


def add_rounds(before: Comparison, losses: jax.Array, loss: jax.Array) -> Comparison:
    """Returns the comparisons after each of several rounds, with the same results as repeated calls of `add_round`.

    Args:
        before: the comparison before these rounds.
        losses: [rounds, num_experts] float.
        loss: [rounds] float.

    Returns:
        A comparison with an additional first axis, [rounds], in each leaf.
    """

    def step(comparison: Comparison, round_losses: tuple[jax.Array, jax.Array]) -> tuple[Comparison, Comparison]:
        comparison = add_round(comparison, *round_losses)
        return comparison, comparison

    return jax.lax.scan(step, before, (losses, loss))[1]


def metrics(comparison: Comparison, *, is_switching: bool) -> dict[str, jax.Array]:
    """Returns `regret` and `best_loss`; if sequences may switch, also `dynamic_regret` and `best_sequence_loss`."""
    least = _least(comparison.best)
    fixed, sequence = (jax.tree.map(lambda leaf, r=row: leaf[r], least) for row in (0, -1))
    values = {"regret": _difference(comparison.loss, fixed), "best_loss": fixed.total - fixed.excess}
    if is_switching:
        values["dynamic_regret"] = _difference(comparison.loss, sequence)
        values["best_sequence_loss"] = sequence.total - sequence.excess
    return values


def _least(sums: compensated.Sum) -> compensated.Sum:
    """Returns the smallest sum of each row as a compensated sum, [num_rows]."""
    # The rounding excess must be included, because the sums are large and their differences are small.
    base = jnp.min(sums.total, axis=-1)
    above = jnp.min((sums.total - base[..., None]) - sums.excess, axis=-1)
    return compensated.Sum(base, -above)


def _difference(left: compensated.Sum, right: compensated.Sum) -> jax.Array:
    return (left.total - right.total) - (left.excess - right.excess)
