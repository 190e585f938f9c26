"""The test that looks once, after a planned number of users: power, users needed, smallest lift, least epsilon.

It is the two-sided two-proportion z-test: it compares the difference of the arms' counts with the standard deviation of
this difference under equal rates, including the noise of the release. The test is asymptotic: its error is close to
`failure_prob`, but not bounded by it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import root_scalar
from scipy.special import ndtr, ndtri

from jaxdp.abtests._rates import report_rate

MOST_USERS = 2.0**53  # float64 holds all whole numbers up to this one
LEAST_EPSILON = 1e-9


class Setting(NamedTuple):
    """The planned values of a test.

    Attributes:
        rate: share of ones in the control arm, in (0, 1).
        lift: relative difference of the rates; the treatment arm's rate is `rate * (1 + lift)`, in (0, 1).
        epsilon: privacy budget of each user's bit.
        trust: "local" or "central".
        power: probability of detecting the lift.
        failure_prob: probability of calling equal arms different.
    """

    rate: float
    lift: float
    epsilon: float
    trust: str
    power: float
    failure_prob: float

    @property
    def true_rates(self) -> tuple[float, float]:
        """Rates of the bits, control first."""
        return self.rate, self.rate * (1 + self.lift)

    @property
    def rates(self) -> tuple[float, float]:
        """Rates of the reports (local) or of the bits (central), control first."""
        if self.trust == "central":
            return self.true_rates
        control, treatment = self.true_rates
        return report_rate(control, self.epsilon), report_rate(treatment, self.epsilon)

    @property
    def noise_variance(self) -> float:
        """Variance that a curator's noise adds to the difference of the arms' counts; 0 for local trust."""
        return 0.0 if self.trust == "local" else count_noise_variance(self.epsilon)


def count_noise_variance(epsilon: float) -> float:
    """Returns the variance that two-sided geometric noise on two counts, one for each arm, adds to their difference.

    Each user is in one arm and changes the arm's count by at most 1, so each count may spend the whole epsilon.
    """
    return 0.0 if epsilon > 700 else 1 / math.sinh(epsilon / 2) ** 2


def fixed_power(setting: Setting, users: float) -> float:
    """Returns the probability that the test finds a difference of the planned sign with `users` users of both arms.

    The probability is the normal approximation, at the planned rates. Half of the users are in each arm.
    """
    signal, null, alternative = _moments(setting, users / 2)
    return float(ndtr((signal + ndtri(setting.failure_prob / 2) * null) / alternative))


def fixed_users(setting: Setting) -> int:
    """Returns the least even number of users, of both arms together, at which the test has the planned power.

    Raises:
        ValueError: if more than 2^53 users are needed.
    """
    z_error, z_power = -float(ndtri(setting.failure_prob / 2)), float(ndtri(setting.power))

    def excess(arm_users: float) -> float:
        signal, null, alternative = _moments(setting, arm_users)
        return signal - z_error * null - z_power * alternative

    low, high = 1.0, 2.0
    while excess(high) < 0:
        low, high = high, 2 * high
        if high > MOST_USERS:
            raise ValueError(
                f"epsilon and lift must need at most 2^53 users, got epsilon={setting.epsilon:g}, "
                f"lift={setting.lift:g} at rate={setting.rate:g}"
            )
    if high == 2.0 and excess(low) >= 0:
        return 2
    return 2 * math.ceil(_root(excess, low, high, 1e-3) - 1e-3)


def _moments(setting: Setting, arm_users: float) -> tuple[float, float, float]:
    """Returns the absolute value of the mean difference of counts, and the difference's standard deviations.

    These are the standard deviations under equal rates and under the planned rates.
    """
    control, treatment = setting.rates
    pooled, noise = (control + treatment) / 2, setting.noise_variance
    null = 2 * pooled * (1 - pooled) * arm_users + noise
    alternative = (control * (1 - control) + treatment * (1 - treatment)) * arm_users + noise
    return abs(treatment - control) * arm_users, math.sqrt(null), math.sqrt(alternative)


def smallest_lift(setting: Setting, users: float) -> float:
    """Returns the lift of the planned sign nearest 0 at which `users` of both arms give the planned power.

    Returns NaN if no lift does.
    """
    sign = math.copysign(1.0, setting.lift)
    largest_size = 1.0 if sign < 0 else 1 / setting.rate - 1

    def missing(size: float) -> float:
        return fixed_power(setting._replace(lift=sign * size), users) - setting.power

    largest_size *= 1 - 1e-12  # so that rates stay inside (0, 1)
    if missing(largest_size) < 0:
        return math.nan
    return sign * _root(missing, 1e-15 * largest_size, largest_size, 1e-12 * largest_size)


def least_epsilon(setting: Setting, users: float) -> float:
    """Returns the least epsilon at which `users` of both arms give the planned power, but at least 1e-9.

    Returns infinity if only the test without privacy has this power, and NaN if not even that test has it.
    """

    def missing(log_epsilon: float) -> float:
        return fixed_power(setting._replace(epsilon=math.exp(log_epsilon)), users) - setting.power

    if fixed_power(setting._replace(epsilon=math.inf), users) < setting.power:
        return math.nan
    low, high = math.log(LEAST_EPSILON), math.log(700.0)
    if missing(low) >= 0:
        return LEAST_EPSILON
    if missing(high) < 0:
        return math.inf
    return math.exp(_root(missing, low, high, 1e-10))


def _root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    return float(root_scalar(function, bracket=(low, high), method="brentq", xtol=tolerance).root)
