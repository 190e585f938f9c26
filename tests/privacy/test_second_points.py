"""Mistakes in what comes late, as after a cap, are flagged at an entry's second audited point; right twins are not."""

import dataclasses

import jax
import pytest

from jaxdp import registry
from jaxdp.audit import exact_budget, scoreboard
from jaxdp.registry.claims import target
from tests.privacy.planted_seconds import SECONDS, a_budget_of_all_decisions

TRIALS = 20_000
SURE = 0.9999  # of a right twin's row: its claim may be tight
BY_OUTPUTS = ("a cut chosen with the labels", "ones counted wrongly")


def row(given, *, confidence=0.95):
    (found,) = scoreboard(jax.random.key(0), {"name": given}, trials=TRIALS, searched=False, confidence=confidence)
    return found


def right_of(name):
    of = SECONDS[name][0]
    return registry.attacks([of])[of]


def outputs_alone(made):
    """Returns the second point's first path, without grey box and without a written distribution."""
    return next(iter(made.second.attacks.values()))


@pytest.mark.parametrize("name", BY_OUTPUTS)
def test_outputs_tell_a_mistake(name):
    found = row(outputs_alone(target(SECONDS[name][1]())))
    assert found.verdict == "violated", found
    found = row(outputs_alone(right_of(name)), confidence=SURE)
    assert found.verdict == "consistent", found


@pytest.mark.parametrize("name", SECONDS)
def test_a_mistake_is_flagged(name):
    found = row(target(SECONDS[name][1]()))
    assert found.verdict == "violated", found


def test_a_distribution_tells_that_a_budget_is_passed():
    """Checks that a right one is below the claim; at the first point either is."""
    right, wrong = right_of("a budget of all decisions"), target(a_budget_of_all_decisions())
    for made, is_wrong in ((right, False), (right.second, False), (wrong, False), (wrong.second, True)):
        assert made is not None
        assert made.distributions is not None
        assert made.guarantee.rho is not None
        assert (exact_budget(*made.distributions(), made.guarantee) > made.guarantee.rho) == is_wrong


@pytest.mark.parametrize("name", [*BY_OUTPUTS, "a budget of all decisions"])
def test_the_first_point_alone_misses_it(name):
    found = row(dataclasses.replace(target(SECONDS[name][1]()), second=None), confidence=SURE)
    assert found.verdict == "consistent", found


@pytest.mark.parametrize("name", SECONDS)
def test_a_right_twin_is_not(name):
    found = row(right_of(name), confidence=SURE)
    assert found.verdict == "consistent", found
