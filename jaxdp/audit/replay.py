"""Replays a transcript for neighbouring users, and records the values that get noise and any change of the view.

The users of the original run are called the base; each neighbour replaces the user of one round, or a person in all of
their rounds. A tape records each neighbour's value, but the mechanism gets the base's value. So all releases are equal,
unless data reach them in another way.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import Change, change
from jaxdp.audit.adversary import UserData
from jaxdp.audit.checks import differ
from jaxdp.audit.decided import MOST_DECISIONS, Decisions, Undecided, with_decisions
from jaxdp.audit.quick_programs import quick_options
from jaxdp.audit.seen import is_seen, must_add_stop
from jaxdp.audit.steps import Scene, Step, at, choose, differing_plays, is_known, no_tape, react, slots_of, step_keys
from jaxdp.core import State, Visit
from jaxdp.mechanisms import tape

LANE = "jaxdp_lane"
Use = Callable[[jax.Array], jax.Array]
Slots = tuple[tuple[int, int], ...]  # as `slots_of` returns them
traced_apart = jax.make_user_context(None)  # called with a name: JAX reuses a cached trace only under the same name
_traces = [object()]  # the current name for traces with a tape
NOT_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.UnexpectedTracerError,
)


class UnreadableError(ValueError):
    """A learner called a mechanism where a tape cannot read the value."""


class Site(NamedTuple):
    """The place of a release: in a round, call `number` (from 0) of the mechanism `name` in the function `stage`."""

    stage: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} in {self.stage}" + (f", call {self.number + 1}" if self.number else "")


class Release(NamedTuple):
    """One release of a run; arrays of its entry and change have a leading axis: the base, then all neighbours."""

    round: int
    site: Site
    entry: tape.Entry
    change: Change


class Changed(NamedTuple):
    """The entries of one part of an adversary's view of a step that differ between the base and some neighbour.

    Attributes:
        step: index of the step.
        what: the part: "the play", "the report", "the public state" or "the stop".
        where: for each leaf of the part, which entries differ for some neighbour (bool).
        base: for each leaf of the part, the base's value.
    """

    step: int
    what: str
    where: list[np.ndarray]
    base: list[np.ndarray]


class Run(NamedTuple):
    """The result of a replay.

    Attributes:
        releases: the releases in order.
        changed: the parts of the view that differ although every mechanism got the base's value.
        views: for each replayed step, an adversary's view under the base's users.
        private: for each replayed step, the private state before the step under the base's users.
    """

    releases: list[Release]
    changed: list[Changed]
    views: list[dict[str, list[np.ndarray]]]
    private: list[Any]


class Program(NamedTuple):
    """A compiled step, for all steps with the same key in `Programs`."""

    # (transcript, start, keys, streams, private, public) -> results of `play_one` (in `_player`) for the base and all
    # neighbours; or `Undecided`
    run: Callable[..., Any]
    # (stage, round, entry) of each release, from the trace. Only stages and the text of entries are used: rounds and
    # numbers are tracers, and `run` returns their values.
    records: list[tuple[str, Any, tape.Entry]]
    name: object  # the step is traced under this name


# Compiled steps. A key states which leaves of the public state differ among neighbours, the block and its slots, and
# the outcomes of the step's first branches. A value is None if the step cannot be compiled.
Programs = dict[Any, Program | None]


def base_value(value: jax.Array) -> jax.Array:
    """Returns the base's value for every neighbour, inside the `jax.vmap` over the base and neighbours."""
    return jax.lax.all_gather(value, LANE)[0]


