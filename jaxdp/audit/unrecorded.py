"""Examines outputs that change although every recorded release is held fixed, and decides whether this is a fault.

The users of the original run are called the base. A neighbour replaces one of them (see `jaxdp.audit.replay`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.adversary import UserData
from jaxdp.audit.checks import differ
from jaxdp.audit.quick_programs import jit_quickly
from jaxdp.audit.replay import Changed, Run, base_value, replay, visible
from jaxdp.audit.steps import Scene, Step, at, choose, no_tape, react, slots_of, step_keys
from jaxdp.core import State

KEYS = 4096  # keys for each run
# Shifts of recorded values show which outputs depend on them. A shift is (signed size, whether entries move apart): all
# entries move by the size, or each by another fraction of it. A choice of a largest or smallest entry among some of the
# n entries of a value changes under at least one shift, unless these entries differ by 5e8 / n or more.
SHIFTS = tuple(
    (sign * size, by_index) for size, by_index in ((1.0, False), (1e6, False), (1e9, True)) for sign in (1, -1)
)
GOLDEN = 2654435769  # 2^32 divided by the golden ratio


class Played(NamedTuple):
    """A run of the base's users, and its replay.

    Attributes:
        scene: the learner and the transcript.
        steps: all steps of the transcript.
        key: the key with which the transcript was played.
        streams: users, [neighbours + 1, rounds, ...]; the base is first.
        run: the result of the replay.
    """

    scene: Scene
    steps: list[Step]
    key: jax.Array
    streams: UserData
    run: Run


def check_changes(key: jax.Array, played: list[Played]) -> tuple[list[str], list[str]]:
    """Returns faults and notes on parts of the view that changed although every mechanism got the base's value.

    The changes of plays, reports, public states and the stop are examined separately:

    - Fault, if some changed entry depends on the users but not on the key: this entry has no noise. Otherwise every
      changed entry may have noise from a mechanism that records nothing.
    - Note, if nothing was recorded, or if some changed entry does not depend on recorded values.
    - Fault, if all changed entries depend on recorded values: data were added to a number that already has noise.

    Args:
        key: a typed PRNG key.
        played: all runs.

    Returns:
        (faults, notes).
    """
    faults, notes, steps = [], [], {}
    for what in dict.fromkeys(change.what for run in played for change in run.run.changed):
        changes_of_runs = ((run, [change for change in run.run.changed if change.what == what]) for run in played)
        changed_runs = [(run, changed) for run, changed in changes_of_runs if changed]
        if not _all_random(key, changed_runs, steps):
            faults.append(_around(what))
        elif not any(run.run.releases for run in played):
            notes.append(
                f"{what} depends on the users and the key, but nothing was recorded: noise can be measured only if its "
                "mechanism records an entry (jaxdp.mechanisms.tape.record)"
            )
        elif any(_some_independent(run, changed) for run, changed in changed_runs):
            notes.append(
                f"{what} changes although all recorded values are held fixed: it has noise from a mechanism that "
                "records no entry (jaxdp.mechanisms.tape.record)"
            )
        else:
            faults.append(_around(what))
    return faults, notes


def _around(what: str) -> str:
    return f"{what} changes although all values that get noise are held fixed: a path around the noise"


def _all_random(key: jax.Array, changed_runs: list[tuple[Played, list[Changed]]], steps: dict[Any, Any]) -> bool:
    """Returns whether all changed entries of the view vary with the key."""
    # A float must vary in every step in which it changed. For an integer or a bool, such as a label that is seldom
    # flipped, it is enough to vary in one step with a change, of any run.
    ever_varies: dict[Any, np.ndarray] = {}
    integer_masks: list[tuple[Any, np.ndarray]] = []
    for run, changed in changed_runs:
        varies = _find_random(key, run, max(change.step for change in changed) + 1, steps)
        for change in changed:
            for index, (mask, base) in enumerate(zip(change.where, change.base, strict=True)):
                random = varies[change.step][change.what][index]
                if np.issubdtype(base.dtype, np.inexact):
                    if (mask & ~random).any():
                        return False
                    continue
                leaf = index, mask.shape
                ever_varies[leaf] = ever_varies.get(leaf, np.False_) | random
                integer_masks.append((leaf, mask))
    return not any((mask & ~ever_varies[leaf]).any() for leaf, mask in integer_masks)


def _find_random(
    key: jax.Array, played: Played, count: int, steps: dict[Any, Any]
) -> list[dict[str, list[np.ndarray]]]:
    """Returns, for the first `count` steps, which entries of the base's view change with the key."""
    scene, users = played.scene, at(played.streams, 0)
    key_init, keys = jax.vmap(lambda k: step_keys(scene, k))(jax.random.split(key, KEYS))
    private, public = jit_quickly(jax.vmap(lambda k: scene.learner.init(k, scene.params)))(key_init)
    _, right_keys = step_keys(scene, played.key)
    views = []
    for step in played.steps[:count]:
        if scene.sees_public:
            public = at(scene.transcript.before, step.start)
        public_now = public if scene.sees_public else at(public, 0)
        plan, slots = played_plan(scene, step, right_keys, users, public_now)
        kind = step.length, step.block, slots
        if kind not in steps:
            steps[kind] = _compile_for_keys(scene, step, slots)
        start = jnp.asarray(step.start)
        view, private, public = steps[kind](scene.transcript, start, keys, users, private, public, plan)
        views.append({what: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for what, tree in view.items()})
    return views


