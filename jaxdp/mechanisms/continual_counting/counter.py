"""The interface of continual counters, which return private prefix sums of a stream after each entry."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import MadeBy, default_float
from jaxdp.core.made_by import describe
from jaxdp.numerics import fixed_point
from jaxdp.validation import check_count, check_finite, check_list

Exact = jax.Array | fixed_point.Sum  # exact sums of a stream


class Counter(NamedTuple):
    """A continual counter: a tuple of pure functions.

    The whole state is secret. The result of `read` may be released after every entry, and entries may depend on all
    earlier releases. Fed entries are counted by a clock (see `init`), on which the noise depends. So `fed` is not
    protected, and must be public.

    Attributes:
        params: (**values) -> Params. On the host: validates, and calibrates in float64.
        init: (key, params, shape=(), *, clocks=(), dtype=int) -> state of an array of counters of this shape. `clocks`
            are leading axes of `shape`. Each index along these axes has a clock, which all counters at this index
            share; `doubling_counter` allows only (). `dtype` is the dtype of the stream: integers are added up as
            integers (int32, or int64 in 64-bit mode), and floats as integer multiples of 2^-20.
        feed: (key, params, state, value, fed=True) -> state. It needs a new key for every entry. value: [*shape], of
            the stream's dtype (bools and narrow integers count as integers). fed: [*clocks] bool; False leaves a
            counter unchanged. Sums, and integers in arrays, wrap around beyond int32 (int64 in 64-bit mode). Floats are
            rounded to multiples of 2^-20, and NaN counts as 0: sensitivities refer to rounded entries. Rounding keeps
            entries in [0, 1] or [-1, 1]. Under any other bound, such as a norm bound on a vector of d entries, rounding
            enlarges the sensitivity: add 2^-20 * d in L1 norm, 2^-20 * sqrt(d) in L2 norm.
        read: (params, state) -> [*shape] float, the estimates of the sums so far. 0 before the first entry; NaN after
            more entries than the horizon.
        prefixes: (keys, params, values) -> [T, *shape] float: the results of `read`, up to rounding, after each of the
            entries `values` [T, *shape] of a whole stream, 1 <= T <= horizon, fed with `keys` [T].
        variance: (params, times) -> float64 array like times. On the host: the variance of the estimate after each
            number of entries in `times` (integers in 1..horizon). Estimates are unbiased. Trees leave out the small
            additional noise that covers rounding. `toeplitz_counter` includes this noise for a single counter; each
            counter of an array of m counters has sqrt(m) times as much. The same holds for `radius`.
        radius: (params, times, failure_prob) -> float array like times. May be traced. For each time separately, the
            error of the estimate after this number of entries exceeds the radius with probability at most failure_prob
            ([] float in (0, 1)). Times outside 1..horizon give meaningless radii.
        horizon: the maximum number of entries.
        made_by: the factory and its arguments, for `repr`.

    Examples:
        >>> from jaxdp.mechanisms import tree_counter
        >>> counter = tree_counter(horizon=7)
        >>> params = counter.params(epsilon=float("inf"))  # no privacy, no noise
        >>> state = counter.init(jax.random.key(0), params)
        >>> for t, entry in enumerate([1, 0, 1, 1]):
        ...     state = counter.feed(jax.random.key(t), params, state, entry)
        >>> float(counter.read(params, state))
        3.0
    """

    params: Callable[..., Any]
    init: Callable[..., Any]
    feed: Callable[..., Any]
    read: Callable[[Any, Any], jax.Array]
    prefixes: Callable[[jax.Array, Any, ArrayLike], jax.Array]
    variance: Callable[[Any, ArrayLike], np.ndarray]
    radius: Callable[[Any, ArrayLike, ArrayLike], jax.Array]
    horizon: int
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "counter")


def check_times(times: npt.ArrayLike, horizon: int) -> np.ndarray:
    """Returns times as int64, after checking that all are integers in 1..horizon.

    Raises:
        ValueError: if a time is not an integer in 1..horizon.
    """
    array = check_finite("times", times)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"times must be integers, got dtype {array.dtype}")
    if array.size and not (array.min() >= 1 and array.max() <= horizon):
        raise ValueError(f"times must be in [1, {horizon}], got {array.min()} to {array.max()}")
    return array.astype(np.int64)


def check_shapes(shape: tuple[int, ...], clocks: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns shape and clocks as tuples of integers, after checking that clocks are leading axes of shape.

    Raises:
        ValueError: if shape or clocks is not a list of integers >= 0, or clocks are not leading axes of shape.
    """
    shape, clocks = (
        tuple(check_count(f"{name}[{axis}]", length, 0) for axis, length in enumerate(check_list(name, lengths)))
        for name, lengths in (("shape", shape), ("clocks", clocks))
    )
    if shape[: len(clocks)] != clocks:
        raise ValueError(f"clocks must be leading axes of shape {shape}, got {clocks}")
    return shape, clocks


