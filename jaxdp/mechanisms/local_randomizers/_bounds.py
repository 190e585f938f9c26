"""Bounds on the magnitude and the spread of a randomizer's estimates, in float64 on the host, rounded up."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from jaxdp.core import default_float
from jaxdp.validation import check_count, check_probability


class Coordinate(Protocol):
    """A type of coordinate of an estimate, with the bounds of `LocalRandomizer` on its magnitude and its spread."""

    def range_bound(self, horizon: int, failure_prob: float) -> float: ...

    def second_moment(self) -> float: ...

    def variance_proxy(self) -> float: ...


class Additive(NamedTuple):
    """A coordinate of a bounded value with additive noise.

    Attributes:
        size: maximum absolute value of the coordinate.
        half_width: half the length of the interval that contains it.
        noise: "laplace" or "gaussian".
        scale: scale of Laplace noise, or standard deviation of Gaussian noise, >= 0.
        coordinates: number of coordinates of the whole value.
    """

    size: float
    half_width: float
    noise: str
    scale: float
    coordinates: int = 1

    def range_bound(self, horizon: int, failure_prob: float) -> float:
        """Returns a bound on the coordinate's magnitude in all rounds, by a union bound over coordinates and rounds."""
        # P(|Laplace| > b x) = exp(-x), and P(|Gaussian| > s x) <= 2 exp(-x^2 / 2)
        tail = math.log(self.coordinates) + math.log(horizon) - math.log(failure_prob)
        return self.size + self.scale * (tail if self.noise == "laplace" else math.sqrt(2 * (tail + math.log(2))))

    def second_moment(self) -> float:
        """Returns the sum of the second moments of the value and of the noise."""
        return self.size**2 + (2 if self.noise == "laplace" else 1) * self.scale**2

    def variance_proxy(self) -> float:
        """Returns the sum of the proxies of value (Hoeffding's lemma) and noise (Laplace: infinite if scale > 0)."""
        noise = math.inf if self.noise == "laplace" and self.scale > 0 else self.scale**2
        return self.half_width**2 + noise


class TwoPoints(NamedTuple):
    """An estimate with two possible values.

    Attributes:
        bottom: the smaller number.
        top: the larger number.
        smallest_prob: smallest probability of the larger number, over all values.
        largest_prob: largest probability of the larger number, over all values.
    """

    bottom: float
    top: float
    smallest_prob: float
    largest_prob: float

    def range_bound(self, horizon: int, failure_prob: float) -> float:
        """Returns the larger absolute value, a bound that always holds."""
        del horizon, failure_prob
        return max(abs(self.bottom), abs(self.top))

    def second_moment(self) -> float:
        """Returns the maximum second moment, which is attained at the smallest or at the largest probability."""
        return max(p * self.top**2 + (1 - p) * self.bottom**2 for p in (self.smallest_prob, self.largest_prob))

    def variance_proxy(self) -> float:
        """Returns the smallest proxy of the estimate at the probability nearest to 1/2, where this proxy is largest.

        Source:
            Kearns & Saul (1998); Buldygin & Moskvichova (2013), Theorem 2.1, for minimality.
        """
        p = min(max(0.5, self.smallest_prob), self.largest_prob)
        unit = 0.25 if abs(p - 0.5) < 1e-6 else (1 - 2 * p) / (2 * math.log((1 - p) / p))
        return (self.top - self.bottom) ** 2 * unit


class Bounds(NamedTuple):
    """The three host functions of a `LocalRandomizer`.

    Attributes:
        range_bound: (horizon, failure_prob, **values) -> float.
        second_moment: (**values) -> float.
        variance_proxy: (**values) -> float.
    """

    range_bound: Callable[..., float]
    second_moment: Callable[..., float]
    variance_proxy: Callable[..., float]


def bounds_of(params: Callable[..., Any], spread: Callable[[Any], Sequence[Coordinate]]) -> Bounds:
    """Builds bounds on the magnitude and the spread of an estimate, over its coordinates.

    Args:
        params: the randomizer's `params`.
        spread: (Params on the host) -> the types of coordinates that may attain the maximum in a bound.

    Returns:
        The bounds. They raise ValueError for values that params rejects, a horizon < 1, and a failure_prob outside
        (0, 1). Second moments and variance proxies also raise it if squares of reports are outside the range of
        float64.
    """

    def of_squares(name: str, values: Mapping[str, Any]) -> float:
        try:
            largest = max(getattr(part, name)() for part in spread(params(**values)))
        except OverflowError:
            largest = 0.0
        if largest < sys.float_info.min:
            shown = ", ".join(f"{name}={value}" for name, value in values.items())
            raise ValueError(f"squares of reports must be within the range of float64, got {shown}")
        return _up(largest)

    def range_bound(horizon: int, failure_prob: float, **values: Any) -> float:
        horizon, failure_prob = check_count("horizon", horizon), check_probability("failure_prob", failure_prob)
        return _up(max(part.range_bound(horizon, failure_prob) for part in spread(params(**values))))

    def second_moment(**values: Any) -> float:
        return of_squares("second_moment", values)

    def variance_proxy(**values: Any) -> float:
        return of_squares("variance_proxy", values)

    return Bounds(range_bound, second_moment, variance_proxy)


def _up(bound: float) -> float:
    """Increases a bound, because estimates in the default float type are off by a few units in the last place."""
    return bound * (1 + 32 * float(np.finfo(default_float()).eps))
