"""Tests of `successive_elimination` alone."""

import math
from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import gaussian_bandit, successive_elimination
from tests.algorithms.bandits.best_arm import KEY, check_errors, check_slope, run

EASY = (0.9, 0.2, 0.1)


def test_bounds_that_are_too_narrow_err():
    learner = successive_elimination(num_arms=3)
    found = run(learner, EASY, 300, epsilon=1.0, failure_prob=0.1, confidence_multiplier=0.1)
    with pytest.raises(AssertionError):
        check_errors(found, 0.1)


def test_those_of_an_approximation_do_not():
    """Drops a quarter of the exponent."""
    with pytest.raises(AssertionError):
        check_slope(successive_elimination, 0.7, 0.9)


@pytest.mark.parametrize(("report", "horizon"), [("rr", 51), ("gaussian", 251)])
def test_bounded_rewards_in_blocks(report, horizon):
    """Checks blocks bit for bit against rounds, through several drops and looks inside a sweep."""
    learner = successive_elimination(num_arms=4, report=report, rewards="bounded")
    extra: Any = {"delta": 0.1} if report == "gaussian" else {}
    world = gaussian_bandit([0.9, 0.5, 0.2, 0.1], stddev=0.3)
    both = []
    for engine in ("rounds", "blocks"):
        run = jaxdp.simulator(learner, world, horizon, engine=engine)
        params = run.params(epsilon=3.0, confidence_multiplier=0.4, **extra)
        found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jaxdp.lane_keys(KEY(), 20), params)
        both.append({name: np.asarray(values) for name, values in found.items()})
    assert len({*both[0]["rounds"].tolist()}) > 1
    for name, values in both[0].items():
        np.testing.assert_array_equal(values, both[1][name])


def test_counts_stop_as_rounds_do():
    learner = successive_elimination(num_arms=3)
    values: Any = {"epsilon": 2.0, "confidence_multiplier": 0.4}
    one, other = (run(learner, (0.9, 0.5, 0.1), 600, engine=engine, **values) for engine in ("blocks", "counts"))
    for name in ("rounds", "correct", "pseudo_regret"):
        mine, theirs = one[name].ravel().astype(float), other[name].ravel().astype(float)
        error = math.sqrt((mine.var() + theirs.var()) / 600)
        assert abs(mine.mean() - theirs.mean()) <= 5 * error, name
    shift = 0.25 * one["rounds"].mean()
    error = math.sqrt((one["rounds"].var() + other["rounds"].var()) / 600)
    assert abs(one["rounds"].mean() + shift - other["rounds"].mean()) > 5 * error  # planted


def test_dropped_arms_do_not_shorten_plans_of_counts():
    learner = successive_elimination(num_arms=3)
    counts = learner.counts
    assert counts is not None

    @jax.jit
    @jax.vmap
    def plan(sums):
        params = learner.params(epsilon=4.0)
        public = learner.init(KEY(), params).public
        public = public._replace(active=np.asarray([True, True, False]), sweeps=np.int32(1000), sums=sums)
        return counts.plan(KEY(), params, public, jax.numpy.int32(10**6)).counts

    planned = np.asarray(plan(np.asarray([[500, 500, 0], [500, 500, 500], [500, 520, 0]], np.int32)))
    assert planned[0].tolist() == planned[1].tolist()
    assert planned[0][0] - 20 == planned[2][0] > 100
    assert planned[0][2] == 0


@pytest.mark.parametrize(("first", "best"), [(-0.1, 0), (-1.0, None)])
def test_arms_without_reports_count_as_the_lowest_reward(first, best):
    learner = successive_elimination(num_arms=2, rewards="bounded")
    params = learner.params(epsilon=math.inf, reward_low=-1.0, reward_high=0.0)
    recommended = set()
    for seed in range(8):
        state = learner.init(jax.random.key(seed), params)
        state = learner.update(KEY(), params, state, (np.int32(0), np.float32(first)))
        recommended.add(int(learner.recommend(params, state.public)))  # pyright: ignore[reportOptionalCall]
    assert recommended == ({0, 1} if best is None else {best})


def test_long_runs_by_counts():
    """Plays about 5 10^6 rounds a lane, in many fewer steps."""
    found = run(
        successive_elimination(num_arms=2),
        (0.52, 0.5),
        8,
        engine="counts",
        horizon=2**30,
        epsilon=0.5,
    )
    assert found["correct"].all()
    assert found["rounds"].min() > 4 * 10**6
