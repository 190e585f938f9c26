"""Draws millions of outputs of a mechanism, in chunks of a fixed size to save memory.

Outputs are drawn by compiled programs. Scores are computed by NumPy: a program for each score and shape would take
longer to compile than the scores take to compute.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.quick_programs import jit_quickly, sums_in_inner_loops
from jaxdp.core import default_float
from jaxdp.random import fast_key

Release = Callable[[jax.Array, Any, Any], Any]

CHUNK_ELEMENTS = 2**18  # numbers in the outputs of a chunk; more do not fit the cache, fewer do not fill vector units
LARGEST_CHUNK = 2**12  # outputs of a chunk; larger chunks are no faster
FEWEST_LANES = 2**9  # outputs of a call; with 256 or fewer, XLA on CPU computes other last bits for some learners
BUCKETS = 2**20
LOW_BITS = 0xFFFF
_HASH = 0x9E3779B1  # odd, near 2^32 / golden ratio


class Outputs(NamedTuple):
    """n outputs, each flattened to m numbers.

    Attributes:
        numbers: [n, m] float of JAX's default type; a complex number becomes two.
        low: [n, m] float, the lowest 16 bits of an integer that is so large that `numbers` may round it, otherwise 0;
            [n, 0] if the output has no integers of 32 bits or more.
        bucket: [n] int32 in [0, BUCKETS), a hash of all bits. Collisions can weaken an attack, but every event remains
            valid.
    """

    numbers: Any
    low: Any
    bucket: Any


class Score(NamedTuple):
    """A number for each output; events are "score above a threshold" and "score not above a threshold".

    Attributes:
        function: (weights, Outputs) -> [n] numbers; all arrays are NumPy arrays.
        weights: pytree of arrays.
        name: name of the number in descriptions of events.
    """

    function: Callable[[Any, Outputs], np.ndarray]
    weights: Any
    name: str


def output_size(release: Release, params: Any, data: Any) -> int:
    """Returns how many numbers one output has; raises ValueError if it contains anything else, such as a key."""
    leaves = jax.tree.leaves(jax.eval_shape(jax.jit(release), jax.random.key(0), params, data))
    for leaf in leaves:
        if not (leaf.dtype == np.bool_ or jnp.issubdtype(leaf.dtype, np.number)):
            raise ValueError(f"release must return numbers, got dtype {leaf.dtype}")
    return sum(leaf.size * (2 if jnp.issubdtype(leaf.dtype, np.complexfloating) else 1) for leaf in leaves)


def evaluate(score: Score, outputs: Outputs) -> np.ndarray:
    """Returns the score of each output, [n] finite numbers.

    NaN and -inf become the most negative finite float, and inf becomes the largest.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(score.function(score.weights, outputs)).astype(default_float())
    return np.nan_to_num(values, copy=False, nan=float(np.finfo(values.dtype).min))


