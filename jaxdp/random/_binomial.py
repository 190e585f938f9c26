"""Draws binomial and multinomial counts accurately for any number of trials, even in 32-bit mode.

`jax.random.binomial` computes candidates and log-gammas in float32, which cannot distinguish consecutive integers above
2^24. In this module the count is an integer mode plus a small integer offset. The acceptance probability of a candidate
is computed from the offset, without differences of large numbers.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxdp.random.threefry import fast_key

SMALL_MEAN = 10  # waiting times are used below this mean; the constants of transformed rejection are valid above it
CELL_BITS = 9  # the hat is constant on each of 2^9 cells of the transformed uniform variate
LATTICE_BITS = 16  # candidates lie on a lattice with about 2^16 points per standard deviation
SLACK = 1.05  # factor for rounding Hörmann's hat to 2^9 cells; at most 1.027 was needed in a search over n and p
IMPOSSIBLE = -1
WORDS = {jnp.dtype("float32"): jnp.uint32, jnp.dtype("float64"): jnp.uint64}


def binomial(key: jax.Array, n: ArrayLike, p: ArrayLike) -> jax.Array:
    """Draws the number of successes in n independent trials with success probability p, elementwise.

    The computation is in float64 if n or p has 64 bits, and otherwise in float32. p is not rounded further; note that
    float32 numbers near 1 are multiples of 2^-24.

    Args:
        key: [] typed PRNG key.
        n: [...] int32 or int64 >= 0, may be traced.
        p: [...] float32 or float64 in [0, 1], may be traced; same shape as n (use `jnp.broadcast_to`).

    Returns:
        [...] of n's dtype, in [0, n]. The result is exactly 0 for p = 0 and exactly n for p = 1. It is -1 if p is NaN
        or outside [0, 1], or if n is negative.

    Raises:
        ValueError: if n is not int32 or int64, p is not float32 or float64, or their shapes differ.

    Source:
        Means below 10: Devroye (1986), "Non-Uniform Random Variate Generation", chapter X.4, the second waiting time
        algorithm. Larger means: Hörmann (1993), "The generation of binomial random variates", algorithm BTRS, with the
        density ratio from Stirling's series in Loader's (2000) form, "Fast and accurate computation of binomial
        probabilities".

    Deviations:
        BTRS's transformation is rounded to integers at 513 points, and is linear between these points. So the
        probabilities of candidates are known without float rounding. The acceptance ratio and the lengths of the cells
        cause relative errors of a count's probability of about 1e-5 in float32 and 1e-7 in float64. These errors reach
        5e-4 in float32 if p is slightly above 1e-4 and the mean is small, because XLA's log1p loses digits there.
        Float32 uses 32 random bits for a variate and does not resolve probabilities below 1e-9, so the probability of
        an event may change by 1e-10.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> n, p = jnp.array([0, 7, 2**30], jnp.int32), jnp.array([0.5, 1.0, 0.25], jnp.float32)
        >>> counts = binomial(jax.random.key(0), n, p)
        >>> counts[:2].tolist(), bool(abs(counts[2] - 2**28) < 5 * 14190)  # the standard deviation is 14189
        ([0, 7], True)
    """
    n, p = _integers("n", n), _floats("p", p)
    if n.shape != p.shape:
        raise ValueError(f"n and p must have the same shape, got {n.shape} and {p.shape}")
    return _binomial(fast_key(key), n, p)


def multinomial(key: jax.Array, n: ArrayLike, probabilities: ArrayLike) -> jax.Array:
    """Draws the number of occurrences of each of k categories in n independent trials.

    Each category's count is a binomial draw, given the counts of the previous categories. The last category gets the
    remaining trials.

    Args:
        key: [] typed PRNG key.
        n: [...] int32 or int64 >= 0, may be traced.
        probabilities: [..., k] float32 or float64 >= 0, may be traced; leading axes have the shape of n. Probabilities
            are divided by their sum.

    Returns:
        [..., k] of n's dtype: nonnegative counts that sum to n. All counts are -1 if n is negative, if a probability is
        negative or NaN, if the sum of probabilities is infinite in their dtype, or if all probabilities are zero.
        Subnormal probabilities may count as zero.

    Raises:
        ValueError: if n is not int32 or int64, probabilities are not float32 or float64, there is no category, or the
            shapes do not match.

    Source:
        Devroye (1986), chapter XI.1, the conditional method.

    Deviations:
        See `binomial`. Each binomial probability is the probability of a category divided by the sum over this category
        and all later categories. The rounding of these sums adds a relative error of at most k units in the last place
        (k * 6e-8 in float32).

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> counts = multinomial(jax.random.key(0), jnp.int32(2**30), jnp.array([0.5, 0.25, 0.0, 0.25], jnp.float32))
        >>> int(counts.sum()) == 2**30, int(counts[2])
        (True, 0)
    """
    n, probabilities = _integers("n", n), _floats("probabilities", probabilities)
    if probabilities.shape[:-1] != n.shape or probabilities.ndim == 0 or probabilities.shape[-1] == 0:
        raise ValueError(
            "probabilities must have the shape of n and a last axis of at least one category, "
            f"got {probabilities.shape} for n of shape {n.shape}"
        )
    return _multinomial(fast_key(key), n, probabilities)


# Compiled only once for eager calls, and inlined in a larger program.
@partial(jax.jit, inline=True)
def _binomial(key: jax.Array, n: jax.Array, p: jax.Array) -> jax.Array:
    p = p.astype(_working_dtype(n, p))
    return _draw(key, n, p, 1 - p)


@partial(jax.jit, inline=True)
def _multinomial(key: jax.Array, n: jax.Array, probabilities: jax.Array) -> jax.Array:
    weights = jnp.moveaxis(probabilities.astype(_working_dtype(n, probabilities)), -1, 0)
    suffix_sums = lax.cumsum(weights, reverse=True)
    valid = (n >= 0) & jnp.all(weights >= 0, axis=0) & (suffix_sums[0] > 0) & jnp.isfinite(suffix_sums[0])

    def category(remaining: jax.Array, inputs: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        key, weight, successors = inputs
        # Both probabilities are quotients, as 1 - p would lose digits of a small probability of later categories.
        total = jnp.where(weight + successors > 0, weight + successors, 1)
        count = _draw(key, remaining, weight / total, successors / total)
        return remaining - count, count

    keys = jax.random.split(key, weights.shape[0] - 1)
    safe = jnp.where(valid, weights, 0), jnp.where(valid, suffix_sums, 0)
    remaining, counts = lax.scan(category, jnp.where(valid, n, 0), (keys, safe[0][:-1], safe[1][1:]))
    counts = jnp.concatenate([counts, remaining[None]])
    return jnp.moveaxis(jnp.where(valid, counts, jnp.asarray(IMPOSSIBLE, n.dtype)), 0, -1)


def _integers(name: str, values: ArrayLike) -> jax.Array:
    array = jnp.asarray(values)
    if array.dtype not in (jnp.int32, jnp.int64):
        raise ValueError(f"{name} must be int32 or int64, got dtype {array.dtype}")
    return array


def _floats(name: str, values: ArrayLike) -> jax.Array:
    array = jnp.asarray(values)
    if array.dtype not in WORDS:
        raise ValueError(f"{name} must be float32 or float64, got dtype {array.dtype}")
    return array


def _working_dtype(n: jax.Array, p: jax.Array) -> jnp.dtype:
    return jnp.dtype(f"float{8 * max(n.dtype.itemsize, p.dtype.itemsize)}")


def _draw(key: jax.Array, n: jax.Array, p: jax.Array, q: jax.Array) -> jax.Array:
    """Draws Binomial(n, p), given p and q = 1 - p, by means of the smaller one; -1 if n, p or q is < 0 or NaN."""
    valid = (n >= 0) & (p >= 0) & (q >= 0)
    n = jnp.where(valid, n, 0)
    rare = jnp.where(valid, jnp.minimum(p, q), 0)
    large = n.astype(p.dtype) * rare >= SMALL_MEAN
    key_small, key_large = jax.random.split(key)
    small_counts = _waiting_times(key_small, jnp.where(large, 0, n), rare)
    # Lanes that use waiting times get arbitrary valid parameters here, so that there is no NaN.
    large_counts = _transformed_rejection(key_large, jnp.where(large, n, 100), jnp.where(large, rare, 0.5), large)
    count = jnp.where(large, large_counts, small_counts)
    return jnp.where(valid, jnp.where(p <= q, count, n - count), jnp.asarray(IMPOSSIBLE, n.dtype))


def _waiting_times(key: jax.Array, n: jax.Array, p: jax.Array) -> jax.Array:
    """Draws Binomial(n, p) for p <= 1/2, as the number of n standard exponentials that are at most -log(1 - p)."""
    threshold = -jnp.log1p(-p)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        index, pending, elapsed, count = carry
        gap = _exponential(jax.random.fold_in(key, index), n.shape, p.dtype)
        elapsed = elapsed + gap / jnp.where(pending, n - count, 1).astype(p.dtype)
        pending = pending & (elapsed <= threshold)
        count = count + pending.astype(n.dtype)
        return index + 1, pending & (count < n), elapsed, count

    start = (jnp.uint32(0), (n > 0) & (p > 0), jnp.zeros_like(p), jnp.zeros_like(n))
    return lax.while_loop(lambda carry: jnp.any(carry[1]), step, start)[3]


def _exponential(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    """Draws standard exponentials with small relative errors near 0 (rare successes) and in the tail (failures)."""
    word = jax.random.bits(key, shape, WORDS[dtype])
    return jnp.where(word < ~word, -jnp.log1p(-_uniform(word, dtype)), -jnp.log(_uniform(~word, dtype)))


def _uniform(word: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Converts a random word to (word + 1/2) / 2^bits, a uniform number in (0, 1] with finer resolution near 0."""
    return (word.astype(dtype) + 0.5) * 2.0 ** (-8 * word.dtype.itemsize)


