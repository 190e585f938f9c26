"""Helpers of several test files of experts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.audit import UserData, full_information, grey_box
from tests.algorithms.experts.worlds import stationary

KEY = partial(jax.random.key, 61)


def draw_losses(key):
    return UserData(jnp.where(jax.random.bernoulli(key, shape=(3,)), 3.0, -2.0))


def look(learner, values, rounds=8, key=None, **more):
    more = {"num_bases": 2, "num_neighbours": 64, **more}
    return grey_box(
        KEY() if key is None else key, learner, values, draw_losses, rounds=rounds, answer=full_information, **more
    )


def regret_of(learner, means, horizon=1000, **values):
    run = jaxdp.simulator(learner, stationary(means), horizon, engine="rounds", checkpoints=[horizon])
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 100), run.params(**values))
    return float(np.mean(np.asarray(found["pseudo_regret"])[:, -1]))
