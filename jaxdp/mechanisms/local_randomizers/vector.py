"""The local randomizer of a vector of bounded norm."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.core import (
    LocalRandomizer,
    Scalar,
    default_float,
    factory,
    guarantee_for,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms._grid import number_array
from jaxdp.mechanisms.additive import gaussian, laplace
from jaxdp.mechanisms.calibration import analytic_gaussian
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.local_randomizers._bounds import Additive, bounds_of
from jaxdp.mechanisms.local_randomizers._host import local_claim, rounded_up
from jaxdp.validation import check_choice, check_count, check_epsilon, check_list, check_positive

NORMS = ("l1", "l2")


@pytree_dataclass
class VectorParams:
    """Traced values of a vector randomizer.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity adds no noise.
        noise_stddev: [] float >= 0, standard deviation of Gaussian noise; 0 for Laplace noise.
        radius: [] float > 0, the maximum norm; vectors with a larger norm are rescaled to this norm.
        sensitivity: [] float, twice the radius, enlarged by the rounding error of a norm and rounded up.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    radius: Scalar
    sensitivity: Scalar


@factory
def vector_randomizer(shape: tuple[int, ...], norm: str) -> LocalRandomizer:
    r"""Builds a randomizer of arrays, such as gradients: it rescales an array to a ball, and adds noise to each entry.

    The noise is Laplace noise for the L1 norm, and Gaussian noise for the L2 norm. At epsilon = inf the report is the
    array itself, rescaled to the ball if its norm is larger than the radius.

    Args:
        shape: shape of the arrays.
        norm: "l1", with Laplace noise of scale 2 * radius / epsilon; or "l2", with Gaussian noise, analytically
            calibrated to L2 sensitivity 2 * radius.

    Returns:
        A randomizer for one user's array, floats of this shape. An array outside the ball is rescaled to the ball's
        boundary; NaN counts as 0, and other entries are first clipped to [-2^126, 2^126] (in float32). Reports are
        floats of this shape and of JAX's default type. The estimate is the report. The field `total` is None, so sums
        of reports cannot be drawn directly.

    Raises:
        ValueError: if shape is not a tuple or list of integers >= 1, or norm is unknown. The result's `params` raises
            this error if a value is out of range. `report` raises it if the array has another shape.

    Values:
        epsilon: the privacy budget, > 0.
        delta: for the L2 norm, in (0, 1).
        radius: radius of the ball, finite and > 0, by default 1.

    Privacy:
        - Claim: epsilon-DP (L1) or (epsilon, delta)-DP (L2) in the local model.
        - Unit: one array; adjacency: replace one, by any array of this shape.
        - Sensitivity: Twice the radius, enlarged by the rounding error of a norm.

    Source:
        Dwork & Roth (2014), Theorem 3.6; Balle & Wang (2018), Theorem 8.

    Deviations:
        The rescaled array is rounded to a public grid, and the noise is integers on this grid, as in `laplace`.

    Math:
        Let $R$ be the radius, and let $\Pi$ rescale every vector of a norm above $R$ to norm $R$. The report is

        $$
        \Pi(v) + Z, \quad Z_i \sim \mathrm{Laplace}(b), \quad b = \frac{2 R}{\varepsilon}
        $$

        for "l1", and for "l2" $Z \sim N(0, \sigma^2 I)$, with $\sigma$ calibrated to the $L_2$ sensitivity $2 R$.
    """
    sizes = tuple(check_count("shape", size) for size in check_list("shape", shape))
    is_gaussian = check_choice("norm", norm, NORMS) == "l2"
    num_entries = math.prod(sizes)

    def params(*, epsilon: float, delta: float = 0.0, radius: float = 1.0) -> VectorParams:
        checked = check_epsilon(epsilon) if is_gaussian else check_laplace(epsilon, numbers=num_entries)
        budget = leaf_rounded_down("epsilon", checked)
        edge = scalar_leaf("radius", check_positive("radius", radius))
        scalar_leaf("four times the radius", 4 * float(edge))
        sensitivity = rounded_up("twice the radius", 2 * float(edge) * (1 + norm_error(num_entries)))
        scalar_leaf("the noise", 0.0 if is_gaussian else float(sensitivity) / float(budget))
        stddev = analytic_gaussian(epsilon, delta, float(sensitivity)) if is_gaussian else 0.0
        return VectorParams(
            epsilon=budget, noise_stddev=rounded_up("the noise", stddev), radius=edge, sensitivity=sensitivity
        )

    def report(key, params: VectorParams, value: ArrayLike) -> jax.Array:
        value = number_array("value", value, default_float())  # before arithmetic, as in `scalar_randomizer`
        if value.shape != sizes:
            raise ValueError(f"value must have shape {sizes}, got {value.shape}")
        clipped = into_ball(value, params.radius, norm)
        if is_gaussian:
            return gaussian(key, clipped, jnp.asarray(params.noise_stddev), l2_sensitivity=params.sensitivity)
        return laplace(key, clipped, params.epsilon, l1_sensitivity=params.sensitivity)

    def estimate(params: VectorParams, report: jax.Array) -> jax.Array:
        del params
        return report

    def spread(params: VectorParams):
        edge = float(params.radius)
        scale = float(params.noise_stddev) if is_gaussian else float(params.sensitivity) / float(params.epsilon)
        return (Additive(edge, edge, "gaussian" if is_gaussian else "laplace", scale, num_entries),)

    values = only(params, ("epsilon", "delta", "radius") if is_gaussian else ("epsilon", "radius"))
    mechanism = "analytic Gaussian" if is_gaussian else "Laplace"
    claim = local_claim(
        "one vector", f"one release of the vector, scaled down to the ball, by the {mechanism} mechanism"
    )
    return LocalRandomizer(values, guarantee_for(values, claim), report, estimate, None, *bounds_of(values, spread))


def into_ball(vector: jax.Array, radius: Scalar, norm: str) -> jax.Array:
    """Rescales a vector outside a ball to the ball's boundary, without overflow.

    Args:
        vector: [...] float; NaN counts as 0, and other entries are clipped to [-2^126, 2^126] (in float32).
        radius: [] float > 0, at most 2^126.
        norm: "l1" or "l2".

    Returns:
        [...] finite floats, with a norm of at most radius * (1 + norm_error(size)).
    """
    radius = jnp.asarray(radius, vector.dtype)
    largest = 1 / float(jnp.finfo(vector.dtype).smallest_normal)  # compiled programs multiply by the reciprocal
    finite = jnp.clip(jnp.where(jnp.isnan(vector), 0, vector), -largest, largest)
    scale = jnp.maximum(jnp.max(jnp.abs(finite)), radius)
    unit = finite / scale  # at most 1: the largest entry or the radius is scaled to 1
    length = jnp.sum(jnp.abs(unit)) if norm == "l1" else jnp.sqrt(jnp.sum(unit * unit))
    return jnp.where(length > radius / scale, unit * (radius / length), finite)


def norm_error(num_entries: int) -> float:
    """Returns a bound on the relative amount by which rounding increases the norm of an `into_ball` result."""
    return (num_entries + 8) * float(jnp.finfo(default_float()).eps)
