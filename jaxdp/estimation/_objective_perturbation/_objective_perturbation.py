"""Objective perturbation for label privacy, implemented as a Gaussian mechanism on the labels' sufficient statistic.

This list maps the lines of Algorithm 2 of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) to the code of
`objective_perturbation`. Labels enter the logistic loss only through S = sum_i y_i x_i, so the paper's linear term w is
equivalent to noise on S:

* 1: beta is `Params.regularization`, and the ball Theta_B has the radius `Params.radius`.
* 2: w is S - S~, since `release_statistic` releases S~ = S + noise. The paper's sigma is `noise_multiplier` times L.
  The other constants use the sensitivity of S in place of L: the largest |x_i|, if weights are 1 and the unit is a
  label.
* 3: `statistic_objective` is l_D(theta) + beta / (2 n) * |theta|^2 + w^T theta / n, written with S~;
  `full_batch_estimator` finds its minimiser.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxdp.core import Estimator, reusing_factory
from jaxdp.estimation.constraints import center
from jaxdp.estimation.full_batch import MAX_STEPS, full_batch_estimator
from jaxdp.estimation.label_noise import LabelNoise, search_basis
from jaxdp.estimation.large_fits import fit_large_statistic
from jaxdp.estimation.noisy_statistic import (
    Params,
    Release,
    Weighted,
    check_release,
    cut_of,
    release_statistic,
    sensitivity_unit,
    statistic_claim,
    statistic_params,
)
from jaxdp.estimation.objectives import Objective, statistic_objective
from jaxdp.estimation.public_weights import WithCut, cut_weights, noise_variance
from jaxdp.estimation.sandwich import Covariance, statistic_covariance
from jaxdp.estimation.whitening import least_error_ridge, whiten


def _rows(features: jax.Array) -> jax.Array:
    """Returns rows x / 2, [num_samples, 1, dim] float; x x^T / 4 is a sample's Fisher information at theta = 0."""
    return features[:, None, :] / 2


class _Coordinates(NamedTuple):
    """Features in the coordinates in which their statistic is released.

    Attributes:
        features: [num_samples, dim] float.
        back: [dim, dim] float. If s is a statistic of these features, s @ back is the statistic of the original
            features; None without whitening.
        basis: [dim, rank] float, orthonormal columns that span the subspace in which theta is sought, in these
            coordinates; None means the whole space.
    """

    features: jax.Array
    back: jax.Array | None
    basis: jax.Array | None


def _coordinates(release: Release, zero_sum: bool, features: jax.Array) -> _Coordinates:
    features = center(features) if zero_sum else features
    if not release.whitened:
        return _Coordinates(features, None, search_basis(features, zero_sum=zero_sum))
    white = whiten(features, zero_sum=zero_sum)
    basis = jnp.eye(features.shape[1], dtype=features.dtype)[:, 1:] if zero_sum else None
    return _Coordinates(white.features, white.back, basis)


def report_statistic(release: Release, zero_sum: bool):
    """Builds `Estimator.privatize`, which releases the noisy statistic in the features' original coordinates."""

    def privatize(key, params: Params, features, labels):
        rows, back, basis = _coordinates(release, zero_sum, features)
        terms = rows * jnp.clip(labels, 0, 1).astype(rows.dtype)[:, None]
        sizes, lengths = jnp.abs(rows), params.lengths(rows)
        report = release_statistic(key, params, terms, sizes, lengths, lambda: _rows(rows), release, basis)
        if back is None:
            return report
        if isinstance(report, WithCut):
            return WithCut(jnp.matmul(report.report, back, precision="highest"), report.cut)
        return jnp.matmul(report, back, precision="highest")

    return privatize


def _ridge(
    release: Release, params: Params, coordinates: _Coordinates, unit: jax.Array, weights: jax.Array | None
) -> jax.Array:
    """Returns the requested beta or, if it is 0 and noise is whitened, the beta of least predicted margin error."""
    rows = coordinates.features
    requested = jnp.asarray(params.regularization, rows.dtype)
    if coordinates.back is None or params.margin_stddev is None:
        return requested
    rank = rows.shape[1] if coordinates.basis is None else coordinates.basis.shape[1]
    multiplier, epsilon = (jnp.asarray(value, rows.dtype) for value in (params.noise_multiplier, params.epsilon))
    variance = noise_variance(multiplier, epsilon, release.noise, rank) * unit**2
    chosen = least_error_ridge(coordinates.back, len(rows), variance, params.margin_stddev, weights)
    return jnp.where(requested > 0, requested, chosen.astype(rows.dtype))


