"""Trains a small classifier that estimates the log likelihood ratio of outputs under two inputs."""

from typing import NamedTuple

import jax
import numpy as np
from scipy.special import expit

STEPS = 300
BATCH = 1024  # per input and step
LEARNING_RATE = 0.02
DECAYS = 0.9, 0.999  # decay rates of the two moving averages in Adam
TINY = 1e-8  # added to Adam's divisor
HIDDEN = 16
LARGEST_QUADRATIC = 8  # up to this number of coordinates, all products of two are features
LARGEST_FEATURE = 1e6  # standardised outputs are clipped to this magnitude, so that squares are finite in float32


class Weights(NamedTuple):
    """A classifier: logit = features(z) . linear + bias + relu(z . inner + offset) . outer, z = (x - center) / scale.

    Attributes:
        center: [m] float, pooled mean of the finite values.
        scale: [m] float > 0, pooled standard deviation of the finite values; 1 if it is 0.
        linear: [num_features] float.
        bias: [] float.
        inner: [m, HIDDEN] float.
        offset: [HIDDEN] float.
        outer: [HIDDEN] float.
    """

    center: np.ndarray
    scale: np.ndarray
    linear: np.ndarray
    bias: np.ndarray
    inner: np.ndarray
    offset: np.ndarray
    outer: np.ndarray


def features(z: np.ndarray) -> np.ndarray:
    """Returns features of standardised outputs [n, m]: values, absolute values, and products of two.

    If m > `LARGEST_QUADRATIC`, the only products are squares.
    """
    products = np.square(z)
    if z.shape[1] <= LARGEST_QUADRATIC:
        rows, columns = np.triu_indices(z.shape[1])
        products = np.take(z, rows, axis=1) * np.take(z, columns, axis=1)
    return np.concatenate([z, np.abs(z), products], axis=1)


def logit(weights: Weights, outputs: np.ndarray) -> np.ndarray:
    """Returns the estimated log likelihood ratios ([n] float), first input over second, of outputs [n, m].

    NaN and infinity count as the mean. If an output may have NaN or infinity, its columns must include indicators.
    """
    z = _standardise(weights, outputs)
    hidden = np.maximum(z @ weights.inner + weights.offset, 0)
    return features(z) @ weights.linear + weights.bias + hidden @ weights.outer


def _standardise(weights: Weights, outputs: np.ndarray) -> np.ndarray:
    z = (outputs - weights.center) / weights.scale
    is_finite = np.isfinite(outputs)
    if not is_finite.all():
        z = np.where(is_finite, z, 0)
    return np.clip(z, -LARGEST_FEATURE, LARGEST_FEATURE, out=z)


def train(key: jax.Array, first: np.ndarray, second: np.ndarray, all_columns: int) -> Weights:
    """Trains a classifier of `first` against `second`, both [n, m], by Adam on the cross-entropy of random batches.

    The weights `inner` start as standard normal numbers divided by the square root of `all_columns`, the number of
    columns including those that do not vary.
    """
    pooled = np.concatenate([first, second])
    pooled = np.where(np.isfinite(pooled), pooled, np.nan)
    is_finite = np.any(np.isfinite(pooled), axis=0)
    pooled[:, ~is_finite] = 0
    center = np.nanmean(pooled, axis=0, dtype=np.float64)
    scale = np.sqrt(np.nanmean(np.square(pooled - center), axis=0))  # `np.nanstd` squares in float32
    dtype, size = first.dtype, first.shape[1]
    scale = np.maximum(np.where(scale > 0, scale, 1.0), np.finfo(dtype).tiny)
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    shapes = {
        "linear": (features(np.zeros((1, size), dtype)).shape[1],),
        "bias": (),
        "inner": (size, HIDDEN),
        "offset": (HIDDEN,),
        "outer": (HIDDEN,),
    }
    trained = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()), dtype)
    arrays = _split(trained, shapes)
    arrays["inner"][...] = generator.standard_normal((size, HIDDEN)) / np.sqrt(all_columns)
    arrays["offset"][...] = generator.standard_normal(HIDDEN)
    weights = Weights(center.astype(dtype), scale.astype(dtype), **arrays)
    slope, (mean, square) = np.zeros_like(trained), np.zeros((2, len(trained)), dtype)
    slopes = _split(slope, shapes)
    is_first = np.repeat(np.asarray([1, 0], dtype), BATCH)
    standardised = [_standardise(weights, rows) for rows in (first, second)]
    for step in range(STEPS):
        drawn = generator.integers(len(first), size=(2, BATCH))
        batch = np.concatenate([np.take(*side, axis=0) for side in zip(standardised, drawn, strict=True)])
        for name, array in _gradient(weights, batch, is_first).items():
            slopes[name][...] = array
        rate = LEARNING_RATE * (1 + np.cos(np.pi * step / STEPS)) / 2
        for average, value, decay in zip((mean, square), (slope, np.square(slope)), DECAYS, strict=True):
            average[...] = decay * average + (1 - decay) * value
        means = [average / (1 - decay ** (step + 1)) for average, decay in zip((mean, square), DECAYS, strict=True)]
        trained -= (rate * means[0] / (np.sqrt(means[1]) + TINY)).astype(dtype)  # updates all arrays of `weights`
    return weights


def _split(vector: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Returns arrays of these shapes that share the memory of a vector."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = np.split(vector, ends[:-1])
    return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}


def _gradient(weights: Weights, z: np.ndarray, is_first: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the gradient of the sum of both inputs' mean cross-entropies, by the name of each trained array.

    `z` are standardised outputs.
    """
    all_features, below = features(z), z @ weights.inner + weights.offset
    hidden = np.maximum(below, 0)
    logits = all_features @ weights.linear + weights.bias + hidden @ weights.outer
    slope = (expit(logits) - is_first) / BATCH
    inward = (below > 0) * (slope[:, None] * weights.outer)
    # Products of a vector and a matrix avoid OpenBLAS, which may split their long sums among its threads: results must
    # not depend on the number of threads.
    return {
        "linear": np.einsum("n,nf->f", slope, all_features),
        "bias": np.sum(slope),
        "inner": z.T @ inward,
        "offset": np.einsum("nh->h", inward),
        "outer": np.einsum("n,nh->h", slope, hidden),
    }
