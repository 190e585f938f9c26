"""Learning rates and regret bounds of `counter_weights`, computed on the host."""

import functools
import math
from typing import NamedTuple

from jaxdp.core.conversions import zcdp_rho
from jaxdp.experts._sequence_class import Sequences
from jaxdp.experts.classes import static
from jaxdp.mechanisms import toeplitz_counter
from jaxdp.mechanisms.continual_counting import Counter
from jaxdp.validation import check_count, check_epsilon, check_horizon


class CounterParameters(NamedTuple):
    """Parameters of `counter_weights`.

    Attributes:
        learning_rate: > 0.
        rho: the zCDP budget of the counter; infinity for the non-private algorithm.
        noise_stddev: >= 0, standard deviation of the noise in one expert's total after the last round. Totals after
            earlier rounds have at most this standard deviation.
        regret_bound: bound on the expected regret, for oblivious losses, against every sequence of the class that has
            the given number of switches; None if no bound is proved. With noise, a bound is proved only for `static()`.
    """

    learning_rate: float
    rho: float
    noise_stddev: float
    regret_bound: float | None


@functools.lru_cache(maxsize=64)
def counter_of(horizon: int) -> Counter:
    """Returns the counter for `horizon` rounds; the counter's decays and weights are computed only once."""
    return toeplitz_counter(horizon=horizon)


def static_bound(learning_rate: float, variance: float, *, num_experts: int, horizon: int) -> float:
    """Returns the proved regret bound of `counter_weights` over the class `static()`, capped at the horizon."""
    # `variance` is the variance of the noise in one expert's total after the last round.
    growth = learning_rate * (horizon / 8 + variance / 2)
    return min(float(horizon), math.log(num_experts) / learning_rate + growth)


def counter_weights_parameters(
    *,
    epsilon: float,
    delta: float,
    num_experts: int,
    horizon: int,
    num_switches: int = 0,
    sequences: Sequences | None = None,
) -> CounterParameters:
    """Returns the learning rate of `counter_weights`, with the regret bound at this rate if one is proved.

    Let v be the variance of the noise in one expert's total after the last round. Over the class `static()`, the rate
    minimises the bound ln N / rate + rate * (T / 8 + v / 2). Over other classes, let p be the prior probability of the
    comparator. The rate is the smaller of sqrt(8 * ln(1 / p) / T), which is best without noise, and 1 / sqrt(v). With
    noise, no bound is proved for it; in measurements, all rates from 1 / sqrt(v) to 1.5 / sqrt(v) had about the same
    regret.

    Args:
        epsilon: privacy budget, > 0; infinity gives the non-private tuning.
        delta: in (0, 1).
        num_experts: N, >= 2.
        horizon: T, >= 1.
        num_switches: switches S of the comparator, >= 0.
        sequences: the class, by default `static()`.

    Returns:
        The parameters.

    Raises:
        ValueError: if an argument is out of range, or the class has no sequence with S switches.

    Source:
        As `counter_weights`.

    Examples:
        >>> best = counter_weights_parameters(epsilon=1.0, delta=1e-6, num_experts=10, horizon=10**5)
        >>> round(best.regret_bound)
        369
    """
    epsilon, num_experts = check_epsilon(epsilon), check_count("num_experts", num_experts, 2)
    horizon, num_switches = check_horizon(horizon, spare=1), check_count("num_switches", num_switches, 0)
    chain = (static() if sequences is None else sequences)(num_experts=num_experts, horizon=horizon)
    nats = chain.log_inverse_prior(num_switches) if num_switches < horizon else math.inf
    if not nats < math.inf:
        raise ValueError(f"num_switches must be < horizon, and a possible number for {chain.name}, got {num_switches}")
    rho, counter = zcdp_rho(epsilon, delta), counter_of(horizon)
    noise = counter.params(rho=rho, l2_sensitivity=math.sqrt(num_experts))
    variance = float(counter.variance(noise, horizon))
    if chain.name == "static()":
        rate = math.sqrt(nats / (horizon / 8 + variance / 2))
        bound = static_bound(rate, variance, num_experts=num_experts, horizon=horizon)
        return CounterParameters(rate, rho, math.sqrt(variance), bound)
    rate = math.sqrt(8 * nats / horizon)
    if variance == 0:
        return CounterParameters(rate, rho, 0.0, min(float(horizon), math.sqrt(nats * horizon / 2)))
    return CounterParameters(min(rate, 1 / math.sqrt(variance)), rho, math.sqrt(variance), None)
