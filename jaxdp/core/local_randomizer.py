"""Local randomizers: the message that a user's device sends in the local model, and the server's estimate from it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, describe
from jaxdp.core.shown import html_of


class ReportFn(Protocol):
    """The trust boundary: returns the message of a user whose value is `value`.

    Clips the value to the randomizer's domain first, so that the claim holds for every value: one outside the domain
    counts as one at its edge, NaN as one fixed value of the domain. Then it adds noise; at epsilon = inf it returns the
    clipped value itself. May read: params, the value, its own key (once). Must not depend on anything else. Returns a
    pytree, the same structure for every value. The randomizer's factory documents the form of a value, and whether it
    may hold several users' values at once.
    """

    def __call__(self, key: jax.Array, params: Any, value: Any) -> Any: ...


class EstimateFn(Protocol):
    """Returns the server's estimate from a report: a float whose mean is the clipped value.

    May read: params, and the report alone, so that an estimate costs no privacy. Averages of estimates do not depend on
    how values were hidden. If the values are labels and not numbers, it estimates the one-hot vector.
    """

    def __call__(self, params: Any, report: Any) -> Any: ...


class TotalFn(Protocol):
    """Draws the sum of `count` users' reports at once: it has the distribution of the sum of single reports.

    `totals` describes the users' values: for values 0 or 1, how many are 1; for more labels, how many have each label
    (the sum of reports then counts the reports in the same way); for moments with Gaussian noise, the sums of users'
    exact moments. The result is unspecified if `totals` could not be the sum of `count` values. It stands for `count`
    releases, and this is its cost in privacy. The auditor's tape records a moment total as one release, of the sum;
    other totals are not recorded.
    """

    def __call__(self, key: jax.Array, params: Any, totals: Any, count: jax.Array) -> Any: ...


class LocalRandomizer(NamedTuple):
    """A randomizer that each user applies to one value.

    A locally private algorithm consists of one and of a black box that reads estimates. The black box needs bounds on
    the size and the spread of estimates: `range_bound`, `second_moment` and `variance_proxy`. They are computed on the
    host, each for the worst coordinate of an array, and are never too small.

    Attributes:
        params: (**values) -> Params. On the host: validates one grid point and calibrates its noise in float64.
        guarantee: (**values) -> Guarantee. On the host: the claim for one report, for the same values.
        report: returns the message of the device.
        estimate: returns the server's estimate from a report.
        total: draws the sum of many reports at once; None if the values' totals do not determine its distribution.
        range_bound: (horizon, failure_prob, **values) -> M. With probability 1 - failure_prob no coordinate of
            `horizon` estimates is larger than M in absolute value.
        second_moment: (**values) -> M2 >= E[estimate^2], for the worst value.
        variance_proxy: (**values) -> s^2, such that estimates of random values of any distribution are
            s^2-sub-Gaussian, the noise and the values' own spread included; infinite for Laplace noise.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    report: ReportFn
    estimate: EstimateFn
    total: TotalFn | None
    range_bound: Callable[..., float]
    second_moment: Callable[..., float]
    variance_proxy: Callable[..., float]
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "randomizer")

    def _repr_html_(self) -> str:
        return html_of(self, "randomizer")
