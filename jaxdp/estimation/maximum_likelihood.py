"""Maximum-likelihood estimators over a ball, from exact labels or from randomized labels."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.core import Estimator, Scalar, only, reusing_factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.constraints import center
from jaxdp.estimation.full_batch import MAX_STEPS, full_batch_estimator
from jaxdp.estimation.label_noise import LabelNoise, randomized_labels, search_basis
from jaxdp.estimation.label_params import (
    TOLERANCE,
    Params,
    clear_labels_claim,
    make_params,
    person_params,
    randomized_labels_claim,
    randomized_persons_claim,
)
from jaxdp.estimation.label_reports import (
    report_by_budgets,
    report_clear,
    report_coins,
    report_randomized,
    unbiased_labels,
)
from jaxdp.estimation.large_fits import fit_large_labels
from jaxdp.estimation.objectives import (
    Objective,
    label_loss,
    likelihood_objective,
    randomized_information,
    randomized_label_loss,
    statistic_objective,
    sum_over_samples,
)
from jaxdp.estimation.persons import check_unit
from jaxdp.estimation.public_weights import check_weights, cut_leaf, cut_weights
from jaxdp.estimation.sandwich import Covariance, likelihood_covariance
from jaxdp.estimation.solver import Estimate
from jaxdp.preferences import Link, logistic


@pytree_dataclass
class WeightedParams(Params):
    """Values that a sweep may vary if samples are weighted.

    Attributes:
        cut: [] float >= 0, maximum weighted norm w_i |x_i| of a sample's features; 0 and infinity mean no maximum.
    """

    cut: Scalar


def _label_objective(
    features: jax.Array, targets: jax.Array, link: Link, weights: jax.Array | None = None
) -> Objective:
    """Builds the mean loss of targets, which are labels or unbiased reports.

    The logistic loss is computed from the sufficient statistic, and is convex for any targets.
    """
    if link.name == "logistic":
        statistic = sum_over_samples(features.T, targets if weights is None else weights * targets)
        return statistic_objective(features, statistic, jnp.zeros((), features.dtype), weights)
    return likelihood_objective(features, targets, label_loss(link), weights=weights)


@reusing_factory
def mle(
    *,
    link: Link = logistic,
    zero_sum: bool = False,
    weights: str = "none",
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds the non-private maximum-likelihood estimator, a baseline for the private estimators.

    Minimises the mean of -w [y log F(x^T theta) + (1 - y) log F(-x^T theta)] over |theta| <= radius. The weights are 1
    by default. With `weights="cut"` they are w_i = min(1, cut / |x_i|), as in private estimators. This shows how much
    error the weights alone add. Without noise, the predicted error is least if all weights are 1, so cut = 0 selects
    these weights.

    Args:
        link: preference model F; `logistic` (BTL) or `probit` (Thurstone).
        zero_sum: whether to constrain sum(theta) = 0; use it if adding a constant to all entries of theta changes no
            margin.
        weights: "none" or "cut".
        optimizer: Optax optimiser for parameters of shape [dim]; None means Newton's method on the ball. Iterates are
            projected, and the search stops when the projected gradient is within the tolerance. If the norm of the
            minimiser equals the radius, an optimiser with momentum (such as Adam) may not reach it; check `converged`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}, or float in
        {0, 1/2, 1}; 1/2 is a tie and counts as half a win for each action. Its `params` take radius (default inf),
        tolerance (default 1e-5) and, for weights="cut", cut (default 0).

    Raises:
        ValueError: if max_steps < 1 or weights is unknown. The result's `params` raises this error if radius or
            tolerance is not > 0, or cut is not >= 0.

    Privacy:
        - None.

    Source:
        Zhu, Jiao & Jordan (2023); DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (8).

    Deviations:
        The loss is a mean instead of a sum. The minimiser is the same.

    Math:
        If no label is a tie and all weights are 1, the estimate is, with signs $s_i = 2 y_i - 1$ of the labels and the
        link $F$,

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B} \; -\frac{1}{n} \sum_i \ln F(s_i x_i^\top \theta)
        $$
    """
    is_weighted = check_weights(weights)

    def params(*, radius: float = np.inf, tolerance: float = TOLERANCE, cut: float = 0.0) -> WeightedParams:
        point = make_params(epsilon=np.inf, radius=radius, tolerance=tolerance)
        return WeightedParams(**vars(point), cut=cut_leaf(cut))

    def weights_of(params: WeightedParams, features, scale) -> jax.Array | None:
        if not is_weighted:
            return None
        cut = jnp.asarray(params.cut, features.dtype)
        return cut_weights(
            jnp.linalg.norm(features * jnp.broadcast_to(scale, features.shape), axis=-1),
            jnp.where(cut > 0, cut, jnp.inf),
        )

    def objective(params: WeightedParams, features, report, scale) -> Objective:
        weights = weights_of(params, features, scale)
        mean_one = None if weights is None else weights / jnp.mean(weights)
        return _label_objective(features, report.astype(features.dtype), link, mean_one)

    def noise(params: WeightedParams, features) -> LabelNoise:
        zero, one = jnp.zeros((), features.dtype), jnp.ones((), features.dtype)
        within = center(features) if zero_sum else features
        return LabelNoise(one, zero, zero, search_basis(features, zero_sum=zero_sum), weights_of(params, within, one))

    def covariance(params: WeightedParams, features, report, theta) -> Covariance:
        within, targets = center(features) if zero_sum else features, report.astype(features.dtype)
        weights = weights_of(params, within, jnp.ones((), features.dtype))
        basis = search_basis(features, zero_sum=zero_sum)
        return likelihood_covariance(features, targets, theta, label_loss(link), basis=basis, weights=weights)

    def large(key, params: WeightedParams, features, labels, *, offset=None) -> Estimate:
        report = report_clear(key, params, features, labels)
        return fit_large_labels(params, features, report, float(params.cut) if is_weighted else 0.0, offset=offset)

    names = {"radius", "tolerance"} | ({"cut"} if is_weighted else set())
    return full_batch_estimator(
        only(params, names),
        clear_labels_claim,
        report_clear,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        noise=noise if link.name == "logistic" else None,
        covariance=covariance,
        large=large if link.name == "logistic" else None,
    )


