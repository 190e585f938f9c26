"""Bounds of Chowdhury, Zhou & Natarajan (2023), DP-Reward, on the errors of reward estimates under label privacy.

Source of all bounds: Chowdhury, Zhou & Natarajan (2023), *Differentially Private Reward Estimation with Preference
Feedback*.

Lower bounds are for squared errors. Upper bounds are for errors, and hold with probability 1 - alpha. gamma is
`curvature(feature_norm, radius)`. x is the difference of the feature vectors phi of two actions. Sigma_D is the mean of
x x^T over the n samples, and lambda >= 0 is the ridge parameter. The squared norm of v that a matrix A induces is v^T A
v. theta* is the true parameter, and theta^ is an estimate.

Arguments are numbers or arrays, which are broadcast; only epsilon may be infinite. Results are float64 numbers or
arrays. Every function raises a ValueError if an argument is out of range or NaN. Arguments of the functions:

- `epsilon`: > 0; infinity is the non-private case.
- `delta`: in [0, 1), but in (0, 1) for `objective_perturbation_stddev`.
- `num_samples`: n, >= 1; >= 4 for one pass of SGD.
- `dim`: d, >= 1. `num_actions`: K, >= 2.
- `feature_norm`: L, > 0, the bound |phi| <= L, which implies |x| <= 2 L.
- `radius`: B, > 0, the bound |theta| <= B.
- `coverage`: kappa, > 0, the smallest eigenvalue of E[x x^T].
- `failure_prob`: alpha, in (0, 1); below 1/e for one pass of SGD.
- `scale`: > 0, a constant that the paper does not specify. If the formula contains C, it is C; otherwise it is a factor
  of the bound.
- `corrected`: in some places the paper assumes |x| <= L although only |x| <= 2 L holds. If True, 2 L is used there. If
  a function corrects anything else, its docstring says so.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory._reward_constants import (
    coverage,
    curvature,
    largest_coverage,
    largest_difference,
    plackett_luce_curvature,
)
from jaxdp.theory.arguments import above, at_least, between, positive
from jaxdp.theory.ldp_bandits import noise_factor

__all__ = [
    "central_l2_lower",
    "central_l2_upper",
    "central_sample_size",
    "central_semi_norm_lower",
    "coverage",
    "curvature",
    "largest_coverage",
    "local_l2_lower",
    "local_l2_upper",
    "local_semi_norm_lower",
    "local_semi_norm_upper",
    "objective_perturbation_stddev",
    "plackett_luce_curvature",
    "plackett_luce_l2_upper",
]

_INVERSE_E = float(np.exp(-1))


def local_semi_norm_lower(
    epsilon: ArrayLike, num_samples: ArrayLike, dim: ArrayLike, *, scale: ArrayLike = 1.0
) -> np.ndarray:
    r"""Returns a local-model lower bound on E |theta^ - theta*|^2 in the norm that Sigma_D + lambda I induces.

    The bound is d / n + d / ((e^eps - 1)^2 n).

    Source:
        Theorem 3.1, a bound up to a constant factor, for sufficiently large n.

    Math:
        $$
        \frac{d}{n} + \frac{d}{(e^{\varepsilon} - 1)^2 n}
        $$
    """
    sampling = at_least("dim", dim, 1) / at_least("num_samples", num_samples, 1)
    with np.errstate(over="ignore"):
        privacy = np.expm1(above("epsilon", epsilon, 0)) ** -2.0
    return positive("scale", scale) * sampling * (1 + privacy)


def local_l2_lower(
    epsilon: ArrayLike,
    num_samples: ArrayLike,
    dim: ArrayLike,
    feature_norm: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns a local-model lower bound on E |theta^ - theta*|^2: (d / L^2) (d / n + d / ((e^eps - 1)^2 n)).

    With `corrected`, 2 L is used in the last step of the proof.

    Source:
        Theorem 3.2, a bound up to a constant factor, for sufficiently large n.

    Math:
        $$
        \frac{d}{L^2} \Big( \frac{d}{n} + \frac{d}{(e^{\varepsilon} - 1)^2 n} \Big)
        $$
    """
    semi_norm = local_semi_norm_lower(epsilon, num_samples, dim, scale=scale)
    return np.asarray(dim, float) / largest_difference(feature_norm, corrected) ** 2 * semi_norm


