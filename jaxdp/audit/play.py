"""Plays a learner against adversarial users, by rounds, blocks or counts, and records the transcript."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.audit.adversary import (
    Answer,
    History,
    UserData,
    actions_at,
    example,
    in_order,
    num_rounds,
    total_shape,
    total_type,
    users_environment,
)
from jaxdp.core import Environment, Learner, State
from jaxdp.simulation.run.blocks import BlockEvents, play_block
from jaxdp.simulation.run.engines import CountEvents, choose_engine, play_counts, play_round
from jaxdp.simulation.run.rounds import Events, Keys, Play, root_keys, round_keys
from jaxdp.validation import check_choice

DrawUser = Callable[[jax.Array, History], UserData]
PATHS = ("rounds", "blocks", "counts")


class Transcript(NamedTuple):
    """The transcript of a run. A step is a round, a block, or the rounds that the engine "counts" plays at once.

    Values of a step are at the index of its first round; entries at other rounds are zeros.

    Attributes:
        actions: pytree of [rounds, ...] arrays, the play of every round; with counts, a step's plays are sorted.
        reports: pytree of [rounds, ...] arrays, the report of every round; with counts, of every step.
        before: pytree of [rounds, ...] arrays, `public` before each step.
        after: pytree of [rounds, ...] arrays, `public` after each step.
        length: [rounds] integers, number of rounds of the step; 0 where no step starts.
    """

    actions: Any
    reports: Any
    before: Any
    after: Any
    length: jax.Array


def keys_of(key: jax.Array, rounds: int) -> tuple[jax.Array, Keys]:
    """Returns the keys that `play` uses: the key of `init`, and the keys of each round [rounds]."""
    key_init, roots = _roots(key)
    return key_init, jax.vmap(lambda r: round_keys(roots, r, rounds))(jnp.arange(rounds, dtype=jnp.int32))


def draw_key(key: jax.Array, round_: Any) -> jax.Array:
    """Returns the key with which `play` draws a round's user."""
    return jax.random.fold_in(jax.random.fold_in(key, 3), round_)


def play(
    learner: Learner,
    answer: Answer,
    key: jax.Array,
    params: Any,
    users: UserData,
    *,
    path: str = "rounds",
    draw_user: DrawUser | None = None,
    fixed: int | None = None,
    shown: Callable[[History], History] = lambda history: history,
) -> Transcript:
    """Plays a learner against users, with the program of the simulator.

    Args:
        learner: the learner that plays.
        answer: (answers, history, action) -> feedback, for the answers of one user. Its use of history and action is
            the adversary's strategy.
        key: a typed PRNG key for the whole run.
        params: the learner's params.
        users: [rounds, ...], one user for each round.
        path: the engine: "rounds"; "blocks" or "counts" if the learner has them. If users do not react to the past,
            blocks give the same plays and states as single rounds. If users are also independent draws from one
            distribution, counts give states with the same distribution. (With counts, users answer the plays of a step
            in the order of the actions.)
        draw_user: (key, history) -> the next user, who replaces the user in `users`; None plays `users`.
        fixed: a round that takes its user from `users` even if `draw_user` is given; None if no round does.
        shown: history -> the part of this history that `answer` and `draw_user` see.

    Returns:
        The transcript, up to the round in which the learner stops.

    Raises:
        ValueError: if `path` is unknown; if `users` have no round, or leading axes that differ; if the learner lacks
            the path, or lacks the interface that counts and visible reports need; or if `draw_user` draws users with
            other shapes or dtypes than `users`.
    """
    check_choice("path", path, PATHS)
    rounds = num_rounds(users)
    learner = with_short_blocks(learner, rounds)
    key_init, roots = _roots(key)
    users = jax.tree.map(jnp.asarray, users)
    # Without the barrier XLA would compute the initial states of all trials of a chunk at compile time, slowly.
    state = jax.lax.optimization_barrier(jax.tree.map(jnp.asarray, learner.init(key_init, params)))

    def person(round_: jax.Array, history: History) -> UserData:
        fixed_user = jax.tree.map(lambda x: x[round_], users)
        if draw_user is None:
            return fixed_user
        drawn_user = jax.tree.map(jnp.asarray, draw_user(draw_key(key, round_), history))
        kinds = [jax.tree.map(lambda x: f"{x.dtype}{list(x.shape)}", user) for user in (fixed_user, drawn_user)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"draw_user must draw users of the given shapes and dtypes, {kinds[0]}, got {kinds[1]}")
        is_fixed = jnp.asarray(False) if fixed is None else round_ == fixed
        return jax.tree.map(lambda old, new: jnp.where(is_fixed, old, new), fixed_user, drawn_user)

    def world(log: Transcript) -> Environment:
        def history_of(round_: jax.Array, actions: Any) -> History:
            return shown(History(round_, actions, log.after, None if path == "counts" else log.reports))

        return users_environment(
            learner, answer, person, history_of, log.actions, rounds=rounds, with_contexts=users.contexts is not None
        )

    log = _blank(learner, answer, params, state, users, shown, path)
    choose_engine(learner, world(log), path)
    all_params, integer = {"learner": params, "environment": None}, jnp.result_type(int)
    zero, stop = jnp.zeros((), integer), jnp.asarray(rounds, integer)
    start = Play(zero, state, zero, {}, None, None if learner.done is None else jnp.asarray(False))

    def more(carry: tuple[Play, Transcript]) -> jax.Array:
        now, _ = carry
        return (now.round < stop) if now.stopped is None else (now.round < stop) & ~now.stopped

    def step(advance: Callable[[Environment, Play], Any], write: Callable[..., Transcript], carry: Any) -> Any:
        now, log = carry
        after, events = advance(world(log), now)
        log = log._replace(
            before=_write(log.before, now.round, now.state.public),
            after=_write(log.after, now.round, after.state.public),
            length=log.length.at[now.round].set(after.round - now.round),
        )
        return after, write(log, now.round, events)

    if path == "rounds":
        one_round = partial(
            step, lambda world, now: play_round(learner, world, rounds, roots, all_params, now), _write_round
        )
        if learner.done is None:  # the number of steps is the same in every trial
            return jax.lax.fori_loop(0, rounds, lambda _, carry: one_round(carry), (start, log))[1]
        return jax.lax.while_loop(more, one_round, (start, log))[1]
    if path == "counts":
        one_total = partial(
            step,
            lambda world, now: play_counts(learner, world, rounds, roots, all_params, now, stop),
            partial(_write_counts, learner),
        )
        return jax.lax.while_loop(more, one_total, (start, log))[1]
    carry = start, log
    for blocks in learner.blocks:

        def must_continue(carry: tuple[Play, Transcript], blocks=blocks) -> jax.Array:
            switch_when = blocks.switch_when
            return more(carry) if switch_when is None else more(carry) & ~switch_when(params, carry[0].state.public)

        def one_block(world: Environment, now: Play, blocks=blocks) -> tuple[Play, BlockEvents]:
            return play_block(blocks, learner, world, rounds, roots, all_params, now, stop)

        carry = jax.lax.while_loop(must_continue, partial(step, one_block, _write_block), carry)
    return carry[1]


