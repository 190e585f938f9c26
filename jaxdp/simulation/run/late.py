"""Adapts learners to delayed feedback.

An adapted learner repeats an action until a report about this action has arrived. If feedback contains the losses of
all experts, every report is about every action, and the learner repeats no action.
"""

import inspect
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee, Learner, Space, State, Visit, Visits, default_float
from jaxdp.mechanisms import tape
from jaxdp.persons import PersonReport
from jaxdp.simulation.run.late_state import (
    LateReport,
    Params,
    Private,
    Public,
    arrivals,
    count_at,
    entry_at,
    index_if,
    write,
)

LATER = 0x6C617465  # index of the derived key for further updates in a round; noise uses small indices
FIRST_VISIT = Visit(np.int32(0), np.int32(0))  # every learner by `per_person` uses the report of a first visit


class _Hearing(NamedTuple):
    """The values that change while the learner uses the reports that arrived in one round.

    Attributes:
        state: the learner's state.
        used: number of reports used so far, for each slot.
        all_used: the sum of `used`.
        action: the action about which the next report is used.
        waits: whether the learner waits for a report about this action; otherwise `act` chooses the next action.
        number: number of reports used in this round.
    """

    state: State
    used: jax.Array
    all_used: jax.Array
    action: Any
    waits: jax.Array
    number: jax.Array


def hear_late(learner: Learner, delays: np.ndarray, visits: Visits | None = None) -> "Late":
    """Returns the learner with delayed feedback.

    A learner made by `per_person` gets no report from some rounds. If feedback is about one action, such a round does
    not change the action about which the learner waits. Only a report that arrives can change this action.

    Args:
        learner: a learner for arms, pairs of arms or experts, without contexts. It may be the result of `per_person`.
        delays: [horizon] integers >= 0, the delay of each round.
        visits: the schedule, of `horizon` rounds or more, for a learner by `per_person`.

    Raises:
        ValueError: if the learner has no interface, has unsupported contexts, actions or feedback, or sums the rewards
            of a person. `params` and `guarantee` of the adapted learner raise this error for claims that are neither
            local nor central.
    """
    space, feedback = _spaces(learner)
    sends = np.ones(len(delays), bool)
    if learner.reports is not None:
        assert visits is not None
        sends = visits.nth[: len(delays)] < learner.reports
    order, arrived = arrivals(delays, sends)
    return Late(learner, space, feedback, int(delays.max()) + 1, order, arrived, sends)


