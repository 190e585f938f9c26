"""Draws exact Gamma and Beta variates with parameters of at least 1, by few operations that vectorise."""

import functools
import itertools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jaxdp.numerics.kernels import lanes_last, own_kernel, tree_reduce
from jaxdp.random._normal import normal
from jaxdp.random.threefry import fast_key, pair_uniforms, two_uniforms

LARGE = {4: 1e3, 8: 1e6}  # by bytes of the float type; for larger shape parameters a series is more precise than a log
WORD = 32  # bits of a word
MOST = 256  # maximum number of variates in a loop


def gamma(key: jax.Array, shape: ArrayLike) -> jax.Array:
    """Draws Gamma variates with scale 1, elementwise.

    One proposal is made for every element and accepted with probability at least 19/20. Rejected elements are then
    drawn again sequentially, in parts of 256 elements.

    Args:
        key: [] typed PRNG key.
        shape: [n] float32 or float64, the shape parameters, finite and >= 1; may be traced. A parameter that is NaN or
            below 1 gives NaN, and infinity gives infinity.

    Returns:
        [n] of the same dtype, positive.

    Raises:
        ValueError: if shape is not a vector of at least one float.

    Source:
        Marsaglia & Tsang (2000), "A simple method for generating gamma variables".

    Deviations:
        None in distribution, up to the rounding of floats. The squeeze step, which saves logarithms, is omitted.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> bool(abs(gamma(jax.random.key(0), jnp.full(10_000, 4.0)).mean() - 4) < 5 * 2 / 100)
        True
    """
    shape = jnp.asarray(shape)
    if shape.ndim != 1 or len(shape) == 0 or shape.dtype not in (np.float32, np.float64):
        raise ValueError(f"shape must be a vector of floats, got {shape.dtype} of shape {shape.shape}")
    key = fast_key(key)
    size = len(shape)
    if size > MOST:
        padded = jnp.pad(shape, (0, -size % MOST), constant_values=1).reshape(-1, MOST)
        return jax.vmap(gamma)(jax.random.split(key, len(padded)), padded).ravel()[:size]
    index = jnp.arange(size, dtype=jnp.int32)
    key_first, key_more = jax.random.split(key)
    half_step = 0.5 * float(jnp.finfo(shape.dtype).eps)  # moves uniform variates to midpoints
    key_normal, key_uniform = jax.random.split(key_first)
    variates = normal(key_normal, size, shape.dtype), pair_uniforms(key_uniform, size, shape.dtype) + half_step
    first = own_kernel(_proposals, *variates, shape)  # zero if rejected

    def is_any_rejected(carry: tuple[Any, ...]) -> jax.Array:
        return functools.reduce(operator.or_, carry[1]) != 0

    def draw_next(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        attempt, rejected, variates = carry
        index_rejected = own_kernel(_first_set_bit, *rejected)
        quantile, uniform = two_uniforms(key_more, attempt, shape.dtype)[:, None] + half_step
        variate = own_kernel(_propose_again, quantile, uniform, shape[index_rejected][None])[0]
        is_in_word = [(variate != 0) & (index_rejected // WORD == number) for number in range(len(rejected))]
        rejected = [
            jnp.where(is_here, word & (word - 1), word) for is_here, word in zip(is_in_word, rejected, strict=True)
        ]
        return attempt + 1, rejected, jnp.where(index == index_rejected, variate, variates)

    rejected = [own_kernel(_zero_bits, first[start : start + WORD]) for start in range(0, size, WORD)]
    return lax.while_loop(is_any_rejected, draw_next, (jnp.uint32(0), rejected, first))[2]


def beta(key: jax.Array, first: ArrayLike, second: ArrayLike) -> jax.Array:
    """Draws Beta variates, elementwise.

    Args:
        key: [] typed PRNG key.
        first: [n] float32 or float64 >= 1 and finite; may be traced.
        second: [n] of the same dtype >= 1 and finite; may be traced.

    Returns:
        [n] of the same dtype, in (0, 1) up to rounding.

    Raises:
        ValueError: if first and second are not vectors of floats with the same length >= 1.

    Source:
        Devroye (1986), chapter IX: the first of two independent Gamma variates, divided by their sum.

    Deviations:
        See `gamma`.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> bool(abs(beta(jax.random.key(0), jnp.full(10_000, 1.0), jnp.full(10_000, 2.0)).mean() - 1 / 3) < 0.012)
        True
    """
    first, second = jnp.asarray(first), jnp.asarray(second)
    if first.shape != second.shape:
        raise ValueError(f"first and second must have the same shape, got {first.shape} and {second.shape}")
    variates = gamma(key, jnp.concatenate([first, second]))
    return variates[: len(first)] / (variates[: len(first)] + variates[len(first) :])


def _propose_again(quantile: jax.Array, uniform: jax.Array, shape: jax.Array) -> jax.Array:
    """Draws a proposal for each Gamma variate, from two uniform variates in (0, 1). Zero means that it is rejected."""
    return _proposals(lax.erf_inv(2 * quantile - 1) * 2**0.5, uniform, shape)


def _proposals(x: jax.Array, uniform: jax.Array, shape: jax.Array) -> jax.Array:
    """Draws a proposal for each Gamma variate, from a normal and a uniform variate. Zero means that it is rejected."""
    x, uniform, shape = lanes_last(x), lanes_last(uniform), lanes_last(shape)
    d = jnp.where(shape >= 1, shape - 1 / 3, jnp.nan)
    u = x * lax.rsqrt(9 * d)
    root = 1 + u
    v = root * root * root
    bound = 0.5 * x * x + d * (1 - v + 3 * lax.log(lax.max(root, 1e-30)))
    # For large d, terms of about sqrt(d) nearly cancel; the series of their sum begins with u^4.
    series = -d * u**4 * (3 / 4 - u * (3 / 5 - u * (3 / 6 - u * (3 / 7))))
    bound = lax.select(d < LARGE[shape.dtype.itemsize], bound, series)
    accepted = ~(root <= 0) & ~(lax.log(uniform) >= bound)  # accepts NaN, which would otherwise be redrawn for ever
    return lax.select(accepted, d * v, jnp.zeros_like(d))


def _zero_bits(variates: jax.Array) -> jax.Array:
    """Returns a word ([] uint32) in which bit i is 1 if variate i is zero. There may be at most 32 variates."""
    zeros = (variates == 0).astype(jnp.uint32)
    return tree_reduce(jnp.bitwise_or, zeros << jnp.arange(len(variates), dtype=jnp.uint32))


def _first_set_bit(*words: jax.Array) -> jax.Array:
    """Returns the index of the first bit that is 1. Bit i of word k has index 32 k + i, and bit 0 is the lowest bit."""
    index = jnp.int32(0)
    for start, word in reversed(list(zip(itertools.count(0, WORD), words))):
        below = lax.population_count((word & (~word + 1)) - 1).astype(jnp.int32)
        index = jnp.where(word != 0, start + below, index)
    return jnp.asarray(index)
