"""Hedge: regret below its bound, and errors. Its weights are compared in test_counter_weights."""

import math

import jax
import numpy as np
import pytest

from jaxdp.experts import hedge
from tests.algorithms.experts.shifted_losses import COMPARATOR, HORIZON, NATS, NUM_EXPERTS, regret, shifted_losses


def hedge_distribution(params, public):
    return jax.nn.softmax(-params.learning_rate * (public.total - public.excess))


def test_regret():
    losses = shifted_losses()
    still = hedge(num_experts=NUM_EXPERTS, horizon=HORIZON)
    assert regret(still, hedge_distribution, losses, COMPARATOR) > math.sqrt(NATS * HORIZON / 2)  # it does not track
    best = np.full(HORIZON, losses.sum(0).argmin())
    assert regret(still, hedge_distribution, losses, best) < math.sqrt(math.log(4) * HORIZON / 2)


def test_errors():
    with pytest.raises(ValueError, match="num_experts must be a whole number >= 2, got 1"):
        hedge(num_experts=1, horizon=5)
    with pytest.raises(ValueError, match="learning_rate must be > 0, got 0"):
        hedge(num_experts=2, horizon=5).params(learning_rate=0.0)
