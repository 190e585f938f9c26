import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.mechanisms import noisy_max, noisy_min

NUM_DRAWS = 40_000
LOSSES = np.array([0.3, 0.0, 1.5, 0.9])
NOISES = ["exponential", "gumbel", "laplace"]


def permute_and_flip(scores, epsilon, sensitivity):
    """Computes McKenna & Sheldon's Algorithm 1 exactly: every order of the candidates, a coin for each."""
    accept = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity))
    probabilities = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            probabilities[candidate] += reached * accept[candidate] / len(orders)
            reached *= 1 - accept[candidate]
    return probabilities


def exponential_mechanism(scores, epsilon, sensitivity):
    weights = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity))
    return weights / weights.sum()


def quadrature(scores, epsilon, sensitivity, pdf, cdf):
    """Computes P(j) as the integral of j's noise density times the others' distribution functions.

    Gauss-Legendre between the kinks of the integrand, which lie where two noisy scores tie at a kink of the noise.
    """
    scores = scores * epsilon / (2 * sensitivity)
    edges = np.union1d(np.linspace(-40, 40, 81), np.subtract.outer(scores, scores))
    nodes, weights = np.polynomial.legendre.leggauss(10)
    x = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    dx = (np.diff(edges)[:, None] * weights / 2).ravel()
    others = [cdf(x[:, None] + s - np.delete(scores, j)).prod(1) for j, s in enumerate(scores)]
    return np.array([dx @ (pdf(x) * other) for other in others])


def exact_probabilities(noise, scores, epsilon, sensitivity):
    if noise == "laplace":
        return quadrature(scores, epsilon, sensitivity, scipy.stats.laplace.pdf, scipy.stats.laplace.cdf)
    return {"exponential": permute_and_flip, "gumbel": exponential_mechanism}[noise](scores, epsilon, sensitivity)


def check_selection(select, probabilities, scores):
    """Checks frequencies of n draws; the standard error of one is sqrt(p (1 - p) / n)."""
    chosen = select(jax.random.key(4), jnp.asarray(np.tile(scores, (NUM_DRAWS, 1)), jnp.float32))
    frequencies = np.bincount(np.asarray(chosen), minlength=len(scores)) / NUM_DRAWS
    assert np.all(np.abs(frequencies - probabilities) <= 5 * np.sqrt(probabilities * (1 - probabilities) / NUM_DRAWS))


@pytest.mark.precision
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (4.0, 0.5)])
def test_selection_probabilities(noise, epsilon, sensitivity):
    of_max = exact_probabilities(noise, LOSSES, epsilon, sensitivity)
    of_min = exact_probabilities(noise, -LOSSES, epsilon, sensitivity)

    def select(function, epsilon, key, scores):
        return function(key, scores, epsilon, sensitivity=sensitivity, noise=noise)

    check_selection(lambda *a: select(noisy_max, epsilon, *a), of_max, LOSSES)
    check_selection(lambda *a: select(noisy_min, epsilon, *a), of_min, LOSSES)
    for wrong in [0.8, 1.25, 2.0]:
        with pytest.raises(AssertionError):
            check_selection(lambda *a, wrong=wrong: select(noisy_max, wrong * epsilon, *a), of_max, LOSSES)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_the_wrong_sign_is_caught(noise):
    """Checks that the same check rejects argmin(score + noise), which is not noisy min."""
    sampler = {"exponential": jax.random.exponential, "gumbel": jax.random.gumbel}[noise]

    def wrong_min(key, scores):
        return jnp.argmin(scores + 2.0 * sampler(key, scores.shape, scores.dtype), axis=-1)

    probabilities = exact_probabilities(noise, -LOSSES, 1.0, 1.0)
    check_selection(lambda key, scores: noisy_min(key, scores, 1.0, noise=noise), probabilities, LOSSES)
    with pytest.raises(AssertionError):
        check_selection(wrong_min, probabilities, LOSSES)


def test_exponential_noise_is_permute_and_flip():
    for scores in [LOSSES, -LOSSES]:
        np.testing.assert_allclose(
            quadrature(scores, 2.0, 1.0, scipy.stats.expon.pdf, scipy.stats.expon.cdf),
            permute_and_flip(scores, 2.0, 1.0),
            atol=1e-12,
        )
        np.testing.assert_allclose(
            quadrature(scores, 2.0, 1.0, scipy.stats.gumbel_r.pdf, scipy.stats.gumbel_r.cdf),
            exponential_mechanism(scores, 2.0, 1.0),
            atol=1e-12,
        )


@pytest.mark.precision
@pytest.mark.parametrize("noise", NOISES)
def test_the_claimed_epsilon_and_the_monotone_convention(noise):
    """Checks exact probabilities of neighbours: within epsilon, also with half the sensitivity if all move one way."""
    epsilon = 1.0
    for base in [np.array([0.0, 0.4, 1.1]), np.array([0.0, 1.0, 2.0])]:
        for move in itertools.product([-1, 0, 1], repeat=3):
            monotone = min(move) >= 0
            for sensitivity in [1.0, 0.5] if monotone else [1.0]:
                here = exact_probabilities(noise, base, epsilon, sensitivity)
                there = exact_probabilities(noise, base + np.array(move), epsilon, sensitivity)
                assert np.abs(np.log(here / there)).max() <= epsilon + 1e-12


