"""Linear UCB under joint privacy has the distribution of an independent NumPy version."""

import functools
import json
from functools import partial

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import linear_contexts, linear_ucb_joint
from tests.algorithms.bandits.contextual.linear_ucb.test_golden import LANES, check, excess
from tests.algorithms.bandits.contextual.linear_ucb_joint.make_reference import CASES, PATH

REFERENCE = json.loads(PATH.read_text())
KEY = partial(jax.random.key, 53)


@functools.cache
def program(index):
    """Builds the run of a case, and the run of many lanes, compiled once."""
    case = CASES[index]
    sizes = {key: case[key] for key in ("dim", "num_arms", "horizon", "counter")}
    learner = linear_ucb_joint(**sizes, update_every=1)
    world = linear_contexts(num_arms=case["num_arms"], dim=case["dim"], theta=np.eye(case["dim"])[0] / 2)
    run = jaxdp.simulator(learner, world, case["horizon"], checkpoints=1, record={"excess": excess})
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(index, **changed):
    run, go = program(index)
    values = {name: CASES[index][name] for name in ("epsilon", "delta")}
    found = go(jax.random.split(KEY(), LANES), run.params(**{**values, **changed}))
    return {"regret": np.asarray(found["pseudo_regret"])[:, -1], "excess": np.asarray(found["excess"])[:, -1]}


@pytest.mark.parametrize("index", range(len(CASES)))
def test_equals_the_independent_version(index):
    check(simulate(index), REFERENCE[index])


def test_another_budget_is_told_apart():
    with pytest.raises(AssertionError):
        check(simulate(0, epsilon=1.2), REFERENCE[0])
