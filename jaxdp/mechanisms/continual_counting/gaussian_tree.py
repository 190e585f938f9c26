"""Tree counters with Gaussian noise, of which each entry of the stream needs one draw.

When an entry comes, a block of every level up to some one ends, and each such block has noise of its own. But of all
these noises only one sum is ever used: that in the estimate of the largest block. It is Gaussian, so it is drawn at
once. The estimates have the law that they have with a draw for each block.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float
from jaxdp.mechanisms._grid import shape_of
from jaxdp.mechanisms.continual_counting.counter import (
    Exact,
    check_shapes,
    entry,
    fed_mask,
    joined,
    nothing,
    spread,
    stream_dtype,
    whole_stream,
)
from jaxdp.mechanisms.continual_counting.nodes import before, groups
from jaxdp.mechanisms.continual_counting.noise import GaussianParams
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.random import normals


class GaussianTreeState(NamedTuple):
    """Tree counters with Gaussian noise. Secret: neither sums nor errors may be released by themselves.

    Attributes:
        clock: [*clocks] integers, entries fed; at most horizon + 1.
        total: [*shape] the exact sum: integers, or sums in fixed point, rounded only with the noise.
        digits: [levels, *clocks] integers, how many blocks of each level make up the stream so far.
        errors: [levels, *shape] float, the sum of their estimates' errors.
    """

    clock: jax.Array
    total: Any
    digits: jax.Array
    errors: jax.Array


class GaussianTree(NamedTuple):
    """The part of a counter that depends on how noise is drawn; its fields are those of `Counter`."""

    init: Any
    feed: Any
    read: Any
    prefixes: Any


def fresh_shares(variances: np.ndarray) -> np.ndarray:
    """[levels] standard deviation of what is new in a block's estimate when it ends, in units of a node's.

    Its own noise counts by v; noise of the blocks inside that end with it by 1 - v, of which the largest is such a
    block again: the squares c_h^2 = v_h^2 + (1 - v_h)^2 c_{h-1}^2.

    Args:
        variances: [levels] of blocks' estimates, v.
    """
    squares = [1.0]
    for v in variances[1:]:
        squares.append(v * v + (1 - v) ** 2 * squares[-1])
    return np.sqrt(squares)


def gaussian_tree(horizon: int, arity: int, variances: np.ndarray) -> GaussianTree:
    """The functions of a tree counter with Gaussian noise.

    Args:
        horizon: largest number of entries.
        arity: of the tree.
        variances: [levels] of blocks' estimates in units of a node's; 1 where nodes are not combined.
    """
    levels, rests, shares = len(variances), 1 - variances, fresh_shares(variances)
    norm = np.sqrt(levels)  # by how much an entry of 1 moves all the nodes

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
            nothing(shape, stream_dtype(dtype, default_float())),
            jnp.zeros((levels, *clocks), jnp.int32),
            jnp.zeros((levels, *shape), default_float()),
        )

    def noised(key: jax.Array, params: GaussianParams, value: Exact) -> tuple[Exact, jax.Array]:
        """One entry, and the noise drawn with it. The entry itself is not released, but is noised in effect."""
        noise = normals(key, shape_of(value), default_float())
        stddev, moved = jnp.asarray(params.noise_stddev), jnp.asarray(params.l2_sensitivity)
        unit = jnp.asarray(norm, stddev.dtype)
        told = Entry("tree", value, "l2", key, moved / unit, noise_stddev=stddev / unit, noise=noise)
        return record(told), stddev * noise

    def feed(
        key: jax.Array, params: GaussianParams, state: GaussianTreeState, value: ArrayLike, fed: ArrayLike = True
    ) -> GaussianTreeState:
        shape = state.errors.shape[1:]
        mask = fed_mask(fed, state.clock.shape)
        entered = jax.tree.map(lambda x: jnp.where(spread(mask, shape), x, 0), entry(value, shape, state.total))
        entered, noise = noised(key, params, entered)
        digits, errors = [], []
        ends, known = mask, jnp.zeros_like(noise)  # whether a block of this level ends, and its error but for the noise
        for h in range(levels):
            is_top = ends & (state.digits[h] < arity - 1) if h < levels - 1 else ends
            wide, wide_top = spread(ends, shape), spread(is_top, shape)
            error = known + jnp.asarray(shares[h], noise.dtype) * noise
            digits.append(jnp.where(is_top, state.digits[h] + 1, jnp.where(ends, 0, state.digits[h])))
            kept = jnp.where(wide, 0, state.errors[h])
            errors.append(jnp.where(wide_top, state.errors[h] + error, kept))
            if h < levels - 1:
                known = jnp.asarray(rests[h + 1], noise.dtype) * (state.errors[h] + known)
            ends = ends & ~is_top
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return GaussianTreeState(clock, joined(state.total, entered), jnp.stack(digits), jnp.stack(errors))

    def read(params: GaussianParams, state: GaussianTreeState) -> jax.Array:
        del params
        estimate = add_noise(state.total, state.errors.sum(axis=0))
        return jnp.where(spread(state.clock, estimate.shape) <= horizon, estimate, jnp.nan)

    def prefixes(keys: jax.Array, params: GaussianParams, values: ArrayLike) -> jax.Array:
        values = whole_stream(keys, values, horizon, default_float())
        stream = entry(values, values.shape, nothing((), values.dtype))
        stream, noise = jax.vmap(lambda key, value: noised(key, params, value))(keys, stream)
        length, times = len(noise), jnp.arange(1, len(noise) + 1)
        known, error = jnp.zeros_like(noise), noise
        total = before(error, arity)[times]
        for h in range(1, levels):
            if arity**h > length:
                break
            children, inside = groups(error, arity), groups(known, arity)
            known = jnp.asarray(rests[h], noise.dtype) * (children[:, :-1].sum(axis=1) + inside[:, -1])
            error = known + jnp.asarray(shares[h], noise.dtype) * noise[arity**h - 1 :: arity**h]
            total = total + before(error, arity)[times // arity**h]
        return add_noise(jax.lax.associative_scan(joined, stream), total)

    return GaussianTree(init, feed, read, prefixes)
