"""Learners that find the best arm: few errors, stopping times that grow as they should, refused values."""

import functools
import math
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import bernoulli_bandit, gaussian_bandit, lil_ucb, successive_elimination

KEY = partial(jax.random.key, 8)


@functools.cache
def compiled(learner, means, horizon, engine):
    """A run, and the run of many lanes, compiled once."""
    run = jaxdp.simulator(learner, bernoulli_bandit(list(means)), horizon, engine=engine)
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def run(learner, means, lanes, *, horizon=10**7, engine="auto", **values):
    run, go = compiled(learner, means, horizon, engine)
    found = go(jaxdp.lane_keys(KEY(), lanes), run.params(**values))
    return {name: np.asarray(values) for name, values in found.items()}


EASY = (0.9, 0.2, 0.1)


def check_errors(found, failure_prob):
    """At most failure_prob of the runs err, up to 5 standard errors."""
    wrong = ~found["correct"].ravel()
    assert not found["censored"].any()
    assert wrong.mean() <= failure_prob + 5 * math.sqrt(failure_prob * (1 - failure_prob) / len(wrong))


@pytest.mark.parametrize("make", [lil_ucb, successive_elimination])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_errors_are_few(make, epsilon):
    check_errors(run(make(num_arms=3), EASY, 300, epsilon=epsilon, failure_prob=0.1), 0.1)


def test_bounds_that_are_too_narrow_err():
    learner = successive_elimination(num_arms=3)
    found = run(learner, EASY, 300, epsilon=1.0, failure_prob=0.1, confidence_multiplier=0.1)
    with pytest.raises(AssertionError):
        check_errors(found, 0.1)


def check_slope(make, low, high):
    """Of the logarithm of the median stopping time against that of c^2."""
    epsilons = (1.0, 2.0, 4.0)
    medians = [np.median(run(make(num_arms=2), (0.75, 0.25), 200, epsilon=epsilon)["rounds"]) for epsilon in epsilons]
    slope = np.polyfit([-2 * math.log(math.tanh(epsilon / 2)) for epsilon in epsilons], np.log(medians), 1)[0]
    assert low <= slope <= high, slope


@pytest.mark.parametrize(("make", "low", "high"), [(lil_ucb, 0.95, 1.07), (successive_elimination, 1.0, 1.2)])
def test_stopping_times_grow_like_the_square_of_the_noise(make, low, high):
    check_slope(make, low, high)


def test_those_of_an_approximation_do_not():
    """A quarter of the exponent missing."""
    with pytest.raises(AssertionError):
        check_slope(successive_elimination, 0.7, 0.9)


@pytest.mark.parametrize(("report", "horizon"), [("rr", 51), ("gaussian", 251)])
def test_bounded_rewards_in_blocks(report, horizon):
    """Bit for bit as round by round, through several drops and looks inside a sweep."""
    learner = successive_elimination(num_arms=4, report=report, rewards="bounded")
    extra: Any = {"delta": 0.1} if report == "gaussian" else {}
    world = gaussian_bandit([0.9, 0.5, 0.2, 0.1], stddev=0.3)
    both = []
    for engine in ("rounds", "blocks"):
        run = jaxdp.simulator(learner, world, horizon, engine=engine)
        params = run.params(epsilon=3.0, confidence_multiplier=0.4, **extra)
        found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jaxdp.lane_keys(KEY(), 20), params)
        both.append({name: np.asarray(values) for name, values in found.items()})
    assert len({*both[0]["rounds"].tolist()}) > 1
    for name, values in both[0].items():
        np.testing.assert_array_equal(values, both[1][name])


def test_counts_stop_as_rounds_do():
    learner = successive_elimination(num_arms=3)
    values: Any = {"epsilon": 2.0, "confidence_multiplier": 0.4}
    one, other = (run(learner, (0.9, 0.5, 0.1), 600, engine=engine, **values) for engine in ("blocks", "counts"))
    for name in ("rounds", "correct", "pseudo_regret"):
        mine, theirs = one[name].ravel().astype(float), other[name].ravel().astype(float)
        error = math.sqrt((mine.var() + theirs.var()) / 600)
        assert abs(mine.mean() - theirs.mean()) <= 5 * error, name
    shift = 0.25 * one["rounds"].mean()
    error = math.sqrt((one["rounds"].var() + other["rounds"].var()) / 600)
    assert abs(one["rounds"].mean() + shift - other["rounds"].mean()) > 5 * error  # planted


def test_long_runs_by_counts():
    """About 5 10^6 rounds a lane, in many fewer steps."""
    found = run(
        successive_elimination(num_arms=2),
        (0.52, 0.5),
        8,
        engine="counts",
        horizon=2**30,
        epsilon=0.5,
    )
    assert found["correct"].all()
    assert found["rounds"].min() > 4 * 10**6


def test_the_heuristic_is_quicker():
    slow, quick = (
        run(learner, EASY, 300, epsilon=2.0)["rounds"]
        for learner in (lil_ucb(num_arms=3), lil_ucb(num_arms=3, constants="heuristic"))
    )
    assert np.median(quick) < np.median(slow) / 3


@pytest.mark.parametrize("make", [lil_ucb, successive_elimination])
@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({"num_arms": 1}, {}, "num_arms must be a whole number >= 2, got 1"),
        ({"report": "laplace"}, {}, "whose tails no finite variance proxy bounds"),
        ({"report": "none"}, {}, "report must be one of rr, gaussian, got 'none'"),
        ({"rewards": "other"}, {}, "rewards must be one of binary, bounded, got 'other'"),
        ({}, {"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({}, {"failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({"rewards": "bounded"}, {"reward_low": 1.0, "reward_high": 1.0}, "reward_low must be < reward_high"),
        ({"report": "gaussian"}, {"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
    ],
)
def test_bad_arguments(make, arguments, values, message):
    with pytest.raises(ValueError, match=message):
        make(**{"num_arms": 3, **arguments}).params(**{"epsilon": 1.0, **values})


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="constants must be one of theory, heuristic"):
        lil_ucb(num_arms=3, constants="best")
    with pytest.raises(ValueError, match="confidence_multiplier must be > 0"):
        successive_elimination(num_arms=3).params(epsilon=1.0, confidence_multiplier=-1.0)
    for make in (lil_ucb, successive_elimination):
        with pytest.raises(TypeError, match="reward_low"):
            make(num_arms=3).params(epsilon=1.0, reward_low=0.0)
