"""Tests of `limited_updates_oblivious` alone."""

import math

import pytest

from jaxdp import experts
from tests.algorithms.experts.selections import regret_of


def test_regret_of_batches_is_below_its_bound():
    """Checks ln N / rate + rate batch T / 8, in expectation."""
    horizon, means = 2000, [0.5, 0.45, 0.5, 0.5]
    learner = experts.limited_updates_oblivious(num_experts=4, horizon=horizon)
    for epsilon in (5.0, math.inf):
        params = learner.params(epsilon=epsilon)
        rate, batch = float(params.learning_rate), int(params.batch)
        bound = math.log(4) / rate + rate * batch * horizon / 8
        assert regret_of(learner, means, horizon, epsilon=epsilon) < bound < horizon
    assert int(params.batch) == 1
    assert params.learning_rate == pytest.approx(math.sqrt(8 * math.log(4) / horizon), rel=1e-6)
