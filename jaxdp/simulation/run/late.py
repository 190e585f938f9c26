"""Adapts learners to delayed feedback.

An adapted learner repeats an action until a report about this action has arrived. If feedback contains the losses of
all experts, every report is about every action, and the learner repeats no action.
"""

import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee, Learner, Space, State, Visit, Visits, default_float
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import tape
from jaxdp.persons import PersonReport

LATER = 0x6C617465  # index of the derived key for further updates in a round; noise uses small indices
FIRST_VISIT = Visit(np.int32(0), np.int32(0))  # every learner by `per_person` uses the report of a first visit


@pytree_dataclass
class Params:
    """Parameters of a learner with delayed feedback.

    Attributes:
        learner: the learner's parameters.
        order: [number of reports] int32, the rounds that send a report, in the order in which reports arrive.
        arrived: [horizon + 1] int32, number of reports that arrived before each round.
    """

    learner: Any
    order: np.ndarray
    arrived: np.ndarray


class Public(NamedTuple):
    """Public state: the learner's public state, and counts of reports, which follow from delays and actions.

    Reports are counted by slot. A slot is an action; if feedback contains the losses of all experts, there is one slot.

    Attributes:
        learner: the learner's public state.
        round: [] integer, number of rounds played.
        action: the action about which the learner waits for a report; meaningless if `waits` is false.
        waits: [] bool, whether the learner waits for a report about `action`.
        used: [slots] int32, number of reports in each slot that the learner has used.
        arrived: [slots] int32, number of reports in each slot that have arrived.
        slots: [size] int32, the slot of each of the last `size` rounds, by round modulo `size`; `size` is the maximum
            delay plus 1.
    """

    learner: Any
    round: jax.Array
    action: Any
    waits: jax.Array
    used: jax.Array
    arrived: jax.Array
    slots: jax.Array


class Private(NamedTuple):
    """Private state of the curator: the learner's private state, recent reports, and queues of arrived reports.

    Attributes:
        learner: the learner's private state.
        sent: [size, ...] reports of the last `size` rounds, by round modulo `size`.
        queues: [slots, size, ...] the arrived reports of each slot, by their number modulo `size`.
    """

    learner: Any
    sent: Any
    queues: Any


class LateReport(NamedTuple):
    """A round's action, and the learner's report, which is all zeros if the round sends no report."""

    action: Any
    report: Any


class _Hearing(NamedTuple):
    """The values that change while the learner uses the reports that arrived in one round.

    Attributes:
        state: the learner's state.
        used: number of reports used so far, for each slot.
        action: the action about which the next report is used.
        waits: whether the learner waits for a report about this action; otherwise `act` chooses the next action.
        number: number of reports used in this round.
    """

    state: State
    used: jax.Array
    action: Any
    waits: jax.Array
    number: jax.Array


