"""E-values have a mean of at most 1 under equal arms, at every time; four wrong ones are noticed."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from jaxdp.abtests._evidence import (
    SLOPE_SHARE,
    central_evidence,
    local_evidence,
    log_noise_mgf,
    mean_discordant,
)
from jaxdp.abtests._fixed import Setting, fixed_users
from jaxdp.abtests._rates import log_cosh, log_odds_ratio
from jaxdp.abtests._schedule import Schedule
from jaxdp.abtests._simulation import simulate_central, simulate_local

RUNS = 10_000
MOST = 0.055


def setting(rate=0.5, lift=0.1, epsilon=1.0, trust="local"):
    return Setting(rate, lift, epsilon, trust, 0.8, 0.05)


def largest_mean(evidence, pairs, rate):
    """Returns the largest mean over all stopping times of exp(evidence(control ones, treatment ones, pairs seen))."""
    value = np.zeros((pairs + 2, pairs + 2))  # after the last pair nothing follows
    for seen in range(pairs, -1, -1):
        control, treatment = np.meshgrid(np.arange(seen + 1), np.arange(seen + 1), indexing="ij")
        later = (
            (1 - rate) ** 2 * value[:-1, :-1]
            + rate * (1 - rate) * (value[1:, :-1] + value[:-1, 1:])
            + rate**2 * value[1:, 1:]
        )
        value = np.maximum(np.exp(evidence(control, treatment, max(seen, 1))), later)
    return float(value[0, 0])


def test_running_totals_are_no_batch():
    """Checks by exact enumeration that with D from running totals the mean passes 1, so batches are disjoint."""

    def totals(control, treatment, seen):
        return log_cosh(2.0 * (treatment - control)) - mean_discordant(seen, control, treatment) * log_cosh(2.0)

    assert largest_mean(totals, 100, 0.5) == pytest.approx(1.055, abs=5e-4)


def test_products_of_large_counts_do_not_wrap():
    ones = np.asarray([4 * 10**11])
    assert mean_discordant(10**12, ones, ones) == pytest.approx(2 * 4e11 * 0.6)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_batch_has_a_mean_of_at_most_one(rate):
    """Enumerates both arms of one batch of six: with the mean D over pairings, and two batches one after the other."""
    evidence, size = local_evidence(setting(rate=0.3, lift=0.5)), 6
    ones = np.arange(size + 1)
    chance = np.asarray([math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in ones])
    control, treatment = np.meshgrid(ones, ones, indexing="ij")
    lead, discordant = treatment - control, mean_discordant(size, control, treatment)
    both = np.outer(chance, chance)
    assert float((both * np.exp(evidence.log_value(lead, discordant))).sum()) <= 1
    pairs = [np.add.outer(part.ravel(), part.ravel()) for part in (lead, discordant)]
    two = np.multiply.outer(both.ravel(), both.ravel())
    assert float((two * np.exp(evidence.log_value(*pairs))).sum()) <= 1


def mean_of_one_pair(rate, slope, price):
    """Returns the mean of exp(slope S - price D) over the four outcomes of one pair with equal rates."""
    outcomes = itertools.product((0, 1), repeat=2)
    return sum(
        (rate if a else 1 - rate) * (rate if b else 1 - rate) * math.exp(slope * (b - a) - price * (a != b))
        for a, b in outcomes
    )


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9])
def test_one_slope_is_a_martingale_at_every_rate(rate):
    assert mean_of_one_pair(rate, 0.7, float(log_cosh(0.7))) == pytest.approx(1.0, abs=1e-12)
    assert mean_of_one_pair(rate, 0.7, 0.7**2 / 2) < 1  # the Gaussian mixture's, an upper bound of log cosh
    assert mean_of_one_pair(rate, 0.7, 0.9 * float(log_cosh(0.7))) > 1


@pytest.mark.parametrize(("epsilon", "slope"), [(0.1, 0.05), (1.0, 0.85), (3.0, 1.0)])
def test_the_noise_has_its_generating_function(epsilon, slope):
    k = np.arange(-4000, 4001)
    log_weights = -epsilon * np.abs(k)
    direct = float(logsumexp(log_weights + slope * k)) - float(logsumexp(log_weights))  # pyright: ignore[reportArgumentType]
    assert float(log_noise_mgf(np.asarray(slope), epsilon)) == pytest.approx(direct, rel=1e-9)


def test_slopes_stay_below_their_budgets():
    for rate, lift, epsilon in ((0.5, 0.1, 0.1), (0.02, 0.1, 1.0), (0.02, 10.0, 0.5), (0.5, 0.9, 20.0)):
        evidence = central_evidence(setting(rate, lift, epsilon, "central"), 1.0)
        assert evidence.lead_epsilon + evidence.discordant_epsilon == pytest.approx(epsilon)
        assert np.all(evidence.slopes <= SLOPE_SHARE * evidence.lead_epsilon * (1 + 1e-12))
        assert np.all(log_cosh(evidence.slopes) <= SLOPE_SHARE * evidence.discordant_epsilon * (1 + 1e-9))
        assert np.all(np.isfinite(evidence.log_noise))
        assert float(np.exp(evidence.log_weights).sum()) == pytest.approx(1.0)
    # The least variance of l S - c D: one small change of the split does not lower it.
    evidence, slope = central_evidence(setting(epsilon=1.0, trust="central"), 1.0), log_odds_ratio(0.5, 0.55) / 2

    def variance(lead_epsilon):
        return (slope / lead_epsilon) ** 2 + (float(log_cosh(slope)) / (1 - lead_epsilon)) ** 2

    assert variance(evidence.lead_epsilon) < min(variance(evidence.lead_epsilon + step) for step in (-0.01, 0.01))


def test_log_cosh_is_exact_at_both_ends():
    assert float(log_cosh(1e-9)) == pytest.approx(5e-19, rel=1e-9)
    assert float(log_cosh(1000.0)) == pytest.approx(1000 - math.log(2))
    assert float(log_cosh(-0.999)) == pytest.approx(math.log(math.cosh(0.999)), rel=1e-14)


class ForgetsNoise:
    """The planted mistake: the e-value of releases without their noise's generating functions."""

    def __init__(self, evidence):
        self.lead_epsilon, self.discordant_epsilon = evidence.lead_epsilon, evidence.discordant_epsilon
        self._evidence = evidence

    def log_value(self, leads, discordant, epochs):
        return self._evidence.log_value(leads, discordant, 0 * epochs)


