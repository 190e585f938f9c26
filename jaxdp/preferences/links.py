"""Link functions, which map the difference of two items' utilities to the probability that the first is preferred.

All formulas are accurate far into both tails, because no value is computed as one minus a number near one.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erfcx

from jaxdp.validation import check_choice

Elementwise = Callable[[jax.Array], jax.Array]


class Link(NamedTuple):
    """A link F, given by elementwise functions of the margin z: the first item is preferred with probability F(z).

    z is a float array of any shape. F is symmetric, F(-z) = 1 - F(z), and log F is concave. For |z| <= 1e4, values have
    a relative error below 1e-5 in float32 and 1e-10 in float64 if the true value is not subnormal; smaller values
    underflow. You can differentiate `cdf`, `log_cdf` and `slope`; the derivative of `curvature` is not accurate. A link
    is hashable, so you can close over it or make it a static argument of `jax.jit`.

    Attributes:
        name: the name by which the function `link` finds it.
        cdf: F(z), in [0, 1].
        log_cdf: log F(z), <= 0.
        slope: d/dz log F(z), >= 0 and decreasing. The log likelihood of a label is log F(z) if the label is 1, with
            derivative slope(z), and log F(-z) if the label is 0, with derivative -slope(-z).
        curvature: -d²/dz² log F(z), in [0, 1].
    """

    name: str
    cdf: Elementwise
    log_cdf: Elementwise
    slope: Elementwise
    curvature: Elementwise


def link(name: str) -> Link:
    """Returns the link with the given name.

    Args:
        name: "logistic" (the Bradley-Terry-Luce model) or "probit" (Thurstone's model).

    Returns:
        `logistic` or `probit`.

    Raises:
        ValueError: if there is no such link.

    Examples:
        >>> link("probit").name
        'probit'
    """
    links = {known.name: known for known in (logistic, probit)}
    return links[check_choice("link", name, tuple(links))]


def check_link(value: Link | str) -> Link:
    """Returns the link for a `Link` or a name of a link; raises a ValueError for all other values."""
    if isinstance(value, Link):
        return value
    if isinstance(value, str):
        return link(value)
    raise ValueError(f"link must be a Link or the name of a link, got {value!r}")


def _logistic_cdf(z: jax.Array) -> jax.Array:
    decay = _decay(z)
    return jnp.where(z >= 0, 1.0, decay) / (1.0 + decay)


def _logistic_log_cdf(z: jax.Array) -> jax.Array:
    return jnp.where(z >= 0, 0.0, z) - jnp.log1p(_decay(z))


def _logistic_slope(z: jax.Array) -> jax.Array:
    decay = _decay(z)
    return jnp.where(z >= 0, decay, 1.0) / (1.0 + decay)


def _logistic_curvature(z: jax.Array) -> jax.Array:
    decay = _decay(z)
    return decay / ((1.0 + decay) * (1.0 + decay))


def _decay(z: jax.Array) -> jax.Array:
    # `abs` has the derivative 0 at 0, which would make the derivative of F wrong.
    return jnp.exp(jnp.where(z >= 0, -z, z))


class _Normal(NamedTuple):
    """Values of the standard normal distribution at a = |z|, accurate in the tails."""

    root: jax.Array  # square root of the density; underflows later than the density
    mills: jax.Array  # the inverse Mills ratio, density / P(N > a)
    excess: jax.Array  # mills - a
    tail: jax.Array  # P(N > a), <= 1/2


_FAR = 4.0  # for |z| >= this, 20 terms of a continued fraction give mills - a with a relative error <= 1.5e-11


def _normal(z: jax.Array) -> _Normal:
    a = jnp.abs(z)
    root = (2 * math.pi) ** -0.25 * jnp.exp(-0.25 * a * a)
    # `minimum` is needed for accuracy, because the float32 erfcx of JAX 0.10 is 0 between 9.2 and 9.4.
    near = math.sqrt(2 / math.pi) / erfcx(jnp.minimum(a, _FAR) * math.sqrt(0.5))
    far = jnp.maximum(a, _FAR)
    fraction = far  # mills - a = 1/(a + 2/(a + 3/(a + ...))), Laplace's continued fraction
    for k in range(20, 1, -1):
        fraction = far + k / fraction
    excess = jnp.where(a < _FAR, near - a, 1.0 / fraction)
    mills = jnp.where(a < _FAR, near, a + excess)
    return _Normal(root, mills, excess, tail=root * root / mills)


@jax.custom_jvp
def _probit_cdf(z: jax.Array) -> jax.Array:
    n = _normal(z)
    return jnp.where(z < 0, n.tail, 1.0 - n.tail)


@jax.custom_jvp
def _probit_log_cdf(z: jax.Array) -> jax.Array:
    n = _normal(z)
    return jnp.where(z < 0, -0.5 * z * z - jnp.log(math.sqrt(2 * math.pi) * n.mills), jnp.log1p(-n.tail))


@jax.custom_jvp
def _probit_slope(z: jax.Array) -> jax.Array:
    n = _normal(z)
    return jnp.where(z < 0, n.mills, n.root * n.root / (1.0 - n.tail))


def _probit_curvature(z: jax.Array) -> jax.Array:
    n = _normal(z)
    scaled = n.root / (1.0 - n.tail)  # slope / root
    return jnp.where(z < 0, n.mills * n.excess, (n.root * scaled + z) * scaled * n.root)


# Derivatives are in closed form, because derivatives of erfcx are inaccurate in the tails.
_probit_cdf.defjvps(lambda dz, _, z: dz * (_normal(z).root * _normal(z).root))
_probit_log_cdf.defjvps(lambda dz, _, z: dz * _probit_slope(z))
_probit_slope.defjvps(lambda dz, _, z: -dz * _probit_curvature(z))

logistic = Link(
    name="logistic",
    cdf=_logistic_cdf,
    log_cdf=_logistic_log_cdf,
    slope=_logistic_slope,
    curvature=_logistic_curvature,
)
"""F(z) = 1 / (1 + exp(-z)). Source: Bradley & Terry (1952), Luce (1959)."""

probit = Link(
    name="probit",
    cdf=_probit_cdf,
    log_cdf=_probit_log_cdf,
    slope=_probit_slope,
    curvature=_probit_curvature,
)
"""F(z) = P(N <= z) for a standard normal N. Source: Thurstone (1927), case V with differences of variance 1."""
