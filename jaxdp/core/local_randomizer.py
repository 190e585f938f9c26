"""Types of local randomizers. A user's device sends a report, from which the server estimates the user's value."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, describe
from jaxdp.core.shown import html_of


class ReportFn(Protocol):
    """The trust boundary: returns the message that a user with this value sends.

    The value is first clipped to the randomizer's domain, so that the claim holds for every value; NaN becomes one
    fixed value of the domain. Then the value or its moments are randomized. At epsilon = inf the report is the clipped
    value or its exact moments. May read: params, the value, its own key (once). Must not depend on anything else.
    Returns a pytree with the same structure for every value. The randomizer's factory documents the form of a value,
    and whether it may contain the values of several users.
    """

    def __call__(self, key: jax.Array, params: Any, value: Any) -> Any: ...


class EstimateFn(Protocol):
    """Returns the server's unbiased estimate of the clipped value, of its moments, or of a label's one-hot vector.

    A label has a one-hot vector if there are three or more labels. May read: params and the report, so that an estimate
    costs no privacy.
    """

    def __call__(self, params: Any, report: Any) -> Any: ...


class TotalFn(Protocol):
    """Draws the sum of `count` users' reports, from the distribution of a sum of single reports.

    `totals` is the sum of the users' values. For values 0 or 1 it is the number of ones. For three or more labels it is
    the number of users with each label, and the result is the number of reports with each label. For moments with
    Gaussian noise it is the sum of the users' exact moments. The result is unspecified if `totals` cannot be the sum of
    `count` values. The sum costs as much privacy as `count` releases. For audits (`jaxdp.mechanisms.tape`), a total of
    moments is recorded like one report, with the sum as the exact value; other totals are not recorded.
    """

    def __call__(self, key: jax.Array, params: Any, totals: Any, count: jax.Array) -> Any: ...


class LocalRandomizer(NamedTuple):
    """A randomizer that each user applies to one value.

    A locally private algorithm applies a non-private algorithm to the estimates of a local randomizer. The algorithm
    needs bounds on the magnitude and the variance of estimates: `range_bound`, `second_moment` and `variance_proxy`.
    The host computes these upper bounds, each for the worst coordinate of an array.

    Attributes:
        params: (**values) -> Params. On the host: validates one grid point and calibrates its noise in float64.
        guarantee: (**values) -> Guarantee. On the host: the claim for one report, for the same values.
        report: returns the message of the device.
        estimate: returns the server's estimate from a report.
        total: draws the sum of many reports at once; None if the totals of values do not determine its distribution.
        range_bound: (horizon, failure_prob, **values) -> M. With probability at least 1 - failure_prob, no
            coordinate of `horizon` estimates has an absolute value larger than M.
        second_moment: (**values) -> M2 >= E[estimate^2], for the worst value.
        variance_proxy: (**values) -> s^2. For random values of any distribution, estimates are s^2-sub-Gaussian. s^2
            includes the noise and the variation of the values. Infinite for Laplace noise.
        made_by: the factory and its arguments, for `repr` and tables.
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
