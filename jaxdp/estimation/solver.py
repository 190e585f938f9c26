"""The full-batch solver: an Optax optimiser, a projection, and a certificate that decides when to stop."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxdp.estimation.constraints import center, project
from jaxdp.estimation.newton import NewtonState, newton_on_ball, relative_rounding
from jaxdp.estimation.objectives import Evaluation, Objective

# A column gets a separate scale if its size, divided by the overall scale (a power of two), is >= 2^7 or < 2^-6.
APART = 7
DECREMENT_RATIO = 100  # a converged point's Newton decrement is at most this number times the tolerance


class Estimate(NamedTuple):
    """The result of an estimator.

    Attributes:
        theta: [dim] float, the estimate.
        certificate: [] float >= 0, norm of the projected gradient |theta - P(theta - gradient)| of the mean objective
            at theta; zero if and only if theta is a stationary point of the constrained problem. Newton's method
            computes it for features scaled to a root mean square in [1, 2). NaN if the search failed; theta is then
            NaN. Infinity for one-pass SGD, which has no certificate; `objective_perturbation_full` has a different
            certificate.
        steps: [] int32, number of gradient evaluations; for `objective_perturbation_full`, their maximum number.
        converged: [] bool, whether the certificate is at most the requested tolerance and, for Newton's method, the
            Newton decrement is at most 100 times the tolerance. With n samples, theta is then within 100 * tolerance *
            sqrt(n) standard errors of the minimiser, in any unit of the features: 0.1 at n = 10,000 and tolerance 1e-5.
            This distance excludes directions that the features do not determine, up to rounding. Fits in blocks of
            rows bound another norm in place of the decrement (see `large_newton.fit_blocks`). In 32-bit mode, rounding
            may keep the certificate at about 1e-7 sqrt(dim), so with 256 features a tolerance of 1e-6 may be out of
            reach.
        stderr: [dim] float, standard errors; None unless `estimate` was called with `intervals`.
        interval: [dim, 2] float, ends of each parameter's confidence interval. The confidence is for one parameter, not
            for all at once. None unless `estimate` was called with `intervals`.
    """

    theta: jax.Array
    certificate: jax.Array
    steps: jax.Array
    converged: jax.Array
    stderr: jax.Array | None = None
    interval: jax.Array | None = None


def minimize(
    objective: Objective,
    *,
    dim: int,
    radius: jax.Array,
    tolerance: jax.Array,
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int,
    certify: Callable[[jax.Array, Evaluation], jax.Array] | None = None,
) -> Estimate:
    """Minimises an objective over a ball, starting at zero, until the projected gradient is within the tolerance.

    Args:
        objective: theta [dim] -> Evaluation.
        dim: number of parameters.
        radius: [] float > 0, radius of the ball; infinity means no bound. The solver uses the radius's dtype.
        tolerance: [] float > 0, maximum certificate (norm of the projected gradient) of a point that counts as
            converged.
        zero_sum: whether to constrain the components' sum to zero.
        optimizer: proposes steps from the gradient; iterates are projected after each step. None means Newton's method
            on the ball, which uses the whole evaluation.
        max_steps: maximum number of gradient evaluations.
        certify: (theta, evaluation) -> [] float >= 0, a certificate that replaces the projected-gradient norm.

    Returns:
        The first iterate that converged (see `Estimate`; with `certify` only the tolerance counts). If none converged
        in max_steps, the iterate with the smallest certificate. If a certificate is NaN (NaN features, a diverging
        optimiser), the search stops, and theta is NaN. JAX differentiates theta with respect to the radius and the
        objective's inputs as an implicit function at a stationary point.
    """
    newton = optimizer is None
    optimizer = optax.with_extra_args_support(newton_on_ball(radius, zero_sum=zero_sum) if newton else optimizer)

    def evaluate(theta):
        evaluation = objective(theta)
        if zero_sum:
            evaluation = evaluation._replace(gradient=center(evaluation.gradient))
        if certify is not None:
            return evaluation, certify(theta, evaluation)
        moved = project(theta - evaluation.gradient, radius, zero_sum=zero_sum)
        step = jnp.where(jnp.isinf(radius), evaluation.gradient, theta - moved)  # equal up to rounding
        return evaluation, jnp.linalg.norm(step)

    class Loop(NamedTuple):
        theta: jax.Array
        optimizer_state: optax.OptState
        best: Estimate

    def is_unfinished(loop: Loop):
        failed = jnp.isnan(loop.best.certificate)
        return ~loop.best.converged & ~failed & (loop.best.steps < max_steps)

    def step(loop: Loop) -> Loop:
        evaluation, certificate = evaluate(loop.theta)
        failed = jnp.isnan(certificate)
        line_search = {
            "value": evaluation.value,
            "grad": evaluation.gradient,
            "value_fn": lambda theta: objective(theta).value,
        }
        updates, optimizer_state = optimizer.update(
            evaluation.gradient,
            loop.optimizer_state,
            loop.theta,
            **({"evaluation": evaluation} if newton else line_search),
        )
        is_close = jnp.asarray(True)
        if isinstance(optimizer_state, NewtonState) and certify is None:
            is_close = optimizer_state.decrement <= DECREMENT_RATIO * tolerance
        converged = (certificate <= tolerance) & is_close
        closer = (certificate <= loop.best.certificate) | failed | converged
        best = Estimate(
            theta=jnp.where(failed, jnp.nan, jnp.where(closer, loop.theta, loop.best.theta)),
            certificate=jnp.where(closer, certificate, loop.best.certificate),
            steps=loop.best.steps + 1,
            converged=converged,
        )
        theta = project(jnp.asarray(optax.apply_updates(loop.theta, updates)), radius, zero_sum=zero_sum)
        return Loop(theta, optimizer_state, best)

    def search(_, start: jax.Array) -> tuple[jax.Array, Estimate]:
        unknown = Estimate(start, jnp.asarray(jnp.inf, radius.dtype), jnp.int32(0), jnp.asarray(False))
        best = jax.lax.while_loop(is_unfinished, step, Loop(start, optimizer.init(start), unknown)).best
        return best.theta, best._replace(  # auxiliary outputs of `custom_root` must be float
            steps=best.steps.astype(radius.dtype), converged=best.converged.astype(radius.dtype)
        )

    def displacement(theta: jax.Array) -> jax.Array:
        gradient = objective(theta).gradient
        return theta - project(theta - gradient, radius, zero_sum=zero_sum)

    def solve(linear: Callable[[jax.Array], jax.Array], right: jax.Array) -> jax.Array:
        # The result is 0 along flat directions.
        return jnp.linalg.pinv(jax.jacobian(linear)(right), rtol=relative_rounding(right)) @ right

    # Derivatives through the steps would be NaN, since many steps are undone.
    theta, best = jax.lax.custom_root(displacement, jnp.zeros(dim, radius.dtype), search, solve, has_aux=True)
    return Estimate(theta, best.certificate, best.steps.astype(jnp.int32), best.converged.astype(bool))


def scaling_units(features: jax.Array, radius: jax.Array, *, zero_sum: bool) -> tuple[jax.Array, jax.Array]:
    """Returns two powers of two: the root mean square of all features, rounded down, and the divisor of each column.

    The first is [], the second [] or [dim]. Every divisor equals the first, with one exception: if there is neither a
    radius nor `zero_sum`, a column of very different size has a separate divisor.
    """
    features = jax.lax.stop_gradient(features)  # estimates do not depend on the scaling
    largest = jnp.max(jnp.abs(features))
    squares = jnp.mean((features / largest) ** 2, axis=tuple(range(features.ndim - 1)))  # cannot overflow

    def exponent(size: jax.Array) -> jax.Array:  # exponent of the largest power of two <= size
        return jnp.frexp(jnp.where((size > 0) & jnp.isfinite(size), size, 1))[1] - 1

    one = jnp.ones((), features.dtype)
    unit = jnp.ldexp(one, exponent(largest * jnp.sqrt(jnp.mean(squares))))
    if zero_sum:  # components in different units would not sum to zero
        return unit, unit
    ratio = exponent(largest * jnp.sqrt(squares) / unit)
    # Columns have one divisor, because the radius bounds a norm. Without a radius, a column of very different size gets
    # a separate divisor.
    is_apart = jnp.isinf(radius) & (jnp.abs(ratio) >= APART)
    return unit, unit * jnp.ldexp(one, jnp.where(is_apart, ratio, 0))
