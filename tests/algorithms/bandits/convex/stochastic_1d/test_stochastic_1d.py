"""Tests of `stochastic_1d` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.bandits import convex


def test_an_interval_that_is_cut_keeps_the_best_point():
    rounds = 30_000
    learner = convex.stochastic_1d(horizon=rounds)
    record = {
        "low": lambda snapshot: snapshot.public.low,
        "high": lambda snapshot: snapshot.public.low + snapshot.public.width,
    }
    simulated = jaxdp.simulator(learner, convex.quadratic_losses(dim=1), rounds, checkpoints=[rounds], record=record)
    params = jax.tree.map(jnp.asarray, simulated.params(epsilon=math.inf, curvature=1.0, target=0.7, loss_bound=1.5))
    found = jax.jit(jax.vmap(simulated, in_axes=(0, None)))(jaxdp.lane_keys(jax.random.key(3), 16), params)
    low, high = np.asarray(found["low"]), np.asarray(found["high"])
    assert (low <= 0.7).all()
    assert (high >= 0.7).all()
    assert (high - low < 1.6).all()