def _transformed_rejection(key: jax.Array, n: jax.Array, p: jax.Array, is_needed: jax.Array) -> jax.Array:
    """Draws binomial counts by rejection if n * p >= SMALL_MEAN and p <= 1/2. Returns the mode if not `is_needed`."""
    dtype = p.dtype
    word_bits = 8 * dtype.itemsize
    mode, fraction, log_ratio = _density(n, p)
    lowest, highest = -mode.astype(dtype), (n - mode).astype(dtype)
    stddev = jnp.sqrt(n.astype(dtype) * p * (1 - p))
    boundary, spacing, scale = _hat(stddev, p, fraction - p + 0.5)

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        index, pending, result = state
        word, height = jax.random.bits(jax.random.fold_in(key, index), (2, *n.shape), WORDS[dtype])
        cell = (word >> (word_bits - CELL_BITS)).astype(jnp.int32)
        left = boundary(cell)
        width = boundary(cell + 1) - left
        # The remaining bits of the word, limited to the mantissa of a float, so that `within` is below 1.
        used_bits = min(word_bits - CELL_BITS, jnp.finfo(dtype).nmant)
        within = (word & (2**used_bits - 1)).astype(dtype) * 2.0**-used_bits
        offset = jnp.floor((left + jnp.floor(width * within)) * spacing)
        inside = (offset >= lowest) & (offset <= highest)
        offset = jnp.clip(offset, lowest, highest)
        # The probability of a candidate is proportional to 1 / width.
        log_height = jnp.log(_uniform(height, dtype) * (scale / width))
        accepted = pending & inside & (log_height <= log_ratio(offset))
        return index + 1, pending & ~accepted, jnp.where(accepted, offset, result)

    start = (jnp.uint32(0), is_needed, jnp.zeros_like(p))
    offset = lax.while_loop(lambda state: jnp.any(state[1]), step, start)[2]
    return mode + offset.astype(n.dtype)