@dataclass(frozen=True, eq=False)
class Late:
    """A learner with delayed feedback.

    Attributes:
        learner: the learner, without delays.
        space: the space of actions.
        feedback: the space of feedback.
        size: the maximum delay plus 1.
        order: as in `Params`.
        arrived: as in `Params`.
        sends: as in `Params`.
    """

    learner: Learner
    space: Space
    feedback: Space
    size: int
    order: np.ndarray
    arrived: np.ndarray
    sends: np.ndarray

    @property
    def same_for_all(self) -> bool:
        """Whether feedback is about all actions, as losses of all experts are."""
        return self.feedback.shape != ()

    @property
    def overtakes(self) -> bool:
        """Whether a report arrives before the report of an earlier round."""
        return bool((np.diff(self.order) < 0).any())

    @property
    def num_slots(self) -> int:
        """Number of queues."""
        num_parts = max(np.prod(self.space.shape, dtype=int), 1)
        return 1 if self.same_for_all else (int(self.space.high) + 1) ** num_parts

    def slot_of(self, action: jax.Array) -> jax.Array:
        """Returns the slot of an action."""
        slot = jnp.int32(0)
        if not self.same_for_all:
            for part in jnp.ravel(action):
                slot = slot * (int(self.space.high) + 1) + part.astype(jnp.int32)
        return slot

    def visit_of(self, context: Visit | None) -> Visit | None:
        """Returns the context for the learner's functions: the visit for a learner by `per_person`, otherwise None."""
        return None if self.learner.reports is None else context

    def with_first_visit(self, report: Any) -> Any:
        """Returns a sent report as the report of a first visit, because the learner uses every such report."""
        return report if self.learner.reports is None else PersonReport(FIRST_VISIT, report)

    def without_visit(self, report: Any) -> Any:
        """Returns the part of a report that waits in a queue."""
        return report if self.learner.reports is None else report.report

    def check_claim(self, values: dict[str, Any]) -> Guarantee:
        """Returns the learner's claim, and rejects claims that are neither local nor central."""
        claim = self.learner.guarantee(**values)
        if claim.trust_model not in ("local", "central"):
            raise ValueError(f"learner must claim local or central privacy for late feedback, got {claim}")
        return claim

    def init(self, key, params: Params) -> State:
        """Returns the state before the first round."""
        learner_state = self.learner.init(key, params.learner)
        action = jnp.zeros(self.space.shape, jnp.int32)
        answer = jnp.zeros(self.feedback.shape, jnp.int32 if self.feedback.kind == "integers" else default_float())
        with tape.recording():  # otherwise an auditor's open tape would record this trace
            report = jax.eval_shape(
                self.learner.privatize,
                key,
                params.learner,
                learner_state.public,
                self.visit_of(FIRST_VISIT),
                action,
                answer,
            )
        zero, counts = jnp.int32(0), jnp.zeros(self.num_slots, jnp.int32)

        def buffers(*shape: int) -> Any:
            return jax.tree.map(lambda leaf: jnp.zeros((*shape, *leaf.shape), leaf.dtype), self.without_visit(report))

        private = Private(
            learner=learner_state.private,
            queues=buffers(self.num_slots, self.size),
            sent=buffers(self.size) if self.overtakes else (),
        )
        public = Public(
            learner=learner_state.public,
            round=jnp.zeros((), jnp.int32),
            action=action,
            waits=jnp.asarray(False),
            used=counts,
            queued=counts,
            all_used=zero,
            all_queued=zero,
            numbers=jnp.zeros((self.num_slots, self.size), jnp.int32),
            slots=jnp.zeros(self.size, jnp.int32) if self.overtakes else (),
        )
        return State(private, public)

    def act(self, key, params: Params, public: Public, context) -> Any:
        """Chooses an action, or repeats the action about which the learner waits for a report."""
        action = self.learner.act(key, params.learner, public.learner, self.visit_of(context))
        if self.same_for_all:
            return action
        return jnp.where(self.repeats(public.waits, context), public.action.astype(action.dtype), action)

    def repeats(self, waits: jax.Array, context: Any) -> jax.Array:
        """Returns whether a round repeats the action; a round without a report plays the best action if it is known."""
        reports = self.learner.reports
        return waits if reports is None or self.learner.best_action is None else waits & (context.nth < reports)

    def privatize(self, key, params: Params, public: Public, context, action, feedback) -> LateReport:
        """Returns the action and the learner's report."""
        visit = self.visit_of(context)
        report = self.learner.privatize(key, params.learner, public.learner, visit, action, feedback)
        return LateReport(action, report)

    def send(self, params: Params, state: State, report: LateReport, is_played: Any = True) -> State:
        """Stores the report of round `public.round`, and counts the round, if `is_played`."""
        private, public = state
        values, slot = self.without_visit(report.report), self.slot_of(report.action)
        if self.overtakes:
            index = index_if(is_played, public.round % self.size, self.size)
            state = State(
                private._replace(sent=write(private.sent, index, values)),
                public._replace(slots=write(public.slots, index, slot)),
            )
        else:
            is_sent = is_played
            if self.learner.reports is not None:
                is_sent &= jnp.asarray(params.sends)[public.round]
            state = self._queue(state, slot, values, is_sent)
        return state._replace(public=state.public._replace(round=public.round + jnp.int32(is_played)))

    def arrive(self, params: Params, state: State, is_arriving: Any = True) -> State:
        """Moves the next report that arrives to its queue, if `is_arriving`. Used if reports overtake others."""
        private, public = state
        index = jnp.asarray(params.order)[public.all_queued] % self.size
        values = jax.tree.map(lambda buffer: buffer[index], private.sent)
        return self._queue(state, public.slots[index], values, is_arriving)

    def _queue(self, state: State, slot: jax.Array, values: Any, is_queued: Any) -> State:
        private, public = state
        index = slot, index_if(is_queued, entry_at(public.queued, slot) % self.size, self.size)
        return State(
            private._replace(queues=write(private.queues, index, values)),
            public._replace(
                queued=count_at(public.queued, slot, is_queued),
                all_queued=public.all_queued + jnp.int32(is_queued),
                numbers=write(public.numbers, index, public.all_queued),
            ),
        )

    def is_ready(self, state: State, used: jax.Array, slot: jax.Array, arrived: jax.Array) -> jax.Array:
        """Returns whether a slot has an unused report among the first `arrived` reports."""
        num_used = entry_at(used, slot)
        next_number = state.public.numbers[slot, num_used % self.size]
        return (num_used < entry_at(state.public.queued, slot)) & (next_number < arrived)

    def next_report(self, state: State, used: jax.Array, slot: jax.Array) -> Any:
        """Returns the first unused report of a slot."""
        index = slot, entry_at(used, slot) % self.size
        return self.with_first_visit(jax.tree.map(lambda buffer: buffer[index], state.private.queues))

    def update_key(self, key, number: jax.Array) -> jax.Array:
        """Returns the key with which the learner uses a round's `number`-th report, counted from 0."""
        return jnp.where(number == 0, key, jax.random.fold_in(jax.random.fold_in(key, LATER), 2 * number))

    def act_key(self, key, number: jax.Array) -> jax.Array:
        """Returns the key with which the learner chooses an action after a round's `number`-th report."""
        return jax.random.fold_in(jax.random.fold_in(key, LATER), 2 * number + 1)

    def waits_in(self, params: Params, waits: jax.Array, round_: jax.Array) -> jax.Array:
        """Returns whether the learner waits for a report after round `round_`; `waits` is whether it did before."""
        if self.learner.reports is None or self.same_for_all:
            return jnp.asarray(True)
        return jnp.asarray(params.sends)[round_] | waits

    def update(self, key, params: Params, state: State, report: LateReport) -> State:
        """Stores a round's report, and uses arrived reports one by one while the learner's action has one in its slot.

        If feedback is about one action, `act` chooses the next action after each used report: at once if other unused
        reports have arrived, and otherwise in the next round.
        """
        learner, before = self.learner, state.public
        state = self.send(params, state, report)
        arrived = jnp.asarray(params.arrived)[before.round + 1]
        if self.overtakes:
            state = jax.lax.fori_loop(before.all_queued, arrived, lambda _, state: self.arrive(params, state), state)

        def is_answered(hearing: _Hearing) -> jax.Array:
            ready = hearing.waits & self.is_ready(state, hearing.used, self.slot_of(hearing.action), arrived)
            return ready if learner.done is None else ready & ~learner.done(params.learner, hearing.state.public)

        def hear(hearing: _Hearing) -> _Hearing:
            slot, number = self.slot_of(hearing.action), hearing.number
            learner_state = learner.update(
                self.update_key(key, number), params.learner, hearing.state, self.next_report(state, hearing.used, slot)
            )
            used, all_used = count_at(hearing.used, slot, True), hearing.all_used + 1
            waits = all_used < arrived  # otherwise `act` chooses the next action, with the key of its round
            action = hearing.action
            if not self.same_for_all:
                visit = self.visit_of(FIRST_VISIT)
                chosen = learner.act(self.act_key(key, number), params.learner, learner_state.public, visit)
                action = jnp.where(waits, chosen.astype(action.dtype), action)
            return _Hearing(learner_state, used, all_used, action, waits, number + 1)

        waits, action = self.waits_in(params, before.waits, before.round), report.action.astype(before.action.dtype)
        if learner.reports is not None and not self.same_for_all:
            action = jnp.where(jnp.asarray(params.sends)[before.round], action, before.action)
        private, public = state
        hearing = jax.lax.while_loop(
            is_answered,
            hear,
            _Hearing(State(private.learner, public.learner), public.used, public.all_used, action, waits, jnp.int32(0)),
        )
        return State(
            private._replace(learner=hearing.state.private),
            public._replace(
                learner=hearing.state.public,
                action=hearing.action,
                waits=hearing.waits,
                used=hearing.used,
                all_used=hearing.all_used,
            ),
        )

    def adapt(self) -> Learner:
        """Returns the learner that plays round by round with delayed feedback."""

        def params(**values: Any) -> Params:
            self.check_claim(values)
            return Params(
                learner=self.learner.params(**values), order=self.order, arrived=self.arrived, sends=self.sends
            )

        def guarantee(**values: Any) -> Guarantee:
            return self.check_claim(values)

        for function in (params, guarantee):
            signature = inspect.signature(self.learner.params)
            function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]

        def of_inner(function: Any) -> Any:
            """Adapts a learner's function of (params, public) to `Params` and `Public`; None stays None."""
            return function and (lambda params, public: function(params.learner, public.learner))

        clip = self.learner.clip
        return self.learner._replace(
            params=params,
            guarantee=guarantee,
            init=self.init,
            act=self.act,
            privatize=self.privatize,
            update=self.update,
            done=of_inner(self.learner.done),
            recommend=of_inner(self.learner.recommend),
            clip=clip and (lambda params: clip(params.learner)),
            best_action=of_inner(self.learner.best_action),
            blocks=(),
            counts=None,
        )


def _spaces(learner: Learner) -> tuple[Space, Space]:
    interface = learner.interface
    if learner.visits is not None:
        raise ValueError(
            "learner must not sum a person's rewards until a fixed round for late feedback, as late rewards miss their "
            f"sum: use per_person, got {learner!r}"
        )
    if interface is None or (interface.context is not None and learner.reports is None):
        raise ValueError(f"learner must have an interface and read no contexts for late feedback, got {learner!r}")
    action, feedback = interface.action, interface.feedback
    if not (isinstance(action, Space) and action.kind == "integers" and isinstance(feedback, Space)):
        raise ValueError(f"learner must play arms, pairs of arms or experts for late feedback, got {learner!r}")
    return action, feedback
