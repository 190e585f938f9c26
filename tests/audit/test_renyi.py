"""Bounds on rho and mu: they hold as often as they say, and reach most of what Gaussian noise spends."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.audit import Attack, audit, exact_rho
from jaxdp.audit.intervals import mu_bound
from jaxdp.audit.renyi import ORDERS, Cells, choose_cells, mean_bound, rho_bound
from jaxdp.audit.sampling import Score
from jaxdp.core import Guarantee
from jaxdp.mechanisms import gaussian, randomized_response

SCORE = Score(lambda weights, outputs: outputs.numbers[:, 0], np.float32(1), "output")
ABOUT = {"trust_model": "central", "privacy_unit": "one record", "argument": "test"}
NUMBERS = (np.float32(0), np.float32(1))
ERROR = 0.025


def responses(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    return np.array([p, 1 - p]), np.array([1 - p, p])


def normals(rho, cells=64):
    shift = math.sqrt(2 * rho)
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4 + shift, cells - 1), [np.inf]])
    first, second = (np.diff(scipy.stats.norm.cdf(edges, mean)) for mean in (0.0, shift))
    return first / first.sum(), second / second.sum()


def catastrophe(p=1e-2):
    return np.array([1 - p, p - 1e-9, 1e-9]), np.array([1 - p, 1e-9, p - 1e-9])


DISTRIBUTIONS = {
    "responses": responses(1.0),
    "responses at a small epsilon": responses(0.1),
    "normal": normals(0.5),
    "normal at a small rho": normals(0.01),
    "a rare catastrophe": catastrophe(),
}


def truth(distributions):
    return exact_rho(*(dict(enumerate(distribution)) for distribution in distributions))


def bound(rng, distributions, trials, error=ERROR):
    """Computes a bound from multinomial counts: a tenth of the trials chooses, as many as all evaluate."""

    def counts(number):
        return tuple(rng.multinomial(number, distribution)[None] for distribution in distributions)

    thresholds = np.arange(len(distributions[0]) - 1.0)[None]
    cells = choose_cells([SCORE], thresholds, counts(trials // 20), counts(trials // 20), trials, error=ERROR)
    (first,), (second,) = counts(trials)
    return rho_bound(cells, first, second, error=error)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_bound_on_rho_holds(name):
    """Checks that at most 5% of bounds exceed the truth, however few the trials; with many they are near it."""
    rng, distributions = np.random.default_rng(0), DISTRIBUTIONS[name]
    for trials in (100, 2000, 50_000):
        bounds = np.array([bound(rng, distributions, trials) for _ in range(200)])
        assert np.mean(bounds > truth(distributions)) <= 0.05
    if name in ("responses", "normal"):
        assert np.median(bounds) > 0.85 * truth(distributions)


@pytest.mark.parametrize("name", ["responses", "normal at a small rho"])
def test_frequencies_prove_nothing(name):
    """Plants the divergence of the counts."""
    rng, distributions, trials = np.random.default_rng(0), DISTRIBUTIONS[name], 2000
    drawn = [tuple((rng.multinomial(trials, distribution) + 0.5) for distribution in distributions) for _ in range(50)]
    wrong = [truth((first / first.sum(), second / second.sum())) for first, second in drawn]
    assert np.mean(np.array(wrong) > truth(distributions)) > 0.3


def test_any_function_and_order_bound_rho():
    """Checks Hoelder's inequality with constants: exact means never give more than rho; the log ratio gives D_a / a."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(5), 2)
        rho, order, best = truth((p, q)), rng.choice(ORDERS), -math.inf
        for values in (np.log(p / q), *(np.log(p / q) + rng.normal(0, 1, 5) for _ in range(5))):
            log_gain = scipy.special.logsumexp((order - 1) * values, b=p)
            log_loss = scipy.special.logsumexp(order * values, b=q)
            found = log_gain / (order - 1) - log_loss / order
            best = max(best, found)
            assert found <= rho * (1 + 1e-9)
        renyi = scipy.special.logsumexp((order - 1) * np.log(p / q), b=p) / (order - 1)
        assert best == pytest.approx(renyi / order, rel=1e-9)


def test_a_bound_is_that_of_its_means():
    """Uses so many trials that the means are nearly known."""
    (p, q), trials = responses(1.0), 10**12
    values = np.log(p / q) - 1.0
    cells = Cells(SCORE, np.zeros(1), values, 2.0, True, (1e-6, 1e-6))
    found = rho_bound(cells, np.round(trials * p), np.round(trials * q), error=ERROR)
    assert found == pytest.approx(math.log(p @ (p / q)) / 2, rel=1e-4)
    other = rho_bound(cells._replace(first=False), np.round(trials * q), np.round(trials * p), error=ERROR)
    assert other == found


@pytest.mark.parametrize(
    ("values", "distribution"), [([0, 1], [0.5, 0.5]), ([0, 1], [0.99, 0.01]), ([-1, 0, 9], [0.1, 0.8, 0.1])]
)
def test_the_bound_on_a_mean_holds(values, distribution):
    rng, values, distribution = np.random.default_rng(0), np.array(values, float), np.array(distribution)
    mean, trials, error = distribution @ values, 500, 0.2
    stake = math.sqrt(2 * math.log(1 / error) / (trials * (distribution @ np.square(values - mean))))
    stake = min(stake, 0.9 / np.ptp(values))
    counts = rng.multinomial(trials, distribution, 4000)
    lower = np.array([mean_bound(values, count, stake, error) for count in counts])
    assert np.mean(lower > mean) <= error
    frequencies = counts @ values / trials
    assert np.mean(frequencies > mean) > error
    assert np.mean(lower) > mean - 2 * (frequencies.std() * math.sqrt(2 * math.log(1 / error)))


