"""Replays of a transcript under neighbouring users, with a tape open: noised values, and changes around them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import Change, change
from jaxdp.audit.adversary import UserData
from jaxdp.audit.seen import is_seen, stop_is_seen
from jaxdp.audit.steps import Scene, Step, at, choose, places_of, react, step_keys
from jaxdp.core import State
from jaxdp.mechanisms import tape

QUICKLY = {"xla_backend_optimization_level": 0}  # compiles quickly, for few steps; all lanes run the same scalar code
LANE = "jaxdp_lane"
Use = Callable[[jax.Array], jax.Array]
traced_apart = jax.make_user_context(None)  # takes a name: traces under another name are not taken from the cache
_traces = [object()]  # name of the traces made under tapes; a new name discards them
NOT_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.UnexpectedTracerError,
)


class UnreadableError(ValueError):
    """A learner's releases lie where no tape can read them."""


class Site(NamedTuple):
    """The place of a release: the n-th call of a mechanism in one of a learner's functions."""

    stage: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} in {self.stage}" + (f", call {self.number + 1}" if self.number else "")


class Release(NamedTuple):
    """One release of a run, under the base's users (index 0) and under neighbours."""

    round: int
    site: Site
    entry: tape.Entry
    change: Change


class Changed(NamedTuple):
    """A part of an adversary's view of a step, where neighbours changed it.

    Attributes:
        step: number of the step.
        what: "the play", "the report", "the public state" or "the stop".
        where: for each of its leaves, which entries changed.
        base: for each leaf, its value under the base's users.
    """

    step: int
    what: str
    where: list[np.ndarray]
    base: list[np.ndarray]


class Run(NamedTuple):
    """The result of a replay.

    Attributes:
        releases: in order.
        changed: changes while everything recorded stayed.
        seen: for each step, an adversary's view of it under the base's users.
        private: before each step, the private state under the base's users.
    """

    releases: list[Release]
    changed: list[Changed]
    seen: list[dict[str, list[np.ndarray]]]
    private: list[Any]


class Program(NamedTuple):
    """A step that was compiled, for any round.

    Attributes:
        run: (transcript, start, keys, streams, private, public) -> entries' numbers, the view, and the next state.
        made: (stage, round, entry) of each release, as the step was traced. Stages and entries' words hold for every
            round that the program plays; rounds and entries' numbers are tracers, and are taken from the call.
        name: of the traces made for it.
    """

    run: Callable[..., Any]
    made: list[tuple[str, Any, tape.Entry]]
    name: object


Programs = dict[Any, Program | None]  # of steps, by which leaves of the public state differ; None: not compiled


def bases(value: jax.Array) -> jax.Array:
    """Returns the base's value in place of each neighbour's."""
    return jax.lax.all_gather(value, LANE)[0]


def replay(
    scene: Scene,
    steps: list[Step],
    key: jax.Array,
    streams: UserData,
    where: np.ndarray,
    *,
    use: Use = bases,
    programs: Programs | None = None,
) -> Run:
    """Plays a transcript again, step by step.

    The adversary's view of plays and of public states is put in, and the base's value in place of each value that is
    noised. Blocks and counts end at the first step in which something changes all the same: such steps take seconds.

    Args:
        scene: of the replay.
        steps: of the transcript.
        key: with which it was played.
        streams: users, [neighbours + 1, rounds, ...]; the first ones are the base's.
        where: [neighbours + 1] the round whose user is replaced; -1 for the base.
        use: value -> the value that is noised.
        programs: compiled steps, shared by replays with the same learner, users' shapes and `use`; None runs every step
            operation by operation.

    Returns:
        The releases, changes, views and private states.

    Raises:
        UnreadableError: if a mechanism is called where its value cannot be read.
    """
    lanes = len(where)
    key_init, keys = step_keys(scene, key)
    start = scene.learner.init(key_init, scene.params)
    private, public = jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *jnp.shape(x))), (start.private, start.public))
    run = Run([], [], [], [])
    for number, step in enumerate(steps):
        if scene.sees_public:
            public = at(scene.transcript.before, step.start)
            axes = jax.tree.map(lambda _: None, public)
        else:  # a value that is equal in all lanes may be branched on
            axes = jax.tree.map(lambda x: None if alike(np.asarray(x)) else 0, public)
            public = jax.tree.map(lambda x: x[0] if alike(np.asarray(x)) else x, public)
        run.private.append(at(private, 0))
        entries_made, view, private, public = _step(scene, step, keys, streams, private, public, axes, use, programs)
        numbers: dict[tuple[str, int, str], int] = {}
        for stage, round_, entry in entries_made:
            count = numbers[stage, round_, entry.name] = numbers.get((stage, round_, entry.name), -1) + 1
            run.releases.append(Release(round_, Site(stage, entry.name, count), entry, change(entry)))
        is_own = (where >= step.start) & (where < step.start + step.length)
        run.seen.append({what: [leaf[0] for leaf in leaves] for what, leaves in view.items()})
        changes = []
        for what, leaves in view.items():
            # In the joint model everyone but the replaced user must see the same.
            others = ~is_own if scene.guarantee.trust_model == "joint" and what == "the play" else slice(None)
            masks = [np.asarray(_differ(leaf[others], leaf[:1]).any(axis=0)) for leaf in leaves]
            if any(mask.any() for mask in masks):
                changes.append(Changed(number, what, masks, run.seen[-1][what]))
        run.changed.extend(changes)
        if changes and scene.path != "rounds":
            break
    return run


