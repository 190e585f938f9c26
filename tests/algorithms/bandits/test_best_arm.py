"""Learners that find the best arm: few errors, stopping times that grow as they should, refused values."""

import math

import pytest

from jaxdp.bandits import lil_ucb, successive_elimination
from tests.algorithms.bandits.best_arm import check_errors, check_slope, run

EASY = (0.9, 0.2, 0.1)


@pytest.mark.parametrize("make", [lil_ucb, successive_elimination])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_errors_are_few(make, epsilon):
    check_errors(run(make(num_arms=3), EASY, 300, epsilon=epsilon, failure_prob=0.1), 0.1)


@pytest.mark.parametrize(("make", "low", "high"), [(lil_ucb, 0.95, 1.07), (successive_elimination, 1.0, 1.2)])
def test_stopping_times_grow_like_the_square_of_the_noise(make, low, high):
    check_slope(make, low, high)


@pytest.mark.parametrize("make", [lil_ucb, successive_elimination])
@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({"num_arms": 1}, {}, "num_arms must be an integer >= 2, got 1"),
        ({"report": "laplace"}, {}, "Laplace noise has no finite variance proxy"),
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
