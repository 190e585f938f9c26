"""Regret bounds of Zheng, Cai, Huang, Li & Wang (2020), LDP-Bandits, as published and with tuned step sizes.

Source of the orders: Zheng, Cai, Huang, Li & Wang (2020), *Locally Differentially Private (Contextual) Bandits
Learning*, Table 1. All other bounds are bounds for the non-private algorithms that the paper uses, applied to reports
in place of losses; each docstring names the source.

Arguments are numbers or arrays, which are broadcast; only epsilon may be infinite. Results are float64; they bound the
expected regret against the best fixed point or arm, unless a docstring says otherwise. Every function raises a
ValueError if an argument is out of range or NaN. Arguments of the functions:

- `epsilon`: > 0. A randomized response to a number in [-B, B] is c B or -c B, with c = (e^epsilon + 1) / (e^epsilon -
  1), which is 1 at infinity.
- `second_moment`: M2, > 0, the maximum over losses of a report's second moment. For randomized response, M2 = M^2.
- `range_bound`: M, > 0, an upper bound on the absolute values of all reports. For randomized response, M = B c.
- `horizon`: T, >= 1; >= 2 for orders and barriers.
- `dim`: d, >= 1. `num_arms`: K, >= 2.
- `lipschitz`: G, > 0. `strong_convexity`: mu, > 0. `smoothness`: beta, > 0.
- `loss_bound`: B, > 0, the bound on losses. For two-point methods, the bound G on slopes takes its place.
- `radius`: R, > 0.
- `domain`: "ball" (of radius R) or "box" (all points with entries in [-R, R]). D is the maximum distance from the
  centre: R for a ball, R sqrt(d) for a box. The parameter theta of the barrier is 1 for a ball, d for a box. s is 3 + D
  / R.
- `scale`: the unspecified constant factor of a bound, > 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, positive
from jaxdp.validation import check_choice


class Order(NamedTuple):
    """The growth rate of regret, T^rounds cost^privacy, multiplied by ln T if `is_log` is true.

    Attributes:
        rounds: exponent of T.
        privacy: exponent of the cost. The cost is 1 / epsilon in claimed orders, and c = (e^epsilon + 1) / (e^epsilon -
            1) in tuned orders (1 / epsilon for the linear problems).
        is_log: whether there is a factor ln T. Other logarithms are omitted.
    """

    rounds: float
    privacy: float
    is_log: bool = False


# The exponents of T and 1 / epsilon as printed in Table 1.
CLAIMED = {
    "convex": Order(3 / 4, 1),
    "smooth": Order(2 / 3, 1),
    "strongly_convex": Order(2 / 3, 1),
    "strongly_convex_smooth": Order(1 / 2, 1),
    "two_point": Order(1 / 2, 2),
    "two_point_strongly_convex": Order(0, 2, is_log=True),
    "linear": Order(3 / 4, 1),
    "generalized_linear": Order(3 / 4, 1),
}

# The exponents of T and c if step sizes are tuned to the second moment of reports. For the linear problems, the
# exponents of T and 1 / epsilon.
TUNED = {
    "convex": Order(3 / 4, 1 / 2),
    "smooth": Order(2 / 3, 2 / 3),
    "strongly_convex": Order(2 / 3, 2 / 3),
    "strongly_convex_smooth": Order(1 / 2, 1),
    "two_point": Order(1 / 2, 1),
    "two_point_strongly_convex": Order(0, 2, is_log=True),
    "linear": Order(3 / 4, 1 / 2),
    "generalized_linear": Order(3 / 4, 1 / 2),
    "multi_armed": Order(1 / 2, 1),
    "multi_armed_stochastic": Order(0, 2, is_log=True),
    "best_arm": Order(0, 2),
}
BY_EPSILON = ("linear", "generalized_linear")


def noise_factor(epsilon: ArrayLike) -> np.ndarray:
    r"""Returns the factor c = (e^epsilon + 1) / (e^epsilon - 1) by which randomized responses exceed a number's bound.

    A randomized response to a number in [-B, B] is c B or -c B.

    Math:
        $$
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

    Examples:
        >>> noise_factor(np.inf).item()
        1.0
    """
    return 1 / np.tanh(above("epsilon", epsilon, 0) / 2)


def claimed_order(problem: str, epsilon: ArrayLike, horizon: ArrayLike, *, scale: ArrayLike = 1.0) -> np.ndarray:
    r"""Returns scale T^a / epsilon^b, the published order of an upper bound on the regret.

    `problem` is one of `CLAIMED`. At epsilon = infinity the bound is 0. Factors that depend on the dimension are
    omitted. All logarithms are omitted, too, except the factor ln T (see Math).

    Source:
        Table 1, a bound up to a constant factor.

    Deviations:
        The bound for "two_point", with 1 / epsilon^2, holds for a step size that is not tuned; see `tuned_order`.

    Math:
        $$
        T^a \varepsilon^{-b}
        $$

        with the exponents of `CLAIMED`, and a factor $\ln T$ where `is_log` is true.
    """
    order = CLAIMED[check_choice("problem", problem, tuple(CLAIMED))]
    return _order(order, 1 / above("epsilon", epsilon, 0), horizon, scale)


def tuned_order(problem: str, epsilon: ArrayLike, horizon: ArrayLike, *, scale: ArrayLike = 1.0) -> np.ndarray:
    r"""Returns scale T^a c^b, a regret bound's order for step sizes tuned to the second moment of randomized responses.

    The regret of gradient steps depends on noise only through the second moment M2 of a report, which is of order c^2.
    The best exploration rho balances bias and noise. For convex losses, the minimum of sqrt(M2 T) / rho + rho T is of
    order T^(3/4) M2^(1/4), which grows like c^(1/2). Theorem 3 instead multiplies the whole regret by the magnitude of
    a report, so its bound grows like 1 / epsilon.

    `problem` is one of `TUNED`. At epsilon = infinity, c is 1, so orders that depend on c are the non-private orders;
    orders that depend on 1 / epsilon are 0.

    Source:
        Table 1, a bound up to a constant factor, which is improved by tuning. The table lacks the problems
        "multi_armed", "multi_armed_stochastic" and "best_arm"; their orders are derived here.

    Deviations:
        For "best_arm", the bound is on the number of rounds, not on regret. For "linear" and "generalized_linear", 1 /
        epsilon replaces c.

    Math:
        $$
        T^a c^b, \quad c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        with the exponents of `TUNED`, and a factor $\ln T$ where `is_log` is true.
    """
    order = TUNED[check_choice("problem", problem, tuple(TUNED))]
    cost = 1 / above("epsilon", epsilon, 0) if problem in BY_EPSILON else noise_factor(epsilon)
    return _order(order, cost, horizon, scale)


def fkm_upper(
    second_moment: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    lipschitz: ArrayLike = 1.0,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `fkm`: D d sqrt(M2 T) / rho + s G rho T.

    Here rho is the minimum of R and sqrt(D d sqrt(M2) / (s G)) T^(-1/4). If the second number is the minimum, the bound
    is 2 sqrt(s D d G) M2^(1/4) T^(3/4).

    Source:
        Flaxman, Kalai & McMahan (2005), for convex losses on a ball.

    Deviations:
        The constants are derived here. On a ball, s is 4.

    Math:
        $$
        \frac{D d \sqrt{M_2 T}}{\rho} + s G \rho T, \quad
        \rho = \min\Big( R, \; \sqrt{\frac{D d \sqrt{M_2}}{s G}} T^{-1/4} \Big)
        $$
    """
    moment, rounds, size = positive("second_moment", second_moment), at_least("horizon", horizon, 1), _dim(dim)
    domain_radius, (reach, _) = positive("radius", radius), _reach_and_theta(domain, size)
    bias = (3 + reach) * positive("lipschitz", lipschitz)
    exploration = np.minimum(
        domain_radius, np.sqrt(domain_radius * reach * size * np.sqrt(moment) / bias) * rounds**-0.25
    )
    return domain_radius * reach * size * np.sqrt(moment * rounds) / exploration + bias * exploration * rounds


