"""Wins of pairs of arms that a curator releases with noise, in doubling blocks.

A pair is two arms in either order. Its first block is its first duel, and each later block doubles its duels: blocks
have 1, 1, 2, 4, 8, ... duels. A matrix over pairs holds (i, j), i < j, above its diagonal. `count_duel` counts a duel,
and releases a block's wins when the duel ends it; bounds are computed from `evidence`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar, default_float
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics.kernels import lanes_last
from jaxdp.numerics.rounding import round_product


class Private(NamedTuple):
    """State that only the curator knows.

    Attributes:
        wins: [num_arms, num_arms] integer, above the diagonal: of the row's arm over the column's in the pair's latest
            block. At the start of a block it still holds the previous block's wins, which are discarded.
    """

    wins: jax.Array


class Released(NamedTuple):
    """The releases for pairs, and values derived from plays: [num_arms, num_arms], above the diagonal.

    Sums over finished blocks weight each block, see `weight_of`.

    Attributes:
        duels: integer, duels of the pair, including the unfinished block.
        lead: float, the sum over blocks of noisy wins minus losses of the row's arm.
        weight: float >= 0, the sum over blocks of their duels.
        noise: float >= 0, the scale of the noise in the last block's wins, times the block's weight.
    """

    duels: jax.Array
    lead: jax.Array
    weight: jax.Array
    noise: jax.Array


class Evidence(NamedTuple):
    """The releases in both orders of two arms: [num_arms, num_arms] float, zero where there is none.

    Attributes:
        lead: weighted noisy wins minus losses of the row's arm against the column's, L.
        weight: weighted duels, N.
        allowance: 4 spread times the last block's noise. An upper bound on P[row, column] - 1/2 is (L + allowance) / (2
            N) + sqrt(spread / N): the allowance is for the exponential tails of Laplace noise.
    """

    lead: jax.Array
    weight: jax.Array
    allowance: jax.Array


def no_duels(num_arms: int) -> tuple[Private, Released]:
    """Returns the private state and the releases before the first round."""
    none, zeros = (jnp.zeros((num_arms, num_arms), kind) for kind in (jnp.result_type(int), default_float()))
    return Private(none), Released(none, zeros, zeros, zeros)


def count_duel(
    key: jax.Array, epsilon: Scalar, private: Private, released: Released, report: tuple[jax.Array, ...]
) -> tuple[Private, Released]:
    """Counts a duel. The first duel of its pair, the second, the fourth, the eighth, ... each end a block.

    At a block's end the block's wins of the pair's lower-numbered arm are released with Laplace(1 / epsilon) noise. A
    duel of an arm with itself releases nothing.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity adds no noise.
        private: before the duel.
        released: before the duel.
        report: (pair of arms [2] int32, [] int32, 1 if the left arm won; clipped to {0, 1}).

    Returns:
        (private, released) after the duel.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: Given the earlier releases, the pair of a duel and its index among the pair's duels are fixed. So
          an outcome enters the wins of one block, by at most 1, which are released once. Blocks concern different users
          and compose in parallel.
    """
    (left, right), won = report
    pair = jnp.minimum(left, right), jnp.maximum(left, right)
    won = jnp.clip(won, 0, 1).astype(private.wins.dtype)
    lower_won = jnp.where(left < right, won, 1 - won)
    before = released.duels[pair]
    wins = jnp.where(_is_between_blocks(before), 0, private.wins[pair]) + lower_won
    duels = before + 1
    ends = _is_between_blocks(duels) & (left != right)
    length = jnp.maximum(duels // 2, 1)  # of the block, if it ends

    def noisy_lead() -> jax.Array:
        noisy = laplace(key, wins, epsilon, l1_sensitivity=1.0)
        return 2 * noisy - length.astype(noisy.dtype)

    lead = jax.lax.cond(ends, noisy_lead, lambda: jnp.zeros((), default_float()))
    weight = weight_of(length, epsilon)
    after = Released(
        duels=released.duels.at[pair].set(duels),
        lead=released.lead.at[pair].add(weight * lead),
        weight=released.weight.at[pair].add(jnp.where(ends, weight * length.astype(weight.dtype), 0)),
        noise=released.noise.at[pair].set(jnp.where(ends, weight / epsilon, released.noise[pair])),
    )
    return Private(lanes_last(private.wins.at[pair].set(wins))), Released(*map(lanes_last, after))


def weight_of(length: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns the weight of a block of n duels, n / (n + 8 / epsilon^2): [...] float in [0, 1].

    The sum of a block's n outcomes has a variance of at most n / 4, and its noise has a variance of 2 / epsilon^2. The
    variance of the averaged shares of wins is least if each block has the weight n, its number of duels, times this
    one: the product is inversely proportional to the variance of the block's noisy wins over n. The average's variance
    is then at most 1 / (4 N), N being the weighted number of duels.
    """
    length = length.astype(default_float())
    return length / (length + 8 / (epsilon * epsilon))


def evidence(released: Released, spread: jax.Array) -> Evidence:
    """Returns the quantities that bounds are computed from, for both orders of two arms.

    Args:
        released: by `count_duel`.
        spread: [] float, exploration_rate ln t.
    """
    lead, weight, noise = released.lead, released.weight, released.noise
    return Evidence(lead - lead.T, weight + weight.T, round_product(4 * spread * (noise + noise.T)))


def claim(epsilon: float) -> Guarantee:
    """Returns the claim of a learner that sees duels only through `count_duel`."""
    return Guarantee.pure(
        epsilon,
        trust_model="central",
        privacy_unit="one duel's outcome",
        argument="each outcome enters one total, released once by Laplace noise, at L1 sensitivity 1",
        numerical_delta=laplace_delta(epsilon),
    )


def _is_between_blocks(duels: jax.Array) -> jax.Array:
    """Returns whether a pair with this many duels is between two blocks: 0, 1, 2, 4, 8, ..."""
    return (duels & (duels - 1)) == 0
