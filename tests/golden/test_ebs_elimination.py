"""Elimination by effective Borda scores against the independent version's committed values, in distribution."""

import functools
import json
import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import ebs_elimination, matrix_duels
from tests.few import few
from tests.golden import make_ebs_reference as golden

pytestmark = [pytest.mark.once, pytest.mark.optimised]

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 3000


@functools.cache
def program(constants):
    learner = ebs_elimination(num_arms=3, horizon=golden.HORIZON, constants=constants, arity=golden.ARITIES[constants])
    record = {"active": lambda public, _: public.active, "plays": lambda public, _: public.plays.sum(1)}
    run = jaxdp.simulator(
        learner, matrix_duels(golden.MATRIX), golden.HORIZON, checkpoints=golden.LOOKS, record=record, engine="blocks"
    )
    return run, jax.jit(jax.vmap(run, (0, None)))


@functools.cache
def ours(constants, epsilon, factor=1.0):
    run, go = program(constants)
    multiplier = factor * golden.MULTIPLIERS[constants][epsilon]
    params = run.params(epsilon=epsilon, failure_prob=golden.FAILURE_PROB, confidence_multiplier=multiplier)
    outputs = jax.tree.map(np.asarray, go(jax.random.split(jax.random.key(91), LANES), params))
    return golden.statistics(outputs["strong_regret"][:, -1], outputs["plays"][:, -1], outputs["active"])


def check(found, expected):
    """Means within 5 standard errors, and distribution functions at the quantiles within theirs."""
    for name, reference in expected.items():
        values = found[name]
        error = math.hypot(values.std() / math.sqrt(LANES), reference["standard_error"])
        assert abs(values.mean() - reference["mean"]) <= 5 * error + 1e-5, name
        for probability, quantile in zip(golden.PROBABILITIES, reference["quantiles"], strict=True):
            spread = 5 * math.sqrt(probability * (1 - probability) * (1 / LANES + 1 / golden.LANES))
            assert np.mean(values < quantile - 1e-3) <= probability + spread, (name, probability)
            assert np.mean(values <= quantile + 1e-3) >= probability - spread, (name, probability)


CASES = [(constants, epsilon) for constants in REFERENCE for epsilon in (0.5, 2.0, math.inf)]
ALWAYS = [("tight", 0.5), ("tight", math.inf)]


@pytest.mark.parametrize(("constants", "epsilon"), few(CASES, ALWAYS))
def test_equals_the_independent_version(constants, epsilon):
    check(ours(constants, epsilon), REFERENCE[constants][str(epsilon)])


def test_a_radius_that_is_a_little_too_large_is_told():
    for constants, epsilon in ALWAYS:
        with pytest.raises(AssertionError):
            check(ours(constants, epsilon, 1.15), REFERENCE[constants][str(epsilon)])
