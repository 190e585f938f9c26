"""Scores that add up over the columns of an output: hinges by logistic regression, and a histogram of each column."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

MOST_FEATURES = 256  # of the regression
MOST_CELLS = 2**22  # rows times features, in each input's half of the regression
FEWEST_KNOTS, MOST_KNOTS = 3, 24  # of each column
RIDGE = 4.0  # on standardised features: as much as so many rows say
STEPS = 12  # of Newton's method, fewer where it has converged
CONVERGED = 1e-4
LARGEST_STEP = 20.0  # in all coefficients together
FLOOR = 1e-6
RANKED = 4096  # rows by which columns are ranked where not all are kept
MOST_EDGES = 2048  # of the histogram, for all columns
FINEST = 32  # bins of a column that are not single values
FEWEST_REPEATS = 4  # times that a value comes up before it is a bin by itself
SIGNIFICANT = 3.0  # standard errors that a bin must be away from no difference


class Hinges(NamedTuple):
    """A sum of piecewise linear functions of some columns.

    Attributes:
        columns: [c] int32.
        low: [c] float, below which a function is constant; NaN is there, too.
        high: [c] float, above which it is.
        knots: [c, k] float; unused ones have no weight.
        slopes: [c, k] float, by how much the slope grows at each knot.
    """

    columns: np.ndarray
    low: np.ndarray
    high: np.ndarray
    knots: np.ndarray
    slopes: np.ndarray


class Bins(NamedTuple):
    """A sum of step functions of all columns.

    Attributes:
        edges: [m, e] float, ascending, infinity where unused.
        start: [] float, the sum of all first steps.
        jumps: [m, e] float, by how much a column's function jumps above each edge.
    """

    edges: np.ndarray
    start: np.ndarray
    jumps: np.ndarray


def hinge_logit(weights: Hinges, matrix: jax.Array) -> jax.Array:
    """The estimated log likelihood ratio of rows [n, m] -> [n]."""
    return jnp.sum(_hinges(weights, matrix) * weights.slopes[None], axis=(1, 2))


def binned_logit(weights: Bins, matrix: jax.Array) -> jax.Array:
    """The estimated log likelihood ratio of rows [n, m] -> [n], as if columns were independent; NaN is the lowest."""
    above = matrix[:, :, None] > weights.edges[None]
    return jnp.asarray(weights.start) + jnp.sum(jnp.where(above, weights.jumps[None], 0), axis=(1, 2))


def fit_hinges(first: np.ndarray, second: np.ndarray) -> Hinges:
    """Logistic regression of first [n, m] against second [n, m] on hinges at quantiles, by Newton's method.

    Args:
        first: [n, m] float, rows under the first input; NaN and infinity are taken for the lowest and the end.
        second: [n, m] float, under the second.

    Returns:
        The weights: of all columns if they are few, else of those whose histograms differ most.
    """
    size = first.shape[1]
    num_knots = int(np.clip(MOST_FEATURES // size, FEWEST_KNOTS, MOST_KNOTS))
    kept = min(size, MOST_FEATURES // num_knots)
    pooled = np.sort(np.concatenate([first, second]), axis=0)  # NaN last
    columns = np.arange(size, dtype=np.int32)
    if kept < size:
        ranked = _differences(first[:RANKED], second[:RANKED])
        columns = np.sort(np.argsort(-ranked, kind="stable")[:kept]).astype(np.int32)
    knots, low, high = (np.zeros((kept, num_knots), first.dtype), *np.zeros((2, kept), first.dtype))
    for place, column in enumerate(columns):
        own = _knots(pooled[:, column], num_knots + 1)
        low[place], high[place] = own[0], own[-1]
        knots[place] = np.concatenate([own[:-1], np.full(num_knots + 1 - len(own), own[-1])])
    blank = Hinges(columns, low, high, knots, np.zeros_like(knots))
    rows = max(1, min(len(first), MOST_CELLS // knots.size))
    features = [np.asarray(_features(blank, x[:rows])).reshape(rows, -1) for x in (first, second)]
    return blank._replace(slopes=_regression(*features).reshape(knots.shape).astype(first.dtype))


def fit_bins(first: np.ndarray, second: np.ndarray) -> Bins:
    """A histogram of each column, in which values that come up often are bins by themselves.

    Args:
        first: [n, m] float, rows under the first input.
        second: [n, m] float, under the second.

    Returns:
        The weights: log ratios of the counts, where they differ by more than chance.
    """
    size = first.shape[1]
    room = max(4, MOST_EDGES // size)
    pooled = np.sort(np.concatenate([first, second]), axis=0)
    edges = np.full((size, room), np.inf, first.dtype)
    jumps, start = np.zeros((size, room), np.float64), 0.0
    for column in range(size):
        own = _edges(pooled[:, column], room)
        counts = [_binned(x[:, column], own) for x in (first, second)]
        ratios = np.log((counts[0] + 1) / (counts[1] + 1))
        differ = np.abs(counts[0] - counts[1]) > SIGNIFICANT * np.sqrt(np.maximum(counts[0] + counts[1], 1))
        ratios = np.where(differ, ratios, 0.0)
        start += ratios[0]
        edges[column, : len(own)], jumps[column, : len(own)] = own, np.diff(ratios)
    used = max(1, int(np.isfinite(edges).sum(axis=1).max()))
    dtype = first.dtype
    return Bins(edges[:, :used], np.asarray(start, dtype), jumps[:, :used].astype(dtype))


def _hinges(weights: Hinges, matrix: jax.Array) -> jax.Array:
    """[n, c, k]: how far each column is above each knot."""
    chosen = jnp.take(matrix, weights.columns, axis=1)
    low, high = weights.low[None], weights.high[None]
    bounded = jnp.clip(jnp.where(jnp.isnan(chosen), low, chosen), low, high)
    return jax.nn.relu(bounded[:, :, None] - weights.knots[None])


_features = jax.jit(_hinges)


def _knots(ordered: np.ndarray, most: int) -> np.ndarray:
    """At most so many numbers among the ordered ones: all different ones if they are few, else quantiles."""
    finite = ordered[np.isfinite(ordered)]
    if len(finite) == 0:
        return np.zeros(1, ordered.dtype)
    different = _values(finite)[0]
    if len(different) > most:
        shares = expit(np.linspace(-1, 1, most) * np.log(len(finite)))  # denser towards both ends
        shares = (shares + np.linspace(0, 1, most)) / 2
        different = np.unique(finite[np.clip((shares * len(finite)).astype(int), 0, len(finite) - 1)])
    return different


def _regression(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[p] coefficients of features first [n, p] against second [n, p]."""
    both = np.concatenate([first, second])
    mean, scale = both.mean(axis=0, dtype=np.float64), both.std(axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, np.inf)
    design = ((both - mean) / scale).astype(np.float32)
    design = jnp.asarray(np.concatenate([design, np.ones((len(design), 1), np.float32)], axis=1))
    penalty = np.append(np.full(both.shape[1], RIDGE), 0.0)
    found = np.zeros(len(penalty))
    for _ in range(STEPS):
        slope, curve = (np.asarray(x, np.float64) for x in _derivatives(design, found.astype(np.float32)))
        step = np.linalg.solve(curve + np.diag(penalty + FLOOR), slope - penalty * found)
        found += step * min(1.0, LARGEST_STEP / max(float(np.abs(step).sum()), LARGEST_STEP))
        if np.abs(step).max() < CONVERGED:
            break
    return found[:-1] / scale


