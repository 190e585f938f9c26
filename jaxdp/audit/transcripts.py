"""What an interactive learner releases to users who answer as an adversary decides, and the attack on it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.black_box import Attack
from jaxdp.audit.checks import check_alike
from jaxdp.checks import check_made
from jaxdp.core import Environment, Learner, State
from jaxdp.simulation.rounds import Keys, interact, root_keys, round_keys

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
    """What an adversary may react to.

    Attributes:
        round: [] int32, rounds played.
        actions: pytree of [rounds, ...] arrays, the plays so far; zeros from `round` on.
    """

    round: jax.Array
    actions: Any


class Transcript(NamedTuple):
    """What happened, round after round.

    Attributes:
        actions: pytree of [rounds, ...] arrays.
        reports: pytree of [rounds, ...] arrays.
        before: pytree of [rounds, ...] arrays, `public` before each round.
        after: the same after each round.
    """

    actions: Any
    reports: Any
    before: Any
    after: Any


def by_action(answers: Any, past: Past, action: jax.Array) -> jax.Array:
    """One answer for each arm: the user answers to the arm played."""
    del past
    return answers[action]


def by_pair(answers: Any, past: Past, action: jax.Array) -> jax.Array:
    """A matrix of answers, one for each ordered pair: the user answers to the duel of the left with the right arm."""
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


def play(learner: Learner, answer: Answer, key: jax.Array, params: Any, users: Users) -> Transcript:
    """Plays a learner against users, with the program of the simulator.

    Args:
        learner: who plays.
        answer: (answers, past, action) -> feedback, where answers are one user's. What it does with past and action is
            the adversary's strategy: a user's would-be answers may depend on earlier plays.
        key: of everything.
        params: the learner's.
        users: one for each round.

    Returns:
        The transcript.
    """
    rounds = num_rounds(users)
    root, key_init, key_feedback = (jax.random.fold_in(key, word) for word in range(3))
    roots = root_keys(key_feedback, root)
    state = jax.tree.map(jnp.asarray, learner.init(key_init, params))
    users = jax.tree.map(jnp.asarray, users)
    environment, world = _asked(learner, answer, params, state, users, rounds)
    both = {"learner": params, "environment": None}

    def step(carry, round_):
        state, world = carry
        keys = round_keys(roots, round_, rounds)
        next_state, world, events = interact(learner, environment, keys, both, state, world)
        return (next_state, world), Transcript(events.action, events.report, state.public, next_state.public)

    return jax.lax.scan(step, (state, world), jnp.arange(rounds, dtype=jnp.int32))[1]


def keys_of(key: jax.Array, rounds: int) -> tuple[jax.Array, Keys]:
    """The key of `init`, and those of each round [rounds], with which `play` plays."""
    root, key_init, key_feedback = (jax.random.fold_in(key, word) for word in range(3))
    roots, every = root_keys(key_feedback, root), jnp.arange(rounds, dtype=jnp.int32)
    return key_init, jax.vmap(lambda r: round_keys(roots, r, rounds))(every)


def learner_attack(
    learner: Learner,
    values: Mapping[str, float],
    neighbours: tuple[Users, Users],
    *,
    answer: Answer = by_action,
    look: Callable[[Any], Any] | None = None,
) -> Attack:
    """The attack on a learner's claim: neighbouring users, and all that the claim lets an adversary see.

    Who sees what follows from the claim's trust model. *Central*: every play and every `public` state. *Local*: the
    report of the one user that differs, and `public` before it; `act` and `privatize` together are the randomizer,
    (context, would-be answers) its input. *Joint*: as central, but the differing user's own play is left out.

    >>> import jaxdp
    >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=2)
    >>> users = (Users(np.asarray([[1, 0], [0, 0]], np.int32)), Users(np.asarray([[0, 0], [0, 0]], np.int32)))
    >>> attack = learner_attack(learner, {"epsilon": 1.0}, users)
    >>> jaxdp.audit.audit(jax.random.key(0), attack, trials=20_000).verdict
    'consistent'

    Args:
        learner: to attack.
        values: a grid point of its params.
        neighbours: two runs' users, which differ in one round.
        answer: (answers, past, action) -> feedback; see `play`.
        look: post-processing of what is seen, to make the attack sharper; None is all of it.

    Returns:
        The attack, for `audit`.

    Raises:
        ValueError: if neighbours do not have the same shapes and dtypes, or do not differ in exactly one round; or if
            the claim is in the shuffle model, whose transcripts are not known here.
    """
    check_made("learner", learner, Learner)
    claim, params = learner.guarantee(**values), learner.params(**values)
    if claim.trust_model == "shuffle":
        raise ValueError("trust_model must be central, local or joint for this attack, got 'shuffle'")
    changed = _changed_round(*neighbours)
    rounds = num_rounds(neighbours[0])

    def seen(transcript: Transcript) -> Any:
        if claim.trust_model == "local":
            before = jax.tree.map(lambda x: x[changed], transcript.before) if changed else None
            return jax.tree.map(lambda x: x[changed], transcript.reports), before
        others = np.asarray([r for r in range(rounds) if claim.trust_model == "central" or r != changed], np.int32)
        return jax.tree.map(lambda x: x[others], transcript.actions), transcript.after

    def release(key: jax.Array, params: Any, users: Users) -> Any:
        if claim.trust_model == "local":  # what comes later follows from the report and from others' data
            users = jax.tree.map(lambda x: x[: changed + 1], users)
        output = seen(play(learner, answer, key, params, users))
        return output if look is None else look(output)

    return Attack(release, params, neighbours, claim)


def _asked(
    learner: Learner, answer: Answer, params: Any, state: State, users: Users, rounds: int
) -> tuple[Environment, Past]:
    """An environment that asks one user a round, and its world: what has been played."""

    def context(key, params, world: Past):
        del key, params
        return _user(users.contexts, world)

    def feedback(key, params, world: Past, action):
        del key, params
        said = answer(_user(users.answers, world), world, action)
        actions = jax.tree.map(lambda all_, one: all_.at[world.round].set(one), world.actions, action)
        return Past(world.round + 1, actions), said, {}

    first = None if users.contexts is None else jax.tree.map(lambda x: x[0], users.contexts)
    action = jax.eval_shape(learner.act, jax.random.key(0), params, state.public, first)
    actions = jax.tree.map(lambda leaf: jnp.zeros((rounds, *leaf.shape), leaf.dtype), action)
    environment = Environment(
        params=dict,
        init=lambda key, params: None,
        context=None if users.contexts is None else context,
        feedback=feedback,
    )
    return environment, Past(jnp.int32(0), actions)


def _user(data: Any, world: Past) -> Any:
    return jax.tree.map(lambda x: x[world.round], data)


def _changed_round(first: Users, second: Users) -> int:
    rounds = num_rounds(first)
    check_alike("neighbours", first, second)
    differs = np.zeros(rounds, bool)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        differs |= ((a != b) & ((a == a) | (b == b))).reshape(rounds, -1).any(axis=1)  # NaN is NaN
    if differs.sum() != 1:
        raise ValueError(f"neighbours must differ in exactly one round, got {np.flatnonzero(differs).tolist()}")
    return int(np.flatnonzero(differs)[0])
