"""Sums the losses of several rounds in kernels for XLA on CPU."""

import functools
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_fast, own_kernel

MOST = 32  # maximum number of rounds that are added one by one; otherwise rounds are added in groups of 16


def sum_rounds(losses: jax.Array, planned: jax.Array) -> jax.Array:
    """Returns the sum of integer losses over the planned rounds, [num_experts] integer.

    Args:
        losses: [rounds, num_experts] integer, the losses of at most 2^10 rounds as multiples of a unit such as 2^-20.
        planned: [rounds] bool, whether each round is included in the sum.
    """
    if losses.shape[1] > MAX_UNROLLED:
        return own_kernel(lambda *inputs: _planned_losses(*inputs).sum(axis=0, dtype=losses.dtype), losses, planned)
    # The `jax.vmap` batch axis is the fast axis. Rounds are added one by one, because XLA would store the planned
    # losses of all rounds otherwise.
    if len(losses) <= MOST:
        return _kernel(_sum_each, losses, planned)
    remainder = len(losses) % MAX_UNROLLED
    end = len(losses) - remainder

    def add_groups(losses: jax.Array, planned: jax.Array) -> jax.Array:
        groups = (slice(start, start + MAX_UNROLLED) for start in range(0, end, MAX_UNROLLED))
        return _sum(_planned_losses(losses[group], planned[group]) for group in groups)

    def add_remainder(sums: jax.Array, losses: jax.Array, planned: jax.Array) -> jax.Array:
        return _sum(sums) + _sum_each(losses[end:], planned[end:])

    sums = _kernel(add_groups, losses, planned)
    return _kernel(add_remainder, sums, losses, planned) if remainder else _kernel(_sum, sums)


def _sum_each(losses: jax.Array, planned: jax.Array) -> jax.Array:
    return _sum(_planned_losses(*pair) for pair in zip(losses, planned, strict=True))


def _planned_losses(losses: jax.Array, planned: jax.Array) -> jax.Array:
    return jnp.where(planned[..., None], losses, 0)


def _sum(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(jnp.add, terms)


def _kernel(function: Callable[..., jax.Array], *inputs: jax.Array) -> jax.Array:
    """Calls function(*inputs) in a separate kernel, with the batch axis as the fast axis."""

    def inside(*inputs: jax.Array) -> jax.Array:
        return lanes_fast(function(*map(lanes_fast, inputs)))

    return lanes_fast(own_kernel(inside, *map(lanes_fast, inputs)))
