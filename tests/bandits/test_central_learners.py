"""Elimination and upper bounds in the central model: epochs, errors, releases, noise, horizons of 10^9."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, successive_elimination_central, ucb_central

KEY = partial(jax.random.key, 8)


# ---- elimination -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.1, 2.0, math.inf])
def test_epochs_are_as_long_as_the_root_says(epsilon):
    params = successive_elimination_central(num_arms=4).params(epsilon=epsilon, failure_prob=0.05)
    paper = successive_elimination_central(num_arms=4, constants="paper").params(epsilon=epsilon, failure_prob=0.05)
    for epoch, size in ((1, 2), (1, 4), (3, 3), (6, 4)):
        share = math.log(8 * size * epoch**2 / 0.05)
        noise = math.log(4 * size * epoch**2 / 0.05) / epsilon

        def width(plays, share=share, noise=noise):
            return math.sqrt(share / (2 * plays)) + noise / plays

        plays, most = int(params.plays[epoch - 1, size]), int(paper.plays[epoch - 1, size])
        assert width(plays) <= 0.5**epoch / 4 < width(plays - 1)
        assert 1 < most / plays < 4.05
        assert float(params.margins[epoch - 1, size]) == pytest.approx(plays * 0.5**epoch / 2, rel=1e-6)
        assert float(paper.margins[epoch - 1, size]) == pytest.approx(2 * most * width(most), rel=1e-6)


def final(learner, world, horizon, values, lanes, engine="counts"):
    run = jaxdp.simulator(learner, world, horizon, engine=engine)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), lanes), run.params(**values))
    return {name: np.asarray(each)[:, -1] for name, each in found.items()}


def test_the_best_arm_is_seldom_dropped():
    """At failure_prob 1/2; with a hundredth of the plays it is dropped more often."""
    learner, world = successive_elimination_central(num_arms=3), bernoulli_bandit([0.6, 0.5, 0.5])
    values = {"epsilon": 0.5, "failure_prob": 0.5}
    right, daring = (
        np.mean(final(learner, world, 200_000, {**values, "confidence_multiplier": m}, 400)["best_arm_plays"] < 1e5)
        for m in (1.0, 0.01)
    )
    assert right <= 0.5
    assert daring > right + 0.05


def test_horizons_of_a_billion():
    for learner in (successive_elimination_central(num_arms=3), ucb_central(num_arms=3)):
        found = final(learner, bernoulli_bandit([0.9, 0.5, 0.1]), 10**9, {"epsilon": 1.0}, 20)
        assert (found["best_arm_plays"] > 10**9 - 20_000).all()


# ---- upper bounds ----------------------------------------------------------------------------------------------------
def played_arms(learner, rounds, values):
    world = bernoulli_bandit([1.0, 0.0])
    run = jaxdp.simulator(
        learner, world, rounds, checkpoints=range(1, rounds + 1), record={"arm": lambda look: look.action}
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


def noise_bound(blocks, tail):
    return (tail + blocks * math.log1p(tail / blocks)) * math.sqrt(1 + blocks / tail)


@pytest.mark.parametrize("blocks", [1, 4, 20])
def test_the_noise_bound_holds_and_is_near_the_least(blocks):
    """Against Chernoff's bound at its best rate, and against drawn sums."""
    for tail in (2.0, 12.0, 60.0):
        rates = np.linspace(1e-3, 1 - 1e-6, 200_000)
        least = ((tail - blocks * np.log1p(-(rates**2))) / rates).min()
        assert least <= noise_bound(blocks, tail) < 1.07 * least
    sums = np.random.default_rng(1).laplace(size=(200_000, blocks)).sum(1)
    assert np.mean(sums > noise_bound(blocks, 4.0)) < math.exp(-4)
    assert np.mean(sums > 0.5 * noise_bound(blocks, 4.0)) > math.exp(-4)  # planted


def test_the_noise_of_a_release():
    """A first block's total, of one reward of 1, has Laplace noise of scale 1 / epsilon."""
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


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (ucb_central, {"num_arms": 1}, "num_arms must be a whole number >= 2, got 1"),
        (ucb_central, {"num_arms": 2, "release": "epochs"}, "release must be one of blocks, tree, got 'epochs'"),
        (
            ucb_central,
            {"num_arms": 2, "release": "tree"},
            "horizon must be given for 'tree', and only for it, got None",
        ),
        (ucb_central, {"num_arms": 2, "horizon": 9}, "horizon must be given for 'tree', and only for it, got 9"),
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
