"""Conversion of claims to events of Google's dp-accounting."""

import math
from typing import Any


def dp_event(claim: Any, *, accountant: str = "pld", delta_apart: bool = False) -> Any:
    """Returns the dp-accounting event with the worst privacy loss that a claim allows.

    `accountant` is "pld" or "rdp", the accountant that will compose the event. With `delta_apart`, the event of an
    (epsilon, delta) claim covers only epsilon; without it, such a claim raises a ValueError. Raises an ImportError if
    dp-accounting is not installed.

    For a mu-GDP claim the event is the Gaussian mechanism with noise multiplier 1 / mu; for a zCDP claim, a zCDP event;
    for the claim "none", the event without privacy. For a pure claim it is binary randomized response at the same
    epsilon: every epsilon-DP mechanism is a post-processing of it (Kairouz, Oh & Viswanath, 2015). The accountant "pld"
    gets discrete Laplace noise at sensitivity 1 instead, which has the same two privacy losses with the same
    probabilities as randomized response.
    """
    if claim.is_private and claim.delta > 0 and not delta_apart:
        raise ValueError(
            f"delta_apart must be True for an (epsilon, delta) claim, as dp-accounting has no event with a delta, got "
            f"{delta_apart} for {claim}"
        )
    try:
        import dp_accounting
        from dp_accounting.dp_event import DiscreteLaplaceDpEvent
    except ImportError as error:
        raise ImportError("to_dp_event needs dp-accounting: pip install 'jaxdp[accounting]'") from error
    if not claim.is_private:
        return dp_accounting.NonPrivateDpEvent()
    if claim.rho is not None:
        return dp_accounting.ZCDpEvent(claim.rho)
    if claim.mu is not None:
        return dp_accounting.GaussianDpEvent(1 / claim.mu)
    if accountant == "pld":  # dp-accounting 0.6.0's PLD counts repeated randomized response once
        return DiscreteLaplaceDpEvent(claim.epsilon, sensitivity=1)
    odds = math.exp(-claim.epsilon)  # P(lie) / P(truth)
    response = dp_accounting.RandomizedResponseDpEvent(2 * odds / (1 + odds), num_buckets=2)
    # This event has no privacy loss. Accountants that would underestimate the loss of randomized response (PLD,
    # `REPLACE_SPECIAL`) reject it, and therefore reject the composition.
    nothing = dp_accounting.SampledWithoutReplacementDpEvent(1, 0, dp_accounting.GaussianDpEvent(1.0))
    return dp_accounting.ComposedDpEvent([response, nothing])
