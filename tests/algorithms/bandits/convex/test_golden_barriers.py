"""Convex bandits with barriers, and the one on an interval, have the distribution of independent NumPy versions."""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import convex
from jaxdp.mechanisms import gaussian_delta
from tests.algorithms.bandits.convex.make_barriers_reference import CASES, PATH

REFERENCE = json.loads(PATH.read_text())
LANES = 1000


@functools.cache
def program(name):
    """Builds the run of a case, its values, its records, and the run of many lanes, compiled once."""
    function, world, horizon, case = CASES[name]
    body = {"dim": world["dim"], "radius": world["radius"], "domain": world.get("domain", "ball")}
    sizes = {"horizon": horizon, "report": case.get("report", "rr")}
    values = {key: value for key, value in world.items() if key not in body}
    values |= {"epsilon": case["epsilon"], "loss_bound": case["bound"], "noise": case.get("noise", 0.0)}
    if function == "stochastic_1d":
        learner = convex.stochastic_1d(**sizes, radius=world["radius"])
        record = {
            "low": lambda snapshot: snapshot.public.low,
            "high": lambda snapshot: snapshot.public.low + snapshot.public.width,
        }
    else:
        e = np.ones(world["dim"]) / math.sqrt(world["dim"])
        record = {
            "along": lambda snapshot: snapshot.public.slope.total @ jnp.asarray(e, snapshot.public.slope.total.dtype)
        }
        values["smoothness"] = case["smooth"]
        make = convex.barrier_smooth
        if "strong" in case:
            make = convex.barrier_strongly_convex
            values["strong_convexity"] = case["strong"]
        learner = make(**body, **sizes)
    if "stddev" in case:
        values["delta"] = float(gaussian_delta(case["epsilon"], case["stddev"], 2 * case["bound"]))
    family = convex.linear_losses if "slope" in world else convex.quadratic_losses
    losses = family(**body)
    run = jaxdp.simulator(learner, losses, horizon, checkpoints=[horizon // 2, horizon], record=record)
    return run, values, tuple(record), jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(name, **changed):
    run, values, record, go = program(name)
    found = go(jaxdp.lane_keys(jax.random.key(6), LANES), run.params(**{**values, **changed}))
    own = {output: np.asarray(found[output])[:, 1] for output in record}
    regret = np.asarray(found["pseudo_regret"])
    return {"half": regret[:, 0], "regret": regret[:, 1], **own}


def check(found, expected):
    for output, values in found.items():
        values, like = values.astype(float), expected[output]
        error = math.hypot(values.std() / math.sqrt(LANES), like["standard_error"])
        rounding = 1e-5 * abs(like["mean"])
        assert abs(values.mean() - like["mean"]) <= 5 * error + rounding, output
        for share, quartile in zip((0.25, 0.5, 0.75), like["quartiles"], strict=True):
            # Where several have the same value, the share lies between those below and up to it.
            error, rounding = 5 * math.sqrt(share * (1 - share) * 2 / LANES), 1e-5 * max(abs(quartile), 1)
            below, up_to = np.mean(values < quartile - rounding), np.mean(values <= quartile + rounding)
            assert below - error <= share <= up_to + error, (output, share)


@pytest.mark.parametrize("name", CASES)
def test_equals_the_independent_version(name):
    check(simulate(name), REFERENCE[name])


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("barrier_smooth", {"smoothness": 0.6}),
        ("barrier_strongly_convex", {"smoothness": 3.0}),
        ("stochastic_1d", {"loss_bound": 1.5}),
    ],
)
def test_another_one_does_not(name, changed):
    with pytest.raises(AssertionError):
        check(simulate(name, **changed), REFERENCE[name])
