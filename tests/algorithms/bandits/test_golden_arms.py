"""The bandits against the independent versions' committed values, in distribution."""

import json
import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits
from tests.algorithms.bandits import make_arms_reference as golden
from tests.lazily import Lazy

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 2000
RATE = {"exploration_rate": 0.5}
DELTA = {"delta": 0.1}
NOISE = {"failure_prob": 0.1}
ROUNDS = golden.ROUNDS

# name: (learner, values, changes of a planted wrong version)
OURS = Lazy(
    {
        "tsallis_inf": lambda: (bandits.tsallis_inf(num_arms=3), {}, {"epsilon": 1.4}),
        "tsallis_inf_rv": lambda: (bandits.tsallis_inf(num_arms=3, estimator="rv"), {}, {"epsilon": 1.4}),
        "tsallis_inf_gaussian": lambda: (
            bandits.tsallis_inf(num_arms=3, report="gaussian", horizon=ROUNDS),
            DELTA | NOISE,
            {"epsilon": 2.5},
        ),
        "exp3": lambda: (bandits.exp3(num_arms=3, horizon=ROUNDS), {}, {"epsilon": 1.4}),
        "exp3_laplace": lambda: (bandits.exp3(num_arms=3, horizon=ROUNDS, report="laplace"), NOISE, {"epsilon": 4.0}),
        "ucb": lambda: (bandits.ucb(num_arms=3), RATE, {"epsilon": 1.4}),
        "ucb_gaussian": lambda: (bandits.ucb(num_arms=3, report="gaussian"), RATE | DELTA, {"epsilon": 2.0}),
        "thompson": lambda: (bandits.thompson(num_arms=3), {}, {"epsilon": 1.4}),
        "thompson_debiased": lambda: (bandits.thompson(num_arms=3, posterior="debiased"), {}, {"epsilon": 1.4}),
        "successive_elimination_central": lambda: (
            bandits.successive_elimination_central(num_arms=3),
            {"failure_prob": 0.1, "confidence_multiplier": 0.1},
            {"confidence_multiplier": 0.11},
        ),
        "ucb_central": lambda: (bandits.ucb_central(num_arms=3), {"exploration_rate": 1.0}, {"epsilon": 1.3}),
        "ucb_central_tree": lambda: (
            bandits.ucb_central(num_arms=3, release="tree", horizon=ROUNDS),
            RATE,
            {"exploration_rate": 0.6},
        ),
        "thompson_central": lambda: (
            bandits.thompson_central(num_arms=3),
            {"growth": 0.5, "noise_weight": 0.5},
            {"epsilon": 1.4},
        ),
        "imed_central": lambda: (bandits.imed_central(num_arms=3), {"growth": 0.5}, {"growth": 0.4}),
        "imed_central_kl_ucb": lambda: (
            bandits.imed_central(num_arms=3, index="kl_ucb"),
            {"growth": 0.5},
            {"epsilon": 1.3},
        ),
        "adap_klucb": lambda: (bandits.adap_klucb(num_arms=3), {"exploration_rate": 1.0}, {"epsilon": 1.3}),
    }
)


def plays(name):
    """Builds the function (values, lanes) -> [lanes, num_arms]: how often each arm is played, from differences of
    outcomes.
    """
    learner = OURS[name][0]
    arms = bandits.bernoulli_bandit(golden.MEANS)

    def counted(key, params, world, action):
        world, reward, _ = arms.feedback(key, params, world, action)
        return world, reward, {f"arm_{arm}": action == arm for arm in range(3)}

    def tallied(key, params, world, counts):
        assert arms.feedback_totals
        world, totals, _ = arms.feedback_totals(key, params, world, counts)
        return world, totals, {f"arm_{arm}": counts[arm] for arm in range(3)}

    counts = learner.counts is not None
    world = arms._replace(feedback=counted, feedback_totals=tallied if counts else None, block=None, evaluate=None)
    horizon = golden.CASES[name][2]["horizon"]
    run = jaxdp.simulator(learner, world, horizon, engine="counts" if counts else "rounds")
    go = jax.jit(jax.vmap(run, in_axes=(0, None)))

    def play(**values):
        found = go(jax.random.split(jax.random.key(17), LANES), run.params(**values))
        return np.stack([np.asarray(found[f"arm_{arm}"])[:, -1] for arm in range(3)], axis=1)

    return play


@pytest.mark.parametrize("name", OURS)
def test_equals_the_independent_version(name):
    _, values, change = OURS[name]
    play, lanes = plays(name), golden.CASES[name][1]
    for epsilon in golden.epsilons(name):
        golden.check(play(**{**values, "epsilon": epsilon}), REFERENCE[name][str(epsilon)], lanes)
    wrong, epsilon = {**values, "epsilon": 1.0, **change}, golden.epsilons(name)[0]
    if epsilon == math.inf:
        wrong["epsilon"] = epsilon
    with pytest.raises(AssertionError):
        golden.check(play(**wrong), REFERENCE[name][str(epsilon)], lanes)


@pytest.mark.parametrize("name", ["ucb", "successive_elimination_central"])
def test_the_reference_can_be_made_again(name):
    for epsilon in golden.epsilons(name):
        assert golden.make(name, epsilon) == REFERENCE[name][str(epsilon)]
