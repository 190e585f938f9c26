"""Tree counters with Gaussian noise, which draw one variate for each entry of the stream.

A block is a node of the tree: a run of consecutive entries. When an entry arrives, one block of every level up to some
level ends, and each of these blocks gets noise. The later estimates use only one weighted sum of these noises: the new
noise in the estimate of the largest block. This sum is Gaussian, so it is drawn directly. Estimates have the same
distribution as with one draw for each block. Their errors are stored as integers, in steps of the noise's grid.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float
from jaxdp.mechanisms._grid import NORMAL_STEP, Grid, shape_of
from jaxdp.mechanisms.continual_counting.counter import (
    Exact,
    add_sums,
    check_shapes,
    entry,
    fed_mask,
    spread,
    stream_dtype,
    whole_stream,
    zero_sums,
)
from jaxdp.mechanisms.continual_counting.nodes import before, groups
from jaxdp.mechanisms.continual_counting.noise import GaussianParams
from jaxdp.mechanisms.continual_counting.steps import (
    add_steps,
    noise_grid,
    normal_steps,
    numbers,
    unit_of,
    with_error,
    zero_steps,
)
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import lanes_last, own_kernel, separate_kernels, tree_reduce


class GaussianTreeState(NamedTuple):
    """State of tree counters with Gaussian noise. Secret: neither sums nor errors may be released by themselves.

    Attributes:
        clock: [*clocks] integers, the number of entries so far; horizon + 1 if there are more.
        total: [*shape] the exact sum: integers, or sums in fixed point, rounded only after adding noise.
        digits: [levels, *clocks] integers, number of blocks of each level that make up the stream so far.
        errors: [levels, *shape] for each level, the sum of the errors of these blocks' estimates, in steps of the
            noise's grid. The dtype is complex64, which stores the bits of int64 (see `steps.zero_steps`).
    """

    clock: jax.Array
    total: Any
    digits: jax.Array
    errors: jax.Array


class GaussianTree(NamedTuple):
    """The functions of a tree counter that depend on how noise is drawn, as fields of `Counter` with the same names."""

    init: Any
    feed: Any
    read: Any
    prefixes: Any


def fresh_stddevs(variances: np.ndarray) -> np.ndarray:
    """Returns the stddev of the new noise in an ended block's estimate, relative to one node's noise, by level."""
    # The noise of the block itself has weight v. The noise of the inner blocks that end with the same entry has weight
    # 1 - v. The largest inner block has the same form, so c_h^2 = v_h^2 + (1 - v_h)^2 c_{h-1}^2.
    squares = [1.0]
    for v in variances[1:]:
        squares.append(v * v + (1 - v) ** 2 * squares[-1])
    return np.sqrt(squares)


def gaussian_tree(horizon: int, arity: int, variances: np.ndarray) -> GaussianTree:
    """Builds the functions of a tree counter with Gaussian noise.

    `variances`, [levels], are the variances of blocks' estimates relative to one node's noise; 1 without `combine`.
    """
    levels, rests, stddevs = len(variances), 1 - variances, fresh_stddevs(variances)
    norm = np.sqrt(levels)  # L2 norm of the change of all nodes by an entry of 1

    def init(
        key,
        params: GaussianParams,
        shape: tuple[int, ...] = (),
        *,
        clocks: tuple[int, ...] = (),
        dtype: DTypeLike = int,
    ) -> GaussianTreeState:
        del key, params
        shape, clocks = check_shapes(shape, clocks)
        return GaussianTreeState(
            jnp.zeros(clocks, jnp.result_type(int)),
            zero_sums(shape, stream_dtype(dtype, default_float())),
            jnp.zeros((levels, *clocks), jnp.int32),
            zero_steps((levels, *shape)),
        )

    def grid_of(params: GaussianParams, total: Exact, size: int) -> Grid:
        """Returns the grid of noise on `size` sums; the noise also covers rounding by up to two steps in each block."""
        return noise_grid(params, unit_of(total), stddevs.min(), NORMAL_STEP, 2 * np.sqrt(levels * max(size, 1)))

    def draw_and_record(
        key: jax.Array, params: GaussianParams, value: Exact, tops: jax.Array, grid: Grid
    ) -> tuple[Exact, jax.Array]:
        """Draws and records an entry's noise; `tops`, [levels, ...] bool, marks the largest ended block's level."""
        dtype = jnp.asarray(params.noise_stddev).dtype
        stddev, sensitivity = jnp.asarray(params.noise_stddev), jnp.asarray(params.l2_sensitivity)
        unit = jnp.asarray(norm, stddev.dtype)
        noise, drawn = _draw(key, tops, stddevs / stddevs.min(), grid, shape_of(value), dtype)
        # the entry itself is not released, but the release costs as much as this noise on the entry would
        release = Entry("tree", value, "l2", key, sensitivity / unit, noise_stddev=stddev / unit, noise=drawn)
        return record(release), noise

    def feed(
        key: jax.Array, params: GaussianParams, state: GaussianTreeState, value: ArrayLike, fed: ArrayLike = True
    ) -> GaussianTreeState:
        shape = shape_of(state.total)
        mask = fed_mask(fed, state.clock.shape)
        exact_entry = jax.tree.map(lambda x: jnp.where(spread(mask, shape), x, 0), entry(value, shape, state.total))
        ends, tops, digits = [mask], [], []
        for h in range(levels):
            is_top = ends[h] & (state.digits[h] < arity - 1) if h < levels - 1 else ends[h]
            digits.append(jnp.where(is_top, state.digits[h] + 1, jnp.where(ends[h], 0, state.digits[h])))
            tops.append(is_top)
            ends.append(ends[h] & ~is_top)
        wide_ends, wide_tops = (spread(jnp.stack(masks), (levels, *shape)) for masks in (ends[:levels], tops))
        grid = grid_of(params, state.total, math.prod(shape))
        exact_entry, noise = draw_and_record(key, params, exact_entry, wide_tops, grid)
        error = lanes_last(own_kernel(functools.partial(_error, rests), state.errors, noise, wide_tops))
        errors = separate_kernels(_replace_errors, state.errors, error, wide_ends, wide_tops)
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return GaussianTreeState(clock, add_sums(state.total, exact_entry), jnp.stack(digits), errors)

    def read(params: GaussianParams, state: GaussianTreeState) -> jax.Array:
        shape = shape_of(state.total)
        grid = grid_of(params, state.total, math.prod(shape))
        estimate = separate_kernels(functools.partial(_estimate, default_float()), state.total, state.errors, grid)
        return jnp.where(spread(state.clock, shape) <= horizon, estimate, jnp.nan)

    def prefixes(keys: jax.Array, params: GaussianParams, values: ArrayLike) -> jax.Array:
        values = whole_stream(keys, values, horizon, default_float())
        stream, shape = entry(values, values.shape, zero_sums((), values.dtype)), values.shape[1:]
        times = np.arange(1, len(values) + 1)
        tops = np.stack([(times % arity**h == 0) & (times // arity**h % arity > 0) for h in range(levels)], axis=-1)
        grid = grid_of(params, stream, int(np.prod(shape)))

        def release_entry(key: jax.Array, value: Exact, tops: jax.Array) -> tuple[Exact, jax.Array]:
            return draw_and_record(key, params, value, tops.reshape(-1, *(1,) * len(shape)), grid)

        stream, noise = jax.vmap(release_entry)(keys, stream, jnp.asarray(tops))
        totals = jax.lax.associative_scan(add_sums, stream)
        return _estimates(totals, noise, arity, rests, grid, default_float())

    return GaussianTree(init, feed, read, prefixes)


@in_64_bits
def _draw(
    key: jax.Array, tops: jax.Array, stddevs: np.ndarray, grid: Grid, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[jax.Array, jax.Array]:
    """Returns an entry's noise in grid steps, and the same noise relative to its standard deviation."""
    stddev = jnp.ones(tops.shape[1:], jnp.float64)
    for h, level_stddev in enumerate(stddevs):
        stddev = jnp.where(tops[h], level_stddev, stddev)
    scales = grid.drawn * stddev
    noise = normal_steps(key, scales, shape)
    return jnp.where(grid.scale == 0, 0, noise), (noise / scales).astype(dtype)


