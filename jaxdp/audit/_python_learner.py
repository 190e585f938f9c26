"""Attacks the claims of stateful learners in plain Python, and measures their regret in jaxdp's environments."""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxdp.audit._python_attack import PythonAuditResult, attack_runs
from jaxdp.audit._python_methods import (
    WrongArgumentError,
    as_function,
    check_method,
    check_numbers,
    keep_global_generators,
    make_learner,
    observer,
    takes_nothing,
)
from jaxdp.audit._python_regret import play_worlds
from jaxdp.audit._python_users import PROBLEMS, Setting
from jaxdp.audit.adversary import UserData
from jaxdp.audit.black_box import FEWEST_TRIALS, MOST_TRIALS
from jaxdp.core import Environment, Guarantee
from jaxdp.core.ids import check_ids
from jaxdp.validation import check_choice, check_count, check_epsilon, check_key, check_probability

if TYPE_CHECKING:
    import xarray as xr

STATED = "stated by the author of the code"


@dataclass(frozen=True, kw_only=True)
class PythonLearner:
    """A stateful learner written in ordinary Python, as returned by `python_learner`.

    Attributes:
        make: () -> a new learner; or (generator) -> a new learner, for a NumPy generator.
        act: (learner, *context) -> action.
        update: (learner, *context, action, feedback) -> anything.
        observe: learner -> numbers, or None if the adversary sees only the actions.
        setting: the problem that the learner plays.
        guarantee: the claim to attack.
    """

    make: Callable[..., Any]
    act: Callable[..., Any]
    update: Callable[..., Any]
    observe: Callable[[Any], Any] | None
    setting: Setting
    guarantee: Guarantee

    def run(self, seed: int, users: UserData) -> tuple[np.ndarray, np.ndarray]:
        """Plays one run against fixed users.

        Args:
            seed: seed of NumPy's and Python's global generators, and of the generator that `make` may take.
            users: the users, one in each round.

        Returns:
            The actions, [rounds] int64, or [rounds, 2] in a duel; and the observed numbers after each round, [rounds,
            numbers] float64, with no numbers if `observe` is None.

        Raises:
            RuntimeError: if the learner or a function `observe` fails, or an action is invalid; the message names the
                round, except if `make` fails.
            ValueError: if the arrays of `users` do not have the shapes that the problem needs; if `observe` names an
                attribute that the learner does not have, or that has no numbers; if `observe` returns NaN, text,
                complex numbers, no numbers, or not equally many numbers in each round.
        """
        users = UserData(*(None if part is None else np.asarray(part) for part in users))
        self.setting.check_users(users)
        with keep_global_generators():
            return self._run(np.random.SeedSequence(seed).generate_state(4), users)

    def _run(self, words: np.ndarray, users: UserData) -> tuple[np.ndarray, np.ndarray]:
        """Plays one run from seed words; returns actions and observed numbers. Global generators are not restored."""
        answers, contexts = users.answers, users.contexts
        return self.play_rounds(
            words,
            len(answers),
            None if contexts is None else lambda round_: np.array(contexts[round_]),  # a learner may write into it
            lambda round_, action: self.setting.feedback(answers[round_], action),
        )

    def play_rounds(
        self,
        words: np.ndarray,
        rounds: int,
        context_of: Callable[[int], Any] | None,
        answer: Callable[[int, Any], Any],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Makes a learner and plays rounds, with contexts and feedback from the given functions.

        Args:
            words: seed words of the generator that `make` may take, and of the global generators. The states of the
                global generators are not restored.
            rounds: number of rounds, >= 1.
            context_of: round, counted from 0 -> context; None if the problem has no contexts.
            answer: (round, action) -> feedback.

        Returns:
            The actions and the observed numbers, as from `run`.

        Raises:
            RuntimeError: as in `run`.
            ValueError: as in `run`, if `observe` is wrong.
        """
        actions, observed, round_ = [], [], 0
        learner = make_learner(self.make, words)
        try:
            for round_ in range(rounds):
                context = () if context_of is None else (context_of(round_),)
                action = self.setting.check_action(self.act(learner, *context))
                self.update(learner, *context, action, answer(round_, action))
                actions.append(action)
                if self.observe is not None:
                    observed.append(self.observe(learner))
        except WrongArgumentError:
            raise
        except Exception as error:
            when = f"in round {round_}, counted from 0"
            raise RuntimeError(f"the learner failed {when}: {type(error).__name__}: {error}") from error
        sizes = {len(numbers) for numbers in observed}
        if len(sizes) > 1:
            raise ValueError(f"observe must return as many numbers after every round, got {sorted(sizes)}")
        if sizes == {0}:
            raise ValueError("observe must return at least one number after every round, got none")
        numbers = np.asarray(observed, float).reshape(rounds, -1)
        check_numbers(self.observe, learner, numbers)
        return np.asarray(actions), numbers

    def audit(
        self,
        key: jax.Array,
        *,
        rounds: int = 12,
        persons: Sequence[int] | None = None,
        trials: int = 40_000,
        confidence: float = 0.95,
        progress: bool = True,
    ) -> PythonAuditResult:
        """Attacks the claim: chooses two neighbours by pilot runs, and attacks them by fresh runs.

        An attack sees only short runs. A mistake stays hidden if it needs more rounds, other users, or numbers that
        `observe` does not name. If `observe` names no numbers, the verdict is often "nothing shown".

        Args:
            key: a typed PRNG key.
            rounds: number of rounds, >= 2; usually 4 to 16.
            persons: the person of each round, `rounds` integers, for a claim of the unit "person"; neighbours then
                differ in all rounds of one person. If None, neighbours differ in one round.
            trials: fresh runs under each of the two neighbours, >= 100; for a claim on epsilon the average number. The
                pilot runs are additional.
            confidence: confidence of the lower bound, in (0, 1).
            progress: whether to show a line with the time left.

        Returns:
            The result, with the neighbours.

        Warns:
            UserWarning: if equal seeds give different runs.

        Raises:
            RuntimeError: if the learner fails, as in `run`.
            ValueError: if an argument is out of range, `persons` does not have `rounds` entries, or `persons` are given
                for a unit other than "person", or missing for the unit "person"; if `observe` is wrong, as in `run`; if
                the adversary sees neither actions nor numbers; or if the claim's `sensitive_fields` names something
                other than answers and contexts.
        """
        check_key(key)
        check_count("rounds", rounds, 2)
        check_count("trials", trials, FEWEST_TRIALS, maximum=MOST_TRIALS)
        check_probability("confidence", confidence)
        if persons is not None and len(persons) != rounds:
            raise ValueError(f"persons must name the person of each of {rounds} rounds, got {len(persons)}")
        if persons is None and self.guarantee.unit == "person":
            raise ValueError('persons must name the person of each round for a claim of the unit "person", got None')
        if persons is not None and self.guarantee.unit != "person":
            raise ValueError(
                "persons must be None for a claim about one round: for a person with k rounds attack "
                f'guarantee.at_user_level(k, privacy_unit="one person"), got {self.guarantee}'
            )
        self._check_view()
        with keep_global_generators():
            return attack_runs(
                key,
                self._run,
                self.setting,
                self.guarantee,
                rounds=rounds,
                persons=None if persons is None else check_ids("persons", persons),
                observes=self.observe is not None,
                trials=trials,
                confidence=confidence,
                progress=progress,
            )

    def _check_view(self) -> None:
        """Raises ValueError if the claim shows neither actions nor numbers, or names unknown fields as sensitive."""
        claim = self.guarantee
        if (
            self.observe is None
            and claim.trust_model in ("central", "shuffle")
            and "action" not in claim.adversary_view
        ):
            raise ValueError(
                f"observe must name the numbers that are seen if the claim publishes no actions, got none for {claim}"
            )
        known = ("answers", "contexts") if self.setting.context_shape else ("answers",)
        for name in claim.sensitive_fields or ():
            check_choice("sensitive_fields", name, known)

    def regret(
        self,
        world: Environment,
        *,
        horizon: int,
        num_seeds: int,
        key: jax.Array,
        checkpoints: Any = None,
        jobs: int = 1,
        progress: bool = True,
        **values: float,
    ) -> "xr.Dataset":
        """Measures regret on an environment of jaxdp, with the feedback that `jaxdp.sweep` gives to the same actions.

        Args:
            world: an environment with the actions, feedback and contexts of the learner's problem, without delays and
                visits, with outcomes and hindsight metrics that are scalars.
            horizon: number of rounds.
            num_seeds: number of runs.
            key: a typed PRNG key; seed i meets the world of seed i of a sweep with this key.
            checkpoints: rounds at which outcomes are recorded, as in `jaxdp.simulator`.
            jobs: number of processes, >= 1. With more than one, a script needs `if __name__ == "__main__":`.
            progress: whether to show a line with the time left.
            **values: values of the world.

        Returns:
            Dataset with dimensions seed and round: the sums of the world's outcomes up to each checkpoint, such as
            pseudo_regret, and the world's hindsight metrics there.

        Raises:
            RuntimeError: if the learner fails, as in `run`.
            ValueError: if an argument is out of range, the world does not fit the problem, or the world ends before the
                horizon.
        """
        with keep_global_generators():
            return play_worlds(
                dataclasses.replace(self, observe=None),
                world,
                horizon=check_count("horizon", horizon),
                num_seeds=check_count("num_seeds", num_seeds),
                key=key,
                checkpoints=checkpoints,
                jobs=check_count("jobs", jobs),
                progress=progress,
                values=values,
            )


def python_learner(
    make: Callable[..., Any],
    *,
    num_actions: int,
    guarantee: Guarantee | float,
    problem: str = "bandit",
    act: str | Callable[..., Any] = "act",
    update: str | Callable[..., Any] = "update",
    observe: Sequence[str] | Callable[[Any], Any] = (),
    context_shape: tuple[int, ...] = (),
    ends: tuple[float, float] = (0, 1),
) -> PythonLearner:
    """Wraps a stateful learner written in ordinary Python, to attack its claim and to measure its regret.

    NumPy's and Python's global generators are seeded before every run, and restored afterwards. If the code draws from
    another source, an audit's bounds are valid, but cannot be reproduced. If the code seeds a generator with a
    constant, every run has the same noise, and an attack can refute the claim. Runs must be independent: bounds may be
    wrong if a class or a module keeps state from one learner to the next, or if the code reads a clock.

    Args:
        make: () -> a new learner; or (generator) -> a new learner, if it takes one argument without a default.
        num_actions: number of arms, of items in a duel, or of experts; >= 2.
        guarantee: the claim, or the epsilon of a pure claim in the central model about one round's feedback; contexts
            are then public. If contexts are private, a user's action may reveal the user's context. The claim must then
            be in the joint model, in which the adversary does not see the action of that user. In other models the
            adversary sees every action if the claim's `adversary_view` names "action". Otherwise the adversary sees no
            action or, in the local model, every action except the actions of the user who differs. An audit ignores
            the rest of `adversary_view`.
        problem: "bandit" (feedback is the reward of the arm), "contextual" (a bandit with a context in each round),
            "duel" (an action is a pair of items; feedback is `ends[1]` if the first one won, else `ends[0]`) or
            "experts" (feedback is the loss of every expert).
        act: a method's name, or a function (learner, *context) -> action.
        update: a method's name, or a function (learner, *context, action, feedback). Only "contextual" has a context.
        observe: the numbers that the adversary sees after each round, in addition to actions: names of attributes (such
            as released bounds), or a function learner -> numbers. If empty, the adversary sees at most actions.
        context_shape: shape of a context; only for "contextual". An audit draws contexts of Euclidean norm 1 along
            the last axis.
        ends: smallest and largest reward or loss, increasing and finite. The users of an audit give only these two.

    Returns:
        The wrapped learner, with the methods `audit` and `regret`. The call makes one learner, to check its methods.

    Raises:
        RuntimeError: if `make` fails.
        ValueError: if an argument is invalid, the learner has no such methods, or the methods take other arguments.

    Examples:
        >>> class NoisyLeader:  # plays each arm twice, then keeps to the one with the larger noisy total
        ...     def __init__(self):
        ...         self.round, self.totals = 0, np.zeros(2)
        ...     def act(self):
        ...         return self.round % 2 if self.round < 4 else self.best
        ...     def update(self, arm, reward):
        ...         self.totals[arm] += reward * (self.round < 4)
        ...         self.round += 1
        ...         if self.round == 4:
        ...             self.best = int(np.argmax(self.totals + np.random.laplace()))  # one draw for both arms
        >>> learner = python_learner(NoisyLeader, num_actions=2, guarantee=1.0)
        >>> actions, _ = learner.run(0, UserData(np.zeros((6, 2))))
        >>> actions[:4].tolist()
        [0, 1, 0, 1]

        `learner.audit(jax.random.key(0))` reports a violation.
    """
    if not callable(make):
        raise ValueError(f"make must be a function or a class that makes a new learner, got {make!r}")
    check_choice("problem", problem, PROBLEMS)
    check_count("num_actions", num_actions, 2)
    if not isinstance(context_shape, tuple) or (problem == "contextual") != bool(context_shape):
        raise ValueError(
            f'context_shape must be a tuple such as (2,) for "contextual" and () for others, got {context_shape!r} for '
            f'"{problem}"'
        )
    for size in context_shape:
        check_count("context_shape", size)
    if np.shape(ends) != (2,) or not -np.inf < ends[0] < ends[1] < np.inf:
        raise ValueError(f"ends must be two increasing finite numbers, got {ends}")
    if not isinstance(guarantee, Guarantee):
        check_epsilon(guarantee)
        guarantee = Guarantee.pure(
            guarantee,
            trust_model="central",
            privacy_unit="the feedback of one round",
            argument=STATED,
            sensitive_fields=("answers",),
        )
    learner = PythonLearner(
        make=make,
        act=as_function("act", act),
        update=as_function("update", update),
        observe=observer(observe),
        setting=Setting(problem, num_actions, context_shape, ends),
        guarantee=guarantee,
    )
    with keep_global_generators():
        instance = make_learner(make, np.random.SeedSequence(0).generate_state(4))
    if instance is None or isinstance(instance, type):
        raise ValueError(f"make must return a new learner, got {instance!r}")
    context = ("context",) if context_shape else ()
    check_method("act", act, instance, context)
    check_method("update", update, instance, (*context, "action", "feedback"))
    return learner


def read_python_learner(name: str) -> PythonLearner:
    """Imports a learner from "module:name": a `PythonLearner`, or a function without arguments that returns one.

    Raises:
        ValueError: if there is no such module or name, or the object is neither.
    """
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"python must be module:name, such as my_module:my_learner, got {name}")
    sys.path.insert(0, "")  # finds modules in the current working directory
    try:
        named = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"python must be module:name of an object that can be imported, got {name}: {error}"
        ) from error
    finally:
        sys.path.remove("")
    learner = named() if takes_nothing(named) and not isinstance(named, type) else named
    if not isinstance(learner, PythonLearner):
        raise ValueError(
            "python must name a result of jaxdp.audit.python_learner, or a function without arguments that returns "
            f"one, got {learner!r}"
        )
    return learner
