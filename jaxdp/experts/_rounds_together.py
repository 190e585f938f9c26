"""Losses of several rounds at once, added as round by round, in kernels for XLA on CPU.

Each sum is one kernel, in which rounds are written out one after the other; up to 16 experts lanes of `jax.vmap` are
the fast axis. Results are tested to be those of single rounds bit for bit.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import WRITTEN_OUT, lanes_fast, own_kernel


def added(running: jax.Array, losses: jax.Array, planned: jax.Array) -> jax.Array:
    """The sum after the losses of the planned rounds, one after the other, as floats round.

    Args:
        running: [num_experts] float, before.
        losses: [rounds, num_experts] float.
        planned: [rounds] bool, which rounds count.
    """
    return _in_order(operator.add, lambda running: running, running, planned, losses)


def added_exactly(running: Sum, losses: jax.Array, planned: jax.Array) -> Sum:
    """`added`, for a compensated sum."""
    return _both(lambda losses: losses, running, planned, losses)


def added_regrets(running: Sum, expert: jax.Array, losses: jax.Array, planned: jax.Array) -> Sum:
    """The compensated sum after the losses of the expert who plays the planned rounds, less those of each expert."""
    place = _layout(losses.shape[1])

    def of_play(losses: jax.Array, expert: jax.Array) -> jax.Array:
        losses = place(losses)
        if losses.shape[1] > WRITTEN_OUT:
            return jnp.sum(jnp.where(jnp.arange(losses.shape[1], dtype=expert.dtype) == expert, losses, 0), axis=1)
        its = [jnp.where(expert == index, losses[:, index], 0) for index in range(losses.shape[1])]
        return place(functools.reduce(operator.add, its))

    own = place(own_kernel(of_play, place(losses), expert))
    return _both(lambda own, losses: own - losses, running, planned, own, losses)


def _both(of: Callable[..., jax.Array], running: Sum, planned: jax.Array, *inputs: jax.Array) -> Sum:
    """One kernel for the two arrays of a sum: they are the parts of one complex array."""
    place = _layout(len(running.total))

    def step(running: Sum, *inputs: jax.Array) -> Sum:
        return compensated.add(running, of(*inputs))

    both = _in_order(step, lambda running: jax.lax.complex(*running), running, planned, *inputs)
    return Sum(place(both.real), place(both.imag))


def _in_order(
    step: Callable[..., Any], joined: Callable[[Any], jax.Array], running: Any, planned: jax.Array, *inputs: jax.Array
) -> jax.Array:
    place = _layout(inputs[-1].shape[1])

    def all_(running: Any, planned: jax.Array, *inputs: jax.Array) -> jax.Array:
        running, planned, inputs = jax.tree.map(place, (running, planned, inputs))
        for round_ in range(len(planned)):
            new = step(running, *(each[round_] for each in inputs))
            running = jax.tree.map(lambda new, old, go=planned[round_]: jnp.where(go, new, old), new, running)
        return place(joined(running))

    return place(own_kernel(all_, *jax.tree.map(place, (running, planned, *inputs))))


def _layout(num_experts: int) -> Callable[[jax.Array], jax.Array]:
    return lanes_fast if num_experts <= WRITTEN_OUT else lambda values: values
