"""What changed though all that is recorded stayed: a path around the noise, or noise that no tape accounts for."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.adversary import Users
from jaxdp.audit.replay import Changed, Run, bases, replay, visible
from jaxdp.audit.steps import Scene, Step, at, choose, places_of, react, step_keys
from jaxdp.core import State

KEYS = 4096  # tried for each run
# Of recorded values, to see what depends on them: how far, and which binary digit of an entry's number tells whether it
# goes up or down (0: all go up). Any choice among entries is turned by one of the shifts.
SHIFTS = tuple(
    (sign * size, digit) for size, digit in ((1.0, 0), (1e6, 0), (1e6, 1), (1e6, 2), (1e6, 4)) for sign in (1, -1)
)


class Played(NamedTuple):
    """A run of the base's users, and its replay.

    Attributes:
        scene: of the replay.
        steps: of the transcript.
        key: with which it was played.
        streams: users, [neighbours + 1, rounds, ...].
        run: what the replay found.
    """

    scene: Scene
    steps: list[Step]
    key: jax.Array
    streams: Users
    run: Run


def unexplained(key: jax.Array, played: list[Played]) -> tuple[list[str], list[str]]:
    """Judges what changed though all that is recorded stayed.

    An entry of what is seen that follows the users and not the key was never noised: a fault. One that is random given
    the users may be noised by something that writes nothing on the tape, so that nothing can be told. It is a fault all
    the same if it depends on what is recorded, and so is everything that changed in the same way: then data are added
    to a noised number. Of a play (a report, a public state, the stop) where one changed entry is random and independent
    of all that is recorded, unrecorded noise is a reason for whatever changed and is random.

    Args:
        key: a typed PRNG key.
        played: all runs.

    Returns:
        (faults, notes).
    """
    faults, notes, steps = [], [], {}
    for what in dict.fromkeys(found.what for one in played for found in one.run.changed):
        each = ((one, [found for found in one.run.changed if found.what == what]) for one in played)
        mine = [(one, changed) for one, changed in each if changed]
        if not _all_random(key, mine, steps):
            faults.append(_around(what))
        elif not any(one.run.releases for one in played):
            notes.append(
                f"{what} follows the users and the key, but nothing was recorded: noise cannot be measured where it "
                "writes no entry (jaxdp.mechanisms.tape.record)"
            )
        elif any(_some_independent(one, changed) for one, changed in mine):
            notes.append(
                f"{what} changes though all that is recorded stays, by noise that writes no entry "
                "(jaxdp.mechanisms.tape.record)"
            )
        else:
            faults.append(_around(what))
    return faults, notes


def _around(what: str) -> str:
    return f"{what} changes though all that is noised stays: a path around the noise"


def _all_random(key: jax.Array, mine: list[tuple[Played, list[Changed]]], steps: dict[Any, Any]) -> bool:
    """Whether all that changed takes other values with other keys.

    Of whole numbers, as labels that are seldom turned, it is enough if they do so in one of the steps.
    """
    ever: dict[Any, np.ndarray] = {}
    whole: list[tuple[Any, np.ndarray]] = []
    for one, changed in mine:
        varied = _varied(key, one, max(found.step for found in changed) + 1, steps)
        for found in changed:
            for index, (mask, base) in enumerate(zip(found.where, found.base, strict=True)):
                random = varied[found.step][found.what][index]
                if np.issubdtype(base.dtype, np.inexact):
                    if (mask & ~random).any():
                        return False
                    continue
                place = index, mask.shape
                ever[place] = ever.get(place, np.False_) | random
                whole.append((place, mask))
    return not any((mask & ~ever[place]).any() for place, mask in whole)


def _varied(key: jax.Array, played: Played, count: int, steps: dict[Any, Any]) -> list[dict[str, list[np.ndarray]]]:
    """For the first so many steps, which entries of what is seen change with the key, the base's users staying."""
    scene, users = played.scene, at(played.streams, 0)
    key_init, keys = jax.vmap(lambda k: step_keys(scene, k))(jax.random.split(key, KEYS))
    private, public = jax.jit(jax.vmap(lambda k: scene.learner.init(k, scene.params)))(key_init)
    _, right_keys = step_keys(scene, played.key)
    found = []
    for step in played.steps[:count]:
        if scene.sees_public:
            public = at(scene.transcript.before, step.start)
        here = public if scene.sees_public else at(public, 0)
        plan, places = at(scene.transcript.actions, step.start), ()
        if scene.path != "rounds":
            plan = choose(scene, step, right_keys, users, here, _closed)
            places = places_of(scene, step, plan, here)
        kind = step.length, step.block, places
        if kind not in steps:
            steps[kind] = _many_keys(scene, step, places)
        start = jnp.asarray(step.start)
        seen, private, public = steps[kind](scene.transcript, start, keys, users, private, public, plan)
        found.append({what: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for what, tree in seen.items()})
    return found


def _many_keys(scene: Scene, step: Step, places: tuple[tuple[int, int], ...]) -> Any:
    """A step with many keys at once: what differs among them, and the next states."""
    axis = None if scene.sees_public else 0

    @jax.jit
    def go(transcript, start, keys, users, private, public, plan):
        here, now = scene._replace(transcript=transcript), step._replace(start=start)

        def one(keys, private, public):
            play = choose(here, now, keys, users, public, _closed)
            report, state, used = react(here, now, keys, users, State(private, public), plan, places, _closed)
            return visible(here, play, report, state, used), state

        seen, state = jax.vmap(one, in_axes=(0, 0, axis))(keys, private, public)
        return jax.tree.map(_vary, seen), *state

    return go


def _vary(batch: jax.Array) -> jax.Array:
    same = (batch == batch[:1]) | ((batch != batch) & (batch[:1] != batch[:1]))
    return ~same.all(axis=0)


@contextmanager
def _closed(stage: str, round_: Any) -> Iterator[None]:
    del stage, round_
    yield


def _some_independent(played: Played, changed: list[Changed]) -> bool:
    """Whether some entry that changed stays as it is, whatever is put in place of what is recorded."""
    steps = played.steps[: max(found.step for found in changed) + 1]
    alone = jax.tree.map(lambda x: x[:1], played.streams)
    free = [[mask.copy() for mask in found.where] for found in changed]
    for shift, digit in SHIFTS:
        other = replay(played.scene, steps, played.key, alone, np.full(1, -1), use=partial(_shifted, shift, digit))
        for masks, found in zip(free, changed, strict=True):
            for mask, base, now in zip(masks, found.base, other.seen[found.step][found.what], strict=True):
                mask &= (base == now) | ((base != base) & (now != now))
        if not any(mask.any() for masks in free for mask in masks):
            return False
    return True


def _shifted(shift: float, digit: int, value: jax.Array) -> jax.Array:
    """The base's value with each entry moved up or down."""
    value = bases(value)
    if value.dtype == bool:
        return ~value
    down = (jnp.arange(value.size) & digit > 0).reshape(value.shape)
    return value + jnp.where(down, -shift, shift).astype(value.dtype)
