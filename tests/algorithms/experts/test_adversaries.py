"""Losses have their distributions, never depend on this round's action, and bad ones are refused."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts import (
    adaptive_losses,
    exponential_weights,
    loss_sequence,
    punish_repeats,
    shifting_losses,
    stochastic_losses,
)
from tests.lazily import Lazy

KEY = partial(jax.random.key, 51)
ROUNDS = 20_000
MEANS = np.array([0.0, 0.3, 0.75, 1.0])
LOSSES = np.random.default_rng(1).uniform(size=(30, 3))
ENVIRONMENTS = Lazy(
    {
        "stochastic": lambda: stochastic_losses([0.2, 0.5, 0.6]),
        "sequence": lambda: loss_sequence(LOSSES),
        "adaptive": lambda: adaptive_losses([0.2, 0.5, 0.6], penalty=0.3),
        "repeats": lambda: punish_repeats(num_experts=3, memory=2, num_switches=1),
        "shifting": lambda: shifting_losses(num_experts=3, horizon=30, num_shifts=4, num_switches=2),
        "beta": lambda: shifting_losses(num_experts=3, horizon=30, num_shifts=4, distribution="beta"),
    }
)


def start(environment):
    params = jax.tree.map(jnp.asarray, environment.params())
    return params, environment.init(KEY(), params)


def check_means(draws, means):
    errors = np.sqrt(means * (1 - means) / len(draws))
    assert (np.abs(draws.mean(0) - means) <= 5 * errors).all()


def losses_of(environment, world, params):
    draw = jax.jit(jax.vmap(lambda key: environment.feedback(key, params, world, jnp.int32(0))[1]))
    return np.asarray(draw(jax.random.split(KEY(), ROUNDS)))


def test_stochastic_losses():
    environment = stochastic_losses(MEANS)
    params, world = start(environment)
    draws = losses_of(environment, world, params)
    assert set(np.unique(draws).tolist()) == {0.0, 1.0}
    check_means(draws, MEANS)
    with pytest.raises(AssertionError):
        check_means(draws, MEANS + np.array([0, 0.03, 0, 0]))
    assert abs(np.corrcoef(draws[:, 1], draws[:, 2])[0, 1]) < 5 / math.sqrt(ROUNDS)
    _, losses, outcome = environment.feedback(KEY(), params, world, jnp.int32(2))
    assert outcome["loss"] == losses[2]
    assert outcome["pseudo_regret"] == pytest.approx(0.75)


@pytest.mark.parametrize("last", [-1, 0, 2])
def test_adaptive_losses_react_to_the_last_play(last):
    environment = ENVIRONMENTS["adaptive"]
    params, world = start(environment)
    means = np.array([0.2, 0.5, 0.6])
    if last >= 0:
        means[last] += 0.3
    draws = losses_of(environment, world._replace(last=jnp.int32(last)), params)
    check_means(draws, means)
    with pytest.raises(AssertionError):
        check_means(draws, np.roll(means, 1))


def test_a_penalty_ends_at_one():
    environment = adaptive_losses([0.9, 0.5], penalty=0.4)
    params, world = start(environment)
    assert losses_of(environment, world._replace(last=jnp.int32(0)), params)[:, 0].min() == 1


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_losses_do_not_depend_on_this_rounds_action(name):
    """Plays another action with the same key and world: losses are the same.

    The next round's may differ if adaptive.
    """
    environment = ENVIRONMENTS[name]
    params, world = start(environment)
    feedback = jax.jit(environment.feedback)
    differ = 0
    for t in range(20):
        now, later = jax.random.split(jax.random.fold_in(KEY(), t))
        worlds, losses, outcomes = zip(*(feedback(now, params, world, jnp.int32(a)) for a in range(3)), strict=True)
        assert all((each == losses[0]).all() for each in losses)
        assert [outcome["loss"].item() for outcome in outcomes] == losses[0].tolist()
        after = [feedback(later, params, each, jnp.int32(0))[1] for each in worlds]
        differ += any((each != after[0]).any() for each in after)
        world = worlds[t % 3]
    assert (differ > 0) == (name in ("adaptive", "repeats"))


def test_a_sequence_is_played_in_order():
    environment = ENVIRONMENTS["sequence"]
    assert environment.horizon == 30
    learner = exponential_weights(num_experts=3, horizon=30)
    run = jaxdp.simulator(learner, environment, 30, checkpoints=30, record={"action": lambda snapshot: snapshot.action})
    outputs = jax.device_get(jax.jit(run)(KEY(), run.params(epsilon=math.inf)))
    mine = LOSSES[np.arange(30), outputs["action"]].cumsum()
    best = LOSSES.cumsum(0).min(1)
    np.testing.assert_allclose(outputs["loss"], mine, rtol=1e-5)
    np.testing.assert_allclose(outputs["best_loss"], best, rtol=1e-5)
    np.testing.assert_allclose(outputs["regret"], mine - best, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("action", [3, -1])
def test_an_expert_outside_has_no_loss(name, action):
    environment = ENVIRONMENTS[name]
    params, world = start(environment)
    after, losses, outcome = environment.feedback(KEY(), params, world, jnp.int32(action))
    assert jnp.isfinite(losses).all()
    assert all(jnp.isnan(value) for value in outcome.values())
    if environment.hindsight:
        assert jnp.isnan(environment.hindsight(params, after)["regret"])


def test_a_sequence_has_an_end():
    environment = ENVIRONMENTS["sequence"]
    params, world = start(environment)
    for round_, shown in ((29, LOSSES[29]), (30, math.nan)):
        later = world._replace(round=jnp.asarray(round_, world.round.dtype))
        np.testing.assert_allclose(environment.feedback(KEY(), params, later, jnp.int32(0))[1], shown, rtol=1e-6)


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([0.1, 1.1], r"means must be in \[0, 1\], got 1.1 at index \(1,\)"),
        ([0.1, -0.5], r"means must be in \[0, 1\], got -0.5 at index \(1,\)"),
        ([0.1, math.nan], r"means must be finite, got nan at index \(1,\)"),
        ([0.1], r"means must be a vector of at least two experts, got shape \(1,\)"),
        ([[0.1, 0.2]], r"means must be a vector of at least two experts, got shape \(1, 2\)"),
    ],
)
def test_bad_means(means, message):
    for make in (stochastic_losses, lambda means: adaptive_losses(means, penalty=0.1)):
        with pytest.raises(ValueError, match=message):
            make(means)


@pytest.mark.parametrize("penalty", [-0.1, 1.1, math.nan])
def test_bad_penalty(penalty):
    with pytest.raises(ValueError, match=f"penalty must be .*, got {penalty}"):
        adaptive_losses([0.1, 0.2], penalty=penalty)


def test_one_penalty_for_all():
    with pytest.raises(ValueError, match="penalty must be a number, got "):
        adaptive_losses([0.1, 0.2], penalty=[0.1, 0.2])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([[0.1, 0.2], [0.3]], "losses must be an array of numbers, got"),
        ([[0.1, 1.5]], r"losses must be in \[0, 1\], got 1 of 2 that are not$"),
        ([[0.1, 0.2], [math.nan, 0.2]], r"losses must be finite, got 1 of 4 that are not$"),
        ([0.1, 0.2], r"losses must be \[horizon, num_experts\] with at least two experts, got shape \(2,\)"),
        ([[0.1]], r"losses must be \[horizon, num_experts\] with at least two experts, got shape \(1, 1\)"),
        (np.zeros((0, 2)), r"losses must be \[horizon, num_experts\] with at least two experts, got shape \(0, 2\)"),
    ],
)
def test_bad_losses(losses, message):
    with pytest.raises(ValueError, match=message):
        loss_sequence(losses)


def test_repeats_are_punished_for_as_long_as_remembered():
    environment = punish_repeats(num_experts=4, memory=3, gap=0.5)
    params, world = start(environment)
    world = world._replace(good_expert=jnp.int32(0))
    feedback = jax.jit(environment.feedback)
    plays = [1, 2, 2, 3, 0, 0, 0, 0, 0, 1]
    always = []
    for round_ in range(len(plays) + 1):
        draws = losses_of(environment, world, params)
        always.append(set(np.flatnonzero(draws.min(0) == 1).tolist()))
        assert always[-1] == set(plays[max(round_ - 3, 0) : round_])
        means = np.where(np.isin(np.arange(4), list(always[-1])), 1, [0, 0.5, 0.5, 0.5])
        check_means(draws, means)
        if round_ < len(plays):
            key = jax.random.fold_in(KEY(), round_)
            world, losses, outcome = feedback(key, params, world, jnp.int32(plays[round_]))
            assert outcome["planted_regret"] == losses[plays[round_]] - losses[0]
    assert len({frozenset(each) for each in always}) > 3


def test_memory_and_gap_of_repeats_are_values():
    environment = punish_repeats(num_experts=2)
    worlds = [environment.init(KEY(), environment.params(memory=memory)) for memory in (0, 1, 7)]
    for memory, world in zip((0, 1, 7), worlds, strict=True):
        params = environment.params(memory=memory, gap=0.1)
        assert params.good_mean == pytest.approx(0.4)
        for _ in range(3):
            world, _, _ = environment.feedback(KEY(), params, world, jnp.int32(1))
        assert (world.since <= params.memory).tolist() == [False, memory > 0]


def test_anyone_may_be_the_good_expert():
    environment = punish_repeats(num_experts=4)
    params = environment.params()
    good = jax.vmap(lambda key: environment.init(key, params).good_expert)(jax.random.split(KEY(), 10_000))
    assert np.abs(np.bincount(good, minlength=4) / 10_000 - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / 10_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_experts": 1}, "num_experts must be an integer >= 2, got 1"),
        ({"memory": -1}, "memory must be an integer >= 0, got -1"),
        ({"gap": 0.6}, r"gap must be in \(0, 1/2\], got 0.6"),
        ({"gap": math.nan}, "gap must be > 0, got nan"),
    ],
)
def test_bad_repeats(options, message):
    with pytest.raises(ValueError, match=message):
        punish_repeats(**{"num_experts": 3, **options})


def test_stochastic_losses_by_blocks_and_tallies():
    environment = ENVIRONMENTS["stochastic"]
    block_of, feedback_totals_of = environment.block, environment.feedback_totals
    assert block_of
    assert feedback_totals_of
    params, world = start(environment)
    counts, lanes = jnp.array([4, 0, 9], jnp.result_type(int)), 4000
    keys = jax.random.split(KEY(), (lanes, 13))
    actions = jnp.repeat(jnp.arange(3), counts, total_repeat_length=13)
    block = jax.jit(jax.vmap(lambda keys: block_of(keys, params, world, None, actions)[1:]))
    losses, outcomes = block(keys)
    one = environment.feedback(keys[0, 5], params, world, actions[5])[1:]
    assert (one[0] == losses[0, 5]).all()
    assert one[1] == {name: value[0, 5] for name, value in outcomes.items()}
    _, *tallies = jax.jit(jax.vmap(lambda key: feedback_totals_of(key, params, world, counts)))(keys[:, 0])
    rounds = losses.sum(1), jax.tree.map(lambda each: each.sum(1), outcomes)
    for left, right in zip(jax.tree.leaves(rounds), jax.tree.leaves(tallies), strict=True):
        left, right = np.asarray(left, float), np.asarray(right, float)
        spread = left.std(0) + 1e-4
        assert (np.abs(left.mean(0) - right.mean(0)) < 5 * spread * math.sqrt(2 / lanes)).all()
        assert (np.abs(left.std(0) - right.std(0)) < 5 * spread * math.sqrt(2 / lanes)).all()
