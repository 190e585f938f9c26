"""Audits of learners with two arms, for tests of people and of late feedback."""

import jax
import jax.numpy as jnp

from jaxdp.audit import UserData, feedback_of_action, grey_box


def draw_arms(key):
    return UserData(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))


def audit(
    learner,
    rounds,
    *,
    epsilon=1.0,
    draw=draw_arms,
    answer=feedback_of_action,
    num_bases=2,
    num_neighbours=64,
    **options,
):
    return grey_box(
        jax.random.key(0),
        learner,
        {"epsilon": epsilon},
        draw,
        rounds=rounds,
        answer=answer,
        num_bases=num_bases,
        num_neighbours=num_neighbours,
        **options,
    )