def replay(
    scene: Scene,
    steps: list[Step],
    key: jax.Array,
    streams: UserData,
    where: np.ndarray,
    *,
    use: Use = base_value,
    programs: Programs | None = None,
) -> Run:
    """Plays a transcript again, step by step, for the base and for all neighbours.

    Public states that the adversary sees are taken from the transcript. On the path "rounds", plays are also taken from
    the transcript if the adversary sees every play. By default every mechanism gets the base's value. To save time,
    with blocks and counts the replay ends after the first step in which the view differs.

    Args:
        scene: the learner and the transcript.
        steps: all steps of the transcript.
        key: the key with which the transcript was played.
        streams: users, [neighbours + 1, rounds, ...]; the base is first.
        where: [neighbours + 1] integers, a round in which a neighbour has another user; -1 for the base.
        use: value -> the value that the mechanism gets instead.
        programs: compiled steps, shared by replays that differ only in the transcript, the key and the users (of the
            same shapes); None runs every step without compilation.

    Returns:
        The releases, changes, views and private states.

    Raises:
        UnreadableError: if a mechanism is called where a tape cannot read its value.
    """
    lanes = len(where)
    streams, stream_axes = share_visits(streams)
    key_init, keys = step_keys(scene, key)
    start = scene.learner.init(key_init, scene.params)
    private, public = jax.tree.map(partial(_repeat, lanes), (start.private, start.public))
    run = Run([], [], [], [])
    for number, step in enumerate(steps):
        if scene.sees_public:
            public = at(scene.transcript.before, step.start)
            axes = jax.tree.map(lambda _: None, public)
        else:  # a value that is the same for all neighbours is not batched, so that a learner can branch on it
            axes = jax.tree.map(lambda x: None if is_shared(np.asarray(x)) else 0, public)
            public = jax.tree.map(lambda x: at(x, 0) if is_shared(np.asarray(x)) else x, public)
        run.private.append(at(private, 0))
        entries, view, private, public = _step(
            scene, step, keys, streams, private, public, (stream_axes, 0, axes), use, programs
        )
        numbers: dict[tuple[str, int, str], int] = {}
        for stage, round_, entry in entries:
            count = numbers[stage, round_, entry.name] = numbers.get((stage, round_, entry.name), -1) + 1
            run.releases.append(Release(round_, Site(stage, entry.name, count), entry, change(entry)))
        run.views.append({what: [leaf[0] for leaf in leaves] for what, leaves in view.items()})
        changes = []
        for what, leaves in view.items():
            if scene.guarantee.trust_model == "joint" and what == "the play":  # a replaced user's may differ
                masks = differing_plays(scene, step, where, leaves)
            else:
                masks = [np.asarray(differ(leaf, leaf[:1]).any(axis=0)) for leaf in leaves]
            if any(mask.any() for mask in masks):
                changes.append(Changed(number, what, masks, run.views[-1][what]))
        run.changed.extend(changes)
        if changes and scene.path != "rounds":
            break
    return run


def _repeat(lanes: int, leaf: Any) -> jax.Array:
    """Returns an array with a first axis of equal entries, one for each lane."""
    shape = lanes, *jnp.shape(leaf)
    return jnp.asarray(np.broadcast_to(np.asarray(leaf), shape)) if is_known(leaf) else jnp.broadcast_to(leaf, shape)


def share_visits(streams: UserData) -> tuple[UserData, Any]:
    """Returns the users, with one copy of visits (if any) for all neighbours, and their axes for `jax.vmap`."""
    if not isinstance(streams.contexts, Visit):
        return streams, 0
    visits = at(streams.contexts, 0)
    return streams._replace(contexts=visits), UserData(0, jax.tree.map(lambda _: None, visits))


def is_shared(batch: np.ndarray) -> bool:
    """Returns whether all rows (one for each neighbour) equal the first row (of the base)."""
    return not differ(batch, batch[:1]).any()


def visible(scene: Scene, play: Any, report: Any, state: State, used: Any) -> dict[str, Any]:
    """Returns a dict of the parts of a step that are in the adversary's view, as the learner's claim defines it."""
    claim, view = scene.guarantee, {}
    if scene.sees_public and claim.trust_model != "local":
        view["the public state"] = (state.public, used)
    if is_seen(claim, "action"):
        view["the play"] = play
    if claim.trust_model == "local" or "report" in claim.adversary_view:
        view["the report"] = report
    if must_add_stop(claim, scene.learner):
        assert scene.learner.done is not None
        view["the stop"] = scene.learner.done(scene.params, state.public)
    return view


def _step(
    scene: Scene,
    step: Step,
    keys: Any,
    streams: UserData,
    private: Any,
    public: Any,
    axes: tuple[Any, ...],
    use: Use,
    programs: Programs | None,
) -> tuple[list[tuple[str, int, tape.Entry]], dict[str, list[np.ndarray]], Any, Any]:
    """Plays one step for the base and all neighbours; returns (tape entries, view, next private and public states)."""
    result = None
    if programs is not None:
        result = _run_compiled(scene, step, keys, streams, private, public, axes, use, programs)
    if result is None:
        records: list[tuple[str, Any, tape.Entry]] = []
        play_one = _player(scene, step, keys, use, records)
        # Public states that all neighbours share are not batched: only the chosen side of a branch on them runs, and
        # its releases are recorded.
        try:
            # Under a separate name: JAX's cached traces without a tape would record nothing.
            with jax.disable_jit(), traced_apart(_traces[0]):
                arrays, view, state, *_ = jax.vmap(play_one, in_axes=axes, axis_name=LANE)(streams, private, public)
        except NOT_CONCRETE as error:
            _traces[0] = object()  # the failed trace is cached, too, and would record nothing
            raise UnreadableError(
                "mechanisms must be called at the top level of act, privatize and update, or behind branches on public "
                "values: not behind a branch on private data, which would reveal them, nor inside a vmap (call the "
                f"mechanism once, with an array); got {type(error).__name__}"
            ) from error
    else:
        records, arrays, view, state = result
    entries = [
        (stage, round_, entry._replace(**numbers))
        for (stage, round_, entry), numbers in zip(records, arrays, strict=True)
    ]
    return entries, {what: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for what, tree in view.items()}, *state


