"""Bounded, heavy-tailed, drifting and replayed rewards: distributions, regrets in hindsight, and refusals."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import (
    bounded_bandit,
    drifting_bandit,
    heavy_tailed_bandit,
    reward_sequence,
    successive_elimination_central,
    ucb,
)
from jaxdp.simulation.run.stacking import stack_params

KEY = partial(jax.random.key, 41)
ROUNDS = 20_000


def play(environment, arm, rounds=ROUNDS, **values):
    params = jax.tree.map(jnp.asarray, environment.params(**values))
    world = environment.init(KEY(), params)
    actions = jnp.full(rounds, arm, jnp.int32)
    go = jax.jit(lambda keys: environment.block(keys, params, world, None, actions)[1:])
    rewards, outcomes = go(jax.random.split(KEY(), rounds))
    return np.asarray(rewards, float), jax.device_get(outcomes)


def check_distribution(rewards, distribution):
    assert scipy.stats.kstest(rewards, distribution.cdf).pvalue > 1e-6


# ---- distributions ---------------------------------------------------------------------------------------------------
def test_bounded_rewards_are_beta_variates():
    environment = bounded_bandit([0.2, 0.7])
    rewards, outcomes = play(environment, 1, concentration=6.0)
    assert ((rewards >= 0) & (rewards <= 1)).all()
    check_distribution(rewards, scipy.stats.beta(4.2, 1.8))
    with pytest.raises(AssertionError):
        check_distribution(rewards, scipy.stats.beta(4.2 * 1.3, 1.8 * 1.3))
    assert not outcomes["pseudo_regret"].any()
    assert float(environment.params().concentration) == 10
    assert float(environment.params(best_mean=0.55).concentration) == pytest.approx(20)  # the other mean is 1/20


@pytest.mark.parametrize("degrees", [1.5, 4.0])
def test_heavy_tails_are_student_s(degrees):
    environment = heavy_tailed_bandit([0.5, -1.0], scale=2.0)
    rewards, outcomes = play(environment, 1, degrees_of_freedom=degrees)
    check_distribution(rewards, scipy.stats.t(degrees, loc=-1.0, scale=2.0))
    with pytest.raises(AssertionError):
        check_distribution(rewards, scipy.stats.t(degrees, loc=-1.0, scale=1.8))
    np.testing.assert_allclose(outcomes["pseudo_regret"], 1.5)


def test_means_drift_while_gaps_stay():
    """Checks that phases 0, 1, 2, ... start in rounds 1, 2, 3, 5, 7, 11, 17, ... (1.6^j rounded up), counted from 1."""
    environment = drifting_bandit([1.0, 0.75])
    rewards, outcomes = play(environment, 0, 27, drift=0.75)
    starts = [math.ceil(1.6**j) for j in range(8)]
    phase = np.searchsorted(starts, np.arange(1, 28), side="right") - 1
    assert rewards[phase % 2 == 0].all()
    assert not outcomes["pseudo_regret"].any()
    assert not play(environment, 1, 27, drift=0.75)[0][phase % 2 == 1].any()
    assert (play(environment, 1, 27)[1]["pseudo_regret"] == 0.25).all()
    low, _ = play(environment, 0, ROUNDS, drift=0.5)
    phase = np.searchsorted([math.ceil(1.6**j) for j in range(22)], np.arange(1, ROUNDS + 1), side="right") - 1
    share = low[phase % 2 == 1]
    assert abs(share.mean() - 0.5) < 5 * 0.5 / math.sqrt(len(share))


def test_rounds_by_blocks_bit_for_bit():
    rewards = np.random.default_rng(3).random((12, 3)).astype(np.float16)
    for environment in (
        drifting_bandit([0.9, 0.6, 0.5]),
        reward_sequence(rewards),
        heavy_tailed_bandit([0.0, 1.0, 2.0]),
    ):
        params, actions = environment.params(), jnp.arange(12, dtype=jnp.int32) % 3
        world, keys = environment.init(KEY(), params), jax.random.split(KEY(), 12)
        assert environment.block
        worlds, *blocks = jax.jit(environment.block)(keys, params, world, None, actions)
        one = jax.jit(environment.feedback)
        for index, action in enumerate(actions):
            world, *found = one(keys[index], params, world, action)
            here = jax.tree.map(lambda leaf, i=index: leaf[i], (worlds, *blocks))
            for left, right in zip(jax.tree.leaves((world, *found)), jax.tree.leaves(here), strict=True):
                np.testing.assert_array_equal(left, right)


# ---- rewards of one's own --------------------------------------------------------------------------------------------
def test_regret_in_hindsight():
    rewards = np.random.default_rng(5).integers(0, 256, (300, 4)).astype(np.uint8)
    environment = reward_sequence(rewards, scale=255)
    assert environment.params().rewards.dtype == np.uint8
    learner = ucb(num_arms=4, rewards="bounded")
    run = jaxdp.simulator(
        learner,
        environment,
        300,
        checkpoints=[100, 300],
        engine="rounds",
        record={"plays": lambda snapshot: snapshot.public.plays},
    )
    found = run(KEY(), run.params(epsilon=math.inf))
    paid = np.asarray(found["reward"], float)
    best = (rewards / 255).cumsum(0)[[99, 299]].max(1)
    np.testing.assert_allclose(found["regret"], best - paid, atol=1e-3)
    np.testing.assert_allclose(found["best_reward"], best, rtol=1e-5)


def test_binary_logs_are_played_by_binary_learners():
    """Plays central references, too; blocks equal rounds."""
    log = np.zeros((3000, 2), np.uint8)
    log[:, 1] = 255
    environment = reward_sequence(log, scale=255, binary=True)
    learner = successive_elimination_central(num_arms=2)
    found = []
    for engine in ("rounds", "blocks"):
        run = jaxdp.simulator(learner, environment, 3000, engine=engine)
        found.append(run(jax.random.key(0), run.params(epsilon=math.inf, failure_prob=0.5)))
    assert found[0]["regret"][-1] == found[1]["regret"][-1]
    assert 0 < found[0]["regret"][-1] < 1000
    assert found[0]["reward"][-1] + found[0]["regret"][-1] == 3000


def test_lanes_and_points_share_the_rewards():
    environment = reward_sequence(np.zeros((1000, 3), np.uint8))
    run = jaxdp.simulator(ucb(num_arms=3, rewards="bounded"), environment, 1000)
    varied, shared = stack_params([run.params(epsilon=epsilon) for epsilon in (0.5, 1.0)])
    assert varied["environment"].rewards is None
    assert shared["environment"].rewards.shape == (1000, 3)


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("arm", [-1, 3, 100])
def test_an_arm_outside_has_no_regret(arm):
    rewards = np.zeros((2, 3))
    for environment in (
        bounded_bandit([0.2, 0.5, 0.7]),
        heavy_tailed_bandit([0, 1, 2]),
        drifting_bandit([0.1, 0.2, 0.3]),
    ):
        params = jax.tree.map(jnp.asarray, environment.params())
        world = environment.init(KEY(), params)
        _, reward, outcome = environment.feedback(KEY(), params, world, jnp.int32(arm))
        assert jnp.isnan(outcome["pseudo_regret"])
        assert not outcome["best_arm_plays"]
        assert reward == 0 or jnp.isnan(reward)
    environment = reward_sequence(rewards)
    params = environment.params()
    assert jnp.isnan(environment.feedback(KEY(), params, environment.init(KEY(), params), jnp.int32(arm))[1])


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (lambda: bounded_bandit([0.0, 0.5]), {}, r"means must be in \(0, 1\), got"),
        (lambda: bounded_bandit([0.1, 0.5]), {"concentration": 9.0}, "concentration must be at least 10"),
        (lambda: bounded_bandit([0.1, 0.5]), {"gap": 0.6}, r"gap and best_mean must leave all means in \[0, 1\]"),
        (lambda: heavy_tailed_bandit([0, 1]), {"degrees_of_freedom": 1.0}, "degrees_of_freedom must be > 1"),
        (lambda: heavy_tailed_bandit([0, 1], scale=-1.0), {}, "scale must be > 0, got -1"),
        (lambda: drifting_bandit([0.3, 0.5]), {"drift": 0.4}, r"drift must be in \[0, 0.3\], the smallest mean"),
        (lambda: drifting_bandit([0.3, 0.5], drift=math.nan), {}, r"drift must be in \[0, 0.3\]"),
        (lambda: reward_sequence([[0.5, 1.5]]), {}, r"rewards must be in \[0, 1\], got 1 of 2 that are not$"),
        (lambda: reward_sequence([[0.5, math.nan]]), {}, "rewards must be finite, got 1 of 2 that are not$"),
        (lambda: reward_sequence([[0.5]]), {}, r"rewards must be \[horizon, num_arms\] with at least two arms"),
        (
            lambda: reward_sequence([[0, 1], [0.5, 1]], binary=True),
            {},
            "rewards must be 0 or 1 if binary, got other numbers$",
        ),
        (lambda: reward_sequence([[0, 1]], scale=0.0), {}, "scale must be > 0, got 0"),
        (lambda: drifting_bandit([0.3]), {}, "means must be a vector of at least two arms"),
    ],
)
def test_bad_instances(make, values, message):
    with pytest.raises(ValueError, match=message):
        make().params(**values)
