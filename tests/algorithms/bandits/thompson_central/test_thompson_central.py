"""Tests of `thompson_central` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.bandits import thompson_central
from tests.algorithms.bandits.central_learners import KEY


def after_plays(growth, epsilon, rewards):
    """Returns the state after plays of the first of two arms, and the number of its plays at each release."""
    learner = thompson_central(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon, growth=growth))
    state, update, ends = learner.init(KEY(), params), jax.jit(learner.update), []
    for index, reward in enumerate(rewards):
        state = update(jax.random.key(index), params, state, (jnp.int32(0), jnp.int32(reward)))
        if state.public.waiting[0] == 0:
            ends.append(int(state.public.plays[0]))
    return state, ends


@pytest.mark.parametrize(
    ("growth", "ends"),
    [(1.0, [1, 2, 4, 8, 16]), (0.5, [1, 2, 3, 4, 6, 9, 13, 19]), (0.25, [*range(1, 9), 10, 12, 15, 18])],
)
def test_blocks_grow(growth, ends):
    rewards = [index % 2 for index in range(19)]
    state, releases = after_plays(growth, math.inf, rewards)
    assert releases == ends
    public = state.public
    assert int(public.blocks[0]) == len(ends)
    assert int(public.waiting[0]) == 19 - ends[-1]
    assert float(public.sums.total[0] - public.sums.excess[0]) == sum(rewards[: ends[-1]])
    assert int(state.private.totals[0]) == sum(rewards[ends[-1] :])
    assert not np.any(np.asarray([public.plays[1], public.blocks[1], state.private.totals[1]]))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_noise_of_a_release(epsilon):
    """Checks that a first block's total, of one reward of 1, has two-sided geometric noise."""
    learner = thompson_central(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    state = learner.init(KEY(), params)
    update = jax.vmap(lambda key: learner.update(key, params, state, (jnp.int32(0), jnp.int32(1))).public.sums.total[0])
    noise = np.asarray(update(jax.random.split(KEY(), 20_000)), float) - 1
    values = np.arange(-3, 4)
    counts = [np.sum(noise <= -3), *(np.sum(noise == value) for value in values[1:-1]), np.sum(noise >= 3)]
    assert sum(counts) == len(noise)

    def p_value(epsilon):
        pmf = np.exp(-epsilon * np.abs(values))
        pmf[[0, -1]] /= 1 - math.exp(-epsilon)  # of the whole tails
        return scipy.stats.chisquare(counts, len(noise) * pmf / pmf.sum()).pvalue

    assert p_value(epsilon) > 1e-6
    assert p_value(1.2 * epsilon) < 1e-6  # planted


def test_defaults():
    """Checks the values for which the regret was measured."""
    params = thompson_central(num_arms=2).params(epsilon=1.0)
    assert (float(params.growth), float(params.noise_weight)) == (1 / 8, 1)


@pytest.mark.parametrize("name", ["growth", "noise_weight"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_refuses_values_out_of_range(name, value):
    with pytest.raises(ValueError, match=name):
        thompson_central(num_arms=2).params(epsilon=1.0, **{name: value})


REWARDS = (-7.0, -1.0, -0.4, 0.5, 1.7, 2.0, 9.0, math.nan, math.inf, -math.inf)
SHARES = (0.0, 0.0, 0.2, 0.5, 0.9, 1.0, 1.0, 0.0, 1.0, 0.0)  # of the interval [-1, 2]


def first_totals(epsilon, rewards, num_keys):
    """Returns the released totals of first blocks with these rewards in [-1, 2], [rewards, keys]."""
    learner = thompson_central(num_arms=2, rewards="bounded")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon, reward_low=-1.0, reward_high=2.0))
    state = learner.init(KEY(), params)
    assert learner.clip is not None
    assert tuple(map(float, learner.clip(params))) == (-1, 2)

    def update(key, reward):
        return learner.update(key, params, state, (jnp.int32(0), reward)).public.sums.total[0]

    keys = jax.random.split(KEY(), num_keys)
    return np.asarray(jax.jit(jax.vmap(jax.vmap(update, (0, None)), (None, 0)))(keys, jnp.asarray(rewards)))


def test_bounded_rewards_are_shares_of_their_interval():
    np.testing.assert_allclose(first_totals(math.inf, REWARDS, 1)[:, 0], SHARES, atol=2**-20)


def test_the_noise_of_bounded_rewards():
    noise = first_totals(1.5, [0.5], 20_000)[0] - 0.5
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=1 / 1.5).cdf).pvalue > 1e-6
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=0.5 / 1.5).cdf).pvalue < 1e-6  # planted


def test_values_of_rewards():
    binary, bounded = thompson_central(num_arms=2), thompson_central(num_arms=2, rewards="bounded")
    with pytest.raises(TypeError, match="reward_low"):
        binary.params(epsilon=1.0, reward_low=0.0)
    with pytest.raises(ValueError, match="reward_low must be < reward_high"):
        bounded.params(epsilon=1.0, reward_low=1.0)
    with pytest.raises(ValueError, match="rewards must be one of"):
        thompson_central(num_arms=2, rewards="real")