def alike(batch: np.ndarray) -> bool:
    """Returns whether all neighbours have the base's value."""
    return not _differ(batch, batch[:1]).any()


def visible(scene: Scene, play: Any, report: Any, state: State, used: Any) -> dict[str, Any]:
    """Returns the parts of a step that an adversary sees, by the claim."""
    claim, view = scene.guarantee, {}
    if scene.sees_public and claim.trust_model != "local":
        view["the public state"] = (state.public, used)
    if is_seen(claim, "action"):
        view["the play"] = play
    if claim.trust_model == "local" or "report" in claim.adversary_view:
        view["the report"] = report
    if stop_is_seen(claim, scene.learner):
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
    axes: Any,
    use: Use,
    programs: Programs | None,
) -> tuple[list[tuple[str, int, tape.Entry]], dict[str, list[np.ndarray]], Any, Any]:
    """Plays one step under all users at once: entries of [neighbours + 1, ...], the view, and the next state."""
    result = None
    if programs is not None and scene.path != "blocks":  # a block's plan determines the slots that are read
        result = _run_compiled(scene, step, keys, streams, private, public, axes, use, programs)
    if result is None:
        records: list[tuple[str, Any, tape.Entry]] = []
        one = _one(scene, step, keys, use, records)
        # Users are batched, but the public state is not: branches on it run as branches, and record their releases.
        try:
            # Earlier traces without a tape would be taken from JAX's cache and write nothing.
            with jax.disable_jit(), traced_apart(_traces[0]):
                arrays, seen, state, _ = jax.vmap(one, in_axes=(0, 0, axes), axis_name=LANE)(streams, private, public)
        except NOT_CONCRETE as error:
            _traces[0] = object()  # the branch's cached trace would write nothing either
            raise UnreadableError(
                "releases must be made at the top level of act, privatize and update, or behind branches on public "
                "values: not behind a branch on private data, whose choice would tell, nor inside a vmap (call the "
                f"mechanism once, with an array); got {type(error).__name__}"
            ) from error
    else:
        records, arrays, seen, state = result
    entries = [
        (stage, round_, entry._replace(**numbers))
        for (stage, round_, entry), numbers in zip(records, arrays, strict=True)
    ]
    return entries, {what: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for what, tree in seen.items()}, *state


def _run_compiled(
    scene: Scene,
    step: Step,
    keys: Any,
    streams: UserData,
    private: Any,
    public: Any,
    axes: Any,
    use: Use,
    programs: Programs,
) -> Any:
    """Plays a step by a program for all rounds; None if a release lies behind a branch, or a loop."""
    kind = jax.tree.structure(axes)
    if kind not in programs:
        records: list[tuple[str, Any, tape.Entry]] = []

        def run(transcript: Any, start: Any, keys: Any, streams: UserData, private: Any, public: Any) -> Any:
            one = _one(scene._replace(transcript=transcript), step._replace(start=start), keys, use, records)
            return jax.vmap(one, in_axes=(0, 0, axes), axis_name=LANE)(streams, private, public)

        programs[kind] = Program(jax.jit(run, compiler_options=QUICKLY), records, object())
    program = programs[kind]
    if program is None:
        return None
    try:
        with traced_apart(program.name):
            arrays, seen, state, _ = program.run(
                scene.transcript, jnp.asarray(step.start), keys, streams, private, public
            )
    except NOT_CONCRETE:
        programs[kind] = None
        return None
    return [(stage, step.start, entry) for stage, _, entry in program.made], arrays, seen, state


def _one(
    scene: Scene, step: Step, keys: Any, use: Use, records: list[tuple[str, Any, tape.Entry]]
) -> Callable[..., Any]:
    """Returns a function of (users, private, public) that plays a step for one neighbour and adds to `records`."""

    # The noised values are the last output. Callers need not read them: they are returned so that JAX refuses a release
    # inside a branch or a loop, where they are tracers of the branch's own.
    def one(users: UserData, private: Any, public: Any) -> Any:
        records.clear()
        noised: list[jax.Array] = []

        def replace_value(value: jax.Array) -> jax.Array:
            noised.append(use(value))
            return noised[-1]

        @contextmanager
        def open_tape(stage: str, round_: int) -> Iterator[None]:
            with tape.recording(replace_value) as entries:
                yield
            records.extend((stage, round_, entry) for entry in entries)

        play = choose(scene, step, keys, users, public, open_tape)
        plan = at(scene.transcript.actions, step.start) if scene.path == "rounds" and scene.sees_plays else play
        slots = places_of(scene, step, plan, public)
        report, state, used = react(scene, step, keys, users, State(private, public), plan, slots, open_tape)
        return [_arrays(entry) for _, _, entry in records], visible(scene, play, report, state, used), state, noised

    return one


def _arrays(entry: tape.Entry) -> dict[str, jax.Array]:
    """Returns the entry's numbers, which a vmap may return."""
    words = ("name", "norm", "distribution", "each")
    numbers = {name: x for name, x in entry._asdict().items() if name not in words and x is not None}
    return jax.tree.map(jnp.asarray, numbers)


def _differ(batch: np.ndarray, other: np.ndarray) -> np.ndarray:
    return ~((batch == other) | ((batch != batch) & (other != other)))
