"""What a learner plays against."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, described
from jaxdp.core.shown import html_of

Outcome = Mapping[str, jax.Array]


class WorldFn(Protocol):
    """The world before the first round. Called once for each lane; every learner gets the same key."""

    def __call__(self, key: jax.Array, params: Any) -> Any: ...


class ContextFn(Protocol):
    """This round's context, which the learner's `act` and `privatize` are shown, before the action is chosen."""

    def __call__(self, key: jax.Array, params: Any, world: Any) -> Any: ...


class ContextsFn(Protocol):
    """The contexts of the next rounds, one for each of the `keys`, as `context` gives them one after the other.

    For problems whose contexts do not depend on what is played meanwhile. `keys` are those that `context` gets.
    """

    def __call__(self, keys: jax.Array, params: Any, world: Any) -> Any: ...


class FeedbackFn(Protocol):
    """Answers an action: (World, feedback, outcome).

    `outcome` is a small dict of scalars that are summed over rounds, at least `pseudo_regret`: truth values are
    counted, integers are added and stop at the largest, floats are added with compensation. A full-information feedback
    must not depend on the action.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, action: Any) -> tuple[Any, Any, Outcome]: ...


class SummaryFn(Protocol):
    """Metrics in hindsight, read at checkpoints: dict of arrays."""

    def __call__(self, params: Any, world: Any) -> Outcome: ...


class MeansFn(Protocol):
    """The mean feedback of every action, or its least and its largest for any context: a public array. On the host."""

    def __call__(self, params: Any) -> Any: ...


class JudgeFn(Protocol):
    """What a learner's answer is worth: dict of arrays, such as `correct` and `simple_regret`.

    Read at checkpoints, and where the learner stops.
    """

    def __call__(self, params: Any, world: Any, answer: Any) -> Outcome: ...


class BlockFn(Protocol):
    """Answers many rounds, as `feedback` one after the other: (worlds, feedback, outcomes).

    Each has a leading axis of rounds, one for each of the `keys`, which are those that `feedback` gets. `contexts` are
    those rounds' contexts, or None. A learner may use fewer rounds: the world goes on from the last one used.
    """

    def __call__(
        self, keys: jax.Array, params: Any, world: Any, contexts: Any, actions: Any
    ) -> tuple[Any, Any, Outcome]: ...


class TallyFn(Protocol):
    """Answers counts of actions: (world, totals of feedback, totals of outcomes), with the law of single rounds.

    Totals of feedback have a leading axis of actions; not so full information, the same for every action: that is added
    up over all rounds.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, counts: jax.Array) -> tuple[Any, Any, Outcome]: ...


class Persons(NamedTuple):
    """Whose data the rounds are, where one person may answer in several of them.

    Attributes:
        name: what a person is called, for example "voter".
        rounds: how many rounds' feedback depends on one person's data at most, >= 1, whatever is played.
    """

    name: str
    rounds: int


class Environment(NamedTuple):
    """What a learner plays against. Its keys are never the learner's: every learner meets the same world.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner; called once for each distinct set of its own
            values, so that large leaves which do not vary are one object.
        init: the world before the first round.
        context: what is shown before an action, or None where the problem has no contexts.
        feedback: answers an action.
        summary: metrics in hindsight; or None.
        judge: what an answer is worth; or None.
        block: answers many rounds at once; or None.
        tally: answers counts of actions; or None.
        contexts: of many rounds at once, for blocks in problems with contexts; or None.
        interface: the actions that it answers, its feedback, its contexts and the answers that it judges; or None.
        horizon: the number of rounds that it can answer, or None for any number.
        dims: names of the dimensions of each metric of `summary` and `judge`, where they have names.
        persons: whose data the rounds are: a run's guarantee then has a second claim, of a person; None where a round
            is all that is known of anybody.
        means: the mean feedback of every action, or of contexts the least and largest that it can be; None where it is
            not known in advance.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    init: WorldFn
    context: ContextFn | None
    feedback: FeedbackFn
    summary: SummaryFn | None = None
    judge: JudgeFn | None = None
    block: BlockFn | None = None
    tally: TallyFn | None = None
    contexts: ContextsFn | None = None
    interface: Interface | None = None
    horizon: int | None = None
    dims: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    persons: Persons | None = None
    means: MeansFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return described(self, "environment")

    def _repr_html_(self) -> str:
        return html_of(self, "environment")
