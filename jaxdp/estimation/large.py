"""Moments, norms and exact sums of features that are too large to copy; the host computes them in blocks of rows."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh, eigvalsh

from jaxdp.core import default_float
from jaxdp.estimation.exact_sums import Grid
from jaxdp.estimation.persons import person_lengths
from jaxdp.estimation.public_weights import CANDIDATES
from jaxdp.memory import check_room, free_host_bytes
from jaxdp.validation import check_count

LARGE_DIM = 512  # up to this number of features, each Newton step forms the Hessian
LARGE_SIZE = 2**24  # up to this number of entries, features are copied
BLOCK_SIZE = 2**22  # number of entries in a block of rows
PASSES = 60  # assumed number of passes over the features in a fit; most fits take 15 to 40


class FitCost(NamedTuple):
    """The predicted cost of a fit in blocks.

    Attributes:
        processor_seconds: predicted processor time of one core; the true time is longer if other programs use the
            machine.
        peak_bytes: predicted peak of resident memory, including the pages of features that are mapped from a file.
    """

    processor_seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        return f"about {max(1, self.processor_seconds):,.0f} s of one core and {self.peak_bytes / 2**30:.1f} GiB"


def predict_fit_cost(
    num_samples: int, dim: int, *, bytes_per_entry: int = 4, whitened: bool = False, weighted: bool = False
) -> FitCost:
    """Predicts time and memory of `estimate` on large features, from sizes and a short measurement of this machine.

    Args:
        num_samples: number of samples, >= 1.
        dim: number of features, >= 1.
        bytes_per_entry: bytes of an entry of the features that are passed: 2 for float16, 4 for float32.
        whitened: whether the noise is whitened (geometry="whitened").
        weighted: whether weights are "cut".

    Returns:
        The prediction. The true time and memory are within a factor of about two of the predicted ones.

    Raises:
        ValueError: if a size is not an integer >= 1.

    Examples:
        >>> predict_fit_cost(100_000, 4096, bytes_per_entry=2, whitened=True).peak_bytes < 6e9
        True
    """
    check_count("num_samples", num_samples)
    check_count("dim", dim)
    check_count("bytes_per_entry", bytes_per_entry)
    square = np.ones((512, 512), np.float32)
    durations = []
    for _ in range(9):  # the first product starts threads, and other programs slow some products down
        start = time.process_time()
        np.matmul(square, square)
        durations.append(time.process_time() - start)
    per_product = max(min(durations), 1e-4) / 512**3  # seconds of one multiplication in 32 bits
    entries = num_samples * dim
    decompositions = 10.0 * (whitened or weighted) + 3.0 * whitened
    rows = entries * dim * (1.2 + (whitened or weighted))
    seconds = per_product * (rows + decompositions * 10 * dim**3) + entries * (2e-9 * PASSES + 1.5e-8)
    new_bytes = _new_bytes(num_samples, dim, whitened=whitened, weighted=weighted)
    return FitCost(seconds, bytes_per_entry * entries + new_bytes)


def _new_bytes(num_samples: int, dim: int, *, whitened: bool, weighted: bool) -> int:
    """Predicts the peak memory of a fit in blocks, in bytes, excluding the features."""
    copies = whitened * num_samples * dim * default_float().itemsize
    return int(copies + (6 if whitened or weighted else 4) * 8 * dim**2 + 80 * num_samples + 6e8)


def is_large(features: np.ndarray) -> bool:
    """Returns whether features are [num_samples, dim] with more than 512 columns or more than 2^24 entries."""
    return features.ndim == 2 and (features.shape[1] > LARGE_DIM or features.size > LARGE_SIZE)


def check_memory(features: np.ndarray, *, whitened: bool, weighted: bool) -> None:
    """Raises a MemoryError if the copies of a fit in blocks need more than the free memory."""
    num_bytes = _new_bytes(*features.shape, whitened=whitened, weighted=weighted)
    advice = "use fewer features" + (
        ", fewer samples, or geometry='isotropic', which makes no copies" if whitened else ""
    )
    check_room("the fit", num_bytes, free_host_bytes(), advice)


def blocks(features: np.ndarray, block_size: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields blocks of rows: a slice of samples, and these samples' features in JAX's default float type."""
    step = max(1, (block_size or BLOCK_SIZE) // features.shape[1])
    for start in range(0, len(features), step):
        rows = slice(start, min(start + step, len(features)))
        yield rows, np.asarray(features[rows], default_float())


class Moments(NamedTuple):
    """The second moment and the largest entries of features, from one pass over them.

    Attributes:
        second: [dim, dim] float64, the mean of x x^T.
        largest: [dim] float64, the largest absolute entry of each column.
    """

    second: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> "Moments":
        """Computes the moments of features, [num_samples, dim] float."""
        dim = features.shape[1]
        second, largest = np.zeros((dim, dim)), np.zeros(dim)
        for _, rows in blocks(features):
            wide = rows.astype(np.float64)
            second += wide.T @ wide
            np.maximum(largest, np.abs(rows).max(axis=0), out=largest)
        second /= len(features)
        return cls(second, largest)


class White(NamedTuple):
    """Whitened features (their second moment is the identity on its range), and the spectrum of the original features.

    Attributes:
        features: [num_samples, dim] float, whitened.
        back: [dim, dim] float64. If s is a statistic of the whitened features, s @ back is the statistic of the
            original features.
        spectrum: [dim] float64 >= 0, eigenvalues of the original features' second moment.
        largest: [dim] float64, the largest absolute entry of each column of the whitened features.
    """

    features: np.ndarray
    back: np.ndarray
    spectrum: np.ndarray
    largest: np.ndarray


def whiten_blocks(features: np.ndarray, moments: Moments) -> White:
    """Transforms features ([num_samples, dim] float) so that their second moment is the identity on its range.

    Works in blocks of rows. `moments` are the moments of the features.
    """
    dtype = np.dtype(default_float())
    sizes = np.sqrt(np.diagonal(moments.second))
    sizes = np.where(sizes > 0, sizes, 1)
    values, vectors = eigh(moments.second / sizes / sizes[:, None], overwrite_a=True, check_finite=False, driver="evd")
    rounding = max(8 * np.finfo(np.float64).eps, 16 * np.finfo(dtype).eps ** 2)
    spanned = values > values[-1] * len(values) * rounding
    roots = np.sqrt(np.where(spanned, values, 1))
    forward = (np.where(spanned, vectors / roots, 0) / sizes[:, None]).astype(dtype)
    back = np.where(spanned, vectors * roots, 0).T * sizes
    del vectors
    white, largest = np.empty(features.shape, dtype), np.zeros(len(sizes))
    for samples, rows in blocks(features):
        np.matmul(rows, forward, out=white[samples])
        np.maximum(largest, np.abs(white[samples]).max(axis=0), out=largest)
    return White(white, back, np.maximum(eigvalsh(moments.second, check_finite=False), 0), largest)


def block_lengths(features: np.ndarray, persons: Any) -> np.ndarray:
    """Returns a bound ([num_samples] float64) on the statistic's L2 sensitivity to each sample's privacy unit.

    If the unit is one label, the bound is the norm of the sample's features, rounded up.

    Args:
        features: [num_samples, dim] float.
        persons: [num_samples] integers, the person of each sample; None if the unit is one label.
    """
    if persons is not None:
        return person_lengths(features, np.asarray(persons), default_float())
    lengths = np.empty(len(features))
    for samples, rows in blocks(features):
        wide = rows.astype(np.float64)
        unit = np.maximum(np.abs(wide).max(axis=1), np.finfo(np.float64).tiny)
        lengths[samples] = np.linalg.norm(wide / unit[:, None], axis=1) * unit
    return lengths * (1 + features.shape[1] * 2.0**-52)  # norms may be rounded down


def block_statistic(
    features: np.ndarray, factors: np.ndarray, largest: np.ndarray, changed: int = 1, *, block_size: int | None = None
) -> tuple[np.ndarray, float]:
    """Returns sum_i factors_i x_i ([dim] float64) and a bound on how much rounding adds to the sum's L2 sensitivity.

    Terms are summed as integers, so the sum is the same for any block size, bit for bit. `largest`, [dim], bounds the
    absolute values of terms. `changed` is the maximum number of terms that change together. `block_size` is the maximum
    number of entries of a block; None means `BLOCK_SIZE`.
    """
    factors, largest = np.asarray(factors, np.float64), np.asarray(largest, np.float64)
    with jax.enable_x64(True):
        grid = Grid.of(jnp.asarray(largest), len(features), jnp.asarray(changed) if changed > 1 else 1)
        total = np.zeros(features.shape[1], np.int64)
        for samples, rows in blocks(features, block_size):
            total += np.asarray(_add_block(grid, grid.bits, rows, factors[samples]))
        return np.asarray(grid.value(jnp.asarray(total))), float(grid.error)


@partial(jax.jit, static_argnames="bits")
def _add_block(grid: Grid, bits: int, rows: jax.Array, factors: jax.Array) -> jax.Array:
    return grid._replace(bits=bits).add(rows.astype(jnp.float64) * factors[:, None])


def block_predicted_errors(
    features: np.ndarray, lengths: np.ndarray, noise_variance: float, vectors: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Predicts the squared error of theta for candidate cuts, as if weights kept the second moment's eigenvectors.

    `predicted_errors` has the formula, and allows the eigenvectors of the weighted second moment to depend on the cut.

    Args:
        features: [num_samples, dim] float.
        lengths: [num_samples] float64 >= 0.
        noise_variance: variance of the noise for a cut of 1; it grows as the square of the cut.
        vectors: [dim, dim] float64, eigenvectors of the second moment; None means the axes.

    Returns:
        The candidate cuts, [at most 65] float64, and the squared l2 error of each cut; infinite for a cut of 0.
    """
    count, dim = features.shape
    size = -(-count // CANDIDATES)
    order = np.argsort(lengths, kind="stable")
    group = np.empty(count, int)
    group[order] = np.arange(count) // size
    num_groups = int(group.max()) + 1
    shrink = np.divide(1, lengths, out=np.zeros(count), where=lengths > 0)
    sums = np.zeros((3, num_groups, dim))
    rotation = None if vectors is None else vectors.astype(default_float())
    for samples, rows in blocks(features):
        squares = ((rows if rotation is None else rows @ rotation) / 2).astype(np.float64) ** 2
        member = (group[samples] == np.arange(num_groups)[:, None]).astype(np.float64)
        for power in range(3):
            sums[power] += (member * shrink[samples] ** power) @ squares
    none = np.zeros((1, dim))
    below = np.concatenate([none, np.cumsum(sums[0], axis=0)])
    once, twice = (np.concatenate([np.cumsum(part[::-1], axis=0)[::-1], none]) for part in sums[1:])
    lengths = lengths[order]
    cuts = np.concatenate([lengths[:1], lengths[size - 1 :: size], lengths[-1:]])[: num_groups + 1]
    factor = cuts[:, None]
    hessian, labels = below + factor * once, below + factor**2 * twice
    directed = sums[2].sum(axis=0)
    spanned = directed > dim * np.finfo(default_float()).eps * directed.sum()
    errors = ((labels + noise_variance * factor**2) / np.where(spanned, hessian, np.inf) ** 2).sum(axis=1)
    return cuts, np.where((cuts > 0) & (errors > 0) & np.isfinite(errors), errors, np.inf)


def block_cut(features, lengths: np.ndarray, requested: float, noise_variance: float, moments: Moments | None) -> float:
    """Returns the requested cut (0 requests the cut with the least predicted error), but at most the largest length.

    `noise_variance` is the variance of the noise for a cut of 1. `moments` are None if the features are whitened.
    """
    if requested > 0:
        return min(requested, lengths.max())
    vectors = None if moments is None else eigh(moments.second, check_finite=False, driver="evd")[1]
    cuts, errors = block_predicted_errors(features, lengths, noise_variance, vectors)
    return float(cuts[np.argmin(errors)])
