"""Searches for neighbouring inputs that outputs distinguish well, by a compiled evolutionary algorithm."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.domains import Domain
from jaxdp.audit.quick_programs import jit_quickly
from jaxdp.audit.sampling import LARGEST_CHUNK, Outputs, Release, output_size, outputs_of
from jaxdp.core import Guarantee, default_float
from jaxdp.validation import check_count, check_key

# Maximum count of numbers in the outputs that are drawn at a time. A score keeps all outputs of a pair of inputs.
LARGEST_BATCH = 2**22
THRESHOLDS = 32  # approximate number of thresholds on each column
COLUMNS = 12  # maximum number of single columns; they have the most different means or spreads
CELLS = 1024  # number of groups of outputs; a hash of an output's bits is its group
SMALLEST_SPREAD = 1e-6  # added to standard deviations of columns; the largest deviation of each column is 1
SURE = 2.0  # number of standard errors by which frequencies are shifted, to make the bound smaller
STRANGERS = 4  # one of this many new pairs is random
FEWER = 0.1  # penalty on a pair's mean score, if it was scored once; it is divided by n after n scores
AS_LOW = -100.0  # stands for NaN on the scale of `_squeeze`, below all float32 numbers (float64 goes down to -710)


class SearchEffort(NamedTuple):
    """The size of a search.

    Attributes:
        pairs: pairs in each generation, >= 4.
        generations: number of generations, >= 1; in each generation after the first, half of the pairs are new.
        draws: outputs under each input for each score of a pair, >= 64; rounded up to a multiple of a power of two that
            is <= draws and depends on the size of an output. The outputs under both inputs are in memory together.
    """

    pairs: int
    generations: int
    draws: int


SHORT = SearchEffort(48, 6, 512)  # for learners: each output is a run
QUICK = SearchEffort(96, 8, 1024)  # for mechanisms
FULL = SearchEffort(96, 12, 2048)


class ScoredPair(NamedTuple):
    """A pair of neighbouring inputs that a search found.

    Attributes:
        first: an input.
        second: its neighbour.
        changed: the row in which they differ, as `Domain.pair` returns it.
        score: mean of estimates of the bound on epsilon, minus the penalty `FEWER` for few estimates. Not a bound: the
            pair was chosen as the best of many by these estimates.
    """

    first: Any
    second: Any
    changed: int
    score: float


def search(
    key: jax.Array,
    release: Release,
    params: Any,
    guarantee: Guarantee,
    domain: Domain,
    *,
    known: tuple[tuple[Any, Any], ...] = (),
    effort: SearchEffort = SHORT,
    keep: int = 2,
    with_place: bool = False,
    without: tuple[tuple[Any, Any], ...] = (),
) -> list[ScoredPair]:
    """Looks for neighbouring inputs under which the outputs differ most.

    The first generation consists of the known pairs and of random pairs. In each generation every pair is scored on
    fresh outputs. The half with the best mean scores stays. New pairs replace the other half: a new pair is random, or
    bred from two pairs that stay. These outputs select the pairs, so a bound for a returned pair must come from fresh
    outputs.

    Args:
        key: a typed PRNG key.
        release: (key, params, data) -> output.
        params: the mechanism's params.
        guarantee: the mechanism's claim; outputs are compared at its delta.
        domain: the pairs of inputs to search.
        known: pairs with which the search starts, in addition to random pairs. Pairs that do not fit the domain, and
            pairs beyond the first `effort.pairs // 2` that fit, are skipped.
        effort: size of the search.
        keep: maximum number of pairs to return, >= 1.
        with_place: whether the release takes (input, changed) as its data, instead of the input.
        without: pairs that must not be returned, such as pairs that were attacked already.

    Returns:
        At most `keep` different pairs, the best first. The two inputs of a pair differ. Two pairs that have the same
        inputs in different orders count as one.

    Raises:
        ValueError: if key is not a single typed key, or keep or a number of the effort is too small.
    """
    check_key(key)
    check_count("keep", keep)
    for name, least in (("pairs", 4), ("generations", 1), ("draws", 64)):
        check_count(name, getattr(effort, name), least)
    genomes = [genome for first, second in known if (genome := _genome(domain, first, second)) is not None]
    genomes = genomes[: effort.pairs // 2]
    start = jax.tree.map(lambda *leaves: jnp.stack(leaves), *genomes) if genomes else None
    program = _evolve(release, domain, effort, guarantee.delta, with_place)
    population, scores = program(key, params, start)
    order, scores = np.argsort(-np.asarray(scores), kind="stable"), np.asarray(scores)
    best_pairs: list[ScoredPair] = []
    for index in order:
        first, second, changed = domain.pair(jax.tree.map(lambda x, index=index: x[index], population))
        first, second = (jax.tree.map(np.asarray, data) for data in (first, second))
        pair = ScoredPair(first, second, int(changed), float(scores[index]))
        other_pairs = [*(other[:2] for other in best_pairs), *without]
        if not _same(first, second) and not any(_alike(pair[:2], other) for other in other_pairs):
            best_pairs.append(pair)
        if len(best_pairs) == keep:
            break
    return best_pairs


def separation(first: Outputs, second: Outputs, *, delta: float) -> jax.Array:
    """Estimates, from n outputs of each of two inputs, the epsilon ([] float >= 0) that an audit would show."""
    # One half of the outputs chooses columns and thresholds, the other half is counted. Columns are an output's
    # coordinates, their low bits, the count of NaN, a linear combination that separates the means, and the log ratio of
    # counts in the output's hash cell.
    both = jax.tree.map(lambda *sides: jnp.stack(sides), first, second)  # one program for both sides compiles sooner
    half = len(first.bucket) // 2
    shaping, counted = (
        jax.vmap(lambda side, part=part: _columns(side, part))(both) for part in (slice(0, half), slice(half, None))
    )
    cells = both.bucket % np.int32(CELLS)
    # Columns are centered and scaled, so that SMALLEST_SPREAD does not hide the differences of small outputs.
    center = jnp.mean(shaping, axis=(0, 1), keepdims=True)
    width = jnp.max(jnp.abs(shaping - center), axis=(0, 1), keepdims=True)
    shaping, counted = ((columns - center) / jnp.where(width > 0, width, 1) for columns in (shaping, counted))
    mean, spread = jnp.mean(shaping, axis=1), jnp.std(shaping, axis=1) + SMALLEST_SPREAD
    differences = jnp.abs(mean[0] - mean[1]) / (spread[0] + spread[1]) + jnp.abs(jnp.log(spread[0] / spread[1]))
    best = jax.lax.top_k(differences, min(COLUMNS, len(differences)))[1]
    weights = (mean[0] - mean[1]) / (jnp.square(spread[0]) + jnp.square(spread[1]))
    tables = jax.vmap(lambda cell: jnp.zeros(CELLS, default_float()).at[cell].add(1.0))(cells[:, :half])
    table = jnp.log((tables[0] + 1) / (tables[1] + 1))

    def scores(columns: jax.Array, cells: jax.Array) -> jax.Array:
        values = jnp.take(columns, best, axis=2)
        return jnp.concatenate([values, (columns @ weights)[:, :, None], table[cells][:, :, None]], axis=2)

    shaped, scored = scores(shaping, cells[:, :half]), scores(counted, cells[:, half:])
    step = max(1, half // (THRESHOLDS // 2))
    ranked = jnp.sort(shaped[:, : half // step * step], axis=1)[:, step // 2 :: step]
    thresholds = ranked.reshape(-1, ranked.shape[2])
    above = jnp.mean(scored[:, :, None] > thresholds[None, None], axis=1, dtype=scored.dtype)
    likely, unlikely = (jnp.concatenate([side, 1 - side]) for side in (above, above[::-1]))
    return jnp.maximum(jnp.max(_estimate_bound(likely, unlikely, scored.shape[1], delta)), 0.0)


def _estimate_bound(likely: jax.Array, unlikely: jax.Array, size: int, delta: float) -> jax.Array:
    """Estimates the lower bound on epsilon from an event's frequencies under two inputs, of `size` outputs each."""

    def deviation(share: jax.Array) -> jax.Array:
        # XLA may fuse the mean's division into 1 - share, which can then be rounded to slightly below 0.
        return SURE * jnp.sqrt(jnp.maximum(share * (1 - share), 0) / size)

    low = likely - deviation(likely) - SURE / size - delta
    high = unlikely + deviation(unlikely) + SURE**2 / size
    return jnp.where(low > 0, jnp.log(jnp.maximum(low, 1e-9)) - jnp.log(high), -jnp.inf)


