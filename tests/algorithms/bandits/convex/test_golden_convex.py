"""Convex bandits have the distribution of independent NumPy versions."""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import convex
from jaxdp.bandits.convex import _ball_kernels
from jaxdp.mechanisms import gaussian_delta
from tests.algorithms.bandits.convex.make_convex_reference import CASES, HORIZON, PATH

REFERENCE = json.loads(PATH.read_text())
LANES = 2000


def build(name):
    """Builds the learner, its environment and the values; Gaussian reports have the noise of the reference."""
    function, world, case = CASES[name]
    body = {"dim": world["dim"], "radius": world["radius"], "domain": world.get("domain", "ball")}
    sizes = {**body, "horizon": HORIZON, "report": case.get("report", "rr")}
    values = {"epsilon": case["epsilon"], "lipschitz": case["lipschitz"]}
    values |= {key: value for key, value in world.items() if key not in body}
    values |= {"strong_convexity": case["strong"]} if "strong" in case else {}
    if function == "two_point":
        losses = "strongly_convex" if "strong" in case else "convex"
        learner = convex.two_point(**sizes, losses=losses, constants=case.get("constants", "tuned"))
    else:
        learner = (convex.strongly_convex_one_point if "strong" in case else convex.fkm)(**sizes)
        values |= {"loss_bound": case["bound"], "noise": case.get("noise", 0.0)}
    family = convex.linear_losses if "slope" in world else convex.quadratic_losses
    feedback = "difference" if function == "two_point" else "point"
    return learner, family(**body, feedback=feedback), values


def delta_of(case, sensitivity):
    """Returns the delta at which Gaussian noise is calibrated to the reference's noise."""
    return float(gaussian_delta(case["epsilon"], case["stddev"], sensitivity))


@functools.cache
def program(name):
    """Builds the run of a case, its values, and the run of many lanes, compiled once."""
    learner, environment, values = build(name)
    world = CASES[name][1]
    e = np.ones(world["dim"]) / math.sqrt(world["dim"])
    run = jaxdp.simulator(
        learner,
        environment,
        HORIZON,
        checkpoints=[HORIZON // 2, HORIZON],
        record={"along": lambda snapshot: snapshot.public.x.total @ jnp.asarray(e, snapshot.public.x.total.dtype)},
    )
    return run, values, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulate(name, **changed):
    run, values, go = program(name)
    case, values = CASES[name][2], {**values, **changed}
    if case.get("report") == "gaussian":
        values["delta"] = delta_of(case, 2 * case.get("bound", case["lipschitz"]))
    found = go(jax.random.split(jax.random.key(12), LANES), run.params(**values))
    return {
        "half": np.asarray(found["pseudo_regret"])[:, 0],
        "regret": np.asarray(found["pseudo_regret"])[:, 1],
        "along": np.asarray(found["along"])[:, 1],
    }


def check(found, expected):
    for output, values in found.items():
        values, like = values.astype(float), expected[output]
        error = math.hypot(values.std() / math.sqrt(LANES), like["standard_error"])
        assert abs(values.mean() - like["mean"]) <= 5 * error, output
        for share, quartile in zip((0.25, 0.5, 0.75), like["quartiles"], strict=True):
            error = math.sqrt(share * (1 - share) * 2 / LANES)
            assert abs(np.mean(values <= quartile) - share) <= 5 * error, (output, share)


@pytest.mark.parametrize("name", CASES)
def test_equals_the_independent_version(name):
    check(simulate(name), REFERENCE[name])


def test_the_nearest_point_of_a_ball_does_not_do_in_a_box(monkeypatch):
    monkeypatch.setattr("jaxdp.bandits.convex._box.descend", _ball_kernels.descend)
    monkeypatch.setattr(f"{__name__}.program", program.__wrapped__)
    with pytest.raises(AssertionError):
        check(simulate("fkm_box"), REFERENCE["fkm_box"])


OTHERS = [("fkm", {"epsilon": 1.0}), ("two_point", {"lipschitz": 0.35})]


@pytest.mark.parametrize(("name", "changed"), OTHERS)
def test_another_one_does_not(name, changed):
    with pytest.raises(AssertionError):
        check(simulate(name, **changed), REFERENCE[name])
