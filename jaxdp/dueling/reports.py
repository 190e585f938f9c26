"""What a user reports of a duel in the local model: the pair of arms as it is, and a randomized or noisy outcome."""

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar
from jaxdp.mechanisms import LabelParams, ScalarParams, label_channel, scalar_channel
from jaxdp.numerics.kernels import own_kernel

RESPONSE = label_channel(2)  # randomized response
NOISY = scalar_channel("gaussian", binary=True)


def randomized_outcome(key: jax.Array, epsilon: Scalar, action: jax.Array, won: jax.Array) -> tuple[jax.Array, ...]:
    """The pair of arms, which everyone knows, and the user's outcome by randomized response.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity reports the outcome itself.
        action: [2] int32, the pair.
        won: [] int32, 1 if the left arm won; clipped to {0, 1}.

    Returns:
        (action, response [] int32 in {0, 1}).

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one duel's outcome.
    """
    return action, RESPONSE.report(key, LabelParams(epsilon=epsilon), won)


def randomized_outcomes(
    key: jax.Array, epsilon: Scalar, counts: jax.Array, wins: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Totals of `randomized_outcome`: how often each pair was played, and how many of its users reported a win.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity reports the outcomes themselves.
        counts: [num_arms^2] integers, duels of each pair.
        wins: [num_arms^2] integers, those of them that the left arm won; clipped to [0, counts].

    Returns:
        (counts, [num_arms^2] integers in [0, counts]: duels of each pair that the left arm is reported to have won).

    Privacy:
        - As `randomized_outcome`: the totals have the law of its reports, added up.
    """
    assert RESPONSE.total is not None  # of labels
    won = jnp.clip(wins, 0, counts).astype(counts.dtype)
    return counts, RESPONSE.total(key, LabelParams(epsilon=epsilon), won, counts)


def noisy_outcome(
    key: jax.Array, epsilon: Scalar, noise_stddev: Scalar, action: jax.Array, won: jax.Array
) -> tuple[jax.Array, ...]:
    """The pair of arms, which everyone knows, and the outcome with the user's Gaussian noise.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0.
        noise_stddev: [] float >= 0, calibrated to epsilon and a delta at L2 sensitivity 1; zero at infinity.
        action: [2] int32, the pair.
        won: [] int32, 1 if the left arm won; clipped to {0, 1}.

    Returns:
        (action, report [] float: the outcome with noise).

    Privacy:
        - Claim: (epsilon, delta)-DP in the local model.
        - Unit: one duel's outcome.
    """
    return action, NOISY.report(key, ScalarParams(epsilon=epsilon, noise_stddev=noise_stddev), won)


def local_claim(epsilon: float, delta: float = 0.0, mechanism: str = "randomized response") -> Guarantee:
    """The claim of a learner to which each outcome is reported once, by this mechanism."""
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="local",
        privacy_unit="one duel's outcome",
        argument=f"each report is one release of {mechanism}",
    )


def tally_report(wins: jax.Array, report: tuple[jax.Array, ...]) -> jax.Array:
    """Wins with one report more: [num_arms, num_arms] integers, how often the row's arm is reported to have won.

    Args:
        wins: before.
        report: as `randomized_outcome` returns it.
    """
    (left, right), response = report
    winner = own_kernel(lambda response, left, right: jnp.where(response == 1, left, right), response, left, right)
    loser = left + right - winner
    return wins.at[winner, loser].add(1)
