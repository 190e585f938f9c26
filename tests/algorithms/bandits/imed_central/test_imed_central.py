"""Tests of `imed_central` alone, and of the divergence in its indices."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, imed_central, ucb_central
from jaxdp.bandits._divergence import divergence, largest_mean
from tests.algorithms.bandits.central_learners import KEY, final
from tests.algorithms.bandits.imed_central import golden

EPSILONS = [0.1, 1.0, 4.0, math.inf]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_divergence_is_a_minimum(epsilon):
    """Compares the closed form with the least of 2,001 points between the estimate and the mean."""
    estimate, mean = np.array([[0.0, 0.2], [0.3, 0.31], [0.5, 0.9], [0.9, 1.0], [0.0, 1.0], [1e-4, 0.999]]).T
    between = np.linspace(estimate, mean, 2001)
    cost = 0 if epsilon == math.inf else epsilon * (between - estimate)
    all_costs = cost + golden.relative_entropy(between, mean)
    least = all_costs[0] if epsilon == math.inf else all_costs.min(0)
    found = np.asarray(divergence(jnp.asarray(estimate), jnp.asarray(mean), jnp.asarray(epsilon)), float)
    # Slopes end at 80, so that infinity is a large number.
    np.testing.assert_allclose(np.minimum(found, 8), np.minimum(least, 8), rtol=1e-3, atol=1e-6)
    assert not divergence(jnp.asarray(mean), jnp.asarray(estimate), jnp.asarray(epsilon)).any()


def test_the_divergence_of_close_means_is_accurate_in_32_bits():
    mean = jnp.float32(0.5 + 2.0**-13)
    assert float(divergence(jnp.float32(0.5), mean, jnp.float32(math.inf))) == pytest.approx(2 * 2.0**-26, rel=0.01)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_mean_is_at_the_level(epsilon):
    estimate, level = np.array([0.0, 0.1, 0.5, 0.95, 0.3]), np.array([0.01, 0.08, 1e-4, 0.001, 0.04])
    found = largest_mean(jnp.asarray(estimate), jnp.asarray(level), jnp.asarray(epsilon))
    at_level = golden.divergence(estimate, np.asarray(found, float), epsilon)
    np.testing.assert_allclose(at_level, level, rtol=5e-3)
    all_likely = largest_mean(jnp.asarray(estimate), jnp.asarray(100.0), jnp.asarray(1.0))
    np.testing.assert_allclose(all_likely, 1, rtol=1e-6)


def test_noisy_means_are_as_unlikely_as_the_divergence_says():
    """Checks the inequality of docs/proofs/noisy_totals.md, which the relative entropy alone does not satisfy."""
    generator, plays, blocks, mean, low, epsilon = np.random.default_rng(3), 40, 2, 0.7, 0.3, 0.5
    sums = generator.binomial(plays, mean, 10**6) + generator.laplace(0, 1 / epsilon, (blocks, 10**6)).sum(0)
    share = np.mean(sums <= plays * low)

    def bound(exponent, part=0.7):
        return math.exp(-part * plays * exponent) / (1 - part**2) ** blocks

    assert 100 / 10**6 < share < bound(float(golden.divergence(np.array(low), np.array(mean), epsilon)))
    assert share > bound(float(golden.relative_entropy(np.array(low), np.array(mean))))  # planted


@pytest.mark.parametrize(("growth", "ends"), [(1.0, [1, 2, 4, 8, 16]), (0.5, [1, 2, 3, 4, 6, 9, 13, 19])])
def test_blocks_grow_and_nothing_is_forgotten(growth, ends):
    learner = imed_central(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf, growth=growth))
    state, update, releases, paid = learner.init(KEY(), params), jax.jit(learner.update), [], 0
    for played in range(1, 20):
        state = update(KEY(), params, state, (jnp.int32(0), jnp.int32(played % 2)))
        state = state._replace(public=state.public._replace(arm=jnp.int32(0)))  # the first arm is played on
        paid += played % 2
        if state.public.played == 0:
            releases.append(int(state.public.plays[0]))
            assert float(state.public.sums.total[0]) == paid
    assert releases == ends


@pytest.mark.parametrize("index", ["imed", "kl_ucb"])
def test_loses_less_than_upper_bounds(index):
    world, values = bernoulli_bandit([0.9, 0.4]), {"epsilon": 0.5}
    found = final(imed_central(num_arms=2, index=index), world, 1000, values, 40)["pseudo_regret"]
    assert found.mean() < 0.8 * final(ucb_central(num_arms=2), world, 1000, values, 40)["pseudo_regret"].mean()


@pytest.mark.parametrize("growth", [0.0, -1.0, math.inf, math.nan])
def test_refuses_values_out_of_range(growth):
    with pytest.raises(ValueError, match="growth"):
        imed_central(num_arms=2).params(epsilon=1.0, growth=growth)


def test_refuses_an_unknown_index():
    with pytest.raises(ValueError, match="index"):
        imed_central(num_arms=2, index="ucb")
