"""Plays one step of a learner again: a round, a block, or the rounds that the engine "counts" plays at once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdp.audit.adversary import Answer, History, UserData, users_environment, zero_other_rows
from jaxdp.audit.checks import differ
from jaxdp.audit.play import Transcript, keys_of
from jaxdp.audit.seen import visible_history
from jaxdp.core import Blocks, Environment, Guarantee, Learner, State
from jaxdp.simulation.run.rounds import Keys

OpenTape = Callable[[str, Any], AbstractContextManager[Any]]  # (stage, round) -> context that records mechanisms


@contextmanager
def no_tape(stage: str, round_: Any) -> Iterator[None]:
    """Records nothing; stands for an `OpenTape`."""
    del stage, round_
    yield


class Scene(NamedTuple):
    """The learner and the transcript of a replay.

    Attributes:
        learner: the learner that plays.
        answer: (answers, history, action) -> feedback.
        params: the learner's params, as arrays.
        guarantee: the learner's claim.
        path: "rounds", "blocks" or "counts".
        transcript: the original run. The replay takes public states and the plays of single rounds from it if the
            adversary sees all of them.
        with_contexts: whether users have contexts.
    """

    learner: Learner
    answer: Answer
    params: Any
    guarantee: Guarantee
    path: str
    transcript: Transcript
    with_contexts: bool

    @property
    def rounds(self) -> int:
        """The number of rounds in the arrays of the transcript; a learner that stops has played fewer rounds."""
        return len(self.transcript.length)

    @property
    def sees_public(self) -> bool:
        """Whether the adversary sees public states; in the local model they follow from the reports, which are seen."""
        return "public" in self.guarantee.adversary_view or self.guarantee.trust_model == "local"

    @property
    def sees_plays(self) -> bool:
        """Whether the adversary sees every play."""
        return "action" in self.guarantee.adversary_view and self.guarantee.trust_model in ("central", "shuffle")


class Step(NamedTuple):
    """The rounds of a step.

    Attributes:
        start: [] integer, the first round of the step, counted from 0.
        length: number of rounds.
        block: index of the `Blocks` in the learner's `blocks` that play the step; 0 on other paths.
    """

    start: Any
    length: int
    block: int


class StepResult(NamedTuple):
    """The result of a step.

    Attributes:
        report: the report to the curator; of a block, rows [block length, ...], one for each slot.
        state: the learner's state after the step.
        used: number of rounds that a block used; None on other paths.
    """

    report: Any
    state: State
    used: Any


def steps_of(scene: Scene) -> list[Step]:
    """Returns the steps of a transcript, each with its first round and length."""
    lengths = np.asarray(scene.transcript.length)
    steps, block, learner = [], 0, scene.learner
    for start in np.flatnonzero(lengths).tolist():
        if scene.path == "blocks":
            public = at(scene.transcript.before, start)
            while (until := learner.blocks[block].switch_when) and bool(until(scene.params, public)):
                block += 1
        steps.append(Step(start, int(lengths[start]), block))
    return steps


def step_keys(scene: Scene, key: jax.Array) -> tuple[jax.Array, Keys]:
    """Returns the key of `init` and the keys of the rounds; keys past the last round are for empty slots of a block."""
    longest = max((blocks.length for blocks in scene.learner.blocks), default=0) if scene.path == "blocks" else 0
    return keys_of(key, scene.rounds + 2 * longest)


def at(tree: Any, index: Any) -> Any:
    """Indexes each array of a pytree.

    If the index and an array are known on the host, NumPy indexes it, because JAX would compile for each shape.
    """
    is_host_index = isinstance(index, int | np.ndarray)
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf)[index]) if is_host_index and is_known(leaf) else leaf[index], tree
    )


def is_known(leaf: Any) -> bool:
    """Returns whether NumPy can read an array of JAX: it is neither traced nor an array of keys."""
    return (
        isinstance(leaf, jax.Array)
        and not isinstance(leaf, Tracer)
        and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    )


def choose(scene: Scene, step: Step, keys: Keys, users: UserData, public: Any, open_tape: OpenTape) -> Any:
    """Returns the next play: an action, or a plan of actions or of counts.

    Args:
        scene: the learner and the transcript.
        step: the step to play.
        keys: keys of all rounds.
        users: users of all rounds.
        public: the public state.
        open_tape: (stage, round) -> a context manager around calls of the learner's functions.
    """
    learner, params, limit = scene.learner, scene.params, jnp.asarray(scene.rounds - step.start)
    if scene.path == "rounds":
        with open_tape("act", step.start):
            return learner.act(keys.act[step.start], params, public, at(users.contexts, step.start))
    with open_tape("plan", step.start):
        if scene.path == "counts":
            assert learner.counts is not None
            return learner.counts.plan(keys.act[step.start], params, public, limit)
        blocks = learner.blocks[step.block]
        slots = step.start + _order(blocks, params, public)
        contexts, limit = _contexts(users, slots), jnp.minimum(limit, blocks.length)
        return blocks.plan(keys.act[slots], params, public, contexts, limit)


def slots_of(scene: Scene, step: Step, plan: Any, public: Any) -> tuple[tuple[int, int], ...]:
    """Returns (slot, round counted from the start of the block) for all planned slots; () on other paths."""
    if scene.path != "blocks":
        return ()
    order = np.asarray(_order(scene.learner.blocks[step.block], scene.params, public))
    length = int(plan.length)
    return tuple((slot, round_) for slot, round_ in enumerate(order.tolist()) if round_ < length)


def react(
    scene: Scene,
    step: Step,
    keys: Keys,
    users: UserData,
    state: State,
    plan: Any,
    slots: tuple[tuple[int, int], ...],
    open_tape: OpenTape,
) -> StepResult:
    """Plays the rest of a step: users answer, `privatize` makes reports, and the learner updates its state.

    The reports of a block are made slot by slot, so that a tape can read each of them.

    Args:
        scene: the learner and the transcript.
        step: the step to play.
        keys: keys of all rounds.
        users: users of all rounds.
        state: the learner's state.
        plan: the play: an action, or a plan of actions or of counts, as `choose` returns it.
        slots: the slots of a block, as `slots_of` returns them; () on other paths.
        open_tape: (stage, round) -> a context manager around calls of the learner's functions.
    """
    learner, params, start, public = scene.learner, scene.params, step.start, state.public
    world = _world(scene, users, start)
    if scene.path == "rounds":
        feedback = _feedback_to(world, start, plan)
        with open_tape("privatize", start):
            context = at(users.contexts, start)
            report = learner.privatize(keys.user[start], params, public, context, plan, feedback)
        with open_tape("update", start):
            return StepResult(report, learner.update(keys.update[start], params, state, report), None)
    if scene.path == "counts":
        counts = learner.counts
        assert counts is not None
        assert world.feedback_totals is not None
        totals = world.feedback_totals(keys.feedback[start], None, jnp.asarray(start), plan.counts)[1]
        with open_tape("privatize", start):
            report = counts.privatize(keys.user[start], params, public, plan, totals)
        with open_tape("update_counts", start):
            return StepResult(report, counts.update_counts(keys.update[start], params, state, plan, report), None)
    blocks = learner.blocks[step.block]
    rounds = start + _order(blocks, params, public)
    played = [(slot, start + round_, at(plan.actions, slot)) for slot, round_ in slots]
    feedbacks = {slot: _feedback_to(world, round_, action) for slot, round_, action in played}
    reports = {}
    for slot, round_, action in played:
        context = at(users.contexts, round_)
        with open_tape("privatize", round_):
            reports[slot] = learner.privatize(keys.user[round_], params, public, context, action, feedbacks[slot])
    report = _rows_of(reports, blocks.length)
    with open_tape("update_block", start):
        state, used = blocks.update_block(keys.update[rounds], params, state, plan, report)
    return StepResult(report, state, used)


def _rows_of(values: dict[int, Any], length: int) -> Any:
    """Stacks the values of some slots as arrays [length, ...] that are zero in the other slots."""
    empty = jax.tree.map(jnp.zeros_like, next(iter(values.values())))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[values.get(slot, empty) for slot in range(length)])


def _contexts(users: UserData, rounds: Any) -> Any:
    """Returns the contexts of these rounds; past the end it repeats the last context."""
    return jax.tree.map(lambda x: x[jnp.minimum(rounds, len(x) - 1)], users.contexts)


def differing_plays(scene: Scene, step: Step, where: np.ndarray, leaves: list[np.ndarray]) -> list[np.ndarray]:
    """Returns, for each leaf of a step's play, a mask of the entries that differ between some neighbour and the base.

    If the step has a neighbour's replaced user, this user's play is not compared, because it may differ.

    Args:
        scene: the learner and the transcript.
        step: the step.
        where: [neighbours + 1] integers, a round in which a neighbour has another user; -1 for the base.
        leaves: [neighbours + 1, ...] arrays, the leaves of the plays; the base is first.
    """
    others = (where < step.start) | (where >= step.start + step.length)
    if scene.path != "blocks":
        return [np.asarray(differ(leaf[others], leaf[:1]).any(axis=0)) for leaf in leaves]
    *actions, length = leaves  # of a `BlockPlan`
    order = np.asarray(_order(scene.learner.blocks[step.block], scene.params, at(scene.transcript.before, step.start)))
    # an adversary does not see plays that were planned and not played
    is_compared = (where[:, None] != step.start + order) & (order < step.length)
    masks = []
    for leaf in actions:
        mask = is_compared.reshape(*is_compared.shape, *[1] * (leaf.ndim - 2))
        masks.append((np.asarray(differ(leaf, leaf[:1])) & mask).any(axis=0))
    return [*masks, np.asarray(differ(length[others], length[:1]).any(axis=0))]


def history_of(scene: Scene, start: Any, round_: Any) -> History:
    """Returns the past that the user of a round may react to, in the step that started at `start`.

    The past includes the actions of the user who differs, even in the joint model, where the adversary does not see
    them. Later users are drawn once, and are the same in all replays: they do not react to the change. The test is
    valid, because the claim must hold for any later users.
    """
    return _seen_history(scene, start, round_, scene.transcript.actions)


def _seen_history(scene: Scene, start: Any, round_: Any, actions: Any) -> History:
    every, log = jnp.arange(scene.rounds), scene.transcript

    def until(end: Any, tree: Any) -> Any:
        return jax.tree.map(lambda x: zero_other_rows(every < end, x), tree)

    reports = None if scene.path == "counts" else until(start, log.reports)
    known = start if scene.with_contexts else round_  # the contexts of a block are shown before its first play
    history = History(jnp.asarray(round_), until(known, actions), until(start, log.after), reports)
    return visible_history(scene.guarantee, None, history)


def _world(scene: Scene, users: UserData, start: Any) -> Environment:
    """Builds the environment in which the users of a step answer."""
    return users_environment(
        scene.learner,
        scene.answer,
        lambda round_, history: at(users, round_),
        lambda round_, actions: _seen_history(scene, start, round_, actions),
        scene.transcript.actions,
        rounds=scene.rounds,
        with_contexts=scene.with_contexts,
    )


def _feedback_to(world: Environment, round_: Any, action: Any) -> Any:
    return world.feedback(jax.random.key(0), None, jnp.asarray(round_), action)[1]


def _order(blocks: Blocks, params: Any, public: Any) -> jax.Array:
    return jnp.arange(blocks.length) if blocks.slot_rounds is None else blocks.slot_rounds(params, public)
