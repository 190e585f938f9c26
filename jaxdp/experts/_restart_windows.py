"""The windows of rounds whose regret `svt_restarts` looks at, and what has to be remembered for them."""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import WRITTEN_OUT, folded, lanes_last, own_kernel

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


class All(NamedTuple):
    """Every window that begins at a question's time. Memory: [num_experts, rows], a column for each time."""

    num_experts: int
    checks: int

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

        whole = _whole_epoch(beyond, window_slack, now, begin)
        return jax.lax.fori_loop(jnp.zeros_like(now), now // CHUNK + 1, step, whole)


class Dyadic(NamedTuple):
    """For each k the windows that begin at the last two multiples of 2^k, and the epoch. Memory: [num_experts, levels].

    The last odd multiple of 2^k is kept for each k. The last even one is an odd multiple of a higher power of two, and
    of that power it is the last one: it is kept there.
    """

    num_experts: int
    checks: int

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
        return lanes_last(jnp.where(written[None], lanes_last(beyond)[:, None], lanes_last(memory)))

    def largest(
        self, memory: jax.Array, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
    ) -> jax.Array:
        """All at once."""
        level = jnp.arange(self.levels, dtype=now.dtype)
        last = jnp.right_shift(now - 1, level)  # multiples before this question's time
        times = jnp.left_shift(last - 1 + (last & 1), level)
        # Experts are the first axis, and the maximum of a few is written out: XLA on CPU reduces short rows slowly.
        sums = own_kernel(
            lambda beyond, memory: lanes_last(largest_row(lanes_last(beyond)[:, None] - lanes_last(memory))),
            *(lanes_last(beyond), lanes_last(memory)),
        )
        excess = lanes_last(sums) - window_slack * _root(now - times, sums.dtype)
        largest = largest_row(jnp.where(times > begin, excess, -jnp.inf))
        return jnp.maximum(largest, _whole_epoch(beyond, window_slack, now, begin))


KINDS = {"all": All, "dyadic": Dyadic}


def largest_row(values: jax.Array) -> jax.Array:
    """The largest of values [n, ...] along the first axis: [...] float."""
    return folded(jnp.maximum, values) if len(values) <= WRITTEN_OUT else values.max(axis=0)


def _whole_epoch(beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array) -> jax.Array:
    return largest_row(beyond) - window_slack * _root(now - begin, beyond.dtype)


def _root(length: jax.Array, dtype: jnp.dtype) -> jax.Array:
    return jnp.sqrt(jnp.maximum(length, 0).astype(dtype))
