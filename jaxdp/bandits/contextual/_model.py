"""A linear model with its confidence ellipsoid, and when it is solved for anew."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.contextual._contexts import LANES_LAST, products
from jaxdp.numerics.kernels import across_lanes, any_lane, lanes_fast, own_kernel
from jaxdp.numerics.packed_factor import factored, lengths, log_det, lower_factor
from jaxdp.numerics.small_linear_algebra import triangle
from jaxdp.random import ties
from jaxdp.random.own_words import own_word
from jaxdp.validation import check_count


class Model(NamedTuple):
    """What actions follow from.

    Attributes:
        theta: [dim] float, the estimate V^-1 u, the centre of the ellipsoid.
        factor: [dim (dim + 1) / 2] float, the columns of the lower Cholesky factor of V from the diagonal down, one
            after the other; it gives the ellipsoid its shape.
        width: [] float, the ellipsoid's radius beta in the norm of V.
        solved: [] integer, the round after which the model was solved for; 0 before the first time.
    """

    theta: jax.Array
    factor: jax.Array
    width: jax.Array
    solved: jax.Array

    @property
    def lower(self) -> jax.Array:
        """[dim, dim] float, the lower Cholesky factor of V."""
        return lower_factor(self.factor, len(self.theta))


def upper_bounds(model: Model, context: jax.Array) -> jax.Array:
    """The largest x . t over the ellipsoid for each context x: x . theta + beta |x|_V^-1.

    Args:
        model: the ellipsoid.
        context: [num_arms, dim] float.

    Returns:
        [num_arms] float.
    """
    context = jnp.asarray(context, model.theta.dtype)
    return products(context, model.theta) + model.width * lengths(model.factor, context)


def best_arm(key: jax.Array, model: Model, context: jax.Array) -> jax.Array:
    """Returns the arm, [] int32, whose upper bound is the largest; of equal ones a random one. NaN counts as infinity.

    Args:
        key: that nothing else uses.
        model: the ellipsoid.
        context: [num_arms, dim] float.
    """
    word = own_word(key)
    if len(context) > LANES_LAST:
        return ties.largest(_without_nan(upper_bounds(model, context)), ties.ranks(word, len(context)))
    context = jnp.asarray(context, model.theta.dtype)
    parts = products(context, model.theta), model.width, lengths(model.factor, context)
    first, last = across_lanes(lambda parts: own_kernel(_ends_of_largest, *parts))(parts)
    is_tied = first != last  # in few rounds: ranks cost more than what is compared

    def broken() -> jax.Array:
        return jnp.where(is_tied, across_lanes(lambda parts: own_kernel(_largest, *parts))((word, *parts)), first)

    return jax.lax.cond(any_lane(is_tied), broken, lambda: first)


def _ends_of_largest(means: jax.Array, width: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the first and the last of the arms with the largest bound, of [num_arms, lanes] or [lanes]: [lanes].

    XLA on CPU does not vectorise an argmax over lanes.
    """
    best, first = _without_nan(means[0] + width * lengths[0]), jnp.zeros(width.shape, jnp.int32)
    last = first
    for arm in range(1, len(means)):
        bound = _without_nan(means[arm] + width * lengths[arm])
        first, last = jnp.where(bound > best, jnp.int32(arm), first), jnp.where(bound >= best, jnp.int32(arm), last)
        best = jnp.maximum(best, bound)
    return first, last


def _largest(word: jax.Array, means: jax.Array, width: jax.Array, lengths: jax.Array) -> jax.Array:
    """As `_ends_of_largest`: the arm that `ties.ranks` of the word takes."""
    best, rank, place = (
        _without_nan(means[0] + width * lengths[0]),
        ties.rank(word, 0),
        jnp.zeros_like(width, jnp.int32),
    )
    for arm in range(1, len(means)):
        bound, its_rank = _without_nan(means[arm] + width * lengths[arm]), ties.rank(word, arm)
        is_better = (bound > best) | ((bound == best) & (its_rank > rank))
        best, rank = jnp.where(is_better, bound, best), jnp.where(is_better, its_rank, rank)
        place = jnp.where(is_better, jnp.int32(arm), place)
    return place


def _without_nan(bounds: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(bounds), jnp.inf, bounds)


LONGEST = 64  # rounds of a block: the noise of a sum is a small part of its time then
SolveFn = Callable[[Model, jax.Array, Callable[[], Model]], Model]


def initial_model(theta: jax.Array, shift: jax.Array, width: jax.Array, round_: jax.Array) -> Model:
    """The model before the first report: V is the shift, [] float, times the identity."""
    dim = len(theta)
    return Model(theta, jnp.sqrt(shift) * triangle(np.eye(dim, dtype=theta.dtype)), width, round_)


