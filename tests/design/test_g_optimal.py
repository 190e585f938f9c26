"""Designs computed on the host: certificates by brute force, and the optimum of another solver."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import optimize

from jaxdp.design import _wynn_fedorov as wynn_fedorov
from jaxdp.design import g_optimal, g_optimal_differences


def differences(arms: np.ndarray) -> np.ndarray:
    return np.array([arms[i] - arms[j] for i, j in itertools.combinations(range(len(arms)), 2)])


def largest(vectors: np.ndarray, support: np.ndarray, weights: np.ndarray) -> float:
    """Returns the largest |z|^2_{V^+} over vectors, by an eigendecomposition; inf if V does not span them."""
    values, axes = np.linalg.eigh((support * weights[:, None]).T @ support)
    spans = values > 1e-10 * values.max()
    outside = vectors @ axes[:, ~spans]
    if np.abs(outside).max(initial=0.0) > 1e-6 * np.abs(vectors).max():
        return np.inf
    return float(((vectors @ axes[:, spans]) ** 2 / values[spans]).sum(axis=1).max())


def check(vectors: np.ndarray, support: np.ndarray, design, gap: float) -> None:
    rank = np.linalg.matrix_rank(vectors)
    assert design.rank == rank
    assert np.all(design.weights > 0)
    assert design.weights.sum() == pytest.approx(1, abs=1e-12)
    assert len(design.weights) <= rank * (rank + 1) // 2
    value = largest(vectors, support, design.weights)
    assert rank * (1 - 1e-9) <= value <= rank * (1 + gap)
    assert design.value == pytest.approx(value, rel=1e-7)
    assert design.gap == pytest.approx(max(0, value / rank - 1), abs=1e-7)


def cases():
    random = np.random.default_rng(1)
    yield "plain", random.normal(size=(40, 4)), 1e-3
    yield "tight", random.normal(size=(40, 4)), 1e-5
    yield "float32", random.normal(size=(40, 4)).astype(np.float32), 1e-2
    yield "more dimensions than points", random.normal(size=(5, 9)), 1e-3
    yield "in a plane", random.normal(size=(30, 2)) @ random.normal(size=(2, 5)), 1e-3
    yield "repeated", np.repeat(random.normal(size=(6, 3)), 3, axis=0), 1e-3
    yield "one-hot", np.eye(7), 1e-3
    yield "units apart", random.normal(size=(30, 3)) * [1e-6, 1, 1e6], 1e-3
    yield "far from the origin", 1000 + random.normal(size=(30, 3)), 1e-3


@pytest.mark.parametrize(
    ("name", "points", "gap"), list(cases()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_certificates_are_those_of_brute_force(name, points, gap):
    scale = np.maximum(
        np.abs(points).max(axis=0), 1e-300
    )  # the certificate does not depend on units, pseudo-inverses do
    exact = np.asarray(points, float) / scale
    if name != "far from the origin":
        design = g_optimal(points, gap=gap)
        check(exact, exact[design.support], design, gap)
    pairs = g_optimal_differences(points, gap=gap)
    assert np.all(pairs.pairs[:, 0] > pairs.pairs[:, 1])
    check(differences(exact), exact[pairs.pairs[:, 0]] - exact[pairs.pairs[:, 1]], pairs, gap)


def reference(vectors: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns (max ln det V, weights) by SciPy's sequential quadratic programming."""

    def moments(weights):
        return (vectors * weights[:, None]).T @ vectors

    def slope(weights):
        return -np.einsum("ij,jk,ik->i", vectors, np.linalg.inv(moments(weights)), vectors)

    found = optimize.minimize(
        lambda weights: -np.linalg.slogdet(moments(weights))[1],
        np.full(len(vectors), 1 / len(vectors)),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * len(vectors),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return -found.fun, found.x


def log_det(support: np.ndarray, weights: np.ndarray) -> float:
    return float(np.linalg.slogdet((support * weights[:, None]).T @ support)[1])


INSTANCES = [(seed, 4 + seed % 4, 2 + seed % 2) for seed in range(10)]


@pytest.mark.parametrize(("seed", "num_arms", "dim"), INSTANCES)
def test_an_independent_solver_finds_the_same_optimum(seed, num_arms, dim):
    """Solves 20 instances: a set of points and a set of differences for each seed."""
    arms, gap = np.random.default_rng(seed).normal(size=(num_arms, dim)), 1e-6
    pairs, design = g_optimal_differences(arms, gap=gap), g_optimal(arms, gap=gap)
    for vectors, support, weights in (
        (differences(arms), arms[pairs.pairs[:, 0]] - arms[pairs.pairs[:, 1]], pairs.weights),
        (arms, arms[design.support], design.weights),
    ):
        best, reference_weights = reference(vectors)
        assert log_det(support, weights) == pytest.approx(best, abs=1e-5)
        assert largest(vectors, support, weights) == pytest.approx(
            largest(vectors, vectors, reference_weights), rel=1e-3
        )
        uniform = np.full(len(vectors), 1 / len(vectors))  # a wrong optimum shows
        assert len(vectors) == dim or log_det(vectors, uniform) < best - 1e-3


def test_a_design_for_the_arms_is_none_for_their_differences():
    """Checks the rule that the paper's bound breaks: |x - y| may be twice as long as |x| and |y|."""
    arms = np.random.default_rng(3).normal(size=(30, 3))
    wrong = g_optimal(arms)
    assert largest(arms, arms[wrong.support], wrong.weights) <= 3 * 1.001
    assert largest(differences(arms), arms[wrong.support], wrong.weights) > 2 * 3


@pytest.mark.parametrize("wrong", ["whitening", "no step away"])
def test_wrong_designs_are_not_certified(wrong, monkeypatch):
    arms = np.random.default_rng(4).normal(size=(30, 3))
    monkeypatch.setattr(wynn_fedorov, "MAX_EXAMINATIONS", 60)
    monkeypatch.setattr(wynn_fedorov, "MAX_STEPS", 60)
    assert g_optimal_differences(arms, gap=1e-4).gap <= 1e-4
    if wrong == "whitening":
        right = wynn_fedorov.factor_of
        monkeypatch.setattr(wynn_fedorov, "factor_of", lambda *arguments: right(*arguments).T)
    else:  # weights that should go stay
        monkeypatch.setattr(wynn_fedorov, "away", lambda square, weight, d: 0.0)
    with pytest.raises(RuntimeError, match=r"a gap of 0\.0001 was not reached"):
        g_optimal_differences(arms, gap=1e-4)


def test_reduction_keeps_the_certificate():
    """Starts from uniform weights on all pairs, which no step has thinned out."""
    vectors = differences(np.random.default_rng(5).normal(size=(12, 3)))
    weights = np.full(len(vectors), 1 / len(vectors))
    kept, fewer = wynn_fedorov.reduce_support(vectors, weights)
    assert len(kept) <= 6 < len(vectors)
    assert fewer.min() > 0
    assert fewer.sum() == pytest.approx(1)
    before = (vectors * weights[:, None]).T @ vectors
    after = (vectors[kept] * fewer[:, None]).T @ vectors[kept]
    np.testing.assert_allclose(after / after[0, 0], before / before[0, 0], atol=1e-10)
    assert after[0, 0] >= before[0, 0] * (1 - 1e-12)
    heaviest = vectors[: len(kept)]  # as many of the pairs, but any: not the same
    assert not np.allclose(heaviest.T @ heaviest / len(kept), before, rtol=0.05)


def peak_bytes(num_arms: int, dim: int) -> tuple[float, int]:
    arms = np.random.default_rng(6).normal(size=(num_arms, dim))
    tracemalloc.start()
    try:
        design = g_optimal_differences(arms)
        return design.gap, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_differences_are_never_all_in_memory():
    gap, peak = peak_bytes(1500, 3)
    assert gap <= 1e-3
    assert peak < 1500**2 * 8 / 2  # one number a pair would already be too much


def test_memory_of_2000_arms_in_10_dimensions():
    gap, peak = peak_bytes(2000, 10)
    assert gap <= 1e-3
    assert peak < 2**24


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], r"must be finite, got nan at index \(0, 1\)"),
        ([[1.0, 2.0], [1.0, 2.0]], r"arms must not all be equal, got 2 times \[1.0, 2.0\]"),
        ([[1.0, 2.0]], "arms must be two or more, got 1"),
        ([1.0, 2.0], r"must be \[number, dim\], both > 0, got the shape \(2,\)"),
        (np.zeros((3, 0)), r"got the shape \(3, 0\)"),
        ([["a"], ["b"]], "must be numbers"),
    ],
)
def test_bad_arms(arms, message):
    with pytest.raises(ValueError, match=message):
        g_optimal_differences(arms)


def test_differences_of_the_largest_arms_do_not_overflow():
    arms = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    huge, plain = g_optimal_differences(arms * np.finfo(float).max), g_optimal_differences(arms)
    np.testing.assert_array_equal(huge.pairs, plain.pairs)
    np.testing.assert_array_equal(huge.weights, plain.weights)
    assert g_optimal_differences([[1e308, 0], [-1e308, 1e308]]).rank == 1


def test_bad_points_and_gaps():
    with pytest.raises(ValueError, match="points must not all be 0, got 2 of them"):
        g_optimal(np.zeros((2, 3)))
    for gap in (0.0, np.nan, -1.0):
        with pytest.raises(ValueError, match="gap must be > 0"):
            g_optimal(np.eye(2), gap=gap)
