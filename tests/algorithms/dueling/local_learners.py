"""Helpers of several test files of dueling."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

KEY = partial(jax.random.key, 91)
DRAWS = 10_000


@functools.cache
def draws(learner):
    return jax.jit(jax.vmap(lambda key, params, public: learner.act(key, params, public, None), (0, None, None)))


def duels_drawn(learner, public, epsilon=math.inf):
    """Returns how often each pair is played from this state, [num_arms, num_arms]."""
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    pairs = np.asarray(draws(learner)(jax.random.split(KEY(), DRAWS), params, public))
    found = np.zeros((3, 3))
    np.add.at(found, tuple(pairs.T), 1 / DRAWS)
    return found


def check_shares(found, expected, draws=DRAWS):
    expected = np.asarray(expected, float)
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-12).all()


def start(learner, **values):
    return learner.init(KEY(), learner.params(epsilon=1.0, **values)).public
