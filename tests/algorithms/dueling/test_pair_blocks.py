"""RUCB and double Thompson sampling by blocks: their releases and bounds."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import (
    _pair_blocks,
    double_thompson,
    rucb,
    utility_duels,
)
from jaxdp.dueling._pair_blocks import Private, Released
from tests.algorithms.dueling.pair_blocks import FLOAT

KEY = partial(jax.random.key, 5)
FACTORIES = {"rucb": rucb, "double_thompson": double_thompson}


def tallied(duels, epsilon=math.inf, num_arms=3):
    """States after each of some duels (left, right, won)."""

    def step(state, inputs):
        index, left, right, won = inputs
        key = jax.random.fold_in(KEY(), index)
        private, released = state
        report = jnp.stack([left, right]), won
        after = _pair_blocks.count_duel(key, jnp.asarray(epsilon, FLOAT), private, released, report)
        return after, after

    columns = [jnp.asarray(column, jnp.int32) for column in zip(*duels, strict=True)]
    _, states = jax.lax.scan(step, _pair_blocks.no_duels(num_arms), (jnp.arange(len(duels)), *columns))
    return jax.tree.map(np.asarray, states)


def test_a_pair_releases_with_its_first_second_fourth_and_eighth_duel():
    """Checks either side; totals beyond 0 and 1 are clipped, and an arm's duels with itself release nothing."""
    duels = [(0, 1, 1), (2, 2, 1), (1, 0, 1), (1, 0, -3), (1, 2, 1), (0, 1, 7), (0, 0, 1)] + [(0, 1, 1)] * 5
    private, released = tallied(duels)
    #  wins of arm 0 over arm 1: 1 | 0 | 1, 1 | 1, 1, 1, 1 | 1
    np.testing.assert_array_equal(released.duels[:, 0, 1], [1, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(released.lead[:, 0, 1], [1, 1, 0, 0, 0, 2, 2, 2, 2, 2, 6, 6])
    np.testing.assert_array_equal(released.weight[:, 0, 1], [1, 1, 2, 2, 2, 4, 4, 4, 4, 4, 8, 8])
    np.testing.assert_array_equal(private.wins[:, 0, 1], [1, 1, 0, 1, 1, 2, 2, 1, 2, 3, 4, 1])
    assert np.all(released.noise == 0)
    np.testing.assert_array_equal(released.lead[-1], [[0, 6, 0], [0, 0, 1], [0, 0, 0]])


def test_what_is_counted_again_from_zero_follows_from_what_was_released():
    """Continues alike from any state of a released block."""
    private, released = (jax.tree.map(lambda leaf: jnp.asarray(leaf[-1]), part) for part in tallied([(0, 1, 1)] * 4))
    report = jnp.asarray([1, 0], jnp.int32), jnp.int32(1)
    for other in (private, Private(private.wins + 10)):
        after, _ = _pair_blocks.count_duel(KEY(), jnp.asarray(1.0, FLOAT), other, released, report)
        assert int(after.wins[0, 1]) == 0


def moments(epsilon, scale=1.0):
    """Returns mean and variance of the noise in the wins of a block of 8, and their standard errors over lanes."""

    def one(key):
        private, released = Private(jnp.full((2, 2), 2)), _pair_blocks.no_duels(2)[1]
        released = released._replace(duels=jnp.full((2, 2), 15))
        report = jnp.asarray([0, 1], jnp.int32), jnp.int32(1)
        _, after = _pair_blocks.count_duel(key, jnp.asarray(epsilon * scale, FLOAT), private, released, report)
        return (after.lead[0, 1] / _pair_blocks.weight_of(jnp.int32(8), jnp.asarray(epsilon * scale, FLOAT)) + 8) / 2

    noise = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY(), 20_000)), float) - 3
    squares = noise**2
    root = math.sqrt(len(noise))
    return noise.mean(), noise.std() / root, squares.mean(), squares.std() / root


def test_noise_is_laplace_of_scale_1_over_epsilon():
    mean, mean_error, square, square_error = moments(0.5)
    assert abs(mean) < 5 * mean_error
    assert abs(square - 8) < 5 * square_error
    _, _, square, square_error = moments(0.5, scale=1.25)
    assert abs(square - 8) > 5 * square_error


def exceeded(epsilon, blocks, tail, radius):
    """Returns the share of runs in which an even pair's weighted wins exceed N / 2 by a radius, and its standard
    error.
    """
    generator, lanes = np.random.default_rng(3), 40_000
    lengths = [1, *(2**k for k in range(blocks - 1))]
    weights = np.asarray(_pair_blocks.weight_of(jnp.asarray(lengths), jnp.asarray(epsilon, FLOAT)), float)
    above = sum(
        weight * (generator.binomial(length, 0.5, lanes) - length / 2 + generator.laplace(0, 1 / epsilon, lanes))
        for weight, length in zip(weights, lengths, strict=True)
    )
    share = float(np.mean(above > radius(weights, float(weights @ lengths), tail)))
    return share, math.sqrt(share * (1 - share) / lanes)


