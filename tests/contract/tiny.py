"""The smallest algorithms that every contract check can be run on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    BlockPlan,
    Blocks,
    CountPlan,
    Counts,
    Environment,
    Estimator,
    Guarantee,
    Interface,
    Learner,
    Space,
    State,
    arms,
)

BLOCK, HORIZON = 3, 7  # two whole blocks, and a part
FLOAT = jnp.result_type(float)
VALUES = {"epsilon": 1.0}
INTERFACE = Interface(arms(2), Space("numbers"))


class Params(NamedTuple):
    """[] float scale of the noise."""

    scale: Any


class Public(NamedTuple):
    """[] integer rounds played, [2] sums of noisy rewards."""

    round: jax.Array
    sums: jax.Array


def scale_of(*, epsilon):
    """Returns the noise's scale."""
    if not epsilon > 0:
        raise ValueError(f"epsilon must be > 0, got {epsilon}")
    return Params(np.asarray(1 / epsilon, FLOAT))


def claim(*, epsilon):
    """Returns the claim; nobody checks whether it is true."""
    return Guarantee.pure(epsilon, trust_model="local", privacy_unit="one round", argument="none")


def noise(key, params, size=()):
    """Returns Gaussian noise."""
    return params.scale * jax.random.normal(key, size, params.scale.dtype)


def takes_turns() -> Learner:
    """Plays two arms in turn and adds up noisy rewards: by rounds, blocks and counts."""

    def init(key, params):
        return State((), Public(jnp.zeros((), jnp.result_type(int)), jnp.zeros(2, params.scale.dtype)))

    def act(key, params, public, context):
        return (public.round % 2).astype(jnp.int32)

    def privatize(key, params, public, context, action, feedback):
        return action, feedback + noise(key, params)

    def after(public, action, reward):
        return Public(public.round + 1, public.sums.at[action].add(reward, mode="clip"))

    def update(key, params, state, report):
        return State((), after(state.public, *report))

    def plan(keys, params, public, contexts, limit):
        rounds = public.round + jnp.arange(len(keys), dtype=public.round.dtype)
        return BlockPlan((rounds % 2).astype(jnp.int32), limit)

    def update_block(keys, params, state, plan, report):
        def one(public, each):
            place, report = each
            new = after(public, *report)
            return jax.tree.map(lambda x, y: jnp.where(place < plan.length, x, y), new, public), None

        places = jnp.arange(len(keys), dtype=plan.length.dtype)
        return State((), jax.lax.scan(one, state.public, (places, report))[0]), plan.length

    def count(key, params, public, limit):
        odd = (public.round + limit) // 2 - public.round // 2
        return CountPlan(jnp.stack([limit - odd, odd]))

    def privatize_counts(key, params, public, plan, totals):
        return totals + jnp.sqrt(plan.counts.astype(totals.dtype)) * noise(key, params, (2,))

    def update_counts(key, params, state, plan, report):
        public = state.public
        rounds = public.round + plan.counts.sum(dtype=public.round.dtype)
        return State((), Public(rounds, public.sums + report))

    return Learner(
        params=scale_of,
        guarantee=claim,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(BLOCK, plan, update_block, ends=()),),
        counts=Counts(count, privatize_counts, update_counts),
        interface=INTERFACE,
    )


def two_arms() -> Environment:
    """Builds two arms that both pay 1; plays outside count as the nearest arm."""

    def answered(action):
        return jnp.ones((), FLOAT), {"played": jnp.clip(action, 0, 1)}

    def feedback(key, params, world, action):
        return world, *answered(action)

    def block(keys, params, world, contexts, actions):
        rewards, outcomes = jax.vmap(answered)(actions)
        return world, jnp.broadcast_to(rewards, (len(keys),)), outcomes

    def feedback_totals(key, params, world, counts):
        return world, counts.astype(FLOAT), {"played": jnp.clip(counts[1], 0)}

    return Environment(
        params=lambda: (),
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        block=block,
        feedback_totals=feedback_totals,
        interface=INTERFACE,
    )


def mean_of_labels() -> Estimator:
    """Adds noise to labels, and fits one number to them."""

    def privatize(key, params, features, labels):
        return labels.astype(params.scale.dtype) + noise(key, params, labels.shape)

    def fit(key, params, features, report):
        return jnp.mean(features, axis=0) * jnp.mean(report)

    return Estimator(params=scale_of, guarantee=claim, privatize=privatize, fit=fit, features_public=True)
