"""What an online learner is: a handful of pure functions, written for one lane."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.interface import Interface
from jaxdp.core.made_by import MadeBy, brief, described
from jaxdp.core.shown import html_of


class State(NamedTuple):
    """A learner's memory, split at the trust boundary.

    Attributes:
        private: what the curator knows and nobody may see (true counts, partial noise sums). In the shuffle model, the
            shuffler's memory.
        public: what has been released. `act` and `privatize` see this half only. `private` reacts to a release at the
            start of the next `update`, so that a transcript can be replayed by substituting recorded `public` states.
    """

    private: Any
    public: Any

    def __repr__(self) -> str:
        return brief(self)


class InitFn(Protocol):
    """The learner's state before the first round.

    Called once for each lane, inside the compiled program. May read: params, its own key (once). Returns a `State`,
    whose structure, shapes and dtypes every later state keeps.
    """

    def __call__(self, key: jax.Array, params: Any) -> State: ...


class ActFn(Protocol):
    """Chooses this round's action, for one lane, inside the compiled program, before the world answers.

    Called again with the same arguments when a transcript is replayed: equal arguments, equal action. May read: params,
    what has been released, this round's context, its own key (once). Must not depend on: `State.private`, this round's
    feedback, the world's keys, the engine, other lanes. Returns a pytree of `Interface.action`'s structure, the same in
    every round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any) -> Any: ...


class PrivatizeFn(Protocol):
    """The trust boundary: everything of this round that the curator may see.

    In the central model that is (action, feedback), and noise is added where `update` writes `public`. In the local
    model it is what leaves the user's device, and noise is added here; a contextual user's action is not part of it,
    since it reveals the context. May read: params, what has been released, this round's context, action and feedback,
    its own key (once). Must not depend on anything else; in a learner with blocks not on what changes inside a block,
    where `public` is that of the block's start. Returns a pytree, the same structure in every round.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, context: Any, action: Any, feedback: Any) -> Any: ...


class UpdateFn(Protocol):
    """What the curator does with a report.

    Called once a round, after `privatize`. May read: params, the state, the report, its own key (once). Must not depend
    on anything that `privatize` did not return. What it writes into `State.public` is released. Returns a `State` of
    the structure, shapes and dtypes of the one that it got.
    """

    def __call__(self, key: jax.Array, params: Any, state: State, report: Any) -> State: ...


class ClipFn(Protocol):
    """The interval, (low, high), to which each number of feedback is clipped. May read: params, on the host as well."""

    def __call__(self, params: Any) -> tuple[Any, Any]: ...


class DoneFn(Protocol):
    """Whether the learner has stopped: [] bool.

    Asked after each round, so that at least one is played; once true, the lane is over. May read: params and what has
    been released: a stopping time is public.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class AnswerFn(Protocol):
    """What the learner would answer now: the best arm, a winner, a model.

    Asked at checkpoints and where the learner stops, for the environment to judge. May read: params and what has been
    released, so that an answer costs no privacy. Returns a pytree of `Interface.answer`'s structure.
    """

    def __call__(self, params: Any, public: Any) -> Any: ...


class BlockPlan(NamedTuple):
    """The next actions, round by round, if the learner does not change its mind.

    Attributes:
        actions: pytree of [block length, ...] arrays.
        length: [] integer, how many of them are planned; the rest is padding.
    """

    actions: Any
    length: jax.Array


class CountPlan(NamedTuple):
    """How often each action is played next, if the learner does not change its mind; order is immaterial.

    Attributes:
        counts: [num_actions] integers >= 0; their sum is the number of rounds.
    """

    counts: jax.Array


class BlockPlanFn(Protocol):
    """The actions of the next rounds, at most `limit` of them, as `act` would choose them from the same `public`.

    `keys` are those that `act` would get, one a round; `contexts` those rounds' contexts, or None outside contextual
    problems. In blocks with a `total` they are of a single round, see `Blocks`.
    """

    def __call__(self, keys: jax.Array, params: Any, public: Any, contexts: Any, limit: jax.Array) -> BlockPlan: ...


class BlockAbsorbFn(Protocol):
    """As `update` round after round, up to and including the first after which the learner plays something else.

    `keys` are those that `update` would get; `report` has what `privatize` returned for every round planned. In blocks
    with a `total`, `keys` has the first of them, and `report` is the sum. Returns
    the state, and the number of rounds that it stands for, in [1, plan.length].
    """

    def __call__(
        self, keys: jax.Array, params: Any, state: State, plan: BlockPlan, report: Any
    ) -> tuple[State, jax.Array]: ...


class BlockExactFn(Protocol):
    """What one round adds to the sum of a block's reports, before noise: a pytree of numbers.

    Sums of floats are compensated; whole numbers and truth values add up in the default integer type. May read and must
    not depend on: as `privatize`, but it has no key.
    """

    def __call__(self, params: Any, public: Any, context: Any, action: Any, feedback: Any) -> Any: ...


class BlockReleaseFn(Protocol):
    """The sum of a block's reports, by `sums`, what `exact` gave for its `length` rounds.

    Of additive noise that is independent from user to user the law follows from the sum of the exact reports: of
    Gaussian noise of standard deviation s it is one normal draw of s sqrt(length), see `Channel.total`. `key` is the
    one that `privatize` gets in the block's first round, and may be used once. May read and must not depend on: as
    `privatize`.
    """

    def __call__(self, key: jax.Array, params: Any, public: Any, sums: Any, length: jax.Array) -> Any: ...


