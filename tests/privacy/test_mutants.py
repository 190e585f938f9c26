"""Every known mistake is flagged, and its correct twin is not, at a second look at the latest."""

import math

import jax
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from jaxdp.audit import audit
from jaxdp.audit.intervals import log_ratio_bound
from jaxdp.mechanisms import analytic_gaussian
from tests.privacy.mutants import ZOO
from tests.privacy.second_look import MORE, look_twice

GAUSSIAN = "classical Gaussian at epsilon 8"  # needs 10^9 trials
NAMES = [name for name in ZOO if name != GAUSSIAN]
KEYS = range(10)
TWINS = 3  # most of a mistake
LOOKS = TWINS * len(ZOO) * len(KEYS)


def look_at_twin(attack, key, trials, more=MORE):
    """Audits a right twin; among all keys and twins chance fails hardly any."""

    def look(number, trials, confidence):
        seed = jax.random.key(key + number * len(KEYS))
        return audit(seed, attack, trials=trials, confidence=confidence)

    return look_twice(look, trials, among=LOOKS, more=more)


def check(name, keys, more=MORE):
    case = ZOO[name]()
    assert len(case.right) <= TWINS
    for key in keys:
        result = audit(jax.random.key(key), case.wrong, trials=case.trials)
        assert result.verdict == "violated", result
        for right in case.right:
            result = look_at_twin(right, key, case.trials, more)
            assert result.verdict != "violated", result


# The first mistake of each file: the others of a file are alike, and are tried with every key.
FIRST = list({ZOO[name].__module__: name for name in reversed(NAMES)}.values())


@pytest.mark.parametrize("name", FIRST)
def test_a_mistake_is_flagged_and_its_twin_is_not(name):
    check(name, [0])


@pytest.mark.parametrize("name", NAMES)
def test_with_every_key(name):
    check(name, KEYS)


@pytest.mark.parametrize("name", ["randomized response at the wrong probability", "Laplace at 0.8 of its scale"])
def test_a_second_look_finds_a_mistake_in_a_twin(name):
    case = ZOO[name]()
    result = look_at_twin(case.wrong, 0, case.trials)
    assert (result.verdict, result.trials) == ("violated", MORE * case.trials)


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="float32 data: the same programs again, for many minutes")
def test_the_classical_gaussian_with_every_key():
    check(GAUSSIAN, KEYS, more=1)


def test_the_classical_gaussian_by_its_probabilities():
    """Computes the bound from as many trials, with counts drawn from the event's exact probabilities instead of
    outputs.
    """
    trials, rng = ZOO[GAUSSIAN]().trials, np.random.default_rng(0)
    classical = math.sqrt(2 * math.log(1.25 / 1e-3)) / 8
    for stddev, flagged in [(classical, True), (analytic_gaussian(8.0, 1e-3), False)]:
        threshold = -ndtri(3e-3) * stddev  # beyond it lies 3e-3 of one input
        likely = rng.binomial(trials, 3e-3, 1000)
        unlikely = rng.binomial(trials, ndtr(-(threshold + 1) / stddev), 1000)
        bounds = log_ratio_bound(likely, trials, unlikely, trials, delta=1e-3, error=0.025)
        assert np.mean(bounds > 8) > 0.99 if flagged else np.mean(bounds > 8) <= 0.05
