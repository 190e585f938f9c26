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
LARGEST_FEATURE = 1e6  # features are clipped to this magnitude, so that their squares are finite in float32


class Weights(NamedTuple):
    """A classifier: logit = features(z) . linear + bias + relu(z . inner + offset) . outer, z = (x - center) / scale.

    Attributes:
        center: [m] float, pooled mean.
        scale: [m] float > 0, pooled standard deviation.
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
    """Returns features of standardised outputs [n, m]: values, absolute values, and products of two (or squares)."""
    products = np.square(z)
    if z.shape[1] <= LARGEST_QUADRATIC:
        rows, columns = np.triu_indices(z.shape[1])
        products = z[:, rows] * z[:, columns]
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
    return np.clip(np.where(np.isinf(outputs) | np.isnan(z), 0, z), -LARGEST_FEATURE, LARGEST_FEATURE)


def train(key: jax.Array, first: np.ndarray, second: np.ndarray) -> Weights:
    """Trains a classifier of `first` against `second`, both [n, m], by Adam on the cross-entropy of random batches."""
    pooled = np.concatenate([first, second])
    pooled = np.where(np.isfinite(pooled), pooled, np.nan)
    is_finite = np.any(np.isfinite(pooled), axis=0)
    pooled[:, ~is_finite] = 0
    center, scale = np.nanmean(pooled, axis=0, dtype=np.float64), np.nanstd(pooled, axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    dtype, size = first.dtype, first.shape[1]
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    start = {
        "linear": np.zeros(features(np.zeros((1, size), dtype)).shape[1], dtype),
        "bias": np.zeros((), dtype),
        "inner": (generator.standard_normal((size, HIDDEN)) / np.sqrt(size)).astype(dtype),
        "offset": generator.standard_normal(HIDDEN).astype(dtype),
        "outer": np.zeros(HIDDEN, dtype),
    }
    weights = Weights(center.astype(dtype), scale.astype(dtype), **start)
    averages = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in start.items()}
    is_first = np.repeat(np.asarray([1, 0], dtype), BATCH)
    for step in range(STEPS):
        rows = generator.integers(len(first), size=(2, BATCH))
        gradient = _gradient(weights, np.concatenate([first[rows[0]], second[rows[1]]]), is_first)
        rate = LEARNING_RATE * (1 + np.cos(np.pi * step / STEPS)) / 2
        trained = {}
        for name, slope in gradient.items():
            means = averages[name] = tuple(
                (decay * mean + (1 - decay) * value).astype(dtype)
                for decay, mean, value in zip(DECAYS, averages[name], (slope, np.square(slope)), strict=True)
            )
            mean, square = (average / (1 - decay ** (step + 1)) for decay, average in zip(DECAYS, means, strict=True))
            trained[name] = (getattr(weights, name) - rate * mean / (np.sqrt(square) + TINY)).astype(dtype)
        weights = weights._replace(**trained)
    return weights


def _gradient(weights: Weights, outputs: np.ndarray, is_first: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the gradient of the sum of both inputs' mean cross-entropies, by the name of each trained array."""
    z = _standardise(weights, outputs)
    all_features, below = features(z), z @ weights.inner + weights.offset
    hidden = np.maximum(below, 0)
    logits = all_features @ weights.linear + weights.bias + hidden @ weights.outer
    slope = (expit(logits) - is_first) / BATCH
    inward = np.where(below > 0, slope[:, None] * weights.outer, 0)
    # Products of a vector and a matrix avoid OpenBLAS, which may split their long sums among its threads: results must
    # not depend on the number of threads.
    return {
        "linear": np.einsum("n,nf->f", slope, all_features),
        "bias": np.sum(slope),
        "inner": z.T @ inward,
        "offset": np.sum(inward, axis=0),
        "outer": np.einsum("n,nh->h", slope, hidden),
    }
