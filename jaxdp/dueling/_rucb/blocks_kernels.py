"""The steps of RUCB by blocks for few arms, laid out for XLA on CPU: loops over lanes, with pairs unrolled.

Tests check that the results equal the results of the plain steps in `blocks` bit for bit. In a sweep's program of 256
lanes, the plain steps take 1.8 times as long with 3 arms, and 4.8 times as long with 10 arms: `python benchmarks/run.py
--clock processor "fast form of rucb_blocks"`.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling._pair_blocks import Released
from jaxdp.dueling._rucb.draws import UNMET
from jaxdp.dueling._rucb.kernels import draw_index, line, unrolled_hypothesis, unrolled_left
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.numerics.rounding import round_product


def view(released: Released, hypothesis: jax.Array, spread: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns this round's champions, [] uint32 with one bit per arm, and the hypothesised best arm, or -1."""
    packed = own_kernel(_champions, *released[1:], spread)
    return packed, own_kernel(functools.partial(unrolled_hypothesis, len(released.duels)), packed, hypothesis)


def duel(uniforms: jax.Array, released: Released, hypothesis: jax.Array, spread: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) from two uniforms; `spread` is exploration_rate ln t in round t."""
    packed, hypothesis = view(released, hypothesis, spread)
    left = own_kernel(functools.partial(unrolled_left, len(released.duels)), uniforms[0], packed, hypothesis)
    return jnp.stack([left, own_kernel(_right, uniforms[1], *released[1:], left, spread)])


def _champions(lead: jax.Array, weight: jax.Array, noise: jax.Array, spread: jax.Array) -> jax.Array:
    lead, weight, noise = map(lanes_last, (lead, weight, noise))
    champions = [jnp.asarray(True)] * len(lead)
    for i, j in itertools.combinations(range(len(lead)), 2):
        allowance, square = round_product(4 * spread * noise[i, j]), 4 * spread * weight[i, j]
        for arm, raised in ((i, allowance + lead[i, j]), (j, allowance - lead[i, j])):
            champions[arm] &= (raised >= 0) | (raised * raised <= square)
    return sum((is_one.astype(jnp.uint32) << i for i, is_one in enumerate(champions)), jnp.uint32(0))


def _right(
    uniform: jax.Array, lead: jax.Array, weight: jax.Array, noise: jax.Array, left: jax.Array, spread: jax.Array
) -> jax.Array:
    lead, weight, noise = map(lanes_last, (lead, weight, noise))
    indices, bounds, zero = np.arange(len(lead), dtype=np.int32), [], jnp.zeros_like(uniform)

    def against_left(values: jax.Array, sign: int) -> list[jax.Array]:
        columns = [
            [values[i, j] if i < j else sign * values[j, i] if i > j else zero for i in indices] for j in indices
        ]
        return line(columns, left)

    for i, won, duels, scale in zip(
        indices, against_left(lead, -1), against_left(weight, 1), against_left(noise, 1), strict=True
    ):
        share = 1 / jnp.where(duels > 0, duels, 1)
        bound = (round_product(4 * spread * scale) + won) * share / 2 + jnp.sqrt(spread * share)
        bounds.append(jnp.where(i == left, 0, jnp.where(duels > 0, bound, UNMET)))
    largest = functools.reduce(jnp.maximum, bounds)
    tied = [bound == largest for bound in bounds]
    tied_others = [is_tied & (i != left) for i, is_tied in zip(indices, tied, strict=True)]
    any_other = functools.reduce(jnp.logical_or, tied_others)
    return draw_index(uniform, [jnp.where(any_other, other, arm) for other, arm in zip(tied_others, tied, strict=True)])
