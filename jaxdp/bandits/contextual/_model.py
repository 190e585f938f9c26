"""A linear model with its confidence ellipsoid, and rules that decide when the model is recomputed."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.contextual._contexts import LANES_LAST, products
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import across_lanes, any_lane, lanes_fast, own_kernel, separate_kernels
from jaxdp.numerics.packed_factor import factor_and_solve, inverse_norms, log_det, lower_factor
from jaxdp.numerics.small_linear_algebra import triangle
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_count


class Model(NamedTuple):
    """A linear model with its confidence ellipsoid, which determine the actions.

    Attributes:
        theta: [dim] float, the estimate V^-1 u, the centre of the ellipsoid.
        factor: [dim (dim + 1) / 2] float, the lower Cholesky factor of V, which determines the ellipsoid's shape. The
            columns are stored one after another, each from the diagonal down.
        width: [] float, the ellipsoid's radius beta in the norm of V.
        solved: [] integer, the number of rounds after which the model was computed; 0 before the first computation.
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
    """Returns each arm's x^T theta + beta |x|_V^-1 ([num_arms]), the maximum of x^T t over t in the ellipsoid."""
    context = jnp.asarray(context, model.theta.dtype)
    return products(context, model.theta) + model.width * inverse_norms(model.factor, context)


def best_arm(key: jax.Array, model: Model, context: jax.Array) -> jax.Array:
    """Returns the arm with the largest upper bound, [] int32; ties are broken at random, and NaN counts as infinity.

    Args:
        key: a PRNG key that must not be used elsewhere.
        model: the ellipsoid.
        context: [num_arms, dim] float.
    """
    word = own_word(key)
    if len(context) > LANES_LAST:
        return ties.largest(_without_nan(upper_bounds(model, context)), ties.ranks(word, len(context)))
    context = jnp.asarray(context, model.theta.dtype)
    parts = products(context, model.theta), model.width, inverse_norms(model.factor, context)
    ends = across_lanes(lambda parts: own_kernel(ends_of_largest, *parts))(parts)
    first = ends % LANES_LAST
    is_tied = first != ends // LANES_LAST  # rarely true; ranks cost more than the comparison

    def break_ties() -> jax.Array:
        return jnp.where(is_tied, across_lanes(lambda parts: own_kernel(_largest, *parts))((word, *parts)), first)

    return jax.lax.cond(any_lane(is_tied), break_ties, lambda: first)


def ends_of_largest(means: jax.Array, width: jax.Array, lengths: jax.Array) -> jax.Array:
    """Returns the first and the last arm with the largest bound means + width * lengths, encoded in one number.

    The last axis of each input is the batch axis. The result is the first arm plus LANES_LAST times the last arm,
    [lanes] int32.
    """
    # XLA on CPU does not vectorise an argmax over lanes, and would compute two results in two kernels.
    best, first = _without_nan(means[0] + width * lengths[0]), jnp.zeros(width.shape, jnp.int32)
    last = first
    for arm in range(1, len(means)):
        bound = _without_nan(means[arm] + width * lengths[arm])
        first, last = jnp.where(bound > best, jnp.int32(arm), first), jnp.where(bound >= best, jnp.int32(arm), last)
        best = jnp.maximum(best, bound)
    return first + LANES_LAST * last


def _largest(word: jax.Array, means: jax.Array, width: jax.Array, lengths: jax.Array) -> jax.Array:
    """Returns the arm with the largest bound means + width * lengths, [lanes] int32; inputs have the batch axis last.

    Ties are broken by `ties.rank` of the random word, [lanes] uint32.
    """
    best, rank, arm_index = (
        _without_nan(means[0] + width * lengths[0]),
        ties.rank(word, 0),
        jnp.zeros_like(width, jnp.int32),
    )
    for arm in range(1, len(means)):
        bound, arm_rank = _without_nan(means[arm] + width * lengths[arm]), ties.rank(word, arm)
        is_better = (bound > best) | ((bound == best) & (arm_rank > rank))
        best, rank = jnp.where(is_better, bound, best), jnp.where(is_better, arm_rank, rank)
        arm_index = jnp.where(is_better, jnp.int32(arm), arm_index)
    return arm_index


def _without_nan(bounds: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(bounds), jnp.inf, bounds)


SolveFn = Callable[[Model, jax.Array, Callable[[], Model]], Model]


def initial_model(theta: jax.Array, shift: jax.Array, width: jax.Array, round_: jax.Array) -> Model:
    """Returns the model before the first report; its V is the shift ([] float) times the identity.

    `theta` is [dim] float; `width`, the ellipsoid's radius, and `round_` are [].
    """
    dim = len(theta)
    return Model(theta, jnp.sqrt(shift) * triangle(np.eye(dim, dtype=theta.dtype)), width, round_)


