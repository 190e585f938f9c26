"""Contextual learners have the distribution of independent NumPy versions."""

import functools
import json
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import contextual
from tests.algorithms.bandits.contextual.linear_ucb.make_reference import LEARNERS, PATH

REFERENCE = json.loads(PATH.read_text())
KEY = partial(jax.random.key, 52)
LANES = 100


def excess(snapshot):
    """Returns the model's error as a share of the ellipsoid's radius."""
    model = snapshot.public.model
    apart = model.lower.T @ (model.theta - snapshot.world.theta)
    return jnp.sqrt(jnp.sum(apart**2)) / model.width


@functools.cache
def program(name, index):
    """Builds the run of a case, and the run of many lanes, compiled once."""
    case = LEARNERS[name][1][index]
    options = {"report": case["report"]} if "report" in case else {}
    sizes = {key: case[key] for key in ("dim", "num_arms", "horizon")}
    learner = getattr(contextual, name)(**sizes, **options, update_every=1)
    theta = np.eye(case["dim"])[0] / 2
    world = contextual.linear_contexts(num_arms=case["num_arms"], dim=case["dim"], theta=theta)
    run = jaxdp.simulator(learner, world, case["horizon"], checkpoints=1, record={"excess": excess})
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(name, index, **changed):
    run, go = program(name, index)
    case = {**LEARNERS[name][1][index], **changed}
    values = {"epsilon": case["epsilon"], **({"delta": case["delta"]} if case["report"] == "gaussian" else {})}
    found = go(jax.random.split(KEY(), LANES), run.params(**values))
    return {"regret": np.asarray(found["pseudo_regret"])[:, -1], "excess": np.asarray(found["excess"])[:, -1]}


def check(found, expected):
    for output, values in found.items():
        values, like = values.astype(float), expected[output]
        error = math.hypot(values.std() / math.sqrt(LANES), like["standard_error"])
        assert abs(values.mean() - like["mean"]) <= 5 * error, (output, values.mean(), like["mean"], error)
        for share, quartile in zip((0.25, 0.5, 0.75), like["quartiles"], strict=True):
            error = math.sqrt(share * (1 - share) * 2 / LANES)
            assert np.mean(values < quartile) <= share + 5 * error, (output, share)
            assert np.mean(values <= quartile) >= share - 5 * error, (output, share)


CASES = [(name, index) for name, (_, cases) in LEARNERS.items() for index in range(len(cases))]


@pytest.mark.parametrize(("name", "index"), CASES)
def test_equals_the_independent_version(name, index):
    check(simulate(name, index), REFERENCE[name][index])


@pytest.mark.parametrize("changed", [pytest.param({"epsilon": 1.0}, marks=pytest.mark.always), {"delta": 1e-9}])
def test_another_budget_is_told_apart(changed):
    with pytest.raises(AssertionError):
        check(simulate("linear_ucb", 1, **changed), REFERENCE["linear_ucb"][1])
