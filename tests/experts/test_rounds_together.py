"""Losses of several rounds at once are added as those of single rounds, and learners that do so play the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts import _lazy_weights, _rounds_together, _svt_restarts_bulk, classes
from jaxdp.experts._clear_losses import of_expert
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum

LANES, ROUNDS = 100, 19
FLOAT = jnp.result_type(float)
SIZES = [2, 10, 17, 40]  # up to 16 experts lanes are the fast axis


def in_lanes(function, *inputs):
    return jax.jit(jax.vmap(function))(*inputs)


def equal(left, right):
    same = jax.tree.map(lambda one, other: bool(np.array_equal(one, other)), left, right)
    return all(jax.tree.leaves(same))


def one_by_one(add, running, losses, planned):
    def step(running, entry):
        values, is_planned = entry
        return jax.tree.map(lambda new, old: jnp.where(is_planned, new, old), add(running, values), running), None

    return jax.lax.scan(step, running, (losses, planned))[0]


def inputs(num_experts):
    random = np.random.default_rng(num_experts)
    losses = jnp.asarray(random.random((LANES, ROUNDS, num_experts)), FLOAT)
    planned = jnp.asarray(np.arange(ROUNDS) < random.integers(0, ROUNDS + 1, (LANES, 1)))
    total, low = jnp.asarray(random.normal(size=(2, LANES, num_experts)) * 1000, FLOAT)
    expert = jnp.asarray(random.integers(0, num_experts, LANES), jnp.int32)
    return Sum(total, low * jnp.finfo(FLOAT).eps), expert, losses, planned


FORMS = {
    "added": (
        lambda form, running, expert, *rounds: form(running.total, *rounds),
        lambda running, expert, *rounds: one_by_one(jnp.add, running.total, *rounds),
    ),
    "added_exactly": (
        lambda form, running, expert, *rounds: form(running, *rounds),
        lambda running, expert, *rounds: one_by_one(compensated.add, running, *rounds),
    ),
    "added_regrets": (
        lambda form, *rounds: form(*rounds),
        lambda running, expert, *rounds: one_by_one(
            lambda running, losses: compensated.add(running, of_expert(losses, expert) - losses), running, *rounds
        ),
    ),
}


@pytest.mark.optimised
@pytest.mark.parametrize("num_experts", SIZES)
@pytest.mark.parametrize("name", FORMS)
def test_sums_are_the_plain_ones(name, num_experts):
    call, plain = FORMS[name]
    form, given = getattr(_rounds_together, name), inputs(num_experts)
    expected = in_lanes(plain, *given)
    assert equal(in_lanes(lambda *given: call(form, *given), *given), expected)

    def backwards(*given):  # the same losses in another order
        *others, losses, planned = given
        return form(*others, losses[::-1], planned[::-1])

    def of_all(*given):
        return form(*given[:-1], given[-1] | True)

    for wrong in (backwards, of_all):
        assert not equal(in_lanes(lambda *given, wrong=wrong: call(wrong, *given), *given), expected)


def shifting(num_experts, horizon, law):
    return jaxdp.experts.shifting_losses(num_experts=num_experts, horizon=horizon, num_shifts=3, gap=0.4, law=law)


def played(learner, values, engine, law="beta", horizon=300, num_experts=5):
    record = {"public": lambda look: jnp.stack([jnp.asarray(x, FLOAT) for x in jax.tree.leaves(look.public)])}
    world, looks = shifting(num_experts, horizon, law), [7, 100, horizon]
    run = jaxdp.simulator(learner, world, horizon, engine=engine, checkpoints=looks, record=record)
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(7), 24), run.params(**values))


def restarts(windows, check_every):
    return jaxdp.experts.svt_restarts(num_experts=5, horizon=300, windows=windows, check_every=check_every)


# Windows, rounds between questions, and a margin with which some lanes begin anew more often than others.
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


def lazy(together):
    sequences = classes.switching(num_switches=2)
    return jaxdp.experts.lazy_weights(num_experts=5, horizon=300, sequences=sequences, together=together)


@pytest.mark.optimised
@pytest.mark.parametrize("together", [2, 7, 19])
@pytest.mark.parametrize("batch", [1, 7, 19])
def test_lazy_weights_plays_the_same(together, batch, monkeypatch):
    values = {"epsilon": 8.0, "delta": 1e-3, "batch": batch, "fake_switch_prob": 0.2}
    rounds, auto = played(lazy(1), values, "rounds"), played(lazy(together), values, "auto")
    assert equal(auto, rounds)
    if batch == together == 7:
        monkeypatch.setattr(_lazy_weights, "added", lambda running, losses, planned: running + losses.sum(axis=0))
        assert not equal(played(lazy(together), values, "auto"), rounds)


def test_rounds_at_once_are_checked():
    with pytest.raises(ValueError, match=r"^together must be"):
        lazy(0)


def test_keys_made_where_they_are_used_are_those_of_a_split():
    for key in (jax.random.key(3), jaxdp.random.key(3)):
        for index, child in enumerate(jax.random.split(key, 3)):
            where_used = jax.random.fold_in(key, index)
            np.testing.assert_array_equal(jax.random.key_data(where_used), jax.random.key_data(child))