def test_a_mean_by_hand():
    assert mean_bound(np.array([0.3]), np.array([10]), 0.0, 0.05) == 0.3
    assert mean_bound(np.array([0.0, 1.0]), np.array([10, 0]), 0.5, 0.05) == 0.0
    # ten ones: (1 + stake (1 - m))^10 = 1 / error
    m = 1 - (20 ** (1 / 10) - 1) / 0.5
    assert mean_bound(np.array([0.0, 1.0]), np.array([0, 10]), 0.5, 0.05) == pytest.approx(m, abs=1e-12)


def test_the_bound_on_mu_holds():
    rng, trials = np.random.default_rng(0), 2000
    for mu in (0.1, 1.0, 4.0):
        for threshold in (-1.0, mu + 1, mu / 2):
            first, second = scipy.stats.norm.sf(threshold, mu), scipy.stats.norm.sf(threshold)
            likely, unlikely = rng.binomial(trials, first, 4000), rng.binomial(trials, second, 4000)
            bounds = mu_bound(likely, trials, unlikely, trials, error=ERROR)
            assert np.mean(bounds > mu) <= 0.05
    rates = scipy.stats.norm.ppf((likely + 0.5) / (trials + 1)) - scipy.stats.norm.ppf((unlikely + 0.5) / (trials + 1))
    assert np.mean(rates > mu) > 0.2  # the planted mistake: frequencies for limits


def test_mu_by_hand():
    error, binomial = 0.025, scipy.stats.beta
    p, q = binomial.ppf(error, 500, 501), binomial.isf(error, 101, 900)
    expected = scipy.stats.norm.ppf(p) - scipy.stats.norm.ppf(q)
    assert mu_bound(500, 1000, 100, 1000, error=error) == pytest.approx(expected, rel=1e-12)
    nothing, certain = mu_bound([0, 5, 1000], 1000, [5, 1000, 0], 1000, error=error)[[0, 2]]
    assert nothing == -math.inf
    assert 0 < certain < 10


def noisy(key, noise_stddev, count):
    return gaussian(key, count, noise_stddev)


def shares(rho, trials, keys=1):
    """Returns the shares of rho and of mu that are found, at a claim that is exactly spent."""
    attacks = [
        Attack(noisy, np.float32(1 / math.sqrt(2 * rho)), NUMBERS, claim)
        for claim in (Guarantee.zcdp(rho, **ABOUT), Guarantee.gaussian(math.sqrt(2 * rho), **ABOUT))
    ]
    found = [[audit(jax.random.key(k), attack, trials=trials) for k in range(keys)] for attack in attacks]
    assert all(result.verdict == "consistent" for results in found for result in results)
    return [np.median([result.lower_bound / result.claimed for result in results]) for results in found]


def test_gaussian_noise_is_nearly_reached():
    of_rho, of_mu = shares(0.5, 200_000)
    assert 0.9 < of_rho <= 1
    assert 0.95 < of_mu <= 1


@pytest.mark.parametrize("rho", [0.05, 0.125, 0.5, 1.0, 2.0])
def test_gaussian_noise_is_nearly_reached_with_a_million_trials(rho):
    of_rho, of_mu = shares(rho, 10**6, keys=5)
    assert of_rho >= 0.9
    assert of_mu >= 0.95


@pytest.mark.parametrize("rho", [0.05, 0.5, 2.0])
def test_half_of_what_is_spent_is_refuted(rho):
    """Checks that the claim's implication at one delta alone would let most of it pass."""
    noise = np.float32(1 / math.sqrt(2 * rho))
    for right, wrong in [
        (Guarantee.zcdp(rho, **ABOUT), Guarantee.zcdp(rho / 2, **ABOUT)),
        (Guarantee.gaussian(math.sqrt(2 * rho), **ABOUT), Guarantee.gaussian(0.9 * math.sqrt(2 * rho), **ABOUT)),
    ]:
        verdicts = [
            audit(jax.random.key(0), Attack(noisy, noise, NUMBERS, claim), trials=100_000).verdict
            for claim in (right, wrong)
        ]
        assert verdicts == ["consistent", "violated"]


def test_outputs_that_repeat():
    def keep(key, epsilon, label):
        return randomized_response(key, label, epsilon)

    rho = math.tanh(0.5)  # the Kullback-Leibler divergence: the largest D_a / a of two outcomes is at a = 1
    attack = Attack(keep, np.float32(1), (np.int32(0), np.int32(1)), Guarantee.zcdp(rho, **ABOUT))
    result = audit(jax.random.key(0), attack, trials=100_000)
    assert 0.9 * rho < result.lower_bound <= rho
    assert result.event.startswith("outcome in 2 cells, Rényi order 1.001")

    def tells_seldom(key, params, label):
        return jnp.where(jax.random.bernoulli(key, params), 1 + label, 0)

    attack = attack._replace(release=tells_seldom, params=np.float32(0.01), guarantee=Guarantee.zcdp(0.3, **ABOUT))
    assert audit(jax.random.key(0), attack, trials=200_000).verdict == "violated"
