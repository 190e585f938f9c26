"""Distributions of small mechanisms, written here from their definitions; the samplers are tested against them."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.audit import exact_budget, exact_delta, exact_epsilon, exact_mu, exact_rho, g_test
from jaxdp.core import Guarantee
from jaxdp.mechanisms import gaussian_delta, noisy_max, randomized_response

NUM_DRAWS = 50_000
SUSPICIOUS = 1e-6
SCORES = np.array([0.0, 1.0, 0.4])
NEIGHBOUR = np.array([1.0, 0.0, -0.6])
NOISES = {"laplace": scipy.stats.laplace, "gumbel": scipy.stats.gumbel_r, "exponential": scipy.stats.expon}


def randomized_response_distribution(label, epsilon, num_labels):
    other = 1 / (math.exp(epsilon) + num_labels - 1)
    return {report: 1 - (num_labels - 1) * other if report == label else other for report in range(num_labels)}


def noisy_max_distribution(scores, epsilon, noise):
    """Integrates j's noise density times the others' distribution functions, between the kinks of either: P(j)."""
    scores = np.asarray(scores) * epsilon / 2
    edges = np.union1d(np.linspace(-45, 45, 91), np.subtract.outer(scores, scores))
    nodes, weights = np.polynomial.legendre.leggauss(10)
    x = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    dx = (np.diff(edges)[:, None] * weights / 2).ravel() * NOISES[noise].pdf(x)
    others = [NOISES[noise].cdf(x[:, None] + s - np.delete(scores, j)).prod(1) for j, s in enumerate(scores)]
    return {j: float(dx @ other) for j, other in enumerate(others)}


def draw(release, data):
    keys = jax.random.split(jax.random.key(5), NUM_DRAWS)
    return np.asarray(jax.vmap(release, (0, None))(keys, data)).tolist()


@pytest.mark.parametrize("num_labels", [2, 5])
def test_randomized_response(num_labels):
    distributions = [randomized_response_distribution(label, 0.7, num_labels) for label in (0, 1)]
    assert exact_epsilon(*distributions, delta=0.0) == pytest.approx(0.7, rel=1e-12)
    samples = draw(lambda key, x: randomized_response(key, x, 0.7, num_labels=num_labels), jnp.int32(1))
    assert g_test(samples, distributions[1]) > SUSPICIOUS
    for wrong in [distributions[0], randomized_response_distribution(1, 0.6, num_labels)]:
        assert g_test(samples, wrong) < SUSPICIOUS


@pytest.mark.parametrize("noise", NOISES)
def test_noisy_max(noise):
    distributions = [noisy_max_distribution(scores, 1.0, noise) for scores in (SCORES, NEIGHBOUR)]
    assert 0.3 < exact_epsilon(*distributions, delta=0.0) <= 1.0

    def release(key, scores, scale=1.0):
        return noisy_max(key, scores, 1.0 / scale, noise=noise)

    assert g_test(draw(release, jnp.asarray(SCORES, jnp.float32)), distributions[0]) > SUSPICIOUS
    too_little = draw(functools.partial(release, scale=0.8), jnp.asarray(SCORES, jnp.float32))
    assert g_test(too_little, distributions[0]) < SUSPICIOUS


def test_delta_and_epsilon_invert_each_other():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, q = (dict(enumerate(rng.dirichlet(np.ones(6)))) for _ in range(2))
        for delta in [0.0, 1e-3, 0.05]:
            epsilon = exact_epsilon(p, q, delta)
            assert exact_delta(p, q, epsilon) <= delta + 1e-12
            if epsilon > 1e-9:
                assert exact_delta(p, q, epsilon * 0.999) > delta


def test_a_discretised_gaussian():
    """Checks that cells of a Gaussian are post-processing of it, and that fine ones lose little."""
    edges = np.concatenate([[-np.inf], np.linspace(-12, 13, 4001), [np.inf]])
    distributions = [dict(enumerate(np.diff(scipy.stats.norm.cdf(edges, mean, 2.0)))) for mean in (0.0, 1.0)]
    for epsilon in [0.0, 0.5, 1.0]:
        assert exact_delta(*distributions, epsilon=epsilon) == pytest.approx(gaussian_delta(epsilon, 2.0), rel=1e-4)


def test_what_one_input_alone_makes_possible():
    certain, possible = {"a": 1.0}, {"a": 0.99, "b": 0.01}
    assert exact_epsilon(certain, possible) == math.inf
    assert exact_epsilon(certain, possible, 0.01) == pytest.approx(0.0, abs=1e-9)
    assert exact_delta(certain, possible, math.inf) == pytest.approx(0.01)
    assert exact_delta(certain, certain, 0.0) == 0
    assert exact_epsilon(certain, certain) == 0
    assert g_test(["b"], certain) == 0


def test_rare_outcomes_are_counted_together():
    distribution = {0: 0.9, **dict.fromkeys(range(1, 1001), 0.1 / 1000)}
    rng = np.random.default_rng(1)
    samples = rng.choice(1001, 2000, p=list(distribution.values())).tolist()
    assert g_test(samples, distribution) > 0.001
    assert g_test([0] * 2000, distribution) < SUSPICIOUS
    assert g_test([0] * 3, distribution) == 1


def response_pair(epsilon, num_labels=2):
    return [randomized_response_distribution(label, epsilon, num_labels) for label in (0, 1)]


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 10.0])
def test_rho_and_mu_of_two_outcomes(epsilon):
    """Checks that D_a / a of randomized response is largest at a = 1: the Kullback-Leibler divergence."""
    distributions = response_pair(epsilon)
    assert exact_rho(*distributions) == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-9)
    assert exact_mu(*distributions) == pytest.approx(2 * scipy.stats.norm.ppf(1 / (1 + math.exp(-epsilon))), rel=1e-9)
    certain = {"a": 1.0, "b": 0.0}
    assert exact_rho(certain, certain) == exact_mu(certain, certain) == 0
    assert exact_rho(certain, distributions[0]) == math.inf
    assert exact_mu(certain, distributions[0]) == math.inf


def test_rho_at_an_order_above_one():
    """Compares a rare, revealing outcome with a fine grid of orders in both directions."""
    rng = np.random.default_rng(0)
    highest = 1.0
    for _ in range(20):
        p, q = rng.dirichlet(np.full(5, 0.3), 2) + 1e-6
        p, q = p / p.sum(), 0.9 * p / p.sum() + 0.1 * q / q.sum()
        orders = 1 + np.geomspace(1e-3, 1e3, 20_001)[:, None]
        rates = [
            scipy.special.logsumexp((orders - 1) * np.log(a / b) + np.log(a), axis=1) / ((orders - 1) * orders)[:, 0]
            for a, b in ((p, q), (q, p))
        ]
        divergences = [scipy.special.rel_entr(a, b).sum() for a, b in ((p, q), (q, p))]
        found, best = exact_rho(dict(enumerate(p)), dict(enumerate(q))), max(np.max(rates), *divergences)
        assert best * (1 - 1e-12) <= found <= best * (1 + 1e-6)
        highest = max(highest, float(orders[np.argmax(np.max(rates, axis=0)), 0]))
    assert highest > 2


def test_rho_and_mu_of_a_discretised_gaussian():
    """Checks orders that are nearly alike, too many to examine closely; mu is the distance of means."""
    for shift in (0.2, 1.0):
        edges = np.concatenate([[-np.inf], np.linspace(-8, 8, 801), [np.inf]])
        tails = [(scipy.stats.norm.cdf(edges - s), scipy.stats.norm.sf(edges - s)) for s in (-shift / 2, shift / 2)]
        distributions = [dict(enumerate(np.where(edges[1:] < 0, np.diff(low), -np.diff(high)))) for low, high in tails]
        assert exact_rho(*distributions) == pytest.approx(shift**2 / 2, rel=1e-3)
        assert exact_rho(*distributions) <= shift**2 / 2 * (1 + 1e-9)
        assert exact_mu(*distributions) == pytest.approx(shift, rel=1e-9)


def test_rho_and_mu_of_close_distributions():
    """Checks that nothing cancels: the divergence is a square of the distance."""
    for epsilon in (1e-4, 1e-6):
        distributions = [{0: 0.5 + sign * epsilon / 4, 1: 0.5 - sign * epsilon / 4} for sign in (1, -1)]
        assert exact_rho(*distributions) == pytest.approx(epsilon**2 / 2, rel=1e-6)
        assert exact_mu(*distributions) == pytest.approx(epsilon * math.sqrt(math.pi / 2), rel=1e-6)
    assert exact_rho({0: 0.3, 1: 0.7}, {0: 0.3, 1: 0.7}) == 0
    assert exact_mu({0: 0.3, 1: 0.7}, {0: 0.3, 1: 0.7}) == 0


@pytest.mark.filterwarnings("error")
def test_distributions_whose_sums_are_rounded_warn_of_nothing():
    first, second = {0: 0.5, 1: 0.5 - 1e-7}, {0: 0.5 + 1e-7, 1: 0.5}
    for each in (exact_rho(first, second), exact_rho(second, first)):
        assert 0 < each < 1e-12
    assert exact_mu(first, second) < 1e-6


def test_rho_and_mu_far_apart():
    tiny = {0: 1.0, 1: 1e-300}
    assert math.isfinite(exact_rho({0: 1 - 1e-9, 1: 1e-9}, tiny))
    assert exact_rho({0: 1 - 1e-9, 1: 1e-9}, tiny) > 100
    assert exact_rho({0: 1e-300, 1: 1.0}, tiny) == pytest.approx(300 * math.log(10), rel=1e-6)
    assert exact_mu({0: 1e-300, 1: 1.0}, tiny) == pytest.approx(-2 * scipy.stats.norm.ppf(1e-300), rel=1e-9)


def test_the_budget_in_the_currency_of_a_claim():
    first, second = response_pair(1.0)
    about = {"trust_model": "local", "privacy_unit": "one label", "argument": "test"}
    for claim, expected in [
        (Guarantee.zcdp(9.0, **about), exact_rho(first, second)),
        (Guarantee.gaussian(9.0, **about), exact_mu(first, second)),
        (Guarantee.pure(9.0, **about), 1.0),
        (Guarantee.approximate(9.0, 0.1, **about), exact_epsilon(first, second, 0.1)),
        (Guarantee.none(**about), 1.0),
    ]:
        assert exact_budget(first, second, claim) == pytest.approx(expected, rel=1e-12)


def test_errors():
    distribution = {0: 0.5, 1: 0.5}
    with pytest.raises(ValueError, match=r"second must sum to 1, got 0\.5"):
        exact_epsilon(distribution, {0: 0.5})
    with pytest.raises(ValueError, match=r"first must have probabilities in \[0, 1\], got -0.5 for 1"):
        exact_delta({1: -0.5, 0: 1.5}, distribution, 0.0)
    for exact in (exact_rho, exact_mu):
        with pytest.raises(ValueError, match=r"second must sum to 1, got 0\.5"):
            exact(distribution, {0: 0.5})
    for bad in [-0.1, 1.0, math.nan]:
        with pytest.raises(ValueError, match=rf"delta must be in \[0, 1\), got {bad}"):
            exact_epsilon(distribution, distribution, bad)
    with pytest.raises(ValueError, match="epsilon must be >= 0, got nan"):
        exact_delta(distribution, distribution, math.nan)
    with pytest.raises(ValueError, match="samples must not be empty"):
        g_test([], distribution)


@pytest.mark.parametrize("epsilon", [20.0, 709.0, 710.0, 800.0, 1e308, math.inf])
def test_delta_at_a_large_epsilon(epsilon):
    assert exact_delta({"a": 1.0}, {"a": 0.99, "b": 0.01}, epsilon) == pytest.approx(0.01, rel=1e-15)
    assert exact_delta({0: 0.5, 1: 0.5}, {0: 1.0}, epsilon) == 0.5


def test_delta_where_only_the_ratio_is_a_float():
    tiny = 1e-320  # exp(720) is infinite, exp(720) tiny is not
    first, second = {0: 0.5, 1: 0.5}, {0: tiny, 1: 1.0}
    assert exact_delta(first, second, 720.0) == pytest.approx(0.5 - math.exp(720 + math.log(tiny)), rel=1e-9)
    assert exact_delta(first, second, math.inf) == 0


def test_a_mass_of_exactly_delta_proves_nothing():
    """Uses 0.1 + 0.1 + 0.1, which is a little above 0.3."""
    spread, certain = {"a": 0.7, "b": 0.1, "c": 0.1, "d": 0.1}, {"a": 1.0}
    assert exact_epsilon(spread, certain, 0.3) == pytest.approx(0.0, abs=1e-12)
    assert exact_epsilon(spread, certain, 0.3 - 1e-12) == math.inf
    assert exact_epsilon({0: 1 - 1e-300, 1: 1e-300}, {0: 1.0}) == math.inf


def test_samples_that_are_not_hashable():
    distribution = {(0, 1): 0.5, (1, 0): 0.5}
    with pytest.raises(ValueError, match="samples must be hashable, such as tuples, got a ndarray"):
        g_test(np.array([[0, 1], [1, 0]]), distribution)  # pyright: ignore[reportArgumentType]
    assert g_test([(0, 1), (1, 0)] * 50, distribution) == 1
