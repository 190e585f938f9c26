"""Synthetic reward data, clipping, and checks of users' features."""

import math
import re
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.preferences import RewardData, clip_norm, differential_features, gaussian_comparisons, logistic, probit

FLOAT = jax.dtypes.canonicalize_dtype(float)
ULPS = 1 + 8 * float(np.finfo(FLOAT).eps)


def draw(key: jax.Array | None = None, **values) -> RewardData:
    """Draws in one compiled program, as eager calls compile each operation."""
    return jax.jit(partial(gaussian_comparisons, **{"num_samples": 200, "dim": 6, **values}))(
        jax.random.key(7) if key is None else key
    )


def norms(vectors) -> np.ndarray:
    return np.linalg.norm(np.asarray(vectors, np.float64), axis=-1)


def test_shapes_and_types():
    data = gaussian_comparisons(jax.random.key(7), num_samples=50, dim=4)
    assert [leaf.shape for leaf in data] == [(50, 4), (50,), (4,), ()]
    assert [leaf.dtype for leaf in data] == [FLOAT, np.int32, FLOAT, FLOAT]
    assert set(np.unique(data.labels)) == {0, 1}


@pytest.mark.parametrize("zero_sum", [False, True])
def test_parameter_depends_on_the_key_alone(zero_sum: bool):
    parameter = draw(zero_sum=zero_sum).parameter
    other_data = draw(zero_sum=zero_sum, num_samples=3, link=probit, feature_norm=0.5)
    np.testing.assert_array_equal(parameter, other_data.parameter)
    assert not np.array_equal(parameter, draw(jax.random.key(8), zero_sum=zero_sum).parameter)


BOUNDED: dict[str, Any] = {"zero_sum": True, "feature_norm": 0.7, "parameter_norm": 1.5}


def test_constraints_hold():
    bounded = jax.jit(partial(gaussian_comparisons, num_samples=200, dim=6, **BOUNDED))
    for seed in range(5):
        data = bounded(jax.random.key(seed))
        assert norms(data.parameter) <= 1.5 * ULPS
        assert abs(float(data.parameter.sum())) < 6 * 1.5 * np.finfo(FLOAT).eps
        assert float(data.feature_norm) == FLOAT.type(0.7)
        assert norms(data.features).max() <= 1.4 * ULPS
    free = np.asarray(draw(zero_sum=True).parameter)
    np.testing.assert_allclose(bounded(jax.random.key(7)).parameter, free * min(1, 1.5 / norms(free)), rtol=1e-5)


def test_measured_feature_norm():
    data = draw()
    norm = float(data.feature_norm)
    assert norms(data.features).max() <= 2 * norm * ULPS
    # It is the largest norm drawn: clipping there changes nothing, clipping just below does.
    same = draw(feature_norm=norm)
    less = draw(feature_norm=0.999 * norm)
    np.testing.assert_allclose(same.features, data.features, rtol=1e-5, atol=1e-6)
    assert np.sum(np.any(np.abs(np.asarray(less.features - data.features)) > 1e-5, axis=1)) in {1, 2}
    assert np.isinf(draw(feature_norm=np.inf).feature_norm)


def test_distribution():
    data = draw(num_samples=40_000, dim=3)
    x = np.asarray(data.features, np.float64)
    second_moments = x.T @ x / len(x)  # of N(0, 2 I)
    np.testing.assert_allclose(second_moments, 2 * np.eye(3), atol=5 * 2 * np.sqrt(2 / len(x)))

    def deviation(scale: float) -> float:
        p = np.asarray(logistic.cdf(jnp.asarray(scale * (x @ np.asarray(data.parameter, np.float64)), FLOAT)), float)
        residual = np.asarray(data.labels) - p  # against the margin's sign: sees a wrong sign and a wrong scale
        sign = np.where(p > 0.5, 1, -1)
        return abs((residual * sign).sum()) / np.sqrt((p * (1 - p)).sum())

    assert deviation(1.0) < 5
    assert deviation(1.2) > 5
    assert deviation(-1.0) > 5


