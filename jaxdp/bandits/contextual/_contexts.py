"""Contexts of a round: random contexts, fixed contexts, and a minimum gap between the best arm and all other arms."""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.numerics.kernels import across_lanes, call_across_lanes, own_kernel, pairwise_reduce, tree_reduce
from jaxdp.numerics.small_linear_algebra import MAX_UNROLLED
from jaxdp.random._simulation_bits import world_normals, world_uniforms
from jaxdp.validation import check_choice, check_count, check_finite

DISTRIBUTIONS = ("sphere", "ball", "cube")
LANES_LAST = 64  # up to this number of arms, arrays are contiguous along the batch axis on CPU
TOLERANCE = 1e-6  # a norm may exceed 1 by this, or by twice the precision of its dtype if that is larger
Draw = Callable[[jax.Array], jax.Array]


def context_distribution(contexts: ArrayLike | str, num_arms: int | None, dim: int | None) -> tuple[int, int, Draw]:
    """Returns the sizes of a round's contexts, and a function that draws the contexts.

    Args:
        contexts: one of DISTRIBUTIONS; or [num_arms, dim], fixed contexts.
        num_arms: number of arms in a round; None for fixed contexts.
        dim: dimension of contexts; None for fixed contexts.

    Returns:
        (num_arms, dim, key -> [num_arms, dim] float); the key must come from `split` or `fold_in`.

    Raises:
        ValueError: if an argument is out of range, a norm exceeds 1 by more than rounding, or a size is missing for
            random contexts or given for fixed contexts.
    """
    if not isinstance(contexts, str):
        if num_arms is not None or dim is not None:
            raise ValueError(f"num_arms and dim must be None if contexts are an array, got {num_arms} and {dim}")
        arms = check_contexts("contexts", check_finite("contexts", contexts), 2)
        fixed = arms.astype(default_float())
        return *arms.shape, lambda key: jnp.asarray(fixed)
    distribution = check_choice("contexts", contexts, DISTRIBUTIONS)
    if num_arms is None or dim is None:
        raise ValueError(f"num_arms and dim must be given for random contexts, got {num_arms} and {dim}")
    shape = check_count("num_arms", num_arms, 2), check_count("dim", dim)

    def draw(key: jax.Array) -> jax.Array:
        dtype = default_float()
        if distribution == "cube":
            return (2 * world_uniforms(key, shape, dtype) - 1) * np.asarray(1 / math.sqrt(shape[1]), dtype)
        key_direction, key_length = jax.random.split(key)
        points = directions(key_direction, shape)
        if distribution == "sphere":
            return points
        return points * world_uniforms(key_length, (shape[0], 1), dtype) ** (1 / shape[1])

    return *shape, draw


def check_contexts(name: str, contexts: np.ndarray, ndim: int) -> np.ndarray:
    """Returns `contexts` ([..., num_arms, dim]) if they have `ndim` axes, at least two arms and norms of at most 1.

    Raises:
        ValueError: if a norm exceeds 1 by more than rounding, or the shape is wrong.
    """
    if contexts.ndim != ndim or not contexts.size or contexts.shape[-2] < 2:
        axes = ("horizon, " if ndim == 3 else "") + "num_arms, dim"
        raise ValueError(f"{name} must be [{axes}] with at least two arms, got shape {contexts.shape}")
    precision = np.finfo(contexts.dtype).eps if np.issubdtype(contexts.dtype, np.floating) else 0.0
    exact = contexts.astype(np.float64)
    norms = np.sqrt(np.einsum("...i,...i->...", exact, exact))
    bad = np.argwhere(~(norms <= 1 + max(TOLERANCE, 2 * float(precision))))
    if len(bad):
        index = tuple(bad[0].tolist())
        got = f"{norms[index]:.6g} at index {index}" if ndim == 2 else "longer contexts"  # users' contexts are private
        raise ValueError(f"{name} must have norms of at most 1, got {got}")
    return contexts


