"""Builds estimators that minimise an objective of all samples over a ball."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxdp.core import CovarianceFn, Estimator, Guarantee, LargeFitFn, NoiseFn, guarantee_for
from jaxdp.estimation.constraints import center
from jaxdp.estimation.newton import FARTHEST
from jaxdp.estimation.objectives import Objective
from jaxdp.estimation.solver import Estimate, minimize, scaling_units
from jaxdp.validation import check_count

MAX_STEPS = 200


def full_batch_estimator(
    params: Callable[..., Any],
    claim: Callable[..., Guarantee],
    privatize: Callable[..., Any],
    objective: Callable[[Any, jax.Array, jax.Array, jax.Array], Objective],
    *,
    zero_sum: bool,
    optimizer: optax.GradientTransformation | None,
    max_steps: int,
    noise: NoiseFn | None = None,
    covariance: CovarianceFn | None = None,
    large: LargeFitFn | None = None,
) -> Estimator:
    """Builds an estimator for public features, which minimises an objective over the ball of radius `params.radius`.

    The solver gets features scaled to a root mean square in [1, 2), so that the tolerance means the same in any unit of
    the features. The estimate is scaled back. With neither a radius nor `zero_sum`, a column gets a separate scale if
    its root mean square differs from the overall root mean square by a factor of about 2^7 or more, since rounding
    would otherwise hide the column's curvature. Scales are powers of two and do not round. A user's optimiser gets the
    unscaled features.

    If features do not determine theta (dependent columns, or fewer samples than columns), theta is the minimiser of
    least norm, measured in the scaled parameters. If the objective has noise in such directions (as from a noisy
    statistic), it has no minimum without a penalty or a radius.

    Args:
        params: builds the parameters of one grid point, as `Estimator.params`.
        claim: (**values) -> Guarantee; it may take only some of the values of `params`.
        privatize: as `Estimator.privatize`.
        objective: (params, scaled features, report, scale) -> objective of scale * theta, where scale is [] or [dim].
        zero_sum: whether to constrain sum(theta) = 0.
        optimizer: see `mle`.
        max_steps: see `mle`.
        noise: as `Estimator.noise`.
        covariance: as `Estimator.covariance`.
        large: as `Estimator.large`; not used if `optimizer` is given or `zero_sum` is true.
    """
    check_count("max_steps", max_steps)

    def fit(key, params, features, report) -> Estimate:
        del key
        features = center(features) if zero_sum else features
        unit = scale = jnp.ones((), features.dtype)
        if optimizer is None:
            unit, scale = scaling_units(features, params.radius, zero_sum=zero_sum)
        radius = jnp.asarray(params.radius, features.dtype) * unit
        if optimizer is None:  # an unbounded search stops at FARTHEST, so a larger radius has no effect
            radius = jnp.where(radius > FARTHEST, jnp.inf, radius)
        estimate = minimize(
            objective(params, features / jnp.broadcast_to(scale, features.shape), report, scale),
            dim=features.shape[-1],
            radius=radius,
            tolerance=jnp.asarray(params.tolerance, features.dtype),
            zero_sum=zero_sum,
            optimizer=optimizer,
            max_steps=max_steps,
        )
        return estimate._replace(theta=estimate.theta / scale)

    return Estimator(
        params,
        guarantee_for(params, claim),
        privatize,
        fit,
        features_public=True,
        noise=noise,
        covariance=covariance,
        large=large if optimizer is None and not zero_sum else None,
    )
