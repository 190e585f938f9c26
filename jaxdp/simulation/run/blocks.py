"""A block of rounds: with a report for each of them, or with the sum of their reports."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, Environment, Learner
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane, lanes_fast_if_small
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Keys, Play, round_keys


class BlockEvents(NamedTuple):
    """What happened in a block of rounds.

    Attributes:
        actions: pytree of [block length, ...] arrays, as planned.
        report: pytree of [block length, ...] arrays; of blocks with a `total` the sum of those of the rounds used.
        order: [block length] integers, which of the block's rounds each place holds.
        used: [] integer, how many rounds were played.
    """

    actions: Any
    report: Any
    order: jax.Array
    used: jax.Array


def privatized(
    learner: Learner,
    keys: jax.Array,
    params: Any,
    public: Any,
    contexts: Any,
    plan: BlockPlan,
    feedback: Any,
) -> Any:
    """The reports of a block's rounds, each of which sees `public` as at the start."""

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
    """One block, up to the round `stop` at most, and what happened in it."""
    answer = environment.block
    assert answer is not None
    mine, theirs, public = params["learner"], params["environment"], play.state.public
    natural = jnp.arange(blocks.length, dtype=play.round.dtype)
    order = blocks.order(mine, public).astype(natural.dtype) if blocks.order else natural
    keys = jax.vmap(lambda round_: round_keys(roots, round_, horizon))(play.round + order)
    limit = jnp.minimum(stop - play.round, blocks.length)
    contexts = None
    if environment.context:
        assert environment.contexts is not None
        contexts = environment.contexts(keys.context, theirs, play.world)
    plan = blocks.plan(keys.act, mine, public, contexts, limit)
    if blocks.order and jax.tree.leaves(play.world):  # a world goes on from round to round
        place = jnp.zeros_like(natural).at[order].set(natural, mode="drop")
        actions = jax.tree.map(lambda leaf: leaf[place], plan.actions)
        worlds, *answers = answer(keys.feedback[place], theirs, play.world, contexts, actions)
        feedback, outcome = jax.tree.map(lambda leaf: leaf[jnp.minimum(order, blocks.length - 1)], answers)
    else:
        worlds, feedback, outcome = answer(keys.feedback, theirs, play.world, contexts, plan.actions)
    report = privatized(learner, keys.user, mine, public, contexts, plan, feedback)
    state, used = blocks.absorb(keys.update, mine, play.state, plan, report)
    used = used.astype(play.round.dtype)
    last = jnp.argmax(order == used - 1) if blocks.order else used - 1
    after = Play(
        round=play.round + used,
        state=state,
        world=jax.tree.map(lambda leaf: leaf[used - 1], worlds),
        outcomes=outcomes.add_block(play.outcomes, outcome, order if blocks.order else None, used),
        action=None if play.action is None else jax.tree.map(lambda leaf: leaf[last], plan.actions),
        stopped=None if learner.done is None else learner.done(mine, state.public),
    )
    return after, BlockEvents(plan.actions, report, order, used)


class _Played(NamedTuple):
    """What is kept of the rounds of a block that were played, one after the other.

    Attributes:
        place: [] integer, how many were gone through.
        length: [] integer, how many are planned.
        world: the environment's.
        outcomes: sums over the rounds played.
        action: the latest.
        actions: pytree of [block length, ...] arrays.
        sums: of what rounds add to the report, as `no_rounds` begins them.
    """

    place: jax.Array
    length: jax.Array
    world: Any
    outcomes: outcomes.Running
    action: Any
    actions: Any
    sums: Any


def no_rounds(exact: Any) -> list[compensated.Sum | jax.Array]:
    """Sums of nothing, one for each leaf of what a round adds: compensated, or of the default integer type."""

    def nothing(leaf: Any) -> compensated.Sum | jax.Array:
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        zeros = jnp.zeros(leaf.shape, leaf.dtype if is_float else jnp.result_type(int))
        return compensated.zero(zeros) if is_float else zeros

    return [nothing(leaf) for leaf in jax.tree.leaves(exact)]


