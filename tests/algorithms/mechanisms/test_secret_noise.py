"""Noise of releases: exact rational inequalities of the flip's threshold, and of the sampler by enumeration."""

import math
import random
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from jaxdp.mechanisms import (
    _secret_noise,
    secret_discrete_gaussian,
    secret_discrete_laplace,
    secret_randomized_response,
)
from jaxdp.mechanisms._secret_noise import (
    attempt_gaussian,
    attempt_laplace,
    bernoulli_exp,
    draw_gaussian,
    draw_laplace,
    flip_threshold,
)


def exponential(value, terms=400):
    """Returns rational bounds of e^value, for a fraction in (0, 50]: a partial sum, and the sum with its remainder."""
    total, term = Fraction(0), Fraction(1)
    for n in range(1, terms):
        total, term = total + term, Fraction(math.floor(term * value / n * 2**200), 2**200)
    return total, (total + Fraction(terms, 2**190)) * (1 + Fraction(1, 2**150))


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 0.7, 1.0, 4.0, 20.0, 44.0, Fraction(1, 3)])
def test_the_threshold_is_the_least_one_that_is_private(epsilon):
    """Checks (2^64 - t) / t <= e^epsilon exactly; planted: one less, which is not private."""
    threshold = flip_threshold(Fraction(epsilon))
    low, high = exponential(Fraction(epsilon))
    assert 2**64 - threshold <= threshold * low
    assert threshold <= 2**63
    assert 2**64 - (threshold - 1) > (threshold - 1) * high


def test_the_threshold_at_extreme_budgets():
    assert flip_threshold(Fraction(1000)) == flip_threshold(Fraction(1e300)) == 1
    assert flip_threshold(Fraction(5e-324)) == 2**63


def test_words_below_the_threshold_flip(monkeypatch):
    threshold = flip_threshold(Fraction(1))
    words = np.array([threshold - 1, threshold, 0, 2**64 - 1], np.uint64)
    monkeypatch.setattr(_secret_noise.secrets, "token_bytes", lambda count: words.tobytes()[:count])
    for bits in ([0, 0, 1, 1], np.array([False, False, True, True])):
        assert secret_randomized_response(bits, 1.0).tolist() == [1, 0, 0, 1]
    assert secret_randomized_response(np.array([[0, 1]]), 1.0).tolist() == [[1, 1]]


def test_reports_are_flipped_as_often_as_they_should(monkeypatch):
    generator = np.random.default_rng(0)
    monkeypatch.setattr(_secret_noise.secrets, "token_bytes", generator.bytes)
    flips, chance = 100_000, 1 / (1 + math.exp(1.0))
    share = (secret_randomized_response(np.ones(flips, int), 1.0) == 0).mean()
    assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / flips)


def enumerate_paths(program, smallest):
    """Runs program(choose) on every path of choices; returns the mass of each result, and the mass of paths cut off.

    `choose(chances)` returns an index with these probabilities. A path of less than the smallest mass is cut off.
    """
    masses: dict[Any, Any] = {}
    paths: list[tuple[int, ...]] = [()]
    cut: Any = Fraction(0)
    while paths:
        path = paths.pop()
        taken, weight, used = list(path), Fraction(1), 0

        def choose(chances, taken=taken):
            nonlocal weight, used
            if used == len(taken):
                paths.extend((*taken, index) for index in range(1, len(chances)))
                taken.append(0)
            used += 1
            weight *= chances[taken[used - 1]]
            if weight < smallest:
                raise StopIteration
            return taken[used - 1]

        try:
            value = program(choose)
            masses[value] = masses.get(value, 0) + weight
        except StopIteration:
            cut += weight
    return masses, cut


class Uniform(NamedTuple):
    """A uniform integer in [0, bound), of which only a comparison is drawn."""

    bound: int
    choose: Any

    def __lt__(self, number):
        return self.choose([Fraction(number, self.bound), 1 - Fraction(number, self.bound)]) == 0


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(1, 2), Fraction(3, 7), Fraction(0)])
def test_the_coin_of_an_exponential_is_exact(exponent):
    """Checks exp(-exponent) between the rational bounds of an enumeration; planted: the opposite outcome."""

    def toss(choose):
        below: Any = partial(Uniform, choose=choose)
        return bernoulli_exp(exponent.numerator, exponent.denominator, below)

    masses, cut = enumerate_paths(toss, Fraction(1, 10**15))
    assert sum(masses.values()) + cut == 1
    assert cut < Fraction(1, 10**13)
    low, high = exponential(exponent)
    assert masses[True] <= 1 / low
    assert 1 / high <= masses[True] + cut
    assert not 1 / high - cut <= masses.get(False, 0) <= 1 / low, "planted: an even trial, for an odd one"


def laplace_probabilities(epsilon, monkeypatch):
    """Enumerates one attempt of the sampler, with exact coins; returns P(k) given that it is not rejected."""

    def draw(choose):
        def toss(numerator, denominator, _):
            chance = math.exp(-numerator / denominator)
            return choose([chance, 1 - chance]) == 0

        monkeypatch.setattr(_secret_noise, "bernoulli_exp", toss)
        return attempt_laplace(epsilon, lambda bound: choose([1 / bound] * bound))

    masses, cut = enumerate_paths(draw, 1e-14)
    rejected = masses.pop(None)
    assert cut < 1e-10
    return {k: float(mass / (1 - rejected)) for k, mass in masses.items()}


