"""Elimination and upper bounds in the central model: epochs, errors, releases, noise, horizons of 10^9."""

import math
from functools import partial

import jax
import numpy as np
import pytest

from jaxdp.bandits import (
    bernoulli_bandit,
    noisy_argmax,
    pairwise_elimination_central,
    successive_elimination_central,
    ucb_central,
)
from tests.algorithms.bandits.central_learners import KEY, final


def test_horizons_of_a_billion():
    for learner in (successive_elimination_central(num_arms=3), ucb_central(num_arms=3)):
        found = final(learner, bernoulli_bandit([0.9, 0.5, 0.1]), 10**9, {"epsilon": 1.0}, 20)
        assert (found["best_arm_plays"] > 10**9 - 20_000).all()


CLIPPED = {
    "blocks": partial(ucb_central, num_arms=2),
    "tree": partial(ucb_central, num_arms=2, release="tree", horizon=4),
    "epochs": partial(successive_elimination_central, num_arms=2),
    "selection": partial(noisy_argmax, num_arms=2, num_rounds=4),
    "pairs": partial(pairwise_elimination_central, num_arms=2),
}


@pytest.mark.always  # no other test notices rewards that are not clipped
@pytest.mark.parametrize("name", CLIPPED)
def test_rewards_beyond_0_and_1_are_clipped(name):
    """Checks what sensitivity 1 rests on: the states after a reward that is too large, and after one below 0."""
    learner = CLIPPED[name]()
    params = learner.params(epsilon=math.inf)
    state = learner.init(KEY(), params)
    arm = learner.act(KEY(), params, state.public, None)
    update = jax.jit(lambda reward: learner.update(KEY(), params, state, (arm, reward)))
    below, nothing, one, beyond = (jax.tree.leaves(update(reward)) for reward in (-3, 0, 1, 7))
    same = lambda some, others: all(map(np.array_equal, some, others))  # noqa: E731
    assert same(below, nothing)
    assert same(beyond, one)
    assert not same(nothing, one)


def noise_bound(blocks, tail):
    return (tail + blocks * math.log1p(tail / blocks)) * math.sqrt(1 + blocks / tail)


@pytest.mark.parametrize("blocks", [1, 4, 20])
def test_the_noise_bound_holds_and_is_near_the_least(blocks):
    """Compares with Chernoff's bound at its best rate, and with drawn sums."""
    for tail in (2.0, 12.0, 60.0):
        rates = np.linspace(1e-3, 1 - 1e-6, 200_000)
        least = ((tail - blocks * np.log1p(-(rates**2))) / rates).min()
        assert least <= noise_bound(blocks, tail) < 1.07 * least
    sums = np.random.default_rng(1).laplace(size=(200_000, blocks)).sum(1)
    assert np.mean(sums > noise_bound(blocks, 4.0)) < math.exp(-4)
    assert np.mean(sums > 0.5 * noise_bound(blocks, 4.0)) > math.exp(-4)  # planted


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (ucb_central, {"num_arms": 1}, "num_arms must be an integer >= 2, got 1"),
        (ucb_central, {"num_arms": 2, "release": "epochs"}, "release must be one of blocks, tree, got 'epochs'"),
        (
            ucb_central,
            {"num_arms": 2, "release": "tree"},
            "horizon must be given for release='tree', and only then, got None",
        ),
        (ucb_central, {"num_arms": 2, "horizon": 9}, "horizon must be given for release='tree', and only then, got 9"),
        (successive_elimination_central, {"num_arms": 2, "constants": "mine"}, "constants must be one of tight, paper"),
    ],
)
def test_factory_errors(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (partial(ucb_central, num_arms=2), {"epsilon": -1.0}, "epsilon must be > 0, got -1"),
        (
            partial(ucb_central, num_arms=2),
            {"epsilon": 1.0, "exploration_rate": 0.0},
            "exploration_rate must be > 0, got 0",
        ),
        (
            partial(ucb_central, num_arms=2, release="tree", horizon=10**6),
            {"epsilon": 1.0, "exploration_rate": 6.0},
            "exploration_rate must be at most 5.791 for a horizon of 1000000, got 6",
        ),
        (
            partial(successive_elimination_central, num_arms=2),
            {"epsilon": 1.0, "failure_prob": 0.0},
            "failure_prob must be in",
        ),
        (
            partial(successive_elimination_central, num_arms=2),
            {"epsilon": 1.0, "confidence_multiplier": math.inf},
            "confidence_multiplier must be finite, got inf",
        ),
    ],
)
def test_value_errors(make, values, message):
    with pytest.raises(ValueError, match=message):
        make().params(**values)
