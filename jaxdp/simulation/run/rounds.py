"""Plays one round of a learner against an environment, and derives the keys of rounds."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Environment, Learner, State
from jaxdp.simulation.run import outcomes

LARGEST_WORD = 2**32


class Keys(NamedTuple):
    """Keys by their users: of one round, of a block of rounds, or the roots of all rounds' keys."""

    context: jax.Array
    feedback: jax.Array
    act: jax.Array
    user: jax.Array
    update: jax.Array


class Play(NamedTuple):
    """The state carried from round to round.

    Attributes:
        round: [] integer, rounds played.
        state: state of the learner.
        world: state of the environment.
        outcomes: sums over the rounds played.
        action: the latest action, or None if nothing reads it.
        stopped: [] bool, whether the learner is done; None for a learner without a stopping time.
    """

    round: jax.Array
    state: State
    world: Any
    outcomes: outcomes.Running
    action: Any
    stopped: jax.Array | None


class Events(NamedTuple):
    """The events of one round, in this order."""

    context: Any
    action: Any
    feedback: Any
    outcome: dict[str, jax.Array]
    report: Any


def split_lane_key(key: jax.Array) -> tuple[jax.Array, jax.Array, Keys]:
    """Returns a lane's keys: of the learner's init, of the environment's init, and the roots of all rounds' keys."""
    key_init, key_env, key_learner = jax.random.split(key, 3)
    key_state, key_world = jax.random.split(key_init)
    return key_state, key_world, root_keys(key_env, key_learner)


def root_keys(environment: jax.Array, learner: jax.Array) -> Keys:
    """Returns the keys from which all rounds' keys are made.

    The environment never sees the learner's key, so all learners meet the same world.
    """
    key_context, key_feedback = (jax.random.fold_in(environment, word) for word in range(2))
    key_act, key_user, key_update = (jax.random.fold_in(learner, word) for word in range(3))
    return Keys(key_context, key_feedback, key_act, key_user, key_update)


def round_keys(roots: Keys, round_: jax.Array, horizon: int) -> Keys:
    """Returns the keys of round `round_`, counted from 0; they do not depend on how rounds are grouped."""
    return Keys(*(_fold_in(root, round_, horizon) for root in roots))


def _fold_in(key: jax.Array, round_: jax.Array, horizon: int) -> jax.Array:
    key = jax.random.fold_in(key, round_.astype(jnp.uint32))
    return key if horizon <= LARGEST_WORD else jax.random.fold_in(key, (round_ >> 32).astype(jnp.uint32))


def interact(
    learner: Learner, environment: Environment, keys: Keys, params: Any, state: State, world: Any
) -> tuple[State, Any, Events]:
    """Plays one round.

    Args:
        learner: the learner that plays.
        environment: the environment that it plays against.
        keys: keys of the round.
        params: parameters, with the entries "learner" and "environment".
        state: state of the learner before the round.
        world: state of the environment before the round.

    Returns:
        (state, world, events): the state and the world after the round, and its events.
    """
    learner_params, env_params = params["learner"], params["environment"]
    context = environment.context(keys.context, env_params, world) if environment.context else None
    action = learner.act(keys.act, learner_params, state.public, context)
    world, feedback, outcome = environment.feedback(keys.feedback, env_params, world, action)
    report = learner.privatize(keys.user, learner_params, state.public, context, action, feedback)
    state = learner.update(keys.update, learner_params, state, report)
    return state, world, Events(context, action, feedback, dict(outcome), report)