def lay_out_sums(sums: Any) -> Any:
    """Sums of reports, a pytree of vectors, laid out for XLA on CPU as `solve_model` reads them."""
    return jax.tree.map(lanes_fast, sums)


def solve_model(outer: jax.Array, cross: jax.Array, shift: jax.Array, width: jax.Array, round_: jax.Array) -> Model:
    """The model of V, which is a symmetric matrix and a shift times the identity, and of u.

    Args:
        outer: [dim (dim + 1) / 2] float, the matrix's entries, as `triangle` gives them.
        cross: [dim] float, u.
        shift: [] float.
        width: [] float, the ellipsoid's radius.
        round_: [] integer, now.
    """
    eye = triangle(np.eye(len(cross), dtype=outer.dtype))
    factor, theta = factored(lanes_fast(outer + shift * eye), lanes_fast(cross))
    return Model(theta, factor, width, round_)


def model_updater(update_every: int | float | str) -> SolveFn:
    """How a model is kept, or solved for anew, after a round.

    Args:
        update_every: a number of rounds L, >= 1: when so many have gone by; a share g in (0, 1): when the number of
            rounds has grown by about it, from t to t + max(1, floor(t / ceil(1 / g))), (1 + g) t at most but for single
            rounds; or "doubling": when the determinant of V has doubled.

    Returns:
        (model, round, solve) -> Model, where round is the number of rounds played ([] integer), and solve() the model
        now. The old model is returned where it is not time for a new one, and where V has no factor. Under `jax.vmap`
        nothing is solved for until it is time in some lane; with "doubling" it is in every round, to see det V.

    Raises:
        ValueError: if update_every is none of these.
    """
    due_at = next_solve(update_every)
    if due_at is None:
        return _update_on_doubling

    def scheduled(model: Model, round_: jax.Array, solve: Callable[[], Model]) -> Model:
        due = round_ >= due_at(model.solved)
        return jax.lax.cond(any_lane(due), lambda: _replace_if_due(due, solve(), model), lambda: model)

    return scheduled


def next_solve(update_every: int | float | str) -> Callable[[jax.Array], jax.Array] | None:
    """After which round a model is solved for next, by the round after which it was solved for last; both [] integer.

    Args:
        update_every: as for `model_updater`.

    Returns:
        A function, or None where the next round depends on the reports.

    Raises:
        ValueError: as `model_updater`.
    """
    if update_every == "doubling":
        return None
    every = _every(update_every)
    if isinstance(every, int):
        return lambda solved: solved + every
    rounds = _rounds_of(every)
    return lambda solved: solved + jnp.maximum(solved // rounds, 1)


def longest_block(update_every: int | float | str, horizon: int) -> int:
    """The most rounds that may be played as one, between two solutions.

    Args:
        update_every: as for `model_updater`.
        horizon: rounds in all.

    Returns:
        A number of rounds; 1 where a model is solved for after every round, or at rounds that depend on the reports.

    Raises:
        ValueError: as `model_updater`.
    """
    if update_every == "doubling":
        return 1
    every = _every(update_every)
    between = every if isinstance(every, int) else max(horizon // _rounds_of(every), 1)
    return min(between, LONGEST, horizon)


def _every(update_every: int | float | str) -> int | float:
    every: int | float
    largest = int(jnp.iinfo(jnp.result_type(int)).max)
    if isinstance(update_every, float) and 0 < update_every < 1:
        every, rounds = update_every, math.ceil(1 / max(update_every, 1e-300))
    elif isinstance(update_every, int) and update_every > largest:
        every = rounds = update_every
    elif isinstance(update_every, str) or not _is_count(update_every):
        raise ValueError(
            f"update_every must be a whole number of rounds >= 1, a share in (0, 1) or 'doubling', got {update_every!r}"
        )
    else:
        every = rounds = check_count("update_every", update_every)
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


def _replace_if_due(due: jax.Array, new: Model, model: Model) -> Model:
    is_new = due & (new.factor[-1] > 0)  # what has no factor has NaN there
    return jax.tree.map(lambda new, old: lanes_fast(jnp.where(is_new, new, old)), new, model)


def _update_on_doubling(model: Model, round_: jax.Array, solve: Callable[[], Model]) -> Model:
    del round_
    new, dim = solve(), len(model.theta)
    due = (model.solved == 0) | (log_det(new.factor, dim) >= log_det(model.factor, dim) + math.log(2))
    return _replace_if_due(due, new, model)