def _columns(outputs: Outputs, part: slice) -> jax.Array:
    """Returns [n, columns]: numbers on a logarithmic scale, low bits, and the count of NaN."""
    numbers = outputs.numbers[part]
    missing = jnp.sum(jnp.isnan(numbers), axis=1, dtype=numbers.dtype)
    low = outputs.low[part] if outputs.low.shape[1] else numbers[:, :0]
    return jnp.concatenate([_squeeze(numbers), low, missing[:, None]], axis=1)


def _squeeze(numbers: jax.Array) -> jax.Array:
    largest = float(jnp.finfo(numbers.dtype).max)
    squeezed = jnp.sign(numbers) * jnp.log1p(jnp.minimum(jnp.abs(numbers), largest))
    return jnp.where(jnp.isnan(numbers), AS_LOW, squeezed)


@functools.lru_cache(maxsize=64)
def _evolve(release: Release, domain: Domain, effort: SearchEffort, delta: float, with_place: bool) -> Any:
    """Builds the search program: (key, params, first genomes) -> genomes and their penalised mean scores."""
    pairs, generations, draws = effort
    stay = pairs // 2

    def score(key: jax.Array, params: Any, genome: Any) -> jax.Array:
        first, second, changed = domain.pair(genome)
        inputs = [(x, changed) if with_place else x for x in (first, second)]
        size = max(1, output_size(release, params, inputs[0]))
        chunk = 2 ** (max(1, min(draws, LARGEST_CHUNK, LARGEST_BATCH // size)).bit_length() - 1)
        keys, chunks = jax.random.split(key), -(-draws // chunk)
        both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *inputs)

        def draw_chunk(number: jax.Array) -> Outputs:
            side, index = number // np.int32(chunks), number % np.int32(chunks)
            data = jax.tree.map(lambda leaf: leaf[side], both)
            return outputs_of(release, chunk, chunk, keys[side], index, params, data)

        # One loop over the chunks of both sides: with two, the release would be compiled twice.
        parts = jax.lax.map(draw_chunk, jnp.arange(2 * chunks, dtype=jnp.int32))
        sides = jax.tree.map(lambda leaf: leaf.reshape(2, chunks * chunk, *leaf.shape[2:]), parts)
        return separation(*(jax.tree.map(lambda leaf, side=side: leaf[side], sides) for side in (0, 1)), delta=delta)

    def program(key: jax.Array, params: Any, first_genomes: Any) -> tuple[Any, jax.Array]:
        key_start, key_run = jax.random.split(key)
        population = jax.vmap(domain.start)(jax.random.split(key_start, pairs))
        if first_genomes is not None:
            population = jax.tree.map(lambda x, new: x.at[: len(new)].set(new), population, first_genomes)

        def generation(carry: Any, key: jax.Array) -> Any:
            population, totals, looks = carry
            key_score, key_new, key_partner = jax.random.split(key, 3)
            new_scores = jax.lax.map(
                lambda key_and_genome: score(key_and_genome[0], params, key_and_genome[1]),
                (jax.random.split(key_score, pairs), population),
            )
            totals, looks = totals + new_scores, looks + 1
            order = jnp.argsort(-(totals / looks - FEWER / looks))
            population, totals, looks = jax.tree.map(lambda x: x[order], (population, totals, looks))
            best = jax.tree.map(lambda x: x[:stay], population)
            partners = jax.tree.map(lambda x: x[jax.random.permutation(key_partner, stay)], best)
            key_alter, key_start = jax.random.split(key_new)
            new = jax.vmap(domain.alter)(jax.random.split(key_alter, stay), best, partners)
            strangers = jax.vmap(domain.start)(jax.random.split(key_start, stay))
            is_strange = jnp.arange(stay) < stay // STRANGERS  # they replace children of the worst survivors
            new = jax.tree.map(lambda x, y: jnp.where(_like(is_strange[::-1], x), y, x), new, strangers)
            survivors = population, totals, looks
            population = jax.tree.map(lambda x, y: x.at[pairs - stay :].set(y), population, new)
            fresh = jnp.arange(pairs) >= pairs - stay
            totals, looks = jnp.where(fresh, 0.0, totals), jnp.where(fresh, 0, looks)
            return (population, totals, looks), survivors

        start = population, jnp.zeros(pairs, default_float()), jnp.zeros(pairs, default_float())
        _, survivors = jax.lax.scan(generation, start, jax.random.split(key_run, generations))
        population, totals, looks = jax.tree.map(lambda x: x[-1], survivors)
        return population, totals / looks - FEWER / looks

    return jit_quickly(program)


def _like(flags: jax.Array, x: jax.Array) -> jax.Array:
    return flags.reshape(-1, *[1] * (x.ndim - 1))


def _genome(domain: Domain, first: Any, second: Any) -> Any:
    try:
        return domain.genome(first, second)
    except (ValueError, TypeError):  # the pair is not in the domain, or has other shapes or another structure
        return None


def _alike(pair: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return _same(pair, other) or _same(pair, other[::-1])


def _same(first: Any, second: Any) -> bool:
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(a, b, equal_nan=np.issubdtype(np.asarray(a).dtype, np.inexact)) for a, b in leaves)
