"""The windows of rounds that `svt_restarts` examines, and the sums that are stored for these windows.

The sums of regrets, [num_experts], are stored at rounds with queries. Time i is the round of the i-th query, for i = 1,
2, ... A window starts after one time and ends at a later time. Values "in units" count multiples of 2^-20.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.experts._svt_restarts import windows_kernels as kernels
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import BITS, UNITS, Sum, in_64_bits
from jaxdp.numerics.kernels import lanes_last

CHUNK = 128  # number of windows that are examined at a time
LARGEST = 2.0**51  # queries in units are clipped below this number, so that they fit in two words of 32 bits
LEAST = -(2.0**62)  # in units; below every possible excess
Slack = Callable[[jax.Array], jax.Array]  # rounds in windows -> excess over `allowed` for a restart, [...] float64


class Memory(NamedTuple):
    """The sums at the times after which windows start, with one column for each time.

    Attributes:
        low: [num_experts, columns] integers of the default dtype: the epoch's regrets up to this time in units, modulo
            the range of the dtype.
        whole: [num_experts, some columns] the same regrets rounded down to integers. The first columns are omitted if
            their windows are so short that differences of `low` suffice.
        allowed: [columns] the regret that was attributed to chance up to this time, which is public.
    """

    low: jax.Array
    whole: jax.Array
    allowed: Sum


class Ending(NamedTuple):
    """The windows that end at a given time; they are the same in all lanes with a query at this time.

    Attributes:
        starts: [columns] integer, the times after which the windows start.
        slack: [columns] float64, the excess of regret over `allowed` at which a window causes a restart, in units.
    """

    starts: jax.Array
    slack: jax.Array


def replace_columns(written: jax.Array, now: jax.Array, memory: jax.Array) -> jax.Array:
    """Replaces the columns of `memory` for which `written` is true by `now`.

    `written` is [levels] bool, `now` is [num_experts], and `memory` and the result are [num_experts, levels].
    """
    return jnp.where(written[None], now[:, None], memory)


def largest_short(regrets: Sum, memory: jax.Array, short: int) -> jax.Array:
    """Returns, for each of the first `short` columns, the maximum regret over experts since its time, [short] in units.

    Differences of low words are exact even after overflow, because the regrets of these windows do not overflow.
    """
    return jnp.max(low_words(regrets)[:, None] - memory[:, :short], axis=0).astype(jnp.float64)


def largest_long(regrets: Sum, low: jax.Array, whole: jax.Array) -> jax.Array:
    """Returns, for each of the last columns, the maximum regret over experts since the column's time, in units.

    The length of the result is the length of the second axis of `whole`. Regrets may exceed the range of integers.
    """
    part = low[:, -whole.shape[1] :] & (UNITS - 1)
    return jnp.max(wide(regrets)[:, None] - wide(Sum(whole, part)), axis=0)


def wide(sums: Sum) -> jax.Array:
    """Converts sums to units in float64, exact up to 2^53."""
    return sums.whole.astype(jnp.float64) * UNITS + sums.part.astype(jnp.float64)


def low_words(sums: Sum) -> jax.Array:
    """Converts sums to units, modulo the range of the integer dtype."""
    return jnp.left_shift(sums.whole, BITS) | sums.part


class Steps(NamedTuple):
    """The operations on sums for windows: either plain functions or kernels for CPUs.

    Attributes:
        replace_columns: (written, now, memory) -> memory.
        largest_short: (regrets, `low` of the memory, number of columns) -> largest regrets since the first columns'
            times, in units.
        largest_long: (regrets, `low` of the memory, `whole` of the memory) -> largest regrets since the last columns'
            times, in units.
        largest: ([n] float64) -> [], the maximum.
        as_kernel: (function, *inputs) -> function(*inputs), where inputs are trees of arrays.
    """

    replace_columns: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    largest_short: Callable[[Sum, jax.Array, int], jax.Array]
    largest_long: Callable[[Sum, jax.Array, jax.Array], jax.Array]
    largest: Callable[[jax.Array], jax.Array]
    as_kernel: Callable[..., jax.Array]


PLAIN = Steps(replace_columns, largest_short, largest_long, jnp.max, lambda function, *inputs: function(*inputs))
KERNELS = Steps(
    kernels.replace_columns, kernels.largest_short, kernels.largest_long, kernels.largest, kernels.as_kernel
)


class All(NamedTuple):
    """Windows that start after any time; the memory is [num_experts, columns] with one column for each time."""

    num_experts: int
    checks: int
    check_every: int
    steps: Steps = KERNELS  # in a layout for CPUs; correct for any number of experts

    def empty(self) -> Memory:
        """Returns a memory without sums."""
        rows = CHUNK * (1 + self.checks // CHUNK)
        return Memory(*fixed_point.zero((self.num_experts, rows)), fixed_point.zero(rows))

    def remember(self, memory: Memory, regrets: Sum, allowed: Sum, time: jax.Array, asks: jax.Array) -> Memory:
        """Writes a column in every round, even between queries, because a branch would copy the memory."""
        column = time + (~asks).astype(time.dtype)
        news = Memory(low_words(regrets), regrets.whole, allowed)
        return jax.tree.map(lambda words, value: words.at[..., column].set(value, mode="drop"), memory, news)

    def ending_at(self, slack: Slack, time: jax.Array) -> None:
        """Returns None, because `largest` computes the slack of each chunk of windows itself."""

    @in_64_bits
    def largest(
        self,
        memory: Memory,
        regrets: Sum,
        allowed: Sum,
        slack: Slack,
        ending: None,
        time: jax.Array,
        begin: jax.Array,
    ) -> jax.Array:
        """Computes the largest excess ([] float64) over all windows and the epoch, chunk by chunk."""
        del ending
        # The loop starts at the first time of the run, because epochs start at different times in different lanes.
        offsets = jnp.arange(CHUNK, dtype=time.dtype)

        def step(chunk: jax.Array, largest: jax.Array) -> jax.Array:
            times = chunk * CHUNK + offsets
            columns = jax.tree.map(
                lambda words: jax.lax.dynamic_slice_in_dim(words, chunk * CHUNK, CHUNK, axis=-1), memory
            )
            excess = largest_long(regrets, columns.low, columns.whole) - (wide(allowed) - wide(columns.allowed))
            excess = excess - units(slack((time - jnp.clip(times, begin, time)) * self.check_every))
            return jnp.maximum(largest, jnp.max(jnp.where((times > begin) & (times < time), excess, LEAST)))

        epoch_excess = (
            self.steps.largest(wide(regrets)) - wide(allowed) - units(slack((time - begin) * self.check_every))
        )
        return _in_ranges(jax.lax.fori_loop(jnp.zeros_like(time), time // CHUNK + 1, step, epoch_excess))


class Dyadic(NamedTuple):
    """Windows that start, for each k, after the last two times divisible by 2^k; the memory is [num_experts, levels].

    Column k of the memory (level k) is for the last time that is an odd multiple of 2^k. The last even multiple of 2^k
    is an odd multiple of a higher power of two, so it is stored at the level of this power.
    """

    num_experts: int
    checks: int
    check_every: int
    steps: Steps = KERNELS  # in a layout for CPUs; correct for any number of experts

    @property
    def levels(self) -> int:
        """The number of powers of two that are at most the last query's time."""
        return self.checks.bit_length()

    @property
    def short(self) -> int:
        """The number of levels with regrets that do not overflow; a window of level k has <= 2^(k + 1) queries."""
        longest = 2 ** (jnp.iinfo(jnp.result_type(int)).bits - 1 - BITS) - 1
        return min(max((longest // self.check_every).bit_length() - 1, 0), self.levels)

    def empty(self) -> Memory:
        """Returns a memory without sums."""
        low, whole = fixed_point.zero((self.num_experts, self.levels))
        return Memory(low, whole[:, self.short :], fixed_point.zero(self.levels))

    def remember(self, memory: Memory, regrets: Sum, allowed: Sum, time: jax.Array, asks: jax.Array) -> Memory:
        power = jnp.left_shift(1, jnp.arange(self.levels, dtype=time.dtype))  # a time is an odd multiple of one power
        written = asks & ((time & -time) == power)
        return Memory(
            self.steps.replace_columns(written, low_words(regrets), memory.low),
            self.steps.replace_columns(written[self.short :], regrets.whole, memory.whole),
            jax.tree.map(lambda words, value: jnp.where(written, value, words), memory.allowed, allowed),
        )

    @in_64_bits
    def ending_at(self, slack: Slack, time: jax.Array) -> Ending:
        """Returns one window per level; it starts after the level's last time before `time`, even in another epoch."""
        level = jnp.arange(self.levels, dtype=time.dtype)
        last = jnp.right_shift(time - 1, level)  # number of multiples before this query's time
        starts = jnp.left_shift(last - 1 + (last & 1), level)
        return Ending(starts, lanes_last(units(slack((time - jnp.maximum(starts, 0)) * self.check_every))))

    @in_64_bits
    def largest(
        self,
        memory: Memory,
        regrets: Sum,
        allowed: Sum,
        slack: Slack,
        ending: Ending,
        time: jax.Array,
        begin: jax.Array,
    ) -> jax.Array:
        """Returns the largest excess, regret - allowed - slack, over all windows and the epoch, as [] float64."""
        # `short` is computed from the memory, because in this 64-bit function `self.short` would include all levels.
        short, since = memory.low.shape[1] - memory.whole.shape[1], []
        if short > 0:
            since.append(self.steps.largest_short(regrets, memory.low, short))  # XLA would store a slice made here
        if short < self.levels:
            since.append(self.steps.largest_long(regrets, memory.low, memory.whole))
        parts = [
            slice(0, len(regrets_since)) if index == 0 else slice(short, None)
            for index, regrets_since in enumerate(since)
        ]

        def largest_excess(
            since: list[jax.Array],
            regrets: Sum,
            before: Sum,
            allowed: Sum,
            ending: Ending,
            time: jax.Array,
            begin: jax.Array,
        ):
            of_epoch = units(slack((time - begin) * self.check_every))
            largest = self.steps.largest(wide(regrets)) - wide(allowed) - of_epoch
            for regret, part in zip(since, parts, strict=True):
                excess = regret - (wide(allowed) - wide(before)[part]) - ending.slack[part]
                excess = jnp.where(ending.starts[part] > begin, excess, LEAST)
                largest = jnp.maximum(largest, self.steps.largest(excess))
            return _in_ranges(largest)

        return self.steps.as_kernel(largest_excess, since, regrets, memory.allowed, allowed, ending, time, begin)


KINDS = {"all": All, "dyadic": Dyadic}


def units(slack: jax.Array) -> jax.Array:
    """Rounds public values ([...] float64) to integer units in [-`LARGEST`, `LARGEST`]."""
    return jnp.round(jnp.clip(slack * UNITS, -LARGEST, LARGEST))


def _in_ranges(query: jax.Array) -> jax.Array:
    """Clips a query in units like `as_sum`, and divides it by `UNITS` exactly."""
    return jnp.clip(query, -LARGEST, LARGEST - 1) * (1 / UNITS)


def as_sum(query: jax.Array, dtype: jnp.dtype) -> Sum:
    """Converts a query in units to a sum, clipped to two words; clipping does not increase the sensitivity."""
    clipped = jnp.clip(query, -LARGEST, LARGEST - 1)
    whole = jnp.floor(clipped * (1 / UNITS))
    return Sum(whole.astype(dtype), (clipped - whole * UNITS).astype(dtype))


@in_64_bits
def ranges_as_sum(query: jax.Array, dtype: jnp.dtype) -> Sum:
    """Converts a query that `_in_ranges` divided by `UNITS` to a sum, exactly."""
    return as_sum(query * UNITS, dtype)
