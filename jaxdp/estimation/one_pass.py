"""One pass of projected SGD: a plain loop over one lane's samples, and a kernel for many lanes at once.

`jax.vmap` runs the kernel, which stores lanes (runs) contiguously, so that vector instructions work across lanes. A
plain vmap would store the short axis `dim` contiguously, and a sample needs little computation along this axis.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxdp.estimation.constraints import center, project
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import batch_over_lanes

AVERAGES = ("none", "all", "last_half")
BLOCK = 20  # samples of all lanes that are transposed together; 20 to 100 are equally fast


class Pass(NamedTuple):
    """The arrays that one pass of SGD reads: samples, step size and terms of the gradient.

    Attributes:
        features: [num_samples, dim] float, processed in order; or [num_samples, K, dim], with K margins for each
            sample.
        targets: [num_samples] or [num_samples, K] float.
        gain: [] float, factor of every sample's slope.
        rate: [] float > 0, step size at the first sample.
        radius: [] float > 0, radius of the ball onto which iterates are projected; infinity means no bound.
        linear: [dim] float, added to every gradient; None adds nothing.
        ridge: [] float >= 0; ridge times theta is added to every gradient; None adds nothing.
        weights: [num_samples] float >= 0, factors of the samples' slopes; None means that all are 1.
    """

    features: jax.Array
    targets: jax.Array
    gain: jax.Array
    rate: jax.Array
    radius: jax.Array
    linear: jax.Array | None = None
    ridge: jax.Array | None = None
    weights: jax.Array | None = None


class Recipe(NamedTuple):
    """The options of a pass of SGD that are fixed at compile time.

    Attributes:
        slope: (margin, target) -> derivative of one sample's loss with respect to its margin, elementwise. With K
            margins for each sample, the derivative with respect to these margins, along the first axis.
        average: the iterates that are averaged: "none" (only the last one), "all" or "last_half" (the last
            ceil(num_samples / 2)). The starting point 0 is not counted.
        inverse_time: whether the step at sample t = 1, 2, ... is rate / t; otherwise it is rate.
        zero_sum: whether to constrain the components' sum to zero.
    """

    slope: Callable[[jax.Array, jax.Array], jax.Array]
    average: str
    inverse_time: bool
    zero_sum: bool

    def first_averaged(self, num_samples: int) -> int:
        """Returns the index of the first iterate in the average; index 0 is the iterate after the first sample."""
        return {"none": num_samples - 1, "all": 0, "last_half": num_samples // 2}[self.average]


def one_pass(data: Pass, recipe: Recipe, optimizer: optax.GradientTransformation | None = None) -> jax.Array:
    """Runs one pass of SGD from theta = 0: theta <- P(theta - eta_t g_t).

    P is the projection onto the ball or, with `Recipe.zero_sum`, onto the ball's part with sum(theta) = 0. The gradient
    at sample t, with features x, target y and weight w, is g_t = gain * w * slope(x^T theta, y) * x + linear + ridge *
    theta. With K margins for each sample, slope(x^T theta, y) * x is the sum over k of the k-th slope times the k-th
    features. The step size eta_t is rate, or rate / t (`Recipe.inverse_time`).

    Args:
        data: data of one lane. Under `jax.vmap` and without an optimiser, one kernel runs all lanes.
        recipe: loss, averaging and steps.
        optimizer: an Optax optimiser, which replaces the step -eta_t g_t by its update; None is SGD.

    Returns:
        [dim] float, the mean of the iterates that `Recipe.average` selects. An iterate is theta after a sample's step.
    """
    if optimizer is not None:
        return plain_pass(data, recipe, optimizer)

    return batch_over_lanes(lambda data: plain_pass(data, recipe), lambda data: lanes_pass(data, recipe))(data)


def plain_pass(data: Pass, recipe: Recipe, optimizer: optax.GradientTransformation | None = None) -> jax.Array:
    """Returns the mean ([dim] float) of the iterates that `recipe.average` selects, for one lane, in plain JAX.

    Tests compare the kernel with this function.
    """
    num_samples, dim = data.features.shape[0], data.features.shape[-1]
    first_averaged = recipe.first_averaged(num_samples)

    def step_size(count: Any) -> Any:
        return data.rate / (count + 1).astype(data.rate.dtype) if recipe.inverse_time else data.rate

    optimizer = optimizer or optax.sgd(step_size)

    def step(carry, sample):
        theta, optimizer_state, running = carry
        index, feature, target, weight = sample
        slope = recipe.slope(feature @ theta, target)
        slope = slope if weight is None else weight * slope
        gradient = data.gain * slope * feature if slope.ndim == 0 else data.gain * (slope @ feature)
        if data.linear is not None:
            gradient = gradient + data.linear
        if data.ridge is not None:
            gradient = gradient + data.ridge * theta
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, theta)
        moved = jnp.asarray(optax.apply_updates(theta, updates))
        theta = project(moved, data.radius, zero_sum=recipe.zero_sum)
        running = compensated.add(running, jnp.where(index >= first_averaged, theta, 0))
        return (theta, optimizer_state, running), None

    theta = jnp.zeros(dim, data.features.dtype)
    samples = (jnp.arange(num_samples), data.features, data.targets, data.weights)
    (_, _, running), _ = jax.lax.scan(step, (theta, optimizer.init(theta), compensated.zero(theta)), samples)
    return running.total / (num_samples - first_averaged)


def lanes_pass(data: Pass, recipe: Recipe) -> jax.Array:
    """Returns the mean ([num_lanes, dim] float) of the iterates that `recipe.average` selects, for many lanes.

    Every leaf of `data` has a leading axis of lanes. Steps are SGD's, without an Optax optimiser.
    """
    num_lanes, num_samples, *margins, dim = data.features.shape  # margins is [] or [K]
    dtype = data.features.dtype
    first_averaged = recipe.first_averaged(num_samples)
    bounded = jnp.isfinite(data.radius)
    radius = jnp.where(bounded, data.radius, 1)
    linear = None if data.linear is None else data.linear.T
    width = math.prod(margins) * dim
    index = jnp.arange(num_samples)
    share = (index >= first_averaged).astype(dtype)  # 1 for iterates in the average, 0 for others
    decay = 1 / (index + 1).astype(dtype) if recipe.inverse_time else jnp.ones(num_samples, dtype)

    def step(carry, sample):
        theta, total = carry  # [dim, lanes] each
        # Shapes: [*margins, dim, lanes], [*margins, lanes], [lanes] (or None), [] and [].
        feature, target, weight, counted, slower = sample
        margin = jnp.sum(feature * jnp.broadcast_to(theta, feature.shape), axis=-2)
        slope = recipe.slope(margin, target)
        slope = slope if weight is None else jnp.broadcast_to(weight, slope.shape) * slope
        gradient = (jnp.broadcast_to(data.gain, slope.shape) * slope)[..., None, :] * feature
        if margins:
            gradient = jnp.sum(gradient, axis=0)
        if linear is not None:
            gradient = gradient + linear
        if data.ridge is not None:
            gradient = gradient + data.ridge[None, :] * theta
        theta = theta - (slower * data.rate)[None, :] * gradient
        if recipe.zero_sum:
            theta = center(theta.T).T
        shrink = radius / jnp.sqrt(jnp.maximum(jnp.sum(theta**2, axis=0), radius**2))
        theta = theta * jnp.where(bounded, shrink, 1)[None, :]
        return (theta, total + counted * theta), None

    def block(carry, start, size: int):
        def part(array, axis):
            return jax.lax.dynamic_slice_in_dim(array, start, size, axis)

        arrays = [array for array in (data.features, data.targets, data.weights) if array is not None]
        rows = jnp.concatenate([part(array, 1).reshape(num_lanes, -1) for array in arrays], axis=1)
        columns = jax.lax.optimization_barrier(rows.T)  # transposes once, in cache, instead of in every step
        ends = size * width, size * (width + math.prod(margins))
        samples = (
            columns[: ends[0]].reshape(size, *margins, dim, num_lanes),
            columns[ends[0] : ends[1]].reshape(size, *margins, num_lanes),
            None if data.weights is None else columns[ends[1] :],
            part(share, 0),
            part(decay, 0),
        )
        theta, running = carry
        (theta, total), _ = jax.lax.scan(step, (theta, zero), samples)
        return theta, compensated.add(running, total)

    zero = jnp.zeros((dim, num_lanes), dtype)
    num_blocks, remainder = divmod(num_samples, BLOCK)
    carry = (zero, compensated.zero(zero))
    if num_blocks:
        carry, _ = jax.lax.scan(
            lambda state, index: (block(state, index * BLOCK, BLOCK), None), carry, jnp.arange(num_blocks)
        )
    if remainder:
        carry = block(carry, num_blocks * BLOCK, remainder)
    return carry[1].total.T / (num_samples - first_averaged)
