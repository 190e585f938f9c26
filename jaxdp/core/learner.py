"""Types of online learners and of their functions. A lane is one run of a learner, with one seed and grid point."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, describe, format_tuple
from jaxdp.core.shown import html_of
from jaxdp.core.visits import Visits


class State(NamedTuple):
    """A learner's memory, split at the trust boundary.

    Attributes:
        private: memory that only the curator sees (true counts, partial noise sums); in the shuffle model, the
            shuffler's memory.
        public: everything that has been released. `act` and `privatize` see only this half. If a release changes
            `private`, the change is made at the start of the next `update`, so that a transcript can be replayed from
            recorded `public` states.
    """

    private: Any
    public: Any

    def __repr__(self) -> str:
        return format_tuple(self)


class InitFn(Protocol):
    """Returns the learner's state before the first round.

    Called once in each lane, inside the compiled program. May read: params, its own key (once). All later states have
    the same structure, shapes and dtypes as this `State`.
    """

    def __call__(self, key: jax.Array, params: Any) -> State: ...


class ActFn(Protocol):
    """Chooses one lane's action in this round, before the environment returns feedback.

    Called inside the compiled program, and again when a transcript is replayed, so equal arguments must give equal
    actions. May read: params, the released state, this round's context, its own key (once). Must not depend on:
    `State.private`, this round's feedback, the environment's keys, the engine, other lanes. Returns a pytree with the
    structure of `Interface.action`, which is the same in every round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any) -> Any: ...


class PrivatizeFn(Protocol):
    """The trust boundary: returns everything that the curator may see of this round.

    In the central model it returns what `update` needs, such as (action, feedback), and `update` adds noise before it
    writes anything computed from private data into `public`. In the local model it returns the noisy message of the
    user's device. The message of a contextual user does not contain the action, because the action would reveal the
    context. May read: params, the released state, this round's context, action and feedback, its own key (once). Must
    not depend on anything else. In a block, `public` is the released state at the block's start, so the result must not
    depend on values that change inside a block. Returns a pytree with the same structure in every round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any, action: Any, feedback: Any) -> Any: ...


class UpdateFn(Protocol):
    """Updates the curator's state with one report.

    Called once per round, after `privatize`. May read: params, the state, the report, its own key (once). Must not
    depend on anything that `privatize` did not return. Everything written into `State.public` is released. Returns a
    `State` with the structure, shapes and dtypes of the argument `state`.
    """

    def __call__(self, key: jax.Array, params: Any, state: State, report: Any) -> State: ...


class ClipFn(Protocol):
    """Returns the interval (low, high) to which feedback is clipped. May read: params. Also called on the host."""

    def __call__(self, params: Any) -> tuple[Any, Any]: ...


class DoneFn(Protocol):
    """Returns whether the learner has stopped. The result is [] bool.

    Called after each round, or after each block or `CountPlan` of several rounds, so at least one round is played. The
    lane ends as soon as the result is true. May read: params and the released state, because a stopping time is public.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class RecommendFn(Protocol):
    """Returns the learner's current recommendation: the best arm, a winner, a model.

    Called at checkpoints and when the learner stops; the environment evaluates the recommendation. May read: params and
    the released state, so that a recommendation costs no privacy. Returns a pytree with the structure of
    `Interface.recommendation`.
    """

    def __call__(self, params: Any, public: Any) -> Any: ...


class BestActionFn(Protocol):
    """Returns the best action according to the released state.

    `jaxdp.per_person` plays this action in rounds without feedback to the learner. May read: params and the released
    state. Returns a pytree of `Interface.action`'s structure.
    """

    def __call__(self, params: Any, public: Any) -> Any: ...


class BlockPlan(NamedTuple):
    """The actions that the learner plays next unless a report changes the plan.

    Attributes:
        actions: pytree of [block length, ...] arrays, the action of each round.
        length: [] integer, the number of planned actions; the rest of `actions` is padding.
    """

    actions: Any
    length: jax.Array


class CountPlan(NamedTuple):
    """The number of times that the learner plays each action next, in any order.

    Attributes:
        counts: [num_actions] integers >= 0; their sum is the number of rounds.
    """

    counts: jax.Array


class BlockPlanFn(Protocol):
    """Returns the actions of at most `limit` next rounds, as `act` would choose them from the same `public`.

    `keys` are the keys that `act` would get, one for each round. `contexts` are the contexts of these rounds, or None
    in problems without contexts.
    """

    def __call__(self, keys: jax.Array, params: Any, public: Any, contexts: Any, limit: jax.Array) -> BlockPlan: ...


class BlockUpdateFn(Protocol):
    """Applies `update` to one round after another, up to the first one after which the learner changes its plan.

    If no round changes the plan, all planned rounds are used.

    `keys` are the keys that `update` would get; `report` has the output of `privatize` for every planned round. Returns
    the new state and the number of rounds that the new state includes, in [1, plan.length].
    """

    def __call__(
        self, keys: jax.Array, params: Any, state: State, plan: BlockPlan, report: Any
    ) -> tuple[State, jax.Array]: ...