def with_short_blocks(learner: Learner, rounds: int) -> Learner:
    """Returns the learner with blocks of at most `rounds` rounds, where its functions accept any length."""
    blocks = (one._replace(length=min(one.length, rounds)) if one.any_length else one for one in learner.blocks)
    return learner._replace(blocks=tuple(blocks))


def _roots(key: jax.Array) -> tuple[jax.Array, Keys]:
    root, key_init, key_feedback = (jax.random.fold_in(key, word) for word in range(3))
    return key_init, root_keys(key_feedback, root)


def _blank(
    learner: Learner,
    answer: Answer,
    params: Any,
    state: State,
    users: UserData,
    shown: Callable[[History], History],
    path: str,
) -> Transcript:
    """Returns a transcript of zeros, with the shapes and dtypes of the run's plays, reports and states."""
    rounds, keys = num_rounds(users), jax.random.split(jax.random.key(0), 3)
    first = jax.tree.map(lambda x: x[0], users)

    def log_of(like: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros((rounds, *jnp.shape(leaf)), jnp.result_type(leaf)), like)

    def report(keys: jax.Array, state: State, user: UserData) -> tuple[Any, Any]:
        action = learner.act(keys[0], params, state.public, user.contexts)

        def report_on(key: jax.Array, feedback: Any) -> Any:
            return learner.privatize(key, params, state.public, user.contexts, action, feedback)

        history = History(jnp.zeros((), jnp.result_type(int)), log_of(action), log_of(state.public))
        are_seen = path != "counts" and shown(history._replace(reports=())).reports is not None
        if are_seen and learner.interface is not None:
            history = history._replace(reports=log_of(report_on(keys[2], example(learner.interface.feedback))))
        try:
            feedback = answer(user.answers, shown(history), action)
        except (AttributeError, TypeError) as error:
            if are_seen and learner.interface is None:
                raise ValueError(
                    "interface must be declared by a learner for whom answer may read reports, got None"
                ) from error
            raise
        if path != "counts":
            return action, report_on(keys[1], feedback)
        counts = learner.counts
        if counts is None or learner.interface is None:  # playing the counts raises an error later
            return action, ()
        plan = counts.plan(keys[0], params, state.public, jnp.asarray(rounds, jnp.result_type(int)))
        totals = jax.tree.map(
            lambda x, space: jnp.zeros(total_shape(answer, x, plan.counts), total_type(x, plan.counts, space)),
            feedback,
            learner.interface.feedback,
        )
        return action, counts.privatize(keys[1], params, state.public, plan, totals)

    actions, reports = map(log_of, jax.eval_shape(report, keys, state, first))
    public = log_of(state.public)
    return Transcript(actions, reports, public, public, jnp.zeros(rounds, jnp.result_type(int)))


def _write(log: Any, index: jax.Array, new: Any) -> Any:
    return jax.tree.map(lambda all_, x: all_.at[index].set(x, mode="drop"), log, new)


def _write_round(log: Transcript, round_: jax.Array, events: Events) -> Transcript:
    return log._replace(
        actions=_write(log.actions, round_, events.action), reports=_write(log.reports, round_, events.report)
    )


def _write_block(log: Transcript, round_: jax.Array, events: BlockEvents) -> Transcript:
    index = jnp.where(events.slot_rounds < events.used, round_ + events.slot_rounds, len(log.length))
    return log._replace(
        actions=_write(log.actions, index, events.actions),
        reports=_write(log.reports, index, events.report),
    )


def _write_counts(learner: Learner, log: Transcript, round_: jax.Array, events: CountEvents) -> Transcript:
    rounds = len(log.length)
    index, is_played = in_order(events.plan.counts, rounds)
    slots = jnp.where(is_played, round_ + jnp.arange(rounds, dtype=round_.dtype), rounds)
    return log._replace(
        actions=_write(log.actions, slots, actions_at(learner, index)),
        reports=_write(log.reports, round_, events.report),
    )
