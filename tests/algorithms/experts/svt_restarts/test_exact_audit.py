"""Exact audits of `svt_restarts` on tiny instances, and distributions that its programs follow."""

import math

import numpy as np
import pytest

from jaxdp import experts
from tests.algorithms.experts.exact_audits import after_the_first, check_distribution, sampled
from tests.algorithms.experts.svt_restarts.golden import Thresholds, svt_restarts_distribution

HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
SELECTION = {
    "expert": lambda snapshot: snapshot.public.selection.expert,
    "restarts": lambda snapshot: snapshot.public.restarts,
}


@pytest.mark.parametrize("windows", ["all", "dyadic"])
def test_restarts_have_their_distribution(windows):
    """Plays four rounds: all their windows are dyadic except one, of three rounds, that begins in round 2."""
    epsilon, rounds = 16.0, len(HARD)
    learner = experts.svt_restarts(num_experts=2, horizon=rounds, windows=windows)
    values = {"epsilon": epsilon, "failure_prob": 0.5, "margin": -4.0}
    found = sampled(learner, HARD, values, SELECTION)
    restarts = np.diff(found["restarts"], axis=1, prepend=0)
    ends = [tuple((np.flatnonzero(row) + 1).tolist()) for row in restarts]
    samples = [(tuple(row), end) for row, end in zip(found["expert"].tolist(), ends, strict=True)]
    told = Thresholds(num_experts=2, horizon=rounds, epsilon=epsilon, failure_prob=0.5, margin=-4.0)

    def distribution_at(epsilon):
        return after_the_first(svt_restarts_distribution(HARD, epsilon, told), lambda each: (each[0][1:], each[1]))

    distribution = distribution_at(epsilon)
    assert 0.05 < np.mean([len(end) > 0 for end in ends]) < 0.95
    check_distribution(samples, distribution)
    told.margin += 1
    for wrong in (distribution_at(epsilon), distribution_at(0.8 * epsilon)):
        with pytest.raises(AssertionError):
            check_distribution(samples, wrong)


def test_thresholds_are_those_of_the_definition():
    learner = experts.svt_restarts(num_experts=3, horizon=1000, check_every=4)
    params = learner.params(epsilon=2.0, failure_prob=0.02)
    told = Thresholds(num_experts=3, horizon=1000, epsilon=2.0, failure_prob=0.02, check_every=4)
    rounds = [told.per_round(local) for local in range(1, 1001)]
    blocks = [local.bit_length() - 1 for local in range(1, 1001)]
    np.testing.assert_allclose(params.block_slack[blocks], rounds, rtol=1e-6)
    np.testing.assert_allclose(params.slack_before[9], sum(rounds[:511]), rtol=1e-6)
    assert params.window_slack == pytest.approx(math.sqrt(told.own) + math.sqrt(told.best), rel=1e-6)
    assert params.margin == pytest.approx(told.margin, rel=1e-6)