class SlotRoundsFn(Protocol):
    """Returns the index of the round that is stored in each slot of keys, actions and feedback.

    The result is [block length] integers, which increase over the slots that store a round. An empty slot has the index
    `block length`. Needed only by learners that do not store consecutive rounds in consecutive slots.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class SwitchWhenFn(Protocol):
    """Returns whether the learner may switch to its next blocks, [] bool. True must not change back to False."""

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class Blocks(NamedTuple):
    """Functions that play the next rounds in blocks. A run in blocks gives the same bits as a run round by round.

    `plan` gets the keys that `act` gets in these rounds, as an array; `update_block` gets the keys that `update` gets.
    The reports of a block are the results of `Learner.privatize` for each of its rounds, with the keys of single rounds
    and the public state at the block's start.

    Attributes:
        length: the maximum number of rounds in a block, >= 1.
        plan: returns the planned actions.
        update_block: updates the state with the reports.
        switch_when: returns whether to switch to the learner's next blocks; None for the last blocks. Lanes that are
            computed together switch together, once `switch_when` is true in every lane that still runs. Until then
            these blocks also play the lanes in which `switch_when` is already true, and must be correct for them. Lanes
            that have ended are computed with a `limit` of 0, and their results are discarded.
        slot_rounds: returns the round index of each slot; None if slot i stores round i.
        ends: rounds after which a block ends early in every lane, if all other blocks have `length` rounds or end at
            `limit`. The number of blocks is then known, so that a GPU does not wait for the host after each block. None
            if blocks may also end early after other rounds.
        any_length: whether the functions also accept fewer keys than `length`, for a run with fewer rounds.
    """

    length: int
    plan: BlockPlanFn
    update_block: BlockUpdateFn
    switch_when: SwitchWhenFn | None = None
    slot_rounds: SlotRoundsFn | None = None
    ends: tuple[int, ...] | None = None
    any_length: bool = False


class CountPlanFn(Protocol):
    """Returns the number of times that each action is played next: at most `limit` rounds, and at least one."""

    def __call__(self, key: jax.Array, params: Any, public: Any, limit: jax.Array) -> CountPlan: ...


class CountPrivatizeFn(Protocol):
    """Returns the report of all rounds of a plan, from the totals of their feedback for each action.

    The report has the same distribution as the sum of the single rounds' reports.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, plan: CountPlan, totals: Any) -> Any: ...


class CountUpdateFn(Protocol):
    """Updates the state with the report of all rounds of a plan, from `Counts.privatize`."""

    def __call__(self, key: jax.Array, params: Any, state: State, plan: CountPlan, report: Any) -> State: ...


class Counts(NamedTuple):
    """Functions that play the next rounds as counts of actions.

    A run by counts has the same distribution as a run round by round.

    Attributes:
        plan: returns the number of times that each action is played.
        privatize: the trust boundary, for totals of feedback; local learners use `LocalRandomizer.total`.
        update_counts: updates the state with the report.
    """

    plan: CountPlanFn
    privatize: CountPrivatizeFn
    update_counts: CountUpdateFn


class Learner(NamedTuple):
    """An online algorithm, as pure functions for one lane. The types of the functions document their tasks.

    Attributes:
        params: (**values) -> Params. On the host: validates one grid point and calibrates its noise in float64.
        guarantee: (**values) -> Guarantee. On the host: the claim for the same values.
        init: returns the state before the first round.
        act: chooses an action from the released state.
        privatize: the trust boundary.
        update: updates the curator's state with a report.
        done: returns whether the learner has stopped; None if it never stops before the horizon.
        recommend: returns the current recommendation; None if the learner makes no recommendations.
        blocks: plays many rounds at once, in order. Each element is used until its `switch_when` is true. May be empty.
        counts: plays many rounds at once, as counts and totals; None if not supported.
        horizon: the only horizon for which shapes or constants are right; the simulator rejects any other horizon. None
            if every horizon is supported.
        interface: the actions, feedback, contexts and recommendations that the learner supports. The simulator rejects
            an environment that does not fit. If None, the simulator checks only that the functions' shapes fit, and
            warns if the environment has an interface.
        min_horizon: the minimum number of rounds in which the learner completes all its phases; the simulator warns if
            the horizon is smaller.
        clip: returns the interval to which feedback is clipped. The simulator warns if a mean of the environment's
            `means` lies outside this interval, and can count the rounds in which feedback lies outside. None if no such
            interval is known.
        best_action: returns the best action according to the released state, for rounds without feedback to the
            learner; None if not supported.
        reports: the number of first visits of a person that reach the learner, for learners made by `per_person`. Then
            `horizon` and `min_horizon` count rounds that reach the learner, and the environment must have visits. None
            if all rounds reach the learner.
        visits: the schedule of people for which the learner is made; the simulator rejects any other schedule. None if
            every schedule is supported.
        made_by: the factory and its arguments, for `repr` and tables.
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
    best_action: BestActionFn | None = None
    reports: int | None = None
    visits: Visits | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "learner")

    def _repr_html_(self) -> str:
        return html_of(self, "learner")
