"""The windows of rounds whose regret `svt_restarts` looks at, and what has to be remembered for them.

A choice of windows remembers sums of regrets, [num_experts] each, of the rounds before questions. Time is counted in
questions: 1 is the round of the first one. An epoch begins at a time before the question that ends its windows.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.experts._svt_restarts import windows_kernels as kernels
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import BITS, UNITS, Sum, in_64_bits

CHUNK = 128  # beginnings of windows that are looked at together
LARGEST = 2**51  # units of a question, which two words of 32 bits hold
LEAST = -(2**62)  # units, below every excess
Slack = Callable[[jax.Array], jax.Array]  # times at which windows begin -> [...] float64 that regret must exceed


def replaced(written: jax.Array, now: jax.Array, memory: jax.Array) -> jax.Array:
    """The memory, [num_experts, levels], with the values of now in the columns `written`, [levels] bool."""
    return jnp.where(written[None], now[:, None], memory)


def largest_sums(regrets: Sum, memory: Sum) -> jax.Array:
    """The largest, over experts, of regrets since a column was remembered: [levels] units, int64."""
    return jnp.max(wide(regrets)[:, None] - wide(memory), axis=0)


def wide(sums: Sum) -> jax.Array:
    """Sums as integers of 64 bits."""
    return sums.whole.astype(jnp.int64) * UNITS + sums.part.astype(jnp.int64)


class Steps(NamedTuple):
    """What windows compute from sums.

    Attributes:
        replaced: (written, now, memory) -> memory.
        largest_sums: (regrets, memory) -> [levels] units.
        largest: ([n] integers) -> [], the largest.
    """

    replaced: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    largest_sums: Callable[[Sum, Sum], jax.Array]
    largest: Callable[[jax.Array], jax.Array]


PLAIN = Steps(replaced, largest_sums, jnp.max)
KERNELS = Steps(kernels.replaced, kernels.largest_sums, kernels.largest)


class All(NamedTuple):
    """Every window that begins at a question's time. Memory: [num_experts, rows], a column for each time."""

    num_experts: int
    checks: int
    steps: Steps = KERNELS  # laid out for CPUs, whatever the number of experts

    def empty(self) -> Sum:
        """No sums yet."""
        return fixed_point.zero((self.num_experts, CHUNK * (1 + self.checks // CHUNK)))

    def remember(self, memory: Sum, regrets: Sum, now: jax.Array, asks: jax.Array) -> Sum:
        """In rounds between questions the next one's column is written, and again: no branch, and so no copy."""
        place = now + (~asks).astype(now.dtype)
        return jax.tree.map(lambda words, new: words.at[:, place].set(new, mode="drop"), memory, regrets)

    @in_64_bits
    def largest(self, memory: Sum, regrets: Sum, slack: Slack, now: jax.Array, begin: jax.Array) -> Sum:
        """Chunk after chunk, from the first time of all: lanes begin their epochs at different times."""
        offsets = jnp.arange(CHUNK, dtype=now.dtype)

        def step(chunk: jax.Array, largest: jax.Array) -> jax.Array:
            times = chunk * CHUNK + offsets
            columns = jax.tree.map(
                lambda words: jax.lax.dynamic_slice_in_dim(words, chunk * CHUNK, CHUNK, axis=1), memory
            )
            excess = largest_sums(regrets, columns) - _units(slack(jnp.clip(times, begin, now)))
            return jnp.maximum(largest, jnp.max(jnp.where((times > begin) & (times < now), excess, LEAST)))

        whole = _whole_epoch(self.steps, regrets, slack, begin)
        return _as_sum(jax.lax.fori_loop(jnp.zeros_like(now), now // CHUNK + 1, step, whole), now.dtype)


class Dyadic(NamedTuple):
    """For each k the windows that begin at the last two multiples of 2^k, and the epoch. Memory: [num_experts, levels].

    The last odd multiple of 2^k is kept for each k. The last even one is an odd multiple of a higher power of two, and
    of that power it is the last one: it is kept there.
    """

    num_experts: int
    checks: int
    steps: Steps = KERNELS  # laid out for CPUs, whatever the number of experts

    @property
    def levels(self) -> int:
        """One for each power of two up to the last question's time."""
        return self.checks.bit_length()

    def empty(self) -> Sum:
        """No sums yet."""
        return fixed_point.zero((self.num_experts, self.levels))

    def remember(self, memory: Sum, regrets: Sum, now: jax.Array, asks: jax.Array) -> Sum:
        """A time is an odd multiple of one power of two."""
        power = jnp.left_shift(1, jnp.arange(self.levels, dtype=now.dtype))
        written = asks & ((now & -now) == power)
        return jax.tree.map(lambda words, new: self.steps.replaced(written, new, words), memory, regrets)

    @in_64_bits
    def largest(self, memory: Sum, regrets: Sum, slack: Slack, now: jax.Array, begin: jax.Array) -> Sum:
        """All at once."""
        level = jnp.arange(self.levels, dtype=now.dtype)
        last = jnp.right_shift(now - 1, level)  # multiples before this question's time
        times = jnp.left_shift(last - 1 + (last & 1), level)
        excess = self.steps.largest_sums(regrets, memory) - _units(slack(jnp.maximum(times, begin)))
        largest = self.steps.largest(jnp.where(times > begin, excess, LEAST))
        return _as_sum(jnp.maximum(largest, _whole_epoch(self.steps, regrets, slack, begin)), now.dtype)


KINDS = {"all": All, "dyadic": Dyadic}


def _whole_epoch(steps: Steps, regrets: Sum, slack: Slack, begin: jax.Array) -> jax.Array:
    return steps.largest(wide(regrets)) - _units(slack(begin))


def _units(slack: jax.Array) -> jax.Array:
    return jnp.round(jnp.clip(slack * UNITS, -(2.0**60), 2.0**60)).astype(jnp.int64)


def _as_sum(question: jax.Array, dtype: jnp.dtype) -> Sum:
    """A question beyond the words is clipped, which moves it by no more than it did."""
    clipped = jnp.clip(question, -LARGEST, LARGEST - 1)
    return Sum((clipped >> BITS).astype(dtype), (clipped & (UNITS - 1)).astype(dtype))
