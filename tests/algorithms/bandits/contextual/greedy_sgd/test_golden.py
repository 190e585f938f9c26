"""`greedy_sgd` against its NumPy version, in distribution."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

import jaxdp
from jaxdp.bandits.contextual import greedy_sgd, linear_contexts
from tests.algorithms.bandits.contextual.greedy_sgd import golden

LANES = 1000
CASES = {
    f"d = {dim}, epsilon = {epsilon}, Y = {bound}": {
        "dim": dim,
        "num_arms": 4,
        "horizon": 300,
        "epsilon": epsilon,
        "reward_bound": bound,
    }
    for dim, epsilon, bound in ((2, 1.0, 1.0), (5, 4.0, 1.0), (2, 2.0, 0.5), (5, math.inf, 1.0))
}
ALWAYS = "d = 2, epsilon = 1.0, Y = 1.0"


@functools.cache
def program(dim):
    """Builds the run of a case, and the run of many lanes, compiled once."""
    horizon = 300
    world = linear_contexts(num_arms=4, dim=dim, theta=np.eye(dim)[0] / 2)

    def error(snapshot):
        return jnp.sqrt(jnp.sum((snapshot.public.theta - snapshot.world.theta) ** 2))

    run = jaxdp.simulator(greedy_sgd(num_arms=4, dim=dim), world, horizon, checkpoints=1, record={"error": error})
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def p_value(name, **changed):
    """Returns the smaller of two p-values, of equal distributions of regret and of the model's error."""
    case = CASES[name]
    run, go = program(case["dim"])
    values = {"epsilon": case["epsilon"], "reward_bound": case["reward_bound"], **changed}
    outputs = go(jax.random.split(jax.random.key(70), LANES), run.params(**values))
    regret, errors = golden.greedy_sgd(np.random.default_rng(7), LANES, **case)
    pairs = (outputs["pseudo_regret"], regret), (outputs["error"], errors)
    return min(float(ks_2samp(np.asarray(ours)[:, -1], theirs)[1]) for ours, theirs in pairs)  # pyright: ignore


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.always] * (name == ALWAYS)) for name in CASES])
def test_equals_the_independent_version(name):
    assert p_value(name) > 1e-4


@pytest.mark.parametrize("changed", [{"epsilon": 1.5}, {"step_multiplier": 0.3}, {"gradient_bound": 0.7}])
def test_planted_changes_are_found(changed):
    assert p_value(ALWAYS, **changed) < 1e-4
