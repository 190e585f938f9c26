"""Losses with a best expert that changes once, and the regret of non-private learners against a comparator."""

import math

import jax
import jax.numpy as jnp
import numpy as np

NUM_EXPERTS, HORIZON = 4, 400
COMPARATOR = np.repeat([1, 3], HORIZON // 2)
NATS = math.log(4) + math.log(3) + math.log(HORIZON - 1) + (HORIZON - 2) * math.log((HORIZON - 1) / (HORIZON - 2))


def shifted_losses():
    """Makes losses [HORIZON, NUM_EXPERTS], half as large for the comparator's experts."""
    losses = np.random.default_rng(0).uniform(0, 1, (HORIZON, NUM_EXPERTS))
    losses[np.arange(HORIZON), COMPARATOR] *= 0.5
    return losses


def regret(learner, distribution, losses, comparator):
    """Returns the loss of the learner's distribution in excess of the comparator's experts."""
    params = jax.tree.map(jnp.asarray, learner.params())

    def step(state, each):
        return learner.update(None, params, state, each), jnp.sum(distribution(params, state.public) * each)

    played = jax.lax.scan(step, learner.init(None, params), jnp.asarray(losses, float))[1]
    return float(np.asarray(played, np.float64).sum() - losses[np.arange(HORIZON), comparator].sum())
