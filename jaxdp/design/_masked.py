"""The design of `g_optimal_differences` inside a compiled program, of the arms that are left."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.design._coordinates import tolerance
from jaxdp.numerics import small_linear_algebra as small

STEPS = 32  # on the pairs at hand, before all pairs are looked at again
SHARE = 0.25  # of the gap: up to that the pairs at hand are solved


class MaskedDesign(NamedTuple):
    """Weights on pairs of arms, in slots.

    Attributes:
        pairs: [num_slots, 2] int32; where the weight is 0, any two arms.
        weights: [num_slots] float >= 0, sum 1 (0 where no two active arms differ).
        value: [] float, max |z|^2_{V(weights)^-1} over all differences z of two active arms; it certifies the design if it
            is <= rank (1 + gap). 0 where no two active arms differ.
        rank: [] int32, the dimension of the span of those differences.
    """

    pairs: jax.Array
    weights: jax.Array
    value: jax.Array
    rank: jax.Array


class _Now(NamedTuple):
    steps: jax.Array  # [] int32, those that may have been taken
    pairs: jax.Array  # [num_slots, 2]
    weights: jax.Array  # [num_slots]
    inverse: jax.Array  # [dim, dim], of V
    value: jax.Array  # []
    rows: jax.Array  # [num_arms], for each arm i the largest |x_i - x_j|^2, j < i


def default_slots(num_arms: int, dim: int) -> int:
    """Slots for d (d + 1) / 2 pairs, that many an optimum needs at most, and d that may join; d = min(dim, num_arms - 1)."""
    rank = max(1, min(dim, num_arms - 1))
    return rank * (rank + 1) // 2 + rank


def masked_difference_design(
    arms: jax.Array, active: jax.Array, *, num_slots: int | None = None, max_steps: int = 4096, gap: float = 0.1
) -> MaskedDesign:
    """A G-optimal design on the differences of the active arms, for one lane, at static shapes.

    As `g_optimal_differences` does it: steps of Wynn and Fedorov towards a pair or away from one, from the start of Kumar and
    Yildirim, in coordinates of the differences' span.

    Args:
        arms: [num_arms, dim] float.
        active: [num_arms] bool.
        num_slots: static; at least the rank of all differences.
        max_steps: static; there the loop ends whatever the value is, which the caller compares with rank (1 + gap).
        gap: > 0; in float32 not less than about 1e-3.

    Returns:
        A `MaskedDesign`. If arms are not finite, its value is NaN.
    """
    num_arms, dim = arms.shape
    slots = default_slots(num_arms, dim) if num_slots is None else num_slots
    places, pairs, rank = _coordinates(arms, active)
    size = rank.astype(arms.dtype)
    filled = jnp.arange(slots)
    start = jnp.zeros((slots, 2), jnp.int32).at[: len(pairs)].set(pairs)
    weights = jnp.where(filled < rank, 1 / jnp.maximum(size, 1), 0)
    null = jnp.where(jnp.arange(dim) < rank, 0, 1).astype(arms.dtype)
    joining = min(num_arms - 1, dim)

    def looked(steps: jax.Array, pairs: jax.Array, weights: jax.Array) -> _Now:
        """At all pairs."""
        weights = weights / jnp.maximum(jnp.sum(weights), jnp.finfo(weights.dtype).tiny)
        vectors = places[pairs[:, 0]] - places[pairs[:, 1]]
        lower = small.cholesky((vectors * weights[:, None]).T @ vectors + jnp.diag(null))
        inverse = small.cholesky_solve(lower, jnp.eye(dim, dtype=arms.dtype))
        turned = places @ inverse
        lengths = jnp.sum(turned * places, axis=1)
        squares = lengths[:, None] + lengths[None, :] - 2 * turned @ places.T
        counts = jnp.tril(jnp.ones((num_arms, num_arms), bool), -1) & active[:, None] & active[None, :]
        rows = jnp.max(jnp.where(counts, squares, 0), axis=1)
        return _Now(steps, pairs, weights, inverse, jnp.max(rows), rows)

    def unsolved(now: _Now) -> jax.Array:
        return (now.value > size * (1 + gap)) & (now.steps < max_steps)

    def improved(now: _Now) -> _Now:
        vectors = places[now.pairs[:, 0]] - places[now.pairs[:, 1]]
        lengths = jnp.sum((vectors @ now.inverse) * vectors, axis=1)
        # room for at least one pair
        shares = jnp.where(now.weights > 0, now.weights * lengths, -1)
        least = jnp.argmin(shares)
        away = -now.weights[least] / (1 - now.weights[least])
        weights, inverse, _ = _step(now.weights, now.inverse, lengths, vectors, least, away, away)
        # the farthest pairs, each of another arm
        _, best = jax.lax.top_k(now.rows, joining)
        turned = places[best] @ inverse
        lengths = jnp.sum((places @ inverse) * places, axis=1)
        squares = lengths[None, :] - 2 * turned @ places.T
        other = jnp.arange(num_arms)[None, :] < best[:, None]
        partners = jnp.argmax(jnp.where(other & active[None, :], squares, -jnp.inf), axis=1)
        new = jnp.stack([best, partners], axis=1).astype(jnp.int32)
        known = jnp.any(jnp.all(new[:, None, :] == now.pairs[None, :, :], axis=2), axis=1)
        useful = ~known & (now.rows[best] > size * (1 + SHARE * gap))
        _, free = jax.lax.top_k(-weights, joining)
        fits = useful & (weights[free] == 0)
        pairs = now.pairs.at[free].set(jnp.where(fits[:, None], new, now.pairs[free]))

        vectors = places[pairs[:, 0]] - places[pairs[:, 1]]
        lengths = jnp.sum((vectors @ inverse) * vectors, axis=1)

        def one(_, state):
            weights, inverse, lengths = state
            far = jnp.argmax(lengths)
            near = jnp.argmin(jnp.where(weights > 0, lengths, jnp.inf))
            towards = lengths[far] - size >= size - lengths[near]
            z = jnp.where(towards, far, near)
            length, weight = lengths[z], weights[z]
            best = (length / size - 1) / (length - 1)
            most = -weight / (1 - weight)
            a = jnp.where(towards, jnp.minimum(0.5, best), jnp.where(length > 1, jnp.maximum(most, best), most))
            a = jnp.where(lengths[far] <= size * (1 + SHARE * gap), 0, a)
            return _step(weights, inverse, lengths, vectors, z, a, most)

        weights, inverse, lengths = jax.lax.fori_loop(0, STEPS, one, (weights, inverse, lengths))
        return looked(now.steps + STEPS, pairs, weights)

    end = jax.lax.while_loop(unsolved, improved, looked(jnp.int32(0), start, weights))
    return MaskedDesign(end.pairs, end.weights, end.value, rank)


def _step(weights, inverse, lengths, vectors, z, a, most):
    turned = inverse @ vectors[z]
    shrink = a / (1 - a + a * lengths[z])
    inverse = (inverse - shrink * turned[:, None] * turned[None, :]) / (1 - a)
    lengths = (lengths - shrink * (vectors @ turned) ** 2) / (1 - a)
    at = jnp.arange(len(weights)) == z
    moved = jnp.where(at, jnp.where(a <= most, 0, weights * (1 - a) + a), weights * (1 - a))
    return moved, inverse, lengths


def _coordinates(arms: jax.Array, active: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As `_coordinates.of_differences`: [num_arms, dim], those beyond the rank 0; pairs [min(dim, num_arms - 1), 2]; rank."""
    num_arms, dim = arms.shape
    base = arms[jnp.argmax(active)]
    apart = jnp.where(active[:, None], arms - base[None], 0)
    largest = jnp.max(jnp.abs(apart), axis=0)
    apart = apart / jnp.where(largest > 0, largest, 1)[None]
    limit = tolerance(dim, arms.dtype) ** 2 * jnp.max(jnp.sum(apart * apart, axis=1))

    def step(rest, _):
        lengths = jnp.sum(rest * rest, axis=1)
        longest = jnp.argmax(lengths)
        counts = lengths[longest] > limit
        along = rest @ rest[longest]
        high = jnp.argmax(jnp.where(active, along, -jnp.inf))
        low = jnp.argmin(jnp.where(active, along, jnp.inf))
        direction = rest[high] - rest[low]
        square = jnp.where(counts, jnp.sum(direction * direction), 1)
        multiples = jnp.where(counts, rest @ direction / square, 0)
        pair = jnp.stack([jnp.maximum(high, low), jnp.minimum(high, low)]).astype(jnp.int32)
        return rest - multiples[:, None] * direction[None, :], (multiples, pair, counts)

    most = min(dim, num_arms - 1)
    _, (columns, pairs, counts) = jax.lax.scan(step, apart, None, length=most)
    rank = jnp.sum(jnp.cumprod(counts.astype(jnp.int32))).astype(jnp.int32)
    places = jnp.where(jnp.arange(most)[:, None] < rank, columns, 0).T
    return jnp.pad(places, ((0, 0), (0, dim - most))), pairs, rank
