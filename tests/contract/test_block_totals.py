"""Blocks that draw the sum of their reports: what `check_learner` lets pass, what it refuses, and what audits find."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Users, audit, grey_box, leaks, learner_attack
from jaxdp.bandits import contextual
from jaxdp.core import default_float
from jaxdp.simulation import simulator
from jaxdp.simulation.run.engines import choose_engine
from jaxdp.testing import check_learner
from jaxdp.testing.distributions import check_distribution
from tests.contract.local_moments import local_moments, sphere

KEY = jax.random.key(29)
SIZES: Any = {"num_arms": 3, "dim": 2, "update_every": 4}
VALUES = {"epsilon": 1.0, "delta": 1e-2}
WORLD = sphere(num_arms=3, dim=2)
BLOCKWISE = local_moments(**SIZES, count=None)


def padded():
    """Blocks that are cut short have the noise of whole ones."""
    learner = local_moments(**SIZES)
    blocks, right = learner.blocks[0], learner.blocks[0].total
    assert right is not None

    def release(key, params, public, sums, length):
        return right.release(key, params, public, sums, jnp.full_like(length, 4))

    return learner._replace(blocks=(blocks._replace(total=right._replace(release=release)),))


ROUNDS = 9  # two whole blocks, and parts


def check(learner, rounds=ROUNDS):
    check_distribution(learner, WORLD, VALUES, engine="blocks", horizon=rounds, num_lanes=1500, key=KEY, tolerance=1e-4)


def test_the_law_of_a_sum_of_reports():
    check(local_moments(**SIZES))


def test_the_contract_with_a_sum_of_reports():
    """As that of learners of the registry, also with noise of another size."""
    check_learner(local_moments(**SIZES), WORLD, VALUES, horizon=ROUNDS, key=KEY)
    with pytest.raises(AssertionError, match="blocks must have the distribution of rounds"):
        check_learner(local_moments(**SIZES, count=quarter), WORLD, VALUES, horizon=ROUNDS, key=KEY)


@pytest.mark.parametrize(
    ("make", "rounds"),
    [
        pytest.param(lambda: local_moments(**SIZES, count=jnp.square), ROUNDS, id="noise of L in place of its root"),
        pytest.param(lambda: local_moments(**SIZES, count=jnp.ones_like), ROUNDS, id="noise of one"),
        pytest.param(padded, 1, id="a cut block"),
    ],
)
def test_another_law_is_refused(make, rounds):
    with pytest.raises(AssertionError, match="blocks must have the distribution of rounds"):
        check(make(), rounds)


def test_contexts_reach_blocks_of_single_reports():
    """As they reach rounds, but for what a compiler fuses; contexts of other rounds are noticed."""
    late = WORLD._replace(contexts=lambda keys, params, world: WORLD.contexts(keys, params, world)[::-1])  # pyright: ignore[reportOptionalCall]

    def released(environment, engine):
        run = simulator(BLOCKWISE, environment, ROUNDS, engine=engine, record={"seen": lambda look: look.public.theta})
        return jax.jit(run)(KEY, run.params(**VALUES))

    rounds, blocks = (released(WORLD, engine) for engine in ("rounds", "blocks"))
    for name, found in rounds.items():
        np.testing.assert_allclose(blocks[name], found, rtol=1e-4)
    assert not np.allclose(rounds["seen"], released(late, "blocks")["seen"], rtol=1e-2)


def test_only_who_asks_gets_blocks_with_totals():
    learner, lone = local_moments(**SIZES), WORLD._replace(contexts=None)
    assert choose_engine(learner, WORLD, "auto") == "rounds"
    assert choose_engine(learner, WORLD, "blocks") == "blocks"
    assert choose_engine(BLOCKWISE, WORLD, "auto") == "blocks"
    assert choose_engine(BLOCKWISE, lone, "auto") == "rounds"
    with pytest.raises(ValueError, match="without the environment's contexts"):
        choose_engine(learner, lone, "blocks")
    with pytest.raises(ValueError, match="total must be given for all blocks of a learner or for none"):
        choose_engine(learner._replace(blocks=(*learner.blocks, *BLOCKWISE.blocks)), WORLD, "auto")
    assert simulator(learner, WORLD, 8, engine="blocks").by_round is None
    assert simulator(BLOCKWISE, WORLD, 8, engine="blocks").by_round is not None


def test_totals_go_with_no_order():
    learner = local_moments(**SIZES)
    ordered = learner.blocks[0]._replace(order=lambda params, public: jnp.arange(4))
    run = simulator(learner._replace(blocks=(ordered,)), WORLD, 8, engine="blocks")
    with pytest.raises(ValueError, match="order must be None of blocks with a total, and in a problem with contexts"):
        jax.eval_shape(run, KEY, run.params(**VALUES))


def quarter(rounds):
    """Half the noise."""
    return 0.25 * rounds.astype(jnp.result_type(float))


def test_a_block_goes_on_where_it_is_past_the_time():
    """As where a matrix had no factor: every round may be the one in which it has, and none is played by a 0."""
    learner = contextual.linear_ucb(num_arms=2, dim=2, horizon=40, update_every=5)
    params = learner.params(**VALUES)
    public: Any = learner.init(KEY, params).public
    for round_, length in ((0, 5), (3, 2), (9, 1)):
        late = public._replace(round=jnp.asarray(round_, public.round.dtype))
        limit = jnp.asarray(5, public.round.dtype)
        plan = learner.blocks[0].plan(jax.random.split(KEY, 5), params, late, jnp.ones((5, 2, 2)), limit)
        assert int(plan.length) == length


# ---- audits ----------------------------------------------------------------------------------------------------------
def draw_user(key):
    """Unit contexts, or longer ones; rewards beyond the bound, or NaN."""
    key_x, key_y = jax.random.split(key)
    points = jax.random.normal(key_x, (3, 2))
    points = 3 * points / jnp.sqrt(jnp.sum(points * points, axis=-1, keepdims=True))
    return Users(jax.random.choice(key_y, jnp.asarray([-7.0, 7.0, jnp.nan]), (3,)), points)


def neighbours(rounds, changed):
    """Every arm has the same context, so that the play does not matter."""
    x, z = np.asarray([1.0, 0.0]), np.asarray([0.5, math.sqrt(0.75)])
    contexts = np.broadcast_to(z, (rounds, 3, 2)).astype(default_float())
    first = Users(np.ones((rounds, 3), default_float()), contexts)
    answers, others = first.answers.copy(), contexts.copy()
    answers[changed], others[changed] = -1.0, x
    return first, Users(answers, others)


def test_a_tape_sees_the_sum_as_one_release():
    """Its sensitivity is that of one user's moments, sqrt(4.5), within a hundredth."""
    learner = local_moments(num_arms=3, dim=2, update_every=2)
    found = grey_box(KEY, learner, VALUES, draw_user, rounds=2, num_bases=2, num_neighbours=128, path="blocks")
    assert found.verdict == "consistent", found
    (site,) = found.sites
    assert (site.site, site.releases) == ("gaussian in total", 1)
    assert 0.99 * math.sqrt(4.5) < site.measured <= math.sqrt(4.5) * (1 + 1e-4)


def test_a_sum_is_attacked():
    """The user is the first of a block, and the last whose report is seen: nobody else's noise hides it."""
    for count, verdict in ((lambda rounds: rounds, "consistent"), (quarter, "violated")):
        attack = learner_attack(local_moments(**SIZES, count=count), VALUES, neighbours(6, 4), path="blocks")
        found = audit(KEY, attack, trials=20_000)
        assert found.verdict == verdict, found
        assert found.lower_bound > 0.3, found


def test_a_leak_beside_the_sum_is_found():
    learner, users = local_moments(**SIZES), neighbours(6, 4)
    run: Any = {"path": "blocks", "num_keys": 2}
    assert leaks(KEY, learner, VALUES, users, **run).verdict == "consistent"
    bare = local_moments(**SIZES, count=jnp.zeros_like)
    assert leaks(KEY, bare, VALUES, users, **run).verdict == "violated"
