"""Bandits: rewards and feedback totals have their distributions, and bad instances are refused."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, gaussian_bandit

KEY = partial(jax.random.key, 31)
ROUNDS = 20_000
MEANS = np.array([0.0, 0.3, 0.75, 1.0])


def play(environment, arm, rounds=ROUNDS):
    params = jax.tree.map(jnp.asarray, environment.params())
    keys = jax.random.split(KEY(), rounds)
    _, rewards, outcomes = environment.block(keys, params, (), None, jnp.full(rounds, arm, jnp.int32))
    return np.asarray(rewards), jax.device_get(outcomes)


def check_mean(rewards, mean, stddev):
    assert abs(rewards.mean() - mean) <= 5 * stddev / math.sqrt(len(rewards))


@pytest.mark.parametrize("arm", range(4))
def test_bernoulli_rewards(arm):
    rewards, outcomes = play(bernoulli_bandit(MEANS), arm)
    assert rewards.dtype == np.int32
    assert set(rewards.tolist()) <= {0, 1}
    stddev = math.sqrt(MEANS[arm] * (1 - MEANS[arm]))
    check_mean(rewards, MEANS[arm], stddev)
    with pytest.raises(AssertionError):
        check_mean(rewards, MEANS[arm] + 0.03, stddev)
    np.testing.assert_allclose(outcomes["pseudo_regret"], 1 - MEANS[arm], rtol=1e-6)
    assert (outcomes["best_arm_plays"] == (arm == 3)).all()


def test_every_arm_sees_the_same_world():
    """Checks that one uniform decides for all arms: an arm with a larger mean pays whenever another one does."""
    rewards = [play(bernoulli_bandit(MEANS), arm, 500)[0] for arm in range(4)]
    assert all((first <= second).all() for first, second in itertools.pairwise(rewards))


@pytest.mark.parametrize("stddev", [0.1, 2.0])
def test_gaussian_rewards(stddev):
    means = [-1.0, 0.5]
    noise = [play(gaussian_bandit(means, stddev=stddev), arm)[0] - means[arm] for arm in range(2)]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-6)
    check_mean(noise[0], 0.0, stddev)
    error = stddev / math.sqrt(2 * ROUNDS)
    assert abs(noise[0].std() - stddev) < 5 * error
    assert abs(0.8 * noise[0].std() - stddev) > 5 * error  # planted


def test_tallies_are_sums():
    environment = bernoulli_bandit(MEANS)
    assert environment.feedback_totals is not None
    feedback_totals, params = environment.feedback_totals, jax.tree.map(jnp.asarray, environment.params())
    counts = jnp.asarray([5, 1000, 40, 7])
    draw = jax.jit(jax.vmap(lambda key: feedback_totals(key, params, (), counts)[1:]))
    totals, outcomes = jax.device_get(draw(jax.random.split(KEY(), 4000)))
    assert (totals[:, 0] == 0).all()
    assert (totals[:, 3] == 7).all()
    for arm in (1, 2):
        check_mean(
            totals[:, arm], int(counts[arm]) * MEANS[arm], math.sqrt(int(counts[arm]) * MEANS[arm] * (1 - MEANS[arm]))
        )
    np.testing.assert_allclose(outcomes["pseudo_regret"], 5 * 1.0 + 1000 * 0.7 + 40 * 0.25, rtol=1e-6)
    assert (outcomes["best_arm_plays"] == 7).all()


def test_several_best_arms():
    _, outcomes = play(bernoulli_bandit([0.5, 0.2, 0.5]), 2, 3)
    assert outcomes["best_arm_plays"].all()
    assert not outcomes["pseudo_regret"].any()


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([0.1, 1.1], r"means must be in \[0, 1\], got 1.1 at index \(1,\)"),
        ([-0.1, 0.5], r"means must be in \[0, 1\], got -0.1 at index \(0,\)"),
        ([0.1, math.nan], r"means must be finite, got nan at index \(1,\)"),
        ([0.1], r"means must be a vector of at least two arms, got shape \(1,\)"),
        ([[0.1, 0.2]], r"means must be a vector of at least two arms, got shape \(1, 2\)"),
        (0.5, r"means must be a vector of at least two arms, got shape \(\)"),
        (["a", "b"], "means must be numbers, got dtype"),
        ([0.5, 0.5j], "means must be numbers, got dtype complex128"),
    ],
)
def test_bad_means(means, message):
    with pytest.raises(ValueError, match=message):
        bernoulli_bandit(means)
    if "in \\[0" not in message:
        with pytest.raises(ValueError, match=message):
            gaussian_bandit(means)


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.nan, math.inf])
def test_bad_stddev(stddev):
    with pytest.raises(ValueError, match=f"stddev must be .*, got {stddev}"):
        gaussian_bandit([0.1, 0.2], stddev=stddev)


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="float64 holds them")
def test_numbers_that_float32_cannot_hold():
    for means in ([1e39, 0.0], [3e38, -3e38]):
        with pytest.raises(ValueError, match="means and their differences must be within the range of float32"):
            gaussian_bandit(means)
    for stddev in (1e39, 1e-50):
        with pytest.raises(ValueError, match="stddev must be within the range of float32"):
            gaussian_bandit([0.1, 0.2], stddev=stddev)


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.int32, jnp.uint32])
@pytest.mark.parametrize("make", [bernoulli_bandit, gaussian_bandit])
def test_an_arm_outside_has_no_regret(make, dtype):
    """Checks arms that an int8 cannot count, out of 200; arms 3 and 4 of three arms are not counted as the third."""
    environment = make([0.1, 0.5, 0.9])
    params = jax.tree.map(jnp.asarray, environment.params())
    outside = [3, 4, 127] + ([2**32 - 1] if dtype == jnp.uint32 else [-1])
    for arm in outside:
        action = jnp.asarray(arm, dtype)
        _, reward, outcome = environment.feedback(KEY(), params, (), action)
        _, _, outcomes = environment.block(KEY()[None], params, (), None, action[None])
        assert jnp.isnan(outcome["pseudo_regret"])
        assert jnp.isnan(outcomes["pseudo_regret"]).all()
        assert not outcome["best_arm_plays"]
        assert reward == 0 or jnp.isnan(reward)
    wide = make(np.linspace(0, 1, 200))
    regret = wide.feedback(KEY(), jax.tree.map(jnp.asarray, wide.params()), (), jnp.asarray(100, dtype))[2]
    np.testing.assert_allclose(regret["pseudo_regret"], 1 - 100 / 199, rtol=1e-5)


@pytest.mark.parametrize("num_actions", [1, 5])
def test_feedback_totals_of_other_arms_are_refused(num_actions):
    environment = bernoulli_bandit([0.1, 0.5, 0.9])
    params = jax.tree.map(jnp.asarray, environment.params())
    feedback_totals = environment.feedback_totals
    assert feedback_totals is not None
    with pytest.raises(ValueError, match=r"\(3,\)"):
        feedback_totals(KEY(), params, (), jnp.ones(num_actions, jnp.int32))


@pytest.mark.parametrize("make", [bernoulli_bandit, gaussian_bandit])
def test_an_arm_as_an_answer(make):
    environment = make([0.25, 0.75, 0.75])
    params = jax.tree.map(jnp.asarray, environment.params())
    judged = [environment.evaluate(params, (), jnp.int32(arm)) for arm in (0, 1, 2, 3)]
    assert [bool(each["correct"]) for each in judged] == [False, True, True, False]
    assert [float(each["simple_regret"]) for each in judged[:3]] == [0.5, 0.0, 0.0]
    assert np.isnan(judged[3]["simple_regret"])
