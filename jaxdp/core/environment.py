"""Environments: the problems that learners play."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, describe
from jaxdp.core.shown import html_of

Outcome = Mapping[str, jax.Array]


class WorldFn(Protocol):
    """Draws the world before the first round. Called once for each lane; every learner gets the same key."""

    def __call__(self, key: jax.Array, params: Any) -> Any: ...


class ContextFn(Protocol):
    """Returns this round's context, shown to the learner's `act` and `privatize` before the action is chosen."""

    def __call__(self, key: jax.Array, params: Any, world: Any) -> Any: ...


class ContextsFn(Protocol):
    """Returns the contexts of the next rounds, one for each of the `keys`, as `context` gives them one after the other.

    For problems whose contexts do not depend on the actions in between. `keys` are those that `context` gets.
    """

    def __call__(self, keys: jax.Array, params: Any, world: Any) -> Any: ...


class FeedbackFn(Protocol):
    """Answers an action: returns (world, feedback, outcome).

    `outcome` is a small dict of scalars that are summed over rounds, at least `pseudo_regret`: booleans are counted,
    integers are added and saturate at the largest, floats are added with compensation. A full-information feedback must
    not depend on the action.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, action: Any) -> tuple[Any, Any, Outcome]: ...


class HindsightFn(Protocol):
    """Returns metrics in hindsight, read at checkpoints: dict of arrays."""

    def __call__(self, params: Any, world: Any) -> Outcome: ...


class MeansFn(Protocol):
    """Returns the mean feedback of every action, or its range over contexts: a public array. On the host."""

    def __call__(self, params: Any) -> Any: ...


class EvaluateFn(Protocol):
    """Evaluates a learner's recommendation: dict of arrays, such as `correct` and `simple_regret`.

    Called at checkpoints, and where the learner stops.
    """

    def __call__(self, params: Any, world: Any, recommendation: Any) -> Outcome: ...


class BlockFn(Protocol):
    """Answers many rounds, as `feedback` does one after the other: returns (worlds, feedback, outcomes).

    Each has a leading axis of rounds, one for each of the `keys`, which are those that `feedback` gets. `contexts` are
    those rounds' contexts, or None. A learner may use fewer rounds: the world then continues from the last one used.
    """

    def __call__(
        self, keys: jax.Array, params: Any, world: Any, contexts: Any, actions: Any
    ) -> tuple[Any, Any, Outcome]: ...


class FeedbackTotalsFn(Protocol):
    """Answers counts of actions: (world, totals of feedback, totals of outcomes), distributed as for single rounds.

    Totals of feedback have a leading axis of actions. Full-information feedback is the same for every action: its total
    is the sum over all rounds, without that axis.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, counts: jax.Array) -> tuple[Any, Any, Outcome]: ...


class UserLevel(NamedTuple):
    """The persons behind the rounds, where one person may answer in several of them.

    Attributes:
        name: the word for a person, for example "voter".
        rounds_per_user: the largest number of rounds whose feedback depends on one person's data, >= 1, for any
            actions.
    """

    name: str
    rounds_per_user: int


class Environment(NamedTuple):
    """A problem that a learner plays. Its keys are never the learner's: every learner meets the same world.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner; called once for each distinct set of its own
            values, so that large leaves which do not vary are one object.
        init: draws the world before the first round.
        context: returns the context shown before an action, or None if the problem has no contexts.
        feedback: answers an action.
        hindsight: returns metrics in hindsight; or None.
        evaluate: evaluates a recommendation; or None.
        block: answers many rounds at once; or None.
        feedback_totals: answers counts of actions; or None.
        contexts: returns the contexts of many rounds at once, for blocks in problems with contexts; or None.
        interface: the actions that it answers, its feedback, its contexts and the recommendations that it evaluates; or
            None.
        horizon: the largest number of rounds, or None for any number.
        dims: names of the dimensions of each metric of `hindsight` and `evaluate`, where they have names.
        user_level: whose data the rounds are: a run's guarantee then has a second claim, for a person. None if persons
            are not known beyond single rounds.
        means: returns the mean feedback of every action or, with contexts, its least and largest value; None if it is
            not known in advance.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    init: WorldFn
    context: ContextFn | None
    feedback: FeedbackFn
    hindsight: HindsightFn | None = None
    evaluate: EvaluateFn | None = None
    block: BlockFn | None = None
    feedback_totals: FeedbackTotalsFn | None = None
    contexts: ContextsFn | None = None
    interface: Interface | None = None
    horizon: int | None = None
    dims: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    user_level: UserLevel | None = None
    means: MeansFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "environment")

    def _repr_html_(self) -> str:
        return html_of(self, "environment")
