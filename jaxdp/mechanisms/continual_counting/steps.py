"""Normal noise in integer numbers of steps of a public grid, for counters that release estimates with dependent errors.

After an entry a counter may release S + e, the exact sum S plus an error e. The error is z + f, where z is fresh noise
and f is a function of all earlier noise; z and f are integers. For any stream, the releases determine all earlier
noise. So the release after an entry is the integer S + f plus noise z. Replacing an entry changes S + f as in the
mechanism on real numbers, up to the rounding of f, which the noise covers. Rounding depends only on noise, and no float
of the state depends on private data.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.mechanisms._grid import Exact, Grid, split
from jaxdp.mechanisms._integer_noise import normal_of, power_below
from jaxdp.mechanisms.continual_counting.noise import GaussianParams
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.random.threefry import words_of_pairs

LARGEST_SCALE = 2.0**46  # in steps, so that float64 represents sums of noise exactly


def zero_steps(shape: tuple[int, ...]) -> jax.Array:
    """Returns zero steps: [...] complex64 arrays with the bits of int64, a dtype that 32-bit mode lacks.

    Only copies, selections and bit casts may be applied to steps: arithmetic on complex64 would change their bits.
    """
    # One array, because a kernel writes one array: two arrays of words would need two kernels with the same arithmetic.
    return jnp.zeros(shape, jnp.complex64)


def integers(steps: jax.Array) -> jax.Array:
    """Returns steps as int64. Call it in 64-bit mode."""
    low, high = words_of_pairs(steps)
    return lax.bitcast_convert_type((high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64), jnp.int64)


def numbers(steps: jax.Array) -> jax.Array:
    """Returns steps as float64: exact up to 2^53, rounded beyond. Call it in 64-bit mode."""
    return integers(steps).astype(jnp.float64)


def add_steps(steps: jax.Array, numbers: jax.Array) -> jax.Array:
    """Adds integers, stored as float64 with magnitude at most 2^52, to `steps` exactly. Call it in 64-bit mode."""
    words = lax.bitcast_convert_type(integers(steps) + numbers.astype(jnp.int64), jnp.uint64)
    low, high = (lax.bitcast_convert_type(word.astype(jnp.uint32), jnp.float32) for word in (words, words >> 32))
    return lax.complex(low, high)


@in_64_bits
def noise_grid(
    params: GaussianParams, unit: float, least_stddev: float, step: float, off: float, *, parts: int = 0
) -> Grid:
    """Returns the grid of a counter's noise; the scale is NaN if it exceeds 2^(46 - parts) or a parameter is invalid.

    Args:
        params: parameters of the counter.
        unit: a public number that divides all sums, and an upper bound on the step. Infinity if sums are rounded to
            steps.
        least_stddev: the smallest standard deviation of an entry's noise, relative to `noise_stddev`.
        step: a power of two, the maximum step relative to this standard deviation.
        off: L2 norm, in steps, of the largest change that rounding causes in the numbers to which noise is added.
        parts: number of binary digits below a step that sums of noise have.
    """
    stddev, sensitivity = (
        jnp.asarray(leaf).astype(jnp.float64) for leaf in (params.noise_stddev, params.l2_sensitivity)
    )
    least, largest = jnp.where(stddev > 0, stddev, 1.0) * least_stddev, LARGEST_SCALE * 2.0**-parts
    size = jnp.minimum(power_below(least) * step, unit)
    scale = least / size * (1 + off * size / (least_stddev * sensitivity))
    scale = jnp.where((stddev >= 0) & (sensitivity > 0) & (scale <= largest), jnp.where(stddev > 0, scale, 0), jnp.nan)
    return Grid(size, 1 / size, scale, jnp.where(scale > 0, scale, 2.0**25))  # `normal_steps` needs at least 2^24


def unit_of(total: Exact) -> float:
    """Returns a public number that divides every sum: 1 for integers, 2^-20 for sums in fixed point."""
    return 1 / fixed_point.UNITS if isinstance(total, fixed_point.Sum) else 1.0


@in_64_bits
def normal_steps(
    key: jax.Array, scales: jax.Array, shape: tuple[int, ...], is_added: jax.Array | None = None
) -> jax.Array:
    """Draws normal variates rounded to integers, [*shape] float64.

    Args:
        key: a PRNG key.
        scales: float64 >= 2^24, the standard deviations, in a shape that broadcasts with the result.
        shape: shape of the result.
        is_added: [] bool; if it is False, the result is 0.
    """
    scales = scales.reshape(()) if scales.size == 1 else jnp.broadcast_to(scales, shape).ravel()
    if is_added is None:
        return normal_of(lambda noise, scales: noise, key, shape, scales, lanes_fast=True)
    return normal_of(
        lambda noise, scales, is_added: jnp.where(is_added, noise, 0), key, shape, scales, is_added, lanes_fast=True
    )


@in_64_bits
def with_error(total: Exact, error: jax.Array, grid: Grid, dtype: np.dtype) -> jax.Array:
    """Returns the exact sums plus their errors ([...] float64, integers), rounded to floats after the addition.

    Errors are in grid steps. Sums that are not multiples of a step are rounded to the nearest multiple. The result is
    NaN if the scale is NaN.
    """
    base, remainder = split(total, jnp.maximum(grid.step, 1))
    remainder = jnp.where(grid.step > unit_of(total), jnp.round(remainder / grid.step) * grid.step, remainder)
    noisy = base + (remainder + jnp.where(grid.scale == 0, 0, error * grid.step))
    return jnp.where(jnp.isnan(grid.scale), jnp.nan, noisy).astype(dtype)
