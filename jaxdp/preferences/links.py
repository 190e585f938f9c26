"""Links: the probability that the first item is preferred, as a function of the margin between two utilities.

Every formula holds far into both tails: no value is computed as one minus a number near one.
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
    """Pure elementwise functions of the margin z (floats of any shape), where P(first preferred) = F(z).

    F is symmetric, F(-z) = 1 - F(z), and log F is concave. Values have a relative error below 1e-5 in float32 and 1e-10
    in float64 for |z| <= 1e4, wherever the true value is a normal float; smaller ones underflow. `cdf`, `log_cdf`
    and `slope` may be differentiated; `curvature` is accurate as values only. A link is hashable: close
    over it, or make it a static argument of `jax.jit`.

    Attributes:
        name: the argument of `link` for it.
        cdf: F(z), in [0, 1].
        log_cdf: log F(z), <= 0.
        slope: d/dz log F(z), >= 0 and decreasing. A label y has the log likelihood log F(z) or log F(-z); its
            derivative in z is slope(z) if y = 1, and -slope(-z) if y = 0.
        curvature: -d²/dz² log F(z), in [0, 1].
    """

    name: str
    cdf: Elementwise
    log_cdf: Elementwise
    slope: Elementwise
    curvature: Elementwise


def link(name: str) -> Link:
    """Returns the link of that name.

    Args:
        name: "logistic" (the Bradley-Terry-Luce model) or "probit" (Thurstone's).

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
    """Returns value, or the link of that name.

    Raises:
        ValueError: if it is neither a `Link` nor the name of one.
    """
    if isinstance(value, Link):
        return value
    if isinstance(value, str):
        return link(value)
    raise ValueError(f"link must be a Link or the name of one, got {value!r}")


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
    # Not abs: its derivative at 0 is 0, and would make the derivative of F wrong.
    return jnp.exp(jnp.where(z >= 0, -z, z))


class _Normal(NamedTuple):
    """The standard normal distribution at a = |z|, in factors that keep their relative accuracy in the tails."""

    root: jax.Array  # square root of the density; underflows later than the density
    mills: jax.Array  # the inverse Mills ratio, density / P(N > a)
    excess: jax.Array  # mills - a
    tail: jax.Array  # P(N > a), <= 1/2


_FAR = 4.0  # below, mills - a may be computed as a difference; above, 20 terms of its fraction give 1.5e-11


def _normal(z: jax.Array) -> _Normal:
    a = jnp.abs(z)
    root = (2 * math.pi) ** -0.25 * jnp.exp(-0.25 * a * a)
    # The bound is needed, not only for speed: the float32 erfcx of JAX 0.10 is 0 between 9.2 and 9.4.
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


# Derivatives are in closed form: derivatives of erfcx cancel in the tails.
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