def add_reports(sums: Any, reports: Any) -> Any:
    """Adds reports to their sums, in the memory layout that `solve_model` uses on CPU.

    `sums` is a tuple of `compensated.Sum` of vectors, and `reports` a tuple of vectors.
    """

    def add(sums: Any, reports: Any) -> Any:
        return tuple(compensated.add(running, report) for running, report in zip(sums, reports, strict=True))

    return separate_kernels(add, sums, reports, layout=lanes_fast)


def solve_model(outer: jax.Array, cross: jax.Array, shift: jax.Array, width: jax.Array, round_: jax.Array) -> Model:
    """Computes the model V^-1 u with its ellipsoid, where V is a symmetric matrix plus a shift times the identity.

    Args:
        outer: [dim (dim + 1) / 2] float, the entries of the symmetric matrix, in the order of `triangle`.
        cross: [dim] float, u.
        shift: [] float.
        width: [] float, the ellipsoid's radius.
        round_: [] integer, rounds played.
    """
    eye = triangle(np.eye(len(cross), dtype=outer.dtype))
    factor, theta = factor_and_solve(lanes_fast(outer + shift * eye), lanes_fast(cross))
    return Model(theta, factor, width, round_)


def model_updater(update_every: int | float | str) -> SolveFn:
    """Returns a function that is called after each round, and either keeps or recomputes the model.

    Args:
        update_every: the rule by which a model that was computed after t rounds is replaced. An integer n >= 1: after n
            more rounds. A fraction g in (0, 1): after max(1, floor(t / ceil(1 / g))) more rounds, which is about g t if
            g is small or 1 / g is an integer. "doubling": when the determinant of V has doubled; if t = 0, at once.

    Returns:
        (model, round, solve) -> Model, where round is the number of rounds played ([] integer), and solve() computes a
        new model. If no new model is due, or V has no Cholesky factor, the result is the old model. Under `jax.vmap`,
        models are computed only in rounds in which some lane needs a new model. With "doubling", models are computed in
        every round, because det V is needed.

    Raises:
        ValueError: if update_every is none of these, or if n or 1 / g exceeds 2^31 - 1 (2^63 - 1 in 64-bit mode).
    """
    if update_every == "doubling":
        return _update_on_doubling
    every = _every(update_every)
    rounds = None if isinstance(every, int) else math.ceil(1 / every - 1e-9)  # 1 / every may be rounded up

    def update_on_schedule(model: Model, round_: jax.Array, solve: Callable[[], Model]) -> Model:
        due = round_ >= model.solved + (every if rounds is None else jnp.maximum(model.solved // rounds, 1))
        return jax.lax.cond(any_lane(due), lambda: _replace_if_due(due, solve(), model), lambda: model)

    return update_on_schedule


def _every(update_every: int | float | str) -> int | float:
    interval: int | float
    largest = int(jnp.iinfo(jnp.result_type(int)).max)
    if isinstance(update_every, float) and 0 < update_every < 1:
        interval, rounds = update_every, math.ceil(1 / max(update_every, 1e-300))
    elif isinstance(update_every, int) and update_every > largest:
        interval = rounds = update_every
    elif isinstance(update_every, str) or not _is_count(update_every):
        raise ValueError(
            "update_every must be an integer number of rounds >= 1, a share in (0, 1) or 'doubling', got "
            f"{update_every!r}"
        )
    else:
        interval = rounds = check_count("update_every", update_every)
    if rounds > largest:
        raise ValueError(
            f"update_every must be at most {largest} rounds, or a share of at least 1 / {largest}, got {interval}"
        )
    return interval


def _is_count(value: object) -> bool:
    try:
        check_count("update_every", value)
    except ValueError:
        return False
    return True


def _replace_if_due(due: jax.Array, next_model: Model, model: Model) -> Model:
    is_new = due & (next_model.factor[-1] > 0)  # never > 0 if V has no factor
    return jax.tree.map(
        lambda replacement, present: lanes_fast(jnp.where(is_new, replacement, present)), next_model, model
    )


def _update_on_doubling(model: Model, round_: jax.Array, solve: Callable[[], Model]) -> Model:
    del round_
    next_model, dim = solve(), len(model.theta)
    due = (model.solved == 0) | (log_det(next_model.factor, dim) >= log_det(model.factor, dim) + math.log(2))
    return _replace_if_due(due, next_model, model)
