"""The dueling algorithms against the independent NumPy versions, in distribution."""

import functools
import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import dueling
from jaxdp.mechanisms import analytic_gaussian
from tests.golden import numpy_duels

MATRIX = np.array([[0.5, 0.65, 0.9], [0.35, 0.5, 0.7], [0.1, 0.3, 0.5]])
LANES = 1000
ROUNDS = 150
FEW = 60  # for what is slow
PHASED = {"failure_prob": 0.1, "confidence_multiplier": 0.02}
LOCAL = {"failure_prob": 0.1, "confidence_multiplier": 0.4}
GAUSSIAN = {"delta": 1e-2, "failure_prob": 0.05}


# name: (learner, values, horizon)
OURS = {
    "ebs_phased": (dueling.ebs_phased(num_arms=3), PHASED, 5_000),
    "ebs_local": (dueling.ebs_local(num_arms=3, horizon=ROUNDS), LOCAL, ROUNDS),
    "rucb": (dueling.rucb(num_arms=3), {}, ROUNDS),
    "double_thompson": (dueling.double_thompson(num_arms=3), {}, FEW),
    "sparring": (dueling.versatile_sparring(num_arms=3), {}, ROUNDS),
    "sparring_reduced": (dueling.versatile_sparring(num_arms=3, losses="reduced_variance"), {}, ROUNDS),
    "sparring_gaussian": (
        dueling.versatile_sparring(num_arms=3, report="gaussian", horizon=ROUNDS),
        GAUSSIAN,
        ROUNDS,
    ),
}


@functools.cache
def program(name):
    learner, _, horizon = OURS[name]
    engine = "counts" if learner.bulk else "rounds"
    run = jaxdp.simulator(learner, dueling.matrix_duels(MATRIX), horizon, engine=engine)
    return run, jax.jit(jax.vmap(run, (0, None)))


def ours(name, epsilon):
    """Samples of (strong regret, duels of the best arm with itself)."""
    run, go = program(name)
    outputs = go(jax.random.split(jax.random.key(71), LANES), run.params(epsilon=epsilon, **OURS[name][1]))
    return tuple(np.asarray(outputs[each])[:, -1].astype(float) for each in ("strong_regret", "best_duels"))


def theirs(name, epsilon):
    generator = np.random.default_rng(72)
    common = {"matrix": MATRIX, "lanes": LANES}
    if name == "ebs_phased":
        phased = {"failure_prob": 0.1, "multiplier": 0.02, "horizon": 5_000}
        return numpy_duels.ebs_phased(generator, epsilon, **phased, **common)
    common["horizon"] = ROUNDS
    if name == "ebs_local":
        return numpy_duels.ebs_local(generator, epsilon, failure_prob=0.1, multiplier=0.4, **common)
    if name == "rucb":
        return numpy_duels.rucb(generator, epsilon, alpha=0.51, **common)
    if name == "double_thompson":
        return numpy_duels.double_thompson(generator, epsilon, alpha=0.51, **{**common, "horizon": FEW})
    noise = {}
    if name == "sparring_gaussian":
        stddev = analytic_gaussian(epsilon, GAUSSIAN["delta"])
        noise = {"stddev": stddev, "shift": stddev * math.sqrt(2 * math.log(2 * ROUNDS / GAUSSIAN["failure_prob"]))}
    return numpy_duels.versatile_sparring(generator, epsilon, reduced=name == "sparring_reduced", **noise, **common)


def check_same(first, second):
    """Means within 5 standard errors, and the largest distance of distribution functions within its bound."""
    for mine, other in zip(first, second, strict=True):
        error = math.hypot(mine.std(), other.std()) / math.sqrt(LANES)
        assert abs(mine.mean() - other.mean()) <= 5 * error + 1e-6
        places = np.concatenate([mine, other])
        distribution = [np.searchsorted(np.sort(x), places + 1e-3, side="right") / LANES for x in (mine, other)]
        # Massart's constant for each sample, at the level of 5 standard errors together
        assert np.abs(distribution[0] - distribution[1]).max() <= 2 * math.sqrt(math.log(4 / 5.7e-7) / (2 * LANES))


@pytest.mark.parametrize(
    ("name", "epsilon", "wrong"),
    [
        ("ebs_phased", 0.5, 5.0),
        ("ebs_phased", math.inf, 0.5),
        ("ebs_local", 1.0, math.inf),
        ("ebs_local", math.inf, 1.0),
        ("rucb", 1.0, math.inf),
        ("rucb", math.inf, 1.0),
        ("double_thompson", 1.0, math.inf),
        ("double_thompson", math.inf, 1.0),
        ("sparring", 1.0, math.inf),
        ("sparring_reduced", math.inf, 1.0),
        ("sparring_gaussian", 5.0, math.inf),
    ],
)
def test_equals_the_independent_version(name, epsilon, wrong):
    expected = theirs(name, epsilon)
    check_same(ours(name, epsilon), expected)
    with pytest.raises(AssertionError):
        check_same(ours(name, wrong), expected)
