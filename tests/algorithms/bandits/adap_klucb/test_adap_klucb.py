"""Tests of `adap_klucb` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import adap_klucb
from tests.algorithms.bandits.adap_klucb import golden
from tests.algorithms.bandits.central_learners import KEY


def played_on(pays, arm=0):
    """Plays one arm without noise for all rewards; returns the states after each round."""
    learner = adap_klucb(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    state, update, states = learner.init(KEY(), params), jax.jit(learner.update), []
    for pay in pays:
        state = state._replace(public=state.public._replace(arm=jnp.int32(arm)))
        state = update(KEY(), params, state, (jnp.int32(arm), jnp.int32(pay)))
        states.append(state)
    return learner, params, states


def test_blocks_double_and_earlier_rewards_are_forgotten():
    pays = np.random.default_rng(4).integers(0, 2, 32)
    _, _, states = played_on(pays)
    ends = [played for played, state in enumerate(states, 1) if state.public.played == 0]
    assert ends == [1, 2, 4, 8, 16, 32]
    for start, end in zip([0, *ends], ends, strict=False):
        found = states[end - 1].public
        assert int(found.plays[0]) == end
        assert float(found.sums.total[0]) == pays[start:end].sum()


def test_the_best_action_reads_the_mean_of_the_last_block():
    learner, params, states = played_on([0] * 8 + [1] * 8)
    public = states[-1].public  # mean 1 in the last block, 1/2 in all
    other = public._replace(
        plays=public.plays.at[1].set(1024), sums=public.sums._replace(total=public.sums.total.at[1].set(0.7 * 512))
    )
    assert learner.best_action is not None
    assert int(learner.best_action(params, other)) == 0
    worse = other._replace(sums=other.sums._replace(total=other.sums.total.at[0].set(5)))
    assert int(learner.best_action(params, worse)) == 1


@pytest.mark.parametrize("epsilon", [0.25, 1.0, math.inf])
def test_the_next_arm_has_the_largest_index(epsilon):
    """Compares arms after the end of a block with the independent version's indices of the same released sums."""
    learner, generator = adap_klucb(num_arms=5), np.random.default_rng(6)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    update, start, compared = jax.jit(learner.update), learner.init(KEY(), params), set()
    for trial in range(40):
        plays = 2 ** generator.integers(6, 13, 5)
        sums = plays / 2 * generator.uniform(0.1, 0.6, 5)
        public = start.public._replace(
            round=jnp.asarray(plays.sum(), start.public.round.dtype),
            plays=jnp.asarray(plays, start.public.plays.dtype),
            sums=start.public.sums._replace(total=jnp.asarray(sums, start.public.sums.total.dtype)),
            arm=jnp.int32(0),
            played=jnp.asarray(plays[0] - 1, start.public.played.dtype),
        )
        key = jax.random.fold_in(KEY(), trial)
        after = update(key, params, start._replace(public=public), (jnp.int32(0), jnp.int32(1))).public
        count = np.asarray(after.plays) / 2
        means = np.asarray(after.sums.total, float) / count
        indices = golden.index(means, count, int(after.round) + 1, epsilon, 3.1)
        assert int(after.plays[0]) == 2 * plays[0]
        assert int(after.round) == plays.sum() + 1
        if np.sum(indices > indices.max() - 1e-5) == 1:
            assert int(after.arm) == indices.argmax()
            compared.add(int(after.arm))
    assert len(compared) > 2  # a fixed arm would not pass


def test_the_optimistic_mean_bounds_the_mean():
    """Checks the allowance for noise: without it, means fall short too often."""
    generator, count, mean, epsilon, time, rate = np.random.default_rng(5), 64, 0.9, 0.1, 2000, 0.5
    noisy = (generator.binomial(count, mean, 10**5) + generator.laplace(0, 1 / epsilon, 10**5)) / count
    share = np.mean(golden.index(noisy, count, time, epsilon, rate) < mean)
    without = np.mean(golden.index(noisy, count, time, math.inf, rate) < mean)
    allowed = time**-rate / 2 + time**-rate  # of the noise, and of rewards
    assert share < allowed
    assert without > allowed  # planted


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_refuses_values_out_of_range(rate):
    with pytest.raises(ValueError, match="exploration_rate"):
        adap_klucb(num_arms=2).params(epsilon=1.0, exploration_rate=rate)