@jax.jit
def _derivatives(design: jax.Array, coefficients: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of the log likelihood of rows [2 n, p], of which the first half is of the first input: [p], and minus [p, p]."""
    chance = jax.nn.sigmoid(design @ coefficients)
    is_first = (jnp.arange(len(design)) < len(design) // 2).astype(design.dtype)
    return design.T @ (is_first - chance), (design.T * (chance * (1 - chance))[None]) @ design


def _differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[m] how much the two histograms of each column differ, in a chi-squared statistic."""
    pooled = np.sort(np.concatenate([first, second]), axis=0)
    found = np.zeros(first.shape[1])
    for column in range(first.shape[1]):
        edges = _knots(pooled[:, column], 16)
        here, there = (_binned(x[:, column], edges) for x in (first, second))
        found[column] = np.sum(np.square(here - there) / np.maximum(here + there, 1)) - len(edges)
    return found


def _edges(ordered: np.ndarray, room: int) -> np.ndarray:
    """At most so many edges of bins (a, b]: around values that come up often, and at quantiles."""
    finite = ordered[np.isfinite(ordered)]
    if len(finite) == 0:
        return np.zeros(0, ordered.dtype)
    values, counts = _values(finite)
    often = np.flatnonzero(counts >= FEWEST_REPEATS)
    often = often[np.argsort(-counts[often], kind="stable")[: room // 4]]
    below = np.where(often > 0, values[often - 1], -np.inf)
    places = np.linspace(0, len(finite), min(FINEST, room // 2) + 1).astype(int)[1:-1]
    quantiles = values if len(values) <= room // 2 else finite[places]
    edges = np.unique(np.concatenate([below[np.isfinite(below)], values[often], quantiles]))
    return edges.astype(ordered.dtype)


def _values(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of at least one ordered number, and how often each comes up."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def _binned(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """[e + 1] how many values lie in each bin; NaN is in the first."""
    values = np.where(np.isnan(values), -np.inf, values)
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1).astype(np.float64)
