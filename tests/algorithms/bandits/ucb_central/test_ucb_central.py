"""Tests of `ucb_central` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, ucb_central
from tests.algorithms.bandits.central_learners import KEY, final


def played_arms(learner, rounds, values):
    world = bernoulli_bandit([1.0, 0.0])
    run = jaxdp.simulator(
        learner, world, rounds, checkpoints=range(1, rounds + 1), record={"arm": lambda snapshot: snapshot.action}
    )
    return np.asarray(run(KEY(), run.params(**values))["arm"]).tolist()


def test_blocks_double():
    arms = played_arms(ucb_central(num_arms=2), 60, {"epsilon": math.inf})
    lengths = [len(list(run)) for run in np.split(np.asarray(arms), np.flatnonzero(np.diff(arms)) + 1)]
    plays = [0, 0]
    for arm, length in zip(np.asarray(arms)[np.cumsum([0, *lengths[:-1]])], lengths, strict=True):
        plays[arm] += length
        if sum(plays) < 60:
            assert plays[arm].bit_count() == 1, lengths  # a power of two


def test_the_noise_of_a_release():
    """Checks that a first block's total, of one reward of 1, has Laplace noise of scale 1 / epsilon."""
    learner = ucb_central(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=0.5))
    state = learner.init(KEY(), params)
    update = jax.vmap(lambda key: learner.update(key, params, state, (jnp.int32(0), jnp.int32(1))).public.sums.total[0])
    noise = np.asarray(update(jax.random.split(KEY(), 20_000)), float) - 1
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=2.0).cdf).pvalue > 1e-6
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=1.8).cdf).pvalue < 1e-6  # planted


def test_blocks_lose_less_than_trees():
    world, values = bernoulli_bandit([0.9, 0.4]), {"epsilon": 0.5}
    blocks = final(ucb_central(num_arms=2), world, 1000, values, 40, "blocks")["pseudo_regret"]
    tree = final(ucb_central(num_arms=2, release="tree", horizon=1000), world, 1000, values, 40, "rounds")
    assert blocks.mean() < 0.9 * tree["pseudo_regret"].mean()
