"""Helpers of several test files of bandits."""

from functools import partial

import jax
import numpy as np

import jaxdp

KEY = partial(jax.random.key, 8)


def final(learner, world, horizon, values, lanes, engine="counts"):
    run = jaxdp.simulator(learner, world, horizon, engine=engine)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), lanes), run.params(**values))
    return {name: np.asarray(each)[:, -1] for name, each in found.items()}
