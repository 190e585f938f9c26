"""Builds environments in which users answer as an adversary decides, for the engines rounds, blocks and counts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Learner, Space, default_float
from jaxdp.core.interface import is_space

Answer = Callable[[Any, "History", Any], Any]


class UserData(NamedTuple):
    """The users' data in a run: each round has one user, who has an answer to any action.

    The claim's `sensitive_fields` name the leaves that are private; None means all.

    Attributes:
        answers: pytree of [rounds, ...] arrays, each user's answers, which an `Answer` reads.
        contexts: pytree of [rounds, ...] arrays, each user's context; None if the problem has no contexts.
    """

    answers: Any
    contexts: Any = None


class History(NamedTuple):
    """The past transcript, to which an adversary may react.

    Values that the claim hides from the adversary are zeros, or None for reports. A step is a round, a block, or the
    rounds that the engine "counts" plays at once. Public states and reports are added after the last round of a step.
    Plays are added after each round or, in problems with contexts, after the last round of a step. Arrays are zero at
    index `round` and all later indices.

    Attributes:
        round: [] integer, number of rounds played.
        actions: pytree of [rounds, ...] arrays, the plays so far.
        public: pytree of [rounds, ...] arrays, `public` after each step, at the index of the step's first round; other
            entries are zeros.
        reports: pytree of [rounds, ...] arrays; None with the engine "counts", or if reports are not seen.
    """

    round: jax.Array
    actions: Any
    public: Any = None
    reports: Any = None


def feedback_of_action(answers: Any, history: History, action: jax.Array) -> jax.Array:
    """Returns the user's answer to the played arm.

    Args:
        answers: [num_arms, ...], the user's answer to each arm.
        history: unused.
        action: [] integer, the arm.
    """
    del history
    return answers[action]


def feedback_of_pair(answers: Any, history: History, action: jax.Array) -> jax.Array:
    """Returns the user's answer to the played duel.

    Args:
        answers: [num_arms, num_arms, ...], the user's answer to each ordered pair (left arm, right arm).
        history: unused.
        action: [2] integer, the left arm and the right arm.
    """
    del history
    return answers[action[0], action[1]]


def full_information(answers: Any, history: History, action: Any) -> Any:
    """Returns all answers of the user, for any action."""
    del history, action
    return answers


def num_rounds(users: UserData) -> int:
    """Returns the number of users; raises ValueError if there are none, or if leading axes differ."""
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(users)}
    if len(lengths) != 1 or lengths in ({()}, {(0,)}):
        raise ValueError(f"users must have one leading axis of rounds, at least one, got {sorted(lengths)}")
    return lengths.pop()[0]


def users_environment(
    learner: Learner,
    answer: Answer,
    person: Callable[[jax.Array, History], UserData],
    history_of: Callable[[jax.Array, Any], History],
    actions: Any,
    *,
    rounds: int,
    with_contexts: bool,
) -> Environment:
    """Builds an environment in which each round has one user, who answers the action.

    The state of the world is the number of rounds played, [] integer; the caller gives the first state, since `init`
    returns None. The environment also supports the engine "blocks", and "counts" if the learner's actions are arms or
    tuples of arms.

    Args:
        learner: the learner that plays.
        answer: (answers, history, action) -> feedback.
        person: (round, history) -> the user of the round.
        history_of: (round, earlier plays) -> the past that an adversary sees.
        actions: pytree of [rounds, ...] arrays, the plays so far, followed by zeros.
        rounds: number of rounds.
        with_contexts: whether users have contexts.
    """

    def context(key, params, world):
        del key, params
        return person(world, history_of(world, actions)).contexts

    def answer_to(round_: jax.Array, actions: Any, action: Any) -> Any:
        history = history_of(round_, actions)
        return answer(person(round_, history).answers, history, action)

    def feedback(key, params, world, action):
        del key, params
        return world + 1, answer_to(world, actions, action), {}

    def answers_to(slots: jax.Array, actions_planned: Any) -> Any:
        """Returns the answers to the plays of the rounds `slots`.

        Users without contexts know all earlier plays. Users with contexts know only the plays before the first of these
        rounds, because the contexts of all these rounds are shown before any of them is played.
        """
        if with_contexts:
            return jax.vmap(lambda round_, action: answer_to(round_, actions, action))(slots, actions_planned)
        all_actions = jax.tree.map(lambda all_, new: all_.at[slots].set(new, mode="drop"), actions, actions_planned)

        def answer_at(round_: jax.Array, action: Any) -> Any:
            earlier = jnp.arange(rounds, dtype=round_.dtype) < round_
            return answer_to(round_, jax.tree.map(lambda x: zero_other_rows(earlier, x), all_actions), action)

        return jax.vmap(answer_at)(slots, actions_planned)

    def block(keys, params, world, contexts, actions):
        del params, contexts
        slots = world + jnp.arange(len(keys), dtype=world.dtype)
        return slots + 1, answers_to(slots, actions), {}

    def contexts(keys, params, world):
        del params
        slots = world + jnp.arange(len(keys), dtype=world.dtype)
        return jax.vmap(lambda round_: person(round_, history_of(round_, actions)).contexts)(slots)

    def feedback_totals(key, params, world, counts):
        del key, params
        index, is_played = in_order(counts, rounds)
        slots = jnp.where(is_played, world + jnp.arange(rounds, dtype=world.dtype), rounds)
        feedback = answers_to(slots, actions_at(learner, index))
        assert learner.interface is not None
        added = jax.tree.map(
            lambda answers, space: _totals(answer, index, is_played, counts, answers, space),
            feedback,
            learner.interface.feedback,
        )
        return world + counts.sum(dtype=world.dtype), added, {}

    return Environment(
        params=dict,
        init=lambda key, params: None,
        context=context if with_contexts else None,
        feedback=feedback,
        block=block,
        feedback_totals=feedback_totals,
        contexts=contexts if with_contexts else None,
    )


def in_order(counts: jax.Array, rounds: int) -> tuple[jax.Array, jax.Array]:
    """Lists plays, sorted by action, from the number of plays of each action.

    Args:
        counts: [num_actions] integers, number of plays of each action.
        rounds: upper bound on the number of plays.

    Returns:
        [rounds] int32, the action of each slot; and [rounds] bool, whether the slot is played.

    Examples:
        >>> index, is_played = in_order(jnp.array([1, 0, 2]), 4)
        >>> index.tolist(), is_played.tolist()
        ([0, 2, 2, 2], [True, True, True, False])
    """
    every = jnp.arange(rounds, dtype=counts.dtype)
    index = jnp.searchsorted(jnp.cumsum(counts), every, side="right")
    return jnp.minimum(index, len(counts) - 1).astype(jnp.int32), every < counts.sum(dtype=counts.dtype)


def actions_at(learner: Learner, index: jax.Array) -> jax.Array:
    """Returns the actions with these indices in `Counts`, int32: arms, or tuples of arms in row-major order.

    Raises:
        ValueError: if the learner does not declare that its actions are arms, or tuples of arms.
    """
    space = None if learner.interface is None else learner.interface.action
    if not isinstance(space, Space) or space.kind != "integers" or space.low != 0 or len(space.shape) > 1:
        raise ValueError(f"interface must declare arms or tuples of arms as actions, to play counts, got {space}")
    sizes = tuple([int(space.high) + 1] * int(np.prod(space.shape)))
    actions = jnp.unravel_index(index, sizes)
    return (jnp.stack(actions, axis=-1) if space.shape else actions[0]).astype(jnp.int32)


def example(spaces: Any) -> Any:
    """Returns zeros with the shapes of a pytree of spaces: floats for the kind "numbers", otherwise int32."""

    def zeros(space: Space) -> jax.Array:
        return jnp.zeros(space.shape, default_float() if space.kind == "numbers" else jnp.int32)

    return jax.tree.map(zeros, spaces, is_leaf=is_space)


def zero_other_rows(where: jax.Array, x: jax.Array) -> jax.Array:
    """Returns an array [n, ...] with zeros in the rows where `where` [n] is false."""
    return jnp.where(where.reshape(-1, *[1] * (x.ndim - 1)), x, jnp.zeros((), x.dtype))


def total_type(answers: jax.Array, counts: jax.Array, space: Any) -> Any:
    """Returns the dtype of a sum of users' answers: the dtype of counts if `space` has integers, else of answers."""
    return counts.dtype if isinstance(space, Space) and space.kind == "integers" else answers.dtype


def total_shape(answer: Answer, answers: jax.Array, counts: jax.Array) -> tuple[int, ...]:
    """Returns the shape of sums of users' answers: one sum for each action, or a single sum under full information."""
    return answers.shape if answer is full_information else (len(counts), *answers.shape)


def _totals(
    answer: Answer, index: jax.Array, is_played: jax.Array, counts: jax.Array, answers: jax.Array, space: Any
) -> jax.Array:
    """Clips played slots' answers to the space, and sums them by action, or all together under full information."""
    if isinstance(space, Space):
        answers = jnp.clip(answers, space.low, space.high)
    answers = zero_other_rows(is_played, answers.astype(total_type(answers, counts, space)))
    if answer is full_information:
        return jnp.sum(answers, axis=0, dtype=answers.dtype)
    return jnp.zeros(total_shape(answer, answers[0], counts), answers.dtype).at[index].add(answers)
