"""A learner that plays what its environment does not have is found, by every engine; a fitting one is not."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.core import Space, arms
from jaxdp.testing import check_learner

ENVIRONMENT = bernoulli_bandit([0.2, 0.5, 0.8])
VALUES, HORIZON, KEY = {"epsilon": 1.0}, 30, jax.random.key(7)
THREE, FIVE = (explore_then_commit(num_arms=n, explore_rounds=15) for n in (3, 5))
assert THREE.counts is not None
(BLOCKS,), COUNTS = THREE.blocks, THREE.counts


def undeclared(learner, **changes):
    return learner._replace(interface=None, **changes)


def _plays_late(keys, params, public, contexts, limit):
    """Plays another last arm from round 20 on."""
    plan = BLOCKS.plan(keys, params, public, contexts, limit)
    rounds = public.round + jnp.arange(len(keys), dtype=public.round.dtype)
    return plan._replace(actions=jnp.where((rounds >= 20) & (plan.actions == 2), 7, plan.actions))


def _owes_a_round(key, params, public, limit):
    counts = COUNTS.plan(key, params, public, limit).counts
    return jaxdp.core.CountPlan(counts + jnp.array([0, -20, 20], counts.dtype))


def test_plays_outside_are_found_by_rounds():
    with pytest.raises(AssertionError, match=r"actions must be integers in \[0, 2\], .*got 3 in round 4 by rounds"):
        check_learner(undeclared(FIVE), ENVIRONMENT, VALUES, horizon=HORIZON, key=KEY, draws_in_update=True)


def test_plays_outside_are_found_where_the_learner_alone_declares():
    lenient = ENVIRONMENT._replace(interface=None)
    declared = FIVE._replace(interface=THREE.interface)
    with pytest.raises(AssertionError, match=r"actions must be integers in \[0, 2\], .*got 3 in round 4 by rounds"):
        check_learner(declared, lenient, VALUES, horizon=HORIZON, key=KEY, draws_in_update=True)


def test_plays_outside_are_found_by_blocks():
    late = THREE._replace(blocks=(BLOCKS._replace(plan=_plays_late),))
    with pytest.raises(AssertionError, match=r"actions must be integers in \[0, 2\], .*got 7 in round 21 by blocks"):
        check_learner(late, ENVIRONMENT, VALUES, horizon=HORIZON, key=KEY, draws_in_update=True)


@pytest.mark.parametrize(
    ("interface", "declared"), [(THREE.interface, r"integers in \[0, 2\]"), (None, "played >= 0 times")]
)
def test_plays_outside_are_found_by_counts(interface, declared):
    late = THREE._replace(blocks=(), counts=COUNTS._replace(plan=_owes_a_round), interface=interface)
    environment = ENVIRONMENT._replace(interface=interface)
    message = rf"actions must be {declared}.*got action 1 played -\d+ times by counts"
    with pytest.raises(AssertionError, match=message):
        check_learner(
            late,
            environment,
            VALUES,
            horizon=HORIZON,
            key=KEY,
            draws_in_update=True,
            only=["counts play declared actions"],
        )


def test_an_own_learner_that_fits_passes_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_learner(
            undeclared(THREE), ENVIRONMENT, VALUES, horizon=HORIZON, key=KEY, draws_in_update=True, num_lanes=256
        )


def test_a_simulator_warns_of_a_learner_without_an_interface():
    message = r"explore_then_commit.*declares no interface, so its actions are not checked: .* integers in \[0, 2\]"
    with pytest.warns(UserWarning, match=message) as found:
        run = jaxdp.simulator(undeclared(FIVE), ENVIRONMENT, HORIZON)
    assert found[0].filename == __file__
    with warnings.catch_warnings(record=True) as shown:
        warnings.resetwarnings()
        for _ in range(3):
            jaxdp.simulator(undeclared(FIVE), ENVIRONMENT, HORIZON)
    assert len(shown) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxdp.simulator(THREE, ENVIRONMENT, HORIZON)
    regret = jax.jit(run)(KEY, run.params(**VALUES))["pseudo_regret"]
    assert jnp.isnan(regret).all()  # and not the nearest arm's


@pytest.mark.parametrize(
    ("space", "array", "inside"),
    [
        (arms(3), np.int32(2), True),
        (arms(3), np.int32(3), False),
        (arms(3), np.int32(-1), False),
        (arms(200), np.int8(127), True),
        (arms(200), np.uint32(2**32 - 1), False),
        (Space("integers"), np.int32(-5), True),
        (Space("integers", (), 2.0**40, 2.0**41), np.int32(7), False),
        (Space("integers", (2,), 0, 3), np.array([0, 4], np.int32), False),
        (Space("numbers", (2,), 0, 1), np.array([0.0, 1.0], np.float32), True),
        (Space("numbers", (2,), 0, 1), np.array([0.0, 1.01], np.float32), False),
        (Space("numbers", (), 0, 1), np.float32("nan"), False),
    ],
)
def test_what_a_space_holds(space, array, inside):
    assert bool(space.holds(jnp.asarray(array))) == inside
