"""Helpers of several test files of bandits."""

from functools import partial

import jax
import numpy as np

import jaxdp

KEY = partial(jax.random.key, 5)


def regrets(learner, world, horizon, points, lanes=40):
    run = jaxdp.simulator(learner, world, horizon, engine="rounds", outcomes=["pseudo_regret"])
    go = jax.jit(jax.vmap(run, in_axes=(0, None)))
    keys = jax.random.split(KEY(), lanes)
    return [np.asarray(go(keys, run.params(**point))["pseudo_regret"])[:, -1].astype(float) for point in points]
