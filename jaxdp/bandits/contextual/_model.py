"""A linear model with its confidence ellipsoid, and when it is solved for anew."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import any_lane
from jaxdp.numerics.small_linear_algebra import log_det, solve_lower
from jaxdp.validation import check_count


class Model(NamedTuple):
    """What actions follow from.

    Attributes:
        theta: [dim] float, the estimate V^-1 u, the centre of the ellipsoid.
        lower: [dim, dim] float, the lower Cholesky factor of V, which gives the ellipsoid its shape.
        width: [] float, the ellipsoid's radius beta in the norm of V.
        solved: [] integer, the round after which the model was solved for; 0 before the first time.
    """

    theta: jax.Array
    lower: jax.Array
    width: jax.Array
    solved: jax.Array


def upper_bounds(model: Model, context: jax.Array) -> jax.Array:
    """The largest x . t over the ellipsoid for each context x: x . theta + beta |x|_V^-1.

    Args:
        model: the ellipsoid.
        context: [num_arms, dim] float.

    Returns:
        [num_arms] float.
    """
    lengths = jnp.sqrt(jnp.sum(solve_lower(model.lower, context.T) ** 2, axis=0))
    return context @ model.theta + model.width * lengths


LENGTHS = (1, 4, 16, 64)  # of blocks, in rounds
SolveFn = Callable[[Model, jax.Array, Callable[[], jax.Array], Callable[[jax.Array], Model]], Model]


def solving(update_every: int | float | str) -> SolveFn:
    """How a model is kept, or solved for anew, after a round.

    Args:
        update_every: a number of rounds L, >= 1: when so many have gone by; a share g in (0, 1): when the number of
            rounds has grown by about it, from t to t + max(1, floor(t / ceil(1 / g))), (1 + g) t at most but for single
            rounds; or "doubling": when the determinant of V has doubled.

    Returns:
        (model, round, factor, solve) -> Model, where round is the number of rounds played ([] integer), factor() the
        Cholesky factor of V now, and solve(lower) the model now. The old model is returned where it is not time for a
        new one, and where V has no factor. Under `jax.vmap` nothing is solved for until it is time in some lane.

    Raises:
        ValueError: if update_every is none of these.
    """
    due_at = next_solve(update_every)
    if due_at is None:
        return _doubling

    def scheduled(model: Model, round_: jax.Array, factor, solve) -> Model:
        due = round_ >= due_at(model.solved)
        return jax.lax.cond(any_lane(due), lambda: _kept(due, factor(), solve, model), lambda: model)

    return scheduled


def next_solve(update_every: int | float | str) -> Callable[[jax.Array], jax.Array] | None:
    """After which round a model is solved for next, by the round after which it was solved for last; both [] integer.

    Args:
        update_every: as for `solving`.

    Returns:
        A function, or None where the next round depends on the reports.

    Raises:
        ValueError: as `solving`.
    """
    if update_every == "doubling":
        return None
    every = _every(update_every)
    if isinstance(every, int):
        return lambda solved: solved + every
    rounds = _rounds_of(every)
    return lambda solved: solved + jnp.maximum(solved // rounds, 1)


def block_lengths(update_every: int | float | str, horizon: int) -> tuple[tuple[int, int], ...]:
    """Numbers of rounds that may be played as one, in the order in which they are used.

    Args:
        update_every: as for `solving`.
        horizon: rounds in all.

    Returns:
        Of each its length, and the round after which the model was last solved for when the next one takes over, for
        the last one the horizon. Empty where a model is solved for after every round, or at rounds that depend on the
        reports.

    Raises:
        ValueError: as `solving`.
    """
    if update_every == "doubling":
        return ()
    every = _every(update_every)
    if isinstance(every, int):
        return ((min(every, LENGTHS[-1], horizon), horizon),) if every > 1 else ()
    rounds = _rounds_of(every)
    used = [length for length in LENGTHS if length * rounds <= horizon]
    ends = [length * rounds for length in used[1:]] + [horizon]
    return tuple(zip(used, ends, strict=True)) if len(used) > 1 else ()


def _every(update_every: int | float | str) -> int | float:
    every: int | float
    if isinstance(update_every, float) and 0 < update_every < 1:
        every, rounds = update_every, math.ceil(1 / max(update_every, 1e-300))
    elif isinstance(update_every, str) or not _is_count(update_every):
        raise ValueError(
            f"update_every must be a whole number of rounds >= 1, a share in (0, 1) or 'doubling', got {update_every!r}"
        )
    else:
        every = rounds = check_count("update_every", update_every)
    largest = int(jnp.iinfo(jnp.result_type(int)).max)
    if rounds > largest:
        raise ValueError(
            f"update_every must be at most {largest} rounds, or a share of at least 1 / {largest}, got {every}"
        )
    return every


def _rounds_of(share: float) -> int:
    """The fewest rounds of which one more is such a share, or less."""
    return math.ceil(1 / share - 1e-9)


def _is_count(value: object) -> bool:
    try:
        check_count("update_every", value)
    except ValueError:
        return False
    return True


def _kept(due: jax.Array, lower: jax.Array, solve: Callable[[jax.Array], Model], model: Model) -> Model:
    is_new = due & (lower[-1, -1] > 0)  # what has no factor has NaN there
    return jax.tree.map(lambda new, old: jnp.where(is_new, new, old), solve(lower), model)


def _doubling(model: Model, round_: jax.Array, factor, solve) -> Model:
    del round_
    lower = factor()
    due = (model.solved == 0) | (log_det(lower) >= log_det(model.lower) + math.log(2))
    return jax.lax.cond(any_lane(due), lambda: _kept(due, lower, solve, model), lambda: model)
