"""Kinds of learners that do not exist yet: each runs in a sweep and keeps the contract."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Probe, Space, arms
from jaxdp.testing import check_learner
from tests.core import sketches
from tests.lazily import Lazy

KEY = partial(jax.random.key, 3)
PAIRS = Lazy(
    {
        "two_point": lambda: (sketches.two_point(3), 40),
        "full_information": lambda: (sketches.full_information(3), 40),
        "contextual": lambda: (sketches.contextual(4, 3), 30),  # of moments with Gaussian noise
        "shuffled": lambda: (sketches.shuffled(3, 5), 43),
        "best_arm": lambda: (sketches.best_arm(3, 4), 60),
    }
)


def more(name):
    return {"delta": 1e-2} if name == "contextual" else {}


def listed(name):
    return {value: [number] for value, number in more(name).items()}


def run_of(name):
    (learner, environment), horizon = PAIRS[name]
    return jaxdp.simulator(learner, environment, horizon, checkpoints=[horizon // 2, horizon])


@pytest.mark.parametrize("name", PAIRS)
def test_a_sketch_keeps_the_contract(name):
    (learner, environment), horizon = PAIRS[name]
    check_learner(learner, environment, {"epsilon": 1.0, **more(name)}, horizon=horizon, key=KEY())


@pytest.mark.parametrize("name", PAIRS)
def test_a_sketch_in_a_sweep(name):
    run = run_of(name)
    found = jaxdp.sweep(lambda: run, axes={"epsilon": [0.5, np.inf], **listed(name)}, num_seeds=16, key=KEY())
    assert np.isfinite(found.pseudo_regret).all()
    assert found.sizes["round"] == 2
    if name == "best_arm":
        assert {"rounds", "censored", "correct", "simple_regret", "correct_at_stop"} <= set(found.data_vars)
    lane = jaxdp.replay(found, seed=2, epsilon=np.inf)
    assert lane.sizes["round"] > 2


def test_two_points_find_the_target():
    run = run_of("two_point")
    lost = jax.jit(run)(KEY(), run.params(epsilon=np.inf))["pseudo_regret"]
    assert lost[1] - lost[0] < lost[0] / 4


# ---- answers ---------------------------------------------------------------------------------------------------------
def test_recommendations_are_evaluated_at_checkpoints_and_at_the_stop():
    """Stops after the last checkpoint: the judgement of that time is reported all the same."""
    learner, environment = sketches.best_arm(3, 4)
    run = jaxdp.simulator(learner, environment, 300, checkpoints=[3, 6])
    found = jaxdp.sweep(lambda: run, axes={"epsilon": [0.5, np.inf]}, num_seeds=64, key=KEY())
    assert found.correct.dims == ("epsilon", "seed", "round")
    assert found.correct_at_stop.dims == found.rounds.dims == ("epsilon", "seed")
    clear, private = (found.sel(epsilon=epsilon) for epsilon in (np.inf, 0.5))
    assert clear.correct_at_stop.mean() > max(0.8, float(private.correct_at_stop.mean()))
    assert (found.simple_regret_at_stop == 0).equals(found.correct_at_stop)
    assert clear.correct_at_stop.mean() > clear.correct.isel(round=0).mean()


def test_an_answer_that_nobody_judges():
    learner, environment = sketches.best_arm(3, 4)
    run = jaxdp.simulator(learner, environment._replace(evaluate=None), 30)
    assert set(run(KEY(), run.params(epsilon=1.0))) == {"pseudo_regret", "rounds", "censored"}


def test_recommendations_that_do_not_fit():
    learner, environment = sketches.best_arm(3, 4)
    assert learner.interface is not None
    other = learner.interface._replace(recommendation=Space("numbers", (3,)))
    with pytest.raises(ValueError, match="recommendation must be the same for learner and environment, got numbers"):
        jaxdp.simulator(learner._replace(interface=other), environment, 30)
    wrong = learner._replace(recommend=lambda params, public: public[0])
    run = jaxdp.simulator(wrong, environment, 30)
    with pytest.raises(
        ValueError, match=r"recommendation must be integers in \[0, 2\], as the learner declares, got int"
    ):
        run(KEY(), run.params(epsilon=1.0))
    clash = environment._replace(evaluate=lambda params, world, recommendation: {"pseudo_regret": recommendation})
    run = jaxdp.simulator(learner, clash, 30)
    with pytest.raises(ValueError, match="evaluated recommendations and records must differ, got pseudo_regret twice"):
        run(KEY(), run.params(epsilon=1.0))


@pytest.mark.parametrize(
    ("changes", "record", "message"),
    [
        (
            {"evaluate": lambda params, world, recommendation: recommendation},
            None,
            "evaluate must return a dict of arrays, got",
        ),
        (
            {"evaluate": lambda params, world, recommendation: {"a": None}},
            None,
            "evaluate must give an array for a, got NoneType",
        ),
        ({"hindsight": lambda params, world: params}, None, "hindsight must return a dict of arrays, got"),
        ({}, {"all": lambda snapshot: [snapshot.round]}, "record must give an array for all, got list"),
    ],
)
def test_what_is_read_must_be_arrays(changes, record, message):
    learner, environment = sketches.best_arm(3, 4)
    run = jaxdp.simulator(learner, environment._replace(**changes), 30, record=record)
    with pytest.raises(ValueError, match=message):
        run(KEY(), run.params(epsilon=1.0))


# ---- looks and spaces ------------------------------------------------------------------------------------------------
def test_a_look_has_all_that_a_record_may_read():
    (learner, environment), horizon = PAIRS["two_point"]
    record = {
        "centre": lambda snapshot: snapshot.action.centre,
        "epsilon": lambda snapshot: snapshot.params["learner"].epsilon,
        "distance": lambda snapshot: ((snapshot.public.x - snapshot.params["environment"]) ** 2).sum(),
        "played": lambda snapshot: snapshot.round,
    }
    run = jaxdp.simulator(learner, environment, horizon, checkpoints=[5, horizon], record=record)
    found = jax.jit(run)(KEY(), run.params(epsilon=2.0))
    assert found["centre"].shape == (2, 3)
    assert found["epsilon"].tolist() == [2.0, 2.0]
    assert found["played"].tolist() == [5, horizon]
    assert found["distance"].shape == (2,)


def test_an_action_of_another_structure_is_refused():
    (learner, environment), _ = PAIRS["two_point"]
    assert learner.interface is not None
    flat = learner._replace(interface=learner.interface._replace(action=learner.interface.action.centre))
    with pytest.raises(ValueError, match="action must be the same for learner and environment"):
        jaxdp.simulator(flat, environment, 10)
    plain = learner._replace(interface=learner.interface._replace(action=tuple(learner.interface.action)))
    with pytest.raises(ValueError, match="action must be the same for learner and environment"):
        jaxdp.simulator(plain, environment, 10)
    pair = learner._replace(act=lambda key, params, public, context: (public.x, public.x))
    run = jaxdp.simulator(pair, environment, 10)
    with pytest.raises(ValueError, match="learner and environment must fit"):
        run(KEY(), run.params(epsilon=1.0))


def test_plays_outside_a_ball_are_found():
    (learner, environment), horizon = PAIRS["two_point"]

    def far(key, params, public, context):
        probe = learner.act(key, params, public, context)
        return Probe(probe.centre + jnp.where(public.round == 7, 3.0, 0.0), probe.offset)

    with pytest.raises(AssertionError, match=r"l2 norm at most 2.* in round 8 by rounds"):
        check_learner(learner._replace(act=far), environment, {"epsilon": 1.0}, horizon=horizon, key=KEY())


def test_arms_are_no_vectors():
    (learner, environment), _ = PAIRS["full_information"]
    assert learner.interface is not None
    odd = learner._replace(interface=learner.interface._replace(action=arms(3)))
    with pytest.raises(ValueError, match="action must be the same"):
        jaxdp.simulator(odd, environment, 10)
