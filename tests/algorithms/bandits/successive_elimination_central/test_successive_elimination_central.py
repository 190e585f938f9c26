"""Tests of `successive_elimination_central` alone."""

import math

import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, successive_elimination_central
from tests.algorithms.bandits.central_learners import final


@pytest.mark.parametrize("epsilon", [0.1, 2.0, math.inf])
def test_epochs_are_as_long_as_the_root_says(epsilon):
    params = successive_elimination_central(num_arms=4).params(epsilon=epsilon, failure_prob=0.05)
    paper = successive_elimination_central(num_arms=4, constants="paper").params(epsilon=epsilon, failure_prob=0.05)
    for epoch, size in ((1, 2), (1, 4), (3, 3), (6, 4)):
        share = math.log(8 * size * epoch**2 / 0.05)
        noise = math.log(4 * size * epoch**2 / 0.05) / epsilon

        def width(plays, share=share, noise=noise):
            return math.sqrt(share / (2 * plays)) + noise / plays

        plays, most = int(params.plays[epoch - 1, size]), int(paper.plays[epoch - 1, size])
        assert width(plays) <= 0.5**epoch / 4 < width(plays - 1)
        assert 1 < most / plays < 4.05
        assert float(params.margins[epoch - 1, size]) == pytest.approx(plays * 0.5**epoch / 2, rel=1e-6)
        assert float(paper.margins[epoch - 1, size]) == pytest.approx(2 * most * width(most), rel=1e-6)


def test_the_best_arm_is_seldom_dropped():
    """Checks the error rate at failure_prob 1/2; with a hundredth of the plays the best arm is dropped more often."""
    learner, world = successive_elimination_central(num_arms=3), bernoulli_bandit([0.6, 0.5, 0.5])
    values = {"epsilon": 0.5, "failure_prob": 0.5}
    right, daring = (
        np.mean(final(learner, world, 200_000, {**values, "confidence_multiplier": m}, 400)["best_arm_plays"] < 1e5)
        for m in (1.0, 0.01)
    )
    assert right <= 0.5
    assert daring > right + 0.05
