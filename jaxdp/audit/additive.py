"""Fits scores of outputs: a score is a sum of one piecewise linear function, or one step function, per column."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

MOST_FEATURES = 256  # maximum number of features of the regression
MOST_ROWS = 2**15  # maximum number of rows of each input in the regression
MOST_CELLS = 2**21  # maximum number of rows times features, for each input
FEWEST_KNOTS, MOST_KNOTS = 3, 24  # minimum and maximum number of features of a column (its knots minus one)
RIDGE = 4.0  # ridge penalty on the coefficients of standardised features
STEPS = 12  # maximum number of steps of Newton's method
CONVERGED = 1e-4  # Newton's method ends after a step with smaller entries
LARGEST_STEP = 20.0  # maximum L1 norm of a step
FLOOR = 1e-6  # added to the diagonal of the Hessian, so that it is invertible
RANKED = 4096  # rows of each input used for ranking columns, if the regression does not use all columns
MOST_EDGES = 2048  # maximum number of edges of all columns together; but each column may have 4
FINEST = 32  # maximum number of quantile bins of a column
FEWEST_REPEATS = 4  # a value that occurs less often gets its own bin only if there are few distinct values
SIGNIFICANT = 3.0  # number of standard errors by which counts or means must differ
BOOSTED = 128  # maximum number of columns that boosting uses
BOOSTS, RATE = 40, 0.2  # number of boosting steps, and the learning rate
PRIOR, COARSE = 10.0, 16  # in boosting: penalty on a bin's value, and maximum number of edges of a column


class Hinges(NamedTuple):
    """A sum of piecewise linear functions of some columns.

    Attributes:
        columns: [c] int32, indices of the columns.
        knots: [c, k + 1] float, ascending, the last one perhaps repeated; a function is constant below its first knot,
            and above its last one.
        heights: [c, k + 1] float64, the values of the functions at their knots; the first value is also for NaN.
    """

    columns: np.ndarray
    knots: np.ndarray
    heights: np.ndarray


class Bins(NamedTuple):
    """A sum of step functions of all columns.

    Attributes:
        edges: [m, e] float, ascending; infinity where unused.
        start: [] float, sum of the functions below their first edges.
        jumps: [m, e] float, jump of a column's function above each edge.
    """

    edges: np.ndarray
    start: np.ndarray | np.floating
    jumps: np.ndarray


def hinge_logit(weights: Hinges, matrix: np.ndarray) -> np.ndarray:
    """Returns [n] estimated log likelihood ratios of rows [n, m], up to a constant."""
    total = np.zeros(len(matrix))
    for column, knots, heights in zip(*weights, strict=True):
        values = matrix[:, column]
        total += np.interp(np.where(np.isnan(values), knots[0], values), knots, heights)
    return total


def binned_logit(weights: Bins, matrix: np.ndarray) -> np.ndarray:
    """Returns [n] sums of the step functions of rows [n, m]; NaN counts as the lowest value.

    With `fit_bins` the sum is a log likelihood ratio, estimated as if columns were independent.
    """
    total = np.full(len(matrix), float(weights.start))
    for column in np.flatnonzero(np.any(weights.jumps != 0, axis=1)):
        heights = np.append(0.0, np.cumsum(weights.jumps[column], dtype=np.float64))
        total += heights[_bins(matrix[:, column], weights.edges[column])]
    return total


def fit_hinges(first: np.ndarray, second: np.ndarray) -> Hinges:
    """Fits a logistic regression on hinge functions of columns; it separates `first` from `second`, both [n, m].

    Knots are at quantiles, or at all finite values if they are few. NaN and -infinity count as the lowest knot, and
    infinity as the highest knot. If there are too many columns, the regression uses the columns with the most different
    histograms; if there are too many rows, it uses the first ones.
    """
    size = first.shape[1]
    num_knots = int(np.clip(MOST_FEATURES // size, FEWEST_KNOTS, MOST_KNOTS))
    num_columns = min(size, MOST_FEATURES // num_knots)
    columns = np.arange(size, dtype=np.int32)
    if num_columns < size:
        ranked = _differences(first[:RANKED], second[:RANKED])
        columns = np.sort(np.argsort(-ranked, kind="stable")[:num_columns]).astype(np.int32)
    rows = max(1, min(len(first), MOST_ROWS, MOST_CELLS // (num_columns * num_knots)))
    first, second = first[:rows], second[:rows]
    pooled = np.sort(np.concatenate([first[:, columns], second[:, columns]]), axis=0)  # NaN last
    knots = np.zeros((num_columns, num_knots + 1), first.dtype)
    for row in range(num_columns):
        column_knots = _knots(pooled[:, row], num_knots + 1)
        knots[row] = np.concatenate([column_knots, np.full(num_knots + 1 - len(column_knots), column_knots[-1])])
    features = [_hinges(knots, x[:, columns]).reshape(rows, -1) for x in (first, second)]
    slopes = _regression(*features).reshape(num_columns, num_knots).astype(first.dtype)  # increases at each knot
    distances = np.maximum(knots[:, :, None] - knots[:, None, :-1], 0)
    heights = np.einsum("cij,cj->ci", distances.astype(np.float64), slopes.astype(np.float64))
    return Hinges(columns, knots, heights)


def fit_bins(first: np.ndarray, second: np.ndarray) -> Bins:
    """Fits a step function to each column of [n, m] rows: log ratios of counts, or 0 if counts may differ by chance.

    The most frequent values get their own bins.
    """
    size = first.shape[1]
    room = max(4, MOST_EDGES // size)
    edges = np.full((size, room), np.inf, first.dtype)
    jumps, start = np.zeros((size, room), np.float64), 0.0
    for column in range(size):
        ordered = [np.sort(rows[:, column]) for rows in (first, second)]  # NaN last
        column_edges = _edges(np.sort(np.concatenate(ordered)), room)
        counts = [_ordered_bin_counts(values, column_edges) for values in ordered]
        ratios = np.log((counts[0] + 1) / (counts[1] + 1))
        differ = np.abs(counts[0] - counts[1]) > SIGNIFICANT * np.sqrt(np.maximum(counts[0] + counts[1], 1))
        ratios = np.where(differ, ratios, 0.0)
        start += ratios[0]
        edges[column, : len(column_edges)], jumps[column, : len(column_edges)] = column_edges, np.diff(ratios)
    return Bins(edges, np.asarray(start), jumps)


def boost_bins(first: np.ndarray, second: np.ndarray) -> Bins:
    """Fits a sum of step functions to rows [n, m] by boosting: each step improves the function of one column.

    Unlike `fit_bins`, boosting does not count evidence twice if columns depend on each other. If there are many
    columns, it uses only the `BOOSTED` columns with the most different histograms.
    """
    pooled, size = np.concatenate([first, second]), first.shape[1]
    is_first = np.arange(len(pooled)) < len(first)
    used = np.arange(size)
    if size > BOOSTED:
        used = np.argsort(-_differences(first, second), kind="stable")[:BOOSTED]
    edges, bins = np.full((size, COARSE), np.inf), np.zeros((len(pooled), len(used)), int)
    for index, column in enumerate(used):
        column_edges = _edges(np.sort(pooled[:, column]), COARSE)
        edges[column, : len(column_edges)] = column_edges
        bins[:, index] = _bins(pooled[:, column], column_edges)
    functions, logits = np.zeros((size, COARSE + 1)), np.zeros(len(pooled))
    cells = (bins + np.arange(len(used)) * (COARSE + 1)).ravel()
    for _ in range(BOOSTS):
        chance = expit(logits)
        slopes, curves = (
            np.bincount(cells, np.repeat(weights, len(used)), minlength=len(used) * (COARSE + 1)).reshape(len(used), -1)
            for weights in (is_first - chance, chance * (1 - chance))
        )
        steps = slopes / (curves + PRIOR)
        best = np.argmax(np.sum(slopes * steps, axis=1))
        functions[used[best]] += RATE * steps[best]
        logits += RATE * steps[best, bins[:, best]]
    return Bins(edges, functions[:, 0].sum(), np.diff(functions, axis=1))


def _hinges(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns [n, c, k]: how far values [n, c], clipped to the range of knots [c, k + 1], exceed the first k knots."""
    bounded = np.clip(np.where(np.isnan(values), knots[:, 0], values), knots[:, 0], knots[:, -1])
    return np.maximum(bounded[:, :, None] - knots[:, :-1], 0)


