"""Converts and checks arguments of traced mechanisms: scalars, float arrays and labels."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float
from jaxdp.mechanisms._grid import number_array, wide
from jaxdp.validation import check_above, check_positive

Scalar = float | np.floating | np.integer | jax.Array
BUDGETS = ("epsilon", "local_epsilon")  # may be infinite, which means no privacy


def positive_scalar(name: str, value: Scalar, dtype: DTypeLike | None = None) -> jax.Array:
    """Converts a value to a [] float of the given dtype.

    If dtype is None, a floating dtype is kept, and any other dtype is replaced by the default float. Only a Python or
    NumPy number is checked to be > 0, and to be finite unless its name is in `BUDGETS`. A JAX array is not: it may be
    traced, and reading its value would wait for the device. If dtype is float64, subnormal float64 values become
    NaN.

    Raises:
        ValueError: if value is not a scalar, or is a number that violates these rules.
    """
    if np.ndim(value) != 0:
        raise ValueError(f"{name} must be a scalar (use jax.vmap for several values), got shape {jnp.shape(value)}")
    if not isinstance(value, jax.Array):
        if name in BUDGETS:
            check_above(name, value, 0.0)
        else:
            check_positive(name, value)
    if dtype is None and not jnp.issubdtype(jnp.result_type(value), jnp.floating):
        dtype = default_float()
    return widen(jnp.asarray(value)) if dtype == jnp.float64 else jnp.asarray(value, dtype)


def wide_scalars(**values: Scalar) -> list[jax.Array]:
    """Converts public scalars > 0 to [] float64 by `positive_scalar`; errors use the names of the arguments."""
    with jax.enable_x64(True):
        return [positive_scalar(name, value, jnp.float64) for name, value in values.items()]


def widen(scalar: jax.Array) -> jax.Array:
    """Converts a scalar to float64; call it in 64-bit mode. Subnormal values, which programs flush to 0, become NaN."""
    scalar = wide(scalar)
    bits = jax.lax.bitcast_convert_type(scalar, jnp.int64) & jnp.iinfo(jnp.int64).max
    return jnp.where((bits > 0) & (bits < 2**52), jnp.nan, scalar)


def float_array(name: str, values: ArrayLike) -> jax.Array:
    """Returns values as a JAX array.

    Raises:
        ValueError: if the dtype of values is not floating, or values are no array of numbers or have masked entries.
    """
    array = number_array(name, values)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"{name} must be floats, got dtype {array.dtype}: convert them, e.g. by astype(jnp.float32); subtract a "
            "public number from counts beyond 2^24 first, as float32 would round them"
        )
    return array


def label_array(name: str, labels: ArrayLike, num_labels: int) -> jax.Array:
    """Returns labels as a JAX array.

    Raises:
        ValueError: if the dtype of labels is not an integer dtype that can represent num_labels - 1, or labels are no
            array of numbers or have masked entries.
    """
    array = number_array(name, labels)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{name} must be integers, got dtype {array.dtype}")
    if num_labels - 1 > jnp.iinfo(array.dtype).max:
        raise ValueError(f"{name} must have a dtype that holds num_labels - 1 = {num_labels - 1}, got {array.dtype}")
    return array
