"""The dueling algorithms against the independent versions' committed values, in distribution."""

import json

import pytest

from jaxdp import dueling
from tests.algorithms.dueling import make_duels_reference as golden
from tests.algorithms.dueling.counted_duels import play, program
from tests.lazily import Lazy

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 1000
FEW_LANES = 400  # by counts: binomial variates take long
PHASED, SPLIT, LOCAL, SHUFFLED = (
    {
        **{name: value for name, value in each.items() if name != "multiplier"},
        "confidence_multiplier": each["multiplier"],
    }
    for each in (golden.PHASED, golden.SPLIT, golden.LOCAL, golden.SHUFFLED)
)
GAUSSIAN = golden.GAUSSIAN
WRONG_AT = 2.0  # epsilon

# name: (learner, values, changes of a planted wrong version)
OURS = Lazy(
    {
        "ebs_phased": lambda: (dueling.ebs_phased(num_arms=3), PHASED, {"confidence_multiplier": 0.045}),
        "ebs_phased_split": lambda: (
            dueling.ebs_phased(num_arms=3, constants="split"),
            SPLIT,
            {"confidence_multiplier": 0.0225},
        ),
        "ebs_shuffle": lambda: (dueling.ebs_shuffle(num_arms=3), SHUFFLED, {"confidence_multiplier": 0.09}),
        "ebs_local": lambda: (
            dueling.ebs_local(num_arms=3, horizon=golden.ROUNDS),
            LOCAL,
            {"confidence_multiplier": 0.45},
        ),
        "rucb": lambda: (dueling.rucb(num_arms=3), {}, {"exploration_rate": 0.6}),
        "double_thompson": lambda: (dueling.double_thompson(num_arms=3), {}, {"epsilon": 2.4}),
        "sparring": lambda: (dueling.versatile_sparring(num_arms=3), {}, {"epsilon": 2.6}),
        "sparring_reduced": lambda: (
            dueling.versatile_sparring(num_arms=3, losses="reduced_variance"),
            {},
            {"epsilon": 2.6},
        ),
        "sparring_gaussian": lambda: (
            dueling.versatile_sparring(num_arms=3, report="gaussian", horizon=golden.ROUNDS),
            GAUSSIAN,
            {"epsilon": 5.0},
        ),
    }
)


@pytest.mark.always
@pytest.mark.parametrize("name", OURS)
def test_equals_the_independent_version(name):
    learner, values, change = OURS[name]
    _, _, options = golden.CASES[name]
    engine, lanes = ("counts", FEW_LANES) if learner.counts else ("rounds", LANES)
    run, go = program(learner, options["matrix"], options["horizon"], engine=engine, looks=options.get("looks"))
    points = [{**values, "epsilon": epsilon} for epsilon in golden.EPSILONS]
    *found, wrong = play(run, go, 71, lanes, [*points, {**values, "epsilon": WRONG_AT, **change}])
    for epsilon, each in zip(golden.EPSILONS, found, strict=True):
        golden.check(each, REFERENCE[name][str(epsilon)])
    with pytest.raises(AssertionError):
        golden.check(wrong, REFERENCE[name][str(WRONG_AT)])


@pytest.mark.parametrize("name", golden.CASES)
def test_the_file_is_what_the_script_makes(name):
    for epsilon in golden.EPSILONS[:1]:
        assert golden.sample(name, epsilon) == REFERENCE[name][str(epsilon)]["sample"]


@pytest.mark.parametrize("name", ["ebs_phased", "ebs_shuffle", "ebs_local", "rucb", "double_thompson"])
def test_the_reference_can_be_made_again(name):
    for epsilon in golden.EPSILONS:
        assert golden.make(name, epsilon) == REFERENCE[name][str(epsilon)]
