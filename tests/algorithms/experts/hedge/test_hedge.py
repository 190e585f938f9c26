"""Hedge: regret below its bound, and errors. Its weights are compared in test_counter_weights."""

import math

import jax
import numpy as np
import pytest

from jaxdp.core import default_float
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


@pytest.mark.always  # no other test of hedge alone uses its plays
def test_the_expert_with_the_smallest_losses_is_played():
    learner, keys = hedge(num_experts=3, horizon=5), jax.random.split(jax.random.key(0), 20)
    params = learner.params(learning_rate=100.0)
    start = learner.init(keys[0], params)
    public = learner.update(keys[0], params, start, np.asarray([1.0, 0.0, 1.0], default_float())).public
    plays = jax.vmap(lambda key, public: learner.act(key, params, public, None), in_axes=(0, None))
    assert set(plays(keys, public).tolist()) == {1}
    assert set(plays(keys, start.public).tolist()) == {0, 1, 2}


def test_errors():
    with pytest.raises(ValueError, match="num_experts must be an integer >= 2, got 1"):
        hedge(num_experts=1, horizon=5)
    with pytest.raises(ValueError, match="learning_rate must be > 0, got 0"):
        hedge(num_experts=2, horizon=5).params(learning_rate=0.0)
