"""Budgets that are too small for integer noise: the host refuses them, and accepts no budget with NaN for noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import bandits, dueling, experts
from jaxdp.estimation import objective_perturbation
from jaxdp.mechanisms import (
    doubling_counter,
    k_norm,
    laplace,
    noisy_leads,
    scalar_randomizer,
    tree_counter,
    vector_randomizer,
)
from jaxdp.mechanisms.least_budgets import check_k_norm, check_laplace
from jaxdp.mechanisms.sparse_vector import LARGEST_TIMES, above_threshold_init, above_threshold_step
from jaxdp.numerics import fixed_point

LEARNERS = {
    "explore_then_commit": lambda: bandits.explore_then_commit(num_arms=2, explore_rounds=4),
    "explore_then_commit_bounded": lambda: bandits.explore_then_commit(num_arms=2, explore_rounds=4, rewards="bounded"),
    "ucb_central": lambda: bandits.ucb_central(num_arms=2),
    "successive_elimination_central": lambda: bandits.successive_elimination_central(num_arms=2),
    "pairwise_elimination_central": lambda: bandits.pairwise_elimination_central(num_arms=2),
    "rucb": lambda: dueling.rucb(num_arms=3, release="blocks"),
    "double_thompson": lambda: dueling.double_thompson(num_arms=3, release="blocks"),
    "ebs_phased": lambda: dueling.ebs_phased(num_arms=3),
    "svt_lazy": lambda: experts.svt_lazy(num_experts=3, horizon=64),
    "svt_restarts": lambda: experts.svt_restarts(num_experts=3, horizon=64),
    "exponential_weights": lambda: experts.exponential_weights(num_experts=3, horizon=64),
}


def least(**options):
    """Finds the smallest budget that is accepted, within a factor of 1.001."""
    low, high = 1e-20, 1.0
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        try:
            high = check_laplace(middle, **options)
        except ValueError:
            low = middle
    return high


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_refuse_budgets_with_noise_that_integers_cannot_hold(name):
    learner = LEARNERS[name]()
    for epsilon in (1e-30, 1e-12):
        with pytest.raises(ValueError, match=r"epsilon must be >= .*, as larger noise would overflow integers, got"):
            learner.params(epsilon=epsilon)
    learner.params(epsilon=1e-7)
    learner.params(epsilon=math.inf)


def test_a_number_is_refused_and_a_traced_budget_gives_nan():
    with pytest.raises(ValueError, match="epsilon must be >= "):
        laplace(jax.random.key(0), jnp.zeros(3), 1e-12, l1_sensitivity=1.0)
    assert np.isnan(laplace(jax.random.key(0), jnp.zeros(3), jnp.asarray(1e-12), l1_sensitivity=1.0)).all()


MAKERS = {
    "scalar_randomizer": lambda: scalar_randomizer("laplace"),
    "vector_randomizer": lambda: vector_randomizer((3,), "l1"),
    "tree_counter": lambda: tree_counter(horizon=7),
    "doubling_counter": lambda: doubling_counter(horizon=7),
    "objective_perturbation": lambda: objective_perturbation(noise="k_norm"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_randomizers_counters_and_estimators_refuse_them_too(name):
    made = MAKERS[name]()
    with pytest.raises(ValueError, match=r"epsilon must be >= .*, got 1e-16"):
        made.params(epsilon=1e-16)
    made.params(epsilon=1e-7)


def test_releases_refuse_noise_that_integers_cannot_hold():
    key, count = jax.random.key(0), jnp.asarray([5])
    with pytest.raises(ValueError, match="epsilon must be >= "):
        k_norm(key, jnp.zeros(3), 1e-10, sensitivity=1.0)
    for release in (laplace, noisy_leads):
        with pytest.raises(ValueError, match=r"epsilon must be >= 7.11e-06, .*, got 1e-06"):
            release(key, count, 1e-6, l1_sensitivity=1e9)
        with pytest.raises(ValueError, match="l1_sensitivity must be finite, got inf"):
            release(key, count, 1.0, l1_sensitivity=math.inf)
    with pytest.raises(ValueError, match="sensitivity must be finite, got inf"):
        k_norm(key, jnp.zeros(3), 1.0, sensitivity=math.inf)


@pytest.mark.parametrize("numbers", [1, 5])
def test_the_least_budget_of_k_norm_gives_numbers(numbers):
    least = 2.34e-10 * math.sqrt(numbers)
    check_k_norm(least, numbers=numbers)
    for sensitivity in (1.0, 1.999, 3.0):
        release = k_norm(jax.random.key(0), jnp.zeros(numbers), jnp.asarray(least), sensitivity=sensitivity)
        assert np.isfinite(release).all()


@pytest.mark.parametrize("numbers", [1, 3, 1000])
@pytest.mark.parametrize("sensitivity", [1.0, 1.999, 3.0])
def test_no_accepted_budget_gives_nan(numbers, sensitivity):
    """Releases at the least budget, and at an eighth of it, where the results are NaN."""
    epsilon, key = least(numbers=numbers), jax.random.key(0)
    for values in (jnp.zeros(numbers), jnp.zeros(numbers, int), fixed_point.zero(numbers)):
        assert np.isfinite(laplace(key, values, jnp.asarray(epsilon), l1_sensitivity=sensitivity)).all()
    floats = jnp.zeros(numbers)
    assert np.isnan(laplace(key, floats, jnp.asarray(epsilon / 8), l1_sensitivity=sensitivity)).all()


def test_accepted_runs_of_above_threshold_can_halt():
    """Starts 64 runs with half of the least budget: noise decides, so about half of them halt."""
    budget = jnp.asarray(least(times=2 * LARGEST_TIMES) / 2)

    def halts(key):
        key_init, key_ask = jax.random.split(key)
        run = above_threshold_init(key_init, budget, threshold=0.0)
        return above_threshold_step(key_ask, run, jnp.asarray(1.0))[1]

    halted = jax.vmap(halts)(jax.random.split(jax.random.key(1), 64))
    assert 16 <= int(halted.sum()) <= 48


def test_a_run_with_a_number_for_its_budget_is_refused():
    with pytest.raises(ValueError, match="epsilon must be >= "):
        above_threshold_init(jax.random.key(0), 1e-11, threshold=0.0)
