"""Helpers of several test files of experts."""

import dataclasses
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp import experts
from jaxdp.audit import g_test

DRAWS = 20_000
KEY = partial(jax.random.key, 41)
ROUNDS = 3
SEQUENCES = [np.asarray(bits, float).reshape(ROUNDS, 2) for bits in itertools.product((0, 1), repeat=2 * ROUNDS)]


def neighbours():
    """Pairs of sequences that differ in one round."""
    for one, other in itertools.combinations(range(len(SEQUENCES)), 2):
        if (SEQUENCES[one] != SEQUENCES[other]).any(axis=1).sum() == 1:
            yield one, other


def sampled(learner, losses, values, read, **leaves):
    """Returns `read` of the public state at the start and after each round, in many lanes."""
    run = jaxdp.simulator(learner, experts.loss_sequence(losses), len(losses), checkpoints=len(losses), record=read)
    params = run.params(**values)
    params["learner"] = dataclasses.replace(params["learner"], **leaves)
    params = jax.tree.map(jnp.asarray, params)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), DRAWS), params)
    return {name: np.asarray(found[name]) for name in read}


def check_distribution(samples, distribution):
    assert g_test(samples, distribution) > 1e-6


def after_the_first(distribution, taken):
    """Returns the distribution of reads of `public` after each round, without the player of the first round."""
    found = {}
    for key, chance in distribution.items():
        found[taken(key)] = found.get(taken(key), 0.0) + chance
    return found