def played_plan(
    scene: Scene, step: Step, keys: Any, users: UserData, public: Any
) -> tuple[Any, tuple[tuple[int, int], ...]]:
    """Returns the play of a step (a round's recorded action, or else the plan for these keys), and a block's slots."""
    if scene.path == "rounds":
        return at(scene.transcript.actions, step.start), ()
    plan = choose(scene, step, keys, users, public, no_tape)
    return plan, slots_of(scene, step, plan, public)


def _compile_for_keys(scene: Scene, step: Step, slots: tuple[tuple[int, int], ...]) -> Any:
    """Compiles a step for many keys; the program returns where the view varies with the key, and the next states."""
    axis = None if scene.sees_public else 0

    @jit_quickly
    def go(transcript, start, keys, users, private, public, plan):
        scene_now, step_now = scene._replace(transcript=transcript), step._replace(start=start)

        def play_step(keys, private, public):
            play = choose(scene_now, step_now, keys, users, public, no_tape)
            report, state, used = react(scene_now, step_now, keys, users, State(private, public), plan, slots, no_tape)
            return visible(scene_now, play, report, state, used), state

        view, state = jax.vmap(play_step, in_axes=(0, 0, axis))(keys, private, public)
        return jax.tree.map(lambda batch: differ(batch, batch[:1]).any(axis=0), view), *state

    return go


def _some_independent(played: Played, changed: list[Changed]) -> bool:
    """Returns whether some changed entry keeps its value under every shift of the recorded values."""
    steps = played.steps[: max(change.step for change in changed) + 1]
    base_streams = jax.tree.map(lambda x: x[:1], played.streams)
    independent = [[mask.copy() for mask in change.where] for change in changed]
    for shift, by_index in SHIFTS:
        other = replay(
            played.scene, steps, played.key, base_streams, np.full(1, -1), use=partial(_shift_entries, shift, by_index)
        )
        for masks, change in zip(independent, changed, strict=True):
            for mask, base, new_value in zip(masks, change.base, other.views[change.step][change.what], strict=True):
                mask &= ~differ(base, new_value)
        if not any(mask.any() for masks in independent for mask in masks):
            return False
    return True


def _shift_entries(shift: float, by_index: bool, value: jax.Array) -> jax.Array:
    """Returns the base's value with all entries shifted, by different fractions if `by_index`; booleans are negated."""
    value = base_value(value)
    if value.dtype == bool:
        return ~value
    if not by_index:
        return value + jnp.asarray(shift).astype(value.dtype)
    # fractions of the index times the golden ratio are at least 0.38 / n from each other
    fractions = (jnp.arange(value.size, dtype=jnp.uint32) * jnp.uint32(GOLDEN)).astype(jnp.float32) * 2.0**-31 - 1
    return value + (shift * fractions).astype(value.dtype).reshape(value.shape)
