"""The vocabulary: what a learner, an environment, an offline estimator and a privacy claim are.

An algorithm is a NamedTuple of pure functions, made by a factory whose arguments fix shapes and loop bounds. What a
sweep may vary (epsilon, a learning rate) is a leaf of the algorithm's frozen `Params` dataclass, registered as a
pytree, so that one compiled program serves every value. Conventions, everywhere:

* **Keys come first and are never defaulted, stored or reused.** A function that needs no key takes it and ignores it.
* **The trust boundary is in the types.** `act` sees `State.public` only; `update` sees what `privatize` returned only.
* **`epsilon=inf` is the non-private algorithm**, in the same compiled program.
* **`params(**values)` runs on the host**: it takes one grid point of plain numbers, validates it, and calibrates noise
  in float64. Nothing solves for a noise scale inside a compiled loop.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.interface import Interface
from jaxdp.validation import check_above, check_choice, check_epsilon

Scalar = float | np.floating | np.integer | jax.Array  # what a scalar leaf of `Params` may be
TRUST_MODELS = ("central", "local", "shuffle", "joint")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is claimed: (epsilon, delta)-differential privacy for one privacy unit, and why.

    Attributes:
        epsilon: privacy budget, in (0, inf]; infinity claims nothing.
        delta: failure mass, in [0, 1).
        rho: zero-concentrated DP cost where that is the native claim, > 0; else None.
        trust_model: "central" (a curator sees the data), "local" (only the user does), "shuffle" or "joint".
        privacy_unit: whose data one unit of budget protects, for example "one label".
        adjacency: how neighbouring inputs differ.
        argument: one sentence, why the claim holds.

    >>> rr = Guarantee(epsilon=0.5, trust_model="local", privacy_unit="one label", argument="randomized response")
    >>> rr.compose(rr).epsilon
    1.0
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    trust_model: str
    privacy_unit: str
    adjacency: str = "replace-one"
    argument: str

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be in [0, 1), got {self.delta}")
        if self.rho is not None:
            check_above("rho", self.rho, 0.0)
        check_choice("trust_model", self.trust_model, TRUST_MODELS)

    @property
    def is_private(self) -> bool:
        """Whether anything is claimed at all."""
        return math.isfinite(self.epsilon)

    def compose(self, other: "Guarantee") -> "Guarantee":
        """The guarantee of releasing both results: epsilons and deltas add, and so do rhos where both have one.

        Args:
            other: the guarantee of the other release, on the same data.

        Returns:
            The guarantee of the pair, by basic (adaptive) composition. A sum of deltas that reaches 1 claims nothing:
            its epsilon is infinite.

        Raises:
            ValueError: if the two differ in trust model, privacy unit or adjacency.

        Source: Dwork & Roth (2014), Theorem 3.16; Bun & Steinke (2016), Lemma 1.7 for rho.
        """
        for name in ("trust_model", "privacy_unit", "adjacency"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(f"{name} must be the same to compose two guarantees, got {mine!r} and {theirs!r}")
        delta = self.delta + other.delta
        return dataclasses.replace(
            self,
            epsilon=self.epsilon + other.epsilon if delta < 1 else math.inf,
            delta=delta if delta < 1 else 0.0,
            rho=None if self.rho is None or other.rho is None else self.rho + other.rho,
            argument=f"basic composition of: {self.argument}; {other.argument}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain values, for provenance; infinity is the string "inf", which every JSON reader takes."""
        return {
            name: "inf" if isinstance(value, float) and math.isinf(value) else value
            for name, value in dataclasses.asdict(self).items()
        }


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


class Blocks(NamedTuple):
    """The next rounds, in order. A run in blocks equals the run round by round bit for bit.

    Keys come as one array, one key a round: the very keys that `act`, `privatize` and `update` get in those rounds.

    Attributes:
        length: rounds in a block, >= 1.
        plan: (keys, params, public, limit) -> BlockPlan of at most `limit` rounds.
        privatize: (keys, params, public, plan, feedback) -> report, as `Learner.privatize` for every round planned.
        absorb: (keys, params, state, plan, report) -> (State, rounds_used): as `update` round after round, up to and
            including the first after which the learner plays something else than planned; in [1, plan.length].
        order: (params, public) -> [length] integers, for a learner with places of its own for the rounds: which of the
            next rounds each place of keys, actions and feedback holds, increasing; `length` for an empty place. None is
            0, 1, 2, ...
        then: other blocks, which may compute less, for the rounds after `over`.
        over: (params, public) -> [] bool, whether `then` may take over; once true, always true. A batch of lanes goes
            over as one: until every lane may or has ended, lanes that may keep playing these blocks, which must stay
            right for them. Lanes that have ended run along in either, with a `limit` of 0, and what comes of it is
            thrown away.
    """

    length: int
    plan: Callable[..., BlockPlan]
    privatize: Callable[..., Any]
    absorb: Callable[..., tuple[State, jax.Array]]
    order: Callable[..., jax.Array] | None = None
    then: "Blocks | None" = None
    over: Callable[..., jax.Array] | None = None