def _knots(ordered: np.ndarray, most: int) -> np.ndarray:
    """Returns at most `most` of the ordered finite numbers: all distinct ones if few, else quantiles; 0 if none."""
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
    """Returns [p] coefficients of a logistic regression that separates two [n, p] matrices, without the intercept."""
    both = np.concatenate([first, second])
    both -= both.mean(axis=0, dtype=np.float64).astype(both.dtype)
    scale = np.sqrt(np.square(both, dtype=np.float64).mean(axis=0))  # in float32, squares could overflow
    scale = np.where(scale > 0, scale, np.inf)
    design = np.ones((len(both), both.shape[1] + 1), np.float32)
    np.divide(both, scale.astype(both.dtype), out=design[:, :-1], casting="same_kind")
    penalty = np.append(np.full(both.shape[1], RIDGE), 0.0)
    coefficients = np.zeros(len(penalty))
    for _ in range(STEPS):
        slope, curve = _derivatives(design, coefficients.astype(np.float32))
        step = np.linalg.solve(curve + np.diag(penalty + FLOOR), slope - penalty * coefficients)
        coefficients += step * min(1.0, LARGEST_STEP / max(float(np.abs(step).sum()), LARGEST_STEP))
        if np.abs(step).max() < CONVERGED:
            break
    return coefficients[:-1] / scale


