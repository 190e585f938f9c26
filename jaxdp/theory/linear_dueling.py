"""Regret bounds of Saha & Asi (2024), DP-Dueling, for arms with feature vectors in the central model.

Source of all bounds except `corrected_regret_upper`: Saha & Asi (2024), *DP-Dueling: Learning from Preference Feedback
without Compromising User Privacy*.

Regret is the sum over rounds of 2 r(best) - r(left) - r(right), with r(x) = w*.x. Arms are in the unit ball of d
dimensions, and |w*| <= 1. Arguments are numbers or arrays, which are broadcast; only epsilon may be infinite. Results
are float64 numbers or arrays. Every function raises a ValueError if an argument is out of range or NaN. Arguments of
the functions:

- `epsilon`: > 0; at infinity the term with epsilon is 0.
- `horizon`: T, >= 2 and > d / kappa^2.
- `dim`: d, >= 1.
- `failure_prob`: b, in (0, 1).
- `slope`: kappa, the minimum slope of the link, in (0, 1/4].
- `scale`: the unspecified constant factor, > 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, between


def regret_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    *,
    failure_prob: ArrayLike,
    slope: ArrayLike,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound, up to a constant factor, on the regret of `g_optimal_elimination`.

    The learner plays the published numbers of duels. The bound is d^6 ln(d T / b) ln(T kappa^2 / d) / (kappa epsilon) +
    d sqrt(T) ln(T / b) / kappa.

    Source:
        Theorem 3, a bound up to a constant factor.

    Math:
        $$
        \frac{d^6 \ln(d T / b) \ln(T \kappa^2 / d)}{\kappa \varepsilon} + \frac{d \sqrt{T} \ln(T / b)}{\kappa}
        $$
    """
    return _order(6, epsilon, horizon, dim, failure_prob, slope, scale)


def corrected_regret_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    *,
    failure_prob: ArrayLike,
    slope: ArrayLike,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound, up to a constant factor, on regret with tight constants (d^3, not d^6).

    The learner is `g_optimal_elimination` with constants="tight". The bound is d^3 ln(d T / b) ln(T kappa^2 / d) /
    (kappa epsilon) + d sqrt(T) ln(T / b) / kappa.

    Source:
        Derived here, with the logarithms of Theorem 3. A phase with margin xi has m <= d (d + 1) / 2 pairs, and plays
        about (d / (kappa xi))^2 + d m / (kappa epsilon xi) duels. The regret of a duel is at most 8 xi.

    Deviations:
        No published theorem.

    Math:
        $$
        \frac{d^3 \ln(d T / b) \ln(T \kappa^2 / d)}{\kappa \varepsilon} + \frac{d \sqrt{T} \ln(T / b)}{\kappa}
        $$
    """
    return _order(3, epsilon, horizon, dim, failure_prob, slope, scale)


def free_from(horizon: ArrayLike, dim: ArrayLike, *, failure_prob: ArrayLike, slope: ArrayLike) -> np.ndarray:
    r"""Returns the epsilon above which the term with epsilon in Theorem 3 is the smaller term ("privacy for free").

    This epsilon is a ratio of two orders, so it is determined only up to an unspecified constant factor.

    Source:
        Remark 4.

    Math:
        $$
        \frac{d^5 \ln(d T / b) \ln(T \kappa^2 / d)}{\sqrt{T} \ln(T / b)}
        $$
    """
    learning = regret_upper(np.inf, horizon, dim, failure_prob=failure_prob, slope=slope)
    return (regret_upper(1.0, horizon, dim, failure_prob=failure_prob, slope=slope) - learning) / learning


def _order(
    power: int,
    epsilon: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    failure_prob: ArrayLike,
    slope: ArrayLike,
    scale: ArrayLike,
) -> np.ndarray:
    budget, rounds, size = above("epsilon", epsilon, 0), at_least("horizon", horizon, 2), at_least("dim", dim, 1)
    failure, least = between("failure_prob", failure_prob, 0, 1), between("slope", slope, 0, np.nextafter(0.25, 1))
    phases = np.log(above("horizon * slope^2 / dim", rounds * least**2 / size, 1))
    private = size**power * np.log(size * rounds / failure) * phases / (least * budget)
    return between("scale", scale, 0, np.inf) * (private + size * np.sqrt(rounds) * np.log(rounds / failure) / least)
