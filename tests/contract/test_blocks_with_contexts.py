"""Blocks of rounds with contexts: they equal single rounds, and audits of them find faults."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData, grey_box, leaks
from jaxdp.core import default_float
from jaxdp.simulation import simulator
from jaxdp.simulation.run.engines import choose_engine
from tests.contract.local_moments import local_moments, sphere

KEY = jax.random.key(29)
ROUNDS = 9  # two whole blocks, and parts
SIZES: Any = {"num_arms": 3, "dim": 2, "update_every": 4}
VALUES = {"epsilon": 1.0, "delta": 1e-2}
WORLD = sphere(num_arms=3, dim=2)
LEARNER = local_moments(**SIZES)


def test_contexts_reach_blocks():
    """Checks that contexts arrive as in rounds, up to a compiler's fusion; contexts of other rounds are noticed."""
    late = WORLD._replace(contexts=lambda keys, params, world: WORLD.contexts(keys, params, world)[::-1])  # pyright: ignore[reportOptionalCall]

    def released(environment, engine):
        run = simulator(
            LEARNER, environment, ROUNDS, engine=engine, record={"seen": lambda snapshot: snapshot.public.theta}
        )
        return jax.jit(run)(KEY, run.params(**VALUES))

    rounds, blocks = (released(WORLD, engine) for engine in ("rounds", "blocks"))
    for name, found in rounds.items():
        np.testing.assert_allclose(blocks[name], found, rtol=1e-4)
    assert not np.allclose(rounds["seen"], released(late, "blocks")["seen"], rtol=1e-2)


def test_blocks_need_the_contexts_of_many_rounds():
    lone = WORLD._replace(contexts=None)
    assert choose_engine(LEARNER, WORLD, "auto") == "blocks"
    assert choose_engine(LEARNER, lone, "auto") == "rounds"
    with pytest.raises(ValueError, match="without the environment's contexts"):
        choose_engine(LEARNER, lone, "blocks")


def test_an_order_is_refused():
    ordered = LEARNER.blocks[0]._replace(slot_rounds=lambda params, public: jnp.arange(4))
    run = simulator(LEARNER._replace(blocks=(ordered,)), WORLD, 8, engine="blocks")
    with pytest.raises(ValueError, match="slot_rounds must be None in a problem with contexts"):
        jax.eval_shape(run, KEY, run.params(**VALUES))


# ---- audits ----------------------------------------------------------------------------------------------------------
def draw_user(key):
    """Draws unit contexts, or longer ones, and rewards beyond the bound, or NaN."""
    key_x, key_y = jax.random.split(key)
    points = jax.random.normal(key_x, (3, 2))
    points = 3 * points / jnp.sqrt(jnp.sum(points * points, axis=-1, keepdims=True))
    return UserData(jax.random.choice(key_y, jnp.asarray([-7.0, 7.0, jnp.nan]), (3,)), points)


def neighbours(rounds, changed):
    """Gives every arm the same context, so that the play does not matter."""
    x, z = np.asarray([1.0, 0.0]), np.asarray([0.5, math.sqrt(0.75)])
    contexts = np.broadcast_to(z, (rounds, 3, 2)).astype(default_float())
    first = UserData(np.ones((rounds, 3), default_float()), contexts)
    answers, others = first.answers.copy(), contexts.copy()
    answers[changed], others[changed] = -1.0, x
    return first, UserData(answers, others)


def test_a_tape_sees_each_report_of_a_block():
    """Checks that its sensitivity is one user's, sqrt(4.5), within a hundredth."""
    learner = local_moments(num_arms=3, dim=2, update_every=2)
    found = grey_box(KEY, learner, VALUES, draw_user, rounds=2, num_bases=2, num_neighbours=128, path="blocks")
    assert found.verdict == "consistent", found
    (site,) = found.sites
    assert 0.99 * math.sqrt(4.5) < site.measured <= math.sqrt(4.5) * (1 + 1e-4)


def test_a_leak_in_a_block_is_found():
    users = neighbours(6, 4)
    run: Any = {"path": "blocks", "num_keys": 2}
    assert leaks(KEY, LEARNER, VALUES, users, **run).verdict == "consistent"

    def bare(key, params, public, context, action, feedback):
        report = LEARNER.privatize(key, params, public, context, action, feedback)
        return report._replace(cross=feedback * context[action])

    assert leaks(KEY, LEARNER._replace(privatize=bare), VALUES, users, **run).verdict == "violated"
