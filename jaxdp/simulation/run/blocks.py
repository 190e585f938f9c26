"""Plays blocks of rounds: with a report for each round, or with the sum of their reports."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, Environment, Learner
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane, lanes_fast_if_small
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Keys, Play, round_keys


class BlockEvents(NamedTuple):
    """The events of a block of rounds.

    Attributes:
        actions: pytree of [block length, ...] arrays, as planned.
        report: pytree of [block length, ...] arrays; for blocks with a `total`, the sum of the reports of the used
            rounds.
        order: [block length] integers: for each slot, the block's round stored there.
        used: [] integer, the number of rounds played.
    """

    actions: Any
    report: Any
    order: jax.Array
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
    """Returns the reports of a block's rounds, each made with `public` as at the start of the block."""

    def one(key: jax.Array, context: Any, action: Any, answer: Any) -> Any:
        return learner.privatize(key, params, public, context, action, answer)

    return jax.vmap(one)(keys, contexts, plan.actions, feedback)


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
    """Plays one block, up to the round `stop` at most, and returns its events."""
    answer = environment.block
    assert answer is not None
    learner_params, env_params, public = params["learner"], params["environment"], play.state.public
    natural = jnp.arange(blocks.length, dtype=play.round.dtype)
    order = blocks.order(learner_params, public).astype(natural.dtype) if blocks.order else natural
    keys = jax.vmap(lambda round_: round_keys(roots, round_, horizon))(play.round + order)
    limit = jnp.minimum(stop - play.round, blocks.length)
    contexts = None
    if environment.context:
        assert environment.contexts is not None
        contexts = environment.contexts(keys.context, env_params, play.world)
    plan = blocks.plan(keys.act, learner_params, public, contexts, limit)
    if blocks.order and jax.tree.leaves(play.world):  # worlds depend on earlier rounds
        slot_of_round = jnp.zeros_like(natural).at[order].set(natural, mode="drop")
        actions = jax.tree.map(lambda leaf: leaf[slot_of_round], plan.actions)
        worlds, *answers = answer(keys.feedback[slot_of_round], env_params, play.world, contexts, actions)
        feedback, outcome = jax.tree.map(lambda leaf: leaf[jnp.minimum(order, blocks.length - 1)], answers)
    else:
        worlds, feedback, outcome = answer(keys.feedback, env_params, play.world, contexts, plan.actions)
    report = privatize_block(learner, keys.user, learner_params, public, contexts, plan, feedback)
    state, used = blocks.absorb(keys.update, learner_params, play.state, plan, report)
    used = used.astype(play.round.dtype)
    last = jnp.argmax(order == used - 1) if blocks.order else used - 1
    after = Play(
        round=play.round + used,
        state=state,
        world=jax.tree.map(lambda leaf: leaf[used - 1], worlds),
        outcomes=outcomes.add_block(play.outcomes, outcome, order if blocks.order else None, used),
        action=None if play.action is None else jax.tree.map(lambda leaf: leaf[last], plan.actions),
        stopped=None if learner.done is None else learner.done(learner_params, state.public),
    )
    return after, BlockEvents(plan.actions, report, order, used)


class _Played(NamedTuple):
    """The state carried through a block's rounds, which are played one after the other.

    Attributes:
        rounds_done: [] integer, the number of rounds gone through.
        length: [] integer, the number of rounds planned.
        world: the environment's.
        outcomes: sums over the rounds played.
        action: the latest.
        actions: pytree of [block length, ...] arrays.
        sums: of the rounds' contributions to the report, starting from `no_rounds`.
    """

    rounds_done: jax.Array
    length: jax.Array
    world: Any
    outcomes: outcomes.Running
    action: Any
    actions: Any
    sums: Any


def no_rounds(exact: Any) -> list[compensated.Sum | jax.Array]:
    """Returns empty sums, one for each leaf of a round's contribution: compensated, or of the default integer type."""

    def nothing(leaf: Any) -> compensated.Sum | jax.Array:
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        zeros = jnp.zeros(leaf.shape, leaf.dtype if is_float else jnp.result_type(int))
        return compensated.zero(zeros) if is_float else zeros

    return [nothing(leaf) for leaf in jax.tree.leaves(exact)]