def _density(n: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array, Callable[[jax.Array], jax.Array]]:
    """Returns the mode, the number (n + 1) * p - mode, and the log density relative to the mode.

    The last result is a function: offset -> log f(mode + offset) - log f(mode), with the probabilities f of counts.
    The mode may be too small by one if (n + 1) * p is an integer up to rounding, but the three results are consistent.
    """
    dtype = p.dtype
    whole, fraction = _product(n, p)
    fraction = fraction + p
    carry = jnp.floor(fraction)
    mode, fraction = whole + carry.astype(n.dtype), fraction - carry
    # Stirling's series is simplest around counts + 1/2. `successes` and `failures` sum to n + 1, and (n + 1) * p is
    # `successes` minus `excess`. So log(p / q) cancels against log(successes / failures), except for `tilt`.
    successes, failures = mode.astype(dtype) + 0.5, (n - mode).astype(dtype) + 0.5
    excess = 0.5 - fraction
    tilt = jnp.log1p(-excess / successes) - jnp.log1p(excess / failures)
    constant = _stirling(successes) + _stirling(failures)

    def log_ratio(offset: jax.Array) -> jax.Array:
        correction = constant - _stirling(successes + offset) - _stirling(failures - offset)
        return offset * tilt - _deviance(successes, offset) - _deviance(failures, -offset) + correction

    return mode, fraction, log_ratio