@reusing_factory
def debiased_rr(
    *,
    link: Link = logistic,
    zero_sum: bool = False,
    privacy_unit: str = "label",
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds the estimator that minimises the de-biased loss of randomized labels (convex for the logistic link).

    The label loss is linear in the label. The estimator replaces the label by an unbiased estimate, computed from its
    report: (report - (1 - p)) / (2p - 1) with p = sigmoid(epsilon). For the logistic link the objective is convex at
    every epsilon. For the probit link it need not be convex, and the certificate certifies only a stationary point.

    Set a finite radius at small epsilon or with few labels: the debiased labels may be such that the loss has no finite
    minimiser. The search then ends far away, and the error can exceed a million.

    Args:
        link: preference model F; `logistic` (BTL) or `probit` (Thurstone).
        zero_sum: whether to constrain sum(theta) = 0; use it if adding a constant to all entries of theta changes no
            margin.
        privacy_unit: "label" or "person". With "person", `params` also take persons, and a person with k labels reports
            each of them at epsilon / k.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator like `mle`. Its `params` take epsilon, radius (default inf), tolerance (default 1e-5) and, for
        privacy_unit="person", persons, [num_samples] public ids.

    Raises:
        ValueError: if max_steps < 1 or the unit is unknown. The result's `params` raises this error if epsilon, radius
            or tolerance is not > 0, or persons are not a vector of at least one id.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label, or all labels of one person, with public ids and numbers of labels; adjacency: replace one.
        - Why: Each label is reported once by randomized response; at finite epsilon, a tie is reported as a fair coin
          flip (proof: `label_reports.report_randomized`). The k reports of a person, each at epsilon / k, compose to
          epsilon.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (4)-(6), Theorem 4.2.

    Deviations:
        The loss is the paper's, divided by (2p - 1) n, which has the same minimiser. Let F_r be the model's probability
        of the reported label r, and F_o the probability of the other label. The paper's loss is the sum of -[p log
        F_r - (1 - p) log F_o]. Each term equals (2p - 1) times the label loss at the unbiased label.

    Math:
        A label $y_i$ is reported as $r_i$, which equals $y_i$ with probability $p = 1 / (1 + e^{-\varepsilon})$. Since
        the logistic loss is linear in the label, the loss with

        $$
        \tilde y_i = \frac{r_i - (1 - p)}{2 p - 1}, \quad
        \hat\theta = \operatorname{argmin}_{|\theta| \le B}
        \frac{1}{n} \sum_i \Big( \ln(1 + e^{x_i^\top \theta}) - \tilde y_i x_i^\top \theta \Big)
        $$

        has the same expectation as the loss of the true labels.
    """

    def objective(params: Params, features, report, scale) -> Objective:
        del scale
        return _label_objective(features, unbiased_labels(report, params.epsilon).astype(features.dtype), link)

    def covariance(params: Params, features, report, theta) -> Covariance:
        targets = unbiased_labels(report, params.epsilon).astype(features.dtype)
        basis = search_basis(features, zero_sum=zero_sum)
        return likelihood_covariance(features, targets, theta, label_loss(link), basis=basis)

    of_persons = check_unit(privacy_unit)
    privatize = report_by_budgets if of_persons else report_randomized

    def large(key, params: Params, features, labels, *, offset=None) -> Estimate:
        report = privatize(key, params, features, labels)
        return fit_large_labels(params, features, unbiased_labels(report, params.epsilon), offset=offset)

    return full_batch_estimator(
        person_params if of_persons else make_params,
        randomized_persons_claim if of_persons else randomized_labels_claim,
        privatize,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        noise=randomized_labels(zero_sum) if link.name == "logistic" else None,
        covariance=covariance,
        large=large if link.name == "logistic" else None,
    )


@reusing_factory
def mle_rr(
    *,
    link: Link = logistic,
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds the estimator that maximises the likelihood of the randomized labels, without de-biasing.

    Minimises the mean of -log[p F(s x^T theta) + (1 - p) F(-s x^T theta)], s = 2 report - 1, p = sigmoid(epsilon). The
    objective is not convex in general. Let |phi| <= L, so that |x^T theta| <= 2 L B for the radius B. With the logistic
    link, the loss of each report has positive curvature at all margins in [-2 L B, 2 L B] exactly if epsilon > 4 L B
    (the paper says 2 L B). The search starts at zero, and the certificate certifies only a stationary point.

    Args:
        link: preference model F; `logistic` (BTL) or `probit` (Thurstone).
        zero_sum: whether to constrain sum(theta) = 0; use it if adding a constant to all entries of theta changes no
            margin.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator like `mle`. Its `params` take epsilon, radius (default inf) and tolerance (default 1e-5).

    Raises:
        ValueError: if max_steps < 1. The result's `params` raises this error if epsilon, radius or tolerance is not
            > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: Each label is reported once by randomized response; a tie is reported as a fair coin flip, even at
          epsilon = inf.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (3), Theorem 4.1.

    Deviations:
        The loss is a mean instead of a sum; log 2 is subtracted from each term, and the loss divided by (2p - 1)^2. The
        minimiser is the same.

    Math:
        A label $y_i$ is reported as $r_i$, which equals $y_i$ with probability $p = 1 / (1 + e^{-\varepsilon})$. With
        the signs $s_i = 2 r_i - 1$ of the reports, the features $x_i$ of the $n$ samples and the link $F$, the estimate
        minimises

        $$
        -\frac{1}{n} \sum_i \ln\Big( p F(s_i x_i^\top \theta) + (1 - p) F(-s_i x_i^\top \theta) \Big)
        $$

        over $|\theta| \le B$, where $B$ is `radius`.
    """

    def objective(params: Params, features, report, scale) -> Objective:
        del scale
        loss = randomized_label_loss(link, jnp.asarray(params.epsilon, features.dtype))
        return likelihood_objective(features, report.astype(features.dtype), loss)

    def covariance(params: Params, features, report, theta) -> Covariance:
        epsilon, basis = jnp.asarray(params.epsilon, features.dtype), search_basis(features, zero_sum=zero_sum)
        loss, targets = randomized_label_loss(link, epsilon), report.astype(features.dtype)
        information = partial(randomized_information, link, epsilon)
        return likelihood_covariance(features, targets, theta, loss, basis=basis, information=information)

    return full_batch_estimator(
        make_params,
        randomized_labels_claim,
        report_coins,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        covariance=covariance,
    )
