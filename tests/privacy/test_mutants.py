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

pytestmark = pytest.mark.once
GAUSSIAN = "classical Gaussian at epsilon 8"  # needs 10^9 trials
QUICK = [name for name in ZOO if name != GAUSSIAN]


def check(name, keys):
    case = ZOO[name]()
    for key in keys:
        for attack, verdict in [(case.wrong, "violated"), *((right, "consistent") for right in case.right)]:
            result = audit(jax.random.key(key), attack, trials=case.trials)
            assert result.verdict == verdict, result


# Each of these is a mistake of a kind that another one of the zoo makes, too.
ALIKE = (
    "K-ary randomized response with the probability for K = 2",
    "sparse vector, variant 3",
    "sparse vector, variant 4",
    "sparse vector, variant 5",
    "Thurstone's model at twice epsilon",
    "choices' statistic at half its noise",
    "a ballot's pairs at the whole budget each",
    "the noise of a node reused in every node",
    "losses reported at twice epsilon",
    "losses within a barrier that are not clipped",
    "a residual that is not clipped",
    "reports that are not shuffled claimed as a batch",
    "counts of a phase at twice epsilon",
    "counters of duels fed upon wins only",
    "counts of rewards at twice epsilon",
    "contexts counted with noise and rewards without",
    "elimination by models of exact counts",
    "a Gaussian report without its root of 2",
    "noise drawn for both halves of a symmetric matrix",
    "a block of rewards released twice",
    "contexts noised and rewards not",
    "a contextual reward that is not clipped",
    "outcomes of duels reported at twice epsilon",
    "a continual counter at twice epsilon",
    "shuffled batches claimed as twice as large",
    "a loss reported without a clip",
    "sparse vector, variant 6",
)
LONGEST = ("a shuffler of duels that keeps the order", "counters of duels at half their noise")  # to compile
SLOW = (*ALIKE, *LONGEST)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in QUICK])
def test_a_mistake_is_flagged_and_its_twin_is_not(name):
    check(name, [0])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_with_every_key(name):
    check(name, range(10))


@pytest.mark.slow
@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="float32 data: the same programs again, for many minutes")
def test_the_classical_gaussian_with_every_key():
    check(GAUSSIAN, range(10))


def test_the_classical_gaussian_by_its_probabilities():
    """The bound from as many trials, with counts drawn from the event's exact probabilities instead of outputs."""
    trials, rng = ZOO[GAUSSIAN]().trials, np.random.default_rng(0)
    classical = math.sqrt(2 * math.log(1.25 / 1e-3)) / 8
    for stddev, flagged in [(classical, True), (analytic_gaussian(8.0, 1e-3), False)]:
        threshold = -ndtri(3e-3) * stddev  # beyond it lies 3e-3 of one input
        likely = rng.binomial(trials, 3e-3, 1000)
        unlikely = rng.binomial(trials, ndtr(-(threshold + 1) / stddev), 1000)
        bounds = log_ratio_bound(likely, trials, unlikely, trials, delta=1e-3, error=0.025)
        assert np.mean(bounds > 8) > 0.99 if flagged else np.mean(bounds > 8) <= 0.05