def _hat(
    stddev: jax.Array, p: jax.Array, centre: jax.Array
) -> tuple[Callable[[jax.Array], jax.Array], jax.Array, jax.Array]:
    """Returns the distribution of proposals, which is Hörmann's hat on a lattice.

    The results are a function from a cell to its first point, the spacing of the points, and a scale. `centre` is the
    mean plus 1/2, relative to the mode. All cells are equally likely, and all points in a cell are equally likely. In
    each cell the ratio f(mode + offset) / f(mode) is at most scale divided by the cell's width.
    """
    slope = 1.15 + 2.53 * stddev
    tail = -0.0873 + 0.0248 * slope + 0.01 * p
    # A power of two, at most 1, so that each count has an integer number of lattice points, with exact arithmetic.
    power_of_two = lax.reduce_precision(stddev, jnp.finfo(p.dtype).nexp, 0)
    spacing = jnp.minimum(power_of_two * 2.0**-LATTICE_BITS, 1)
    scale = SLACK * (2.83 + 5.1 / slope) * stddev * (2.0**-CELL_BITS / spacing)

    def boundary(cell: jax.Array) -> jax.Array:
        u = cell.astype(p.dtype) * 2.0**-CELL_BITS - 0.5
        # The outermost cells would be infinite; they end at 128 standard deviations.
        distance = jnp.maximum(0.5 - jnp.abs(u), 2.0 ** (-CELL_BITS - 2))
        return jnp.floor(((2 * tail / distance + slope) * u + centre) / spacing)

    return boundary, spacing, scale


def _product(n: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the floor and the fractional part of n * p for p <= 1/2, by partial products that are exact in floats."""
    info = jnp.finfo(p.dtype)
    high = lax.reduce_precision(p, info.nexp, info.nmant // 2)
    digit_bits = 11 if info.bits == 32 else 21
    whole, fraction = jnp.zeros_like(n), jnp.zeros_like(p)
    for shift in range(0, 8 * n.dtype.itemsize, digit_bits):
        digits = (n >> shift) & (2**digit_bits - 1)
        for part in (high, p - high):
            product = digits.astype(p.dtype) * part * 2.0**shift
            floor = jnp.floor(product)
            whole, fraction = whole + floor.astype(n.dtype), fraction + (product - floor)
    carry = jnp.floor(fraction)
    return whole + carry.astype(n.dtype), fraction - carry


def _deviance(base: jax.Array, change: jax.Array) -> jax.Array:
    """Returns (base + change) * log(1 + change / base) - change, without cancellation for small changes."""
    v = change / (2 * base + change)
    square = v * v
    series = jnp.zeros_like(v)
    for power in (13, 11, 9, 7, 5, 3):
        series = series * square + 1 / power
    by_series = change * v + 2 * (base + change) * v * square * series
    by_logarithm = (base + change) * jnp.log1p(change / base) - change
    return jnp.where(jnp.abs(v) < 0.25, by_series, by_logarithm)


def _stirling(x: jax.Array) -> jax.Array:
    """Approximates log Gamma(x + 1/2) - x log x + x - log(2 pi) / 2 at x = 1/2, 3/2, ..., with error 4e-8."""
    y = 1 / (x * x)
    return (1 + 0.40175305 * y) / (x * (1 + y * (0.4599369 + 0.01015067 * y))) * (-1 / 24)
