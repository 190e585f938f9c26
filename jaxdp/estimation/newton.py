"""Implements a damped Newton method for |theta| <= radius, as an Optax transformation.

Full-batch estimators use it by default.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.estimation.objectives import Evaluation
from jaxdp.numerics.eigen import Eigen, eigh

SECULAR_STEPS = 12  # Newton on the secular equation converges monotonically, quadratically near the root
# Replaces an infinite radius, since an objective may have no minimum. Products in `secular` then fit float32.
FARTHEST = 1e6
LARGEST_DAMPING = 1e12
FIRST_DAMPING = 0.1  # relative to the mean curvature
ROUNDINGS = 8  # rounding errors, relative to the largest eigenvalue or to 1, are at most this times sqrt(dim) eps


class NewtonState(NamedTuple):
    """The best point so far and the damping of its quadratic model.

    Attributes:
        theta: [dim] float.
        value: [] float, the objective at theta.
        gradient: [dim] float.
        hessian: [dim, dim] float.
        damping: [] float >= 0; damping times c is added to the Hessian's diagonal. c is the larger of two numbers: the
            absolute value of the Hessian's mean eigenvalue, and |gradient| / (1 + |theta|).
        decrement: [] float >= 0, the Newton decrement at the last evaluated point, or a lower bound on it; see
            `newton_decrement`.
    """

    theta: jax.Array
    value: jax.Array
    gradient: jax.Array
    hessian: jax.Array
    damping: jax.Array
    decrement: jax.Array


def minimize_quadratic_on_ball(
    eigen: Eigen, linear: jax.Array, radius: jax.Array, *, has_flat: jax.Array | bool = False
) -> jax.Array:
    """Minimises theta^T H theta / 2 - linear^T theta over |theta| <= radius.

    Args:
        eigen: eigendecomposition of H, [dim, dim]. H may be indefinite: a minimum over a finite ball still exists.
        linear: [dim] float.
        radius: [] float > 0. If it is infinite, the radius `FARTHEST` and the absolute values of the eigenvalues are
            used.
        has_flat: [] bool, whether directions without curvature and slope, up to rounding, count as flat. If so, the
            result is the minimiser of least norm, which is zero along flat directions.

    Returns:
        [dim] float: theta(nu) = (H + nu I)^-1 linear. If H is positive definite and |theta(0)| <= radius, nu is 0.
        Otherwise nu is the root of |theta(nu)| = radius for which H + nu I is positive definite. If H is singular or
        indefinite, there may be no such root; then nu is just above the absolute value of the lowest eigenvalue. For a
        positive semidefinite H the result is then the minimiser of least norm, up to rounding; for an indefinite H it
        is not the minimiser.

    Source:
        More & Sorensen (1983): Newton's method for the root of 1 / |theta(nu)| - 1 / radius.
    """
    eigenvalues, basis = eigen
    info = jnp.finfo(eigenvalues.dtype)
    unbounded = jnp.isinf(radius)
    radius = jnp.where(unbounded, FARTHEST, radius)
    eigenvalues = jnp.where(unbounded, jnp.abs(eigenvalues), eigenvalues)
    unit = jnp.max(jnp.abs(eigenvalues))
    unit = jnp.maximum(unit, jnp.maximum(jnp.linalg.norm(linear) / radius, info.tiny))
    rotated = linear @ basis
    flat = has_flat & is_flat(eigenvalues, rotated)
    eigenvalues, rotated = eigenvalues / unit, rotated / unit  # powers of these stay in range
    eigenvalues, rotated = jnp.where(flat, 1, eigenvalues), jnp.where(flat, 0, rotated)
    # `least` is left of the root, where Newton converges monotonically. H + nu I is positive definite for nu >= least.
    least = jnp.maximum(info.eps - jnp.min(eigenvalues), jnp.linalg.norm(rotated) / radius - 1)
    least = jnp.maximum(least, 0)

    def secular(nu: jax.Array, _: None) -> tuple[jax.Array, None]:
        shifted = rotated / (eigenvalues + nu)
        squared = jnp.maximum(jnp.sum(shifted**2), info.tiny)
        excess = jnp.sqrt(squared) / radius - 1
        return jnp.maximum(nu + excess * squared / jnp.sum(shifted**2 / (eigenvalues + nu)), least), None

    nu, _ = jax.lax.scan(secular, least, None, length=SECULAR_STEPS)
    return basis @ (rotated / (eigenvalues + nu))


def is_flat(eigenvalues: jax.Array, slopes: jax.Array) -> jax.Array:
    """Returns whether the curvature and the slope along each eigenvector are zero up to rounding, as [dim] bool.

    `slopes` ([dim]) are the components of a gradient or of the linear term along the eigenvectors. The bound on their
    rounding errors holds for features of size about 1.
    """
    level = relative_rounding(eigenvalues)
    is_straight = jnp.abs(eigenvalues) <= level * jnp.max(jnp.abs(eigenvalues))
    return is_straight & (jnp.abs(slopes) <= level * (1 + jnp.linalg.norm(slopes)))


def newton_decrement(
    theta: jax.Array, evaluation: Evaluation, eigen: Eigen, radius: jax.Array, *, is_current: jax.Array
) -> jax.Array:
    """Returns the Newton decrement sqrt(r^T (H + nu I)^-1 r) at theta, or a lower bound on it. The result is [] float.

    H is the Hessian, r is gradient + nu theta, and nu >= 0 is the Lagrange multiplier of |theta| <= radius. The
    decrement times the square root of the number of samples is the distance from the minimiser in standard errors, in
    any unit of the features. Without a ridge, flat directions (`is_flat`) do not count. `eigen` decomposes H; negative
    eigenvalues count by their absolute values. Each coordinate i gives the lower bound |r_i| / sqrt(H_ii + nu). If
    `eigen` does not belong to theta (`is_current` is false, [] bool), the result is the largest of these bounds.
    """
    info, ridge = jnp.finfo(theta.dtype), jnp.max(evaluation.ridge)
    squared = theta @ theta
    on_sphere = jnp.sqrt(squared) >= radius * (1 - 16 * info.eps)
    outward = jnp.maximum(-(evaluation.gradient @ theta), 0) / jnp.maximum(squared, info.tiny)
    nu = jnp.where(on_sphere, outward, 0)
    residual = evaluation.gradient + nu * theta
    slopes, curvatures = residual @ eigen.vectors, jnp.abs(eigen.values)
    flat = (ridge == 0) & is_flat(eigen.values, slopes)
    least = jnp.maximum(relative_rounding(curvatures) * jnp.max(curvatures), ridge)
    # A curvature that may be only rounding is replaced by the largest value that it may have.
    curvatures = jnp.maximum(jnp.maximum(curvatures, least) + nu, info.tiny)
    decrement = jnp.linalg.norm(jnp.where(flat, 0, slopes / jnp.sqrt(curvatures)))
    # Each coordinate gives a lower bound, even if rounding hides the curvature of columns in small units.
    single_coordinates = jnp.abs(residual) / jnp.sqrt(jnp.maximum(jnp.diagonal(evaluation.hessian) + nu, info.tiny))
    return jnp.maximum(jnp.where(is_current, decrement, 0), jnp.max(single_coordinates))


def relative_rounding(eigenvalues: jax.Array) -> np.ndarray:
    """Returns the fraction of the largest eigenvalue below which eigenvalues ([dim]) may be rounding errors."""
    dtype = eigenvalues.dtype
    return np.asarray(ROUNDINGS * np.sqrt(eigenvalues.shape[0]) * jnp.finfo(dtype).eps, dtype)


def newton_on_ball(radius: jax.Array, *, zero_sum: bool = False) -> optax.GradientTransformationExtraArgs:
    """Builds Newton's method with Levenberg-Marquardt damping; each step minimises the quadratic model over the ball.

    A step that raises the objective is undone at the next call and repeated with more damping. `update` takes the
    `Evaluation` at the current parameters as the extra argument `evaluation`.

    Args:
        radius: [] float > 0; if it is infinite, steps stay in a ball of radius `FARTHEST`.
        zero_sum: keep the components' sum at zero. Gradients must then sum to zero, and the ones vector must be an
            eigenvector of Hessians, as it is for centred features without a ridge or with a scalar one.

    Returns:
        An Optax transformation for parameters of shape [dim].
    """

    def init(params: Any) -> NewtonState:
        theta = jnp.asarray(params)
        dim, dtype = theta.shape[0], theta.dtype
        return NewtonState(
            theta=theta,
            value=jnp.asarray(jnp.inf, dtype),
            gradient=jnp.zeros_like(theta),
            hessian=jnp.zeros((dim, dim), dtype),
            damping=jnp.asarray(0.0, dtype),
            decrement=jnp.asarray(jnp.inf, dtype),
        )

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        gradient, theta = jnp.asarray(updates), jnp.asarray(params)
        evaluation: Evaluation = extra_args["evaluation"]
        slack = 4 * jnp.finfo(theta.dtype).eps * evaluation.magnitude  # a smaller increase may be a rounding error
        better = evaluation.value <= state.value + slack
        damping = jnp.where(better, state.damping / 4, jnp.clip(4 * state.damping, FIRST_DAMPING, LARGEST_DAMPING))
        damping = jnp.where(damping < FIRST_DAMPING / 4, 0.0, damping).astype(theta.dtype)
        best = NewtonState(theta, evaluation.value, gradient, evaluation.hessian, damping, state.decrement)
        best = jax.tree.map(
            lambda candidate, previous: jnp.where(better, candidate, previous), best, state._replace(damping=damping)
        )

        slope = jnp.linalg.norm(best.gradient) / (1 + jnp.linalg.norm(best.theta))  # used if larger
        curvature = jnp.maximum(jnp.abs(jnp.trace(best.hessian)) / theta.shape[0], slope)
        shift = best.damping * curvature
        model = best.hessian + shift * jnp.eye(theta.shape[0], dtype=theta.dtype)
        if zero_sum:  # positive curvature along the ones vector keeps the step orthogonal to it
            model = model + curvature / theta.shape[0]
        eigen = eigh(model)
        linear, has_flat = model @ best.theta - best.gradient, jnp.all(evaluation.ridge == 0)
        target = minimize_quadratic_on_ball(eigen, linear, radius, has_flat=has_flat)
        undamped = eigen._replace(values=eigen.values - shift)
        decrement = newton_decrement(theta, evaluation, undamped, radius, is_current=better)
        return target - theta, best._replace(decrement=decrement)

    return optax.GradientTransformationExtraArgs(init, update)
