"""The steps of RUCB for few arms, laid out for XLA on CPU: loops over lanes, with every arm and pair written out.

They are tested to be equal to `_rucb`'s plain steps bit for bit, and take less time for few arms. Of more arms than are
written out here the plain steps are the faster ones.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling.reports import tally_report
from jaxdp.numerics.kernels import WRITTEN_OUT, lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at

MOST_ARMS = WRITTEN_OUT  # so many arms have lanes as their fast axis, and are members of one word


def view(wins: jax.Array, hypothesis: jax.Array, spread: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`_rucb.view` with packed champions: [] uint32, a bit for each arm."""
    packed = own_kernel(_champions, wins, spread)
    return packed, own_kernel(functools.partial(written_hypothesis, len(wins)), packed, hypothesis)


def duel(uniforms: jax.Array, wins: jax.Array, hypothesis: jax.Array, spread: jax.Array, unmet: jax.Array) -> jax.Array:
    """`_rucb.duel`."""
    packed, hypothesis = view(wins, hypothesis, spread)
    left = own_kernel(functools.partial(written_left, len(wins)), uniforms[0], packed, hypothesis)
    right = own_kernel(_right, uniforms[1], wins, left, spread, unmet)
    return jnp.stack([left, right])


def tally(wins: jax.Array, report: tuple[jax.Array, ...]) -> jax.Array:
    """`tally_report`; the layout is what a loop of simulation carries."""
    return lanes_last(tally_report(wins, report))


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
    """[] bool for each arm."""
    return [(packed >> i) & 1 == 1 for i in range(num_arms)]


def written_hypothesis(num_arms: int, packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
    champions, every = members(num_arms, packed), np.arange(num_arms, dtype=np.int32)
    alone = functools.reduce(jnp.add, [each.astype(jnp.int32) for each in champions]) == 1
    kept = functools.reduce(
        jnp.logical_or, [each & (i == hypothesis) for i, each in zip(every, champions, strict=True)]
    )
    last = functools.reduce(jnp.maximum, [jnp.where(each, i, -1) for i, each in zip(every, champions, strict=True)])
    return jnp.where(alone, last, jnp.where(kept, hypothesis, -1))


def written_left(num_arms: int, uniform: jax.Array, packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
    champions, every = members(num_arms, packed), np.arange(num_arms, dtype=np.int32)
    none = ~functools.reduce(jnp.logical_or, champions)
    drawn_from = [each | none for each in champions]
    others = functools.reduce(jnp.add, [each.astype(jnp.int32) for each in drawn_from]) - 1
    odds = [jnp.where(i == hypothesis, jnp.maximum(others, 1), 1) for i in every]
    return drawn(uniform, [jnp.where(each, odd, 0) for each, odd in zip(drawn_from, odds, strict=True)])


def _right(uniform: jax.Array, wins: jax.Array, left: jax.Array, spread: jax.Array, unmet: jax.Array) -> jax.Array:
    wins, every, bounds = lanes_last(wins), np.arange(len(wins), dtype=np.int32), []
    rows = [[wins[i, j] for j in every] for i in every]
    columns = [list(column) for column in zip(*rows, strict=True)]
    for i, won, lost in zip(every, line(columns, left), line(rows, left), strict=True):
        lead, duels = ((won + sign * lost).astype(spread.dtype) for sign in (-1, 1))
        share = 1 / jnp.maximum(duels, 1)
        bound = lead * share / 2 + jnp.sqrt(spread * share)
        bounds.append(jnp.where(i == left, 0, jnp.where(duels > 0, bound, unmet)))
    largest = functools.reduce(jnp.maximum, bounds)
    tied = [bound == largest for bound in bounds]
    others = [each & (i != left) for i, each in zip(every, tied, strict=True)]
    found = functools.reduce(jnp.logical_or, others)
    return drawn(uniform, [jnp.where(found, other, each) for other, each in zip(others, tied, strict=True)])


def line(entries: list[list[jax.Array]], index: jax.Array) -> list[jax.Array]:
    """The list of that index, by a choice among all."""
    chosen = entries[0]
    for place in range(1, len(entries)):
        is_here = index == place
        chosen = [jnp.where(is_here, *pair) for pair in zip(entries[place], chosen, strict=True)]
    return chosen


def drawn(uniform: jax.Array, odds: list[jax.Array]) -> jax.Array:
    return inline_index_at(uniform, [each.astype(uniform.dtype) for each in odds])
