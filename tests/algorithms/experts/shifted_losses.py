"""Losses whose best expert changes once, and what learners in the clear lose to a comparator."""

import math

import jax
import jax.numpy as jnp
import numpy as np

NUM_EXPERTS, HORIZON = 4, 400
COMPARATOR = np.repeat([1, 3], HORIZON // 2)
NATS = math.log(4) + math.log(3) + math.log(HORIZON - 1) + (HORIZON - 2) * math.log((HORIZON - 1) / (HORIZON - 2))


def shifted_losses():
    """[HORIZON, NUM_EXPERTS], half as large for the comparator's experts."""
    losses = np.random.default_rng(0).uniform(0, 1, (HORIZON, NUM_EXPERTS))
    losses[np.arange(HORIZON), COMPARATOR] *= 0.5
    return losses


def regret(learner, distribution, losses, comparator):
    """What the learner's distribution loses more than the comparator's experts do."""
    params = jax.tree.map(jnp.asarray, learner.params())

    def step(state, each):
        return learner.update(None, params, state, each), jnp.sum(distribution(params, state.public) * each)

    played = jax.lax.scan(step, learner.init(None, params), jnp.asarray(losses, float))[1]
    return float(np.asarray(played, np.float64).sum() - losses[np.arange(HORIZON), comparator].sum())