def local_semi_norm_upper(
    epsilon: ArrayLike,
    num_samples: ArrayLike,
    dim: ArrayLike,
    *,
    feature_norm: ArrayLike,
    radius: ArrayLike,
    failure_prob: ArrayLike,
    ridge: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    bias_scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound on |theta^_RR - theta*| in the norm that Sigma_D + lambda I induces.

    theta^_RR minimises the debiased loss of labels from randomized response. The bound is

        (C / gamma) (e^eps + 1) / (e^eps - 1) sqrt((d + ln(1 / alpha)) / n) + C' sqrt(lambda) B,

    where lambda is `ridge`, >= 0, and C' is `bias_scale`, > 0.

    Source:
        Theorem 4.2, eq. (7). The paper does not specify C and C'; C = sqrt(3) / 2 and C' = 2 can be proved (see
        `jaxdp.estimation.confidence_set`).

    Math:
        $$
        \frac{C}{\gamma} \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1} \sqrt{\frac{d + \ln(1 / \alpha)}{n}} +
        C' \sqrt{\lambda} B, \quad \gamma = \frac{1}{2 + e^{-2 L B} + e^{2 L B}}
        $$
    """
    dim_and_tail = at_least("dim", dim, 1) - np.log(between("failure_prob", failure_prob, 0, 1))
    noise = noise_factor(epsilon) * np.sqrt(dim_and_tail / at_least("num_samples", num_samples, 1))
    bias = positive("bias_scale", bias_scale) * np.sqrt(at_least("ridge", ridge, 0)) * np.asarray(radius, float)
    return positive("scale", scale) / curvature(feature_norm, radius) * noise + bias


def local_l2_upper(
    epsilon: ArrayLike,
    num_samples: ArrayLike,
    *,
    feature_norm: ArrayLike,
    radius: ArrayLike,
    coverage: ArrayLike,
    failure_prob: ArrayLike,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns an upper bound on |theta^_SGD-RR - theta*|, with probability 1 - alpha.

    theta^_SGD-RR is the result of one pass of SGD over labels from randomized response. The bound is

        C (L / (gamma kappa)) (e^eps + 1) / (e^eps - 1) sqrt(ln(ln(n) / alpha) / n).

    With `corrected`, the bound on gradients is 2 L sigmoid(eps), which they never exceed, instead of 4 L as in the
    proof. With the same C, this multiplies the bound by sigmoid(eps) / 2.

    Source:
        Theorem 4.5. The theorem holds for the step sizes in its proof, 1 / (gamma_eps kappa t) in step t, with
        gamma_eps = gamma (e^eps - 1) / (e^eps + 1). Its statement prints 1 / (gamma kappa).

    Math:
        $$
        C \frac{L}{\gamma \kappa} \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1} \sqrt{\frac{\ln(\ln(n) / \alpha)}{n}}
        $$
    """
    rate = _one_pass_rate(num_samples, failure_prob)
    numerator = positive("scale", scale) * positive("feature_norm", feature_norm)
    bound = (
        numerator / (curvature(feature_norm, radius) * positive("coverage", coverage)) * noise_factor(epsilon) * rate
    )
    return bound / (2 * (1 + np.exp(-np.asarray(epsilon, float)))) if corrected else bound


