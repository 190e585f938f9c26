"""Rounds the values of mechanisms to integers on a public grid, to which integer noise is added.

All functions compute in 64 bits, even in 32-bit mode, because float32 cannot represent the numbers of steps. A value is
rounded to the nearest multiple of the step, and real noise is rounded down to a multiple. Their sum equals the sum of
the rounded value and the real noise, rounded down. So the release is post-processing of a mechanism that adds real
noise to rounded values. Rounding enlarges the change of a value by at most one step. The value and the noise are exact
integer numbers of steps; only their sum is rounded to a float.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float
from jaxdp.mechanisms._integer_noise import power_below
from jaxdp.numerics import fixed_point
from jaxdp.validation import refuse_masked

Exact = jax.Array | fixed_point.Sum
LARGEST = 2.0**61  # maximum magnitude of a value in steps, for leads
LARGEST_SCALE = 2.0**47  # in steps, so that noise is an integer below 2^53
FINEST, COARSEST = 2.0**-16, 2.0**-10  # step / sensitivity for Laplace noise; the coarsest is for a single number
FEW = 2.0**16  # largest number of steps in a Laplace scale, if the step may be coarse: delta grows with this number
NORMAL_STEP = 2.0**-24  # largest step / stddev for normal noise
K_NORM_STEP = 2.0**-14  # largest step relative to the noise scale and to the sensitivity per coordinate
UNKNOWN = 2.0**-7  # sensitivity / stddev that is assumed if no sensitivity is declared


class Grid(NamedTuple):
    """A public grid and its noise scale.

    Attributes:
        step: [] float64, a power of two.
        per_one: [] float64, 1 / step.
        scale: [] float64, scale of the noise in steps, for the sensitivity of the rounded values; 0 without noise, NaN
            if the noise cannot be represented.
        drawn: [] float64, the scale at which noise is drawn: `scale`, or 2^16 if `scale` is 0 or NaN.
    """

    step: jax.Array
    per_one: jax.Array
    scale: jax.Array
    drawn: jax.Array


def number_array(name: str, values: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array:
    """Returns values as a JAX array. Raises a ValueError if they are no array of numbers, or have masked entries."""
    refuse_masked(name, values)
    try:
        return jnp.asarray(values, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {type(values).__name__}") from error


def exact_values(name: str, values: ArrayLike | fixed_point.Sum) -> Exact:
    """Converts values to an array or a sum to which noise can be added: floats, integers of the default dtype, or sums.

    Args:
        name: name of the argument, for the error.
        values: [...] float or integer array, or a `jaxdp.numerics.fixed_point.Sum`.

    Returns:
        Floats (float32 for NumPy's float64 without 64-bit mode) and sums unchanged; integers in the default dtype.

    Raises:
        ValueError: if values are neither floats nor integers nor a sum; or if the default dtype cannot represent their
            integer dtype (such as NumPy's int64 without 64-bit mode) or a Python integer.
    """
    if isinstance(values, fixed_point.Sum):
        return values
    integer = jnp.result_type(int)
    dtype = getattr(values, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jnp.integer) and jnp.iinfo(dtype).max > jnp.iinfo(integer).max:
        # JAX would drop the upper bits of NumPy's integers
        raise ValueError(f"{name} must have a dtype that {integer} holds, got {dtype}")
    try:
        array = number_array(name, values)
    except OverflowError as error:
        raise ValueError(f"{name} must be within the range of {integer}, got larger integers") from error
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{name} must be floats or integers, got dtype {array.dtype}")
    return array.astype(integer)


def shape_of(values: Exact) -> tuple[int, ...]:
    """Returns the shape of an array or a sum."""
    return jnp.shape(jax.tree.leaves(values)[0])


def float_type(values: Exact) -> jnp.dtype:
    """Returns the dtype of noisy values: the dtype of floats, and the default float for integers and sums."""
    if isinstance(values, fixed_point.Sum):
        return default_float()
    dtype = jax.tree.leaves(values)[0].dtype
    return dtype if jnp.issubdtype(dtype, jnp.floating) else default_float()


def wide(values: Exact) -> jax.Array:
    """Returns values as float64, exact up to 2^33 for sums and up to 2^53 for integers. Call it in 64-bit mode.

    Sums beyond 2^33 are rounded; sums and integers beyond 2^53 are clipped.
    """
    if isinstance(values, fixed_point.Sum):
        base, remainder = split(values)
        return base + remainder
    if values.dtype == jnp.int64:
        values = jnp.clip(values, -(2**53), 2**53)
    if values.dtype != jnp.float32:
        return values.astype(jnp.float64)
    bits = jax.lax.bitcast_convert_type(values, jnp.int32)
    part = (bits & (2**23 - 1)).astype(jnp.float64) * 2.0**-149
    is_subnormal = (bits & (0xFF << 23)) == 0  # a conversion would flush it to 0
    return jnp.where(is_subnormal, jnp.where(bits < 0, -part, part), values.astype(jnp.float64))


def split(values: Exact, multiple: jax.Array | float = 1.0) -> tuple[jax.Array, jax.Array]:
    """Splits values into two float64 parts, because a sum beyond 2^33 has more digits than one float64.

    Args:
        values: [...] the values.
        multiple: [] float64 >= 1, a power of two.

    Returns:
        (base, remainder) with base + remainder = values. For sums, base is a multiple of `multiple`, and remainder is
        in [0, multiple), exact if multiple <= 2^33. For other values, base is 0. Sums and integers beyond 2^53 are
        clipped before they are split, so clipping enlarges no difference.
    """
    if not isinstance(values, fixed_point.Sum):
        exact = wide(values)
        return jnp.zeros_like(exact), exact
    if values.whole.dtype == jnp.int64:
        ranges = jnp.clip(values.whole, -(2**53), 2**53)
        part = jnp.where((ranges == values.whole) & (ranges < 2**53), values.part, 0)
        values = fixed_point.Sum(ranges, part)
    ranges = values.whole.astype(jnp.float64)
    base = jnp.floor(ranges / multiple) * multiple
    return base, (ranges - base) + values.part.astype(jnp.float64) * (1 / fixed_point.UNITS)


def laplace_grid(exact: Exact, sensitivity: jax.Array, epsilon: jax.Array, num_rounded: int | None = None) -> Grid:
    """Returns the grid for Laplace noise on values of the given L1 sensitivity; sensitivity and epsilon: [] float64.

    The step is large enough that the scale has at most `FEW` steps, unless a limit requires a smaller step: integers
    are never rounded, and rounding changes other values together by at most 2^-10 of the sensitivity. `num_rounded` is
    the number of values that share the sensitivity; None means the number of values in `exact`.
    """
    num_rounded = max(math.prod(shape_of(exact)) if num_rounded is None else num_rounded, 1)
    finest = power_below(sensitivity) * FINEST
    # integers and sums are multiples of `unit`
    unit = 1 / fixed_point.UNITS if isinstance(exact, fixed_point.Sum) else 1.0 if is_integer(exact) else 0.0
    coarsest = power_below(sensitivity) / 2 ** math.ceil(math.log2(num_rounded)) * COARSEST
    coarsest = 1.0 if is_integer(exact) else jnp.maximum(coarsest, jnp.minimum(finest, unit))  # integers stay exact
    step = finest * step_for(sensitivity / (finest * epsilon), coarsest / finest)
    step = jnp.where(jnp.isinf(epsilon) & (unit > 0), unit, step)  # without noise leads are exact
    rounding = jnp.where(step <= unit, 0, num_rounded)
    return _grid(step, (sensitivity / step + rounding) / epsilon, (sensitivity > 0) & (epsilon > 0))


def step_for(scale: jax.Array, largest: jax.Array | float) -> jax.Array:
    """Returns the smallest power of two >= 1 such that scale / step is at most about `FEW`, capped at `largest`."""
    times = scale * ((1 + COARSEST) * 2 / FEW)  # with room for the change by rounding
    return jnp.clip(power_below(jnp.clip(times, 1, LARGEST_SCALE)), 1, largest)


def whole_grid(epsilon: jax.Array) -> Grid:
    """Returns the grid of integers for two-sided geometric noise at sensitivity 1; epsilon is [] float64."""
    larger = (1 + 2.0**-50) / epsilon  # covers the rounding of the quotient and of its product with a variate
    return _grid(jnp.ones_like(epsilon), larger, epsilon > 0)


def normal_grid(exact: Exact, stddev: jax.Array, sensitivity: jax.Array | None, num_rounded: int | None = None) -> Grid:
    """Returns the grid for normal noise with a standard deviation that was calibrated for an L2 sensitivity.

    Both are [] float64. If the sensitivity is None, `UNKNOWN` times the standard deviation is used in its place.
    `num_rounded` is as for `laplace_grid`.
    """
    num_rounded = math.prod(shape_of(exact)) if num_rounded is None else num_rounded
    positive_stddev = jnp.where(stddev > 0, stddev, 1.0)
    step = power_below(positive_stddev) * NORMAL_STEP
    declared = positive_stddev * UNKNOWN if sensitivity is None else sensitivity
    larger = 1 + math.sqrt(num_rounded) * step / declared
    valid = (stddev >= 0) & (stddev < math.inf) & (declared > 0)
    return _grid(step, jnp.where(stddev > 0, positive_stddev / step * larger, 0), valid)


def k_norm_grid(exact: Exact, sensitivity: jax.Array, epsilon: jax.Array) -> Grid:
    """Returns the grid for isotropic K-norm noise at an L2 sensitivity; sensitivity and epsilon are [] float64."""
    root = math.sqrt(math.prod(shape_of(exact)))
    step = power_below(jnp.minimum(sensitivity / epsilon, sensitivity / root)) * K_NORM_STEP
    step = jnp.maximum(step, power_below(sensitivity) * 2.0**-30)
    return _grid(step, (sensitivity / step + root) / epsilon, (sensitivity > 0) & (epsilon > 0))


def noisy_values(exact: Exact, noise: jax.Array, grid: Grid, dtype: DTypeLike) -> jax.Array:
    """Returns values plus noise (an integer number of steps), as floats that are rounded after the addition.

    Values that are not finite are returned unchanged. If the scale is NaN, all results are NaN.
    """
    base, remainder = split(exact, jnp.maximum(grid.step, 1))
    noisy = base + (jnp.round(remainder * grid.per_one) + noise) * grid.step  # only this addition rounds
    return jnp.where(grid.scale > 0, noisy, jnp.where(grid.scale == 0, base + remainder, jnp.nan)).astype(dtype)


def noisy_leads(exact: Exact, noise: jax.Array, grid: Grid, among: jax.Array | None, dtype: jnp.dtype) -> jax.Array:
    """Returns each noisy value minus the largest noisy value on the last axis among entries with `among` True.

    Results are differences of integer numbers of steps, rounded to floats: <= 0 where `among` is True, and meaningless
    elsewhere. If the scale is NaN, all results are NaN. None means that `among` is True for all entries.
    """
    base, remainder = split(exact, jnp.maximum(grid.step, 1))
    steps = jnp.clip(jnp.round(remainder * grid.per_one), -LARGEST, LARGEST).astype(jnp.int64)
    if isinstance(exact, fixed_point.Sum):  # otherwise the base is 0, and a GPU's kernel would be several times larger
        high = jnp.clip(jnp.round(base * grid.per_one), -2 * LARGEST, 2 * LARGEST).astype(jnp.int64)
        steps = jnp.clip(high + steps, -int(LARGEST), int(LARGEST))
    steps = steps + jnp.where(grid.scale == 0, 0, noise).astype(jnp.int64)  # int64 has more digits than float64
    counted = steps if among is None else jnp.where(among, steps, jnp.iinfo(jnp.int64).min)
    behind = (steps - counted.max(-1, keepdims=True)).astype(jnp.float64) * grid.step
    return jnp.where(jnp.isnan(grid.scale), jnp.nan, behind).astype(dtype)


def is_integer(exact: Exact) -> bool:
    """Returns whether values are integers."""
    return isinstance(exact, jax.Array) and jnp.issubdtype(exact.dtype, jnp.integer)


def _grid(step: jax.Array, scale: jax.Array, valid: jax.Array) -> Grid:
    scale = jnp.where(valid & (scale <= LARGEST_SCALE), scale, jnp.nan)
    step = jnp.where(scale >= 0, step, 1.0)  # the step stays at scale 0, because leads are differences of steps
    return Grid(step, 1 / step, scale, jnp.where(scale > 0, scale, FEW))
