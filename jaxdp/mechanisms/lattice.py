"""Draws noise on a lattice before the integers to which the noise is added are known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.mechanisms._grid import Grid, laplace_grid, normal_grid
from jaxdp.mechanisms._integer_noise import laplace_of, normal_of
from jaxdp.mechanisms._traced import traced_once
from jaxdp.numerics.fixed_point import in_64_bits


def lattice_laplace(
    key: jax.Array, shape: tuple[int, ...], quantum: ArrayLike, epsilon: ArrayLike, l1_sensitivity: ArrayLike
) -> jax.Array:
    """Draws the noise of `laplace` on integers, rounded to multiples of min(quantum, 1).

    Every integer is a multiple of min(quantum, 1), so an integer plus rounded noise equals the rounded noisy integer.
    Check arguments on the host: if one is invalid, or if noise may exceed the limits of `laplace` or the dtype's range,
    the drawn noise may be too small, and the result is not private.

    Args:
        key: a PRNG key.
        shape: shape of the result.
        quantum: [] float, a power of two.
        epsilon: [] float > 0; infinity gives zeros.
        l1_sensitivity: [] float > 0.

    Returns:
        [*shape] integers of the default dtype, in multiples of min(quantum, 1), clipped to the range of the dtype.
    """
    return _laplace(key, shape, quantum, epsilon, l1_sensitivity, jnp.result_type(int))


def lattice_gaussian(
    key: jax.Array, shape: tuple[int, ...], quantum: ArrayLike, noise_stddev: ArrayLike, l2_sensitivity: ArrayLike
) -> jax.Array:
    """Draws the noise of `gaussian` on integers, rounded to multiples of min(quantum, 1).

    Arguments must be checked as for `lattice_laplace`. The result has [*shape] integers of the default dtype, in
    multiples of min(quantum, 1), clipped to the dtype's range.
    """
    return _gaussian(key, shape, quantum, noise_stddev, l2_sensitivity, jnp.result_type(int))


@in_64_bits
@traced_once("shape", "dtype")
def _laplace(
    key: jax.Array,
    shape: tuple[int, ...],
    quantum: ArrayLike,
    epsilon: ArrayLike,
    sensitivity: ArrayLike,
    dtype: jnp.dtype,
) -> jax.Array:
    values = jnp.zeros(shape, jnp.int32)
    unit, budget = (jnp.asarray(scalar).astype(jnp.float64) for scalar in (sensitivity, epsilon))
    grid = laplace_grid(values, unit, budget)
    return _draw_rounded(key, shape, quantum, grid, laplace_of, dtype)


@in_64_bits
@traced_once("shape", "dtype")
def _gaussian(
    key: jax.Array,
    shape: tuple[int, ...],
    quantum: ArrayLike,
    stddev: ArrayLike,
    sensitivity: ArrayLike,
    dtype: jnp.dtype,
) -> jax.Array:
    values = jnp.zeros(shape, jnp.int32)
    scale, unit = (jnp.asarray(scalar).astype(jnp.float64) for scalar in (stddev, sensitivity))
    grid = normal_grid(values, scale, unit)
    coarser = jnp.maximum(grid.step, 1.0)  # a step above 1 is replaced by 1, which divides the integers
    grid = Grid(grid.step / coarser, coarser / grid.step, grid.scale * coarser, grid.drawn * coarser)
    return _draw_rounded(key, shape, quantum, grid, normal_of, dtype)


def _draw_rounded(
    key: jax.Array,
    shape: tuple[int, ...],
    quantum: ArrayLike,
    grid: Grid,
    draw: Callable[..., jax.Array],
    dtype: jnp.dtype,
) -> jax.Array:
    """Draws noise on a grid, rounded to the nearest multiple of min(quantum, 1); halves are rounded up."""
    multiple = jnp.minimum(jnp.asarray(quantum).astype(jnp.float64), 1.0) / grid.step
    largest = jnp.iinfo(dtype).max

    def round_noise(noise: jax.Array, scale: jax.Array, multiple: jax.Array, is_noisy: jax.Array) -> jax.Array:
        del scale
        noise = jnp.floor(noise / multiple + 0.5)
        return jnp.where(is_noisy, jnp.clip(noise, -largest, largest), 0).astype(dtype)

    return draw(round_noise, key, shape, grid.drawn, multiple, grid.scale != 0)
