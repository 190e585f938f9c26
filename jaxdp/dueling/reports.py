"""What a user reports of a duel in the local model."""

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar
from jaxdp.kernels import own_kernel
from jaxdp.mechanisms import randomized_response


def randomized_outcome(key: jax.Array, epsilon: Scalar, action: jax.Array, won: jax.Array) -> tuple[jax.Array, ...]:
    """The pair of arms, which everyone knows, and the randomized response of the user.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity reports the outcome itself.
        action: [2] int32, the pair.
        won: [] int32, 1 if the left arm won; clipped to {0, 1}.

    Returns:
        (action, response [] int32 in {0, 1}).

    Privacy: epsilon-DP in the local model; unit: one duel's outcome.
    """
    return action, randomized_response(key, jnp.clip(won, 0, 1), epsilon)


def local_claim(epsilon: float, delta: float = 0.0, mechanism: str = "randomized response") -> Guarantee:
    """The claim of a learner that sees each outcome through one report."""
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="local",
        privacy_unit="one duel's outcome",
        argument=f"each report is one release of {mechanism}",
    )


def tally_report(wins: jax.Array, report: tuple[jax.Array, ...]) -> jax.Array:
    """Counts a report for both arms: [num_arms, num_arms] integers, how often the row's arm is reported to have won."""
    (left, right), response = report
    winner = own_kernel(lambda *duel: jnp.where(duel[0] == 1, *duel[1:]), response, left, right)
    return wins.at[winner, left + right - winner].add(1)
