"""Learners that select from exact losses have the distribution of independent NumPy versions."""

import dataclasses
import functools
import json
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import experts
from tests.algorithms.experts.make_tracking_reference import LEARNERS, PATH, WORLD
from tests.algorithms.experts.worlds import shifting

REFERENCE = json.loads(PATH.read_text())
KEY = partial(jax.random.key, 31)
LANES = 2000
CASES = [(name, index) for name, cases in LEARNERS.items() for index in range(len(cases))]


def arguments_of(name, case):
    """Returns the factory's arguments besides its sizes, the values, and replacements of leaves of the params."""
    if name == "limited_updates":
        return {}, case, {}
    if name == "limited_updates_oblivious":
        leaves = {"learning_rate": np.float32(case["rate"]), "batch": np.int32(case["batch"])}
        return {}, {"epsilon": 1.0}, leaves
    if name == "svt_restarts":
        options = {key: case[key] for key in ("windows", "check_every")}
        return options, {key: case[key] for key in ("epsilon", "failure_prob", "margin")}, {}
    leaves = {
        "learning_rate": np.float32(case["rate"]),
        "monitor_epsilon": np.float32(case["budget"]),
        "threshold": np.float32(case["threshold"]),
        "max_switches": np.int32(case["most"]),
    }
    return {}, {"epsilon": 1.0}, leaves


RECORDS = {
    "last": lambda snapshot: snapshot.public.expert,
    "restarts": lambda snapshot: snapshot.public.restarts,
    "switches": lambda snapshot: snapshot.public.switches,
}


@functools.cache
def program(name, **options):
    """Builds a learner's run, and the run of many lanes, compiled once."""
    horizon = {} if name == "limited_updates" else {"horizon": WORLD["horizon"]}
    learner = getattr(experts, name)(num_experts=3, **horizon, **options)
    record = {output: read for output, read in RECORDS.items() if output in REFERENCE[name][0]}
    world = shifting(WORLD["before"], WORLD["after"], WORLD["shift"])
    run = jaxdp.simulator(learner, world, WORLD["horizon"], checkpoints=[WORLD["horizon"]], record=record)
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(name, case):
    options, values, leaves = arguments_of(name, case)
    run, go = program(name, **options)
    params = run.params(**values)
    mine = params["learner"]
    cast = {leaf: value.astype(getattr(mine, leaf).dtype) for leaf, value in leaves.items()}
    params = jax.tree.map(jnp.asarray, {**params, "learner": dataclasses.replace(mine, **cast)})
    found = go(jax.random.split(KEY(), LANES), params)
    return {output: np.asarray(found[output])[:, -1] for output in REFERENCE[name][0]}


def check(found, expected):
    for output, values in found.items():
        values, like = values.astype(float), expected[output]
        error = math.hypot(values.std() / math.sqrt(LANES), like["standard_error"])
        assert abs(values.mean() - like["mean"]) <= 5 * error + 1e-3, output
        for share, quartile in zip((0.25, 0.5, 0.75), like["quartiles"], strict=True):
            error = math.sqrt(share * (1 - share) * 2 / LANES)
            assert np.mean(values < quartile - 1e-2) <= share + 5 * error, (output, share)
            assert np.mean(values <= quartile + 1e-2) >= share - 5 * error, (output, share)


@pytest.mark.parametrize(("name", "index"), CASES)
def test_equals_the_independent_version(name, index):
    check(simulate(name, LEARNERS[name][index]), REFERENCE[name][index])


WRONG = {
    "limited_updates": {"epsilon": 0.45},
    "limited_updates_oblivious": {"rate": 0.03, "batch": 8},
    "svt_restarts": {"epsilon": 5.0, "failure_prob": 0.5, "margin": 10.0, "windows": "dyadic", "check_every": 1},
    "svt_lazy": {"rate": 0.2, "budget": 0.7, "threshold": 20.0, "most": 12},
}


@pytest.mark.parametrize("name", WRONG)
def test_another_distribution_is_seen(name):
    with pytest.raises(AssertionError):
        check(simulate(name, WRONG[name]), REFERENCE[name][0])
