"""What leaves one user's device in the local model, as a value: how a number is hidden, and what that does to it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, described
from jaxdp.core.shown import html_of


class ReportFn(Protocol):
    """The trust boundary: what leaves the device of a user whose value is `value`.

    Clips the value to the channel's domain first, so that the claim holds for every value: one outside the domain
    counts as one at its edge, NaN as one fixed value of the domain. Then it adds noise; at epsilon = inf it returns the
    clipped value itself. May read: params, the value, its own key (once). Must not depend on anything else. Returns a
    pytree, the same structure for every value. What a value looks like, and whether it may be several users' at once,
    is told by the channel's factory.
    """

    def __call__(self, key: jax.Array, params: Any, value: Any) -> Any: ...


class EstimateFn(Protocol):
    """What the server makes of a report: a float estimate whose mean is the clipped value.

    May read: params, and the report alone, so that an estimate costs no privacy. Whoever averages estimates need not
    know how values were hidden. Of labels that are not numbers it estimates the one-hot vector.
    """

    def __call__(self, params: Any, report: Any) -> Any: ...


class TotalFn(Protocol):
    """The sum of `count` users' reports, drawn at once: its law is that of the sum of single reports.

    `totals` are of the users' values: for values 0 or 1 how many are 1; for more labels how many have each of them,
    and the sum of reports then tells the same of the reports; of moments, with Gaussian noise, the sums of users' exact
    moments. Of totals outside what `count` values can add up to nothing is promised. It stands for `count` releases,
    which is what it costs in privacy. On an auditor's tape that of moments is one release, of the sum, and others are
    not written.
    """

    def __call__(self, key: jax.Array, params: Any, totals: Any, count: jax.Array) -> Any: ...


class Channel(NamedTuple):
    """A randomizer that each user applies to one value. A locally private algorithm is a black box and a channel.

    The black box needs to know of the channel how large estimates get and how far they spread: `range_bound`,
    `second_moment` and `variance_proxy`, numbers of the host, each for the worst coordinate of an array and never too
    small.

    Attributes:
        params: (**values) -> Params. On the host: one grid point; validates, calibrates in float64.
        guarantee: (**values) -> Guarantee. On the host, for the same values: what is claimed for one report.
        report: what leaves the device.
        estimate: what the server makes of it.
        total: the sum of many reports at once; None where the values' totals do not tell its law.
        range_bound: (horizon, failure_prob, **values) -> M. With probability 1 - failure_prob no coordinate of
            `horizon` estimates is larger than M in absolute value.
        second_moment: (**values) -> M2 >= E[estimate^2], given the worst value.
        variance_proxy: (**values) -> s^2, such that estimates of random values of any law are s^2-sub-Gaussian, the
            noise and the values' own spread included; infinite for Laplace noise.
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
        return described(self, "channel")

    def _repr_html_(self) -> str:
        return html_of(self, "channel")
