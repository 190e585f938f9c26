"""Types of environments, the problems that learners play, and of their functions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, describe
from jaxdp.core.shown import html_of
from jaxdp.core.visits import Visits

Outcome = Mapping[str, jax.Array]


class WorldFn(Protocol):
    """Draws the world before the first round. It is called once in each lane, with the same key for every learner."""

    def __call__(self, key: jax.Array, params: Any) -> Any: ...


class ContextFn(Protocol):
    """Returns this round's context, which is passed to the learner's `act` and `privatize`."""

    def __call__(self, key: jax.Array, params: Any, world: Any) -> Any: ...


class ContextsFn(Protocol):
    """Returns the contexts of the next rounds, one for each key.

    `keys` are the keys that `context` gets in these rounds, and the contexts equal the results of `context`. This
    requires that contexts do not depend on actions.
    """

    def __call__(self, keys: jax.Array, params: Any, world: Any) -> Any: ...


class FeedbackFn(Protocol):
    """Returns the response to an action: (world, feedback, outcome).

    `world` is the new state of the environment. `outcome` is a small dict of scalars, such as `pseudo_regret` or
    `loss`. The simulator sums each scalar over rounds. It counts booleans, adds integers with saturation at the
    smallest and the largest integer, and adds floats by compensated summation. Full-information feedback must not
    depend on the action.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, action: Any) -> tuple[Any, Any, Outcome]: ...


class HindsightFn(Protocol):
    """Returns hindsight metrics, as a dict of arrays. It is called at checkpoints."""

    def __call__(self, params: Any, world: Any) -> Outcome: ...


class MeansFn(Protocol):
    """Returns the public mean feedback of every action or, with contexts, the smallest and the largest mean.

    It is called on the host.
    """

    def __call__(self, params: Any) -> Any: ...


class EvaluateFn(Protocol):
    """Evaluates a learner's recommendation.

    Returns a dict of arrays, such as `correct` and `simple_regret`. It is called at checkpoints, and when the learner
    stops.
    """

    def __call__(self, params: Any, world: Any, recommendation: Any) -> Outcome: ...


class BlockFn(Protocol):
    """Returns the responses to many actions: (worlds, feedback, outcomes).

    The responses equal the results of `feedback`, with a leading axis of rounds. `keys` are the keys that `feedback`
    gets in these rounds; `contexts` are the contexts of the rounds, or None if the problem has no contexts. If the
    learner uses fewer rounds, the world of the last used round is kept.
    """

    def __call__(
        self, keys: jax.Array, params: Any, world: Any, contexts: Any, actions: Any
    ) -> tuple[Any, Any, Outcome]: ...


class FeedbackTotalsFn(Protocol):
    """Returns the response to counts of actions: (world, totals of feedback, totals of outcomes).

    Totals have the same distribution as in a run round by round. Totals of feedback have a leading axis of actions.
    Full-information feedback is the same for every action: its total is the sum over all rounds, without this axis.
    """

    def __call__(self, key: jax.Array, params: Any, world: Any, counts: jax.Array) -> tuple[Any, Any, Outcome]: ...


class UnheardFn(Protocol):
    """Plays one action in `rounds` >= 0 rounds without feedback to the learner.

    Returns (world, totals of outcomes). Totals are sums over these rounds, as in a run round by round. Random outcomes,
    such as the winner of a duel, are omitted. Feedback of later rounds may depend on these rounds only through their
    number.
    """

    def __call__(self, params: Any, world: Any, action: Any, rounds: jax.Array) -> tuple[Any, Outcome]: ...


class UserLevel(NamedTuple):
    """The persons who give feedback, for environments in which a person may give feedback in several rounds.

    Attributes:
        name: the word for a person, for example "voter".
        rounds_per_user: the maximum number of rounds, >= 1, in which feedback depends on one person's data; valid for
            any actions.
    """

    name: str
    rounds_per_user: int


class Delays(NamedTuple):
    """Public delays: the feedback of round t reaches the learner at the end of round t + delay.

    Attributes:
        table: function that maps the horizon to the delay of each round, [horizon] int64 >= 0.
        text: a description for messages.
    """

    table: Callable[[int], np.ndarray]
    text: str

    def __repr__(self) -> str:
        return self.text


def repeat_outcome(outcome: Outcome, rounds: jax.Array) -> dict[str, jax.Array]:
    """Returns the totals over `rounds` rounds of an outcome that is the same in each round.

    Args:
        outcome: dict of [] floats and bools.
        rounds: [] integer >= 0.
    """

    def total(value: jax.Array) -> jax.Array:
        if value.dtype == bool:
            return jnp.where(value, rounds, 0)
        return jnp.where(rounds > 0, value * rounds.astype(value.dtype), 0)  # 0 rounds give 0, even for NaN

    return {name: total(jnp.asarray(value)) for name, value in outcome.items()}


class Environment(NamedTuple):
    """A problem that a learner plays. It never receives the learner's keys, so all learners play in the same world.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner. Called once for each distinct set of values, so
            that grid points with equal values share large leaves.
        init: draws the world before the first round.
        context: returns the context shown before an action, or None if the problem has no contexts.
        feedback: returns the response to an action.
        hindsight: returns hindsight metrics; None if there are none.
        evaluate: evaluates a recommendation; None if recommendations are not evaluated.
        block: returns the responses to the actions of many rounds; None if not supported.
        feedback_totals: returns the response to counts of actions; None if not supported.
        contexts: returns the contexts of many rounds at once, for blocks in problems with contexts; None if not
            supported.
        interface: the spaces of actions, feedback, contexts and recommendations; None if not specified.
        horizon: the maximum number of rounds; None if there is no maximum.
        dims: maps metrics of `hindsight` and `evaluate` to the names of their dimensions. Metrics may be left out of
            this map; the dimensions of a metric NAME are then NAME_0, NAME_1, ...
        user_level: the persons who give feedback. If it is given, a run's guarantee also has a claim for a person,
            unless the learner's claim is already for a person. None if it is not known which rounds share a person.
        means: returns the mean feedback of every action or, with contexts, the smallest and the largest mean; None if
            means are not known in advance.
        visits: the schedule of people; the context of a round is then a `Visit`. None if rounds are not assigned to
            people.
        delays: the public delays of feedback, set by `jaxdp.delayed` or `jaxdp.batched`; None without delays.
        unheard: plays one action in many rounds without feedback to the learner; None if not supported.
        drawn: names of the outcomes that are random in each round; `unheard` omits them.
        made_by: the factory and its arguments, for `repr` and tables.
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
    visits: Visits | None = None
    delays: Delays | None = None
    unheard: UnheardFn | None = None
    drawn: tuple[str, ...] = ()
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "environment")

    def _repr_html_(self) -> str:
        return html_of(self, "environment")
