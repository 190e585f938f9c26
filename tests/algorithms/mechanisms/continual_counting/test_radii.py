"""Radii hold, and none is looser than it says."""

import math

import jax
import numpy as np
import pytest

from jaxdp.mechanisms import doubling_counter, laplace_sum_radius, toeplitz_counter, tree_counter, tree_radius
from tests.algorithms.mechanisms.continual_counting.streams import NUM_DRAWS, errors
from tests.lazily import Lazy

LENGTH = 13
COUNTERS = Lazy(
    {
        "tree": lambda: tree_counter(horizon=LENGTH, arity=2),
        "plain": lambda: tree_counter(horizon=LENGTH, arity=3, combine=False),
        "gaussian": lambda: tree_counter(horizon=LENGTH, noise="gaussian"),
        "toeplitz": lambda: toeplitz_counter(horizon=LENGTH),
        "doubling": lambda: doubling_counter(horizon=LENGTH),
        "gaussian doubling": lambda: doubling_counter(horizon=LENGTH, noise="gaussian", arity=3),
    }
)


def values_of(name):
    return {"epsilon": 1.0} if name in ("tree", "plain", "doubling") else {"rho": 0.5}


@pytest.mark.parametrize("name", COUNTERS)
def test_coverage(name):
    counter = COUNTERS[name]
    params, times = counter.params(**values_of(name)), np.arange(1, LENGTH + 1)
    found = np.abs(errors(counter, params, LENGTH))
    for failure_prob in (0.3, 0.01):
        radii = np.asarray(jax.jit(counter.radius)(params, times, failure_prob))
        missed = (found > radii[:, None]).mean(axis=1)
        slack = 5 * math.sqrt(failure_prob / NUM_DRAWS)
        assert np.all(missed <= failure_prob + slack)
        if values_of(name) == {"rho": 0.5}:  # exact
            assert np.all(missed >= failure_prob - slack)
    assert np.any((found > 0.5 * radii[:, None]).mean(axis=1) > failure_prob + slack)  # half of the last fails
    none = counter.params(**dict.fromkeys(values_of(name), math.inf))
    assert np.all(np.asarray(counter.radius(none, times, 0.01)) == 0)


@pytest.mark.precision
@pytest.mark.parametrize(("arity", "combine"), [(2, False), (2, True), (16, True)])
def test_the_compiled_radius_is_nearly_the_tight_one(arity, combine):
    horizon = 2**20 - 1
    counter = tree_counter(horizon=horizon, arity=arity, combine=combine)
    params = counter.params(epsilon=0.5)
    times = np.asarray([1, 2, 255, 256, 2**19, horizon // 3, horizon])
    compiled = jax.jit(counter.radius)
    for failure_prob in (0.1, 1e-6, 1e-12):
        options = {"horizon": horizon, "epsilon": 0.5, "failure_prob": failure_prob}
        tight = tree_radius(times, **options, arity=arity, combine=combine)
        ratio = np.asarray(compiled(params, times, failure_prob)) / tight
        assert np.all((ratio > 1 - 1e-5) & (ratio < 1.06)), ratio
        assert np.all(tight <= tree_radius(times, **options, constants="paper"))


@pytest.mark.precision
def test_sums_of_laplace_variables():
    for scales in (np.ones(1), np.ones(30), np.linspace(0.1, 3, 10)):
        for failure_prob in (0.5, 0.05, 1e-9):
            tight = laplace_sum_radius(scales, failure_prob)
            assert tight <= laplace_sum_radius(scales, failure_prob, constants="paper")
            # the exact quantile of the largest alone, and a dense grid of rates
            rates = np.linspace(1e-4, 1 - 1e-9, 20_001)[:, None] / scales.max()
            dense = (math.log(2 / failure_prob) - np.log1p(-np.square(rates * scales)).sum(axis=1)) / rates[:, 0]
            assert tight == pytest.approx(dense.min(), rel=1e-4)
            assert tight >= scales.max() * math.log(1 / failure_prob)
    plain = tree_radius(7, horizon=7, epsilon=0.5, failure_prob=0.01, arity=2, combine=False)
    assert plain == pytest.approx(laplace_sum_radius(np.full(3, 3 / 0.5), 0.01), rel=1e-6)
    # the weights of the binary tree's block of two: 2/3 of its own noise, 1/3 of each child's
    combined = tree_radius(2, horizon=3, epsilon=1.0, failure_prob=0.01, arity=2)
    assert combined == pytest.approx(laplace_sum_radius(2 * np.asarray([2, 1, 1]) / 3, 0.01), rel=1e-6)
    assert laplace_sum_radius([0.0, 0.0], 0.1) == 0
    assert tree_radius(3, horizon=1023, epsilon=2.0, failure_prob=0.01, constants="paper") == pytest.approx(
        4 * math.log(100) * math.log(1023) ** 2.5 / 2
    )


def test_errors():
    for bad in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match=f"failure_prob must be in .0, 1., got {bad}"):
            laplace_sum_radius([1.0], bad)
        with pytest.raises(ValueError, match="failure_prob"):
            tree_radius(1, horizon=3, epsilon=1.0, failure_prob=bad, constants="paper")
    for bad in ("0.1", None, True, [0.1]):
        with pytest.raises(ValueError, match="failure_prob must be a number, got"):
            laplace_sum_radius([1.0], bad)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="scales must be at least one number, all >= 0"):
        laplace_sum_radius([1.0, -1.0], 0.1)
    with pytest.raises(ValueError, match="scales must be at least one number, all >= 0"):
        laplace_sum_radius([], 0.1)
    with pytest.raises(ValueError, match="scales must be finite"):
        laplace_sum_radius([math.nan], 0.1)
    with pytest.raises(ValueError, match="constants must be one of tight, paper"):
        laplace_sum_radius([1.0], 0.1, constants="loose")
    with pytest.raises(ValueError, match=r"times must be in \[1, 3\]"):
        tree_radius([1, 4], horizon=3, epsilon=1.0, failure_prob=0.1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_times_of_narrow_integers(dtype):
    for counter in (tree_counter(horizon=2**20 - 1, arity=2), doubling_counter(arity=2)):
        params = counter.params(epsilon=1.0)
        radius, expected = (counter.radius(params, np.array([5], kind), 0.1) for kind in (dtype, int))
        assert radius == expected