class Counts(NamedTuple):
    """The next rounds, as how often each action is played. Equal in distribution to the run round by round.

    Attributes:
        plan: (key, params, public, limit) -> CountPlan of at most `limit` rounds, and at least one.
        privatize: (key, params, public, plan, totals) -> report, as `Learner.privatize` for totals of feedback.
        absorb: (key, params, state, plan, report) -> State: as `update` for all of the plan's rounds.
    """

    plan: Callable[..., CountPlan]
    privatize: Callable[..., Any]
    absorb: Callable[..., State]


class LearnerBulk(NamedTuple):
    """Many rounds at once, for learners that change what they play rarely. The learner never holds the environment.

    Attributes:
        blocks: or None.
        counts: or None.
    """

    blocks: Blocks | None = None
    counts: Counts | None = None


class Learner(NamedTuple):
    """An online algorithm: a handful of pure functions, written for one lane.

    Attributes:
        params: (**values) -> Params. On the host: one grid point; validates, calibrates in float64.
        guarantee: (**values) -> Guarantee. On the host: what is claimed for these values.
        init: (key, params) -> State.
        act: (key, params, public, context) -> action. Sees released state only, so a play is post-processing.
        privatize: (key, params, public, context, action, feedback) -> report. Everything the curator may see: in the
            central model (action, feedback), with noise added where `update` writes `public`; in the local model only
            what leaves the user's device.
        update: (key, params, state, report) -> State. Sees the report and nothing else.
        done: (params, public) -> bool, for problems with a stopping time; else None. Asked after each round, so that at
            least one is played.
        bulk: many rounds at once, or None.
        horizon: the horizon that shapes or constants need, or None; a simulator refuses another.
        interface: the actions, feedback and contexts that it is written for; a simulator refuses an environment with
            others, and warns of None, which checks nothing but that the functions fit.
        min_horizon: the fewest rounds in which it does all that it is made for; a simulator warns of fewer.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    init: Callable[..., State]
    act: Callable[..., Any]
    privatize: Callable[..., Any]
    update: Callable[..., State]
    done: Callable[..., jax.Array] | None = None
    bulk: LearnerBulk | None = None
    horizon: int | None = None
    interface: Interface | None = None
    min_horizon: int = 1


class EnvironmentBulk(NamedTuple):
    """How an environment answers many rounds at once.

    Attributes:
        block: (keys, params, world, actions) -> (worlds, feedback, outcomes), each with a leading axis of rounds, one
            for each key: the very keys that `feedback` gets. A learner may use fewer of them: the
            world goes on from the last round used.
        tally: (key, params, world, counts) -> (world, totals of feedback, totals of outcomes), for counts of actions.
    """

    block: Callable[..., tuple[Any, Any, Mapping[str, jax.Array]]] | None = None
    tally: Callable[..., tuple[Any, Any, Mapping[str, jax.Array]]] | None = None


class Environment(NamedTuple):
    """What a learner plays against. Its keys are never the learner's: every learner meets the same world.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner.
        init: (key, params) -> World.
        context: (key, params, world) -> Context, or None where the problem has no contexts.
        feedback: (key, params, world, action) -> (World, feedback, outcome). `outcome` is a small dict of scalars that
            are summed over rounds, at least `pseudo_regret`: truth values are counted, integers are added and stop at
            the largest, floats are added with compensation. A full-information feedback must not depend on the action.
        summary: (params, world) -> dict of metrics in hindsight, read at checkpoints; or None.
        bulk: many rounds at once, or None.
        interface: the actions that it answers, its feedback and contexts; or None.
        horizon: the number of rounds that it can answer, or None for any number.
        dims: names of the dimensions of each metric of `summary`, where they have names.
    """

    params: Callable[..., Any]
    init: Callable[..., Any]
    context: Callable[..., Any] | None
    feedback: Callable[..., tuple[Any, Any, Mapping[str, jax.Array]]]
    summary: Callable[..., Mapping[str, jax.Array]] | None = None
    bulk: EnvironmentBulk | None = None
    interface: Interface | None = None
    horizon: int | None = None
    dims: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Estimator(NamedTuple):
    """An offline algorithm: labels in, one estimate out.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner.
        guarantee: (**values) -> Guarantee. On the host: what is claimed for these values.
        privatize: (key, params, features, labels) -> report. What the curator (local model) or the public (central
            model) may see of the labels. Features are public, unless the guarantee's privacy unit includes them.
        fit: (key, params, features, report) -> estimate. Post-processing of the report and the public features.
        check: (features, labels, *, feature_norm) -> None. On the host: raises ValueError for a data set that it is not
            written for. None takes comparisons of pairs.
        check_estimate: (estimate) -> None. On the host: raises where nothing was released, or what was cannot be used.
            None takes every estimate.
        features_public: whether the privacy unit leaves features public, so that `fit`, and whoever tells the estimator
            something, may read them. Estimators that say nothing are told nothing that was read from features.
        noise: (params, features) -> what stands between the labels and the logistic objective that `fit` minimises
            (`jaxdp.estimation.LabelNoise`), where it replaces labels by unbiased ones and takes the features to be
            public. None where it does anything else: confidence sets are not made for it.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    privatize: Callable[..., Any]
    fit: Callable[..., Any]
    check: Callable[..., None] | None = None
    check_estimate: Callable[[Any], None] | None = None
    features_public: bool = False
    noise: Callable[[Any, jax.Array], Any] | None = None


