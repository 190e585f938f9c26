"""Objective perturbation for whole records: both features and label of a comparison are private.

This is Algorithm 2 of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) with sigma and beta of Theorem E.1: `privatize`
draws w (line 2), and `perturbed_minimizer` minimises the perturbed objective (line 3). No solver returns the exact
minimiser, so `privatize` also adds noise to the returned point.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Estimator, Guarantee, Scalar, default_float, guarantee_for, reusing_factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.constraints import center, project, radius_leaf
from jaxdp.estimation.full_batch import MAX_STEPS
from jaxdp.estimation.noisy_statistic import noise_stddev
from jaxdp.estimation.objectives import Evaluation, add_quadratic, label_loss, likelihood_objective
from jaxdp.estimation.solver import Estimate, minimize
from jaxdp.mechanisms import analytic_gaussian, gaussian, round_up
from jaxdp.numerics.eigen import eigh
from jaxdp.preferences import clip_norm, logistic
from jaxdp.validation import (
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_number,
    check_positive,
)

CONSTANTS = ("tight", "paper")
TOLERANCE = 1e-4  # bounds errors of margins; float32 can certify about 1e-6 times |2 L theta|


@pytree_dataclass
class Params:
    """Values that a sweep may vary.

    Attributes:
        noise_multiplier: [] float >= 0, standard deviation of w divided by L; 0 at epsilon = inf.
        output_multiplier: [] float >= 0, standard deviation of the noise on the solver's 2 L theta, divided by 2
            tolerance, the sensitivity of this point given the exact minimiser.
        regularization: [] float >= 0, beta / L^2; beta is on the scale of the sum over samples.
        feature_norm: [] float > 0, L; differential features with a norm above 2 L are rescaled to norm 2 L. L must not
            depend on the data.
        radius: [] float > 0, bound B on the parameter's norm; infinity means no bound.
        tolerance: [] float > 0. At finite epsilon, 2 L times the maximum distance of the solver's point from the exact
            minimiser; no margin changes by more than this. At epsilon = inf, the maximum certificate of a converged
            point; see `distance_bound`.
    """

    noise_multiplier: Scalar
    output_multiplier: Scalar
    regularization: Scalar
    feature_norm: Scalar
    radius: Scalar
    tolerance: Scalar


class Release(NamedTuple):
    """Everything that the curator releases: the estimate, and whether the solver converged.

    Attributes:
        theta: [dim] float, the noisy minimiser; NaN if the solver did not converge.
        converged: [] bool.
    """

    theta: jax.Array
    converged: jax.Array


def least_regularization(epsilon: float, constants: str) -> float:
    """Returns the smallest allowed beta / L^2: 2 / epsilon ("tight") or 4 / epsilon ("paper")."""
    return {"tight": 2, "paper": 4}[check_choice("constants", constants, CONSTANTS)] / check_epsilon(epsilon)


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Returns the standard deviation of the objective's random vector w, divided by L; 0 if epsilon is infinite.

    By Theorem E.1 the result is 4 sqrt(8 ln(4 / delta) + 2 epsilon) / epsilon.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    return 0.0 if math.isinf(epsilon) else 4 * math.sqrt(8 * math.log(4 / delta) + 2 * epsilon) / epsilon


def output_multiplier(epsilon: float, delta: float, regularization: float) -> float:
    """Returns the standard deviation of the noise on the solver's point, divided by the point's sensitivity.

    The noise spends the part of the budget that the exact minimiser leaves: epsilon / 2 - log(1 + L^2 / beta) of
    epsilon, and delta - 4 P(N > sqrt(2 ln(4 / delta))) of delta, where N is standard normal. `regularization` is beta /
    L^2. At epsilon = inf there is no noise.
    """
    from scipy.special import ndtr  # imported here because SciPy is slow to import

    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if math.isinf(epsilon):
        return 0.0
    epsilon_left = epsilon / 2 - math.log1p(1 / regularization)
    delta_left = delta - 4 * float(ndtr(-math.sqrt(2 * math.log(4 / delta))))
    return analytic_gaussian(epsilon_left, delta_left)


@reusing_factory
def objective_perturbation_full(
    *, constants: str = "tight", weights: str = "none", zero_sum: bool = False, max_steps: int = MAX_STEPS
) -> Estimator:
    r"""Builds a BTL estimator with central privacy for whole comparisons (features and label).

    The objective is the logistic loss plus a ridge and a random linear term w^T theta (see Math). The solver comes
    within `tolerance` / (2 L) of the minimiser over |theta| <= radius. Gaussian noise hides the solver's error; the
    noisy point is projected onto the ball and released. All of this happens in `privatize`: `fit` does not read the
    features.

    Invalid records raise no error, since an error would reveal private data. Each record is corrected separately: a
    differential feature with a norm above 2 L is rescaled to norm 2 L, a differential feature with an entry that is not
    finite is replaced by the zero vector, labels are clipped to [0, 1], and a NaN label counts as 0.

    Args:
        constants: "tight" or "paper"; determines the smallest allowed beta.
        weights: only "none": features are private here, and weights would reveal them.
        zero_sum: whether to constrain sum(theta) = 0; features are centred first.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}. Its
        `params` take epsilon, delta, feature_norm L, radius (default inf), regularization beta (None: 4 L^2 / epsilon)
        and tolerance (1e-4). An estimate's `certificate` is the tolerance, or infinity if nothing was released, and its
        `steps` is max_steps: the true values would reveal data. At epsilon = inf there is no noise, beta may be 0, and
        the tolerance is on the gradient of the mean objective.

    Raises:
        ValueError: if constants is unknown, weights is not "none" or max_steps < 1. The result's `params` raises this
            error if epsilon <= 0, delta is outside (0, 1), regularization is below the least beta, another value is not
            > 0, or feature_norm, regularization or tolerance is not finite.
        RuntimeError: from `estimate`, if the solver did not converge.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model.
        - Unit: one comparison, features and label; adjacency: replace one (so the number of comparisons is public).
        - Sensitivity: L, radius and beta must be chosen without the data. If one record is replaced, the w that leads
          to a given theta moves by at most 4 L, and the solver's point, given the exact minimiser, by at most tolerance
          / L. The exact minimiser spends epsilon / 2 + log(1 + L^2 / beta), and less than half of delta; the noise on
          the solver's point spends the rest. The least beta of "tight" would leave only about epsilon^2 / 8 for this
          noise, so the default is twice as large, 4 L^2 / epsilon, for both constants.
        - Slack: audits reach only a small part of epsilon, because no data attain all bounds together.
        - Proofs: `docs/proofs/objective_perturbation_full.md`.
        - Not covered: the event that nothing is released because the solver did not converge. In exact arithmetic
          Newton's method converges if max_steps is large enough. In floating point it fails if the tolerance is close
          to rounding errors. These errors and the number of steps depend on the data, so a failure reveals one bit
          about the data. Choose the tolerance and max_steps so that no failure occurs. Use `zero_sum` or 64-bit floats
          if the features do not span the space (as features of pairs of items), since then only beta curves the
          objective in some direction. The claim also does not cover rounding of the certificate and of the noise, or
          the solver's running time.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem E.1, after Kifer, Smith & Thakurta (2012); output noise
        as in Iyengar et al. (2019).

    Deviations:
        Beta >= 2 L^2 / epsilon suffices, as the Hessians' difference has at most one positive eigenvalue;
        `constants="paper"` requires 4 L^2 / epsilon. The exponent in the paper's proof is off by a factor of 2, but its
        sigma suffices. The paper needs the exact minimiser, which no solver returns.

    Math:
        The following minimiser is released with Gaussian noise, which hides the solver's error:

        $$
        \operatorname{argmin}_{|\theta| \le B} \sum_i \Big( \ln(1 + e^{x_i^\top \theta}) - y_i x_i^\top \theta \Big) +
        \frac{\beta}{2} |\theta|^2 + w^\top \theta, \quad w \sim N(0, \sigma^2 I)
        $$

        with $\sigma$ of Theorem E.1. The theorem requires $\beta \ge 4 L^2 / \varepsilon$, which is the default; for
        "tight" half of this is enough:

        $$
        \sigma = \frac{4 L \sqrt{8 \ln(4 / \delta) + 2 \varepsilon}}{\varepsilon}, \quad
        \beta \ge \frac{2 L^2}{\varepsilon}
        $$
    """
    check_choice("constants", constants, CONSTANTS)
    if weights != "none":
        raise ValueError(
            f"weights must be 'none', since features are private and weights would reveal them, got {weights!r}"
        )
    check_count("max_steps", max_steps)

    def params(
        *,
        epsilon: float,
        delta: float,
        feature_norm: float,
        radius: float = np.inf,
        regularization: float | None = None,
        tolerance: float = TOLERANCE,
    ) -> Params:
        norm = check_positive("feature_norm", feature_norm)
        least = least_regularization(epsilon, constants)
        beta = least_regularization(epsilon, "paper")
        if regularization is not None:
            if not check_number("regularization", regularization) >= least * norm**2:
                raise ValueError(
                    f"regularization must be >= {least * epsilon:g} feature_norm^2 / epsilon = {least * norm**2:g}, "
                    f"got {regularization}"
                )
            beta = regularization / norm**2
        dtype = default_float()
        return Params(
            noise_multiplier=round_up(noise_multiplier(epsilon, delta), dtype),
            output_multiplier=round_up(output_multiplier(epsilon, delta, max(beta, least)), dtype),
            regularization=round_up(check_number("regularization", max(beta, least)), dtype),
            feature_norm=scalar_leaf("feature_norm", norm),
            radius=radius_leaf(radius),
            tolerance=scalar_leaf("tolerance", check_positive("tolerance", tolerance)),
        )

    def privatize(key, params: Params, features, labels) -> Release:
        dtype, dim = features.dtype, features.shape[1]
        key_objective, key_output = jax.random.split(key)
        # This w is w / (2 L), which has the standard deviation noise_multiplier / 2.
        w = gaussian(key_objective, jnp.zeros(dim, dtype), noise_stddev(params.noise_multiplier, 0.5))
        exact = perturbed_minimizer(params, features, labels, w, zero_sum=zero_sum, max_steps=max_steps)
        sensitivity = 2 * jnp.asarray(params.tolerance, dtype)
        stddev = noise_stddev(params.output_multiplier, sensitivity)
        noisy = gaussian(key_output, exact.theta, stddev, l2_sensitivity=sensitivity)
        width = 2 * jnp.asarray(params.feature_norm, dtype)
        theta = project(noisy, jnp.asarray(params.radius, dtype) * width, zero_sum=zero_sum) / width
        return Release(jnp.where(exact.converged, theta, jnp.nan), exact.converged)

    def fit(key, params: Params, features, report: Release) -> Estimate:
        del key, features  # features are private: only the report is used
        tolerance = jnp.asarray(params.tolerance, report.theta.dtype)
        certificate = jnp.where(report.converged, tolerance, jnp.inf)
        return Estimate(report.theta, certificate, jnp.int32(max_steps), report.converged)

    return Estimator(params, guarantee_for(params, _claim), privatize, fit, check_records, check_released)


def perturbed_minimizer(
    params: Params, features: jax.Array, labels: jax.Array, w: jax.Array, *, zero_sum: bool, max_steps: int
) -> Estimate:
    """Minimises the loss plus a ridge and w^T (2 L theta); returns the estimate of 2 L theta and a bound on its error.

    `w`, [dim] float, is the paper's w divided by 2 L.
    """
    # Features x / (2 L) have norm at most 1. With the parameter 2 L theta, margins do not change; w becomes w / (2 L),
    # and beta becomes beta / (4 L^2), a quarter of `params.regularization`.
    dtype, num_samples = features.dtype, features.shape[0]
    width = 2 * jnp.asarray(params.feature_norm, dtype)
    radius = jnp.asarray(params.radius, dtype) * width
    beta = jnp.asarray(params.regularization, dtype) / 4
    features = center(features) if zero_sum else features
    finite = jnp.all(jnp.isfinite(features), axis=1)
    unit = clip_norm(jnp.where(finite[:, None], features, 0), width) / width
    targets = jnp.clip(jnp.nan_to_num(labels), 0, 1).astype(dtype)  # a NaN label must not show
    private = jnp.asarray(params.noise_multiplier, dtype) > 0
    # Sums of residuals, not of labels and predictions separately: near the minimum residuals cancel, so rounding errors
    # stay small.
    losses = likelihood_objective(unit, targets, label_loss(logistic), careful=True)
    return minimize(
        add_quadratic(losses, w / num_samples, beta / num_samples),
        dim=features.shape[1],
        radius=radius,
        tolerance=jnp.asarray(params.tolerance, dtype),
        zero_sum=zero_sum,
        max_steps=max_steps,
        certify=distance_bound(num_samples, beta, radius, private=private, zero_sum=zero_sum),
    )


def distance_bound(
    num_samples: int, beta: jax.Array, radius: jax.Array, *, private: jax.Array, zero_sum: bool
) -> Callable[[jax.Array, Evaluation], jax.Array]:
    """Builds a bound on the distance of a point from the minimiser, for features of norm at most 1.

    The section "The certificate" of `docs/proofs/objective_perturbation_full.md` derives the bound.

    Args:
        num_samples: number of comparisons.
        beta: [] float >= 0, regularization on the scale of the sum over samples: num_samples times each eigenvalue of
            the mean objective's Hessian is at least beta.
        radius: [] float > 0, radius of the ball.
        private: [] bool, whether epsilon is finite. If it is not, beta may be 0, and the function returns no bound, but
            the norm of the mean gradient. At a finite radius the function then returns the smaller of this norm and a
            sum: the distance to the sphere, plus the norm of the mean gradient without its part along -theta.
        zero_sum: whether the ball lies in the zero-sum hyperplane; features are then centred.

    Returns:
        A function (theta, evaluation of the mean objective) -> [] float >= 0.
    """

    def certify(theta: jax.Array, evaluation: Evaluation) -> jax.Array:
        dim, info = theta.shape[0], jnp.finfo(theta.dtype)
        gradient, norm = num_samples * evaluation.gradient, jnp.linalg.norm(theta)
        # No point moves along the ones vector, so the code may add any curvature in this direction.
        hessian = evaluation.hessian + jnp.asarray(1 / dim if zero_sum else 0, theta.dtype)
        eigenvalues, basis = eigh(hessian)
        curvatures = jnp.maximum(num_samples * (eigenvalues - dim * info.eps * eigenvalues[-1]), beta)

        def share(residual: jax.Array, curvatures: jax.Array) -> jax.Array:
            return jnp.linalg.norm(basis.T @ residual / jnp.sqrt(curvatures)) / jnp.sqrt(curvatures[0])

        def far(q: jax.Array) -> jax.Array:
            return -jnp.log1p(-jnp.minimum(q, 1))

        q = share(gradient, curvatures)
        near = jnp.linalg.norm(basis.T @ gradient / curvatures) + jnp.where(q < 1, q * q / (1 - q), jnp.inf)
        interior = norm + near < radius  # the unconstrained minimiser is in the ball
        inside = jnp.where(norm <= radius, jnp.where(interior, jnp.minimum(near, far(q)), far(q)), jnp.inf)
        inside = jnp.where(private, inside, jnp.linalg.norm(gradient) / num_samples)

        outward = jnp.maximum(-(gradient @ theta) / jnp.maximum(norm**2, info.tiny), 0)
        residual = gradient + outward * theta
        gap = jnp.abs(jnp.where(jnp.isinf(radius), norm, radius) - norm)
        unit = theta / jnp.maximum(norm, info.tiny)
        moved = gap * jnp.sqrt(2 * (num_samples * (unit @ evaluation.hessian @ unit) + outward))
        steeper = curvatures + outward / 2
        q = share(residual, steeper) + moved * jnp.exp(gap) / jnp.sqrt(steeper[0])
        boundary = gap + far(q * jnp.exp(gap))
        boundary = jnp.where(private, boundary, gap + jnp.linalg.norm(residual) / num_samples)
        return jnp.where(jnp.isinf(radius), inside, jnp.minimum(inside, boundary))

    return certify


def check_records(features: ArrayLike, labels: ArrayLike, *, feature_norm: float = np.inf) -> None:
    """Checks, on the host, only the public properties of private records: their shapes, and that dtypes are numeric."""
    del feature_norm  # an error would reveal that some record has a larger norm
    features, labels = np.asarray(features), np.asarray(labels)
    for name, values in (("features", features), ("labels", labels)):
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool) or np.iscomplexobj(values):
            raise ValueError(f"{name} must be numbers, got dtype {values.dtype}")
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"features must have shape [num_samples, dim] with both >= 1, got {features.shape}")
    if labels.shape != features.shape[:1]:
        raise ValueError(f"labels must have shape [num_samples] = {features.shape[:1]}, got {labels.shape}")


def check_released(estimate: Estimate) -> None:
    """Raises a RuntimeError if the solver did not converge, because in that case nothing was released."""
    if not estimate.converged:
        raise RuntimeError(
            "nothing was released: the solver did not come within tolerance of the minimiser; use zero_sum=True for "
            "features of pairs of items, a larger tolerance or regularization, or 64-bit floats"
        )


def _claim(epsilon: float, delta: float) -> Guarantee:
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="central",
        privacy_unit="one comparison, features and label",
        argument="none: epsilon is infinite, so that no noise is added"
        if math.isinf(epsilon)
        else "objective perturbation of a strongly convex objective (DP-Reward, Theorem E.1); Gaussian noise on the "
        "minimiser, paid from the theorem's slack, covers the solver's remaining error; not covered: whether the "
        "solver converged, which a release that fails shows",
    )