def directions(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws uniform points on the unit sphere, in an array of the given shape with coordinates on the last axis.

    The key must come from `split` or `fold_in`.
    """
    normals = world_normals(key, shape, default_float())
    squares = sum_last_axis(normals * normals)[..., None]
    return normals / jnp.sqrt(jnp.maximum(squares, jnp.finfo(normals.dtype).tiny))


def sum_last_axis(values: jax.Array) -> jax.Array:
    """Sums along the last axis by elementwise operations, which XLA on CPU vectorises over lanes."""
    return tree_reduce(operator.add, jnp.moveaxis(values, -1, 0))


def products(contexts: jax.Array, vector: jax.Array) -> jax.Array:
    """Returns the inner product of each context with a vector, [num_arms].

    Args:
        contexts: [num_arms, dim] float.
        vector: [dim] float.
    """
    return across_lanes(lambda both: own_kernel(_products, *both))((contexts, vector))


def _products(contexts: jax.Array, vector: jax.Array) -> jax.Array:  # [num_arms, dim, lanes] and [dim, lanes]
    if contexts.shape[1] > MAX_UNROLLED:
        return tree_reduce(operator.add, jnp.moveaxis(contexts * vector[None], 1, 0))
    return pairwise_reduce(operator.add, [contexts[:, i] * vector[i : i + 1] for i in range(contexts.shape[1])])


def largest(means: jax.Array) -> jax.Array:
    """Returns the largest mean, [] float; NaN if any mean is NaN."""
    if len(means) > LANES_LAST:
        return jnp.max(means)
    return across_lanes(partial(own_kernel, lambda means: pairwise_reduce(jnp.maximum, list(means))))(means)


def make_contexts(function: Callable[..., jax.Array], *inputs: Any) -> jax.Array:
    """Returns a round's contexts, function(*inputs), as an array [num_arms, dim].

    On CPU, lanes are the fast axis if there are at most `LANES_LAST` arms.
    """
    return call_across_lanes(function, LANES_LAST, *inputs)


def select_context(contexts: jax.Array, action: jax.Array) -> jax.Array:
    """Returns the context ([dim]) of the arm played.

    Args:
        contexts: [num_arms, dim] float.
        action: [] integer, in [0, num_arms).
    """
    if len(contexts) > LANES_LAST:
        return contexts[action]
    return across_lanes(lambda both: own_kernel(_select_context, *both))((contexts, action))


def _select_context(contexts: jax.Array, action: jax.Array) -> jax.Array:  # [num_arms, dim, lanes] and [lanes]
    # Uses selects instead of a gather, which would read numbers one by one.
    context = contexts[0]
    for arm in range(1, len(contexts)):
        context = jnp.where((action == arm)[None], contexts[arm], context)
    return context


def enforce_gap(contexts: jax.Array, theta: jax.Array, gap: jax.Array) -> jax.Array:
    """Moves contexts so that the mean x^T theta of the best arm exceeds the mean of every other arm by at least `gap`.

    Contexts are [num_arms, dim], in the unit ball; `gap` is in [0, 2 |theta|]. If the best arm's mean is below gap / 2,
    it is raised to gap / 2. Other means within `gap` of the best mean are lowered. For this, contexts move along theta;
    if a context would leave the unit ball, its part orthogonal to theta is scaled down. A context stays the same if its
    mean does not change.
    """
    size = jnp.sqrt(jnp.maximum(jnp.sum(theta * theta), jnp.finfo(theta.dtype).tiny))
    along, lead = theta / size, gap / size
    heights = products(contexts, along)
    top = jnp.maximum(jnp.max(heights), lead / 2)
    is_best = jnp.arange(len(heights)) == jnp.argmax(heights)
    new_heights = jnp.where(is_best, top, jnp.minimum(heights, top - lead))
    across = contexts - heights[:, None] * along[None]
    room = jnp.sqrt(jnp.maximum(1 - new_heights * new_heights, 0))
    length = jnp.sqrt(jnp.sum(across * across, axis=1))
    shrink = jnp.minimum(1, room / jnp.where(length > 0, length, 1))
    moved = new_heights[:, None] * along[None] + shrink[:, None] * across
    return jnp.where((new_heights != heights)[:, None], moved, contexts)