def _derivatives(design: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns gradient [p] and negative Hessian [p, p] of the log likelihood of rows [2 n, p], first input first."""
    chance = expit(design @ coefficients)
    is_first = (np.arange(len(design)) < len(design) // 2).astype(design.dtype)
    # Not computed by OpenBLAS, which would split this sum among its threads: results must not depend on their number.
    slope = np.einsum("np,n->p", design, is_first - chance)
    weighted = design * np.sqrt(chance * (1 - chance))[:, None]
    curve = weighted.T @ weighted  # BLAS computes half of a symmetric product
    return slope.astype(np.float64), curve.astype(np.float64)


def _differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns [m] chi-squared statistics of the difference between a column's histograms, minus degrees of freedom."""
    pooled = np.sort(np.concatenate([first, second]), axis=0)
    statistics = np.zeros(first.shape[1])
    for column in range(first.shape[1]):
        edges = _knots(pooled[:, column], 16)
        first_counts, second_counts = (_bin_counts(x[:, column], edges) for x in (first, second))
        statistics[column] = np.sum(
            np.square(first_counts - second_counts) / np.maximum(first_counts + second_counts, 1)
        ) - len(edges)
    return statistics


def _edges(ordered: np.ndarray, room: int) -> np.ndarray:
    """Returns at most `room` edges of bins (a, b]: on both sides of frequent values, and at quantiles."""
    finite = ordered[np.isfinite(ordered)]
    if len(finite) == 0:
        return np.zeros(0, ordered.dtype)
    values, counts = _values(finite)
    often = np.flatnonzero(counts >= FEWEST_REPEATS)
    often = often[np.argsort(-counts[often], kind="stable")[: room // 4]]
    below = np.where(often > 0, values[often - 1], -np.inf)
    ranks = np.linspace(0, len(finite), min(FINEST, room // 2) + 1).astype(int)[1:-1]
    quantiles = values if len(values) <= room // 2 else finite[ranks]
    edges = np.unique(np.concatenate([below[np.isfinite(below)], values[often], quantiles]))
    return edges.astype(ordered.dtype)


def _values(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct values of ordered numbers (at least one), and the count of each."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def _bin_counts(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns [e + 1] counts of the values in each bin; NaN counts in the first bin."""
    return np.bincount(_bins(values, edges), minlength=len(edges) + 1).astype(np.float64)


def _ordered_bin_counts(ordered: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the same counts as `_bin_counts`, of ordered values."""
    ends = np.searchsorted(ordered, edges, side="right")  # number of values up to each edge
    missing = np.count_nonzero(np.isnan(ordered))
    counts = np.diff(np.concatenate([[0], ends, [len(ordered) - missing]])).astype(np.float64)
    counts[0] += missing
    return counts


def _bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the index of each value's bin, [n] integers."""
    return np.searchsorted(edges, np.where(np.isnan(values), -np.inf, values), side="left")
