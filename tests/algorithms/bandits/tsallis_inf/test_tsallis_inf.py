"""Tests of `tsallis_inf` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import (
    _tsallis_inf,
    bernoulli_bandit,
    drifting_bandit,
    tsallis_inf,
)
from tests.algorithms.bandits.local_learners import KEY, regrets

MEANS = [0.9, 0.5, 0.5, 0.5]
HORIZON = 4000
FLOAT = jnp.result_type(float)


def bound(estimator, epsilon, arms, horizon):
    """Returns SPEC's bounds, from the papers, times c."""
    factor = 1 / math.tanh(epsilon / 2)
    if estimator == "iw":
        return factor * (4 * math.sqrt(arms * horizon) + 1)
    return factor * (2 * math.sqrt(arms * horizon) + 10 * arms * math.log(horizon) + 16)


def check_bound(estimator, world, epsilons=(1.5, math.inf), share=1.0):
    found = regrets(tsallis_inf(num_arms=4, estimator=estimator), world, HORIZON, [{"epsilon": e} for e in epsilons])
    for epsilon, regret in zip(epsilons, found, strict=True):
        most = share * bound(estimator, epsilon, 4, HORIZON)
        assert regret.mean() + 3 * regret.std() / math.sqrt(len(regret)) < most, (epsilon, most, regret.mean())


@pytest.mark.parametrize("estimator", ["iw", "rv"])
def test_regret_stays_below_its_bound(estimator):
    check_bound(estimator, drifting_bandit(MEANS))


def test_negative_losses_are_not_stable(monkeypatch):
    """Plays an easy instance, which costs a quarter of the bound.

    Planted: rewards as negative losses, without the shift to [0, 1]. Then one reward of a seldom played arm makes it
    the played arm.
    """
    check_bound("iw", bernoulli_bandit(MEANS), share=0.25)
    monkeypatch.setattr(_tsallis_inf, "unit_loss", lambda params, report: -report)
    with pytest.raises(AssertionError):
        check_bound("iw", bernoulli_bandit(MEANS), share=0.25)


def test_gaussian_reports_are_shifted(monkeypatch):
    """Checks the reach of noise that is small for it, and regret below uniform play; gains as losses fail both."""
    rounds = 1000
    learner, values = tsallis_inf(num_arms=4, report="gaussian", horizon=rounds), {"epsilon": 30.0, "delta": 0.1}
    leaves = learner.params(**values)
    stddev, reach = float(leaves.report.noise_stddev), float(leaves.losses.reach)
    assert reach == pytest.approx(0.5 + stddev * math.sqrt(2 * math.log(2 * rounds / 0.05)), rel=1e-5)
    uniform = rounds * (max(MEANS) - np.mean(MEANS))

    def check():
        (regret,) = regrets(learner, bernoulli_bandit(MEANS), rounds, [values])
        assert regret.mean() + 3 * regret.std() / math.sqrt(len(regret)) < 0.7 * uniform

    check()
    right = _tsallis_inf.unit_loss
    monkeypatch.setattr(_tsallis_inf, "unit_loss", lambda params, report: 1 - right(params, report))
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_losses_of_randomized_responses_are_bits(epsilon):
    """Checks that the probability of a loss of 1 is (1 + loss (e^epsilon - 1)) / (e^epsilon + 1)."""
    learner = tsallis_inf(num_arms=2, rewards="bounded")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon, reward_low=-1.0, reward_high=3.0))
    keys = jax.random.split(KEY(), 20_000)
    for reward, loss in ((-1.0, 1.0), (2.0, 0.25), (9.0, 0.0), (math.nan, 1.0)):
        report = jax.vmap(lambda key, r=reward: learner.privatize(key, params, (), None, 0, jnp.asarray(r, FLOAT))[1])(
            keys
        )
        losses = np.asarray(jax.vmap(lambda y: _tsallis_inf.unit_loss(params.losses, y))(report), float)
        assert np.minimum(losses, 1 - losses).max() < 1e-5
        share = (1 + loss * math.expm1(epsilon)) / (math.exp(epsilon) + 1)
        assert abs(losses.mean() - share) < 5 * math.sqrt(max(share * (1 - share), 1e-4) / len(keys)) + 1e-5
