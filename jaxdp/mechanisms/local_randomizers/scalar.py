"""The local randomizer of a bounded number."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.core import (
    LocalRandomizer,
    Scalar,
    default_float,
    factory,
    guarantee_for,
    interval_leaves,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms._grid import exact_values, number_array
from jaxdp.mechanisms._randomized_response import debias_scalar, randomize_scalar
from jaxdp.mechanisms.additive import gaussian, laplace
from jaxdp.mechanisms.calibration import analytic_gaussian
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.local_randomizers._bounds import Additive, TwoPoints, bounds_of
from jaxdp.mechanisms.local_randomizers._host import local_claim, rounded_up
from jaxdp.mechanisms.local_randomizers.label import noisy_ones
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.validation import check_choice, check_epsilon, check_flag

REPORTS = ("rr", "laplace", "gaussian")


@pytree_dataclass
class ScalarParams:
    """Traced values of a scalar randomizer. The defaults are for binary values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; at infinity reports are the clipped values themselves.
        noise_stddev: [] float >= 0, standard deviation of Gaussian noise; 0 for other reports.
        low: [] float, lower end of the clipping interval.
        high: [] float, upper end of the clipping interval.
        width: [] float, high - low, rounded up.
    """

    epsilon: Scalar
    noise_stddev: Scalar = 0.0
    low: Scalar = 0.0
    high: Scalar = 1.0
    width: Scalar = 1.0


@factory
def scalar_randomizer(report: str = "rr", *, binary: bool = False) -> LocalRandomizer:
    r"""Reports a number from an interval [low, high], such as a reward or a loss.

    Let m be the interval's centre, B half its width and c = (e^epsilon + 1) / (e^epsilon - 1). A report is

    * "rr" (the default): m + B c or m - B c, at random, such that the report's mean is the value. The report is
      bounded. Its largest second moment, over all values, is smaller than with Laplace noise at every epsilon, and
      smaller than with Gaussian noise unless delta is large for epsilon (such as delta = 0.01 at epsilon = 0.1). For
      values near m, Laplace noise has the smaller variance if epsilon > 2.33;
    * "laplace": the value with Laplace noise of scale 2 * B / epsilon;
    * "gaussian": the value with Gaussian noise, analytically calibrated to L2 sensitivity 2 * B.

    At epsilon = inf every report is the clipped value itself.

    Args:
        report: "rr", "laplace" or "gaussian".
        binary: whether values are 0 or 1, in any dtype; the interval is then [0, 1].

    Returns:
        A randomizer for values [...], each of one user: floats or integers, clipped to [low, high]; NaN counts as
        `low`. Reports are [...] floats of JAX's default type, and the estimate is the report. For binary values,
        `total` takes the numbers of ones and the numbers of users, [...] int32 or int64 each, and returns sums of
        reports, [...] floats.

    Raises:
        ValueError: if report is unknown or binary is not True or False. The result's `params` raises this error if a
            value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian noise, in (0, 1).
        low, high: unless binary, finite, low < high, by default 0 and 1.

    Privacy:
        - Claim: epsilon-DP ("rr", "laplace") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one value; adjacency: replace one, by any value.

    Source:
        Duchi, Jordan & Wainwright (2018), in one dimension, for "rr"; Dwork & Roth (2014), Theorem 3.6; Balle & Wang
        (2018), Theorem 8. Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1, has the Gaussian report.

    Deviations:
        Zheng et al. do not clip; without clipping or a bound on values reports are not private. Laplace and Gaussian
        noise of reports are integers on a grid, as in `laplace`; `total` draws their noise in floats. Clipping is exact
        up to floating point.

    Math:
        With $m$ the centre of the interval and $B$ half its width, the report of $v$, clipped to the interval, is for
        "rr" $m + B c$ or $m - B c$, with

        $$
        P(m + B c) = \frac{1}{2} + \frac{v - m}{2 B c}, \quad c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        for "laplace"

        $$
        v + Z, \quad Z \sim \mathrm{Laplace}(b), \quad b = \frac{2 B}{\varepsilon}
        $$

        and for "gaussian" $v + Z$ with $Z \sim N(0, \sigma^2)$, where $\sigma$ is the number for which the formula of
        `gaussian` gives $\delta$ at the sensitivity $\Delta = 2 B$.

    Examples:
        >>> randomizer = scalar_randomizer("rr")
        >>> report = randomizer.report(jax.random.key(0), randomizer.params(epsilon=1.0, low=-1.0), 0.3)
        >>> f"{abs(report):.3f}", f"{randomizer.range_bound(1000, 0.05, epsilon=1.0, low=-1.0):.3f}"
        ('2.164', '2.164')
    """
    check_choice("report", report, REPORTS)
    is_rr, is_gaussian = report == "rr", report == "gaussian"
    binary = check_flag("binary", binary)

    def params(*, epsilon: float, delta: float = 0.0, low: float = 0.0, high: float = 1.0) -> ScalarParams:
        to_leaf = scalar_leaf if is_rr else leaf_rounded_down  # probabilities of randomized response are rounded later
        budget = to_leaf("epsilon", check_laplace(epsilon) if report == "laplace" else check_epsilon(epsilon))
        lowest, highest = interval_leaves(low, high)
        width = rounded_up("high - low", float(highest) - float(lowest))
        scalar_leaf("a report at this epsilon", max(abs(low), abs(high)) + _scale(float(width), float(budget), is_rr))
        stddev = analytic_gaussian(epsilon, delta, float(width)) if is_gaussian else 0.0
        return ScalarParams(
            epsilon=budget,
            noise_stddev=rounded_up("the noise", stddev),
            low=lowest,
            high=highest,
            width=width,
        )

    def report_(key, params: ScalarParams, value: ArrayLike) -> jax.Array:
        dtype = default_float()
        # before arithmetic: otherwise JAX would drop the upper bits of NumPy's 64-bit integers
        value = number_array("value", value, dtype)
        low, high, width = (jnp.asarray(leaf, dtype) for leaf in (params.low, params.high, params.width))
        clipped = jnp.where(value > low, jnp.minimum(value, high), low)  # NaN becomes low
        if is_gaussian:
            return gaussian(key, clipped, jnp.asarray(params.noise_stddev), l2_sensitivity=params.width)
        if not is_rr:
            return laplace(key, clipped, params.epsilon, l1_sensitivity=params.width)
        half = width / 2
        # clipped again: if `low` and `half` are constants, XLA adds them first, and the rounded sum is not the centre
        sign = randomize_scalar(key, jnp.clip((clipped - low) - half, -half, half), params.epsilon, bound=half)
        estimate_ = low + half + debias_scalar(sign, jnp.asarray(params.epsilon, dtype), bound=half)
        return jnp.where(jnp.isinf(params.epsilon), clipped, estimate_)

    def estimate(params: ScalarParams, report: jax.Array) -> jax.Array:
        del params
        return report

    def total(key, params: ScalarParams, totals: ArrayLike, count: ArrayLike) -> jax.Array:
        dtype = default_float()
        totals, count = jnp.asarray(totals), jnp.asarray(count)
        epsilon = jnp.asarray(params.epsilon, dtype)
        if is_rr:
            ones = noisy_ones(key, epsilon, totals, count)
            excess = 1 / jnp.tanh(epsilon / 2) - 1
            return ones.astype(dtype) + (ones - (count - ones)).astype(dtype) * (excess / 2)
        if is_gaussian:
            spread = jnp.asarray(params.noise_stddev, dtype) * jnp.sqrt(count.astype(dtype))
            noise = jax.random.normal(key, totals.shape, dtype)
        else:
            # a Laplace variable is Gaussian with variance 2 b^2 E, E exponential; a sum of such E is a gamma variable
            key_gamma, key_noise = jax.random.split(key)
            gamma = jax.random.gamma(key_gamma, jnp.maximum(count, 1).astype(dtype), dtype=dtype)
            spread = jnp.where(count > 0, jnp.sqrt(2 * gamma), 0) / epsilon
            noise = jax.random.normal(key_noise, totals.shape, dtype)
        return add_noise(exact_values("totals", totals), spread * noise)

    def spread(params: ScalarParams):
        low, high, width, epsilon = (float(leaf) for leaf in (params.low, params.high, params.width, params.epsilon))
        if is_rr:
            bias, centre, reach = math.tanh(epsilon / 2), low + width / 2, _scale(width, epsilon, is_rr)
            return (TwoPoints(centre - reach, centre + reach, (1 - bias) / 2, (1 + bias) / 2),)
        scale = float(params.noise_stddev) if is_gaussian else _scale(width, epsilon, is_rr)
        return (Additive(max(abs(low), abs(high)), width / 2, report, scale),)

    names = ("epsilon", *(("delta",) if is_gaussian else ()), *(() if binary else ("low", "high")))
    values = only(params, names)
    argument = {
        "rr": "a report is one of two numbers, each up to e^epsilon times as likely at one value as at another",
        "laplace": "one release of the clipped value by the Laplace mechanism",
        "gaussian": "one release of the clipped value by the analytic Gaussian mechanism",
    }[report]
    return LocalRandomizer(
        values,
        guarantee_for(values, local_claim("one value", argument, numerical_delta=0.0 if is_rr else None)),
        report_,
        estimate,
        total if binary else None,
        *bounds_of(values, spread),
    )


def _scale(width: float, epsilon: float, is_rr: bool) -> float:
    """Returns the distance of randomized responses from the centre, or the scale of Laplace noise."""
    return width / 2 / math.tanh(epsilon / 2) if is_rr else width / epsilon
