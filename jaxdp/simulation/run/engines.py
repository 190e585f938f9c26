"""Engines, which play from one checkpoint to the next by rounds, blocks, counts or heard rounds."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Blocks, CountPlan, Environment, Learner, SwitchWhenFn
from jaxdp.numerics.kernels import any_lane, lanes_last_if_small
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.blocks import play_block
from jaxdp.simulation.run.heard import NEXT_HEARD
from jaxdp.simulation.run.rounds import Events, Keys, Play, interact, round_keys
from jaxdp.validation import check_choice

ENGINES = ("rounds", "blocks", "counts", "heard")
# A function of (roots, params, play, stop) that plays one or more rounds, up to round `stop`.
Advance = Callable[[Keys, Any, Play, jax.Array], Play]


class Stage(NamedTuple):
    """A way to play rounds.

    Attributes:
        advance: plays one or more rounds.
        switch_when: returns whether the next stage may take over; None in the last stage.
    """

    advance: Advance
    switch_when: SwitchWhenFn | None


class CountEvents(NamedTuple):
    """The events of the rounds that the engine "counts" played in one step."""

    plan: CountPlan
    report: Any


def choose_engine(
    learner: Learner,
    environment: Environment,
    engine: str,
    *,
    outcomes: Sequence[str] | None = None,
    hears_all: bool = False,
) -> str:
    """Returns the name of the engine to use: `engine` itself, after checks, or the choice for "auto".

    Args:
        learner: the learner that plays.
        environment: the environment that the learner plays.
        engine: one of ENGINES, or "auto". "auto" chooses "heard" if the learner and the environment support it, some
            rounds send no report, and none of the summed outcomes is in `environment.drawn`. Otherwise it chooses
            "blocks" if the learner and the environment support it, else "rounds".
        outcomes: names of the outcomes to sum; None if all are summed.
        hears_all: whether the learner gets a report from every round.

    Raises:
        ValueError: if the engine is unknown, or if the learner or the environment does not support it; if the learner's
            `blocks` is one `Blocks` instead of a tuple.
    """
    if isinstance(learner.blocks, Blocks):  # `Blocks` is a NamedTuple, so it would pass as a tuple
        raise ValueError("blocks must be a tuple of Blocks, as (blocks,), got one Blocks")
    check_choice("engine", engine, (*ENGINES, "auto"))
    missing = {
        "rounds": [],
        "blocks": [
            *([] if learner.blocks else ["the learner's blocks"]),
            *([] if environment.block else ["the environment's block"]),
            *(["the environment's contexts"] if environment.context and not environment.contexts else []),
        ],
        "counts": [
            *([] if learner.counts else ["the learner's counts"]),
            *([] if environment.feedback_totals else ["the environment's feedback_totals"]),
            *(["a problem without contexts"] if environment.context else []),
        ],
        "heard": [
            *([] if learner.reports else ["a learner by per_person"]),
            *([] if learner.best_action else ["the rest that plays one action, per_person(rest='best')"]),
            *([] if environment.unheard else ["the environment's unheard, which delays and losses of experts lack"]),
        ],
    }
    if engine == "auto":
        drawn = set(environment.drawn) if outcomes is None else set(environment.drawn) & set(outcomes)
        if not (missing["heard"] or drawn or hears_all):
            return "heard"
        return "rounds" if missing["blocks"] else "blocks"
    if missing[engine]:
        raise ValueError(
            f"engine must be one that both sides have, got {engine!r} without {', '.join(missing[engine])}"
        )
    return engine


def play_round(
    learner: Learner, environment: Environment, horizon: int, roots: Keys, params: Any, play: Play
) -> tuple[Play, Events]:
    """Plays one round, and returns its events."""
    keys = round_keys(roots, play.round, horizon)
    state, world, events = interact(learner, environment, keys, params, play.state, play.world)
    after = Play(
        round=play.round + 1,
        state=state,
        world=world,
        outcomes=outcomes.add(play.outcomes, events.outcome),
        action=None if play.action is None else events.action,
        stopped=None if learner.done is None else learner.done(params["learner"], state.public),
    )
    return after, events


def play_until(stages: Sequence[Stage], roots: Keys, params: Any, play: Play, stop: jax.Array) -> Play:
    """Plays stage after stage, up to round `stop` or until the learner stops."""

    def play_stage(stage: Stage, play: Play) -> Play:
        def advance(play: Play) -> Play:
            return stage.advance(roots, params, play, stop)

        switch_when = stage.switch_when

        def continues_in_stage(play: Play) -> jax.Array:
            return (
                play.is_before(stop)
                if switch_when is None
                else play.is_before(stop) & ~switch_when(params["learner"], play.state.public)
            )

        def advance_running_lanes(play: Play) -> Play:
            continues = play.is_before(stop)

            def select(after: jax.Array, before: jax.Array) -> jax.Array:
                selected = jnp.where(continues, after, before)
                is_plain = switch_when is None and not jnp.issubdtype(selected.dtype, jax.dtypes.extended)
                # Without lanes_last_if_small, XLA's loop would not store neighbouring lanes next to each other.
                return lanes_last_if_small(selected) if is_plain else selected

            return jax.tree.map(select, advance(play), play)

        def any_lane_continues(play: Play) -> jax.Array:
            return any_lane(continues_in_stage(play))

        return jax.lax.while_loop(any_lane_continues, advance_running_lanes, play)

    for stage in stages:
        play = play_stage(stage, play)
    return play


def by_rounds(learner: Learner, environment: Environment, horizon: int) -> list[Stage]:
    """Returns the one stage that plays round by round."""

    def advance(roots: Keys, params: Any, play: Play, stop: jax.Array) -> Play:
        del stop
        return play_round(learner, environment, horizon, roots, params, play)[0]

    return [Stage(advance, None)]


def by_blocks(learner: Learner, environment: Environment, horizon: int) -> list[Stage]:
    """Returns stages that play blocks, with the keys and the results of single rounds."""

    def stage(blocks: Blocks) -> Stage:
        def advance(roots: Keys, params: Any, play: Play, stop: jax.Array) -> Play:
            return play_block(blocks, learner, environment, horizon, roots, params, play, stop)[0]

        return Stage(advance, blocks.switch_when)

    return [stage(blocks) for blocks in learner.blocks]


def play_counts(
    learner: Learner, environment: Environment, horizon: int, roots: Keys, params: Any, play: Play, stop: jax.Array
) -> tuple[Play, CountEvents]:
    """Plays the rounds that the learner plans, up to round `stop`, by drawing totals. Returns (play, events)."""
    counts, feedback_totals = learner.counts, environment.feedback_totals
    assert counts is not None
    assert feedback_totals is not None
    learner_params, env_params, public = params["learner"], params["environment"], play.state.public
    keys = round_keys(roots, play.round, horizon)
    plan = counts.plan(keys.act, learner_params, public, stop - play.round)
    world, totals, outcome = feedback_totals(keys.feedback, env_params, play.world, plan.counts)
    report = counts.privatize(keys.user, learner_params, public, plan, totals)
    state = counts.update_counts(keys.update, learner_params, play.state, plan, report)
    after = Play(
        round=play.round + plan.counts.sum(dtype=play.round.dtype),
        state=state,
        world=world,
        outcomes=outcomes.add(play.outcomes, outcome),
        action=None,
        stopped=None if learner.done is None else learner.done(learner_params, state.public),
    )
    return after, CountEvents(plan, report)


def by_counts(learner: Learner, environment: Environment, horizon: int) -> list[Stage]:
    """Returns the one stage that draws totals of planned rounds, with the same distribution as single rounds."""

    def advance(roots: Keys, params: Any, play: Play, stop: jax.Array) -> Play:
        return play_counts(learner, environment, horizon, roots, params, play, stop)[0]

    return [Stage(advance, None)]


def play_heard(
    learner: Learner, environment: Environment, horizon: int, roots: Keys, params: Any, play: Play, stop: jax.Array
) -> Play:
    """Plays the next round if it is heard, and then, in one step, all rounds before the next heard round or `stop`."""
    best_action, unheard = learner.best_action, environment.unheard
    assert best_action is not None
    assert unheard is not None

    def next_heard(round_: jax.Array) -> jax.Array:
        return jnp.asarray(params[NEXT_HEARD])[round_].astype(round_.dtype)

    play = jax.lax.cond(
        next_heard(play.round) == play.round,
        lambda: play_round(learner, environment, horizon, roots, params, play)[0],
        lambda: play,
    )
    rounds = jnp.minimum(next_heard(play.round), stop) - play.round
    if play.stopped is not None:
        rounds = jnp.where(play.stopped, 0, rounds)
    action = best_action(params["learner"], play.state.public)
    world, totals = unheard(params["environment"], play.world, action, rounds)
    return play._replace(
        round=play.round + rounds,
        world=world,
        outcomes=outcomes.add(play.outcomes, totals),
        action=None
        if play.action is None
        else jax.tree.map(lambda best, latest: jnp.where(rounds > 0, best, latest), action, play.action),
    )


def by_heard(learner: Learner, environment: Environment, horizon: int) -> list[Stage]:
    """Returns the one stage that plays heard rounds, with the keys and the actions of single rounds."""

    def advance(roots: Keys, params: Any, play: Play, stop: jax.Array) -> Play:
        return play_heard(learner, environment, horizon, roots, params, play, stop)

    return [Stage(advance, None)]


MAKERS: dict[str, Callable[[Learner, Environment, int], list[Stage]]] = {
    "rounds": by_rounds,
    "blocks": by_blocks,
    "counts": by_counts,
    "heard": by_heard,
}
