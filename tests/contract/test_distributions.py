"""Counts with less noise than rounds, or other data, are found; counts of the same distribution are not."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.registry import LEARNERS
from jaxdp.testing import check_learner
from jaxdp.testing.distributions import check_distribution, distance
from tests.audit.small_learners import quieter

LANES = 8192


def generous(learner):
    """Builds the learner with counts that take one success too many."""
    counts = learner.counts

    def privatize(key, params, public, plan, totals):
        plan, totals = counts.privatize(key, params, public, plan, totals)
        return plan, totals.at[0].add(1)

    return learner._replace(counts=counts._replace(privatize=privatize))


def check(name, change):
    entry = LEARNERS[name]
    check_distribution(
        change(entry.make()),
        entry.make_environment(),
        entry.values,
        horizon=entry.horizon,
        num_lanes=LANES,
        key=jax.random.key(5),
        tolerance=1e-4,
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("explore_then_commit", lambda learner: quieter(learner, 2.0, "counts")),
        ("explore_then_commit", generous),
        pytest.param("ebs_phased", lambda learner: quieter(learner, math.inf, "counts")),
        pytest.param("ebs_phased", lambda learner: quieter(learner, 2.0, "counts")),
    ],
)
def test_counts_of_another_distribution_are_found(name, change):
    with pytest.raises(AssertionError, match=r"counts must have the distribution of rounds, .* differ by"):
        check(name, change)


def test_check_learner_finds_counts_without_noise():
    entry = LEARNERS["explore_then_commit"]
    learner = quieter(entry.make(), math.inf, "counts")._replace(blocks=())
    options = {"horizon": entry.horizon, "key": jax.random.key(3), "num_lanes": 2048}
    with pytest.raises(
        AssertionError, match=r"counts must have the distribution of rounds, .* at epsilon = [\d.]+ that differ"
    ):
        check_learner(learner, entry.make_environment(), entry.values, **options)


def test_vectors_that_are_evaluated_at_the_stop():
    learner = explore_then_commit(num_arms=2, explore_rounds=4)._replace(
        recommend=lambda params, public: jnp.int32(1), done=lambda params, public: jnp.asarray(False)
    )
    environment = bernoulli_bandit([0.2, 0.9])._replace(
        evaluate=lambda params, world, recommendation: {"vector": params.means[recommendation] * jnp.arange(3.0)}
    )
    check_learner(learner, environment, {"epsilon": 1.0}, horizon=8, key=jax.random.key(2), num_lanes=64)


def test_distance():
    """Checks by hand; atoms that rounding has split are one, which hides no shift of a continuous distribution."""
    assert distance(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 0.0) == 0.25
    assert distance(np.array([1.0, 2.0]), np.array([1.0, 2.0]) + 1e-6, 1e-4) == 0
    assert distance(np.array([1.0, np.inf]), np.array([1.0, np.nan]), 1e-4) == 0
    assert distance(np.array([1.0, np.inf]), np.array([1.0, -np.inf]), 1e-4) == 0.5
    first, second = np.random.default_rng(0).normal(size=(2, 4000))
    assert distance(first, second, 1e-4) < 0.05 < distance(first, second + 0.2, 1e-4)


def test_false_alarms_are_as_rare_as_said():
    """Checks that fewer than a tenth of pairs of samples exceed the bound at a false alarm of 1/10, with or without
    atoms.
    """
    draws = np.random.default_rng(1).normal(size=(400, 2, 1000))
    bound = math.sqrt(math.log(2 / 0.1) / 1000)
    for values in (draws, np.round(draws)):
        alarms = sum(distance(first, second, 1e-9) > bound for first, second in values)
        assert alarms < 40 + 5 * math.sqrt(400 * 0.1 * 0.9)
        assert alarms < 400 == sum(distance(first, second + 0.3, 1e-9) > bound for first, second in values)
