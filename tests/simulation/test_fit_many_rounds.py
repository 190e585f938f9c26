"""Mismatches of blocks and counts are refused, by naming the mismatch."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

from jaxdp.core import State
from jaxdp.simulation import simulator
from tests.simulation.refusals import BANDIT, LEARNER, refused

BLOCKS = functools.cache(lambda: LEARNER().blocks[0])
COUNTS: Callable[[], Any] = functools.cache(lambda: LEARNER().counts)


def with_blocks(**changes):
    return LEARNER()._replace(
        blocks=(BLOCKS()._replace(**{name: change(BLOCKS()) for name, change in changes.items()}),)
    )


def without_an_outcome(function):
    def fewer(*arguments):
        world, feedback, outcome = function(*arguments)
        return world, feedback, {"pseudo_regret": outcome["pseudo_regret"]}

    return fewer


def float_plays(function):
    def changed(*arguments):
        world, feedback, outcome = function(*arguments)
        return world, feedback, {**outcome, "best_arm_plays": outcome["best_arm_plays"].astype(float) * 0.9}

    return changed


def complex_plays(function):
    def changed(*arguments):
        world, feedback, outcome = function(*arguments)
        return world, feedback, {**outcome, "best_arm_plays": outcome["best_arm_plays"].astype(complex)}

    return changed


def test_blocks_are_a_tuple_of_them():
    with pytest.raises(ValueError, match=r"blocks must be a tuple of Blocks, as \(blocks,\), got one Blocks"):
        simulator(LEARNER()._replace(blocks=BLOCKS()), BANDIT(), 20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda blocks: lambda *a: blocks.update_block(*a)[0],
            "blocks.update_block must return (State, rounds_used), got State",
        ),
        (
            lambda blocks: lambda *a: (blocks.update_block(*a)[0], jnp.ones(2)),
            "blocks.update_block must return one integer of rounds used, got float",
        ),
        (
            lambda blocks: lambda *a: (State({}, a[2].public), blocks.update_block(*a)[1]),
            "the learner's blocks.update_block must keep the structure of the state",
        ),
    ],
)
def test_blocks_that_do_not_fit(change, message):
    refused(message, with_blocks(update_block=change), engine="blocks")


@pytest.mark.parametrize(
    ("make_order", "found"),
    [
        (lambda length: jnp.zeros(3, jnp.int32), "got int32[3]"),
        (lambda length: jnp.int32(0), "got int32[]"),
        (lambda length: jnp.zeros((length, 2), jnp.int32), "got int32[{length}, 2]"),
        (lambda length: jnp.zeros(length, jnp.float32), "got float32[{length}]"),
        (lambda length: jnp.zeros(length, bool), "got bool[{length}]"),
        (lambda length: None, "got NoneType"),
        (lambda length: (jnp.int32(0), jnp.int32(1)), "got tuple"),
    ],
)
def test_orders_that_are_none(make_order, found):
    length = BLOCKS().length
    learner = with_blocks(slot_rounds=lambda blocks: lambda params, public: make_order(length))
    message = f"blocks.slot_rounds must return integers of shape ({length},), {found.format(length=length)}"
    refused(message, learner, engine="blocks")


def test_an_order_that_does_not_take_what_it_gets():
    learner = with_blocks(slot_rounds=lambda blocks: lambda params: jnp.arange(BLOCKS().length))
    refused("the learner's blocks.slot_rounds does not accept its arguments", learner, engine="blocks")


def test_blocks_that_follow():
    few = BLOCKS()._replace(update_block=lambda *a: BLOCKS().update_block(*a)[0])

    def refuse(message, switch_when, then=None):
        followers = (BLOCKS(),) if then is None else then
        refused(
            message,
            LEARNER()._replace(blocks=(BLOCKS()._replace(switch_when=switch_when), *followers)),
            engine="blocks",
        )

    refuse(
        "blocks.update_block must return (State, rounds_used), got State",
        lambda params, public: public.round > 3,
        (few,),
    )
    refuse("blocks.switch_when must return one truth value, got", lambda params, public: jnp.int32(1))
    refuse("blocks.switch_when must return one truth value, got", lambda params, public: jnp.ones(2, bool))
    refuse("the learner's blocks.switch_when does not accept its arguments", lambda public: jnp.asarray(True))
    refuse("switch_when must be given for all blocks except the last, got None for blocks 1 of 2", None)
    refuse("switch_when must be None for the last blocks, got", lambda params, public: public.round > 3, ())


def test_plans_that_are_none():
    refused(
        "blocks.plan must return a BlockPlan with one integer length",
        with_blocks(plan=lambda blocks: lambda *a: blocks.plan(*a).actions),
        engine="blocks",
    )
    refused(
        "the learner's blocks.plan must keep shapes and dtypes of the actions",
        with_blocks(plan=lambda blocks: lambda *a: blocks.plan(*a)._replace(actions=jnp.zeros(3, jnp.int32))),
        engine="blocks",
    )
    refused(
        "blocks.plan must return a BlockPlan with one integer length",
        with_blocks(plan=lambda blocks: lambda *a: blocks.plan(*a)._replace(length=None)),
        engine="blocks",
    )
    wrong = COUNTS()._replace(plan=lambda *a: COUNTS().plan(*a).counts)
    refused(
        "counts.plan must return a CountPlan of [num_actions] integers",
        LEARNER()._replace(counts=wrong),
        engine="counts",
    )


@pytest.mark.parametrize(("engine", "name"), [("blocks", "block"), ("counts", "feedback_totals")])
def test_outcomes_of_many_rounds_that_are_not_those_of_single_ones(engine, name):
    def answers(change):
        return BANDIT()._replace(**{name: change(getattr(BANDIT(), name))})

    refused(
        f"the environment's {name} must keep the names of the outcomes, got ['best_arm_plays', 'pseudo_regret'] and "
        "then ['pseudo_regret']",
        environment=answers(without_an_outcome),
        engine=engine,
    )
    refused("as floats if single rounds give floats", environment=answers(float_plays), engine=engine)
    for result, got in ((None, "NoneType"), (jnp.zeros(3, bool), "bool of shape (3,)")):
        environment = answers(lambda _, result=result: lambda *a: result)
        lead = "(worlds, feedback" if name == "block" else "(world, totals"
        refused(
            f"the environment's {name} must return a tuple {lead}, dict of outcomes), got {got}",
            environment=environment,
            engine=engine,
        )
    refused("must give real outcomes, got complex", environment=answers(complex_plays), engine=engine)
