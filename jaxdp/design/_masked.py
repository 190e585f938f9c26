"""Computes the design of `g_optimal_differences` for the active arms, inside a compiled program."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.design._coordinates import tolerance
from jaxdp.validation import check_count, check_positive

STEPS = 32  # number of steps on the current pairs between two examinations of all pairs
SHARE = 0.25  # the design on the current pairs is improved until its gap is this fraction of the requested gap

_product = partial(jnp.matmul, precision="highest")


class MaskedDesign(NamedTuple):
    """A design on pairs of arms, in a fixed number of slots.

    Attributes:
        pairs: [num_slots, 2] int32, the pair of each slot: active arms i > j if the slot's weight is > 0, otherwise
            arbitrary arms.
        weights: [num_slots] float >= 0 with sum 1 (all 0 if no two active arms differ, or an active arm is NaN).
        value: [] float, max |z|^2_{V(weights)^-1} over all differences z of two active arms. The design has the
            requested gap if value <= rank (1 + gap). The value is 0 if no two active arms differ, and NaN if an active
            arm is not finite.
        rank: [] int32, the dimension of the span of the differences of active arms; 0 if an active arm is NaN.
    """

    pairs: jax.Array
    weights: jax.Array
    value: jax.Array
    rank: jax.Array


class _Slots(NamedTuple):
    """A design on some pairs of arms, with the values that a step of the search needs.

    Attributes:
        pairs: [num_slots, 2] int32.
        vectors: [num_slots, dim], the differences of the pairs in coordinates of the span.
        weights: [num_slots].
        inverse: [dim, dim], the inverse of V(weights), extended by a positive multiple of the identity beyond the rank.
        lengths: [num_slots], |z|^2_{V^-1} of each vector.
    """

    pairs: jax.Array
    vectors: jax.Array
    weights: jax.Array
    inverse: jax.Array
    lengths: jax.Array


class _Look(NamedTuple):
    """A design that was examined, with the longest differences among all pairs of active arms.

    Attributes:
        slots: the design.
        value: [], the largest |x_i - x_j|^2_{V^-1}.
        farthest: [num_arms], for each active arm i the largest |x_i - x_j|^2_{V^-1} over active arms j < i; 0 if there
            is no such j, and for other arms.
        steps: [] int32, number of steps so far, including steps of length 0.
    """

    slots: _Slots
    value: jax.Array
    farthest: jax.Array
    steps: jax.Array


def default_slots(num_arms: int, dim: int) -> int:
    """Returns the default number of slots: d (d + 1) / 2 for the pairs of an optimal design, plus d for new pairs.

    Here d = min(dim, num_arms - 1).
    """
    most = min(dim, num_arms - 1)
    return most * (most + 1) // 2 + most


def masked_difference_design(
    arms: jax.Array, active: jax.Array, *, num_slots: int | None = None, max_steps: int = 4096, gap: float = 0.1
) -> MaskedDesign:
    """Finds a G-optimal design for the differences of active arms, for one lane of a compiled program.

    The function uses the algorithm of `g_optimal_differences`, with static shapes. Each step moves weight towards a
    pair or away from a pair. Points are in coordinates of the span of the differences, which may lose dimensions as
    arms are eliminated.

    Args:
        arms: [num_arms, dim] float32 or float64, at least two arms.
        active: [num_arms] bool. Only differences of two active arms are points of the design and are used in `value`.
        num_slots: number of slots, at least d = min(dim, num_arms - 1). The default, d (d + 1) / 2 + d, is enough for
            every gap above rounding errors. With fewer slots the gap may not be reached.
        max_steps: maximum number of steps, rounded up to a multiple of 32.
        gap: requested gap, > 0. The loop ends when value <= rank (1 + gap), or after max_steps steps. In float32 a gap
            below 1e-2 can hardly be reached.

    Returns:
        A `MaskedDesign`. Compare its value with rank (1 + gap) to see whether the gap was reached. The rank is defined
        as in `g_optimal`, with the machine epsilon of the arms' dtype.

    Raises:
        ValueError: if shapes do not match, there are fewer than two arms, or num_slots, max_steps or gap are out of
            range.

    Source:
        Fedorov (1972) and Wynn (1970); see `g_optimal`.

    Deviations:
        The same as for `g_optimal`, except that the support is not reduced at the end, and has at most num_slots pairs.
        If all slots have positive weights, the slot with the smallest weights_k |z_k|^2_{V^-1} is emptied for a new
        pair.
    """
    slots, batches = _check_sizes(arms, active, num_slots, max_steps, gap)
    coordinates, start, rank = _coordinates(arms, active)
    size = rank.astype(arms.dtype)
    pairs = jnp.zeros((slots, 2), jnp.int32).at[: len(start)].set(start)
    uniform = jnp.where(_indices(slots) < rank, 1 / jnp.maximum(size, 1), 0)

    def improve(look: _Look) -> _Look:
        extended = _add_pairs(look, coordinates, active, size * (1 + SHARE * gap))
        improved_slots = jax.lax.fori_loop(0, STEPS, lambda _, slots: _take_step(slots, size, SHARE * gap), extended)
        return _examine(improved_slots.pairs, improved_slots.weights, coordinates, active, rank, look.steps + STEPS)

    def is_unsolved(look: _Look) -> jax.Array:
        return (look.value > size * (1 + gap)) & (look.steps < STEPS * batches)

    end = jax.lax.while_loop(is_unsolved, improve, _examine(pairs, uniform, coordinates, active, rank, jnp.int32(0)))
    finite = jnp.all(jnp.isfinite(arms) | ~active[:, None])
    return MaskedDesign(end.slots.pairs, end.slots.weights, jnp.where(finite, end.value, jnp.nan), rank)


def _examine(pairs, weights, coordinates, active, rank, steps) -> _Look:
    """Computes V^-1 from the weights, and finds the largest |x_i - x_j|^2_{V^-1} over pairs of active arms.

    Computing V^-1 from the weights removes the rounding errors that the steps accumulated.
    """
    weights = weights / jnp.maximum(jnp.sum(weights), jnp.finfo(weights.dtype).tiny)
    vectors = coordinates[pairs[:, 0]] - coordinates[pairs[:, 1]]
    beyond_rank = jnp.diag((_indices(vectors.shape[1]) >= rank).astype(weights.dtype))
    inverse = _inverse(_product((vectors * weights[:, None]).T, vectors) + beyond_rank)
    times_inverse = _product(coordinates, inverse)
    lengths = jnp.sum(times_inverse * coordinates, axis=1)
    squares = lengths[:, None] + lengths[None, :] - 2 * _product(times_inverse, coordinates.T)
    counts = jnp.tril(active[:, None] & active[None, :], -1)
    farthest = jnp.max(jnp.where(counts, squares, 0), axis=1)
    slots = _Slots(pairs, vectors, weights, inverse, _lengths(vectors, inverse))
    return _Look(slots, jnp.max(farthest), farthest, steps)


def _add_pairs(look: _Look, coordinates: jax.Array, active: jax.Array, bound: jax.Array) -> _Slots:
    """Puts the farthest pairs with |x_i - x_j|^2_{V^-1} above `bound` into slots without weight.

    At most min(dim, num_arms - 1) pairs that are in no slot yet are added. Each pair consists of an arm and of the
    active arm with a smaller index that is farthest from it.
    """
    slots, num_arms = _make_room(look.slots), len(coordinates)
    count = min(num_arms - 1, coordinates.shape[1])
    lengths, best = jax.lax.top_k(look.farthest, count)
    best = best.astype(jnp.int32)
    times_inverse = _product(coordinates, slots.inverse)
    # The term |x_i|^2_{V^-1} of the arm itself is left out, because it is the same for all partners.
    squares = jnp.sum(times_inverse * coordinates, axis=1)[None, :] - 2 * _product(coordinates[best], times_inverse.T)
    before = (_indices(num_arms)[None, :] < best[:, None]) & active[None, :]
    partners = jnp.argmax(jnp.where(before, squares, -jnp.inf), axis=1)
    new_pairs = jnp.stack([best, partners.astype(jnp.int32)], axis=1)
    is_present = jnp.any(jnp.all(new_pairs[:, None, :] == slots.pairs[None, :, :], axis=2), axis=1)
    _, free = jax.lax.top_k(-slots.weights, count)
    fits = ~is_present & (lengths > bound) & (slots.weights[free] == 0)
    pairs = slots.pairs.at[free].set(jnp.where(fits[:, None], new_pairs, slots.pairs[free]))
    vectors = coordinates[pairs[:, 0]] - coordinates[pairs[:, 1]]
    return slots._replace(pairs=pairs, vectors=vectors, lengths=_lengths(vectors, slots.inverse))


def _make_room(slots: _Slots) -> _Slots:
    """Sets the weight of the slot with the smallest weights_k |z_k|^2_{V^-1} to 0 if all weights are positive."""
    # The sum of weights_k |z_k|^2 is the rank, so the smallest term is at most rank / num_slots.
    least = jnp.argmin(jnp.where(slots.weights > 0, slots.weights * slots.lengths, -1))
    return _move(slots, least, _emptying_step(slots.weights[least]))


def _take_step(slots: _Slots, size: jax.Array, gap: float) -> _Slots:
    """Takes a step towards the longest vector, or away from the shortest vector with positive weight.

    `size` is the rank. The step is 0 if no length exceeds (1 + gap) size.
    """
    far = jnp.argmax(slots.lengths)
    near = jnp.argmin(jnp.where(slots.weights > 0, slots.lengths, jnp.inf))
    towards = slots.lengths[far] - size >= size - slots.lengths[near]
    z = jnp.where(towards, far, near)
    length, largest_step = slots.lengths[z], _emptying_step(slots.weights[z])
    best = (length / size - 1) / (length - 1)  # maximizes ln det V
    away = jnp.where(length > 1, jnp.maximum(largest_step, best), largest_step)
    a = jnp.where(towards, jnp.minimum(0.5, best), away)
    return _move(slots, z, jnp.where(slots.lengths[far] <= size * (1 + gap), 0, a))


def _emptying_step(weight: jax.Array) -> jax.Array:
    """Returns the step a <= 0 away from a vector that reduces its weight to 0; a is 0 if the weight is 0."""
    return -weight / jnp.maximum(1 - weight, jnp.finfo(weight.dtype).eps)


def _move(slots: _Slots, z: jax.Array, a: jax.Array) -> _Slots:
    """Sets weights <- (1 - a) weights + a e_z for the slot z, and updates V^-1 and lengths by a rank-one formula."""
    times_inverse = jnp.sum(slots.inverse * slots.vectors[z][None, :], axis=1)
    shrink = a / (1 - a + a * slots.lengths[z])
    inverse = (slots.inverse - shrink * times_inverse[:, None] * times_inverse[None, :]) / (1 - a)
    lengths = (slots.lengths - shrink * jnp.sum(slots.vectors * times_inverse[None, :], axis=1) ** 2) / (1 - a)
    at_z = jnp.where(a <= _emptying_step(slots.weights[z]), 0, slots.weights[z] * (1 - a) + a)
    weights = jnp.where(_indices(len(slots.weights)) == z.astype(jnp.int32), at_z, slots.weights * (1 - a))
    return slots._replace(weights=weights, inverse=inverse, lengths=lengths)


def _lengths(vectors: jax.Array, inverse: jax.Array) -> jax.Array:
    return jnp.sum(_product(vectors, inverse) * vectors, axis=1)


def _inverse(matrix: jax.Array) -> jax.Array:
    """Inverts a positive definite matrix by Gauss-Jordan steps, which need no pivoting."""
    indices = _indices(len(matrix))

    def step(k: jax.Array, left: jax.Array) -> jax.Array:
        is_pivot = indices == jnp.asarray(k, jnp.int32)
        row = jnp.where(is_pivot, 1, left[k]) / left[k, k]
        column = jnp.where(is_pivot, 0, left[:, k])
        eliminated = jnp.where(is_pivot[None, :], 0, left) - column[:, None] * row[None, :]
        return jnp.where(is_pivot[:, None], row[None, :], eliminated)

    return jax.lax.fori_loop(0, len(matrix), step, matrix)


def _indices(length: int) -> jax.Array:
    return jnp.arange(length, dtype=jnp.int32)


def _coordinates(arms: jax.Array, active: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Computes coordinates of the active arms in the span of their differences; sets other arms' coordinates to 0.

    Returns:
        Coordinates [num_arms, dim], with zeros in columns beyond the rank; pairs [min(dim, num_arms - 1), 2] int32, the
        first `rank` with linearly independent differences and the others (0, 0); and the rank, [] int32.
    """
    num_arms, dim = arms.shape
    # Differences of huge arms may overflow, and their reciprocals may be subnormal, so huge arms are divided by 16. The
    # factor is not a constant: XLA would subtract first, and divide the differences.
    is_huge = jnp.max(jnp.abs(arms)) > float(jnp.finfo(arms.dtype).max) / 16
    small = arms * jnp.where(is_huge, 1 / 16, 1).astype(arms.dtype)
    differences = jnp.where(active[:, None], small - small[jnp.argmax(active)][None], 0)
    largest = jnp.max(jnp.abs(differences), axis=0)
    differences = differences / jnp.where(largest > 0, largest, 1)[None]
    limit = tolerance(dim, arms.dtype) ** 2 * jnp.max(jnp.sum(differences * differences, axis=1))

    def step(residuals: jax.Array, _: None):
        squares = jnp.sum(residuals * residuals, axis=1)
        longest = jnp.argmax(squares)
        counts = squares[longest] > limit
        along = jnp.sum(residuals * residuals[longest][None, :], axis=1)
        high = jnp.argmax(jnp.where(active, along, -jnp.inf)).astype(jnp.int32)
        low = jnp.argmin(jnp.where(active, along, jnp.inf)).astype(jnp.int32)
        direction = residuals[high] - residuals[low]
        multiples = jnp.sum(residuals * direction[None, :], axis=1) / jnp.where(counts, jnp.sum(direction**2), 1)
        multiples = jnp.where(counts, multiples, 0)
        # Beyond the rank the pair is arm 0 with itself, so that a pair that is added later occupies only one slot.
        pair = jnp.where(counts, jnp.stack([jnp.maximum(high, low), jnp.minimum(high, low)]), 0)
        return residuals - multiples[:, None] * direction[None, :], (multiples, pair, counts)

    _, (columns, pairs, counts) = jax.lax.scan(step, differences, None, length=min(dim, num_arms - 1))
    coordinates = jnp.zeros_like(arms).at[:, : len(columns)].set(columns.T)
    return coordinates, pairs, jnp.sum(counts, dtype=jnp.int32)


def _check_sizes(
    arms: jax.Array, active: jax.Array, num_slots: int | None, max_steps: int, gap: float
) -> tuple[int, int]:
    """Checks the arguments, and returns (number of slots, maximum number of batches of `STEPS` steps)."""
    if arms.ndim != 2 or len(arms) < 2 or arms.shape[1] == 0 or active.shape != arms.shape[:1]:
        raise ValueError(
            "arms must be [num_arms, dim] with at least two arms and active [num_arms], "
            f"got the shapes {arms.shape} and {active.shape}"
        )
    check_positive("gap", gap)
    least = min(arms.shape[1], len(arms) - 1)
    slots = default_slots(*arms.shape) if num_slots is None else check_count("num_slots", num_slots, least)
    return slots, -(-check_count("max_steps", max_steps) // STEPS)
