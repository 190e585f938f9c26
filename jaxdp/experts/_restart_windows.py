"""The windows of rounds whose regret `svt_restarts` looks at, and what has to be remembered for them."""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

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
    """For each k two windows that begin at multiples of 2^k, and the epoch. Memory: [levels, 2, num_experts]."""

    num_experts: int
    checks: int

    @property
    def levels(self) -> int:
        """One for each power of two up to the last question's time."""
        return self.checks.bit_length()

    def empty(self, dtype: jnp.dtype) -> jax.Array:
        """No sums yet."""
        return jnp.zeros((self.levels, 2, self.num_experts), dtype)

    def remember(self, memory: jax.Array, beyond: jax.Array, now: jax.Array, asks: jax.Array) -> jax.Array:
        """Level k keeps the last two multiples of 2^k, by whether they are odd ones."""
        level = jnp.arange(self.levels, dtype=now.dtype)
        multiple = jnp.right_shift(now, level)
        written = asks & (jnp.left_shift(multiple, level) == now)
        place = (multiple & 1)[:, None] == jnp.arange(2, dtype=now.dtype)[None, :]
        return jnp.where((written[:, None] & place)[:, :, None], beyond[None, None, :], memory)

    def largest(
        self, memory: jax.Array, beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array
    ) -> jax.Array:
        """All at once."""
        level = jnp.arange(self.levels, dtype=now.dtype)
        last = jnp.right_shift(now - 1, level)[:, None]  # multiples before this question's time
        place = jnp.arange(2, dtype=now.dtype)[None, :]
        times = jnp.left_shift(last - ((last & 1) != place).astype(now.dtype), level[:, None])
        sums = jnp.max(beyond[None, None, :] - memory, axis=-1)
        excess = sums - window_slack * _root(now - times, sums.dtype)
        largest = jnp.max(jnp.where(times > begin, excess, -jnp.inf))
        return jnp.maximum(largest, _whole_epoch(beyond, window_slack, now, begin))


KINDS = {"all": All, "dyadic": Dyadic}


def _whole_epoch(beyond: jax.Array, window_slack: jax.Array, now: jax.Array, begin: jax.Array) -> jax.Array:
    return jnp.max(beyond) - window_slack * _root(now - begin, beyond.dtype)


def _root(length: jax.Array, dtype: jnp.dtype) -> jax.Array:
    return jnp.sqrt(jnp.maximum(length, 0).astype(dtype))
