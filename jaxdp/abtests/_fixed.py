"""Power, required users, minimum detectable lift and minimum epsilon of the fixed test.

The fixed test looks once at the data, after a planned number of users. It is the two-sided two-proportion z-test, which
compares the difference of the arms' counts with the standard deviation of this difference under equal rates, including
the noise of the release. The test is asymptotic, so its type I error is close to `failure_prob`, but not bounded by it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import root_scalar
from scipy.special import ndtr, ndtri

from jaxdp.abtests._rates import report_rate

MOST_USERS = 2.0**53  # float64 represents all integers up to this one
LEAST_EPSILON = 1e-9


class Setting(NamedTuple):
    """The planned values of a test.

    Attributes:
        rate: probability of a 1 in the control arm, in (0, 1).
        lift: relative difference of the rates; the treatment arm's rate is `rate * (1 + lift)`, in (0, 1).
        epsilon: privacy budget of each user's bit.
        trust: "local" or "central".
        power: probability of detecting the lift.
        failure_prob: type I error, the probability of declaring equal arms different.
    """

    rate: float
    lift: float
    epsilon: float
    trust: str
    power: float
    failure_prob: float

    @property
    def true_rates(self) -> tuple[float, float]:
        """The probabilities that a user's bit is 1, for control and then treatment."""
        return self.rate, self.rate * (1 + self.lift)

    @property
    def rates(self) -> tuple[float, float]:
        """The probabilities that a report (local) or a bit (central) is 1, for control and then treatment."""
        if self.trust == "central":
            return self.true_rates
        control, treatment = self.true_rates
        return report_rate(control, self.epsilon), report_rate(treatment, self.epsilon)

    @property
    def noise_variance(self) -> float:
        """The variance that a curator's noise adds to the difference of the arms' counts; 0 for local trust."""
        return 0.0 if self.trust == "local" else count_noise_variance(self.epsilon)


def count_noise_variance(epsilon: float) -> float:
    """Returns the variance that two-sided geometric noise on both arms' counts adds to their difference.

    Each user is in one arm, and the sensitivity of an arm's count is 1, so each count may spend the whole epsilon.
    """
    if epsilon > 700:
        return 0.0
    square = math.sinh(epsilon / 2) ** 2
    return 1 / square if square > 0 else math.inf


def fixed_power(setting: Setting, users: float) -> float:
    """Returns the probability that the test with `users` users in total finds a difference of the planned sign.

    The probability is a normal approximation at the planned rates. Half of the users are in each arm.
    """
    signal, null, alternative = _moments(setting, users / 2)
    return float(ndtr((signal + ndtri(setting.failure_prob / 2) * null) / alternative))


def fixed_users(setting: Setting) -> int:
    """Returns the smallest even total number of users with which the test has the planned power.

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
        if 2 * high > MOST_USERS:
            raise ValueError(
                f"epsilon and lift must need at most 2^53 users, got epsilon={setting.epsilon:g}, "
                f"lift={setting.lift:g} at rate={setting.rate:g}"
            )
    if high == 2.0 and excess(low) >= 0:
        return 2
    return 2 * math.ceil(_root(excess, low, high, 1e-3) - 1e-3)


def _moments(setting: Setting, arm_users: float) -> tuple[float, float, float]:
    """Returns the magnitude of the expected difference of counts, and the difference's two standard deviations.

    The first standard deviation is for equal rates, and the second is for the planned rates.
    """
    control, treatment = setting.rates
    pooled, noise = (control + treatment) / 2, setting.noise_variance
    null = 2 * pooled * (1 - pooled) * arm_users + noise
    alternative = (control * (1 - control) + treatment * (1 - treatment)) * arm_users + noise
    return abs(treatment - control) * arm_users, math.sqrt(null), math.sqrt(alternative)


def smallest_lift(setting: Setting, users: float) -> float:
    """Returns the minimum detectable lift with `users` users in total; NaN if no lift is detectable.

    It is the lift of the planned sign that is nearest to 0 and has the planned power.
    """
    sign = math.copysign(1.0, setting.lift)
    largest_size = 1.0 if sign < 0 else 1 / setting.rate - 1

    def missing(size: float) -> float:
        return fixed_power(setting._replace(lift=sign * size), users) - setting.power

    largest_size *= 1 - 1e-12  # keeps rates inside (0, 1)
    if missing(largest_size) < 0:
        return math.nan
    return sign * _root(missing, 1e-15 * largest_size, largest_size, 1e-12 * largest_size)


def least_epsilon(setting: Setting, users: float) -> float:
    """Returns the minimum epsilon, at least 1e-9, at which `users` users in total give the planned power.

    The result is infinity if only the non-private test has this power, and NaN if even the non-private test has less.
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
