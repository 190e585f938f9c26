"""The claim of one person who holds several units: group privacy, and composition of reports in the local model."""

import math

import numpy as np
import pytest

from jaxdp import Guarantee

ABOUT = {"privacy_unit": "one answer", "argument": "noise"}
VOTER = {"privacy_unit": "one voter"}


def test_budgets():
    for model, factor in (("central", 9), ("joint", 9), ("local", 3)):
        about = {**ABOUT, "trust_model": model}
        assert Guarantee.pure(0.5, **about).at_user_level(3, **VOTER).epsilon == 1.5
        assert Guarantee.zcdp(0.1, **about).at_user_level(3, **VOTER).rho == pytest.approx(factor * 0.1)
        assert Guarantee.gaussian(0.1, **about).at_user_level(3, **VOTER).mu == pytest.approx(math.sqrt(factor) * 0.1)
        claim = Guarantee.approximate(0.5, 1e-6, **about).at_user_level(3, **VOTER)
        times = 3 if model == "local" else 1 + math.exp(0.5) + math.exp(1)
        assert (claim.epsilon, claim.delta) == (1.5, pytest.approx(times * 1e-6))
        assert str(claim).endswith(f"{model}, one voter")
        assert not Guarantee.none(**about).at_user_level(3, **VOTER).is_private
        assert Guarantee.approximate(0.5, 0.4, **about).at_user_level(3, **VOTER).kind == "none"
        assert Guarantee.approximate(800.0, 1e-9, **about).at_user_level(2, **VOTER).is_private == (model == "local")
        assert Guarantee.pure(0.5, **about).at_user_level(1, **VOTER).argument == "noise"


def test_composition_is_that_of_compose():
    claim = Guarantee.approximate(0.5, 1e-6, trust_model="local", **ABOUT)
    both = claim.compose(claim)
    person = claim.at_user_level(2, **VOTER)
    assert (person.epsilon, person.delta) == (both.epsilon, both.delta)


def test_shuffle_keeps_its_batch():
    claim = Guarantee.approximate(0.5, 1e-6, trust_model="shuffle", batch=100, local_epsilon=2.0, **ABOUT)
    person = claim.at_user_level(2, **VOTER)
    assert (person.batch, person.local_epsilon, person.epsilon) == (100, 4.0, 1.0)
    assert person.delta == pytest.approx((1 + math.exp(0.5)) * 1e-6)


def hockey(epsilon, p, q):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def test_a_chain_of_worst_distributions_stays_within_and_a_smaller_delta_does_not():
    """Chains distributions, each (eps, delta) from the next: the ends reach the group's delta."""
    epsilon, delta, units = 0.4, 0.01, 3
    grow = math.exp(epsilon)
    # The first outcome's probability grows as fast as it may, and the rest's shrinks.
    chain = [0.02]
    for _ in range(units):
        chain.append(grow * chain[-1] + delta)
    distributions = [np.array([p, 1 - p]) for p in chain]
    for one, other in zip(distributions[1:], distributions[:-1], strict=True):
        assert max(hockey(epsilon, one, other), hockey(epsilon, other, one)) <= delta + 1e-12
    claim = Guarantee.approximate(epsilon, delta, trust_model="central", **ABOUT).at_user_level(units, **VOTER)
    reached = hockey(claim.epsilon, distributions[-1], distributions[0])
    assert reached == pytest.approx(claim.delta)
    assert reached > 1.2 * units * delta  # planted: the deltas added up


def test_gaussian_groups():
    """Moves k means together, which are then k mu apart; independent reports are the root of k times mu apart."""
    mu, units = 0.3, 4
    shift = np.full(units, mu)
    group = Guarantee.gaussian(mu, trust_model="central", **ABOUT).at_user_level(units, **VOTER)
    reports = Guarantee.gaussian(mu, trust_model="local", **ABOUT).at_user_level(units, **VOTER)
    assert group.mu == pytest.approx(shift.sum())
    assert reports.mu == pytest.approx(np.linalg.norm(shift))
    assert group.epsilon_at(1e-3) > reports.epsilon_at(1e-3)


def test_errors():
    with pytest.raises(ValueError, match="units must be an integer >= 1, got 0"):
        Guarantee.pure(0.5, trust_model="central", **ABOUT).at_user_level(0, **VOTER)
