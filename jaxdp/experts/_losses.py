"""Loss vectors: interface, clipping, privatisation and conversion to integers."""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, PrivatizeFn, Space, arms, default_float
from jaxdp.mechanisms import gaussian, laplace
from jaxdp.numerics import fixed_point
from jaxdp.numerics.kernels import lanes_last, own_kernel

UNIT = "one round's loss vector"  # the privacy unit


def losses_interface(num_experts: int) -> Interface:
    """Returns the full-information interface: an action is an expert, and feedback is the losses of all experts."""
    return Interface(arms(num_experts), Space("numbers", (num_experts,), 0, 1))


def clip_losses(losses: jax.Array) -> jax.Array:
    """Clips losses to [0, 1]; NaN becomes 0.

    Examples:
        >>> print(clip_losses(jnp.asarray([-1.0, 0.25, 7.0, jnp.nan])))
        [0.   0.25 1.   0.  ]
    """
    return jnp.where(losses > 0, jnp.minimum(losses, 1), 0)  # NaN is not > 0


def loss_privatizer(num_experts: int, *, is_gaussian: bool) -> PrivatizeFn:
    """Returns a `privatize` that clips losses, and adds Gaussian noise or Laplace noise to them.

    The parameters of the learner contain `noise_stddev` for Gaussian noise, or `epsilon` for Laplace noise.
    """

    def privatize(key, params, public, context, action, feedback) -> jax.Array:
        del public, context, action
        losses = clip_losses(feedback)  # NaN becomes 0, because noise would not hide it
        if is_gaussian:
            stddev = jnp.asarray(params.noise_stddev)
            return gaussian(key, losses, stddev, l2_sensitivity=math.sqrt(num_experts))
        return laplace(key, losses, params.epsilon, l1_sensitivity=float(num_experts))

    return privatize


def reveal_losses(key, params, public, context, action, feedback) -> jax.Array:
    """Returns the clipped losses without noise; it is a `PrivatizeFn` for the central model."""
    del key, params, public, context, action
    return clip_losses(feedback)


def of_expert(losses: jax.Array, expert: jax.Array) -> jax.Array:
    """Selects the loss of one expert ([]) from losses [num_experts]; returns 0 if `expert` is out of range."""
    masked = jnp.where(jnp.arange(losses.shape[-1], dtype=expert.dtype) == expert, losses, 0)
    return jnp.sum(masked, dtype=losses.dtype)


def units_of(losses: jax.Array) -> jax.Array:
    """Clips losses to [0, 1] (NaN becomes 0), and converts them to integer multiples of 2^-20.

    Examples:
        >>> print(units_of(jnp.asarray([-1.0, 0.25, 7.0, jnp.nan])))
        [      0  262144 1048576       0]
    """
    return fixed_point.units(jnp.asarray(losses, default_float()))


def reveal_units(key, params, public, context, action, feedback) -> jax.Array:
    """Returns `units_of` the losses, without noise; it is a `PrivatizeFn` for the central model."""
    del key, params, public, context, action
    return units_of(feedback)


def units_in_kernel(losses: jax.Array) -> jax.Array:
    """Computes `units_of` in a separate kernel, so that it is computed only once if several sums use the result."""
    return lanes_last(own_kernel(lambda values: lanes_last(units_of(lanes_last(values))), losses))