def test_jit_and_vmap():
    keys = jax.random.split(jax.random.key(7), 3)
    batch = jax.jit(jax.vmap(partial(gaussian_comparisons, num_samples=200, dim=6)))(keys)
    for lane, key in enumerate(keys):
        for got, want in zip(batch, draw(key), strict=True):
            np.testing.assert_allclose(got[lane], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_samples": 0}, "num_samples must be an integer >= 1, got 0"),
        ({"dim": 2.5}, "dim must be an integer >= 1, got 2.5"),
        ({"dim": 1, "zero_sum": True}, "dim must be an integer >= 2, got 1"),
        ({"feature_norm": 0.0}, "feature_norm must be > 0, got 0.0"),
        ({"parameter_norm": float("nan")}, "parameter_norm must be > 0, got nan"),
    ],
)
def test_bad_arguments(change: dict, message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        gaussian_comparisons(jax.random.key(7), **{"num_samples": 3, "dim": 3, **change})


@pytest.mark.parametrize("bound", [1e-20, 0.3, 1.0, 17.0, 1e10])
def test_clip_norm(bound: float):
    scales = np.logspace(-30, 30, 61)[:, None]
    vectors = np.asarray(np.random.default_rng(0).normal(size=(61, 5)) * scales, FLOAT)
    clipped = np.asarray(jax.jit(clip_norm)(vectors, bound))
    assert (norms(clipped) <= float(FLOAT.type(bound)) * ULPS).all()
    short = norms(vectors) < bound
    np.testing.assert_array_equal(clipped[short], vectors[short])
    np.testing.assert_allclose(norms(clipped)[~short], bound, rtol=1e-6)
    directions = [array / norms(array)[:, None] for array in (clipped.astype(float), vectors.astype(float))]
    np.testing.assert_allclose(*directions, rtol=1e-5)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, jnp.zeros(()), [1.0, 2.0], None])
def test_clip_norm_refuses_wrong_bounds(bound):
    with pytest.raises(ValueError, match="bound must be"):
        clip_norm(jnp.ones(2), bound)


@pytest.mark.parametrize("vectors", [[3, 4], [3 + 4j, 0j]])
def test_clip_norm_refuses_vectors_of_other_numbers(vectors):
    with pytest.raises(ValueError, match=r"vectors must be floats, got (int|complex)"):
        clip_norm(jnp.asarray(vectors), 1.0)


def test_clip_norm_edges():
    vectors = jnp.array([[0.0, 0.0], [3.0, -4.0]])
    with jax.debug_nans(True):
        np.testing.assert_array_equal(clip_norm(vectors, np.inf), vectors)
        np.testing.assert_array_equal(clip_norm(vectors, np.float64(2.5)), [[0, 0], [1.5, -2]])
        np.testing.assert_array_equal(clip_norm(vectors, 5), vectors)
    assert clip_norm(vectors[1], 1.0).shape == (2,)
    limits = jnp.finfo(FLOAT)
    for size in (limits.max, limits.max / 16, limits.tiny * 4):
        long = jnp.asarray([[size, 0], [size, -size]], FLOAT)
        bound = 2.0 if size > 1 else float(size) / 2
        for clip in (clip_norm, jax.jit(clip_norm)):
            np.testing.assert_allclose(
                np.linalg.norm(np.asarray(clip(long, bound), float) / bound, axis=1), 1, rtol=1e-6
            )


def test_differential_features():
    rng = np.random.default_rng(1)
    first, second = (np.asarray(clip_norm(jnp.asarray(rng.normal(size=(100, 3)), FLOAT), 1.0)) for _ in range(2))
    got = differential_features(first, second, feature_norm=1.0)  # clipping's rounding passes
    assert got.dtype == FLOAT
    np.testing.assert_allclose(got, first - second, atol=1e-7)
    assert differential_features(np.array([[1, 2]]), np.array([[0, 5]])).tolist() == [[1.0, -3.0]]


@pytest.mark.parametrize(
    ("first", "second", "norm", "message"),
    [
        ([1.0], [2.0], 1.0, "first must have two dimensions [n, dim], got shape (1,)"),
        ([[1.0]], [2.0], 1.0, "second must have two dimensions [n, dim], got shape (1,)"),
        ([[1.0]], [[1.0], [1.0]], 1.0, "first and second must have the same shape, got (1, 1) and (2, 1)"),
        ([[1.0, np.nan]], [[0.0, 0.0]], 1.0, "first must be finite, got nan at index (0, 1)"),
        ([[1.0]], [[np.inf]], np.inf, "second must be finite, got inf at index (0, 0)"),
        ([["a"]], [["b"]], 1.0, "first must be numbers"),
        ([[1.0]], [[1.0]], 0.0, "feature_norm must be > 0, got 0.0"),
        ([[1.0], [-3.0]], [[1.0], [1.0]], 2.0, "=2.0 is smaller than a feature's norm: row 1 of first has norm 3.0"),
        ([[1.0], [1.0]], [[2.5], [9.0]], 2.0, "=2.0 is smaller than a feature's norm: row 0 of second has norm 2.5"),
        ([[1.00001]], [[1.0]], 1.0, "row 0 of first has norm 1.00001"),
    ],
)  # fmt: skip
def test_bad_features(first, second, norm: float, message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        differential_features(first, second, feature_norm=norm)