def hear_late(learner: Learner, delays: np.ndarray, visits: Visits | None = None) -> Learner:
    """Returns the learner, adapted to delayed feedback.

    A learner made by `per_person` gets no report from some rounds. If feedback is about one action, such a round does
    not change the action about which the learner waits, unless a report of an earlier round arrives.

    Args:
        learner: a learner for arms, pairs of arms or experts, without contexts. It may be the result of `per_person`.
        delays: [horizon] integers >= 0, the delay of each round.
        visits: the schedule, of `horizon` rounds or more, for a learner by `per_person`.

    Raises:
        ValueError: if the learner has no interface, has unsupported contexts or actions, or sums the rewards of a
            person. The result's `params` and `guarantee` raise this error for claims that are neither local nor
            central.
    """
    space, feedback = _spaces(learner)
    reports = learner.reports
    is_sent = np.ones(len(delays), bool)
    if reports is not None:
        assert visits is not None
        is_sent = visits.nth[: len(delays)] < reports
    same_for_all = feedback.shape != ()  # losses of all experts
    num_slots = 1 if same_for_all else (int(space.high) + 1) ** max(np.prod(space.shape, dtype=int), 1)
    size, (order, arrived_before) = int(delays.max()) + 1, _arrivals(delays, is_sent)
    asks_in_all_rounds = reports is None or same_for_all

    def slot_of(action: jax.Array) -> jax.Array:
        if same_for_all:
            return jnp.int32(0)
        slot = jnp.int32(0)
        for part in jnp.ravel(action):
            slot = slot * (int(space.high) + 1) + part.astype(jnp.int32)
        return slot

    def visit_of(context: Visit | None) -> Visit | None:
        return None if reports is None else context

    def without_visit(report: Any) -> Any:
        return report if reports is None else report.report

    def with_first_visit(report: Any) -> Any:
        """Returns a sent report as the report of a first visit, because the learner uses every such report."""
        return report if reports is None else PersonReport(FIRST_VISIT, report)

    def check_claim(values: dict[str, Any]) -> Guarantee:
        claim = learner.guarantee(**values)
        if claim.trust_model not in ("local", "central"):
            raise ValueError(f"learner must claim local or central privacy for late feedback, got {claim}")
        return claim

    def params(**values: Any) -> Params:
        check_claim(values)
        return Params(learner=learner.params(**values), order=order, arrived=arrived_before)

    def guarantee(**values: Any) -> Guarantee:
        return check_claim(values)

    for function in (params, guarantee):
        function.__signature__ = inspect.signature(learner.params)  # pyright: ignore[reportFunctionMemberAccess]

    def init(key, params: Params) -> State:
        learner_state = learner.init(key, params.learner)
        action = jnp.zeros(space.shape, jnp.int32)
        answer = jnp.zeros(feedback.shape, jnp.int32 if feedback.kind == "integers" else default_float())
        with tape.recording():  # otherwise an auditor's open tape would record this trace
            report = jax.eval_shape(
                learner.privatize, key, params.learner, learner_state.public, visit_of(FIRST_VISIT), action, answer
            )
        counts = jnp.zeros(num_slots, jnp.int32)
        public = Public(
            learner_state.public,
            jnp.zeros((), jnp.int32),
            action,
            jnp.asarray(False),
            counts,
            counts,
            jnp.zeros(size, jnp.int32),
        )
        sent = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape), leaf.dtype), without_visit(report))
        queues = jax.tree.map(lambda leaf: jnp.zeros((num_slots, *leaf.shape), leaf.dtype), sent)
        return State(Private(learner_state.private, sent, queues), public)

    def act(key, params: Params, public: Public, context) -> Any:
        action = learner.act(key, params.learner, public.learner, visit_of(context))
        if same_for_all:
            return action
        repeats = public.waits
        if reports is not None and learner.best_action is not None:  # rounds without a report play the best action
            repeats &= context.nth < reports
        return jnp.where(repeats, public.action.astype(action.dtype), action)

    def privatize(key, params: Params, public: Public, context, action, feedback) -> LateReport:
        report = learner.privatize(key, params.learner, public.learner, visit_of(context), action, feedback)
        return LateReport(action, report)

    def update(key, params: Params, state: State, report: LateReport) -> State:
        private, public = state
        index = public.round % size
        sent = jax.tree.map(
            lambda buffer, value: buffer.at[index].set(value.astype(buffer.dtype)),
            private.sent,
            without_visit(report.report),
        )
        slots = public.slots.at[index].set(slot_of(report.action))

        def arrive(number: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            queues, arrived = carry
            source = jnp.asarray(params.order)[number] % size
            slot = slots[source]
            target = slot, arrived[slot] % size
            queues = jax.tree.map(lambda buffer, values: buffer.at[target].set(values[source]), queues, sent)
            return queues, arrived.at[slot].add(1)

        first, last = (jnp.asarray(params.arrived)[public.round + step] for step in (0, 1))
        queues, arrived = jax.lax.fori_loop(first, last, arrive, (private.queues, public.arrived))
        later_key = jax.random.fold_in(key, LATER)

        def is_answered(hearing: _Hearing) -> jax.Array:
            slot = slot_of(hearing.action)
            ready = hearing.waits & (hearing.used[slot] < arrived[slot])
            return ready if learner.done is None else ready & ~learner.done(params.learner, hearing.state.public)

        def hear(hearing: _Hearing) -> _Hearing:
            slot, number = slot_of(hearing.action), hearing.number
            index = slot, hearing.used[slot] % size
            update_key = jnp.where(number == 0, key, jax.random.fold_in(later_key, 2 * number))
            late_report = with_first_visit(jax.tree.map(lambda buffer: buffer[index], queues))
            learner_state = learner.update(update_key, params.learner, hearing.state, late_report)
            used = hearing.used.at[slot].add(1)
            waits = jnp.any(used < arrived)  # otherwise `act` chooses the next action, with the key of its round
            action = hearing.action
            if not same_for_all:
                act_key = jax.random.fold_in(later_key, 2 * number + 1)
                next_action = learner.act(act_key, params.learner, learner_state.public, visit_of(FIRST_VISIT))
                action = next_action.astype(action.dtype)
            return _Hearing(learner_state, used, action, waits, number + 1)

        action, waits = report.action, jnp.asarray(True)
        if not asks_in_all_rounds:
            is_heard = report.report.visit.nth < reports
            waits = is_heard | public.waits
            action = jnp.where(is_heard, action, public.action.astype(action.dtype))
        hearing = _Hearing(State(private.learner, public.learner), public.used, action, waits, jnp.zeros((), jnp.int32))
        hearing = jax.lax.while_loop(is_answered, hear, hearing)
        state = hearing.state
        return State(
            Private(state.private, sent, queues),
            Public(state.public, public.round + 1, hearing.action, hearing.waits, hearing.used, arrived, slots),
        )

    def of_inner(function: Any) -> Any:
        """Adapts a learner's function of (params, public) to `Params` and `Public`; None stays None."""
        return function and (lambda params, public: function(params.learner, public.learner))

    clip = learner.clip
    return learner._replace(
        params=params,
        guarantee=guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        done=of_inner(learner.done),
        recommend=of_inner(learner.recommend),
        clip=clip and (lambda params: clip(params.learner)),
        best_action=of_inner(learner.best_action),
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


def _arrivals(delays: np.ndarray, is_sent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rounds that send reports, in the order in which reports arrive, and counts of arrived reports.

    `delays` and `is_sent` are [horizon] arrays. Entry t of the counts is the number of reports that arrived before
    round t, for t up to and including the horizon.
    """
    due, sent = np.arange(len(delays)) + delays, np.flatnonzero(is_sent)
    order = sent[np.argsort(due[sent], kind="stable")]
    arrived = np.searchsorted(due[order], np.arange(len(delays) + 1), side="left")
    return order.astype(np.int32), arrived.astype(np.int32)
