"""Converts reports of rewards to losses in [0, 1], for learners that require such losses."""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams
from jaxdp.validation import check_probability


@pytree_dataclass
class UnitLosses:
    """A decreasing affine map from reports to losses; the loss is 0 at `centre + reach`, and 1 at `centre - reach`.

    Attributes:
        centre: [] float, the centre of the interval of rewards.
        reach: [] float > 0, the maximum distance of a report from the centre; reports are clipped to this distance.
    """

    centre: Scalar
    reach: Scalar


def unit_losses(params: ScalarParams, report: str, horizon: int = 1, failure_prob: float = 0.05) -> UnitLosses:
    """Computes, on the host, the map from reports to losses in [0, 1].

    Let B be half the width of the interval of rewards. Reports by randomized response have the distance B c from the
    centre of the interval, with c = (e^epsilon + 1) / (e^epsilon - 1). Their reach is B c, so that losses are 0 or 1,
    up to rounding. (At epsilon = inf a report is the clipped reward; the reach is B, and losses are in [0, 1].)

    With additive noise the reach is B + m. Here m is s sqrt(2 ln(2 T / failure_prob)) for Gaussian noise of standard
    deviation s, and b ln(T / failure_prob) for Laplace noise of scale b. With probability >= 1 - failure_prob, m bounds
    the absolute values of all T noise variates.

    Args:
        params: parameters of the randomizer.
        report: name of the report, "rr", "laplace" or "gaussian".
        horizon: rounds T; ignored for randomized response.
        failure_prob: in (0, 1); it has no effect on randomized response.

    Raises:
        ValueError: if failure_prob is not in (0, 1), or the centre or the reach is outside the range of JAX's default
            float dtype.
    """
    check_probability("failure_prob", failure_prob)
    half, epsilon = float(params.width) / 2, float(params.epsilon)
    if report == "rr":
        reach = half / math.tanh(epsilon / 2)
    else:
        tail = math.log(horizon) - math.log(failure_prob)
        stddev = float(params.noise_stddev)
        shift = stddev * math.sqrt(2 * (tail + math.log(2))) if report == "gaussian" else 2 * half / epsilon * tail
        reach = half + shift
    centre = float(params.low) + half
    return UnitLosses(
        centre=scalar_leaf("the centre of rewards", centre), reach=scalar_leaf("the reach of reports", reach)
    )


def unit_loss(params: UnitLosses, report: jax.Array) -> jax.Array:
    """Returns the loss of a report, [...] float in [0, 1]."""
    return jnp.clip(0.5 - (report - params.centre) / (2 * params.reach), 0, 1)
