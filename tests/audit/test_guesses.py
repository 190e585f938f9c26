"""Bounds from guesses of the input hold as often as they say, with and without delta."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

from jaxdp.audit.guesses import fast_guess_bound, guess_bound, largest_set_aside


@pytest.mark.parametrize("guesses", [1, 50, 400])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_holds_as_often_as_it_says(guesses, epsilon):
    """Checks exactly, for as many right guesses as the claim allows. Planted: the frequency in place of a limit."""
    right = np.arange(guesses + 1)
    mass = scipy.stats.binom.pmf(right, guesses, expit(epsilon))
    bounds = np.array([guess_bound(n, guesses, 1000, sides=2, delta=0.0, error=0.05) for n in right])
    assert mass[bounds > epsilon].sum() <= 0.05
    with np.errstate(divide="ignore"):
        assert mass[np.log(right) - np.log(guesses - right) > epsilon].sum() > 0.05


@pytest.mark.parametrize("delta", [1e-3, 0.05, 0.3])
def test_what_is_told_with_probability_delta_is_set_aside(delta):
    """Plays the worst case of a claim: the input is revealed with probability delta, else sent by a randomized
    response.
    """
    rng, coins, epsilon = np.random.default_rng(0), 4000, 1.0
    told = rng.binomial(coins, delta, 2000)
    right = told + rng.binomial(coins - told, expit(epsilon))
    bounds = [guess_bound(n, coins, coins, sides=2, delta=delta, error=0.05) for n in right]
    assert np.mean(np.array(bounds) > epsilon) <= 0.05
    assert np.median(bounds) > 0.6
    wrong = [guess_bound(n, coins, coins, sides=2, delta=delta / 2, error=0.05) for n in right]  # planted: of one side
    assert delta < 0.01 or np.mean(np.array(wrong) > epsilon) > 0.05


def test_one_side_by_hand():
    limit = scipy.stats.beta.ppf(0.05, 300, 401 - 300)
    assert guess_bound(300, 400, 5000, sides=1, delta=0.0, error=0.05) == pytest.approx(math.log(limit / (1 - limit)))
    aside = int(scipy.stats.binom.isf(0.01, 5000, 0.005))
    limit = scipy.stats.beta.ppf(0.04, 300 - aside, 401 - 300)
    found = guess_bound(300, 400, 5000, sides=1, delta=0.01, error=0.05)
    assert found == pytest.approx(math.log(limit / (1 - limit)))


@pytest.mark.parametrize("coins", [1, 100, 10**6, 3 * 10**9])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3, 0.5, 0.999])
def test_as_many_are_set_aside_as_a_binomial_is_at_most(coins, delta):
    for sides in (1, 2):
        expected = scipy.stats.binom.isf(0.2 * 0.05, coins, sides * delta / 2)
        assert abs(largest_set_aside(coins, sides=sides, delta=delta, error=0.05) - expected) <= (coins > 10**8)


def test_the_quick_bound_is_about_the_same():
    right, guesses = np.meshgrid([3, 30, 500, 9000], [4, 40, 700, 12_000])
    right, wrong = right[right <= guesses], (guesses - right)[right <= guesses]
    for delta, sides in ((0.0, 2), (1e-4, 1)):
        options = {"sides": sides, "delta": delta, "error": 0.05}
        exact = [guess_bound(a, a + b, 20_000, **options) for a, b in zip(right, wrong, strict=True)]
        np.testing.assert_allclose(fast_guess_bound(right, wrong, 20_000, **options), exact, atol=0.6, rtol=0.05)


def test_nothing_is_proved_by_nothing():
    for right, guesses in [(0, 0), (0, 10), (1, 10)]:
        assert guess_bound(right, guesses, 1000, sides=1, delta=0.1, error=0.05) == -math.inf
    assert (
        fast_guess_bound(np.zeros(2), np.array([0.0, 5.0]), 100, sides=1, delta=0.0, error=0.05).tolist()
        == [-math.inf] * 2
    )


def test_errors():
    for right, guesses in [(-1, 10), (11, 10), (5, 2001)]:
        with pytest.raises(ValueError, match=r"counts must be integers in \[0, trials\]"):
            guess_bound(right, guesses, 2000, sides=1, delta=0.0, error=0.05)