def violates(chances, epsilon):
    """Returns whether noise with these probabilities hides a change by 1 at less than epsilon allows."""
    pairs = [(chances[k], chances[k + 1]) for k in range(-5, 5)]
    return any(max(a / b, b / a) > math.exp(epsilon) * (1 + 1e-6) for a, b in pairs)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3, 2), Fraction(2), Fraction(5, 7)])
def test_the_sampler_is_exact(epsilon, monkeypatch):
    """Compares with the formula, whose logarithms have no error above 1e-6; planted: noise of a larger budget."""
    chances = laplace_probabilities(epsilon, monkeypatch)
    for k in range(-5, 6):
        assert chances[k] == pytest.approx(math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)), rel=1e-7)
    assert not violates(chances, epsilon)
    assert violates(laplace_probabilities(epsilon * Fraction(21, 20), monkeypatch), epsilon)


def test_draws_have_the_distribution_at_a_float_s_epsilon():
    epsilon, generator, draws = 0.7, random.Random(3), 20_000
    noise = np.array([draw_laplace(Fraction(epsilon), generator.randrange) for _ in range(draws)])
    cells = np.arange(-5, 6)
    chances = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(cells))
    counts = np.array([(noise == cell).sum() for cell in cells])
    observed, expected = np.append(counts, draws - counts.sum()), np.append(chances, 1 - chances.sum()) * draws
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    planted = np.exp(-1.1 * epsilon * np.abs(cells)) * math.tanh(0.55 * epsilon)
    assert stats.chisquare(observed, np.append(planted, 1 - planted.sum()) * draws).pvalue < 1e-6


def gaussian_probabilities(variance, monkeypatch):
    """Enumerates one attempt of the Gaussian sampler, given exact coins and Laplace draws."""

    def draw(choose):
        def toss(numerator, denominator, _):
            chance = math.exp(-numerator / denominator)
            return choose([chance, 1 - chance]) == 0

        def laplace(epsilon, _):
            weights = np.exp(-float(epsilon) * np.abs(np.arange(-60, 61)))
            return choose((weights / weights.sum()).tolist()) - 60

        monkeypatch.setattr(_secret_noise, "bernoulli_exp", toss)
        monkeypatch.setattr(_secret_noise, "draw_laplace", laplace)
        below: Any = None  # only the replaced functions call it
        return attempt_gaussian(variance, below)

    masses, cut = enumerate_paths(draw, 1e-13)
    rejected = masses.pop(None)
    assert cut < 1e-9
    return {k: float(mass / (1 - rejected)) for k, mass in masses.items()}


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(25, 4)])
def test_the_gaussian_sampler_is_exact(variance, monkeypatch):
    """Compares with the formula; planted: a variance that is smaller by a twentieth."""
    chances = gaussian_probabilities(variance, monkeypatch)
    cells = np.arange(-30, 31)

    def exact(spread):
        weights = np.exp(-(cells**2) / (2 * float(spread)))
        return weights / weights.sum()

    probabilities = np.array([chances.get(k, 0) for k in cells])
    assert probabilities == pytest.approx(exact(variance), abs=1e-8)
    assert probabilities != pytest.approx(exact(variance * Fraction(19, 20)), abs=1e-3)


def test_gaussian_draws_have_the_distribution_at_a_large_variance():
    """Tests quantiles of normal noise, up to steps; planted: variance larger by a tenth."""
    generator, draws = random.Random(4), 20_000
    noise = np.array([draw_gaussian(Fraction(2**40 + 1, 3), generator.randrange) for _ in range(draws)])
    stddev = math.sqrt((2**40 + 1) / 3)
    assert stats.kstest(noise / stddev, "norm").pvalue > 1e-3
    assert stats.chi2(draws).sf(np.sum((noise / stddev) ** 2)) > 1e-3
    assert stats.chi2(draws).cdf(np.sum((noise / stddev) ** 2) / 1.1) < 1e-6


def test_draws_are_secret_and_whole():
    spread = secret_discrete_gaussian(40, 2.0**50)
    assert all(type(one) is int for one in spread)
    assert spread != secret_discrete_gaussian(40, 2.0**50)
    noise = secret_discrete_laplace(40, 0.01)
    assert all(type(one) is int for one in noise)
    assert noise != secret_discrete_laplace(40, 0.01)
    assert secret_discrete_laplace(0, 1.0) == []


def test_wrong_arguments_are_refused():
    for epsilon in (0.0, math.inf, math.nan, -1.0, Fraction(0)):
        for call in (lambda e: secret_randomized_response([0, 1], e), lambda e: secret_discrete_laplace(1, e)):
            with pytest.raises(ValueError, match="epsilon must be"):
                call(epsilon)
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        secret_randomized_response([0, 2], 1.0)
    with pytest.raises(ValueError, match="labels must be integers or bool"):
        secret_randomized_response([0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="size must be"):
        secret_discrete_laplace(-1, 1.0)
    with pytest.raises(ValueError, match="size must be"):
        secret_discrete_gaussian(-1, 1.0)
    assert secret_discrete_gaussian(0, np.float32(2.0)) == secret_discrete_gaussian(0, np.int64(2)) == []  # pyright: ignore
    for variance in (0.0, math.inf, math.nan, -1.0, "1", True):
        with pytest.raises(ValueError, match="variance must be"):
            secret_discrete_gaussian(1, variance)  # pyright: ignore[reportArgumentType]