@in_64_bits
def _error(rests: np.ndarray, errors: jax.Array, noise: jax.Array, tops: jax.Array) -> jax.Array:
    """Returns the error of the largest block that ends, as an integer number of steps."""
    errors, noise, tops = jax.tree.map(lanes_last, (errors, noise, tops))
    past, error = jnp.zeros_like(noise), jnp.zeros_like(noise)  # past: a block's error without the new noise
    for h, weight in enumerate(rests):
        if h > 0:
            past = weight * (numbers(errors[h - 1]) + past)
        error = jnp.where(tops[h], past, error)
    return lanes_last(jnp.round(error) + noise)


@in_64_bits
def _replace_errors(errors: jax.Array, error: jax.Array, ends: jax.Array, tops: jax.Array) -> jax.Array:
    """Returns the errors after an entry: with the largest ended block's error, without the errors of blocks in it."""
    remaining = jnp.where(tops | ~ends, errors, 0)
    return add_steps(remaining, jnp.where(tops, error[None], 0))


@in_64_bits
def _estimate(dtype: np.dtype, total: Exact, errors: jax.Array, grid: Grid) -> jax.Array:
    return with_error(total, tree_reduce(jnp.add, numbers(errors)), grid, dtype)


@in_64_bits
def _estimates(
    totals: Exact, noise: jax.Array, arity: int, rests: np.ndarray, grid: Grid, dtype: np.dtype
) -> jax.Array:
    """Returns the estimates of all prefixes, from the noise [T, ...] that `feed` draws."""
    length, times = len(noise), jnp.arange(1, len(noise) + 1)
    past, error = jnp.zeros(noise.shape, jnp.float64), noise
    total = before(error, arity)[times]
    for h in range(1, len(rests)):
        if arity**h > length:
            break
        children, inside = groups(error, arity), groups(past, arity)
        past = rests[h] * (children[:, :-1].sum(axis=1) + inside[:, -1])
        error = jnp.round(past) + noise[arity**h - 1 :: arity**h]
        total = total + before(error, arity)[times // arity**h]
    return with_error(totals, total, grid, dtype)
