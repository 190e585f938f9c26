"""Plays one round of a learner in an environment, and derives each round's keys."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Environment, Learner, State
from jaxdp.simulation.run import outcomes

NUM_WORDS = 2**32  # number of 32-bit words; `fold_in` takes one word


class Keys(NamedTuple):
    """Keys by purpose, for one round or a block of rounds; or the root keys from which these are derived."""

    context: jax.Array
    feedback: jax.Array
    act: jax.Array
    user: jax.Array
    update: jax.Array


class Play(NamedTuple):
    """The state of one lane between two rounds.

    Attributes:
        round: [] integer, number of rounds played.
        state: state of the learner.
        world: state of the environment.
        outcomes: sums of outcomes over the rounds played.
        action: the latest action; None if no function reads the action, or with the engine "counts".
        stopped: [] bool, whether the learner has stopped; None for a learner without a stopping time.
    """

    round: jax.Array
    state: State
    world: Any
    outcomes: outcomes.Running
    action: Any
    stopped: jax.Array | None

    def is_before(self, stop: jax.Array) -> jax.Array:
        """Returns whether the lane plays a round before round `stop`: [] bool."""
        return (self.round < stop) if self.stopped is None else (self.round < stop) & ~self.stopped


class Events(NamedTuple):
    """The events of one round, in the order in which they happen."""

    context: Any
    action: Any
    feedback: Any
    outcome: dict[str, jax.Array]
    report: Any


def split_lane_key(key: jax.Array) -> tuple[jax.Array, jax.Array, Keys]:
    """Returns a lane's keys for the learner's init and the environment's init, and the root keys for rounds."""
    key_init, key_env, key_learner = jax.random.split(key, 3)
    key_state, key_world = jax.random.split(key_init)
    return key_state, key_world, root_keys(key_env, key_learner)


def root_keys(environment: jax.Array, learner: jax.Array) -> Keys:
    """Returns the root keys of a lane, from which all rounds' keys are derived.

    The arguments are the environment's and the learner's key. The environment never sees the learner's key, so all
    learners play in the same world.
    """
    key_context, key_feedback = (jax.random.fold_in(environment, word) for word in range(2))
    key_act, key_user, key_update = (jax.random.fold_in(learner, word) for word in range(3))
    return Keys(key_context, key_feedback, key_act, key_user, key_update)


def round_keys(roots: Keys, round_: jax.Array, horizon: int) -> Keys:
    """Returns the keys of round `round_`, counted from 0. The keys do not depend on the engine or on blocks.

    They depend on the horizon only through whether it is above 2^32.
    """
    return Keys(*(_fold_in(root, round_, horizon) for root in roots))


def _fold_in(key: jax.Array, round_: jax.Array, horizon: int) -> jax.Array:
    key = jax.random.fold_in(key, round_.astype(jnp.uint32))
    return key if horizon <= NUM_WORDS else jax.random.fold_in(key, (round_ >> 32).astype(jnp.uint32))


def interact(
    learner: Learner, environment: Environment, keys: Keys, params: Any, state: State, world: Any
) -> tuple[State, Any, Events]:
    """Plays one round with its keys. Returns the state and the world after the round, and the round's events."""
    learner_params, env_params = params["learner"], params["environment"]
    context = environment.context(keys.context, env_params, world) if environment.context else None
    action = learner.act(keys.act, learner_params, state.public, context)
    world, feedback, outcome = environment.feedback(keys.feedback, env_params, world, action)
    report = learner.privatize(keys.user, learner_params, state.public, context, action, feedback)
    state = learner.update(keys.update, learner_params, state, report)
    return state, world, Events(context, action, feedback, dict(outcome), report)
