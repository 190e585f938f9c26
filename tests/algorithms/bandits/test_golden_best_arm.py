"""Learners that find the best arm have the distribution of independent NumPy versions."""

import functools
import json
import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits
from jaxdp.mechanisms import gaussian_delta
from tests.algorithms.bandits.make_best_arm_reference import CASES, PATH

REFERENCE = json.loads(PATH.read_text())
LANES = 1000


@functools.cache
def program(name):
    """Builds the run of a case, its values, and the run of many lanes, compiled once."""
    function, case = CASES[name]
    rewards = "bounded" if "spread" in case else "binary"
    report = "gaussian" if "stddev" in case else "rr"
    sizes = {"num_arms": len(case["means"]), "report": report, "rewards": rewards}
    values = {key: case[key] for key in ("epsilon", "failure_prob") if key in case}
    values |= {f"reward_{end}": case[end] for end in ("low", "high") if end in case}
    if function == "lil_ucb":
        learner = bandits.lil_ucb(**sizes, constants=case["constants"])
    else:
        learner = bandits.successive_elimination(**sizes)
        values["confidence_multiplier"] = case["multiplier"]
    if report == "gaussian":
        values["delta"] = float(gaussian_delta(case["epsilon"], case["stddev"], case["high"] - case["low"]))
    if rewards == "binary":
        world = bandits.bernoulli_bandit(case["means"])
    else:
        world = bandits.gaussian_bandit(case["means"], stddev=case["spread"])
    run = jaxdp.simulator(learner, world, 10**6)
    return run, values, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(name, **changed):
    run, values, go = program(name)
    found = go(jaxdp.lane_keys(jax.random.key(5), LANES), run.params(**{**values, **changed}))
    assert not found["censored"].any()
    return {output: np.asarray(found[output]).reshape(LANES, -1)[:, -1] for output in REFERENCE[name]}


def check(found, expected):
    for output, values in found.items():
        values, like = values.astype(float), expected[output]
        error = math.hypot(values.std() / math.sqrt(LANES), like["standard_error"])
        assert abs(values.mean() - like["mean"]) <= 5 * max(error, 0.1 / LANES), output
        for share, quartile in zip((0.25, 0.5, 0.75), like["quartiles"], strict=True):
            # Of integers several have the same value: the share lies between those below and up to it.
            error = 5 * math.sqrt(share * (1 - share) * 2 / LANES)
            assert np.mean(values < quartile) - error <= share <= np.mean(values <= quartile) + error, (output, share)


@pytest.mark.parametrize("name", CASES)
def test_equals_the_independent_version(name):
    check(simulate(name), REFERENCE[name])


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lil_ucb", {"failure_prob": 0.1}),
        ("successive_elimination", {"confidence_multiplier": 0.5}),
        ("successive_elimination_bounded", {"epsilon": 1.2}),
    ],
)
def test_another_one_does_not(name, changed):
    with pytest.raises(AssertionError):
        check(simulate(name, **changed), REFERENCE[name])
