"""Reports of a duel in the local model: the pair of arms unchanged, and a randomized or noisy outcome."""

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Scalar
from jaxdp.mechanisms import LabelParams, ScalarParams, label_randomizer, scalar_randomizer
from jaxdp.numerics.kernels import own_kernel

RESPONSE = label_randomizer(2)  # randomized response
NOISY = scalar_randomizer("gaussian", binary=True)


def randomized_outcome(key: jax.Array, epsilon: Scalar, action: jax.Array, won: jax.Array) -> tuple[jax.Array, ...]:
    """Returns the pair of arms, which is public, and the user's outcome after randomized response.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; at infinity the response is the outcome.
        action: [2] int32, the pair.
        won: [] int32, 1 if the left arm won, else 0 (clipped).

    Returns:
        (action, response [] int32 in {0, 1}).

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one duel's outcome.
    """
    return action, RESPONSE.report(key, LabelParams(epsilon=epsilon), won)


def best_pair(wins: jax.Array) -> jax.Array:
    """Returns the recommended arm paired with itself, [2] int32.

    An arm beats another if it has more reported wins than losses against it. The recommended arm beats the largest
    number of arms; the first such arm if there are several.

    Args:
        wins: [num_arms, num_arms] integer, number of duels that the row's arm is reported to have won against the
            column's arm.
    """
    best_arm = jnp.argmax(jnp.sum(wins > wins.T, axis=1, dtype=jnp.int32)).astype(jnp.int32)
    return jnp.stack([best_arm, best_arm])


def report_outcome(key, params, public, context, action, feedback) -> tuple[jax.Array, ...]:
    """Returns the `randomized_outcome` at `params.epsilon`, as a `PrivatizeFn`."""
    del public, context
    return randomized_outcome(key, params.epsilon, action, feedback)


def randomized_outcomes(
    key: jax.Array, epsilon: Scalar, counts: jax.Array, wins: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Draws totals of `randomized_outcome`: the numbers of duels and of reported wins of each pair.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; at infinity the responses are the outcomes.
        counts: [num_arms^2] integers, number of duels of each pair.
        wins: [num_arms^2] integers, number of duels of each pair that the left arm won; clipped to [0, counts].

    Returns:
        (counts, [num_arms^2] integers in [0, counts]: the number of each pair's duels that the left arm is reported to
        have won).

    Privacy:
        - As for `randomized_outcome`: the totals have the distribution of sums of its reports.
    """
    assert RESPONSE.total is not None  # label randomizers have totals
    won = jnp.clip(wins, 0, counts).astype(counts.dtype)
    return counts, RESPONSE.total(key, LabelParams(epsilon=epsilon), won, counts)


def noisy_outcome(
    key: jax.Array, epsilon: Scalar, noise_stddev: Scalar, action: jax.Array, won: jax.Array
) -> tuple[jax.Array, ...]:
    """Returns the pair of arms, which is public, and the outcome plus the user's Gaussian noise.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0.
        noise_stddev: [] float >= 0, calibrated to epsilon and delta at L2 sensitivity 1; zero at epsilon = inf.
        action: [2] int32, the pair.
        won: [] int32, 1 if the left arm won, else 0 (clipped).

    Returns:
        (action, report [] float: the outcome plus noise).

    Privacy:
        - Claim: (epsilon, delta)-DP in the local model.
        - Unit: one duel's outcome.
    """
    return action, NOISY.report(key, ScalarParams(epsilon=epsilon, noise_stddev=noise_stddev), won)


def local_claim(epsilon: float, delta: float = 0.0, mechanism: str = "randomized response") -> Guarantee:
    """Returns the claim of a learner that receives each outcome once, through this local mechanism."""
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="local",
        privacy_unit="one duel's outcome",
        argument=f"each report is one release of {mechanism}",
    )


def count_report(wins: jax.Array, report: tuple[jax.Array, ...]) -> jax.Array:
    """Adds one report to the matrix of wins.

    Args:
        wins: [num_arms, num_arms] integers, number of duels that the row's arm is reported to have won against the
            column's arm.
        report: as `randomized_outcome` returns it.

    Returns:
        The wins after the report, [num_arms, num_arms].
    """
    (left, right), response = report
    winner = own_kernel(lambda response, left, right: jnp.where(response == 1, left, right), response, left, right)
    loser = left + right - winner
    return wins.at[winner, loser].add(1)
