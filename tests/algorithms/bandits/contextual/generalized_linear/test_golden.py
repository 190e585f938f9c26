"""generalized_linear against its NumPy version, in distribution."""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import generalized_linear, generalized_linear_contexts
from tests.algorithms.bandits.contextual.generalized_linear.make_reference import CASES, LONG, PATH

REFERENCE = json.loads(PATH.read_text())
LANES = 200


@functools.cache
def program(index):
    """Builds the run of a case, and the run of many lanes, compiled once."""
    case = {"link": "logistic", **CASES[index]}
    sizes = {name: case[name] for name in ("num_arms", "dim", "link")}
    learner = generalized_linear(**sizes, horizon=case["horizon"], report=case["report"], update_every=1)
    environment = generalized_linear_contexts(**sizes, theta=np.eye(case["dim"])[0])

    def excess(snapshot):
        model = snapshot.public.model
        apart = model.lower.T @ (model.theta - snapshot.world.theta)
        return jnp.sqrt(jnp.sum(apart**2)) / model.width

    run = jaxdp.simulator(learner, environment, case["horizon"], checkpoints=1, record={"excess": excess})
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def outputs(index, **changed):
    run, go = program(index)
    case = CASES[index]
    values = {"epsilon": case["epsilon"], **({"delta": case["delta"]} if case["report"] == "gaussian" else {})}
    found = go(jax.random.split(jax.random.key(11), LANES), run.params(**values, **changed))
    return {"regret": np.asarray(found["pseudo_regret"])[:, -1], "excess": np.asarray(found["excess"])[:, -1]}


def unlike(found, expected):
    """Returns the largest difference of means, and of quartiles' shares, in standard errors."""
    error = math.hypot(found.std() / math.sqrt(len(found)), expected["standard_error"])
    apart = [abs(found.mean() - expected["mean"]) / error]
    for share, quartile in zip((0.25, 0.5, 0.75), expected["quartiles"], strict=True):
        spread = math.sqrt(share * (1 - share) * (1 / len(found) + 1 / 1000))
        apart.append(abs(np.mean(found < quartile) - share) / spread)
    return max(apart)


@pytest.mark.parametrize("index", [pytest.param(i, id=f"case{i}-expected{i}") for i in range(len(CASES))])
def test_the_distribution_is_that_of_the_plain_version(index):
    for name, found in outputs(index).items():
        assert unlike(found, REFERENCE[index][name]) < 5, name


def test_a_planted_step_is_found():
    """Plants half the noise of gradients, which changes step and radius."""
    found = outputs(0, residual_bound=1.0)
    assert max(unlike(found[name], REFERENCE[0][name]) for name in found) > 5


def test_cases_are_those_asked_for():
    assert {(case["dim"], case["epsilon"]) for case in LONG} == {(d, e) for d in (2, 5) for e in (0.5, 2.0, math.inf)}
