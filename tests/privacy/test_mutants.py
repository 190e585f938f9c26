"""Every known mistake is flagged, and its correct twin is not."""

import math

import jax
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from jaxdp.audit import audit
from jaxdp.audit.intervals import log_ratio_bound
from jaxdp.mechanisms import analytic_gaussian
from tests.privacy.mutants import ZOO

GAUSSIAN = "classical Gaussian at epsilon 8"  # needs 10^9 trials
NAMES = [name for name in ZOO if name != GAUSSIAN]


def check(name, keys):
    case = ZOO[name]()
    for key in keys:
        for attack, verdict in [(case.wrong, "violated"), *((right, "consistent") for right in case.right)]:
            result = audit(jax.random.key(key), attack, trials=case.trials)
            assert result.verdict == verdict, result


# The first mistake of each file: the others of a file are alike, and are tried with every key.
FIRST = list({ZOO[name].__module__: name for name in reversed(NAMES)}.values())


@pytest.mark.parametrize("name", FIRST)
def test_a_mistake_is_flagged_and_its_twin_is_not(name):
    check(name, [0])


@pytest.mark.parametrize("name", NAMES)
def test_with_every_key(name):
    check(name, range(10))


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="float32 data: the same programs again, for many minutes")
def test_the_classical_gaussian_with_every_key():
    check(GAUSSIAN, range(10))


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
