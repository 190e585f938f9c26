"""The wins of pairs of arms, released by a curator with noise in blocks of doubling length.

A pair is two arms in either order. The first block of a pair is its first duel; the end of each later block doubles the
pair's number of duels. So blocks have 1, 1, 2, 4, 8, ... duels. A matrix over pairs stores the pair (i, j), i < j,
above its diagonal. `count_duel` counts a duel, and releases a block's wins if the duel ends the block. Bounds are
computed from `evidence`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar, default_float
from jaxdp.dueling import _exploration
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics.kernels import lanes_last
from jaxdp.numerics.rounding import round_product


class Private(NamedTuple):
    """The state that only the curator knows.

    Attributes:
        wins: [num_arms, num_arms] integer, above the diagonal: the wins of the row's arm over the column's arm in the
            pair's current block. Between blocks, the entry still contains the previous block's wins; the next duel
            discards them.
    """

    wins: jax.Array


class Released(NamedTuple):
    """The releases for pairs, and values computed from the plays.

    Each field is [num_arms, num_arms]; the entries above the diagonal are used. Sums are over finished blocks, and
    `weight_of` computes the weight of a block.

    Attributes:
        duels: integer, number of duels of the pair, including the unfinished block.
        lead: float, the weighted sum, over blocks, of noisy wins minus noisy losses of the row's arm.
        weight: float >= 0, the weighted number of duels.
        noise: float >= 0, the scale of the noise in the last finished block's wins, times this block's weight.
    """

    duels: jax.Array
    lead: jax.Array
    weight: jax.Array
    noise: jax.Array


class Evidence(NamedTuple):
    """The releases for both orders of each pair: [num_arms, num_arms] float each, zero for pairs without a release.

    Attributes:
        lead: L, the weighted noisy wins minus losses of the row's arm against the column's arm.
        weight: N, the weighted number of duels.
        allowance: 4 spread times `Released.noise`, where spread is exploration_rate ln t. With P the preference matrix,
            (L + allowance) / (2 N) + sqrt(spread / N) is an upper confidence bound on P[row, column] - 1/2; the
            allowance covers the exponential tails of Laplace noise.
    """

    lead: jax.Array
    weight: jax.Array
    allowance: jax.Array


def no_duels(num_arms: int) -> tuple[Private, Released]:
    """Returns the private state and the releases before the first round."""
    counts, sums = (jnp.zeros((num_arms, num_arms), kind) for kind in (jnp.result_type(int), default_float()))
    return Private(counts), Released(counts, sums, sums, sums)


def count_duel(
    key: jax.Array, epsilon: Scalar, private: Private, released: Released, report: tuple[jax.Array, ...]
) -> tuple[Private, Released]:
    """Counts a duel, and releases the block's wins if this is the pair's 1st, 2nd, 4th, 8th, ... duel.

    The release is the number of the block's duels that the pair's lower-numbered arm won, plus Laplace(1 / epsilon)
    noise. A duel of an arm with itself releases nothing.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity adds no noise.
        private: the curator's state before the duel.
        released: the releases before the duel.
        report: (pair of arms [2] int32; [] int32, 1 if the left arm won, else 0 (clipped)).

    Returns:
        (private, released) after the duel.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: given the earlier releases and the random draws of arms, the pair of a duel and the duel's index
          among the pair's duels are fixed. So an outcome changes the wins of one block only, by at most 1, and these
          wins are released once. Blocks have different users, so they compose in parallel.
    """
    (left, right), won = report
    pair = jnp.minimum(left, right), jnp.maximum(left, right)
    won = jnp.clip(won, 0, 1).astype(private.wins.dtype)
    lower_won = jnp.where(left < right, won, 1 - won)
    before = released.duels[pair]
    wins = jnp.where(_is_between_blocks(before), 0, private.wins[pair]) + lower_won
    duels = before + 1
    ends = _is_between_blocks(duels) & (left != right)
    length = jnp.maximum(duels // 2, 1)  # duels of the block, if it ends

    def noisy_lead() -> jax.Array:
        noisy = laplace(key, wins, epsilon, l1_sensitivity=1.0)
        return 2 * noisy - length.astype(noisy.dtype)

    lead = branch(ends, noisy_lead, lambda: jnp.zeros((), default_float()))
    weight = weight_of(length, epsilon)
    after = Released(
        duels=released.duels.at[pair].set(duels),
        lead=released.lead.at[pair].add(weight * lead),
        weight=released.weight.at[pair].add(jnp.where(ends, weight * length.astype(weight.dtype), 0)),
        noise=released.noise.at[pair].set(jnp.where(ends, weight / epsilon, released.noise[pair])),
    )
    return Private(lanes_last(private.wins.at[pair].set(wins))), Released(*map(lanes_last, after))


def weight_of(length: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns n / (n + 8 / epsilon^2), the weight of a block of n duels, [...] float in [0, 1].

    The sum of a block's n outcomes has a variance of at most n / 4, and the block's noise has the variance 2 /
    epsilon^2. Both together bound the variance of the fraction of wins, which is the weighted number of noisy wins
    divided by the weighted number N of duels. The weights minimise this bound; the minimum is 1 / (4 N).
    """
    length = length.astype(default_float())
    return length / (length + 8 / (epsilon * epsilon))


def evidence(released: Released, spread: jax.Array) -> Evidence:
    """Computes the `Evidence` that determines the bounds: L, N and allowance, for both orders of each pair.

    Args:
        released: the releases of `count_duel`.
        spread: [] float, exploration_rate ln t.
    """
    lead, weight, noise = released.lead, released.weight, released.noise
    return Evidence(lead - lead.T, weight + weight.T, round_product(4 * spread * (noise + noise.T)))


def params(*, epsilon: float, exploration_rate: float = 0.51) -> _exploration.Params:
    """Checks and builds the parameters of a grid point; rejects a budget if its noise would overflow integers."""
    return _exploration.params(epsilon=check_laplace(epsilon), exploration_rate=exploration_rate)


def claim(epsilon: float) -> Guarantee:
    """Returns the claim of a learner that uses outcomes only through `count_duel`."""
    return Guarantee.pure(
        epsilon,
        trust_model="central",
        privacy_unit="one duel's outcome",
        argument="each outcome enters one total, released once by Laplace noise, at L1 sensitivity 1",
        numerical_delta=laplace_delta(epsilon),
    )


def _is_between_blocks(duels: jax.Array) -> jax.Array:
    """Returns whether a pair with `duels` duels is between two blocks: `duels` is then 0 or a power of two."""
    return (duels & (duels - 1)) == 0