def strongly_convex_one_point_upper(
    second_moment: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    strong_convexity: ArrayLike,
    lipschitz: ArrayLike = 1.0,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `strongly_convex_one_point`.

    The bound is d^2 M2 (1 + ln T) / (2 mu rho^2) + s G rho T, where rho = min(R, (d^2 M2 (1 + ln T) / (s mu G
    T))^(1/3)).

    Source:
        Agarwal, Dekel & Xiao (2010), for strongly convex losses on a ball.

    Deviations:
        The constants are derived here. On a ball, s is 4.

    Math:
        $$
        \frac{d^2 M_2 (1 + \ln T)}{2 \mu \rho^2} + s G \rho T, \quad
        \rho = \min\Big( R, \; \Big( \frac{d^2 M_2 (1 + \ln T)}{s \mu G T} \Big)^{1 / 3} \Big)
        $$
    """
    moment, rounds, size = positive("second_moment", second_moment), at_least("horizon", horizon, 1), _dim(dim)
    domain_radius, (reach, _) = positive("radius", radius), _reach_and_theta(domain, size)
    bias = (3 + reach) * positive("lipschitz", lipschitz)
    noise = size**2 * moment * (1 + np.log(rounds)) / positive("strong_convexity", strong_convexity)
    exploration = np.minimum(domain_radius, np.cbrt(noise / (bias * rounds)))
    return noise / (2 * exploration**2) + bias * exploration * rounds


def two_point_upper(
    second_moment: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    lipschitz: ArrayLike = 1.0,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `two_point` with tuned steps: D d sqrt(M2 T) + s G R.

    M2 is the second moment of a reported slope: G^2 c^2 for randomized response, or G^2 + v for noise of variance v.

    Returns:
        The bound, on the regret of the mean loss of both points.

    Source:
        Agarwal, Dekel & Xiao (2010), for convex losses on a ball. Theorem 6 of the private paper has order d^3 sqrt(T)
        / epsilon^2.

    Deviations:
        The step size is tuned, and the distance between the two points is 2 R / T instead of 2 ln T / T. The constants
        are derived here. On a ball, s is 4.

    Math:
        $$
        D d \sqrt{M_2 T} + s G R
        $$
    """
    moment, rounds, size = positive("second_moment", second_moment), at_least("horizon", horizon, 1), _dim(dim)
    domain_radius, (reach, _) = positive("radius", radius), _reach_and_theta(domain, size)
    return (
        domain_radius * reach * size * np.sqrt(moment * rounds)
        + (3 + reach) * positive("lipschitz", lipschitz) * domain_radius
    )


def two_point_strongly_convex_upper(
    second_moment: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    strong_convexity: ArrayLike,
    lipschitz: ArrayLike = 1.0,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `two_point` for strongly convex losses.

    The bound is d^2 M2 (1 + ln T) / (2 mu) + s G R, where M2 is the second moment of a reported slope, as in
    `two_point_upper`.

    Returns:
        The bound, on the regret of the mean loss of both points.

    Source:
        Agarwal, Dekel & Xiao (2010). Theorem 6 of the private paper has order d^3 ln T / (mu epsilon^2).

    Deviations:
        The distance between the two points is 2 R / T instead of 2 ln T / T. The constants are derived here. On a ball,
        s is 4.

    Math:
        $$
        \frac{d^2 M_2 (1 + \ln T)}{2 \mu} + s G R
        $$
    """
    moment, rounds, size = positive("second_moment", second_moment), at_least("horizon", horizon, 1), _dim(dim)
    domain_radius, (reach, _) = positive("radius", radius), _reach_and_theta(domain, size)
    learning = size**2 * moment * (1 + np.log(rounds)) / (2 * positive("strong_convexity", strong_convexity))
    return learning + (3 + reach) * positive("lipschitz", lipschitz) * domain_radius


def barrier_smooth_upper(
    second_moment: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    smoothness: ArrayLike,
    loss_bound: ArrayLike = 1.0,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `barrier_smooth`.

    The bound holds if eta d M <= rho / 2 (see Math), which means that T >= 2 theta ln T M^2 / M2.

    Source:
        Saha & Tewari (2011), for convex and smooth losses and a barrier with parameter theta.

    Math:
        $$
        \frac{\theta \ln T}{\eta} + \frac{2 \eta T d^2 M_2}{\rho^2} + \frac{\beta \rho^2 R^2 T}{2} + 2 B
        $$

        with

        $$
        \eta = \rho \sqrt{\frac{\theta \ln T}{2 T d^2 M_2}}, \quad
        \rho = \min\Big( 1, \; \Big( \frac{2 \sqrt{2} d \sqrt{\theta M_2 \ln T / T}}{\beta R^2} \Big)^{1 / 3} \Big)
        $$
    """
    moment, rounds, size = positive("second_moment", second_moment), at_least("horizon", horizon, 2), _dim(dim)
    curved, domain_radius = positive("smoothness", smoothness), positive("radius", radius)
    logarithm = _reach_and_theta(domain, size)[1] * np.log(rounds)
    root = 2 * np.sqrt(2) * size * np.sqrt(moment * logarithm / rounds)
    exploration = np.minimum(1.0, np.cbrt(root / (curved * domain_radius**2)))
    # theta ln T / eta and 2 eta T d^2 M2 / rho^2 are equal.
    learning = 2 * np.sqrt(2 * rounds * logarithm * moment) * size / exploration
    return learning + curved * (exploration * domain_radius) ** 2 * rounds / 2 + 2 * positive("loss_bound", loss_bound)


def barrier_strongly_convex_upper(
    range_bound: ArrayLike,
    horizon: ArrayLike,
    dim: ArrayLike,
    strong_convexity: ArrayLike,
    smoothness: ArrayLike,
    radius: ArrayLike = 1.0,
    domain: str = "ball",
) -> np.ndarray:
    r"""Returns an upper bound on the regret of `barrier_strongly_convex`.

    The bound is 4 d M sqrt((theta + 2 beta / mu) T ln T) + 2 M + 2 beta D^2. It holds for T / ln T >= 2 (theta + 2 beta
    / mu), which is not checked, and beta >= mu, which is.

    Source:
        Hazan & Levy (2014), for strongly convex and smooth losses and a barrier with parameter theta.

    Deviations:
        The last term replaces a constant that the theorem does not state.

    Math:
        $$
        4 d M \sqrt{(\theta + 2 \beta / \mu) T \ln T} + 2 M + 2 \beta D^2
        $$
    """
    largest, rounds, size = positive("range_bound", range_bound), at_least("horizon", horizon, 2), _dim(dim)
    strong, curved = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    if np.any(curved < strong):
        raise ValueError(f"smoothness must be >= strong_convexity, got {np.min(curved):g}")
    reach, theta = _reach_and_theta(domain, size)
    learning = 4 * size * largest * np.sqrt((theta + 2 * curved / strong) * rounds * np.log(rounds))
    return learning + 2 * largest + 2 * curved * (reach * positive("radius", radius)) ** 2


def tsallis_inf_upper(
    epsilon: ArrayLike, horizon: ArrayLike, num_arms: ArrayLike, *, estimator: str = "iw"
) -> np.ndarray:
    r"""Returns an upper bound on the adversarial regret of `tsallis_inf` on randomized responses of rewards in [0, 1].

    The bound is c (4 sqrt(K T) + 1) with importance weighting (`estimator="iw"`), and c (2 sqrt(K T) + 10 K ln T + 16)
    with reduced variance (`estimator="rv"`). The regret on true losses is c times the regret on randomized responses.

    Source:
        Zimmert & Seldin (2021), Theorem 1.

    Math:
        With importance weights and with reduced variance

        $$
        c (4 \sqrt{K T} + 1), \quad c (2 \sqrt{K T} + 10 K \ln T + 16), \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$
    """
    factor, rounds, arms = noise_factor(epsilon), at_least("horizon", horizon, 1), at_least("num_arms", num_arms, 2)
    if check_choice("estimator", estimator, ("iw", "rv")) == "iw":
        return factor * (4 * np.sqrt(arms * rounds) + 1)
    return factor * (2 * np.sqrt(arms * rounds) + 10 * arms * np.log(rounds) + 16)


def _order(order: Order, cost: np.ndarray, horizon: ArrayLike, scale: ArrayLike) -> np.ndarray:
    rounds = at_least("horizon", horizon, 2)
    growth = rounds**order.rounds * (np.log(rounds) if order.is_log else 1.0)
    return positive("scale", scale) * growth * cost**order.privacy


def _dim(values: ArrayLike) -> np.ndarray:
    return at_least("dim", values, 1)


def _reach_and_theta(domain: str, dim: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns D / R and theta, the parameter of the barrier; D is the maximum distance from the domain's centre."""
    one = np.ones_like(dim)
    return (one, one) if check_choice("domain", domain, ("ball", "box")) == "ball" else (np.sqrt(dim), dim)