class BlockTotal(NamedTuple):
    """The trust boundary for a block as a whole: the sum of its reports, drawn at once in its own law.

    It stands for as many releases as rounds, each of which is private by itself; who sees their sum alone learns less.

    Attributes:
        exact: what a round adds.
        release: the sum of the reports, by the sum of what rounds add.
    """

    exact: BlockExactFn
    release: BlockReleaseFn


class BlockOrderFn(Protocol):
    """Which of the next rounds each place of keys, actions and feedback holds: [block length] integers, increasing.

    An empty place holds `block length`. For learners with places of their own for the rounds.
    """

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class UntilFn(Protocol):
    """Whether the learner needs these blocks no longer, and may switch to the next: [] bool; once true, always true."""

    def __call__(self, params: Any, public: Any) -> jax.Array: ...


class Blocks(NamedTuple):
    """The next rounds, in order. A run in blocks equals the run round by round bit for bit, unless they have a `total`.

    With a `total` the two are equal in distribution: `engine="auto"` plays such a learner round by round, and blocks
    are played where they are asked for by name. How far a block goes must then be fixed beforehand, by the number of
    rounds and not by data: `absorb` uses all `plan.length` rounds. A learner's blocks have totals all of them, or none.
    Rounds of such blocks are played one after the other, and of each only its action and sums are kept: `plan` is
    called for each round with one key, one context and the block's `limit`, and gives one action, and the same length
    each time; `absorb` gets the plan of all rounds, the key of the first one, and the sum as `report`.

    Keys come as one array, one key a round: the very keys that `act`, `privatize` and `update` get in those rounds. The
    reports of a block are those of `Learner.privatize` for each of its rounds, with `public` as at the block's start.

    Attributes:
        length: rounds in a block, >= 1.
        plan: the actions, if the learner does not change its mind.
        absorb: what the learner does with the reports.
        until: when to switch to the next blocks of the learner; None for the last. Lanes of a batch switch together,
            once `until` holds for all that still run. Until then these blocks also play lanes that could have
            switched, and must be correct for them; with a `total`, such lanes wait. Lanes that have ended run along
            with a `limit` of 0, and what comes of it is thrown away.
        order: which round each place holds; None is 0, 1, 2, ...
        total: makes the sum of the block's reports at once; None has `absorb` take them one by one.
    """

    length: int
    plan: BlockPlanFn
    absorb: BlockAbsorbFn
    until: UntilFn | None = None
    order: BlockOrderFn | None = None
    total: BlockTotal | None = None


class CountPlanFn(Protocol):
    """How often each action is played next: at most `limit` rounds, and at least one."""

    def __call__(self, key: jax.Array, params: Any, public: Any, limit: jax.Array) -> CountPlan: ...


class CountPrivatizeFn(Protocol):
    """As `privatize`, for totals of feedback: a report with the law of what the single rounds' reports add up to."""

    def __call__(self, key: jax.Array, params: Any, public: Any, plan: CountPlan, totals: Any) -> Any: ...


class CountAbsorbFn(Protocol):
    """As `update` for all of the plan's rounds."""

    def __call__(self, key: jax.Array, params: Any, state: State, plan: CountPlan, report: Any) -> State: ...


class Counts(NamedTuple):
    """The next rounds, as how often each action is played. Equal in distribution to the run round by round.

    Attributes:
        plan: how often each action is played.
        privatize: the trust boundary, for totals of feedback; of a local learner `Channel.total`.
        absorb: what the learner does with the report.
    """

    plan: CountPlanFn
    privatize: CountPrivatizeFn
    absorb: CountAbsorbFn


class Learner(NamedTuple):
    """An online algorithm: a handful of pure functions, written for one lane. Each one's duty is told by its type.

    Attributes:
        params: (**values) -> Params. On the host: one grid point; validates, calibrates in float64.
        guarantee: (**values) -> Guarantee. On the host, for the same values: what is claimed.
        init: the state before the first round.
        act: chooses an action from what has been released.
        privatize: the trust boundary.
        update: what the curator does with a report.
        done: for problems with a stopping time; else None.
        answer: what it would answer now, for problems that ask; else None.
        blocks: many rounds at once, in order: one after the other, each until its `until` holds. Empty for none.
        counts: many rounds at once, as totals; or None.
        horizon: the horizon that shapes or constants need, or None; a simulator refuses another.
        interface: the actions, feedback, contexts and answers that it is written for; a simulator refuses an
            environment with others, and warns of None, which checks nothing but that the functions fit.
        min_horizon: the fewest rounds in which it does all that it is made for; a simulator warns of fewer.
        clip: the interval to which feedback is clipped: a simulator warns if mean feedback lies outside, and can count
            what is clipped. None where nothing is known to be clipped.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    init: InitFn
    act: ActFn
    privatize: PrivatizeFn
    update: UpdateFn
    done: DoneFn | None = None
    answer: AnswerFn | None = None
    blocks: tuple[Blocks, ...] = ()
    counts: Counts | None = None
    horizon: int | None = None
    interface: Interface | None = None
    min_horizon: int = 1
    clip: ClipFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return described(self, "learner")

    def _repr_html_(self) -> str:
        return html_of(self, "learner")
