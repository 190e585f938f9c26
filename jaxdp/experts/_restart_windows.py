"""The windows of rounds whose regret `svt_restarts` looks at, and what has to be remembered for them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxdp.experts import _restart_windows_kernels as kernels

CHUNK = 128  # beginnings of windows that are looked at together


class Windows(Protocol):
    """A choice of windows. Time is counted in questions: 1 is the round of the first one."""

    def empty(self, dtype: jnp.dtype) -> jax.Array:
        """Nothing, in the shape of what is remembered."""
        ...

    def remember(self, memory: jax.Array, beyond: jax.Array, now: jax.Array, asks: jax.Array) -> jax.Array:
        """Keeps the sums of the round before this one, if a question was asked there.

        Args:
            memory: so far.
            beyond: [num_experts] float, sums over the epoch up to that round.
            now: [] integer, the time of the last question.
            asks: [] bool, whether it was asked in that round.
        """
        ...

    def largest(
        self, memory: jax.Array, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
    ) -> jax.Array:
        """The largest, over windows of this epoch that end now and over experts, of sum - window_slack sqrt(length).

        Args:
            memory: of questions before this one.
            beyond: [num_experts] float, sums over the rounds of the epoch.
            window_slack: [] float.
            now: [] integer, this question's time.
            begin: [] integer < now, time at which the epoch began.

        Returns:
            [] float.
        """
        ...


def replaced(written: jax.Array, beyond: jax.Array, memory: jax.Array) -> jax.Array:
    """The memory, [num_experts, levels] float, with the sums of now in the columns `written`, [levels] bool."""
    return jnp.where(written[None], beyond[:, None], memory)


def largest_sums(beyond: jax.Array, memory: jax.Array) -> jax.Array:
    """The largest, over experts, of sums since a column was remembered: [levels] float."""
    return jnp.max(beyond[:, None] - memory, axis=0)


class Steps(NamedTuple):
    """What windows compute from sums.

    Attributes:
        replaced: (written, beyond, memory) -> memory.
        largest_sums: (beyond, memory) -> [levels] float.
        largest: ([n] float) -> [] float, the largest.
    """

    replaced: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    largest_sums: Callable[[jax.Array, jax.Array], jax.Array]
    largest: Callable[[jax.Array], jax.Array]


PLAIN = Steps(replaced, largest_sums, jnp.max)
KERNELS = Steps(kernels.replaced, kernels.largest_sums, kernels.largest)


class All(NamedTuple):
    """Every window that begins at a question's time. Memory: [num_experts, rows], a column for each time."""

    num_experts: int
    checks: int
    steps: Steps = KERNELS  # laid out for CPUs, whatever the number of experts

    def empty(self, dtype: jnp.dtype) -> jax.Array:
        """No sums yet."""
        return jnp.zeros((self.num_experts, CHUNK * (1 + self.checks // CHUNK)), dtype)

    def remember(self, memory: jax.Array, beyond: jax.Array, now: jax.Array, asks: jax.Array) -> jax.Array:
        """In rounds between questions the next one's column is written, and again: no branch, and so no copy."""
        return memory.at[:, now + (~asks).astype(now.dtype)].set(beyond, mode="drop")

    def largest(
        self, memory: jax.Array, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
    ) -> jax.Array:
        """Chunk after chunk, from the first time of all: lanes begin their epochs at different times."""
        offsets = jnp.arange(CHUNK, dtype=now.dtype)

        def step(chunk: jax.Array, largest: jax.Array) -> jax.Array:
            times = chunk * CHUNK + offsets
            columns = jax.lax.dynamic_slice_in_dim(memory, chunk * CHUNK, CHUNK, axis=1)
            sums = jnp.max(beyond[:, None] - columns, axis=0)
            excess = sums - window_slack * _root(now - times, sums.dtype)
            return jnp.maximum(largest, jnp.max(jnp.where((times > begin) & (times < now), excess, -jnp.inf)))

        whole = _whole_epoch(self.steps, beyond, window_slack, now, begin)
        return jax.lax.fori_loop(jnp.zeros_like(now), now // CHUNK + 1, step, whole)


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

    def empty(self, dtype: jnp.dtype) -> jax.Array:
        """No sums yet."""
        return jnp.zeros((self.num_experts, self.levels), dtype)

    def remember(self, memory: jax.Array, beyond: jax.Array, now: jax.Array, asks: jax.Array) -> jax.Array:
        """A time is an odd multiple of one power of two."""
        power = jnp.left_shift(1, jnp.arange(self.levels, dtype=now.dtype))
        written = asks & ((now & -now) == power)
        return self.steps.replaced(written, beyond, memory)

    def largest(
        self, memory: jax.Array, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
    ) -> jax.Array:
        """All at once."""
        level = jnp.arange(self.levels, dtype=now.dtype)
        last = jnp.right_shift(now - 1, level)  # multiples before this question's time
        times = jnp.left_shift(last - 1 + (last & 1), level)
        sums = self.steps.largest_sums(beyond, memory)
        excess = sums - window_slack * _root(now - times, sums.dtype)
        largest = self.steps.largest(jnp.where(times > begin, excess, -jnp.inf))
        return jnp.maximum(largest, _whole_epoch(self.steps, beyond, window_slack, now, begin))


KINDS = {"all": All, "dyadic": Dyadic}


def _whole_epoch(
    steps: Steps, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
) -> jax.Array:
    return steps.largest(beyond) - window_slack * _root(now - begin, beyond.dtype)


def _root(length: jax.Array, dtype: jnp.dtype) -> jax.Array:
    return jnp.sqrt(jnp.maximum(length, 0).astype(dtype))
