"""Plays blocks of rounds."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, Environment, Learner
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Keys, Play, round_keys


class BlockEvents(NamedTuple):
    """The events of a block of rounds.

    Attributes:
        actions: pytree of [block length, ...] arrays, as planned.
        report: pytree of [block length, ...] arrays.
        slot_rounds: [block length] integers, the round that is stored at each index of `actions` and `report`, counted
            from 0 at the start of the block. An empty slot has the block length.
        used: [] integer, the number of rounds played.
    """

    actions: Any
    report: Any
    slot_rounds: jax.Array
    used: jax.Array


def privatize_block(
    learner: Learner,
    keys: jax.Array,
    params: Any,
    public: Any,
    contexts: Any,
    plan: BlockPlan,
    feedback: Any,
) -> Any:
    """Returns the reports of a block's rounds. `public` is the released state at the start of the block."""

    def privatize_round(key: jax.Array, context: Any, action: Any, answer: Any) -> Any:
        return learner.privatize(key, params, public, context, action, answer)

    return jax.vmap(privatize_round)(keys, contexts, plan.actions, feedback)


def play_block(
    blocks: Blocks,
    learner: Learner,
    environment: Environment,
    horizon: int,
    roots: Keys,
    params: Any,
    play: Play,
    stop: jax.Array,
) -> tuple[Play, BlockEvents]:
    """Plays the rounds of one block that come before round `stop`. Returns the next state and the block's events."""
    answer_block = environment.block
    assert answer_block is not None
    learner_params, env_params, public = params["learner"], params["environment"], play.state.public
    indices = jnp.arange(blocks.length, dtype=play.round.dtype)
    order = blocks.slot_rounds(learner_params, public).astype(indices.dtype) if blocks.slot_rounds else indices
    keys = jax.vmap(lambda round_: round_keys(roots, round_, horizon))(play.round + order)
    limit = jnp.minimum(stop - play.round, blocks.length)
    contexts = None
    if environment.context:
        assert environment.contexts is not None
        contexts = environment.contexts(keys.context, env_params, play.world)
    plan = blocks.plan(keys.act, learner_params, public, contexts, limit)
    if blocks.slot_rounds and jax.tree.leaves(play.world):  # the world must get the actions in playing order
        slot_of_round = jnp.zeros_like(indices).at[order].set(indices, mode="drop")
        actions = jax.tree.map(lambda leaf: leaf[slot_of_round], plan.actions)
        worlds, *answers = answer_block(keys.feedback[slot_of_round], env_params, play.world, contexts, actions)
        feedback, outcome = jax.tree.map(lambda leaf: leaf[jnp.minimum(order, blocks.length - 1)], answers)
    else:
        worlds, feedback, outcome = answer_block(keys.feedback, env_params, play.world, contexts, plan.actions)
    report = privatize_block(learner, keys.user, learner_params, public, contexts, plan, feedback)
    state, used = blocks.update_block(keys.update, learner_params, play.state, plan, report)
    used = used.astype(play.round.dtype)
    last = jnp.argmax(order == used - 1) if blocks.slot_rounds else used - 1
    after = Play(
        round=play.round + used,
        state=state,
        world=jax.tree.map(lambda leaf: leaf[used - 1], worlds),
        outcomes=outcomes.add_block(play.outcomes, outcome, order if blocks.slot_rounds else None, used),
        action=None if play.action is None else jax.tree.map(lambda leaf: leaf[last], plan.actions),
        stopped=None if learner.done is None else learner.done(learner_params, state.public),
    )
    return after, BlockEvents(plan.actions, report, order, used)
