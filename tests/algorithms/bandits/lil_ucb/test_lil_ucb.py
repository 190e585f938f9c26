"""Tests of `lil_ucb` alone."""

import numpy as np

from jaxdp.bandits import lil_ucb
from tests.algorithms.bandits.best_arm import run

EASY = (0.9, 0.2, 0.1)


def test_the_heuristic_is_quicker():
    slow, quick = (
        run(learner, EASY, 300, epsilon=2.0)["rounds"]
        for learner in (lil_ucb(num_arms=3), lil_ucb(num_arms=3, constants="heuristic"))
    )
    assert np.median(quick) < np.median(slow) / 3
