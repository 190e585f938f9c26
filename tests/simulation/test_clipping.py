"""Rewards outside the interval to which a learner clips them: warned of where means show it, and counted if asked."""

import math
import warnings

import jax
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import (
    bernoulli_bandit,
    bounded_bandit,
    exp3,
    explore_then_commit,
    gaussian_bandit,
    heavy_tailed_bandit,
    lil_ucb,
    successive_elimination,
    thompson,
    tsallis_inf,
    ucb,
)
from jaxdp.bandits.contextual import linear_contexts, linear_ucb, linear_ucb_joint
from jaxdp.simulation.sweeps.plan import Plan
from tests.lazily import Lazy

OUTSIDE = r"mean rewards lie in \[3, 8\], and the learner .* clips each reward to \[0, 1\]"
LEARNERS = Lazy(
    {
        "ucb": lambda: ucb(num_arms=2, rewards="bounded"),
        "thompson": lambda: thompson(num_arms=2, rewards="bounded"),
        "exp3": lambda: exp3(num_arms=2, horizon=40, rewards="bounded"),
        "tsallis_inf": lambda: tsallis_inf(num_arms=2, rewards="bounded"),
        "explore_then_commit": lambda: explore_then_commit(num_arms=2, explore_rounds=8, rewards="bounded"),
        "lil_ucb": lambda: lil_ucb(num_arms=2, rewards="bounded"),
        "successive_elimination": lambda: successive_elimination(num_arms=2, rewards="bounded"),
    }
)


@pytest.mark.parametrize("name", LEARNERS)
def test_means_outside_are_warned_of(name):
    for world in (gaussian_bandit([8.0, 3.0]), heavy_tailed_bandit([8.0, 3.0])):
        run = jaxdp.simulator(LEARNERS[name], world, 40)
        with pytest.warns(UserWarning, match=OUTSIDE) as caught:
            run.params(epsilon=1.0)
        assert [each.filename for each in caught] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run.params(epsilon=1.0, reward_low=3.0, reward_high=8.0)


def test_means_within_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for world in (gaussian_bandit([1.0, 0.0]), bounded_bandit([0.9, 0.1])):
            jaxdp.simulator(LEARNERS["ucb"], world, 40).params(epsilon=1.0)
        jaxdp.simulator(ucb(num_arms=2), bernoulli_bandit([0.9, 0.1]), 40).params(epsilon=1.0)


def test_contexts_have_means_within_those_of_their_model():
    """Checks the bound of rewards, the only bound of a contextual learner, which is 1 by default."""
    for make in (linear_ucb, linear_ucb_joint):
        learner = make(num_arms=3, dim=2, horizon=40)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = jaxdp.simulator(learner, linear_contexts(num_arms=3, dim=2), 40)
            run.params(epsilon=1.0, delta=1e-6, reward_bound=0.5)
        with pytest.warns(
            UserWarning, match=r"mean rewards lie in \[-0\.5, 0\.5\].* to \[-0\.4, 0\.4\].* Set reward_bound so"
        ):
            run.params(epsilon=1.0, delta=1e-6, reward_bound=0.4)


def test_a_sweep_warns_for_values_that_move_the_means():
    run = jaxdp.simulator(LEARNERS["explore_then_commit"], gaussian_bandit([0.9, 0.1]), 10)
    axes = {"epsilon": [1.0], "best_mean": [0.9, 8.0]}
    with pytest.warns(UserWarning, match=r"mean rewards lie in \[7\.2, 8\]") as caught:
        Plan(run, axes, {}, num_seeds=2, key=jax.random.key(0), tile_size=256, devices=None)
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("engine", ["rounds", "blocks"])
def test_clipped_rewards_are_counted(engine):
    """Plays arms in turn for all rounds except the last: the share follows from two normal distributions."""
    rounds = 4000
    learner = explore_then_commit(num_arms=2, explore_rounds=rounds, rewards="bounded")
    world = gaussian_bandit([0.9, 0.2], stddev=0.5)
    found = {}
    for outcomes in (None, ["pseudo_regret", "clipped"]):
        run = jaxdp.simulator(learner, world, rounds + 1, outcomes=outcomes, engine=engine)
        found[outcomes is None] = run(jax.random.key(3), run.params(epsilon=1.0, reward_low=-0.5))
    assert "clipped" not in found[True]
    np.testing.assert_array_equal(found[False]["pseudo_regret"], found[True]["pseudo_regret"])
    below, above = (np.asarray(part) for part in (scipy.stats.norm.cdf([-2.8, -1.4]), scipy.stats.norm.sf([0.2, 1.6])))
    expected, share = float((below + above).mean()), float(found[False]["clipped"][-1]) / (rounds + 1)
    error = math.sqrt(expected * (1 - expected) / rounds)
    assert abs(share - expected) < 5 * error
    assert abs(share - (1 - expected)) > 5 * error  # planted: those that are kept


def test_clipped_needs_a_learner_that_clips():
    run = jaxdp.simulator(ucb(num_arms=2), bernoulli_bandit([0.9, 0.1]), 10, outcomes=["clipped"])
    with pytest.raises(ValueError, match=r"pseudo_regret, got .*only learners that clip feedback"):
        run(jax.random.key(0), run.params(epsilon=1.0))


def test_rewards_of_the_other_kind_are_named():
    with pytest.raises(ValueError, match=r'feedback must be the same .*, got integers in .*with rewards="bounded"'):
        jaxdp.simulator(ucb(num_arms=2), gaussian_bandit([0.9, 0.1]), 10)
