"""Objective perturbation for whole records: features and label of a comparison are private.

It is Algorithm 2 of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) with the sigma and beta of Theorem E.1: `privatize`
draws w (line 2), and `perturbed_minimizer` minimises the perturbed objective (line 3). As no solver returns the exact
minimiser, `privatize` adds noise to what it returns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Estimator, Guarantee, Scalar, claimed, default_float, reusing_factory, scalar_leaf
from jaxdp.estimation.constraints import center, project, radius_leaf
from jaxdp.estimation.maximum_likelihood import MAX_STEPS
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
TOLERANCE = 1e-4  # of margins; float32 can certify about 1e-6 times |2 L theta|


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """What a sweep may vary.

    Attributes:
        noise_multiplier: [] float >= 0, standard deviation of w per unit of L; 0 at epsilon = inf.
        output_multiplier: [] float >= 0, of the noise on the minimiser, per unit of its sensitivity 2 tolerance.
        regularization: [] float >= 0, beta per unit of L^2, in the scale of the sum over samples.
        feature_norm: [] float > 0, L: differential features are shrunk to norm 2 L. It must not be read from the data.
        radius: [] float > 0, bound B on the parameter's norm; infinity is no bound.
        tolerance: [] float > 0, largest distance from the exact minimiser, times 2 L: what it can change of a margin.
    """

    noise_multiplier: Scalar
    output_multiplier: Scalar
    regularization: Scalar
    feature_norm: Scalar
    radius: Scalar
    tolerance: Scalar


class Release(NamedTuple):
    """All that leaves the curator.

    Attributes:
        theta: [dim] float, the noisy minimiser; NaN if the solver did not converge.
        converged: [] bool.
    """

    theta: jax.Array
    converged: jax.Array


def least_regularization(epsilon: float, constants: str) -> float:
    """The least beta per unit of L^2: 2 / epsilon, or as the paper has it 4 / epsilon."""
    return {"tight": 2, "paper": 4}[check_choice("constants", constants, CONSTANTS)] / check_epsilon(epsilon)


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Standard deviation of w per unit of L, Theorem E.1: 4 sqrt(8 ln(4 / delta) + 2 epsilon) / epsilon."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    return 0.0 if math.isinf(epsilon) else 4 * math.sqrt(8 * math.log(4 / delta) + 2 * epsilon) / epsilon


def output_multiplier(epsilon: float, delta: float, regularization: float) -> float:
    """Noise on the minimiser per unit of its sensitivity, from what the theorem leaves of epsilon and delta.

    The determinants' ratio costs log(1 + L^2 / beta), less than the epsilon / 2 that is set aside for it; the normal
    tails are 4 P(N > sqrt(2 ln(4 / delta))), less than half of delta. regularization is beta per unit of L^2.
    """
    from scipy.special import ndtr  # SciPy where it is used

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
    """Central maximum likelihood under BTL with privacy for whole comparisons, features and label.

    The minimiser of sum_i [log(1 + exp(x_i.theta)) - y_i x_i.theta] + (beta / 2) |theta|^2 + w.theta over
    |theta| <= radius, with w ~ N(0, sigma^2 I) and sigma = 4 L sqrt(8 ln(4 / delta) + 2 epsilon) / epsilon, is found to
    within `tolerance` / (2 L) and released with Gaussian noise that hides the rest, then projected on the ball.
    Everything happens in `privatize`: `fit` does not look at the features.

    A differential feature longer than 2 L is shrunk to it, one that is not finite is replaced by zero, and a label
    outside {0, 1} by the nearest: record by record, as an error would tell something of private data.

    Args:
        constants: "tight" or "paper": the least beta.
        weights: "none" alone: features are private here, and weights would tell of them.
        zero_sum: constrain sum(theta) = 0; features are centred first.
        max_steps: gradient evaluations at most, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}. Its
        `params` take epsilon, delta, feature_norm L, and radius (default inf), regularization beta (None: 4 L^2 /
        epsilon) and tolerance (1e-4). Of its estimates `certificate` is the tolerance or, where nothing was released,
        infinite, and `steps` is max_steps: the true ones would tell of the data. At epsilon = inf there is no noise,
        beta may be 0, and the tolerance is on the gradient of the mean objective.

    Raises:
        ValueError: if constants is unknown, weights are asked for or max_steps < 1; from `params`, if epsilon <= 0,
            delta is outside (0, 1), regularization is below its least, or another value is not > 0, or feature_norm not
            finite.
        RuntimeError: from `estimate`, if the solver did not converge.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model.
        - Unit: one comparison, features and label; adjacency: replace one (so the number of comparisons is public).
        - Sensitivity: L, radius and beta must be chosen without the data. *The exact minimiser.* At psi(theta) = sum_i
          (sigmoid(x_i.theta) - y_i) x_i + beta theta = -w the density is that of w times det(psi'). The Hessians of two
          neighbours are C + a x x^T and C + a' x' x'^T with a, a' in [0, 1/4] and C >= beta I, so by the determinant
          lemma the determinants' ratio is (1 + a x.C^-1 x) / (1 + a' x'.C^-1 x') <= 1 + L^2 / beta <= e^(epsilon / 2)
          for beta >= 2 L^2 / epsilon. psi differs by D = c' x' - c x, |c|, |c'| <= 1, so |D| <= 4 L and |w.D| <= |w.x|
          + |w.x'|, which is at most 4 L sigma z, z = sqrt(2 ln(4 / delta)), but with probability 4 P(N > z) < delta /
          2. The exponent is then at most (4 L sigma sqrt(8 ln(4 / delta)) + 16 L^2) / (2 sigma^2) <= epsilon / 2, as
          sqrt(1 - u) + u / 2 <= 1. A convex constraint is the limit of smooth penalties (successive approximation): the
          claim survives limits in law. *The inexact one.* Given the exact minimiser, what the solver returns lies
          within tolerance / (2 L) of it under either neighbour: a release of sensitivity twice that. Its Gaussian noise
          is calibrated to the epsilon and delta that the argument above leaves over, epsilon / 2 - log(1 + L^2 / beta)
          and what the tails leave, so the whole composes to (epsilon, delta). The least beta would leave little, about
          epsilon^2 / 8: twice that is the default. *Not covered*: that nothing is released where the solver did not
          converge. In exact arithmetic Newton's method always does; in floating point it fails where the tolerance is
          near rounding, which depends on the data. A failure is one bit about them: choose the tolerance so that none
          is seen, and `zero_sum` or 64-bit floats for features that span less than the space (of pairs of items, say),
          where beta alone curves the objective. Nor are the rounding of the certificate itself, of the noise, and the
          solver's time.
        - Slack: audits reach little of epsilon, for bounds are not met together. |c| + |c'| = 2 needs a theta that
          contradicts both comparisons surely; where it tells nothing of them, |c| = |c'| = 1/2, and w moves by 2 L,
          half of what is allowed for. A normal w that moves by 2 L or by 4 L spends epsilon 0.11 or 0.25 at delta =
          1e-3 where epsilon is 1 (`gaussian_epsilon`, which is exact): the tails of w.x and w.x' are bounded apart, and
          delta pays for all of a loss that lies beyond epsilon. The ratio of determinants is 1 + L^2 / beta only where
          the other comparisons have no curvature, nor has x', at the theta where that of x is largest.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem E.1, after Kifer, Smith & Thakurta (2012); output noise
        as in Iyengar et al. (2019).

    Deviations:
        Beta >= 2 L^2 / epsilon suffices, as the Hessians' difference has at most one positive eigenvalue;
        `constants="paper"` asks for 4 L^2 / epsilon. The proof's exponent has a slip of 2, which sigma survives. The
        paper needs the exact minimiser, which no solver returns.
    """
    check_choice("constants", constants, CONSTANTS)
    if weights != "none":
        raise ValueError(
            f"weights must be 'none' where features are private, as weights would tell of them, got {weights!r}"
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
        w = gaussian(key_objective, jnp.zeros(dim, dtype), noise_stddev(params.noise_multiplier, 0.5))  # over 2 L
        exact = perturbed_minimizer(params, features, labels, w, zero_sum=zero_sum, max_steps=max_steps)
        sensitivity = 2 * jnp.asarray(params.tolerance, dtype)
        stddev = noise_stddev(params.output_multiplier, sensitivity)
        noisy = gaussian(key_output, exact.theta, stddev, l2_sensitivity=sensitivity)
        width = 2 * jnp.asarray(params.feature_norm, dtype)
        theta = project(noisy, jnp.asarray(params.radius, dtype) * width, zero_sum=zero_sum) / width
        return Release(jnp.where(exact.converged, theta, jnp.nan), exact.converged)

    def fit(key, params: Params, features, report: Release) -> Estimate:
        del key, features  # they are private: the report is all that there is
        tolerance = jnp.asarray(params.tolerance, report.theta.dtype)
        certificate = jnp.where(report.converged, tolerance, jnp.inf)
        return Estimate(report.theta, certificate, jnp.int32(max_steps), report.converged)

    return Estimator(params, claimed(params, _claim), privatize, fit, check_records, check_released)


def perturbed_minimizer(
    params: Params, features: jax.Array, labels: jax.Array, w: jax.Array, *, zero_sum: bool, max_steps: int
) -> Estimate:
    """The exact minimiser as the solver finds it, which is private still.

    The objective is that of features x / (2 L), of norm at most 1, and of the parameter 2 L theta: the margins are the
    same, w becomes w / (2 L), and beta, which is given per unit of L^2, becomes a fourth of that.

    Args:
        params: noise is not read, but for whether there is any.
        features: [num_samples, dim] float.
        labels: [num_samples] int.
        w: [dim] float, the objective's linear term over 2 L.
        zero_sum: constrain sum(theta) = 0.
        max_steps: gradient evaluations at most.

    Returns:
        The estimate of 2 L theta; its certificate bounds the distance from the exact minimiser.
    """
    dtype, num_samples = features.dtype, features.shape[0]
    width = 2 * jnp.asarray(params.feature_norm, dtype)
    radius = jnp.asarray(params.radius, dtype) * width
    beta = jnp.asarray(params.regularization, dtype) / 4
    features = center(features) if zero_sum else features
    finite = jnp.all(jnp.isfinite(features), axis=1)
    unit = clip_norm(jnp.where(finite[:, None], features, 0), width) / width
    targets = jnp.clip(labels, 0, 1).astype(dtype)
    private = jnp.asarray(params.noise_multiplier, dtype) > 0
    # Not through the labels' sum: near the minimum residuals cancel as they are added up, so that rounding stays small.
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
    """Bounds the distance r from the minimiser, for features of norm at most 1.

    Logistic losses are self-concordant: between a point and the minimiser the Hessian H of the sum shrinks by at most
    e^-r. With g the gradient, mu > 0 the least eigenvalue of H and q = |H^(-1/2) g| / sqrt(mu), a point in the ball is
    within -log(1 - q), and if the minimiser is inside the ball, within |H^-1 g| + q^2 / (1 - q). On the boundary -g may
    have a part along theta: q with g + nu theta for g and H + nu / 2 for H, for any nu >= 0. A point near the boundary,
    at u |theta|, is moved there first: by a gap d, which adds sqrt(2) d |(H + nu)^(1/2) u| e^d to the numerator of q.

    Args:
        num_samples: number of comparisons.
        beta: [] float >= 0, regularization; mu is never less.
        radius: [] float > 0, of the ball.
        private: [] bool; if not, mu may be 0, and the norm of the mean gradient is taken.
        zero_sum: whether the ball is that of the zero-sum hyperplane; features are then centred.

    Returns:
        (theta, evaluation of the mean) -> [] float >= 0.
    """

    def certify(theta: jax.Array, evaluation: Evaluation) -> jax.Array:
        dim, info = theta.shape[0], jnp.finfo(theta.dtype)
        gradient, norm = num_samples * evaluation.gradient, jnp.linalg.norm(theta)
        # any curvature along the ones vector will do where nothing moves along it
        hessian = evaluation.hessian + jnp.asarray(1 / dim if zero_sum else 0, theta.dtype)
        eigenvalues, basis = eigh(hessian)
        curvatures = jnp.maximum(num_samples * (eigenvalues - dim * info.eps * eigenvalues[-1]), beta)

        def share(residual: jax.Array, curvatures: jax.Array) -> jax.Array:
            return jnp.linalg.norm(basis.T @ residual / jnp.sqrt(curvatures)) / jnp.sqrt(curvatures[0])

        def far(q: jax.Array) -> jax.Array:
            return -jnp.log1p(-jnp.minimum(q, 1))

        q = share(gradient, curvatures)
        near = jnp.linalg.norm(basis.T @ gradient / curvatures) + jnp.where(q < 1, q * q / (1 - q), jnp.inf)
        interior = norm + near < radius  # the minimiser without the ball is inside it, too
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
    """Checks what is public of private records, on the host: shapes and that they are numbers.

    Args:
        features: [num_samples, dim].
        labels: [num_samples].
        feature_norm: not read, as an error would tell which records are longer.

    Raises:
        ValueError: if a shape is wrong, or the records are not numbers.
    """
    del feature_norm
    features, labels = np.asarray(features), np.asarray(labels)
    for name, values in (("features", features), ("labels", labels)):
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool) or np.iscomplexobj(values):
            raise ValueError(f"{name} must be numbers, got dtype {values.dtype}")
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"features must have shape [num_samples, dim] with both >= 1, got {features.shape}")
    if labels.shape != features.shape[:1]:
        raise ValueError(f"labels must have shape [num_samples] = {features.shape[:1]}, got {labels.shape}")


def check_released(estimate: Estimate) -> None:
    """Raises RuntimeError where the solver did not converge, so that nothing was released."""
    if not estimate.converged:
        raise RuntimeError(
            "nothing was released: the solver did not come within tolerance of the minimiser; "
            "take zero_sum=True for features of pairs of items, a larger tolerance or regularization, or 64-bit floats"
        )


def _claim(epsilon: float, delta: float) -> Guarantee:
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="central",
        privacy_unit="one comparison, features and label",
        argument="none: epsilon is infinite, so that no noise is added"
        if math.isinf(epsilon)
        else "objective perturbation of a strongly convex objective (DP-Reward, Theorem E.1), with Gaussian noise on "
        "the minimiser for what the solver leaves, out of the theorem's slack; not covered: whether the solver "
        "converged, which a release that fails shows",
    )
