"""Elimination by effective Borda scores against the independent version's committed values, in distribution."""

import functools
import json
import math

import pytest

from jaxdp.dueling import ebs_elimination
from tests.few import few
from tests.golden import make_duels_reference as golden
from tests.golden.counted_duels import play, program

pytestmark = [pytest.mark.once, pytest.mark.optimised]

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 3000
CASES = {"tight": "ebs_elimination", "paper": "ebs_elimination_paper"}


@functools.cache
def compiled(constants):
    options = golden.ELIMINATION
    learner = ebs_elimination(
        num_arms=3, horizon=options["horizon"], constants=constants, arity=golden.ARITIES[constants]
    )
    return program(learner, golden.FAR_MATRIX, options["horizon"], engine="blocks", looks=options["looks"])


def ours(constants, epsilon, factor=1.0):
    multiplier = factor * golden.MULTIPLIERS[constants][epsilon]
    failure_prob = golden.ELIMINATION["failure_prob"]
    values = {"epsilon": epsilon, "failure_prob": failure_prob, "confidence_multiplier": multiplier}
    return play(*compiled(constants), 91, LANES, [values])[0]


EVERY = [(constants, epsilon) for constants in CASES for epsilon in golden.EPSILONS]
ALWAYS = [("tight", 0.5), ("tight", math.inf)]


@pytest.mark.parametrize(("constants", "epsilon"), few(EVERY, ALWAYS))
def test_equals_the_independent_version(constants, epsilon):
    golden.check(ours(constants, epsilon), REFERENCE[CASES[constants]][str(epsilon)])


def test_a_radius_that_is_a_little_too_large_is_told():
    for constants, epsilon in ALWAYS:
        with pytest.raises(AssertionError):
            golden.check(ours(constants, epsilon, 1.15), REFERENCE[CASES[constants]][str(epsilon)])
