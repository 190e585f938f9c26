"""Hedge and fixed share: regret below their bounds, and errors. Their weights are compared in test_counter_weights."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import fixed_share, hedge, mirror_descent

NUM_EXPERTS, HORIZON = 4, 400


def regret(learner, law, losses, comparator):
    params = jax.tree.map(jnp.asarray, learner.params())

    def step(state, each):
        return learner.update(None, params, state, each), jnp.sum(law(params, state.public) * each)

    played = jax.lax.scan(step, learner.init(None, params), jnp.asarray(losses, float))[1]
    return float(np.asarray(played, np.float64).sum() - losses[np.arange(HORIZON), comparator].sum())


def hedge_law(params, public):
    return jax.nn.softmax(-params.learning_rate * (public.total - public.excess))


def test_regret():
    rng = np.random.default_rng(0)
    losses = rng.uniform(0, 1, (HORIZON, NUM_EXPERTS))
    comparator = np.repeat([1, 3], HORIZON // 2)
    losses[np.arange(HORIZON), comparator] *= 0.5
    found = regret(
        fixed_share(num_experts=NUM_EXPERTS, horizon=HORIZON, num_switches=1), lambda _, p: p, losses, comparator
    )
    nats = math.log(4) + math.log(3) + math.log(HORIZON - 1) + (HORIZON - 2) * math.log((HORIZON - 1) / (HORIZON - 2))
    assert 0 < found < math.sqrt(nats * HORIZON / 2)
    still = hedge(num_experts=NUM_EXPERTS, horizon=HORIZON)
    assert regret(still, hedge_law, losses, comparator) > math.sqrt(nats * HORIZON / 2)  # it does not track
    best = np.full(HORIZON, losses.sum(0).argmin())
    assert regret(still, hedge_law, losses, best) < math.sqrt(math.log(4) * HORIZON / 2)


def test_errors():
    with pytest.raises(ValueError, match="num_experts must be a whole number >= 2, got 1"):
        hedge(num_experts=1, horizon=5)
    with pytest.raises(ValueError, match="num_switches must be < horizon, got 5 at horizon 5"):
        fixed_share(num_experts=2, horizon=5, num_switches=5)
    with pytest.raises(ValueError, match="num_switches must be a whole number >= 1, got 0"):
        fixed_share(num_experts=2, horizon=5, num_switches=0)
    for make in (fixed_share, mirror_descent):
        with pytest.raises(ValueError, match=r"horizon must be >= 2, as num_switches is in .*, got 1: .*hedge"):
            make(num_experts=2, horizon=1, num_switches=1)
    learner = fixed_share(num_experts=2, horizon=5, num_switches=1)
    with pytest.raises(ValueError, match="learning_rate must be > 0, got 0"):
        hedge(num_experts=2, horizon=5).params(learning_rate=0.0)
    with pytest.raises(ValueError, match="switch_rate must be > 0, got 0"):
        learner.params(switch_rate=0.0)
    with pytest.raises(ValueError, match=r"switch_rate must be in \[0, 1\], got 1.5"):
        learner.params(switch_rate=1.5)
    assert not learner.guarantee().is_private