def stream_dtype(dtype: DTypeLike, floating: np.dtype) -> np.dtype:
    """Returns the dtype to which entries of the given dtype are cast: JAX's default integer, or `floating` for floats.

    Raises:
        ValueError: if dtype is neither integers, bools nor floats.
    """
    try:
        kind = jnp.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"dtype must be integers or floats, got {dtype!r}") from error
    if jnp.issubdtype(kind, jnp.floating):
        return floating
    if jnp.issubdtype(kind, jnp.integer) or jnp.issubdtype(kind, jnp.bool_):
        return jnp.result_type(int)
    raise ValueError(f"dtype must be integers or floats, got {kind}")


def zero_sums(shape: tuple[int, ...], dtype: DTypeLike) -> Exact:
    """Returns zero sums of a stream: integers, or sums in fixed point for streams of floats."""
    return jnp.zeros(shape, dtype) if jnp.issubdtype(dtype, jnp.integer) else fixed_point.zero(shape)


def add_sums(left: Exact, right: Exact) -> Exact:
    """Returns the sum of two sums of a stream."""
    if isinstance(left, fixed_point.Sum):
        assert isinstance(right, fixed_point.Sum)
        return fixed_point.plus(left, right)
    assert not isinstance(right, fixed_point.Sum)
    return left + right


def sum_along(values: Exact, axis: int) -> Exact:
    """Returns the total of a stream's entries or sums along an axis of any length."""
    if not isinstance(values, fixed_point.Sum):
        return values.sum(axis=axis, dtype=values.dtype)

    def add(left: tuple[jax.Array, ...], right: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return tuple(fixed_point.plus(fixed_point.Sum(*left), fixed_point.Sum(*right)))

    return fixed_point.Sum(*jax.lax.reduce(tuple(values), tuple(fixed_point.zero()), add, (axis,)))


def entry(value: ArrayLike, shape: tuple[int, ...], sums: Exact) -> Exact:
    """Converts one entry of a stream to the form of the stream's sums (integers, or fixed point for floats).

    Args:
        value: the entry.
        shape: required shape of the entry.
        sums: sums of the stream.

    Raises:
        ValueError: if the entry has another shape, is a float in a stream of integers, or is not a real number.
    """
    array = _array("value", value)
    dtype = default_float() if isinstance(sums, fixed_point.Sum) else sums.dtype
    if array.shape != shape:
        raise ValueError(f"value must have shape {shape}, got {array.shape}")
    if jnp.issubdtype(array.dtype, jnp.floating) and jnp.issubdtype(dtype, jnp.integer):
        raise ValueError(f"value must be integers (for floats, init the counter with dtype=float), got {array.dtype}")
    stream_dtype(array.dtype, dtype)
    array = array.astype(dtype)
    return fixed_point.from_floats(array) if isinstance(sums, fixed_point.Sum) else array


def fed_mask(fed: ArrayLike, clocks: tuple[int, ...]) -> jax.Array:
    """Returns the mask of clocks that advance.

    Raises:
        ValueError: if fed is not boolean, or is neither a scalar nor an array with the shape of the clocks.
    """
    mask = _array("fed", fed)
    if mask.dtype != jnp.bool_ or mask.shape not in ((), clocks):
        raise ValueError(f"fed must be booleans of shape {clocks}, got {mask.dtype} of shape {mask.shape}")
    return jnp.broadcast_to(mask, clocks)


def spread(per_clock: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Appends axes of length 1 to an array [*clocks], so that it broadcasts with `shape`."""
    return per_clock.reshape(per_clock.shape + (1,) * (len(shape) - per_clock.ndim))


def whole_stream(keys: jax.Array, values: ArrayLike, horizon: int, floating: np.dtype) -> jax.Array:
    """Returns values [T, *shape] in the dtype of `stream_dtype`, after checking that there are T <= horizon keys.

    Raises:
        ValueError: if keys are not typed PRNG keys, if there is not one key for each of 1 to `horizon` entries, or if
            values are neither integers, bools nor floats.
    """
    array = _array("values", values)
    if not isinstance(keys, jax.Array) or not jnp.issubdtype(keys.dtype, jax.dtypes.prng_key):
        raise ValueError(f"keys must be an array of typed PRNG keys, as jax.random.split makes, got {keys!r}")
    if array.ndim == 0 or keys.shape != array.shape[:1] or not 1 <= array.shape[0] <= horizon:
        raise ValueError(
            f"values must be [T, ...] with 1 <= T <= {horizon} and one key for each entry, got shape {array.shape} and "
            f"keys of shape {keys.shape}"
        )
    return array.astype(stream_dtype(array.dtype, floating))


def _array(name: str, value: ArrayLike) -> jax.Array:
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:  # text, None, ragged lists, too large integers
        raise ValueError(f"{name} must be an array of numbers, got {value!r}") from error
