"""Fixed share: regret below its bound, and errors. Its weights are compared in test_counter_weights."""

import math

import pytest

from jaxdp.experts import fixed_share, mirror_descent
from tests.algorithms.experts.shifted_losses import COMPARATOR, HORIZON, NATS, NUM_EXPERTS, regret, shifted_losses


def test_regret():
    learner = fixed_share(num_experts=NUM_EXPERTS, horizon=HORIZON, num_switches=1)
    assert 0 < regret(learner, lambda _, p: p, shifted_losses(), COMPARATOR) < math.sqrt(NATS * HORIZON / 2)


def test_errors():
    with pytest.raises(ValueError, match="num_switches must be < horizon, got 5 at horizon 5"):
        fixed_share(num_experts=2, horizon=5, num_switches=5)
    with pytest.raises(ValueError, match="num_switches must be an integer >= 1, got 0"):
        fixed_share(num_experts=2, horizon=5, num_switches=0)
    for make in (fixed_share, mirror_descent):
        with pytest.raises(ValueError, match=r"horizon must be >= 2, as num_switches is in .*, got 1: .*hedge"):
            make(num_experts=2, horizon=1, num_switches=1)
    learner = fixed_share(num_experts=2, horizon=5, num_switches=1)
    with pytest.raises(ValueError, match="switch_rate must be > 0, got 0"):
        learner.params(switch_rate=0.0)
    with pytest.raises(ValueError, match=r"switch_rate must be in \[0, 1\], got 1.5"):
        learner.params(switch_rate=1.5)
    assert not learner.guarantee().is_private
