"""Plays learners with delayed feedback, so that lanes need not use their reports in the same rounds.

A learner may use many reports in one round, and none in the next rounds. If all lanes played a round together, each
round would take as long as in the lane that uses the most reports. Here a lane plays at most one round and uses at most
one report in a step, and lanes may be in different rounds.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Environment, State
from jaxdp.numerics.kernels import any_lane, lanes_last_if_small
from jaxdp.numerics.private_jax import custom_vmap
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.late import Late
from jaxdp.simulation.run.late_state import count_at
from jaxdp.simulation.run.rounds import Keys, Play, round_keys


class _Steps(NamedTuple):
    """The state of one lane between two steps.

    Attributes:
        play: the state after the latest round and the reports that are used so far. The public state's action is not
            yet chosen if `chooses` is true.
        chooses: [] bool, whether the learner chooses its next action before the next round, because it has not used all
            reports that arrived.
        number: [] int32, number of reports used in the latest round.
    """

    play: Play
    chooses: jax.Array
    number: jax.Array


def play_late(
    late: Late, environment: Environment, horizon: int, roots: Keys, params: Any, play: Play, stop: jax.Array
) -> Play:
    """Plays the rounds before round `stop`, counted from 0, or until the learner stops.

    Keys and results are the same as if rounds were played one by one with `Late.update`. The learner must get a report
    from every round, so it must not be the result of `per_person`.
    """
    learner, late_params = late.learner, params["learner"]
    learner_params, env_params = late_params.learner, params["environment"]

    def has_to_arrive(play: Play) -> jax.Array:
        """Returns whether a report of the rounds so far arrived and is not yet in its queue."""
        return play.state.public.all_queued < jnp.asarray(late_params.arrived)[play.round]

    def is_done(public: Any) -> jax.Array:
        return jnp.asarray(False) if learner.done is None else learner.done(learner_params, public)

    def is_active(steps: _Steps) -> jax.Array:
        active = steps.chooses | steps.play.is_before(stop)
        return active | has_to_arrive(steps.play) if late.overtakes else active

    def step(steps: _Steps) -> _Steps:
        play, chooses = steps.play, steps.chooses
        state, public = play.state, play.state.public
        keys, latest_key = round_keys(roots, play.round, horizon), round_keys(roots, play.round - 1, horizon).update
        context = environment.context(keys.context, env_params, play.world) if environment.context else None

        # The next action: the learner chooses it, or repeats the action about which it waits for a report.
        waits, act_key = public.waits | chooses, late.act_key(latest_key, steps.number - 1)
        key = jnp.where(chooses, act_key, keys.act)
        chosen = learner.act(key, learner_params, public.learner, None)
        target = jnp.where(public.waits & ~chooses, public.action.astype(chosen.dtype), chosen)

        # The lane plays the next round if this round is before `stop`, all arrived reports are in their queues, and the
        # learner does not have to use one of them first.
        arrived = jnp.asarray(late_params.arrived)
        uses_more = chooses & late.is_ready(state, public.used, late.slot_of(target), arrived[play.round])
        uses_more &= ~is_done(public.learner)
        was_late = has_to_arrive(play) if late.overtakes else jnp.asarray(False)
        plays = play.is_before(stop) & ~uses_more & ~was_late
        world, feedback, outcome = environment.feedback(keys.feedback, env_params, play.world, target)
        report = late.privatize(keys.user, late_params, public, context, target, feedback)
        waits |= plays
        state, round_ = late.send(late_params, state, report, plays), play.round + plays.astype(play.round.dtype)
        number = jnp.where(plays, 0, steps.number)

        # One report arrives, if reports overtake others. The learner uses one report once all have arrived.
        listens = plays | uses_more | was_late
        if late.overtakes:
            state = late.arrive(late_params, state, state.public.all_queued < arrived[round_])
            listens &= state.public.all_queued >= arrived[round_]
        slot, used = late.slot_of(target), public.used
        uses = listens & waits & late.is_ready(state, used, slot, arrived[round_]) & ~is_done(public.learner)
        update_key = late.update_key(jnp.where(plays, keys.update, latest_key), number)
        learner_state = State(state.private.learner, public.learner)

        def use(hearing: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            before, uses = hearing
            one = late.next_report(state, used, slot)
            after = learner.update(update_key, learner_params, before, one)
            return jax.tree.map(partial(_if_lane, uses), after, before), jnp.zeros_like(uses)

        # XLA does not merge operations of this loop with others, so results have the bits of `Late.update`.
        learner_state, _ = jax.lax.while_loop(lambda hearing: any_lane(hearing[1]), use, (learner_state, uses))
        all_used = public.all_used + jnp.int32(uses)
        has_more = all_used < arrived[round_]

        def select(flag: jax.Array, after: Any, before: Any) -> Any:
            return jax.tree.map(partial(jnp.where, flag), after, before)

        learner_state, world, sums = jax.tree.map(
            _keep_layout,
            (
                learner_state,
                select(plays, world, play.world),
                select(plays, outcomes.add(play.outcomes, dict(outcome)), play.outcomes),
            ),
        )
        private, public = state
        state = State(
            private._replace(learner=learner_state.private),
            public._replace(
                learner=learner_state.public,
                action=jnp.where(plays | chooses, target.astype(public.action.dtype), public.action),
                waits=jnp.where(uses, has_more, waits),
                used=count_at(used, slot, uses),
                all_used=all_used,
            ),
        )
        return _Steps(
            Play(
                round=round_,
                state=state,
                world=world,
                outcomes=sums,
                action=None if play.action is None else select(plays, target, play.action),
                stopped=None if play.stopped is None else play.stopped | (listens & is_done(learner_state.public)),
            ),
            uses & has_more,
            number + jnp.int32(uses),
        )

    steps = _Steps(play, jnp.asarray(False), jnp.int32(0))
    return jax.lax.while_loop(lambda steps: any_lane(is_active(steps)), step, steps).play


def _keep_layout(leaf: jax.Array) -> jax.Array:
    # Without lanes_last_if_small, XLA's loop would not store neighbouring lanes next to each other.
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.extended) else lanes_last_if_small(leaf)


@custom_vmap
def _if_lane(flag: jax.Array, after: jax.Array, before: jax.Array) -> jax.Array:
    """Returns `after` if the flag is true, else `before`, in a loop that runs while the flag of any lane is true."""
    del flag, before
    return after  # the flag is true, because there is one lane


@_if_lane.def_vmap
def _(axis_size: int, in_batched: list[bool], flag: jax.Array, after: jax.Array, before: jax.Array) -> Any:
    def widen(leaf: jax.Array, batched: bool) -> jax.Array:
        return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))

    leaves = map(widen, (flag, after, before), in_batched)
    return jax.vmap(lambda flag, after, before: _keep_layout(jnp.where(flag, after, before)))(*leaves), True