def test_the_wrong_sign_is_not_private():
    def wrong_min(scores):  # argmin(score + Exponential(2)) = argmax(-score - Exponential(2))
        return quadrature(-scores, 1.0, 1.0, lambda x: scipy.stats.expon.pdf(-x), lambda x: scipy.stats.expon.sf(-x))

    base, move = np.array([4.0, 0.0, 0.0, 0.0]), np.array([1.0, -1.0, -1.0, -1.0])
    assert np.log(wrong_min(base) / wrong_min(base + move)).max() > 1.5


@pytest.mark.precision
@pytest.mark.parametrize("noise", NOISES)
def test_no_privacy_is_the_exact_argmax(noise):
    scores = np.random.default_rng(0).normal(size=(50, 2, 7)).astype(np.float32)
    key = jax.random.key(0)
    np.testing.assert_array_equal(noisy_max(key, scores, math.inf, noise=noise), scores.argmax(-1))
    np.testing.assert_array_equal(noisy_min(key, scores, math.inf, noise=noise), scores.argmin(-1))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_of_equal_scores_any_is_selected(dtype, noise):
    scores = np.asarray([[1, 3, 3, 0, 3], [2, 2, 2, 2, 2]], dtype)
    keys = jax.random.split(jax.random.key(3), 6000)
    found = np.asarray(jax.jit(jax.vmap(lambda key: noisy_max(key, scores, math.inf, noise=noise)))(keys))
    first, second = (np.bincount(row, minlength=5) for row in found.T)
    assert first[[0, 3]].tolist() == [0, 0]
    for counts, size in ((first[[1, 2, 4]], 3), (second, 5)):
        assert (np.abs(counts - 6000 / size) < 5 * math.sqrt(6000 * (1 - 1 / size) / size)).all()


@pytest.mark.parametrize(("select", "sign"), [(noisy_max, 1), (noisy_min, -1)])
def test_infinite_scores_are_equal(select, sign):
    scores = sign * jnp.asarray([[0, jnp.inf, jnp.inf], [-jnp.inf, -jnp.inf, 0]], jnp.float32)
    found = np.asarray(jax.vmap(lambda key: select(key, scores, 1.0))(jax.random.split(jax.random.key(0), 100)))
    assert [set(row.tolist()) for row in found.T] == [{1, 2}, {2}]


@pytest.mark.parametrize("noise", NOISES)
def test_one_compilation_for_every_epsilon_and_vmap_equals_loop(noise):
    scores = jnp.asarray(np.random.default_rng(1).normal(size=(40, 5)), jnp.float32)
    epsilons = jnp.array([0.1, 1.0, 20.0, np.inf], jnp.float32)
    traces = []

    @jax.jit
    def select(epsilon):
        traces.append(epsilon)
        return noisy_max(jax.random.key(6), scores, epsilon, sensitivity=epsilon**0, noise=noise)

    loop = np.stack([select(epsilon) for epsilon in epsilons])
    assert len(traces) == 1
    np.testing.assert_array_equal(jax.vmap(select)(epsilons), loop)
    np.testing.assert_array_equal(loop[-1], np.argmax(scores, axis=-1))


def test_result_is_int32():
    for dtype in [jnp.float32, float]:
        chosen = noisy_max(jax.random.key(0), jnp.zeros((3, 2), dtype), 1.0)
        assert (chosen.dtype, chosen.shape) == (jnp.int32, (3,))


@pytest.mark.parametrize("select", [noisy_max, noisy_min])
def test_errors(select):
    key, scores = jax.random.key(0), np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="scores must be floats or integers, got dtype bool"):
        select(key, np.zeros(3, bool), 1.0)
    with pytest.raises(ValueError, match="noise must be one of laplace, gumbel, exponential, got 'gaussian'"):
        select(key, scores, 1.0, noise="gaussian")
    for wrong in [np.array([0, np.nan, 1], np.float32), jnp.asarray([0, jnp.nan, 1])]:
        with pytest.raises(ValueError, match="scores must be numbers other than NaN, got 1 of 3 that are not"):
            select(key, wrong, 1.0)
    assert jax.jit(select)(key, wrong, 1.0) == 0  # as documented: no key changes it
    for empty in [np.float32(1), np.zeros((2, 0), np.float32)]:
        with pytest.raises(ValueError, match="scores must have a last axis"):
            select(key, empty, 1.0)
    for bad in [0.0, -1.0, math.nan]:
        with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
            select(key, scores, bad)
        with pytest.raises(ValueError, match=f"sensitivity must be > 0, got {bad}"):
            select(key, scores, 1.0, sensitivity=bad)


@pytest.mark.always
@pytest.mark.optimised
@pytest.mark.parametrize("noise", ["gumbel", "laplace", "exponential"])
def test_optimised_programs_choose_the_largest_noisy_score(noise):
    """Checks a program that drew noise again for each use: it took the first of equal scores for the last, lower
    one.
    """
    scores, num_lanes = jnp.array([0, 0, -1]), 50_000
    keys = jax.random.split(jax.random.key(5), num_lanes)
    found = jax.jit(jax.vmap(lambda key: noisy_max(key, scores, jnp.float32(0.9), noise=noise)))(keys)
    first, second, _ = np.bincount(found, minlength=3) / num_lanes
    assert abs(first - second) < 5 * math.sqrt(0.8 / num_lanes)  # var of the difference: (p + q - (p - q)^2) / n
