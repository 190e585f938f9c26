"""Linear UCB under joint privacy has the law of an independent NumPy version."""

import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import linear_contexts, linear_ucb_joint
from tests.few import few
from tests.golden.make_joint_reference import CASES, PATH
from tests.golden.test_contextual import LANES, check, excess

pytestmark = pytest.mark.once

REFERENCE = json.loads(PATH.read_text())
KEY = jax.random.key(53)


def simulate(case, **changed):
    case = {**case, **changed}
    sizes = {key: case[key] for key in ("dim", "num_arms", "horizon", "counter")}
    learner = linear_ucb_joint(**sizes, update_every=1)
    world = linear_contexts(num_arms=case["num_arms"], dim=case["dim"], theta=np.eye(case["dim"])[0] / 2)
    run = jaxdp.simulator(learner, world, case["horizon"], checkpoints=1, record={"excess": excess})
    params = run.params(epsilon=case["epsilon"], delta=case["delta"])
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY, LANES), params)
    return {"regret": np.asarray(found["pseudo_regret"])[:, -1], "excess": np.asarray(found["excess"])[:, -1]}


@pytest.mark.parametrize("index", few(list(range(len(CASES))), [0, 1]))
def test_equals_the_independent_version(index):
    check(simulate(CASES[index]), REFERENCE[index])


def test_another_budget_is_told_apart():
    with pytest.raises(AssertionError):
        check(simulate(CASES[0], epsilon=1.2), REFERENCE[0])
