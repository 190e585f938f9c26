"""Computes learning rates and regret bounds of `mirror_descent` on the host."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from jaxdp.core.conversions import zcdp_rho
from jaxdp.mechanisms import zcdp_gaussian
from jaxdp.validation import check_choice, check_count, check_epsilon, check_horizon

FORMS = ("sampling", "noisy_losses", "intervals")
NOISES = ("gaussian", "laplace")
ROUNDING = 1e-6  # bound on the relative rounding error of a switch rate in 32-bit floats


class MirrorParameters(NamedTuple):
    """Parameters of `mirror_descent`.

    Attributes:
        learning_rate: > 0; with "intervals", the rate of fixed share over levels.
        noise: >= 0, standard deviation of Gaussian noise or scale of Laplace noise; 0 with "sampling".
        regret_bound: bound on the expected regret against every sequence with the given number of switches, for
            oblivious losses; at most the horizon.
        interval_rates: with "intervals", the rate of Hedge on each level, [num_levels] > 0, ordered from the shortest
            intervals to the longest; otherwise empty.
    """

    learning_rate: float
    noise: float
    regret_bound: float
    interval_rates: tuple[float, ...] = ()


def check_switches(num_switches: int, horizon: int) -> int:
    """Checks that the number of switches is an integer in [1, horizon), and returns it as an int.

    Raises:
        ValueError: if num_switches is not an integer in [1, horizon), or horizon < 2.
    """
    if horizon < 2:
        raise ValueError(
            f"horizon must be >= 2, as num_switches is in [1, horizon), got {horizon}: for a single round use hedge or "
            "exponential_weights, which do not switch"
        )
    if check_count("num_switches", num_switches) >= horizon:
        raise ValueError(f"num_switches must be < horizon, got {num_switches} at horizon {horizon}")
    return int(num_switches)


def tracking_nats(num_experts: int, num_switches: int, horizon: int) -> float:
    """Returns ln(1 / pi) of a sequence with S < T switches; pi is the fixed share prior at the rate S / (T - 1)."""
    rate = num_switches / (horizon - 1)
    entropy = -float(xlogy(rate, rate) + xlogy(1 - rate, 1 - rate))
    return math.log(num_experts) + num_switches * math.log(num_experts - 1) + (horizon - 1) * entropy


def contraction(num_experts: int, num_switches: int, horizon: int) -> float:
    """Returns an upper bound, in [0, 1], on the factor by which a fixed share step contracts the range of ln(w / w').

    w and w' are the weights under neighbouring losses. `docs/proofs/mirror_descent.md` contains the proof.

    Args:
        num_experts: N, >= 2.
        num_switches: S, in [1, T).
        horizon: T, >= 2.

    Source:
        Birkhoff (1957), "Extensions of Jentzsch's theorem": tanh(d / 4) for the diameter d = 2 |ln r|, where r is the
        ratio of a diagonal entry of the step's matrix to another entry.
    """
    switch_rate, share_of_one = num_switches / (horizon - 1), 1 / (num_experts - 1)
    # The switch rate in the compiled program is a rounded float. The contraction is weakest at one end of the interval
    # of possible rounded values.
    rates = (switch_rate * (1 - ROUNDING), min(1.0, switch_rate * (1 + ROUNDING)))
    return min(1.0, max(abs(1 - rate - rate * share_of_one) / (1 - rate + rate * share_of_one) for rate in rates))


def draws_reached(num_experts: int, num_switches: int, horizon: int) -> float:
    """Returns D in (0, T]; for "sampling" with fixed share, replacing a loss vector costs <= D * rate^2 / 2 in zCDP.

    D is k^2 + k^4 + ... + k^(2 T), where k is the `contraction`, but at least `ROUNDING`.
    """
    squared = contraction(num_experts, num_switches, horizon) ** 2
    if squared == 1:  # weights are only permuted, so nothing is forgotten
        return float(horizon)
    left = -math.expm1(horizon * math.log(squared)) if squared > 0 else 1.0
    return min(float(horizon), max(squared * left / (1 - squared), ROUNDING))


def mirror_descent_parameters(
    *,
    epsilon: float,
    delta: float = 0.0,
    num_experts: int,
    horizon: int,
    num_switches: int,
    form: str = "sampling",
    noise: str = "gaussian",
) -> MirrorParameters:
    """Returns the learning rate and the noise of `mirror_descent` with fixed share, and the proved regret bound.

    Args:
        epsilon: privacy budget, > 0; infinity gives the non-private tuning.
        delta: in (0, 1); ignored for form "noisy_losses" with Laplace noise.
        num_experts: N, >= 2.
        horizon: T, >= 2.
        num_switches: the comparator's number of switches S, in [1, T).
        form: "sampling", "noisy_losses" or "intervals".
        noise: "gaussian" or "laplace", for form "noisy_losses"; ignored for other forms.

    Returns:
        The parameters.

    Raises:
        ValueError: if an argument is out of range.

    Source:
        As `mirror_descent`.

    Deviations:
        The bound holds at the returned rate. With "sampling", the learner's rate may be slightly smaller, because
        rounding costs privacy. In 32-bit mode with a long horizon, a rate above 1/8 may be reduced to 1/8.

    Examples:
        >>> best = mirror_descent_parameters(epsilon=1.0, delta=1e-6, num_experts=10, horizon=10**5, num_switches=5)
        >>> f"{best.learning_rate:.2e}", round(best.regret_bound / 10**5, 2)
        ('1.10e-03', 0.62)
    """
    epsilon, num_experts = check_epsilon(epsilon), check_count("num_experts", num_experts, 2)
    horizon = check_horizon(horizon)
    num_switches = check_switches(num_switches, horizon)
    check_choice("form", form, FORMS)
    nats = tracking_nats(num_experts, num_switches, horizon)
    if form == "noisy_losses" and check_choice("noise", noise, NOISES) == "laplace":
        return _laplace(nats, horizon, num_experts / epsilon)
    rho = zcdp_rho(epsilon, delta)
    if form == "sampling":
        reached = draws_reached(num_experts, num_switches, horizon)
        rate = min(math.sqrt(2 * rho / reached), math.sqrt(8 * nats / horizon))
        return MirrorParameters(rate, 0.0, min(float(horizon), nats / rate + rate * horizon / 8))
    if form == "noisy_losses":
        stddev = zcdp_gaussian(rho, math.sqrt(num_experts))
        rate, bound = _gaussian(nats, horizon, stddev)
        return MirrorParameters(rate, stddev, min(float(horizon), bound))
    return _intervals(num_experts, num_switches, horizon, rho)


def _gaussian(nats: float, horizon: int, stddev: float) -> tuple[float, float]:
    """Returns the rate that minimises nats / rate + rate * horizon * (1/8 + stddev^2 / 2), and the minimum."""
    scale = horizon * (1 / 8 + stddev**2 / 2)
    return math.sqrt(nats / scale), 2 * math.sqrt(nats * scale)


def _laplace(nats: float, horizon: int, scale: float) -> MirrorParameters:
    from scipy.optimize import minimize_scalar  # imported here because SciPy is slow to import

    def bound(rate: float) -> float:
        return nats / rate + horizon * (rate / 8 - math.log1p(-((rate * scale) ** 2)) / rate)

    largest = math.sqrt(8 * nats / horizon)
    if scale == 0:
        return MirrorParameters(largest, 0.0, min(float(horizon), bound(largest)))
    end = math.log(min(largest, (1 - 1e-9) / scale))
    minimum: Any = minimize_scalar(lambda log: bound(math.exp(log)), bounds=(end - 20, end), method="bounded")
    rate = math.exp(float(minimum.x))
    return MirrorParameters(rate, scale, min(float(horizon), bound(rate)))


def _intervals(num_experts: int, num_switches: int, horizon: int, rho: float) -> MirrorParameters:
    # A segment of the comparator is a union of dyadic intervals, with at most two intervals of each level.
    levels = horizon.bit_length()  # as the learner; a logarithm would be rounded
    lengths = 2.0 ** np.arange(levels)
    of_privacy = np.sqrt(2 * (rho / (2 * levels)) / lengths)
    rates = np.minimum(of_privacy, np.sqrt(8 * math.log(num_experts) / lengths))
    used = np.minimum(2 * (num_switches + 1), np.ceil(horizon / lengths))
    inside = float(np.sum(used * (math.log(num_experts) / rates + rates * lengths / 8)))
    stddev = zcdp_gaussian(rho / 2, math.sqrt(levels))
    moves = level_switches(num_switches, horizon)
    rate, between = _gaussian(tracking_nats(levels, moves, horizon), horizon, stddev)
    return MirrorParameters(rate, stddev, min(float(horizon), inside + between), tuple(map(float, rates)))


def level_switches(num_switches: int, horizon: int) -> int:
    """Returns a bound on the number of level changes if a comparator with S switches is split into dyadic intervals."""
    return min(horizon - 1, math.ceil(2 * (num_switches + 1) * math.log2(horizon)))
