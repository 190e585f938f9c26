"""Exact audits of `svt_restarts` on tiny instances, and distributions that its programs follow."""

import math

import numpy as np
import pytest

from jaxdp import experts
from tests.algorithms.experts.exact_audits import after_the_first, check_distribution, sampled
from tests.algorithms.experts.svt_restarts.golden import Thresholds, svt_restarts_distribution
from tests.privacy.planter import planted

HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
SELECTION = {
    "expert": lambda snapshot: snapshot.public.selection.expert,
    "restarts": lambda snapshot: snapshot.public.restarts,
}


EPSILON, VALUES = 16.0, {"epsilon": 16.0, "failure_prob": 0.5, "margin": -4.0}


def experts_and_ends(learner):
    """Returns for each run of four rounds its experts, and the rounds in which epochs ended."""
    snapshots = sampled(learner, HARD, VALUES, SELECTION)
    restarts = np.diff(snapshots["restarts"], axis=1, prepend=0)
    ends = [tuple((np.flatnonzero(row) + 1).tolist()) for row in restarts]
    return [(tuple(row), end) for row, end in zip(snapshots["expert"].tolist(), ends, strict=True)]


def distribution_at(epsilon, margin=-4.0):
    """Returns the written distribution of what `experts_and_ends` returns, after the first expert."""
    thresholds = Thresholds(num_experts=2, horizon=len(HARD), epsilon=EPSILON, failure_prob=0.5, margin=margin)
    written = svt_restarts_distribution(HARD, epsilon, thresholds)
    return after_the_first(written, lambda outcome: (outcome[0][1:], outcome[1]))


@pytest.mark.parametrize("windows", ["all", "dyadic"])
def test_restarts_have_their_distribution(windows):
    """Plays four rounds: all their windows are dyadic except one, of three rounds, that begins in round 2."""
    samples = experts_and_ends(experts.svt_restarts(num_experts=2, horizon=len(HARD), windows=windows))
    assert 0.05 < np.mean([len(ends) > 0 for _, ends in samples]) < 0.95
    check_distribution(samples, distribution_at(EPSILON))
    for wrong in (distribution_at(EPSILON, margin=-3.0), distribution_at(0.8 * EPSILON)):
        with pytest.raises(AssertionError):
            check_distribution(samples, wrong)


def test_the_whole_budget_for_questions_changes_the_distribution():
    """Plants a mistake that audits do not flag: their examples spend 0.67 of the claim with it, and 0.59 without."""
    wrong = planted(
        "jaxdp.experts._svt_restarts._svt_restarts",
        ("(1 - SHARE) * jnp.asarray(params.epsilon), t", "jnp.asarray(params.epsilon), t"),
    )
    with pytest.raises(AssertionError):
        check_distribution(
            experts_and_ends(wrong.svt_restarts(num_experts=2, horizon=len(HARD))), distribution_at(EPSILON)
        )


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
