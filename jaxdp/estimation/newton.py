"""A damped Newton method on the ball, as an Optax transformation: the full-batch estimators' default optimiser."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxdp.estimation.objectives import Evaluation
from jaxdp.numerics.eigen import eigh

SECULAR_STEPS = 12  # Newton on the secular equation converges monotonically, quadratically near the root
FARTHEST = 1e6  # bound of an unbounded search whose objective has no minimum; products of its powers fit float32
LARGEST_DAMPING = 1e12
FIRST_DAMPING = 0.1  # relative to the mean curvature


class NewtonState(NamedTuple):
    """The best point so far, and how much to distrust its quadratic model.

    Attributes:
        theta: [dim] float.
        value: [] float, the objective there.
        gradient: [dim] float.
        hessian: [dim, dim] float.
        damping: [] float >= 0, added to the Hessian relative to its mean eigenvalue.
    """

    theta: jax.Array
    value: jax.Array
    gradient: jax.Array
    hessian: jax.Array
    damping: jax.Array


def minimize_quadratic_on_ball(hessian: jax.Array, linear: jax.Array, radius: jax.Array) -> jax.Array:
    """The minimiser of theta.H.theta / 2 - linear.theta over |theta| <= radius.

    Args:
        hessian: [dim, dim] float, symmetric. It may be indefinite: the minimum over a finite ball exists all the same,
            and without a bound the eigenvalues' absolute values are taken.
        linear: [dim] float.
        radius: [] float > 0; infinity is no bound.

    Returns:
        [dim] float: (H + nu I)^-1 linear, with nu = 0 inside the ball and otherwise the root of |theta(nu)| = radius.

    Source:
        More & Sorensen (1983), Newton on 1/|theta(nu)| - 1/radius.
    """
    info = jnp.finfo(hessian.dtype)
    unbounded = jnp.isinf(radius)
    radius = jnp.where(unbounded, FARTHEST, radius)
    eigenvalues, basis = eigh(hessian)
    eigenvalues = jnp.where(unbounded, jnp.abs(eigenvalues), eigenvalues)
    unit = jnp.maximum(jnp.max(jnp.abs(eigenvalues)), jnp.maximum(jnp.linalg.norm(linear) / radius, info.tiny))
    eigenvalues, rotated = eigenvalues / unit, linear @ basis / unit  # powers of these stay in range
    # Left of the root, where Newton converges monotonically; H + nu I is positive definite from here on.
    least = jnp.maximum(info.eps - jnp.min(eigenvalues), jnp.linalg.norm(rotated) / radius - 1)
    least = jnp.maximum(least, 0)

    def secular(nu: jax.Array, _: None) -> tuple[jax.Array, None]:
        shifted = rotated / (eigenvalues + nu)
        squared = jnp.maximum(jnp.sum(shifted**2), info.tiny)
        excess = jnp.sqrt(squared) / radius - 1
        return jnp.maximum(nu + excess * squared / jnp.sum(shifted**2 / (eigenvalues + nu)), least), None

    nu, _ = jax.lax.scan(secular, least, None, length=SECULAR_STEPS)
    return basis @ (rotated / (eigenvalues + nu))


def newton_on_ball(radius: jax.Array, *, zero_sum: bool = False) -> optax.GradientTransformationExtraArgs:
    """Newton's method with Levenberg-Marquardt damping; each step minimises the quadratic model over the ball.

    A step that raises the objective is undone at the next call, and repeated with more damping. `update` takes the
    objective's `Evaluation` at the current parameters as the extra argument `evaluation`.

    Args:
        radius: [] float > 0; infinity is no bound.
        zero_sum: keep the components' sum at zero. Gradients and Hessians are then expected to vanish along the ones
            vector, as those of centred features do.

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
        )

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        gradient, theta = jnp.asarray(updates), jnp.asarray(params)
        evaluation: Evaluation = extra_args["evaluation"]
        slack = 4 * jnp.finfo(theta.dtype).eps * evaluation.magnitude  # a rise within rounding is none
        better = evaluation.value <= state.value + slack
        damping = jnp.where(better, state.damping / 4, jnp.clip(4 * state.damping, FIRST_DAMPING, LARGEST_DAMPING))
        damping = jnp.where(damping < FIRST_DAMPING / 4, 0.0, damping).astype(theta.dtype)
        best = NewtonState(theta, evaluation.value, gradient, evaluation.hessian, damping)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), best, state._replace(damping=damping))

        slope = jnp.linalg.norm(best.gradient) / (1 + jnp.linalg.norm(best.theta))  # where nothing curves any more
        curvature = jnp.maximum(jnp.abs(jnp.trace(best.hessian)) / theta.shape[0], slope)
        model = best.hessian + best.damping * curvature * jnp.eye(theta.shape[0], dtype=theta.dtype)
        if zero_sum:  # any positive curvature along the ones vector keeps the step out of it
            model = model + curvature / theta.shape[0]
        target = minimize_quadratic_on_ball(model, model @ best.theta - best.gradient, radius)
        return target - theta, best

    return optax.GradientTransformationExtraArgs(init, update)
