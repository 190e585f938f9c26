"""Tests of `pairwise_elimination` alone."""

import functools
import math
from typing import Any

import numpy as np
import pytest

from jaxdp.bandits import pairwise_elimination
from tests.algorithms.bandits.best_arm import run
from tests.algorithms.bandits.pairwise_elimination.golden import pairwise_elimination as plain

LANES = 1_000
CASES: dict[str, tuple[tuple[float, ...], dict[str, float]]] = {
    "gaps": ((0.8, 0.3, 0.2), {"epsilon": 2.0, "failure_prob": 0.2}),
    "clear": ((0.8, 0.3, 0.2), {"epsilon": math.inf, "failure_prob": 0.2}),
    "tolerance": ((0.6, 0.55, 0.2), {"epsilon": 2.0, "failure_prob": 0.2, "tolerance": 0.2}),
}


@functools.cache
def plain_outputs(name, **changed):
    means, values = CASES[name]
    case: dict[str, Any] = {"means": means, **values, **changed}
    return plain(np.random.default_rng(3), 4 * LANES, **case)


def check(found, others):
    for output, theirs in others.items():
        mine = found[output].reshape(LANES, -1)[:, -1].astype(float)
        error = math.sqrt(mine.var() / len(mine) + theirs.var() / len(theirs))
        assert abs(mine.mean() - theirs.mean()) <= 5 * max(error, 0.1 / LANES), output


def play(name, engine):
    means, values = CASES[name]
    horizon = 2**20 if engine == "counts" else 2**14
    return run(pairwise_elimination(num_arms=3), means, LANES, horizon=horizon, engine=engine, **values)


@pytest.mark.parametrize("engine", ["rounds", "counts"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_independent_version(name, engine):
    found = play(name, engine)
    assert not found["censored"].any()
    check(found, plain_outputs(name))


@pytest.mark.parametrize("changed", [{"cost": 1.2}, {"failure_prob": 0.1}, {"epsilon": 1.6}])
def test_another_one_does_not(changed):
    with pytest.raises(AssertionError):
        check(play("gaps", "counts"), plain_outputs("gaps", **changed))


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_errors_are_few(epsilon):
    """Counts runs that were cut off as errors: after an error the other two arms tie."""
    values: dict[str, Any] = {"epsilon": epsilon, "failure_prob": 0.1}
    found = run(pairwise_elimination(num_arms=3), (0.6, 0.5, 0.5), 100, engine="counts", **values)
    wrong = (found["censored"] | ~found["correct"].ravel()).mean()
    assert wrong <= 0.1 + 5 * math.sqrt(0.09 / 100)


def test_equal_arms_are_dropped_rarely_at_any_time():
    """Checks two arms of one rate up to 10^7 rounds: each may be dropped with probability failure_prob."""
    values: dict[str, Any] = {"epsilon": 1.0, "failure_prob": 0.2}
    found = run(pairwise_elimination(num_arms=2), (0.3, 0.3), 200, horizon=10**7, engine="counts", **values)
    share = (~found["censored"]).mean()
    assert share <= 0.4 + 5 * math.sqrt(0.24 / 200)


def test_a_tolerance_ends_between_equal_arms():
    values: dict[str, Any] = {"epsilon": 1.0, "tolerance": 0.05}
    found = run(pairwise_elimination(num_arms=4), (0.5, 0.5, 0.5, 0.2), 100, engine="counts", **values)
    assert not found["censored"].any()
    assert (found["simple_regret"] <= 0.05).all()


@pytest.mark.parametrize(("means", "rounds"), [((0.5, 0.45, 0.45, 0.45), 5.3e4), ((0.022, 0.02, 0.02, 0.02), 2.6e7)])
def test_rounds_are_those_known(means, rounds):
    """Compares with known figures at epsilon = 1, which no gap was used for."""
    found = run(pairwise_elimination(num_arms=4), means, 400, horizon=2**30, engine="counts", epsilon=1.0)
    ended = ~found["censored"]
    assert ended.mean() >= 0.97  # after an error the other arms tie, and the run does not end
    assert found["correct"][ended].all()
    played = found["rounds"][ended].astype(float)
    assert abs(played.mean() - rounds) < 5 * played.std() / math.sqrt(len(played)) + 0.02 * rounds


@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({"num_arms": 1}, {}, "num_arms must be an integer >= 2, got 1"),
        ({}, {"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({}, {"failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({}, {"tolerance": -0.1}, "tolerance must be >= 0"),
        ({}, {"tolerance": 1.0}, "tolerance must be < 1, got 1.0"),
        ({}, {"tolerance": math.nan}, "tolerance must be"),
    ],
)
def test_bad_arguments(arguments, values, message):
    with pytest.raises(ValueError, match=message):
        pairwise_elimination(**{"num_arms": 3, **arguments}).params(**{"epsilon": 1.0, **values})