class ClosedMixture:
    """The planted mistake: the closed form of the Gaussian mixture on noisy counts, each with a variance correction."""

    def __init__(self, planned):
        evidence = central_evidence(planned, 1.0)
        self.lead_epsilon, self.discordant_epsilon = evidence.lead_epsilon, evidence.discordant_epsilon
        self._local = local_evidence(planned)

    def log_value(self, leads, discordant, epochs):
        total = np.maximum(discordant, 0) + self._local.precision
        return 0.5 * np.log(self._local.precision / total) + leads**2 / (2 * total)


def false_alarms(planned, rate, wrong=None, runs=RUNS, multiple=100):
    """Returns the share of runs with equal arms that ever stop, up to `multiple` times the fixed test's users."""
    rng, threshold, most = (
        np.random.default_rng(11),
        math.log(1 / planned.failure_prob),
        multiple * fixed_users(planned),
    )
    if planned.trust == "local" or math.isinf(planned.epsilon):
        rates = planned._replace(rate=rate, lift=0.0).rates
        users = simulate_local(rates, local_evidence(planned), threshold, most, runs, rng)
    else:
        schedule = Schedule(max(1, round(0.3 * fixed_users(planned) / 2)), 0.1)
        evidence = wrong or central_evidence(planned, 1.0)
        users = simulate_central((rate, rate), evidence, schedule, threshold, most, runs, rng)
    return float(np.isfinite(users).mean())


@pytest.mark.parametrize(("trust", "epsilon"), [("local", 1.0), ("central", 1.0), ("central", 0.1)])
def test_equal_arms_are_rarely_called_different(trust, epsilon):
    planned = setting(epsilon=epsilon, trust=trust)
    assert false_alarms(planned, 0.5, runs=1_000, multiple=10) < 0.05 + 5 * math.sqrt(0.05 * 0.95 / 1_000)


@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.5, 0.98])
def test_the_error_holds_from_the_first_pair_to_a_hundred_times_the_plan(rate, epsilon, trust):
    planned = setting(rate, 0.1 if rate < 0.9 else -0.02, epsilon, trust)
    assert false_alarms(planned, rate) <= MOST


@pytest.mark.parametrize(("rate", "lift", "least"), [(0.02, 0.1, 0.1), (0.5, 0.1, 0.5)])
def test_noise_without_its_generating_function_is_noticed(rate, lift, least):
    planned = setting(rate, lift, 0.1, "central")
    wrong = ForgetsNoise(central_evidence(planned, 1.0))
    assert false_alarms(planned, rate, wrong, runs=1_000) > least


@pytest.mark.parametrize(("rate", "lift"), [(0.02, 0.1), (0.5, 0.1)])
def test_the_closed_mixture_of_noisy_counts_is_noticed(rate, lift):
    planned = setting(rate, lift, 0.1, "central")
    assert false_alarms(planned, rate, ClosedMixture(planned), runs=1_000) > 0.1
