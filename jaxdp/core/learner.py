"""Online learners: pure functions, each written for one lane."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, describe, format_tuple
from jaxdp.core.shown import html_of


class State(NamedTuple):
    """A learner's memory, split at the trust boundary.

    Attributes:
        private: seen by the curator alone (true counts, partial noise sums). In the shuffle model, the shuffler's
            memory.
        public: everything that has been released. `act` and `privatize` see this half only. `private` reacts to a
            release at the start of the next `update`, so that a transcript can be replayed by substituting recorded
            `public` states.
    """

    private: Any
    public: Any

    def __repr__(self) -> str:
        return format_tuple(self)


class InitFn(Protocol):
    """Returns the learner's state before the first round.

    Called once for each lane, inside the compiled program. May read: params, its own key (once). Returns a `State`,
    whose structure, shapes and dtypes every later state keeps.
    """

    def __call__(self, key: jax.Array, params: Any) -> State: ...


class ActFn(Protocol):
    """Chooses one lane's action in this round, inside the compiled program, before the environment answers.

    A replay of a transcript calls it again: equal arguments must give equal actions. May read: params, the released
    state, this round's context, its own key (once). Must not depend on: `State.private`, this round's feedback, the
    environment's keys, the engine, other lanes. Returns a pytree of `Interface.action`'s structure, the same in every
    round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any) -> Any: ...


class PrivatizeFn(Protocol):
    """The trust boundary: returns everything of this round that the curator may see.

    In the central model that is (action, feedback), and noise is added where `update` writes `public`. In the local
    model it is the message of the user's device, and noise is added here; a contextual user's action is not part of it,
    since it reveals the context. May read: params, the released state, this round's context, action and feedback, its
    own key (once). Must not depend on anything else. In a learner with blocks it must not depend on values that change
    inside a block either: there `public` is that of the block's start. Returns a pytree, the same structure in every
    round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any, action: Any, feedback: Any) -> Any: ...


class UpdateFn(Protocol):
    """Updates the state with one report, as the curator.

    Called once a round, after `privatize`. May read: params, the state, the report, its own key (once). Must not depend
    on anything that `privatize` did not return. Everything written into `State.public` is released. Returns a `State`
    of the structure, shapes and dtypes of its input.
    """

    def __call__(self, key: jax.Array, params: Any, state: State, report: Any) -> State: ...


class ClipFn(Protocol):
    """Returns the interval (low, high) to which numbers of feedback are clipped, also on the host. May read: params."""

    def __call__(self, params: Any) -> tuple[Any, Any]: ...


class DoneFn(Protocol):
    """Returns whether the learner has stopped: [] bool.

    Called after each round, so that at least one round is played. Once true, the lane is over. May read: params and the
    released state: a stopping time is public.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class RecommendFn(Protocol):
    """Returns the learner's current recommendation: the best arm, a winner, a model.

    Called at checkpoints and where the learner stops; the environment evaluates the recommendation. May read: params
    and the released state, so that a recommendation costs no privacy. Returns a pytree of `Interface.recommendation`'s
    structure.
    """

    def __call__(self, params: Any, public: Any) -> Any: ...


class BlockPlan(NamedTuple):
    """The next actions, round by round, if the learner does not change its mind.

    Attributes:
        actions: pytree of [block length, ...] arrays.
        length: [] integer, the number of planned actions; the rest of `actions` is padding.
    """

    actions: Any
    length: jax.Array


class CountPlan(NamedTuple):
    """How often each action is played next if the learner does not change its mind; the order is immaterial.

    Attributes:
        counts: [num_actions] integers >= 0; their sum is the number of rounds.
    """

    counts: jax.Array


class BlockPlanFn(Protocol):
    """Returns the actions of the next rounds, at most `limit`, as `act` would choose them from the same `public`.

    `keys` are those that `act` would get, one a round; `contexts` are those rounds' contexts, or None outside
    contextual problems.
    """

    def __call__(self, keys: jax.Array, params: Any, public: Any, contexts: Any, limit: jax.Array) -> BlockPlan: ...


class BlockUpdateFn(Protocol):
    """Applies `update` round after round, up to and including the first round after which the learner changes its plan.

    `keys` are those that `update` would get; `report` has the output of `privatize` for every planned round. Returns
    the state, and the number of rounds that it stands for, in [1, plan.length].
    """

    def __call__(
        self, keys: jax.Array, params: Any, state: State, plan: BlockPlan, report: Any
    ) -> tuple[State, jax.Array]: ...


