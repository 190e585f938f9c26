"""Elimination by effective Borda scores against the independent version's committed values, in distribution."""

import functools
import json

import pytest

from jaxdp.dueling import ebs_elimination
from tests.algorithms.dueling import make_duels_reference as golden
from tests.algorithms.dueling.counted_duels import play, program

pytestmark = pytest.mark.optimised

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 1000
CASES = {"tight": "ebs_elimination", "paper": "ebs_elimination_paper", "gaussian": "ebs_elimination_gaussian"}


@functools.cache
def compiled(kind):
    options = golden.ELIMINATION
    changes = {"paper": {"constants": "paper"}, "gaussian": {"noise": "gaussian"}}.get(kind, {})
    learner = ebs_elimination(num_arms=3, horizon=options["horizon"], arity=golden.ARITIES[kind], **changes)
    return program(learner, golden.FAR_MATRIX, options["horizon"], engine="blocks", looks=options["looks"])


def ours(kind, epsilon, factor=1.0):
    multiplier = factor * golden.MULTIPLIERS[kind][epsilon]
    failure_prob = golden.ELIMINATION["failure_prob"]
    values = {"epsilon": epsilon, "failure_prob": failure_prob, "confidence_multiplier": multiplier}
    if kind == "gaussian":
        values["delta"] = golden.GAUSSIAN["delta"]
    return play(*compiled(kind), 91, LANES, [values])[0]


ALWAYS = ("paper", 0.5)  # what `make test` compares
EVERY = [
    pytest.param(kind, epsilon, marks=[pytest.mark.always] if (kind, epsilon) == ALWAYS else [])
    for kind in CASES
    for epsilon in golden.EPSILONS
]


@pytest.mark.parametrize(("kind", "epsilon"), EVERY)
def test_equals_the_independent_version(kind, epsilon):
    golden.check(ours(kind, epsilon), REFERENCE[CASES[kind]][str(epsilon)])


@pytest.mark.always
def test_a_radius_that_is_a_little_too_large_fails():
    kind, epsilon = ALWAYS
    with pytest.raises(AssertionError):
        golden.check(ours(kind, epsilon, 1.15), REFERENCE[CASES[kind]][str(epsilon)])
