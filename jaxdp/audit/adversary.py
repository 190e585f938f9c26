"""Users who answer as an adversary decides, as an environment for every engine of the simulator."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Learner, Space, default_float
from jaxdp.core.interface import is_space

Answer = Callable[[Any, "Past", Any], Any]


class Users(NamedTuple):
    """The private data of a run: one user a round, who would answer to any action.

    Attributes:
        answers: pytree of [rounds, ...] arrays, what each user would answer; an `Answer` reads it.
        contexts: pytree of [rounds, ...] arrays; None where the problem has no contexts.
    """

    answers: Any
    contexts: Any = None


class Past(NamedTuple):
    """What an adversary may react to: the transcript so far, as far as the claim lets anybody see it.

    Arrays hold zeros from `round` on. Within a block, and within rounds that are played as one total, only the plays
    are added (in problems with contexts, and in blocks whose reports are one sum, not even these): what is released is
    seen at the end.

    Attributes:
        round: [] integer, rounds played.
        actions: pytree of [rounds, ...] arrays, the plays so far.
        public: pytree of [rounds, ...] arrays, `public` after each round; after each block or total, at the round with
            which it began.
        reports: pytree of [rounds, ...] arrays; None where reports are not seen, and of totals.
    """

    round: jax.Array
    actions: Any
    public: Any = None
    reports: Any = None


def by_action(answers: Any, past: Past, action: jax.Array) -> jax.Array:
    """One answer for each arm: the user answers to the arm played.

    Args:
        answers: [num_arms, ...] of the user.
        past: is not looked at.
        action: [] integer, the arm.
    """
    del past
    return answers[action]


def by_pair(answers: Any, past: Past, action: jax.Array) -> jax.Array:
    """A matrix of answers, one for each ordered pair: the user answers to the duel of the left with the right arm.

    Args:
        answers: [num_arms, num_arms, ...] of the user.
        past: is not looked at.
        action: [2] integer, the left arm and the right one.
    """
    del past
    return answers[action[0], action[1]]


def whole(answers: Any, past: Past, action: Any) -> Any:
    """Full information: the user shows everything, whatever is played."""
    del past, action
    return answers


def num_rounds(users: Users) -> int:
    """How many users there are.

    Raises:
        ValueError: if there is none, or leading axes differ.
    """
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(users)}
    if len(lengths) != 1 or lengths in ({()}, {(0,)}):
        raise ValueError(f"users must have one leading axis of rounds, at least one, got {sorted(lengths)}")
    return lengths.pop()[0]


def asked(
    learner: Learner,
    answer: Answer,
    person: Callable[[jax.Array, Past], Users],
    past_of: Callable[[jax.Array, Any], Past],
    actions: Any,
    *,
    rounds: int,
    with_contexts: bool,
) -> Environment:
    """An environment that asks one user a round. Its world is the number of rounds that were played.

    Args:
        learner: who asks.
        answer: (answers, past, action) -> feedback.
        person: (round, past) -> that round's user.
        past_of: (round, plays before it) -> what an adversary sees.
        actions: pytree of [rounds, ...] arrays, the plays so far; zeros after them.
        rounds: how many there are.
        with_contexts: whether users have contexts.

    Returns:
        The environment, with blocks; and with tallies where the learner's actions are numbered.
    """

    def context(key, params, world):
        del key, params
        return person(world, past_of(world, actions)).contexts

    def said(round_: jax.Array, actions: Any, action: Any) -> Any:
        past = past_of(round_, actions)
        return answer(person(round_, past).answers, past, action)

    def feedback(key, params, world, action):
        del key, params
        return world + 1, said(world, actions, action), {}

    def all_said(places: jax.Array, planned: Any) -> Any:
        """What users say to plays of the rounds `places`, who know the plays before their own.

        Users with contexts know the plays before the first of these rounds, as when they showed their contexts. Blocks
        with a total ask one round at a time: their users know the plays before the block.
        """
        if with_contexts:
            return jax.vmap(lambda round_, action: said(round_, actions, action))(places, planned)
        known = jax.tree.map(lambda all_, new: all_.at[places].set(new, mode="drop"), actions, planned)

        def one(round_: jax.Array, action: Any) -> Any:
            earlier = jnp.arange(rounds, dtype=round_.dtype) < round_
            return said(round_, jax.tree.map(lambda x: kept(earlier, x), known), action)

        return jax.vmap(one)(places, planned)

    def block(keys, params, world, contexts, actions):
        del params, contexts
        places = world + jnp.arange(len(keys), dtype=world.dtype)
        return places + 1, all_said(places, actions), {}

    def contexts(keys, params, world):
        del params
        places = world + jnp.arange(len(keys), dtype=world.dtype)
        return jax.vmap(lambda round_: person(round_, past_of(round_, actions)).contexts)(places)

    def tally(key, params, world, counts):
        del key, params
        index, is_played = in_order(counts, rounds)
        places = jnp.where(is_played, world + jnp.arange(rounds, dtype=world.dtype), rounds)
        feedback = all_said(places, numbered(learner, index))
        assert learner.interface is not None
        added = jax.tree.map(
            lambda said, space: _totals(answer, index, is_played, counts, said, space),
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
        tally=tally,
        contexts=contexts if with_contexts else None,
    )


def in_order(counts: jax.Array, rounds: int) -> tuple[jax.Array, jax.Array]:
    """Plays as counts, put in the order of actions.

    Args:
        counts: [num_actions] integers, how often each is played.
        rounds: at most as many plays as these.

    Returns:
        [rounds] integers, which action each place plays; and [rounds] bool, whether it is played at all.

    Examples:
        >>> index, is_played = in_order(jnp.array([1, 0, 2]), 4)
        >>> index.tolist(), is_played.tolist()
        ([0, 2, 2, 2], [True, True, True, False])
    """
    every = jnp.arange(rounds, dtype=counts.dtype)
    index = jnp.searchsorted(jnp.cumsum(counts), every, side="right")
    return jnp.minimum(index, len(counts) - 1).astype(jnp.int32), every < counts.sum(dtype=counts.dtype)


def numbered(learner: Learner, index: jax.Array) -> jax.Array:
    """The actions of these numbers, as `Counts` number them: arms, or ordered pairs in the order of a flattened matrix.

    Args:
        learner: whose actions they are.
        index: [...] integers.

    Returns:
        [..., *shape of an action] int32.

    Raises:
        ValueError: if the learner does not declare that its actions are arms, or tuples of them.
    """
    space = None if learner.interface is None else learner.interface.action
    if not isinstance(space, Space) or space.kind != "integers" or space.low != 0 or len(space.shape) > 1:
        raise ValueError(f"interface must say that actions are arms or tuples of arms to play counts, got {space}")
    each = tuple([int(space.high) + 1] * int(np.prod(space.shape)))
    actions = jnp.unravel_index(index, each)
    return (jnp.stack(actions, axis=-1) if space.shape else actions[0]).astype(jnp.int32)


def example(spaces: Any) -> Any:
    """Zeros of the shapes and kinds that a pytree of spaces tells."""

    def zeros(space: Space) -> jax.Array:
        return jnp.zeros(space.shape, default_float() if space.kind == "numbers" else jnp.int32)

    return jax.tree.map(zeros, spaces, is_leaf=is_space)


def kept(where: jax.Array, x: jax.Array) -> jax.Array:
    """[n, ...] with zeros in all rows but those `where` [n] is true."""
    return jnp.where(where.reshape(-1, *[1] * (x.ndim - 1)), x, jnp.zeros((), x.dtype))


def total_type(said: jax.Array, counts: jax.Array, space: Any) -> Any:
    """The dtype of what users' answers of a space add up to: of whole numbers that of counts."""
    return counts.dtype if isinstance(space, Space) and space.kind == "integers" else said.dtype


def total_shape(answer: Answer, said: jax.Array, counts: jax.Array) -> tuple[int, ...]:
    """The shape of what users' answers add up to: by action, but for full information, which is of all plays."""
    return said.shape if answer is whole else (len(counts), *said.shape)


def _totals(
    answer: Answer, index: jax.Array, is_played: jax.Array, counts: jax.Array, said: jax.Array, space: Any
) -> jax.Array:
    """What users said, added up: what so many users can say within the space, as `Counts` are promised."""
    if isinstance(space, Space):
        said = jnp.clip(said, space.low, space.high)
    said = kept(is_played, said.astype(total_type(said, counts, space)))
    if answer is whole:
        return jnp.sum(said, axis=0, dtype=said.dtype)
    return jnp.zeros(total_shape(answer, said[0], counts), said.dtype).at[index].add(said)
