"""Upper bounds on the regret of contextual bandits: in the local model, in the joint model, and non-private.

Contexts and the model are in the unit ball. Bounds with an argument `scale` hold up to an unspecified constant factor,
and up to logarithms of T if the source omits these. Arguments are numbers or arrays, which are broadcast; only epsilon
may be infinite. Results are float64 numbers or arrays. Every function raises a ValueError if an argument is out of
range or NaN. Arguments of the functions:

- `epsilon`: > 0; at infinity, terms with epsilon are 0, and so are `linear_order` and `generalized_linear_order`.
- `delta`: in (0, 1).
- `horizon`: T, >= 1; `generalized_linear_order` requires T > d.
- `dim`: d, >= 1.
- `failure_prob`: alpha, in (0, 1).
- `scale`: the unspecified constant factor of a bound, > 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, between


def linear_order(
    epsilon: ArrayLike,
    delta: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    failure_prob: ArrayLike = 0.05,
    *,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `linear_ucb`: sqrt(ln(1 / delta) ln(1 / alpha)) (d T)^(3/4) / epsilon.

    The argument `corrected` is explained in section Deviations.

    Returns:
        The bound, which holds with probability 1 - alpha.

    Source:
        Zheng, Cai, Huang, Li & Wang (2020), Theorem 8, bound (5). It holds up to a constant factor and logarithms.

    Deviations:
        `corrected` replaces the scale of the noise, s = sqrt(ln(1 / delta)) / epsilon, by sqrt(s). The reason is that
        the radius of the ellipsoid is of order sqrt(s) (d T)^(1/4), and regret is sqrt(d T) times this radius.

    Math:
        $$
        \frac{\sqrt{\ln(1 / \delta) \ln(1 / \alpha)} (d T)^{3/4}}{\varepsilon}
        $$

    Examples:
        >>> bounds = [linear_order(1.0, 1e-5, rounds, 5) for rounds in (1e4, 1e8)]
        >>> f"{bounds[1] / bounds[0]:.6g}"
        '1000'
    """
    noise = _noise(epsilon, delta)
    growth = np.sqrt(np.log(1 / _probability("failure_prob", failure_prob)))
    growth = growth * (at_least("horizon", horizon, 1) * at_least("dim", dim, 1)) ** 0.75
    return between("scale", scale, 0, np.inf) * growth * (np.sqrt(noise) if corrected else noise)


def generalized_linear_order(
    epsilon: ArrayLike,
    delta: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    failure_prob: ArrayLike = 0.05,
    *,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `generalized_linear`: the bound for `linear_ucb` times sqrt(ln(T / d)).

    Source:
        Zheng, Cai, Huang, Li & Wang (2020), Theorem 10, bound (6). It holds with probability 1 - alpha, up to a
        constant factor and logarithms.

    Deviations:
        See `linear_order`. The constant depends on the minimum slope of the link.

    Math:
        $$
        \frac{\sqrt{\ln(1 / \delta) \ln(1 / \alpha)} (d T)^{3/4} \sqrt{\ln(T / d)}}{\varepsilon}
        $$
    """
    linear = linear_order(epsilon, delta, horizon, dim, failure_prob, scale=scale, corrected=corrected)
    return linear * np.sqrt(np.log(above("horizon / dim", np.divide(horizon, dim), 1)))


def joint_linear_order(
    epsilon: ArrayLike, delta: ArrayLike, horizon: ArrayLike, dim: ArrayLike, *, scale: ArrayLike = 1.0
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `linear_ucb_joint`, of order sqrt(T).

    The bound is sqrt(T) (d + d^(3/4) (ln(1 / delta))^(1/4) / sqrt(epsilon)). Here the users' moments are summed by
    counters, with noise that grows like a power of ln T. So regret has the same order in T as non-private regret,
    except for logarithms. In `linear_ucb`, by contrast, the sum of the users' noise grows like sqrt(T).

    Source:
        Shariff & Sheffet (2018), Theorem 5 with the noise of section 4.2. It holds up to a constant factor, without
        logarithms of T.

    Math:
        $$
        \sqrt{T} \Big( d + \frac{d^{3/4} (\ln(1 / \delta))^{1/4}}{\sqrt{\varepsilon}} \Big)
        $$
    """
    size = at_least("dim", dim, 1)
    private = size**0.75 * np.sqrt(_noise(epsilon, delta))
    return between("scale", scale, 0, np.inf) * np.sqrt(at_least("horizon", horizon, 1)) * (size + private)


def oful_upper(
    horizon: ArrayLike,
    dim: ArrayLike,
    failure_prob: ArrayLike = 0.05,
    *,
    regularizer: ArrayLike = 2.0,
    noise_proxy: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound on the regret of OFUL with the published radius of the confidence ellipsoid.

    At epsilon = inf, `linear_ucb` is OFUL with lambda = 2 and a larger radius. This bound is not proved for that
    radius.

    The bound is 4 sqrt(T d ln(lambda + T / d)) (sqrt(lambda) + R sqrt(2 ln(1 / alpha) + d ln(1 + T / (lambda d)))),
    where lambda is `regularizer`, >= 1, and R^2 is `noise_proxy`, > 0, a variance proxy of rewards given their
    contexts.

    Returns:
        The bound, which holds with probability 1 - alpha.

    Source:
        Abbasi-Yadkori, Pal & Szepesvari (2011), Theorem 3, for contexts and models in the unit ball.

    Math:
        $$
        4 \sqrt{T d \ln(\lambda + T / d)} \Big( \sqrt{\lambda} +
        R \sqrt{2 \ln(1 / \alpha) + d \ln(1 + T / (\lambda d))} \Big)
        $$
    """
    rounds, size = at_least("horizon", horizon, 1), at_least("dim", dim, 1)
    start = at_least("regularizer", regularizer, 1)
    tail = np.log(1 / _probability("failure_prob", failure_prob))
    spread = np.sqrt(between("noise_proxy", noise_proxy, 0, np.inf))
    radius = np.sqrt(start) + spread * np.sqrt(2 * tail + size * np.log1p(rounds / (start * size)))
    return 4 * np.sqrt(rounds * size * np.log(start + rounds / size)) * radius


def _noise(epsilon: ArrayLike, delta: ArrayLike) -> np.ndarray:
    """Returns sqrt(ln(1 / delta)) / epsilon, the scale of the noise up to a constant factor."""
    return np.sqrt(np.log(1 / _probability("delta", delta))) / above("epsilon", epsilon, 0)


def _probability(name: str, values: ArrayLike) -> np.ndarray:
    return between(name, values, 0, 1)
