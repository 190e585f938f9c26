"""Defines the problems that learners written in Python solve, and builds pairs of neighbouring users."""

from typing import Any, NamedTuple

import numpy as np

from jaxdp.audit.adversary import UserData

PROBLEMS = ("bandit", "contextual", "duel", "experts")
MOST_PERSONS = 3  # maximum number of persons whom pairs replace; each pair replaces one


class Setting(NamedTuple):
    """The problem of a learner in Python: its number of actions, the shape of its contexts and the range of answers.

    Attributes:
        problem: one of `PROBLEMS`.
        num_actions: number of arms, items or experts.
        context_shape: shape of a context; () if there are none.
        ends: smallest and largest answer.
    """

    problem: str
    num_actions: int
    context_shape: tuple[int, ...]
    ends: tuple[float, float]

    def check_action(self, action: Any) -> Any:
        """Returns an action as an int, or as a pair of ints in a duel; raises ValueError if it is not valid."""
        if self.problem != "duel" and type(action) is int and 0 <= action < self.num_actions:
            return action
        size, array = (2 if self.problem == "duel" else 1), np.asarray(action)
        is_whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.all(array == np.rint(array)))
        if array.size != size or not is_whole or array.min() < 0 or array.max() >= self.num_actions:
            what = "a pair of items" if size == 2 else "an action"
            raise ValueError(f"act must return {what} in [0, {self.num_actions}), got {action!r}")
        numbers = [int(number) for number in array.ravel()]
        return tuple(numbers) if size == 2 else numbers[0]

    def check_users(self, users: UserData) -> None:
        """Raises ValueError unless answers and contexts have the shapes of this problem, and at least one round."""
        rounds = len(np.atleast_1d(users.answers))
        if rounds == 0:
            raise ValueError("users must have at least one round, got none")
        answers = (rounds, *[self.num_actions] * (2 if self.problem == "duel" else 1))
        contexts = (rounds, *self.context_shape) if self.context_shape else None
        got = np.shape(users.answers), None if users.contexts is None else np.shape(users.contexts)
        if got != (answers, contexts):
            raise ValueError(f"users must have answers and contexts of shapes {(answers, contexts)}, got {got}")

    def feedback(self, answer: Any, action: Any) -> Any:
        """Returns a user's feedback to a checked action: a number, or the losses of all experts."""
        if self.problem == "experts":
            return answer.copy()
        return answer[action].item()


class Pair(NamedTuple):
    """The users of two neighbouring runs.

    The two runs differ in one round, or in all rounds of one person.

    Attributes:
        first: users of the first run.
        second: users of the second run.
        changed: [rounds] bool, the rounds in which the two runs differ.
    """

    first: UserData
    second: UserData
    changed: np.ndarray


def user_pairs(
    generator: np.random.Generator,
    setting: Setting,
    *,
    rounds: int,
    persons: np.ndarray | None,
    changes_answers: bool,
    changes_contexts: bool,
    changes_last: bool,
) -> list[Pair]:
    """Returns pairs of neighbours to try.

    Users outside the changed rounds give extreme, equal, alternating or random answers. `persons` [rounds] has the
    person of each round; None if each round has a new person. Without persons, the users of a pair differ in one early,
    middle or late round. The last round is a late round only if `changes_last`, but may be an early one if there are
    few rounds. With persons, the users differ in all rounds of one of the `MOST_PERSONS` persons with the most rounds.
    `changes_answers` and `changes_contexts` say whether a changed user has other answers, and another context.
    """
    if persons is None:
        late = (rounds - 2, rounds - 1) if changes_last else (rounds - 2,)
        changed_rounds = sorted(
            {0, 1, setting.num_actions - 1, setting.num_actions, rounds // 2, *late} & set(range(rounds))
        )
        masks = [np.arange(rounds) == changed for changed in changed_rounds]
    else:
        names, first_rounds, visits = np.unique(persons, return_index=True, return_counts=True)
        order = np.lexsort((first_rounds, -visits))
        masks = [persons == names[index] for index in order[:MOST_PERSONS]]
    contexts = _contexts(generator, setting, rounds)
    pairs = []
    for background in _answers(generator, setting, rounds):
        for changed in masks:
            answers = background.copy()
            if setting.problem == "experts":  # a constant that is added to all losses changes nothing for many learners
                is_constant = changed & (np.ptp(answers, axis=1) == 0)
                answers[is_constant] = np.where(np.arange(setting.num_actions) == 0, *setting.ends)
            other_answers, other_contexts = answers.copy(), contexts
            if changes_answers:
                other_answers[changed] = np.where(answers[changed] == setting.ends[0], *setting.ends[::-1])
            if changes_contexts and contexts is not None:
                other_contexts = np.where(changed.reshape(-1, *[1] * len(setting.context_shape)), -contexts, contexts)
            pairs.append(Pair(UserData(answers, contexts), UserData(other_answers, other_contexts), changed))
    return pairs


def _contexts(generator: np.random.Generator, setting: Setting, rounds: int) -> np.ndarray | None:
    if not setting.context_shape:
        return None
    contexts = generator.normal(size=(rounds, *setting.context_shape))
    return contexts / np.linalg.norm(contexts, axis=-1, keepdims=True)


def _answers(generator: np.random.Generator, setting: Setting, rounds: int) -> list[np.ndarray]:
    """Returns tables of users' answers, each [rounds, num_actions], or [rounds, num_actions, num_actions] in a duel."""
    low, high = setting.ends
    num_actions = setting.num_actions
    if setting.problem == "duel":
        ascending, parity = np.arange(num_actions), np.arange(rounds) % 2
        orders = [np.tile(ascending, (rounds, 1)), np.tile(ascending[::-1], (rounds, 1))]
        orders += [np.where(parity[:, None] == 0, orders[0], orders[1])]
        orders += [np.stack([generator.permutation(num_actions) for _ in range(rounds)]) for _ in range(2)]
        wins = [order[:, :, None] < order[:, None, :] for order in orders]
        ahead = (ascending[None] - ascending[:, None]) % num_actions
        is_first = (2 * ahead < num_actions) | ((2 * ahead == num_actions) & (ascending[:, None] < ascending[None]))
        wins.append(np.tile((ahead > 0) & is_first, (rounds, 1, 1)))  # in a cycle, each item beats about the next half
        shares = [np.where(np.eye(num_actions, dtype=bool), 0.5, won) for won in wins]
        coin = generator.random(rounds)[:, None, None] < 0.5  # decides a duel of an item with itself
        return [low + (high - low) * np.where(share == 0.5, coin, share) for share in shares]
    shape = rounds, num_actions
    arm, parity = np.broadcast_to(np.arange(num_actions), shape), (np.arange(rounds) % 2)[:, None]
    shares = [np.zeros(shape), np.ones(shape), arm == 0, arm == num_actions - 1, parity == arm % 2]
    shares += [generator.random(shape) < 0.5 for _ in range(2)]
    return [low + (high - low) * np.asarray(share, float) for share in shares]