class Problem(NamedTuple):
    """What an estimator is run on: draws a data set, and measures an estimate against the truth.

    Attributes:
        params: (**values) -> Params. On the host, as for an estimator.
        sample: (key, params) -> Sample. Its key is never the estimator's: every estimator meets the same data.
        metrics: (params, sample, estimate) -> dict of arrays.
        dims: names of the dimensions of each metric, for labelling.
        coords: values along those dimensions, where they have any.
        known: names of the `Params` fields for which each sample's `known` has a value.
        known_from_features: names of those for which its `known_from_features` has one.
    """

    params: Callable[..., Any]
    sample: Callable[..., "Sample"]
    metrics: Callable[..., Mapping[str, jax.Array]]
    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, Any]
    known: tuple[str, ...] = ()
    known_from_features: tuple[str, ...] = ()


class Sample(NamedTuple):
    """One data set, and what an analyst knows of it, by the name of the `Params` field for which it stands.

    What is known comes in two groups, since one of them is private where features are.

    Attributes:
        features: [num_samples, ...] float, public or private as the estimator's privacy unit says.
        labels: [num_samples] int, private.
        truth: what the labels were drawn from, or None; metrics alone read it.
        known: facts of the world, whatever the data: the radius that contains the truth, a bound that was fixed before
            features were drawn. Every estimator is told them.
        known_from_features: facts that were read from the features, such as the largest norm. Only estimators whose
            privacy unit leaves features public are told them.
    """

    features: jax.Array
    labels: jax.Array
    truth: Any
    known: Mapping[str, jax.Array]
    known_from_features: Mapping[str, jax.Array] = {}


def scalar_leaf(name: str, value: float) -> np.floating:
    """A host number as a `Params` leaf.

    Args:
        name: of the value, for the error.
        value: a number; infinity and NaN are kept.

    Returns:
        A NumPy scalar of JAX's default float type, rounded to nearest.

    Raises:
        ValueError: if a finite value overflows that type, or one that is not 0 underflows.
    """
    dtype = jax.dtypes.canonicalize_dtype(float)
    with np.errstate(over="ignore", under="ignore"):
        leaf = dtype.type(value)
    # Subnormal numbers too: compiled programs take them for 0.
    if (math.isfinite(value) and not np.isfinite(leaf)) or (value != 0 and abs(leaf) < np.finfo(dtype).smallest_normal):
        raise ValueError(f"{name} must be within the range of {dtype}, got {value}")
    return leaf


def only(params: Callable[..., Any], names: Collection[str]) -> Callable[..., Any]:
    """The same `params`, which takes these names alone, and needs `delta` if that is one of them.

    A value that would be ignored, or is missing, is a TypeError.

    Args:
        params: (**values) -> Params.
        names: of the values that matter.

    Returns:
        A function with the signature that is left.
    """
    signature = inspect.signature(params)
    kept = signature.replace(
        parameters=[
            # Its default is that of variants which do not take it, and no delta.
            p.replace(default=p.empty) if p.name == "delta" else p
            for p in signature.parameters.values()
            if p.name in names
        ]
    )

    def restricted(**values: Any) -> Any:
        try:
            kept.bind(**values)
        except TypeError as error:
            raise TypeError(f"{params.__qualname__}(): {error}") from None
        return params(**values)

    restricted.__signature__ = kept  # pyright: ignore[reportFunctionMemberAccess]
    return restricted


def validated(params: Callable[..., Any], guarantee: Callable[..., Guarantee]) -> Callable[..., Guarantee]:
    """A `guarantee` that claims only for values which `params` accepts."""

    def checked(**values: Any) -> Guarantee:
        params(**values)
        return guarantee(**values)

    return checked