def plackett_luce_l2_upper(
    epsilon: ArrayLike,
    num_samples: ArrayLike,
    num_actions: ArrayLike,
    *,
    feature_norm: ArrayLike,
    radius: ArrayLike,
    coverage: ArrayLike,
    failure_prob: ArrayLike,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns an upper bound on |theta^_SGD-KRR - theta*| for choices among K actions.

    theta^_SGD-KRR is the result of one pass of SGD over choices from K-ary randomized response. With probability 1 -
    alpha, the bound is

        C (L / (gamma kappa)) (e^eps + K - 1) / (e^eps - 1) sqrt(ln(ln(n) / alpha) / n),

    where gamma = exp(-4 L B) / 2 and kappa is a lower bound on the coverage of the differences x of every pair.

    `corrected` replaces kappa by kappa (K - 1) / K, because x is 0 for K of the K^2 ordered pairs in the proof.

    Source:
        Theorem C.2, for the step sizes 1 / (gamma_eps kappa t) with gamma_eps = gamma (e^eps - 1) / (e^eps + K - 1).

    Math:
        $$
        C \frac{L}{\gamma \kappa} \frac{e^{\varepsilon} + K - 1}{e^{\varepsilon} - 1}
        \sqrt{\frac{\ln(\ln(n) / \alpha)}{n}}, \quad \gamma = \frac{e^{-4 L B}}{2}
        $$
    """
    rate = _one_pass_rate(num_samples, failure_prob)
    numerator = positive("scale", scale) * positive("feature_norm", feature_norm)
    gamma = plackett_luce_curvature(feature_norm, radius)
    with np.errstate(over="ignore"):  # (e^eps + K - 1) / (e^eps - 1) = 1 + K / (e^eps - 1)
        privacy = 1 + at_least("num_actions", num_actions, 2) / np.expm1(above("epsilon", epsilon, 0))
    pairs = 1 - 1 / at_least("num_actions", num_actions, 2) if corrected else 1.0
    return numerator / (gamma * pairs * positive("coverage", coverage)) * privacy * rate


def central_l2_lower(
    epsilon: ArrayLike,
    num_samples: ArrayLike,
    dim: ArrayLike,
    feature_norm: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns a central-model lower bound on E |theta^ - theta*|^2: d^2 / (n L^2) + d / (n^2 (eps + delta)^2).

    With `corrected`, 2 L is used in the first term, as for Theorem 3.2.

    Source:
        Theorem 5.1, a bound up to a constant factor, for sufficiently large n. The second term is proved for feature
        differences x with entries in [-1, 1].

    Math:
        $$
        \frac{d^2}{n L^2} + \frac{d}{n^2 (\varepsilon + \delta)^2}
        $$
    """
    dim, count = at_least("dim", dim, 1), at_least("num_samples", num_samples, 1)
    budget = above("epsilon", epsilon, 0) + _delta(delta)
    return positive("scale", scale) * (
        dim**2 / (count * largest_difference(feature_norm, corrected) ** 2) + dim / (count * budget) ** 2
    )


def central_l2_upper(
    num_samples: ArrayLike,
    dim: ArrayLike,
    *,
    feature_norm: ArrayLike,
    radius: ArrayLike,
    coverage: ArrayLike,
    failure_prob: ArrayLike,
    noise_stddev: ArrayLike,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound on |theta^_obj - theta*|, with probability 1 - alpha.

    theta^_obj is the estimate by objective perturbation. The bound is

        (L / (kappa gamma)) sqrt(ln(1 / alpha) / n) + sigma (sqrt(d) + sqrt(ln(1 / alpha))) / (n kappa gamma),

    where sigma is `noise_stddev`, >= 0: `objective_perturbation_stddev` or a smaller valid value; 0 is non-private.

    Source:
        Theorem 5.3, a bound up to a constant factor, for at least `central_sample_size` samples and the regularization
        beta = sqrt(n) / B.

    Math:
        $$
        \frac{L}{\kappa \gamma} \sqrt{\frac{\ln(1 / \alpha)}{n}} +
        \frac{\sigma (\sqrt{d} + \sqrt{\ln(1 / \alpha)})}{n \kappa \gamma}
        $$
    """
    count, tail = at_least("num_samples", num_samples, 1), -np.log(between("failure_prob", failure_prob, 0, 1))
    sampling = positive("feature_norm", feature_norm) * np.sqrt(tail / count)
    privacy = at_least("noise_stddev", noise_stddev, 0) * (np.sqrt(at_least("dim", dim, 1)) + np.sqrt(tail)) / count
    denominator = positive("coverage", coverage) * curvature(feature_norm, radius)
    return positive("scale", scale) * (sampling + privacy) / denominator


def objective_perturbation_stddev(epsilon: ArrayLike, delta: ArrayLike, feature_norm: ArrayLike) -> np.ndarray:
    r"""Returns sigma = L sqrt(8 ln(2 / delta) + 4 eps) / eps, the paper's noise stddev for objective perturbation.

    delta is in (0, 1).

    Source:
        Theorem 5.2, which is valid for |x| <= 2 L. The analytic Gaussian mechanism needs less noise (see
        `jaxdp.estimation.objective_perturbation`).

    Math:
        $$
        \sigma = \frac{L \sqrt{8 \ln(2 / \delta) + 4 \varepsilon}}{\varepsilon}
        $$
    """
    epsilon = above("epsilon", epsilon, 0)
    variance = 8 * np.log(2 / between("delta", delta, 0, 1)) / epsilon**2 + 4 / epsilon
    return positive("feature_norm", feature_norm) * np.sqrt(variance)


def central_sample_size(
    dim: ArrayLike,
    *,
    feature_norm: ArrayLike,
    coverage: ArrayLike,
    failure_prob: ArrayLike,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns the minimum number of samples for which Theorem 5.3 is proved, not rounded to an integer.

    The number is 8 L^2 ln(d / alpha) / kappa as printed, and 32 L^2 ln(d / alpha) / kappa with `corrected`.

    Source:
        Proof of Theorem 5.3 (Lemma D.2).

    Math:
        $$
        \frac{8 L^2 \ln(d / \alpha)}{\kappa}
        $$

        and, with `corrected`, four times as much.
    """
    tail = np.log(at_least("dim", dim, 1) / between("failure_prob", failure_prob, 0, 1))
    return 8 * largest_difference(feature_norm, corrected) ** 2 * tail / positive("coverage", coverage)


def central_semi_norm_lower(
    epsilon: ArrayLike, num_samples: ArrayLike, dim: ArrayLike, *, scale: ArrayLike = 1.0
) -> np.ndarray:
    r"""Returns a central-model lower bound on E |theta^ - theta*|^2 in the norm that Sigma_D + lambda I induces.

    The bound is d / n + d^2 / (n eps)^2.

    Source:
        Theorem D.3, a bound up to a constant factor, for delta = 0 and sufficiently large n.

    Math:
        $$
        \frac{d}{n} + \frac{d^2}{n^2 \varepsilon^2}
        $$
    """
    sampling = at_least("dim", dim, 1) / at_least("num_samples", num_samples, 1)
    return positive("scale", scale) * (sampling + (sampling / above("epsilon", epsilon, 0)) ** 2)


def _one_pass_rate(num_samples: ArrayLike, failure_prob: ArrayLike) -> np.ndarray:
    """Returns sqrt(ln(ln(n) / alpha) / n), where n is `num_samples` and alpha is `failure_prob`."""
    count = at_least("num_samples", num_samples, 4)
    return np.sqrt(np.log(np.log(count) / between("failure_prob", failure_prob, 0, _INVERSE_E)) / count)


def _delta(delta: ArrayLike) -> np.ndarray:
    at_least("delta", delta, 0)
    return between("delta", delta, -1, 1)
