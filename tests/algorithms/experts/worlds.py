"""Losses of 0 or 1 for tests: a stationary world that plays blocks and counts, and one with means that change once."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Interface, Space, arms, default_float
from jaxdp.random import binomial


def shifting(before, after, shift):
    """Builds losses with means that change after `shift` rounds, or never.

    Outcome: regret against each round's best mean.
    """
    before, after = (np.asarray(means, default_float()) for means in (before, after))
    num = len(before)

    def answer(key, round_, action):
        means = jnp.asarray(before) if shift is None else jnp.where(round_ < shift, before, after)
        losses = (jax.random.uniform(key, (num,), means.dtype) < means).astype(means.dtype)
        return losses, {"pseudo_regret": means[action] - means.min()}

    def feedback(key, params, world, action):
        return world + 1, *answer(key, world, action)

    def block(keys, params, world, contexts, actions):
        rounds = world + jnp.arange(len(keys), dtype=world.dtype)
        return rounds + 1, *jax.vmap(answer)(keys, rounds, actions)

    def feedback_totals(key, params, world, counts):
        rounds = counts.sum(dtype=counts.dtype)
        losses = binomial(key, jnp.broadcast_to(rounds, (num,)), jnp.asarray(before))
        regret = jnp.sum(counts.astype(before.dtype) * (before - before.min()))
        return world + rounds.astype(world.dtype), losses, {"pseudo_regret": regret}

    return Environment(
        params=lambda: (),
        init=lambda key, params: jnp.zeros((), jnp.result_type(int)),
        context=None,
        feedback=feedback,
        block=block,
        feedback_totals=feedback_totals if shift is None else None,
        interface=Interface(arms(num), Space("numbers", (num,), 0, 1)),
    )


def stationary(means):
    return shifting(means, means, None)