def add_round(sums: list[compensated.Sum | jax.Array], exact: Any) -> list[compensated.Sum | jax.Array]:
    """Adds one more round's contribution to the sums."""
    return [_add(sum_, leaf) for sum_, leaf in zip(sums, jax.tree.leaves(exact), strict=True)]


def totals_tree(sums: list[compensated.Sum | jax.Array], exact: Any) -> Any:
    """Returns the sums as a pytree like a round's contribution."""
    totals = [sum_.total if isinstance(sum_, compensated.Sum) else sum_ for sum_ in sums]
    return jax.tree.unflatten(jax.tree.structure(exact), totals)


def _add(running: compensated.Sum | jax.Array, value: jax.Array) -> compensated.Sum | jax.Array:
    if isinstance(running, compensated.Sum):
        return compensated.add(running, value)
    return running + jnp.asarray(value).astype(running.dtype)


def play_total(
    blocks: Blocks,
    learner: Learner,
    environment: Environment,
    horizon: int,
    roots: Keys,
    params: Any,
    play: Play,
    stop: jax.Array,
) -> tuple[Play, BlockEvents]:
    """Plays one block, up to the round `stop` at most, releasing the sum of its reports, and returns its events.

    Rounds are played sequentially; only the world, the actions and running sums are kept.
    """
    answer, total = environment.block, blocks.total
    assert answer is not None
    assert total is not None
    learner_params, env_params, public = params["learner"], params["environment"], play.state.public
    limit = jnp.minimum(stop - play.round, blocks.length)

    def one(index: jax.Array, world: Any) -> tuple[jax.Array, Any, Any, Any, Any]:
        """Plays one round. Returns (planned length, world, outcome, action, contribution to the report)."""
        keys = jax.tree.map(lambda key: key[None], round_keys(roots, play.round + index, horizon))
        contexts = None
        if environment.context:
            assert environment.contexts is not None
            contexts = environment.contexts(keys.context, env_params, world)
        plan = blocks.plan(keys.act, learner_params, public, contexts, limit)
        worlds, feedback, outcome = answer(keys.feedback, env_params, world, contexts, plan.actions)
        context, action, feedback = jax.tree.map(lambda leaf: leaf[0], (contexts, plan.actions, feedback))
        exact = total.exact(learner_params, public, context, action, feedback)
        world, outcome = jax.tree.map(lambda leaf: leaf[0], (worlds, outcome))
        return plan.length.astype(play.round.dtype), world, outcome, action, exact

    def step(played: _Played) -> _Played:
        length, world, outcome, action, exact = one(played.rounds_done, played.world)
        is_played = played.rounds_done < length

        def select(after: Any, before: Any) -> Any:
            return jax.tree.map(lambda after, before: jnp.where(is_played, after, before), after, before)

        new_sums = add_round(played.sums, exact)
        actions = jax.tree.map(
            lambda all_, latest_action: all_.at[played.rounds_done].set(latest_action), played.actions, action
        )
        return _Played(
            rounds_done=played.rounds_done + 1,
            length=length,
            world=select(world, played.world),
            outcomes=select(outcomes.add(played.outcomes, outcome), played.outcomes),
            action=select(action, played.action),
            actions=actions,
            sums=jax.tree.map(lanes_fast_if_small, select(new_sums, played.sums)),
        )

    zero = jnp.zeros_like(play.round)
    *_, action, exact = jax.eval_shape(one, zero, play.world)
    latest = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), action)
    actions = jax.tree.map(lambda leaf: jnp.zeros((blocks.length, *leaf.shape), leaf.dtype), action)
    start = _Played(zero, jnp.ones_like(zero), play.world, play.outcomes, latest, actions, no_rounds(exact))
    played = jax.lax.while_loop(lambda played: any_lane(played.rounds_done < played.length), step, start)
    keys = round_keys(roots, play.round, horizon)
    plan = BlockPlan(played.actions, played.length)
    report = total.release(keys.user, learner_params, public, totals_tree(played.sums, exact), played.length)
    state, used = blocks.absorb(keys.update[None], learner_params, play.state, plan, report)
    used = used.astype(play.round.dtype)
    after = Play(
        round=play.round + used,
        state=state,
        world=played.world,
        outcomes=played.outcomes,
        action=None if play.action is None else played.action,
        stopped=None if learner.done is None else learner.done(learner_params, state.public),
    )
    return after, BlockEvents(played.actions, report, jnp.arange(blocks.length, dtype=play.round.dtype), used)
