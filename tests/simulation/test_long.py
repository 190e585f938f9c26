"""Long horizons: counts are exact, and a regret of 10^7 and more is right to 1e-6 in float32."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.numerics import compensated
from jaxdp.random import fast_key
from jaxdp.simulation import simulator

pytestmark = pytest.mark.optimised  # millions of rounds
X64 = jax.config.read("jax_enable_x64")
KEY = functools.cache(lambda: fast_key(jax.random.key(5)))
NUM_ARMS = 32  # blocks of 512 rounds
MEANS = np.append(np.linspace(0.0, 0.9, NUM_ARMS - 1), 0.99)
GAPS = MEANS.max() - MEANS
SHORT, LONG = 30_000_000, 100_000_000
LARGEST = 2**31 - 1


def simulate(horizon, engine, *, explored=0.75):
    """Explores for most of the horizon, so that the regret is a sum of unlike terms. Returns (outcomes, exact ones)."""
    explore_rounds = int(explored * horizon) // NUM_ARMS * NUM_ARMS
    learner = explore_then_commit(num_arms=NUM_ARMS, explore_rounds=explore_rounds)
    run = simulator(learner, bernoulli_bandit(MEANS), horizon, engine=engine)
    outputs = jax.device_get(jax.jit(run)(KEY(), run.params(epsilon=1.0)))
    each = explore_rounds // NUM_ARMS
    exact = {
        "best_arm_plays": each + horizon - explore_rounds,  # it commits to the best arm: gaps are wide, rounds many
        "pseudo_regret": each * GAPS.sum(),
    }
    return {name: values[0].item() for name, values in outputs.items()}, exact


def check(found, exact):
    assert found["best_arm_plays"] == exact["best_arm_plays"]
    assert abs(found["pseudo_regret"] / exact["pseudo_regret"] - 1) < 1e-6


def check_long_lane(horizon, engine):
    found, exact = simulate(horizon, engine)
    check(found, exact)
    with jax.enable_x64(True):
        wide, _ = simulate(horizon, "counts")
    check(found, wide)


@pytest.mark.parametrize("engine", ["blocks", "counts"])
def test_a_long_lane(engine):
    """Adds up the regret of 10^7 from terms below 1, where plain float32 is off by far more than 1e-6."""
    check_long_lane(SHORT, engine)


@pytest.mark.parametrize("engine", ["blocks", "counts"])
def test_a_lane_of_1e8_rounds(engine):
    check_long_lane(LONG, engine)


def test_a_plain_sum_is_not_good_enough(monkeypatch):
    def naive(running, value):
        return compensated.Sum((running.total + value).astype(jnp.float32).astype(value.dtype), running.excess)

    monkeypatch.setattr(compensated, "add", naive)
    jax.clear_caches()  # otherwise newer versions of JAX would reuse traces of the right sum
    found, exact = simulate(SHORT, "blocks")
    jax.clear_caches()
    assert found["best_arm_plays"] == exact["best_arm_plays"]
    with pytest.raises(AssertionError):
        check(found, exact)


@pytest.mark.parametrize("horizon", [LARGEST] + ([2**36] if X64 else []))
def test_the_largest_horizon_by_counts(horizon):
    """Round by round it would take many minutes, or a day."""
    learner = explore_then_commit(num_arms=NUM_ARMS, explore_rounds=horizon // 2 // NUM_ARMS * NUM_ARMS)
    run = simulator(learner, bernoulli_bandit(MEANS), horizon, engine="counts")
    outputs = jax.device_get(jax.jit(run)(KEY(), run.params(epsilon=1.0)))
    each = horizon // 2 // NUM_ARMS
    found = {name: values[0].item() for name, values in outputs.items()}
    check(found, {"best_arm_plays": horizon - (NUM_ARMS - 1) * each, "pseudo_regret": each * GAPS.sum()})
