"""Tests of `limited_updates` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import experts
from jaxdp.experts import _limited_updates, _limited_updates_bulk
from tests.algorithms.experts.selections import KEY
from tests.algorithms.experts.worlds import stationary


def test_the_clock():
    learner = experts.limited_updates(num_experts=2)
    for played in range(1, 200):
        assert bool(_limited_updates.begins_block(jnp.int32(played))) == ((played + 1).bit_count() == 1)
        left = int(_limited_updates.rounds_left(jnp.int32(played)))
        assert left == 2 ** (played + 1).bit_length() - (played + 1)
    late = jnp.int32(2**30 + 5)
    assert int(_limited_updates.rounds_left(late)) == 2**30 - 6
    assert learner.horizon is None


def test_an_expert_is_the_best_of_its_block():
    """Plays without noise, on losses with another best expert in each block."""
    rng = np.random.default_rng(3)
    losses = rng.uniform(size=(127, 4))
    read = {"expert": lambda snapshot: snapshot.public.expert}
    learner = experts.limited_updates(num_experts=4)
    run = jaxdp.simulator(learner, experts.loss_sequence(losses), 127, checkpoints=127, record=read)
    played = np.asarray(run(KEY(), run.params(epsilon=math.inf))["expert"])
    for k in range(1, 7):
        best = losses[2 ** (k - 1) - 1 : 2**k - 1].sum(0).argmin()
        assert set(played[2**k - 2 : 2 ** (k + 1) - 2].tolist()) == {best}
    assert len({*played.tolist()}) > 1


def played_by(engine, losses, horizon=700, lanes=32):
    learner = experts.limited_updates(num_experts=4, losses=losses)
    read = {"expert": lambda snapshot: snapshot.public.expert}
    world = stationary([0.5, 0.45, 0.4, 0.6])
    run = jaxdp.simulator(learner, world, horizon, engine=engine, checkpoints=[7, 300, horizon], record=read)
    keys = jax.random.split(KEY(), lanes)
    return jax.device_get(jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, run.params(epsilon=0.5)))


@pytest.mark.optimised
@pytest.mark.parametrize("platform", ["cpu", "default"])
@pytest.mark.parametrize("losses", ["binary", "bounded"])
def test_blocks_are_rounds(losses, platform, monkeypatch):
    """Checks the short blocks of CPUs, and the short and long blocks of other devices."""
    monkeypatch.setattr(_limited_updates_bulk, "by_platform", lambda round_, **choices: choices[platform](round_))
    rounds, blocks = (played_by(engine, losses) for engine in ("rounds", "blocks"))
    for name, values in rounds.items():
        np.testing.assert_array_equal(blocks[name], values)
    monkeypatch.setattr(_limited_updates, "rounds_left", lambda round_: jnp.full_like(round_, 40))
    wrong = played_by("blocks", losses)  # blocks that go on beyond the block of rounds
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(wrong["expert"], rounds["expert"])


def test_counts_reach_long_horizons():
    horizon = 10**9
    learner = experts.limited_updates(num_experts=3, losses="binary")
    run = jaxdp.simulator(learner, stationary([0.5, 0.5001, 0.6]), horizon, engine="counts", checkpoints=2)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 50), run.params(epsilon=0.1))
    regret = np.asarray(found["pseudo_regret"])[:, -1]
    assert 0 < np.median(regret) < 1e5  # uniform play: 3e7; the wrong one of the first two: 1e5