def chunk_size(size: int) -> int:
    """Returns the number of outputs in a chunk, a power of two, for outputs of `size` numbers."""
    return 2 ** (max(1, min(LARGEST_CHUNK, CHUNK_ELEMENTS // size)).bit_length() - 1)


def lanes_of_call(chunk: int, trials: int) -> int:
    """Returns the number of outputs that a call of the program draws, a divisor of the power of two `chunk`.

    `trials` should be the smallest number of outputs that an audit draws at a time. Then calls draw few unused outputs.
    """
    return min(chunk, max(FEWEST_LANES, 1 << (trials - 1).bit_length()))


def draw(
    key: jax.Array, release: Release, params: Any, data: Any, *, trials: int, chunk: int, lanes: int | None = None
) -> Outputs:
    """Draws independent outputs of a release as NumPy arrays.

    The keys of each `chunk` outputs are split from one key; `chunk` is a power of two. Each call of the program draws
    `lanes` outputs; `lanes` divides `chunk`, and None means `chunk`. The outputs do not depend on `lanes`, except that
    last bits may differ if `lanes` is below FEWEST_LANES.
    """
    parts = list(_parts(key, release, params, data, trials=trials, chunk=chunk, lanes=lanes))
    return Outputs(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def histogram(
    key: jax.Array,
    release: Release,
    params: Any,
    data: Any,
    scores: Sequence[Score],
    thresholds: np.ndarray,
    *,
    trials: int,
    chunk: int,
    lanes: int | None = None,
) -> np.ndarray:
    """Counts fresh outputs with scores above each threshold; the outputs themselves are not stored.

    Args:
        key: key of all draws. Outputs of `draw` with the same key are different.
        release: (key, params, data) -> output.
        params: params of the release.
        data: the input.
        scores: S scores.
        thresholds: [S, T] float, each row ascending.
        trials: number of outputs.
        chunk: number of outputs with keys that are split from one key.
        lanes: number of outputs in each call of the program, as in `draw`.

    Returns:
        [S, T] int64, the counts.
    """
    counts = np.zeros(thresholds.shape, np.int64)
    separate_key = jax.random.fold_in(key, 0)
    for outputs in _parts(separate_key, release, params, data, trials=trials, chunk=chunk, lanes=lanes):
        for row, score, score_thresholds in zip(counts, scores, thresholds, strict=True):
            values = np.sort(evaluate(score, outputs))
            row += len(values) - np.searchsorted(values, score_thresholds.astype(values.dtype), side="right")
    return counts


def _parts(
    key: jax.Array, release: Release, params: Any, data: Any, *, trials: int, chunk: int, lanes: int | None = None
) -> Iterator[Outputs]:
    """Yields outputs, `chunk` at a time (the last time fewer), until all trials are drawn."""
    lanes = lanes or chunk
    draw_lanes = _draw_without_ynn if sums_in_inner_loops(release, key, params, data) else _draw
    drawn: list[Outputs] = []
    for start in range(0, trials, chunk):
        calls = range(start // lanes, -(-min(start + chunk, trials) // lanes))
        # The next chunk is computed while the caller uses this one.
        next_drawn = [draw_lanes(release, chunk, lanes, key, np.int32(call), params, data) for call in calls]
        if drawn:
            yield _join(drawn)
        drawn = next_drawn
    if drawn:
        yield jax.tree.map(lambda part: part[: (trials - 1) % chunk + 1], _join(drawn))


def _join(outputs: list[Outputs]) -> Outputs:
    return Outputs(*(np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*outputs, strict=True)))


def numbers_of(output: Any) -> np.ndarray:
    """Returns the numbers of one output ([m] float) in the order of `Outputs.numbers`."""
    leaves: list[np.ndarray] = [np.asarray(leaf) for leaf in jax.tree.leaves(output)]
    parts = [part for leaf in leaves for part in ((np.real(leaf), np.imag(leaf)) if np.iscomplexobj(leaf) else (leaf,))]
    return np.concatenate([np.ravel(part).astype(default_float()) for part in parts])


def outputs_of(release: Release, chunk: int, lanes: int, key: jax.Array, call: Any, params: Any, data: Any) -> Outputs:
    """Draws the `lanes` outputs of the call with this index, inside a traced program; `lanes` divides `chunk`."""
    calls = chunk // lanes  # of a chunk
    keys = jax.random.split(jax.random.fold_in(fast_key(key), call // calls), chunk)
    if calls > 1:
        keys = jax.lax.dynamic_slice_in_dim(keys, call % calls * lanes, lanes)
    released = jax.vmap(jax.jit(release), (0, None, None))(keys, params, data)  # jit: JAX then traces `release` once
    leaves = [x.reshape(lanes, -1) for x in jax.tree.leaves(released)]
    leaves = [part for x in leaves for part in ((x.real, x.imag) if jnp.iscomplexobj(x) else (x,))]
    dtype = default_float()
    numbers = [x.astype(dtype) for x in leaves]
    low = [_low(x, number) for x, number in zip(leaves, numbers, strict=True)] if any(map(_is_wide, leaves)) else []
    words = jnp.concatenate([_words(x) for x in leaves], axis=1)
    powers = np.multiply.accumulate(np.full(words.shape[1], _HASH, np.uint32), dtype=np.uint32)
    mixed = jnp.sum(words * powers[None], axis=1, dtype=jnp.uint32)
    return Outputs(
        numbers=jnp.concatenate(numbers, axis=1),
        low=jnp.concatenate([jnp.zeros((lanes, 0), dtype), *low], axis=1),
        bucket=(mixed // np.uint32(2**32 // BUCKETS)).astype(jnp.int32),
    )


def _is_wide(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.integer) and x.dtype.itemsize >= 4


def _low(x: jax.Array, number: jax.Array) -> jax.Array:
    if not _is_wide(x):
        return jnp.zeros_like(number)
    rounded = jnp.abs(number) >= 2.0 ** (jnp.finfo(number.dtype).nmant + 1)
    return jnp.where(rounded, (x & np.asarray(LOW_BITS, x.dtype)).astype(number.dtype), 0)


def _words(x: jax.Array) -> jax.Array:
    """Returns all bits of [n, m] numbers, as [n, words] uint32."""
    if x.dtype.itemsize < 4:
        x = x.astype(jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else jnp.int32)
    return jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(len(x), -1)


_draw = jit_quickly(outputs_of, runs_long=True, static_argnums=(0, 1, 2))
_draw_without_ynn = jit_quickly(outputs_of, runs_long=True, without_ynn=True, static_argnums=(0, 1, 2))
