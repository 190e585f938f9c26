"""Blocks that release sums, played and replayed: without contexts, of all kinds of numbers, with one key a block."""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.audit import Users, play, steps
from jaxdp.core import BlockPlan, Blocks, BlockTotal, Guarantee, Interface, Learner, Space, State, arms, default_float
from jaxdp.numerics.kernels import folded, halved

KEY = jax.random.key(11)
LENGTH, ROUNDS = 4, 10
CLAIM = Guarantee.none(trust_model="central", privacy_unit="one round", argument="none")
WORLD = jaxdp.bandits.gaussian_bandit([0.2, 0.5, 0.8])
ADDENDS = {
    "float": lambda feedback: 0.1 * (feedback + 1),
    "tenth": lambda feedback: jnp.full_like(feedback, 0.1),
    "bool": lambda feedback: feedback > -1,
    "int8": lambda feedback: jnp.full((), 60, jnp.int8),
    "python": lambda feedback: 1.0,
}


def summed(kind="float", length=LENGTH) -> Learner:
    """Plays arms at random, and adds up reports without noise; and the draws of its `absorb`, one a block."""
    addend = ADDENDS[kind]

    def init(key, params):
        zero = jnp.zeros((), default_float())
        return State((), (jnp.zeros((), jnp.result_type(int)), zero, zero))

    def act(key, params, public, context):
        return jax.random.randint(key, (), 0, 3, jnp.int32)

    def privatize(key, params, public, context, action, feedback):
        return addend(feedback)

    def after(public, sums, rounds, drawn):
        sums = jnp.asarray(sums).astype(default_float())
        return State((), (public[0] + rounds, public[1] + sums, public[2] + drawn))

    def update(key, params, state, report):
        return after(state.public, report, 1, 0)

    def plan(keys, params, public, contexts, limit):
        actions = jax.vmap(lambda key: act(key, params, public, None))(keys)
        return BlockPlan(actions, jnp.minimum(limit, length - public[0] % length))

    def exact(params, public, context, action, feedback):
        return addend(feedback)

    def release(key, params, public, sums, length):
        return sums

    def absorb(keys, params, state, plan, report):
        return after(state.public, report, plan.length, jax.random.normal(keys[-1], dtype=default_float())), plan.length

    return Learner(
        params=lambda *, scale=1.0: np.float32(scale),
        guarantee=lambda *, scale=1.0: CLAIM,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(length, plan, absorb, total=BlockTotal(exact, release)),),
        interface=Interface(arms(3), Space("numbers")),
    )


def found(learner, environment, engine, rounds=ROUNDS, **options):
    run = jaxdp.simulator(learner, environment, rounds, engine=engine, **options)
    return jax.jit(run)(KEY, run.params())


@pytest.mark.parametrize("kind", ADDENDS)
def test_sums_are_those_of_rounds(kind):
    """Also where checkpoints cut a block; nothing wraps, and what is true is counted."""
    options = {"record": {"sum": lambda look: look.public[1]}, "checkpoints": [1, 6, ROUNDS]}
    rounds, blocks = (found(summed(kind), WORLD, engine, **options) for engine in ("rounds", "blocks"))
    assert set(rounds) == set(blocks)
    for name, expected in rounds.items():
        np.testing.assert_allclose(blocks[name], expected, rtol=1e-6, err_msg=name)


def test_a_world_with_a_memory_goes_on():
    rewards = np.linspace(0, 1, 3 * ROUNDS, dtype=np.float32).reshape(ROUNDS, 3)
    world = jaxdp.bandits.reward_sequence(rewards)
    rounds, blocks = (found(summed(), world, engine) for engine in ("rounds", "blocks"))
    for name, expected in rounds.items():
        np.testing.assert_allclose(blocks[name], expected, rtol=1e-6, err_msg=name)


def test_long_sums_do_not_stall():
    """Plain float32 addition of 0.1 is off by four percent after 2^22 rounds."""
    rounds = 2**22
    outputs = found(summed("tenth", rounds), WORLD, "blocks", rounds, record={"sum": lambda look: look.public[1]})
    np.testing.assert_allclose(outputs["sum"], 0.1 * rounds, rtol=1e-6)


def test_a_replay_is_what_was_played():
    """Users who react to plays, and a draw with the key that `absorb` gets."""
    learner: Any = summed()
    params, users = learner.params(), Users(np.zeros(ROUNDS, np.float32))

    def answer(answers, past, action):
        return answers + past.actions.sum().astype(answers.dtype)

    log = play.play(learner, answer, KEY, params, users, path="blocks")
    scene = steps.Scene(learner, answer, params, learner.guarantee(), "blocks", log)
    keys = steps.step_keys(scene, KEY)[1]

    def opened(stage, round_):
        return contextlib.nullcontext()

    assert np.flatnonzero(log.length).tolist() == [0, 4, 8]
    assert float(log.reports[4]) != float(log.reports[0])
    for step in steps.steps_of(scene):
        public = steps.at(log.before, step.start)
        plan = steps.choose(scene, step, keys, users, public, opened)
        places = steps.places_of(scene, step, plan, public)
        made = steps.react(scene, step, keys, users, State((), public), plan, places, opened)
        np.testing.assert_allclose(made.report, log.reports[step.start], rtol=1e-6)
        jax.tree.map(
            lambda mine, its: np.testing.assert_allclose(mine, its, rtol=1e-6),
            made.state.public,
            steps.at(log.after, step.start),
        )


def test_a_plan_of_all_rounds_is_refused():
    learner = summed()
    blocks = learner.blocks[0]

    def plan(keys, params, public, contexts, limit):
        return blocks.plan(jnp.tile(keys[:1], LENGTH), params, public, contexts, limit)

    wrong = learner._replace(blocks=(blocks._replace(plan=plan),))
    with pytest.raises(ValueError, match=r"the learner's blocks.plan must keep shapes and dtypes of the actions"):
        found(wrong, WORLD, "blocks")


@pytest.mark.parametrize("count", [1, 2, 16, 17, 31, 40])
def test_terms_are_combined_in_the_order_of_an_array(count):
    values = jax.random.normal(KEY, (count, 3))
    np.testing.assert_array_equal(halved(jnp.add, list(values)), folded(jnp.add, values))
