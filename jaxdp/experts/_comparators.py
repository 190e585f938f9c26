"""What a learner's loss is compared with: the best fixed expert, and the best sequence with few switches."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import default_float
from jaxdp.numerics import compensated
from jaxdp.validation import check_count


class Comparison(NamedTuple):
    """The losses so far, as far as the comparison needs them.

    Attributes:
        best: [num_switches + 1, num_experts] compensated sums: the smallest loss of a sequence of experts with at most
            c switches that ends in expert j. Row 0 has the losses of fixed experts.
        loss: [] compensated sum of the learner's own.
    """

    best: compensated.Sum
    loss: compensated.Sum


def check_switches(num_switches: Any, horizon: int | None = None) -> int | None:
    """The number of switches of the comparator as an int, or None.

    Raises:
        ValueError: if it is not a whole number >= 0, or not below the horizon.
    """
    if num_switches is None:
        return None
    switches = check_count("num_switches", num_switches, 0)
    if horizon is not None and not switches < horizon:
        raise ValueError(f"num_switches must be < horizon = {horizon}, got {num_switches}")
    return switches


def begun(num_experts: int, num_switches: int | None) -> Comparison:
    """The comparison before the first round."""
    none = jnp.zeros(((num_switches or 0) + 1, num_experts), default_float())
    return Comparison(compensated.zero(none), compensated.zero(none[0, 0]))


def after(before: Comparison, losses: jax.Array, loss: jax.Array) -> Comparison:
    """The comparison after one more round, in O((num_switches + 1) num_experts).

    Args:
        before: the comparison before it.
        losses: [num_experts] float, the round's.
        loss: [] float, the learner's own.

    Source:
        Dynamic programming over (switches, expert), as in Herbster & Warmuth (1998), "Tracking the best expert".
    """
    best = before.best
    if len(best.total) > 1:
        switched = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:-1, None], best.total[1:].shape), _least(best))
        stay = jax.tree.map(lambda leaf: leaf[1:], best)
        is_better = _difference(switched, stay) < 0
        best = jax.tree.map(
            lambda all_rows, new, old: jnp.concatenate([all_rows[:1], jnp.where(is_better, new, old)]),
            best,
            switched,
            stay,
        )
    losses = jnp.broadcast_to(losses[None], best.total.shape)
    return Comparison(compensated.add(best, losses), compensated.add(before.loss, loss))


def followed(before: Comparison, losses: jax.Array, loss: jax.Array) -> Comparison:
    """The comparisons after each of many rounds, as `after` one by one.

    Args:
        before: the comparison before them.
        losses: [rounds, num_experts] float.
        loss: [rounds] float.

    Returns:
        A comparison whose leaves have a leading axis of rounds.
    """

    def step(comparison: Comparison, shown: tuple[jax.Array, jax.Array]) -> tuple[Comparison, Comparison]:
        comparison = after(comparison, *shown)
        return comparison, comparison

    return jax.lax.scan(step, before, (losses, loss))[1]


def metrics(comparison: Comparison, *, is_switching: bool) -> dict[str, jax.Array]:
    """`regret` and `best_loss`; where sequences may switch, `dynamic_regret` and `best_sequence_loss`, too."""
    least = _least(comparison.best)
    fixed, sequence = (jax.tree.map(lambda leaf, r=row: leaf[r], least) for row in (0, -1))
    found = {"regret": _difference(comparison.loss, fixed), "best_loss": fixed.total - fixed.excess}
    if is_switching:
        found["dynamic_regret"] = _difference(comparison.loss, sequence)
        found["best_sequence_loss"] = sequence.total - sequence.excess
    return found


def _least(sums: compensated.Sum) -> compensated.Sum:
    """The smallest of each row's sums."""
    # What rounding left out counts: the sums are large, and their differences are small.
    base = jnp.min(sums.total, axis=-1)
    above = jnp.min((sums.total - base[..., None]) - sums.excess, axis=-1)
    return compensated.Sum(base, -above)


def _difference(left: compensated.Sum, right: compensated.Sum) -> jax.Array:
    return (left.total - right.total) - (left.excess - right.excess)