class SlotRoundsFn(Protocol):
    """Returns the index of each slot's round (keys, actions, feedback): [block length] integers, increasing.

    An empty slot has index `block length`. For learners that do not store the rounds in playing order.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class SwitchWhenFn(Protocol):
    """Returns whether the learner is done with these blocks and may switch: [] bool; once true, always true."""

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class Blocks(NamedTuple):
    """The next rounds, in order. A run in blocks equals the run round by round, bit for bit.

    Keys come as one array, one key a round: the very keys that `act`, `privatize` and `update` get in those rounds. The
    reports of a block are those of `Learner.privatize` for each of its rounds, made with the public state at the start
    of the block.

    Attributes:
        length: rounds in a block, >= 1.
        plan: returns the actions, if the learner does not change its mind.
        update_block: updates the state with the reports.
        switch_when: when to switch to the learner's next blocks; None for the last. Lanes of a batch switch together,
            once `switch_when` holds for all that still run. Until then these blocks also play lanes that could have
            switched, and must be correct for them. Lanes that have ended run along with a `limit` of 0, and their
            results are discarded.
        slot_rounds: index of the round in each slot; None is 0, 1, 2, ...
    """

    length: int
    plan: BlockPlanFn
    update_block: BlockUpdateFn
    switch_when: SwitchWhenFn | None = None
    slot_rounds: SlotRoundsFn | None = None


class CountPlanFn(Protocol):
    """Returns the number of times that each action is played next: at most `limit` rounds, and at least one."""

    def __call__(self, key: jax.Array, params: Any, public: Any, limit: jax.Array) -> CountPlan: ...


class CountPrivatizeFn(Protocol):
    """Applies `privatize` to totals of feedback: distributed as the sum of the single rounds' reports."""

    def __call__(self, key: jax.Array, params: Any, public: Any, plan: CountPlan, totals: Any) -> Any: ...


class CountUpdateFn(Protocol):
    """Applies `update` for all of the plan's rounds."""

    def __call__(self, key: jax.Array, params: Any, state: State, plan: CountPlan, report: Any) -> State: ...


class Counts(NamedTuple):
    """The next rounds as counts of the actions. Equal in distribution to the run round by round.

    Attributes:
        plan: returns how often each action is played.
        privatize: the trust boundary, for totals of feedback; in a local learner `LocalRandomizer.total`.
        update_counts: updates the state with the report.
    """

    plan: CountPlanFn
    privatize: CountPrivatizeFn
    update_counts: CountUpdateFn


class Learner(NamedTuple):
    """An online algorithm: pure functions, each written for one lane. The type of a function states its duty.

    Attributes:
        params: (**values) -> Params. On the host: validates one grid point and calibrates its noise in float64.
        guarantee: (**values) -> Guarantee. On the host: the claim for the same values.
        init: returns the state before the first round.
        act: chooses an action from the released state.
        privatize: the trust boundary.
        update: updates the state with a report, as the curator.
        done: for problems with a stopping time; else None.
        recommend: returns the current recommendation, for problems that ask for one; else None.
        blocks: many rounds at once, in order: one after the other, each until its `switch_when` holds. Empty for none.
        counts: many rounds at once, as totals; or None.
        horizon: the horizon on which shapes or constants depend, or None; a simulator refuses another one.
        interface: the actions, feedback, contexts and recommendations that the learner supports. A simulator refuses an
            environment with others. For None it warns, and checks nothing except that the functions fit.
        min_horizon: the fewest rounds in which the learner completes all its phases; a simulator warns of fewer.
        clip: the interval to which feedback is clipped: a simulator warns if mean feedback lies outside, and can count
            the clipped entries. None if nothing is known to be clipped.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    init: InitFn
    act: ActFn
    privatize: PrivatizeFn
    update: UpdateFn
    done: DoneFn | None = None
    recommend: RecommendFn | None = None
    blocks: tuple[Blocks, ...] = ()
    counts: Counts | None = None
    horizon: int | None = None
    interface: Interface | None = None
    min_horizon: int = 1
    clip: ClipFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "learner")

    def _repr_html_(self) -> str:
        return html_of(self, "learner")
