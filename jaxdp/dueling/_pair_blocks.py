"""Wins of pairs of arms that a curator releases with noise, in doubling blocks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar, default_float
from jaxdp.dueling._exploration import Params
from jaxdp.mechanisms import laplace
from jaxdp.numerics.compensated import rounded
from jaxdp.numerics.kernels import lanes_last


class Private(NamedTuple):
    """What the curator knows.

    Attributes:
        wins: [num_arms, num_arms] integer, above the diagonal: of the row's arm over the column's in the block that has
            begun. They are counted from zero again in a block's first duel.
    """

    wins: jax.Array


class Released(NamedTuple):
    """What has been released of pairs, and what follows from plays: [num_arms, num_arms], above the diagonal.

    Attributes:
        duels: integer, of the pair.
        lead: float, wins less losses of the row's arm in blocks that have ended, with noise; each block by its weight.
        weight: float >= 0, duels in blocks that have ended, each block by its weight.
        noise: float >= 0, the scale of the noise in the wins of the last block, times its weight.
    """

    duels: jax.Array
    lead: jax.Array
    weight: jax.Array
    noise: jax.Array


class Seen(NamedTuple):
    """What is known of pairs, for both orders of two arms: [num_arms, num_arms] float.

    Attributes:
        lead: wins less losses of the row's arm, with noise, by weight.
        weight: duels, by weight; zero where nothing has been released.
        allowance: what a lead's bound has beside its standard deviations, since tails of the noise are exponential.
    """

    lead: jax.Array
    weight: jax.Array
    allowance: jax.Array


def nothing(num_arms: int) -> tuple[Private, Released]:
    """Before the first round."""
    none, zeros = (jnp.zeros((num_arms, num_arms), kind) for kind in (jnp.result_type(int), default_float()))
    return Private(none), Released(none, zeros, zeros, zeros)


def tally(
    key: jax.Array, epsilon: Scalar, private: Private, released: Released, report: tuple[jax.Array, ...]
) -> tuple[Private, Released]:
    """Counts a duel; with the first one, the second, the fourth, the eighth, ... of its pair a block ends.

    Then the wins of the pair's lower arm since its last release get Laplace(1 / epsilon) noise. A duel of an arm with
    itself releases nothing.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity adds no noise.
        private: before.
        released: before.
        report: (pair of arms [2] int32, [] int32, 1 if the left arm won; clipped to {0, 1}).

    Returns:
        (private, released) after the duel.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Why: The pair and its place among the pair's duels follow from what was released before, so that an outcome
          enters one total, by at most 1, which is released once. Blocks concern different users and compose in
          parallel.
    """
    (left, right), won = report
    pair = jnp.minimum(left, right), jnp.maximum(left, right)
    won = jnp.clip(won, 0, 1).astype(private.wins.dtype)
    won = jnp.where(left < right, won, 1 - won)
    before = released.duels[pair]
    total = jnp.where(_is_between(before), 0, private.wins[pair]) + won
    duels = before + 1

    def noisy_lead() -> jax.Array:
        noisy = laplace(key, total, epsilon, l1_sensitivity=1.0)
        return 2 * noisy - length.astype(noisy.dtype)

    length = jnp.maximum(duels // 2, 1)
    ends = _is_between(duels) & (left != right)
    lead = jax.lax.cond(ends, noisy_lead, lambda: jnp.zeros((), default_float()))
    share = weight_of(length, epsilon)
    after = Released(
        released.duels.at[pair].set(duels),
        released.lead.at[pair].add(share * lead),
        released.weight.at[pair].add(jnp.where(ends, share * length.astype(share.dtype), 0)),
        released.noise.at[pair].set(jnp.where(ends, share / epsilon, released.noise[pair])),
    )
    return Private(lanes_last(private.wins.at[pair].set(total))), Released(*map(lanes_last, after))


def weight_of(length: jax.Array, epsilon: Scalar) -> jax.Array:
    """The weight of a block of n duels, n / (n + 8 / epsilon^2): [...] float in [0, 1].

    The variance of n outcomes' sum is at most n / 4, that of the noise is 2 / epsilon^2. The weight is inversely
    proportional to the total's variance over n, which makes that of the weighted share of wins the least; it is
    1 / (4 N) where N is the weighted number of duels.
    """
    length = length.astype(default_float())
    return length / (length + 8 / (epsilon * epsilon))


def seen(released: Released, spread: jax.Array) -> Seen:
    """Both orders of all pairs.

    Args:
        released: by `tally`.
        spread: [] float, exploration_rate ln t.
    """
    lead, weight, noise = released.lead, released.weight, released.noise
    return Seen(lead - lead.T, weight + weight.T, rounded(4 * spread * (noise + noise.T)))


def claim(epsilon: float) -> Guarantee:
    """Of a learner that sees duels through `tally` alone."""
    return Guarantee.pure(
        epsilon,
        trust_model="central",
        privacy_unit="one duel's outcome",
        argument="each outcome enters one total, released once by Laplace noise, at L1 sensitivity 1",
    )


def privatize(key, params: Params, public, context: None, action, feedback):
    """Central model: the curator sees the pair and who won."""
    del key, params, public, context
    return action, feedback


def _is_between(duels: jax.Array) -> jax.Array:
    """Whether no block has begun after so many duels of a pair: 0, 1, 2, 4, 8, ..."""
    return (duels & (duels - 1)) == 0
