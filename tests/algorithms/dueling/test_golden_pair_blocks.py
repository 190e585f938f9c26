"""RUCB and double Thompson sampling by blocks against the independent versions' committed values, in distribution."""

import json

import pytest

from jaxdp import dueling
from tests.algorithms.dueling import make_pair_blocks_reference as golden
from tests.algorithms.dueling.counted_duels import play, program
from tests.algorithms.dueling.make_duels_reference import check

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 1000
WRONG_AT = 2.0  # epsilon
OURS = {"rucb": dueling.rucb, "double_thompson": dueling.double_thompson}
WRONG = {"rucb": {"epsilon": 2.6}, "double_thompson": {"epsilon": 3.0}}


@pytest.mark.parametrize("name", OURS)
def test_equals_the_independent_version(name):
    _, options = golden.CASES[name]
    learner = OURS[name](num_arms=3, release="blocks")
    run, go = program(learner, options["matrix"], options["horizon"], engine="rounds")
    points = [{"epsilon": epsilon} for epsilon in golden.EPSILONS]
    *found, wrong = play(run, go, 71, LANES, [*points, WRONG[name]])
    for epsilon, each in zip(golden.EPSILONS, found, strict=True):
        check(each, REFERENCE[name][str(epsilon)])
    with pytest.raises(AssertionError):
        check(wrong, REFERENCE[name][str(WRONG_AT)])


@pytest.mark.parametrize("name", OURS)
def test_the_file_is_what_the_script_makes(name):
    for epsilon in golden.EPSILONS[:1]:
        assert golden.sample(name, epsilon) == REFERENCE[name][str(epsilon)]["sample"]


@pytest.mark.parametrize("name", OURS)
def test_the_reference_can_be_made_again(name):
    for epsilon in golden.EPSILONS:
        assert golden.make(name, epsilon) == REFERENCE[name][str(epsilon)]
