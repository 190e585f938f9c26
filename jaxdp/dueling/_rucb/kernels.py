"""The steps of RUCB for few arms, laid out for XLA on CPU: loops over lanes, with arms and pairs unrolled.

Tests check that the results equal the results of the plain steps in `_rucb` bit for bit. In a sweep's program of 256
lanes, the plain steps take 1.5 times as long as these with 3 arms, and 2.7 times as long with 10 arms. With more than
`MOST_ARMS` arms, the plain steps are faster. `python benchmarks/run.py --clock processor "fast form of rucb"` repeats
the measurement.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling.reports import count_report
from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at

MOST_ARMS = MAX_UNROLLED  # up to this number, arrays are contiguous along lanes, and one word has a bit per arm


def view(wins: jax.Array, hypothesis: jax.Array, spread: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns this round's champions, [] uint32 with one bit per arm, and the hypothesised best arm or -1."""
    packed = own_kernel(_champions, wins, spread)
    return packed, own_kernel(functools.partial(unrolled_hypothesis, len(wins)), packed, hypothesis)


def duel(uniforms: jax.Array, wins: jax.Array, hypothesis: jax.Array, spread: jax.Array, unmet: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) of this round from two uniforms; arguments as in `_rucb.duel`."""
    packed, hypothesis = view(wins, hypothesis, spread)
    left = own_kernel(functools.partial(unrolled_left, len(wins)), uniforms[0], packed, hypothesis)
    right = own_kernel(_right, uniforms[1], wins, left, spread, unmet)
    return jnp.stack([left, right])


def count_duel(wins: jax.Array, report: tuple[jax.Array, ...]) -> jax.Array:
    """Adds one report to the wins as `count_report` does, in the memory layout of the simulation's loop."""
    return lanes_last(count_report(wins, report))


def _champions(wins: jax.Array, spread: jax.Array) -> jax.Array:
    wins = lanes_last(wins)
    champions = [jnp.asarray(True)] * len(wins)
    for i, j in itertools.combinations(range(len(wins)), 2):
        lead, duels = ((wins[i, j] + sign * wins[j, i]).astype(spread.dtype) for sign in (-1, 1))
        is_open = lead * lead <= 4 * spread * duels
        champions[i] &= (lead >= 0) | is_open
        champions[j] &= (lead <= 0) | is_open
    return sum((is_one.astype(jnp.uint32) << i for i, is_one in enumerate(champions)), jnp.uint32(0))


def members(num_arms: int, packed: jax.Array) -> list[jax.Array]:
    """Unpacks the bits of `packed`: one [] bool for each arm."""
    return [(packed >> i) & 1 == 1 for i in range(num_arms)]


def unrolled_hypothesis(num_arms: int, packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """Returns the result of `draws.next_hypothesis` for packed champions, with an unrolled loop over arms."""
    champions, indices = members(num_arms, packed), np.arange(num_arms, dtype=np.int32)
    is_alone = functools.reduce(jnp.add, [is_champion.astype(jnp.int32) for is_champion in champions]) == 1
    arms = list(zip(indices, champions, strict=True))
    is_kept = functools.reduce(jnp.logical_or, [is_champion & (i == hypothesis) for i, is_champion in arms])
    last = functools.reduce(jnp.maximum, [jnp.where(is_champion, i, -1) for i, is_champion in arms])
    return jnp.where(is_alone, last, jnp.where(is_kept, hypothesis, -1))


def unrolled_left(num_arms: int, uniform: jax.Array, packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """Returns the result of `draws.draw_left` for packed champions, with an unrolled loop over arms."""
    champions, indices = members(num_arms, packed), np.arange(num_arms, dtype=np.int32)
    none = ~functools.reduce(jnp.logical_or, champions)
    candidates = [is_champion | none for is_champion in champions]
    num_others = functools.reduce(jnp.add, [is_candidate.astype(jnp.int32) for is_candidate in candidates]) - 1
    odds = [jnp.where(i == hypothesis, jnp.maximum(num_others, 1), 1) for i in indices]
    return draw_index(uniform, [jnp.where(arm, odd, 0) for arm, odd in zip(candidates, odds, strict=True)])


def _right(uniform: jax.Array, wins: jax.Array, left: jax.Array, spread: jax.Array, unmet: jax.Array) -> jax.Array:
    wins, indices, bounds = lanes_last(wins), np.arange(len(wins), dtype=np.int32), []
    rows = [[wins[i, j] for j in indices] for i in indices]
    columns = [list(column) for column in zip(*rows, strict=True)]
    for i, won, lost in zip(indices, line(columns, left), line(rows, left), strict=True):
        lead, duels = ((won + sign * lost).astype(spread.dtype) for sign in (-1, 1))
        share = 1 / jnp.maximum(duels, 1)
        bound = lead * share / 2 + jnp.sqrt(spread * share)
        bounds.append(jnp.where(i == left, 0, jnp.where(duels > 0, bound, unmet)))
    largest = functools.reduce(jnp.maximum, bounds)
    tied = [bound == largest for bound in bounds]
    tied_others = [is_tied & (i != left) for i, is_tied in zip(indices, tied, strict=True)]
    any_other = functools.reduce(jnp.logical_or, tied_others)
    return draw_index(uniform, [jnp.where(any_other, other, arm) for other, arm in zip(tied_others, tied, strict=True)])


def line(entries: list[list[jax.Array]], index: jax.Array) -> list[jax.Array]:
    """Returns the row entries[index] without a gather, by comparing the scalar `index` with every position after 0."""
    selected = entries[0]
    for i in range(1, len(entries)):
        is_index = index == i
        selected = [jnp.where(is_index, *pair) for pair in zip(entries[i], selected, strict=True)]
    return selected


def draw_index(uniform: jax.Array, odds: list[jax.Array]) -> jax.Array:
    return inline_index_at(uniform, [weight.astype(uniform.dtype) for weight in odds])