def _run_compiled(
    scene: Scene,
    step: Step,
    keys: Any,
    streams: UserData,
    private: Any,
    public: Any,
    axes: tuple[Any, ...],
    use: Use,
    programs: Programs,
) -> Any:
    """Plays one step with programs that serve every round; returns None if JAX cannot compile the step.

    The first program stops at the first `branch` and returns its flag. The program for this flag's value stops at the
    next branch, and so on; the program that meets no further branch plays the step.
    """
    slots = _planned_slots(scene, step, keys, streams, public, axes)
    if slots is None:
        return None
    kind, decisions = (jax.tree.structure(axes), step.block, slots), ()
    while True:
        if (kind, decisions) not in programs:
            programs[kind, decisions] = _compile(scene, step, axes, use, slots, decisions)
        program = programs[kind, decisions]
        if program is None:
            return None
        try:
            with traced_apart(program.name):
                played = program.run(scene.transcript, jnp.asarray(step.start), keys, streams, private, public)
        except NOT_CONCRETE:
            programs[kind, decisions] = None
            return None
        if not isinstance(played, Undecided):
            arrays, view, state, _, rounds = played
            records = [
                (stage, int(round_[0]), entry)
                for (stage, _, entry), round_ in zip(program.records, rounds, strict=True)
            ]
            return records, arrays, view, state
        decisions = (*decisions, bool(played.flag))


def _planned_slots(
    scene: Scene, step: Step, keys: Any, streams: UserData, public: Any, axes: tuple[Any, ...]
) -> Slots | None:
    """Returns the slots of a block, () on other paths; None if the neighbours' plans may differ."""
    if scene.path != "blocks":
        return ()
    planned: list[Slots] = []

    def plan_one(users: UserData, public: Any) -> jax.Array:
        plan = choose(scene, step, keys, users, public, no_tape)
        planned.append(slots_of(scene, step, plan, public))
        return jnp.zeros(())

    try:
        with jax.disable_jit():
            jax.vmap(plan_one, in_axes=(axes[0], axes[2]), axis_name=LANE)(streams, public)
    except NOT_CONCRETE:
        return None
    return planned[0]


def _compile(
    scene: Scene, step: Step, axes: tuple[Any, ...], use: Use, slots: Slots, decisions: Decisions
) -> Program | None:
    """Compiles a step for the flags `decisions` of its first branches; returns None if there are too many branches."""
    if len(decisions) > MOST_DECISIONS:
        return None
    records: list[tuple[str, Any, tape.Entry]] = []

    def run(transcript: Any, start: Any, keys: Any, streams: UserData, private: Any, public: Any) -> Any:
        scene_now, step_now = scene._replace(transcript=transcript), step._replace(start=start)
        play_one = _player(scene_now, step_now, keys, use, records, slots)
        return jax.vmap(play_one, in_axes=axes, axis_name=LANE)(streams, private, public)

    return Program(jax.jit(with_decisions(run, decisions), compiler_options=quick_options()), records, object())


def _player(
    scene: Scene,
    step: Step,
    keys: Any,
    use: Use,
    records: list[tuple[str, Any, tape.Entry]],
    planned: Slots | None = None,
) -> Callable[..., Any]:
    """Returns a function of (users, private, public) that plays a step for one neighbour and fills `records`."""

    # Callers do not use the fourth output, the values that get noise. It makes JAX raise an error if a release lies in
    # a branch or a loop: there the value is a tracer, which must not leave the branch.
    def play_one(users: UserData, private: Any, public: Any) -> Any:
        records.clear()
        used_values: list[jax.Array] = []

        def replace_value(value: jax.Array) -> jax.Array:
            used_values.append(use(value))
            return used_values[-1]

        @contextmanager
        def open_tape(stage: str, round_: int) -> Iterator[None]:
            with tape.recording(replace_value) as entries:
                yield
            records.extend((stage, round_, entry) for entry in entries)

        play = choose(scene, step, keys, users, public, open_tape)
        plan = at(scene.transcript.actions, step.start) if scene.path == "rounds" and scene.sees_plays else play
        slots = slots_of(scene, step, plan, public) if planned is None else planned
        report, state, used = react(scene, step, keys, users, State(private, public), plan, slots, open_tape)
        view = visible(scene, play, report, state, used)
        fields, rounds = [_array_fields(entry) for _, _, entry in records], [jnp.asarray(r) for _, r, _ in records]
        return fields, view, state, used_values, rounds

    return play_one


def _array_fields(entry: tape.Entry) -> dict[str, jax.Array]:
    """Returns a dict of an entry's fields that can be arrays, so that a `jax.vmap` can return them."""
    not_arrays = ("name", "norm", "distribution", "each")
    fields = {name: x for name, x in entry._asdict().items() if name not in not_arrays and x is not None}
    return jax.tree.map(jnp.asarray, fields)
