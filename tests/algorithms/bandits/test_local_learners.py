"""Tsallis-INF, Exp3, upper bounds and Thompson sampling on reports: bounds, scales, clipping, errors."""

import math
from functools import partial

import jax.numpy as jnp
import pytest

from jaxdp.bandits import (
    _tsallis_inf,
    bounded_bandit,
    exp3,
    thompson,
    tsallis_inf,
    ucb,
)
from tests.algorithms.bandits.local_learners import KEY, regrets

FLOAT = jnp.result_type(float)


@pytest.mark.parametrize("report", ["rr", "laplace", "gaussian"])
def test_without_privacy_the_loss_is_exact(report):
    learner = exp3(num_arms=2, horizon=10, report=report, rewards="bounded")
    values = {"delta": 0.1} if report == "gaussian" else {}
    params = learner.params(epsilon=math.inf, **values)
    for reward in (0.0, 0.25, 1.0):
        _, said = learner.privatize(KEY(), params, (), None, 0, jnp.asarray(reward, FLOAT))
        assert float(_tsallis_inf.unit_loss(params.losses, said)) == 1 - reward


def test_bounded_rewards_are_played():
    for learner in (ucb(num_arms=3, rewards="bounded"), exp3(num_arms=3, horizon=300, rewards="bounded")):
        (regret,) = regrets(learner, bounded_bandit([0.85, 0.3, 0.2]), 300, [{"epsilon": math.inf}], lanes=10)
        assert 0 < regret.mean() < 0.6 * 300 * (0.55 + 0.65) / 3


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (tsallis_inf, {"num_arms": 1}, "num_arms must be an integer >= 2, got 1"),
        (tsallis_inf, {"num_arms": 2, "estimator": "is"}, "estimator must be one of iw, rv, got 'is'"),
        (tsallis_inf, {"num_arms": 2, "report": "laplace"}, "report must be one of rr, gaussian, got 'laplace'"),
        (tsallis_inf, {"num_arms": 2, "horizon": 5}, "horizon must be given for report='gaussian', and only then"),
        (tsallis_inf, {"num_arms": 2, "report": "gaussian"}, "horizon must be given for report='gaussian', and only"),
        (ucb, {"num_arms": 2, "report": "laplace"}, "report must be one of rr, gaussian, got 'laplace'"),
        (ucb, {"num_arms": 2, "rewards": "real"}, "rewards must be one of binary, bounded, got 'real'"),
        (thompson, {"num_arms": 2, "posterior": "exact"}, "posterior must be one of bits, debiased, got 'exact'"),
        (exp3, {"num_arms": 2, "horizon": 0}, "horizon must be an integer"),
    ],
)
def test_factory_errors(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (partial(tsallis_inf, num_arms=2), {"epsilon": 0.0}, "epsilon must be > 0, got 0"),
        (
            partial(tsallis_inf, num_arms=2, rewards="bounded"),
            {"epsilon": 1.0, "reward_low": 1.0},
            "reward_low must be < reward_high",
        ),
        (
            partial(tsallis_inf, num_arms=2, report="gaussian", horizon=9),
            {"epsilon": 1.0, "delta": 0.1, "failure_prob": 1.0},
            r"failure_prob must be in \(0, 1\), got 1",
        ),
        (partial(ucb, num_arms=2), {"epsilon": 1.0, "exploration_rate": math.nan}, "exploration_rate must be > 0"),
        (
            partial(exp3, num_arms=2, horizon=9),
            {"epsilon": 1.0, "learning_rate": -1.0},
            "learning_rate must be > 0, got -1",
        ),
        (partial(thompson, num_arms=2), {"epsilon": math.nan}, "epsilon must be > 0, got nan"),
    ],
)
def test_value_errors(make, values, message):
    with pytest.raises(ValueError, match=message):
        make().params(**values)
    with pytest.raises(ValueError, match=message):
        make().guarantee(**values)


def test_values_that_do_not_matter_are_refused():
    with pytest.raises(TypeError, match="delta"):
        ucb(num_arms=2).params(epsilon=1.0, delta=0.1)
    with pytest.raises(TypeError, match="failure_prob"):
        exp3(num_arms=2, horizon=5).params(epsilon=1.0, failure_prob=0.1)