def ours(weights, duels, tail):
    """Returns half of the distance below zero that a lead must have for a bound below 1/2."""
    noise = jnp.asarray([[0, weights[-1] / EPSILON], [0, 0]], FLOAT)
    lead, weight = jnp.zeros_like(noise), jnp.asarray([[0, duels], [0, 0]], FLOAT)
    spread = jnp.asarray(tail / 2, FLOAT)
    seen = _pair_blocks.evidence(Released(lead.astype(jnp.int32), lead, weight, noise), spread)
    return float(seen.allowance[0, 1] / 2 + jnp.sqrt(spread * seen.weight[0, 1]))


EPSILON = 0.3


@pytest.mark.parametrize("blocks", [1, 3, 6, 10])
def test_a_bound_fails_as_seldom_as_it_should(blocks):
    """Checks probability at most t^(-2 exploration_rate) = exp(-tail); a bound of half the width fails more often."""
    for tail in (0.5, 2.0, 5.0):
        share, error = exceeded(EPSILON, blocks, tail, ours)
        assert share <= math.exp(-tail) + 5 * error
    narrow, error = exceeded(EPSILON, blocks, 3.0, lambda weights, duels, tail: math.sqrt(tail * duels / 2) / 2)
    assert narrow > math.exp(-3.0) + 5 * error


def test_weights_make_the_variance_least():
    """Checks the variance of the share of wins, 1 / (4 N) for N weighted duels.

    Equal weights or the last block have more.
    """
    lengths = np.asarray([1, 1, 2, 4, 8, 16, 32])
    weights = np.asarray(_pair_blocks.weight_of(jnp.asarray(lengths), jnp.asarray(0.5, FLOAT)), float)
    variances = lengths / 4 + 2 / 0.5**2

    def of_share(weights):
        return (weights**2 @ variances) / (weights @ lengths) ** 2

    assert of_share(weights) == pytest.approx(1 / (4 * weights @ lengths), rel=1e-5)
    others = [np.ones(7), np.eye(7)[-1], *(weights * (1 + 0.1 * row) for row in np.eye(7)[:-1])]
    assert all(of_share(weights) < of_share(other) for other in others)


@pytest.mark.parametrize("name", FACTORIES)
def test_what_is_refused(name):
    make = FACTORIES[name]
    with pytest.raises(ValueError, match="release must be one of local, blocks, got 'tree'"):
        make(num_arms=2, release="tree")
    wrong: tuple[Any, ...] = (1, 2.5, math.nan, None)
    for bad in wrong:
        with pytest.raises(ValueError, match="num_arms must be an integer >= 2, got "):
            make(num_arms=bad, release="blocks")
    learner = make(num_arms=2, release="blocks")
    for function in (learner.params, learner.guarantee):
        for bad in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
                function(epsilon=bad)
        for bad in (0.5, math.nan, math.inf):
            with pytest.raises(ValueError, match=rf"exploration_rate must be .*, got {bad}"):
                function(epsilon=1.0, exploration_rate=bad)
    claim = learner.guarantee(epsilon=0.7)
    assert (claim.trust_model, claim.epsilon, claim.delta) == ("central", 0.7, 0.0)
    assert make(num_arms=2).guarantee(epsilon=0.7).trust_model == "local"


@pytest.mark.parametrize("name", FACTORIES)
def test_less_regret_than_by_randomized_outcomes(name):
    """Compares on eight arms after 10^5 rounds at epsilon = 0.3: the margin of a third is below half of the
    difference.
    """
    duels = utility_duels(np.linspace(1, 0, 8))

    def regret(release):
        run = jaxdp.simulator(FACTORIES[name](num_arms=8, release=release), duels, 10**5)
        keys = jax.random.split(KEY(), 16)
        return jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=0.3))["pseudo_regret"][:, -1].mean()

    assert regret("blocks") < 0.5 * regret("local")


@pytest.mark.parametrize("name", FACTORIES)
def test_memory_of_a_lane(name):
    """Checks that it is some numbers for each pair, for any horizon."""

    def held(horizon, num_arms=4):
        learner = FACTORIES[name](num_arms=num_arms, release="blocks")
        run = jaxdp.simulator(learner, utility_duels(np.linspace(1, 0, num_arms)), horizon)
        keys = jax.random.split(KEY(), 64)
        lowered = jax.jit(jax.vmap(run, (0, None))).lower(keys, run.params(epsilon=1.0))
        analysis = lowered.compile().memory_analysis()
        return analysis.temp_size_in_bytes / 64  # pyright: ignore[reportOptionalMemberAccess]

    assert 0 < held(10**8) <= 1.2 * held(10**4)