def one_more(sums: list[compensated.Sum | jax.Array], exact: Any) -> list[compensated.Sum | jax.Array]:
    """The sums with what one more round adds."""
    return [_added(sum_, each) for sum_, each in zip(sums, jax.tree.leaves(exact), strict=True)]


def as_added(sums: list[compensated.Sum | jax.Array], exact: Any) -> Any:
    """The sums as a pytree like what a round adds."""
    found = [sum_.total if isinstance(sum_, compensated.Sum) else sum_ for sum_ in sums]
    return jax.tree.unflatten(jax.tree.structure(exact), found)


def _added(running: compensated.Sum | jax.Array, value: jax.Array) -> compensated.Sum | jax.Array:
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
    """One block whose reports are released as their sum, up to the round `stop` at most, and what happened in it.

    Its rounds are played one after the other, with what follows from a round used before the next one is played.
    """
    answer, total = environment.block, blocks.total
    assert answer is not None
    assert total is not None
    mine, theirs, public = params["learner"], params["environment"], play.state.public
    limit = jnp.minimum(stop - play.round, blocks.length)

    def one(place: jax.Array, world: Any) -> tuple[jax.Array, Any, Any, Any, Any]:
        """Of one round: the length planned, world, outcome, action, and what is added to the report."""
        keys = jax.tree.map(lambda key: key[None], round_keys(roots, play.round + place, horizon))
        contexts = None
        if environment.context:
            assert environment.contexts is not None
            contexts = environment.contexts(keys.context, theirs, world)
        plan = blocks.plan(keys.act, mine, public, contexts, limit)
        worlds, feedback, outcome = answer(keys.feedback, theirs, world, contexts, plan.actions)
        context, action, feedback = jax.tree.map(lambda leaf: leaf[0], (contexts, plan.actions, feedback))
        exact = total.exact(mine, public, context, action, feedback)
        world, outcome = jax.tree.map(lambda leaf: leaf[0], (worlds, outcome))
        return plan.length.astype(play.round.dtype), world, outcome, action, exact

    def step(played: _Played) -> _Played:
        length, world, outcome, action, exact = one(played.place, played.world)
        is_played = played.place < length

        def kept(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda new, old: jnp.where(is_played, new, old), new, old)

        added = one_more(played.sums, exact)
        actions = jax.tree.map(lambda all_, each: all_.at[played.place].set(each), played.actions, action)
        return _Played(
            place=played.place + 1,
            length=length,
            world=kept(world, played.world),
            outcomes=kept(outcomes.add(played.outcomes, outcome), played.outcomes),
            action=kept(action, played.action),
            actions=actions,
            sums=jax.tree.map(lanes_fast_if_small, kept(added, played.sums)),
        )

    zero = jnp.zeros_like(play.round)
    *_, action, exact = jax.eval_shape(one, zero, play.world)
    latest = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), action)
    actions = jax.tree.map(lambda leaf: jnp.zeros((blocks.length, *leaf.shape), leaf.dtype), action)
    start = _Played(zero, jnp.ones_like(zero), play.world, play.outcomes, latest, actions, no_rounds(exact))
    played = jax.lax.while_loop(lambda played: any_lane(played.place < played.length), step, start)
    keys = round_keys(roots, play.round, horizon)
    plan = BlockPlan(played.actions, played.length)
    report = total.release(keys.user, mine, public, as_added(played.sums, exact), played.length)
    state, used = blocks.absorb(keys.update[None], mine, play.state, plan, report)
    used = used.astype(play.round.dtype)
    after = Play(
        round=play.round + used,
        state=state,
        world=played.world,
        outcomes=played.outcomes,
        action=None if play.action is None else played.action,
        stopped=None if learner.done is None else learner.done(mine, state.public),
    )
    return after, BlockEvents(played.actions, report, jnp.arange(blocks.length, dtype=play.round.dtype), used)
