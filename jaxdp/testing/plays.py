"""Counts plays outside the actions that an environment or a learner declares, and finds the first such play."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Learner, Space
from jaxdp.core.interface import holds, is_space
from jaxdp.simulation import Snapshot, simulator

OUTSIDE, PLAYED = "jaxdp_outside_plays", "jaxdp_rounds_played"


def count_plays(environment: Environment, space: Any) -> Environment:
    """Adds two outcomes to an environment: the number of rounds played, and the number of plays outside the space.

    With feedback totals, the second outcome is the number of actions with a negative count. `space` is a pytree of
    spaces of the actions; None accepts all actions. If `space` is a single finite space of integers, feedback totals
    raise an AssertionError for more counts than actions.
    """
    integer = jnp.result_type(int)

    def is_outside(action: Any) -> jax.Array:
        return jnp.asarray(False) if space is None else ~holds(space, action)

    def feedback(key: jax.Array, params: Any, world: Any, action: Any) -> Any:
        world, answer, outcome = environment.feedback(key, params, world, action)
        return world, answer, {**outcome, PLAYED: jnp.ones((), integer), OUTSIDE: is_outside(action)}

    def block(keys: jax.Array, params: Any, world: Any, contexts: Any, actions: Any) -> Any:
        assert environment.block is not None
        worlds, answers, outcomes = environment.block(keys, params, world, contexts, actions)
        played = jnp.ones(len(keys), integer)
        return worlds, answers, {**outcomes, PLAYED: played, OUTSIDE: jax.vmap(is_outside)(actions)}

    def feedback_totals(key: jax.Array, params: Any, world: Any, counts: jax.Array) -> Any:
        assert environment.feedback_totals is not None
        if isinstance(space, Space) and space.kind == "integers" and math.isfinite(space.high - space.low):
            actions = int(space.high - space.low + 1) ** math.prod(space.shape)
            assert counts.size <= actions, f"counts.plan must count the actions of {space}, got {counts.size} counts"
        world, totals, outcomes = environment.feedback_totals(key, params, world, counts)
        played, negative = counts.sum(dtype=integer), jnp.sum(counts < 0, dtype=integer)
        return world, totals, {**outcomes, PLAYED: played, OUTSIDE: negative}

    return environment._replace(
        feedback=feedback,
        block=block if environment.block else None,
        feedback_totals=feedback_totals if environment.feedback_totals else None,
    )


class Planned(NamedTuple):
    """A world, and the smallest count of an action in any step so far.

    Attributes:
        world: the environment's world.
        action: [] integer, index of the action with the smallest count; 0 if no count was negative.
        least: [] integer <= 0, the smallest count; 0 if no count was negative.
    """

    world: Any
    action: jax.Array
    least: jax.Array


def first_outside(
    learner: Learner, environment: Environment, space: Any, horizon: int, engine: str, key: jax.Array, params: Any
) -> str:
    """Returns, as text, a lane's first play outside the space; for counts, the action with the smallest count."""
    if engine == "counts":
        return _negative(learner, environment, horizon, key, params)
    spaces = jax.tree.leaves(space, is_leaf=is_space)
    run = simulator(
        learner,
        environment._replace(hindsight=None),
        horizon,
        engine=engine,
        checkpoints=horizon,
        record={f"jaxdp_action_{index}": partial(_leaf, index) for index in range(len(spaces))},
    )
    outputs = jax.jit(run)(key, params)
    leaves = [outputs[f"jaxdp_action_{index}"] for index in range(len(spaces))]
    actions = jax.tree.unflatten(jax.tree.structure(space, is_leaf=is_space), leaves)
    round_ = int(np.argmin(jax.vmap(partial(holds, space))(actions)))
    return f"{jax.tree.map(lambda leaf: np.asarray(leaf[round_]).tolist(), actions)} in round {round_ + 1}"


def _leaf(index: int, snapshot: Snapshot) -> jax.Array:
    return jax.tree.leaves(snapshot.action)[index]


def _negative(learner: Learner, environment: Environment, horizon: int, key: jax.Array, params: Any) -> str:
    feedback_totals = environment.feedback_totals
    assert feedback_totals is not None
    integer = jnp.result_type(int)

    def init(key: jax.Array, params: Any) -> Planned:
        return Planned(environment.init(key, params), jnp.zeros((), integer), jnp.zeros((), integer))

    def least_feedback_totals(key: jax.Array, params: Any, world: Planned, counts: jax.Array) -> Any:
        after, totals, outcomes = feedback_totals(key, params, world.world, counts)
        action, least = jnp.argmin(counts).astype(integer), counts.min().astype(integer)
        lower = least < world.least
        planned = Planned(after, jnp.where(lower, action, world.action), jnp.where(lower, least, world.least))
        return planned, totals, outcomes

    def feedback(key: jax.Array, params: Any, world: Planned, action: Any) -> Any:
        after, answer, outcome = environment.feedback(key, params, world.world, action)
        return world._replace(world=after), answer, outcome

    watching = environment._replace(
        init=init,
        feedback=feedback,
        feedback_totals=least_feedback_totals,
        hindsight=lambda params, world: {"jaxdp_smallest": world.action, "jaxdp_count": world.least},
    )
    outputs = jax.jit(simulator(learner, watching, horizon, engine="counts"))(key, params)
    return f"action {int(outputs['jaxdp_smallest'][-1])} played {int(outputs['jaxdp_count'][-1])} times"
