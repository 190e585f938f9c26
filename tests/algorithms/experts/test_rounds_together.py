"""Losses of several rounds are added at once, and learners that do so play the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts import classes
from jaxdp.experts._lazy_weights import _lazy_weights
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.experts._svt_restarts import bulk as _svt_restarts_bulk
from jaxdp.numerics import fixed_point

LANES, ROUNDS = 100, 19
FLOAT = jnp.result_type(float)
SIZES = [2, 10, 17, 40]  # up to 16 experts lanes are the fast axis


def in_lanes(function, *inputs):
    return jax.jit(jax.vmap(function))(*inputs)


def equal(left, right):
    same = jax.tree.map(lambda one, other: bool(np.array_equal(one, other)), left, right)
    return all(jax.tree.leaves(same))


def inputs(num_experts):
    random = np.random.default_rng(num_experts)
    losses = jnp.asarray(random.integers(0, fixed_point.UNITS + 1, (LANES, ROUNDS, num_experts)), jnp.result_type(int))
    return losses, jnp.asarray(np.arange(ROUNDS) < random.integers(0, ROUNDS + 1, (LANES, 1)))


@pytest.mark.optimised
@pytest.mark.parametrize("num_experts", SIZES)
def test_sums_are_those_of_the_planned_rounds(num_experts):
    losses, planned = inputs(num_experts)
    expected = (np.asarray(losses) * np.asarray(planned)[..., None]).sum(axis=1)
    np.testing.assert_array_equal(in_lanes(sum_rounds, losses, planned), expected)
    assert not equal(in_lanes(lambda losses, planned: sum_rounds(losses, planned | True), losses, planned), expected)


def shifting(num_experts, horizon, distribution):
    return jaxdp.experts.shifting_losses(
        num_experts=num_experts, horizon=horizon, num_shifts=3, gap=0.4, distribution=distribution
    )


def played(learner, values, engine, distribution="beta", horizon=300, num_experts=5):
    record = {"public": lambda snapshot: jnp.stack([jnp.asarray(x, FLOAT) for x in jax.tree.leaves(snapshot.public)])}
    world, looks = shifting(num_experts, horizon, distribution), [7, 100, horizon]
    run = jaxdp.simulator(learner, world, horizon, engine=engine, checkpoints=looks, record=record)
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(7), 24), run.params(**values))


def restarts(windows, check_every):
    return jaxdp.experts.svt_restarts(num_experts=5, horizon=300, windows=windows, check_every=check_every)


# Windows, rounds between questions, and a margin with which some lanes restart more often than others.
RESTARTS = [("dyadic", 3, -12.0), ("dyadic", 16, -30.0), ("all", 16, -30.0), ("dyadic", 40, -65.0)]


@pytest.mark.optimised
@pytest.mark.parametrize(("windows", "check_every", "margin"), RESTARTS)
def test_svt_restarts_plays_the_same(windows, check_every, margin, monkeypatch):
    values = {"epsilon": 8.0, "margin": margin}
    rounds, auto = (played(restarts(windows, check_every), values, engine) for engine in ("rounds", "auto"))
    assert equal(auto, rounds)
    restarted = rounds["public"][:, -1, -1]
    assert restarted.max() >= 1
    assert len(set(restarted.tolist())) > 1  # lanes go apart
    monkeypatch.setattr(_svt_restarts_bulk, "rounds_left", lambda round_: 1000 + 0 * round_)  # on beyond a selection
    assert not equal(played(restarts(windows, check_every), values, "blocks"), rounds)


def test_svt_restarts_has_no_blocks_where_questions_are_dense_or_experts_many():
    assert restarts("dyadic", 2).blocks == ()
    assert jaxdp.experts.svt_restarts(num_experts=500, horizon=300, check_every=16).blocks == ()


def lazy(rounds_per_step):
    sequences = classes.switching(num_switches=2)
    return jaxdp.experts.lazy_weights(num_experts=5, horizon=300, sequences=sequences, rounds_per_step=rounds_per_step)


@pytest.mark.optimised
@pytest.mark.parametrize("rounds_per_step", [2, 7, 19])
@pytest.mark.parametrize("batch", [1, 7, 19])
def test_lazy_weights_plays_the_same(rounds_per_step, batch, monkeypatch):
    values = {"epsilon": 8.0, "delta": 1e-3, "batch": batch, "fake_switch_prob": 0.2}
    rounds, auto = played(lazy(1), values, "rounds"), played(lazy(rounds_per_step), values, "auto")
    assert equal(auto, rounds)
    if batch == rounds_per_step == 7:
        monkeypatch.setattr(_lazy_weights, "sum_rounds", lambda losses, planned: losses.sum(axis=0))
        assert not equal(played(lazy(rounds_per_step), values, "auto"), rounds)


def test_rounds_at_once_are_checked():
    with pytest.raises(ValueError, match=r"^rounds_per_step must be"):
        lazy(0)


def test_keys_made_where_they_are_used_are_those_of_a_split():
    for key in (jax.random.key(3), jaxdp.random.key(3)):
        for index, child in enumerate(jax.random.split(key, 3)):
            where_used = jax.random.fold_in(key, index)
            np.testing.assert_array_equal(jax.random.key_data(where_used), jax.random.key_data(child))