@reusing_factory
def objective_perturbation(
    *,
    constants: str = "analytic",
    weights: str = "none",
    noise: str = "gaussian",
    geometry: str = "isotropic",
    zero_sum: bool = False,
    privacy_unit: str = "label",
    max_dim: int | None = None,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds a BTL estimator with central label privacy: maximum likelihood with noise on the labels' statistic.

    Labels enter the logistic loss only through the vector S = sum_i w_i y_i x_i. S is released once with noise, as S~,
    and the estimator minimises the loss with S~ in place of S (see Math). Without weights all w_i are 1.

    Features are public, so weights may depend on them: `weights="cut"` uses w_i = min(1, c / |x_i|). The estimate stays
    consistent, and the sensitivity falls from max |x_i| to c. For 1,000 to 50,000 samples of 2 to 20 Gaussian features,
    at epsilon = 0.1 and delta = 1e-6, the c with the least predicted error (`predicted_errors`) is mostly below the 20%
    quantile of |x_i|, and reduces the predicted root mean squared error by 30% to 60%. `noise="k_norm"` gives pure
    epsilon-DP with about the same error in few dimensions.

    `geometry="whitened"` adds the noise in coordinates in which the features' second moment is the identity on its
    range (directions outside the range get no noise). Every margin x^T theta then gets about the same noise. Use it if
    the margins matter rather than theta, as for preferences; if columns have different units; or if the second moment
    has very unequal or zero eigenvalues. This geometry also chooses the ridge.

    Args:
        constants: the calibration of Gaussian noise: "analytic", "classical" (raises for finite epsilon >= 1) or
            "paper".
        weights: "none" or "cut".
        noise: "gaussian", or "k_norm", which takes no delta.
        geometry: "isotropic", or "whitened"; |x_i| is then the norm in whitened coordinates, also in weights.
        zero_sum: whether to constrain sum(theta) = 0; features are centred first, which never increases their norms.
            K-norm noise then lies in the remaining dim - 1 dimensions.
        privacy_unit: "label" or "person". With "person", `params` also take persons, all labels of one person may
            change at once, and weights are w_i = min(1, c / D_i), with the D of the person who gave label i (see
            Privacy).
        max_dim: maximum dimension of the feature vectors; the claim allows for rounding errors up to this dimension.
            None means 4,096 with Gaussian noise, and 100 with K-norm noise.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}. Its
        `params` take epsilon, delta, radius (default inf), regularization beta (0) and tolerance (1e-5).

        * For weights="cut" they take cut, c (0: the c with the least predicted error; infinity: no cut).
        * For constants="paper" they take feature_norm L (inf or a value below half the largest |x_i| is replaced by
          this half).
        * For privacy_unit="person" they take persons, [num_samples] public ids.
        * For geometry="whitened" they take margin_stddev (1), a guess of the margins' standard deviation. If
          regularization is 0, beta is the value with the least predicted margin error for this guess (infinity: no
          ridge).

        Its `privatize` returns S~; with weights, a `WithCut`.

    Raises:
        ValueError: if a name is unknown, the constants do not support the noise, weights, unit or geometry, max_dim < 1
            or max_steps < 1. The result's `params` raises this error if epsilon <= 0, delta is outside (0, 1), a value
            is out of range, or constants are classical at finite epsilon >= 1. Data also raise it if they
            have more than max_dim features, or if persons does not have one id for each label.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model; with K-norm noise, epsilon-DP.
        - Unit: one label; adjacency: replace one.
        - Sensitivity: A label enters only through S, with L2 sensitivity max w_i |x_i| over the public features (at
          most 2 L, or c): another label changes S by w_i (y - y') x_i, and |y - y'| <= 1 also for labels in {0, 1/2,
          1}. The cut depends only on features, never on labels. The minimiser is post-processing, so the claim holds
          for approximate minimisers, every beta >= 0 and every constraint.
        - For one person, with public ids and numbers of labels: the sensitivity is the largest w D of a person. D is
          the least of sum_i |x_i|, sqrt(sum_ij |x_i.x_j|) and sqrt(k) |X|_op, for the matrix X of the person's k
          feature vectors x_i, with the spectral norm |X|_op.
        - With whitening, the same mechanism runs on the whitened features, which are public too; S~ is a linear map of
          its release, so post-processing (proof: docs/proofs/whitened_noise.md). The ridge uses only features and the
          values of `params`, all public.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 5.2, Algorithm 2; K-norm noise: Hardt & Talwar (2010).
        The weights, the person as unit and the whitened noise are additions of this library.

    Deviations:
        The noise is on S and calibrated by the analytic Gaussian mechanism at sensitivity max w_i |x_i|;
        `constants="paper"` uses sigma = L sqrt(8 log(2/delta) + 4 epsilon) / epsilon. The paper's proof needs the exact
        minimiser and beta > 0; the proof here needs neither. The paper has neither weights nor pure privacy. Terms of S
        are rounded to multiples of a step, at most 2^-59 n times the largest term, and summed as integers. The noise
        covers the change that this rounding can add to the terms of one label or person; noise and sum are rounded as
        in `gaussian` and `k_norm`. Whitened K-norm noise has all dim coordinates (dim - 1 with `zero_sum`) even if
        features are dependent.

    Math:
        The estimate minimises, over $|\theta| \le B$,

        $$
        \frac{1}{n} \sum_i w_i \ln(1 + e^{x_i^\top \theta}) - \frac{1}{n} \tilde S^\top \theta +
        \frac{\beta}{2 n} |\theta|^2
        $$

        with the noisy statistic of the labels

        $$
        \tilde S = \sum_i w_i y_i x_i + Z, \quad Z \sim N(0, \sigma^2 I)
        $$

        where $\sigma$ is calibrated to the $L_2$ sensitivity $\max_i w_i |x_i|$.
    """
    release = check_release(constants, weights, noise, privacy_unit=privacy_unit, geometry=geometry, max_dim=max_dim)

    def whitened_objective(params: Params, features, report, scale) -> Objective:
        coordinates = _coordinates(release, zero_sum, features * jnp.broadcast_to(scale, features.shape))
        lengths = params.lengths(coordinates.features)
        if not release.is_weighted:
            beta = _ridge(release, params, coordinates, sensitivity_unit(params, lengths, release), None)
            return statistic_objective(features, report / scale, beta / scale**2)
        beta = _ridge(release, params, coordinates, report.cut, cut_weights(lengths, report.cut))
        weighted = Weighted.of(lengths, report, scale)
        return statistic_objective(features, weighted.statistic, beta / scale**2 / weighted.mean, weighted.weights)

    def objective(params: Params, features, report, scale) -> Objective:
        ridge = jnp.asarray(params.regularization, features.dtype) / scale**2
        if not release.is_weighted:
            return statistic_objective(features, report / scale, ridge)
        weighted = Weighted.of(params.lengths(features * jnp.broadcast_to(scale, features.shape)), report, scale)
        return statistic_objective(features, weighted.statistic, ridge / weighted.mean, weighted.weights)

    def label_noise(params: Params, features) -> LabelNoise:
        coordinates = _coordinates(release, zero_sum, features)
        lengths, basis = params.lengths(coordinates.features), search_basis(features, zero_sum=zero_sum)
        unit, weights = sensitivity_unit(params, lengths, release), None
        if release.is_weighted:
            # The released cut is not available here, so it is computed again from the same features.
            unit = cut_of(params, lengths, _rows(coordinates.features), release, coordinates.basis)
            weights = cut_weights(lengths, unit)
        spread, beta = jnp.ones((), features.dtype), _ridge(release, params, coordinates, unit, weights)
        stddev, scale = jnp.asarray(params.noise_multiplier, features.dtype) * unit, None
        if release.noise == "k_norm":
            scale = unit / jnp.asarray(params.epsilon, features.dtype)
            stddev = jnp.zeros_like(scale)
        return LabelNoise(spread, stddev, beta, basis, weights, scale, coordinates.back)

    def covariance(params: Params, features, report, theta) -> Covariance:
        del report  # theta already depends on it
        return statistic_covariance(features, theta, label_noise(params, features))

    return full_batch_estimator(
        statistic_params("objective_perturbation", release, "tolerance"),
        statistic_claim(release),
        report_statistic(release, zero_sum),
        whitened_objective if release.whitened else objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        noise=None if release.whitened else label_noise,  # confidence sets support isotropic noise only
        covariance=covariance,
        large=partial(fit_large_statistic, release) if release.noise == "gaussian" else None,
    )
