"""Phased elimination of arms with features, by duels that a G-optimal design chooses and one release a phase.

Where the steps of Algorithm 2 of DP-Dueling (Saha & Asi, 2024) are found here:

* Init: D_1 are the features that are given; kappa is `Params.slope`, and delta failure_prob.
* The active arms D_l are `Public.active`, and xi_l is `margin_of`, whose `phase` is l - 1.
* pi_l is made by `first_design` or `next_design`; its pairs C_l and how often each duels, T_l, are `plan_tight` or
  `plan_paper`, by the N of `duels_tight` or `duels_paper`. The t_0 duels that explore are part of `plan_paper` alone.
* The duels of a phase are `act`, which goes through the slots of `Public.duels` one after the other.
* The noisy counts o^_l, the model w^_l and the arms D_(l+1) that stay are computed by `release`, once a phase.
* The duels of a single arm that is left are a phase without end, made by `begun`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import (
    BlockPlan,
    Blocks,
    CountPlan,
    Counts,
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    arms,
    claimed,
    default_float,
    factory,
    pairs,
    scalar_leaf,
)
from jaxdp.dueling._arm_features import check_features
from jaxdp.dueling._g_optimal_elimination.phase_designs import (
    Design,
    duels_paper,
    duels_tight,
    explored_paper,
    first_design,
    next_design,
)
from jaxdp.dueling._g_optimal_elimination.utility_fit import fit_in_ball
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics.kernels import any_lane
from jaxdp.random import ties
from jaxdp.validation import check_choice, check_epsilon, check_horizon, check_positive, check_probability

CONSTANTS = ("tight", "paper")
BLOCK = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        failure_prob: [] float in (0, 1).
        confidence_multiplier: [] float > 0, the factor of a phase's duels.
        radius: [] float > 0, the largest norm of a model.
        slope: [] float > 0, kappa, the least slope of the link that is reckoned with.
        features: [num_arms, dim] float.
        first: the design for all arms.
    """

    epsilon: Scalar
    failure_prob: Scalar
    confidence_multiplier: Scalar
    radius: Scalar
    slope: Scalar
    features: np.ndarray
    first: Design


class Private(NamedTuple):
    """What the curator knows.

    Attributes:
        wins: [num_slots] integer, duels of the phase that each of its pairs' left arms has won. They are counted from
            zero again in the first round of a phase.
    """

    wins: jax.Array


class Public(NamedTuple):
    """What has been released, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        estimate: [dim] float, the model of the last phase that has ended; 0 in the first one.
        phase: [] int32, phases that have ended.
        played: [] integer, rounds of this phase played.
        duels: [num_slots, 2] int32, the pairs of this phase.
        plays: [num_slots] integer >= 0, duels of each pair, one pair after the other. They add up to the largest
            integer in a phase that is too long to end, and when one arm is left.
        rank: [] int32, dimensions that the pairs' differences span.
        tie_word: [] uint32, random, of the order in which the answer takes equal arms.
    """

    active: jax.Array
    estimate: jax.Array
    phase: jax.Array
    played: jax.Array
    duels: jax.Array
    plays: jax.Array
    rank: jax.Array
    tie_word: jax.Array


@factory
def g_optimal_elimination(
    *, features: ArrayLike, constants: str = "tight", horizon: int | None = None, design_gap: float = 0.1
) -> Learner:
    """Duels of a few pairs in phases, after which a model of utilities from noisy wins drops arms (GOptimal-DPDB).

    Utilities are r(x) = x.w*, |w*| <= radius, and the left arm wins with probability sigma(r[left] - r[right]), sigma
    the logistic function. Phase l = 1, 2, ... has the margin xi = 2^-l:

    1. a G-optimal design pi for the differences z = x - y of active arms: m pairs, and g, the largest
       z.V(pi)^-1.z of all differences, which is the rank d of these if the design is exact;
    2. each of its pairs duels T(z) = ceil(N pi(z)) times, and its wins O(z) get Laplace(1 / epsilon) noise, once;
    3. w minimises the sum of T(z) ln(1 + e^{z.w}) - O(z) z.w over |w| <= radius;
    4. arms x stay whose estimated utility x.w is at most xi below that of every active arm.

    N is the root of (A / 2) sqrt(g / N) / kappa + g B / (kappa epsilon N) = xi, with A = sqrt(d) + sqrt(2 x),
    B = m + sqrt(2 m x) + x, x = ln(4 l^2 / failure_prob), and kappa = sigma'(2 radius). The first design is computed on
    the host, the others within the program, for the arms that are left in each lane; the g that a design has is what
    counts, whether or not it is near its least. An arm that is left alone duels with itself.

    Args:
        features: [num_arms, dim], of norm at most 1 each, dim <= num_arms, no two the same.
        constants: "tight", as above; or "paper": the published numbers of duels, for the same estimator. With
            delta = failure_prob, T = horizon, d = dim and kappa = sigma'(2 (radius + 1)) these are
            N = 16 d^5 ln(d T / delta) / (kappa epsilon xi) + 64 d ln(T / delta) / (kappa xi)^2, and beside them in
            every phase t0 = 2 (d^1.5 + d sqrt(ln(1 / delta)))^2 + (16 d / kappa^4) (d^2 + ln(T / delta)) duels in
            proportion to the design for all arms; arms stay that are less than 2 xi below.
        horizon: rounds T, >= 2; needed for "paper", and otherwise not.
        design_gap: > 0, how far above its least the g of a design within the program may be, as a share. Smaller gaps
            take more steps, and save at most so many duels; in float32 1e-2 is reached, not much less.

    Returns:
        A learner whose actions are pairs of arms ([2] int32: left, right), with blocks and counts (of ordered pairs, in
        the order of a flattened matrix). Feedback is [] int32, 1 if the left arm wins, clipped to {0, 1}. Its answer is
        the active arm of the largest estimated utility, or any of several.

    Raises:
        ValueError: if features are not as above, constants has another name, or horizon is out of range, missing for
            "paper" or given for "tight", or design_gap is not > 0; from `params`, if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1, which multiplies N, and t0.
        radius: > 0, by default 1, the norm of w* at most. With a confidence_multiplier of 1 the best arm is dropped
            with probability <= failure_prob, and after phase l all arms that are left have a utility within 2 xi of the
            best one's, if users follow the logistic model with |w*| <= radius. Less is more daring, as private, and
            without that guarantee. Arms without features can be told apart by the rows of an identity matrix: the
            guarantee then assumes that their preferences are logistic (Bradley-Terry-Luce).

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: A duel enters one count (its pair's) of one phase, by 1; the counts of a phase, of L1 sensitivity
          1, are released once, with Laplace(1 / epsilon) noise each. Pairs, their numbers of duels and when phases end
          follow from earlier releases, so that phases concern different users and compose in parallel.
        - Released: `estimate` and what follows from it, post-processing of the noisy counts.
        - Private: `wins`.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 2; designs after Kiefer & Wolfowitz (1960).

    Deviations:
        Of an infinite set the paper takes a net; here the arms are given (`jaxdp.design.ball_net` makes a net). A
        design is for differences of active arms; the published text has those of all arms in every phase.
        Differences alone are estimated, since the published bound on single arms needs 0 among the arms, and arms are
        dropped that lie more than xi below, not 2 xi; the number of a pair's duels is rounded up; the model is confined
        to the ball, where there is always a minimum, and kappa is larger for it; one bound holds for all differences at
        once, so that neither t0 nor a union over arms is needed. For "paper": all of a pair's duels are in its count,
        t0 is spread in proportion, not at random, C1 = C2 = 1, and nothing is proved of its numbers. Floating-point
        noise, as in `laplace`.

    Examples:
        >>> import jax, jaxdp
        >>> arms = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
        >>> duels = jaxdp.dueling.linear_duels(arms, [0.9, -0.3])
        >>> run = jaxdp.simulator(g_optimal_elimination(features=arms), duels, horizon=10**6, engine="counts")
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["best_duels"].item() > 900_000
        True
    """
    points, integer = check_features(features), jnp.result_type(int)
    num_arms, dim = points.shape
    largest = int(jnp.iinfo(integer).max)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"
    if is_paper != (horizon is not None):
        raise ValueError(f"horizon must be given for 'paper', and only for it, got {horizon} for {constants!r}")
    rounds = None if horizon is None else check_horizon(horizon, minimum=2)
    gap = check_positive("design_gap", design_gap)
    leaf, design = points.astype(default_float()), first_design(points)
    num_slots = len(design.weights) * (1 + is_paper)

    def params(
        *, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0, radius: float = 1.0
    ) -> Params:
        decay = math.exp(-2 * (check_positive("radius", radius) + is_paper))
        slope = decay / (1 + decay) ** 2
        if not slope >= np.finfo(leaf.dtype).smallest_normal:
            raise ValueError(f"radius must leave the link a slope within the range of {leaf.dtype}, got {radius}")
        return Params(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            failure_prob=scalar_leaf("failure_prob", check_probability("failure_prob", failure_prob)),
            confidence_multiplier=scalar_leaf(
                "confidence_multiplier", check_positive("confidence_multiplier", confidence_multiplier)
            ),
            radius=scalar_leaf("radius", radius),
            slope=scalar_leaf("slope", slope),
            features=leaf,
            first=design,
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one duel's outcome",
            argument="each outcome enters one count, released once by the Laplace mechanism at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def margin_of(phase: jax.Array) -> jax.Array:
        """The xi of the phase that follows so many: 2^-l for l = phase + 1."""
        return jnp.exp2(-(phase + 1).astype(leaf.dtype))

    def duels_of(number: jax.Array, design: Design) -> jax.Array:
        """The duels of each pair, T(z), [design's slots] float; 0 where it has no weight, even for an infinite N."""
        return jnp.where(design.weights > 0, jnp.ceil(number * design.weights), 0)

    def plan_tight(params: Params, design: Design, phase: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """A phase's pairs [num_slots, 2] int32, how often each duels [num_slots] float, and their rank [] int32."""
        values: Any = {"epsilon": params.epsilon, "failure_prob": params.failure_prob, "slope": params.slope}
        number = duels_tight(design, phase, margin_of(phase), **values)
        wanted = duels_of(params.confidence_multiplier * number, design)
        return jnp.asarray(design.pairs), wanted, jnp.asarray(design.rank)

    def plan_paper(params: Params, design: Design, phase: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """As `plan_tight`; behind the slots of the phase's design come those of the design for all arms."""
        assert rounds is not None
        first = jax.tree.map(jnp.asarray, params.first)
        published: Any = {"dim": dim, "horizon": rounds, "failure_prob": params.failure_prob, "slope": params.slope}
        number = duels_paper(margin_of(phase), epsilon=params.epsilon, **published)
        wanted = duels_of(params.confidence_multiplier * number, design)
        explored = duels_of(params.confidence_multiplier * explored_paper(**published), first)
        same = jnp.all(design.pairs[:, None] == first.pairs[None], axis=2) & (design.weights > 0)[:, None]
        wanted = wanted + jnp.sum(jnp.where(same, explored[None], 0), axis=1)  # a pair of both has one count
        explored = jnp.where(jnp.any(same, axis=0), 0, explored)
        return jnp.concatenate([design.pairs, first.pairs]), jnp.concatenate([wanted, explored]), first.rank

    plan_phase: Callable[..., tuple[jax.Array, jax.Array, jax.Array]] = plan_paper if is_paper else plan_tight

    def begun(params: Params, active: jax.Array, estimate: jax.Array, phase: jax.Array, design: Design, word) -> Public:
        """A phase before its first round: the one after so many as `phase`, with this model of the one before."""
        duels, wanted, rank = plan_phase(params, design, phase)
        # A phase with more duels than integers count does not end: its numbers just add up to the largest integer.
        is_endless = ~(jnp.sum(wanted) < largest * (1 - 1e-5))  # floats of a sum are off by less
        most = largest // num_slots
        plays = jnp.where(is_endless & (wanted >= most), most, wanted.astype(integer))
        rest = jnp.where(is_endless, largest - plays.sum(dtype=integer), 0)
        plays = plays + jnp.where(jnp.arange(num_slots) == jnp.argmax(plays), rest, 0)
        is_alone = jnp.asarray(design.rank) == 0  # or no two of those that are left differ
        only = jnp.argmax(active).astype(jnp.int32)
        return Public(
            active=active,
            estimate=estimate,
            phase=phase,
            played=jnp.zeros((), integer),
            duels=jnp.where(is_alone, only, duels),
            plays=jnp.where(is_alone, jnp.where(jnp.arange(num_slots) == 0, largest, 0), plays),
            rank=rank,
            tie_word=word,
        )

    def init(key, params: Params) -> State:
        first, every = jax.tree.map(jnp.asarray, params.first), jnp.ones(num_arms, bool)
        start = begun(params, every, jnp.zeros(dim, leaf.dtype), jnp.int32(0), first, ties.own_word(key))
        return State(Private(jnp.zeros(num_slots, integer)), start)

    def length(public: Public) -> jax.Array:
        """Rounds of the phase."""
        return public.plays.sum(dtype=integer)

    def slots(public: Public, played: jax.Array) -> jax.Array:
        """The slot of `Public.duels` that duels in a round of the phase, or in each of several, counted from 0."""
        found = jnp.searchsorted(jnp.cumsum(public.plays), played, side="right")
        return jnp.minimum(found, num_slots - 1).astype(jnp.int32)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.duels[slots(public, public.played)]

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del key, params, public, context
        return action, feedback  # central model: the curator sees the duel and its outcome

    def wins_so_far(state: State) -> jax.Array:
        """Those of this phase: before its first round `Private.wins` still holds those of the phase before."""
        return jnp.where(state.public.played == 0, 0, state.private.wins)

    def release(key, params: Params, public: Public, wins: jax.Array) -> Public:
        """What is public once a phase has ended: its model from noisy wins, the arms that stay, and the next phase."""
        noisy = laplace(key, wins, params.epsilon, l1_sensitivity=1.0)
        points = jnp.asarray(params.features)
        differences = points[public.duels[:, 0]] - points[public.duels[:, 1]]
        estimate = fit_in_ball(differences, public.plays, noisy, public.rank, jnp.asarray(params.radius))
        utilities = jnp.sum(points * estimate[None], axis=1)
        behind = jnp.max(jnp.where(public.active, utilities, -jnp.inf)) - utilities
        xi = margin_of(public.phase)
        active = public.active & ~((behind >= 2 * xi) if is_paper else (behind > xi))
        return begun(params, active, estimate, public.phase + 1, next_design(points, active, gap), public.tie_word)

    def advance(key, params: Params, public: Public, wins: jax.Array, rounds: jax.Array) -> State:
        """Goes on by some rounds of the phase, and drops arms if it ends with the last of them."""
        after = public._replace(played=public.played + rounds)
        ends = (after.played == length(public)) & (jnp.sum(public.active, dtype=jnp.int32) > 1)

        def released() -> Public:
            found = release(key, params, public, wins)
            return jax.tree.map(lambda new, old: jnp.where(ends, new, old), found, after)

        # Designs take long: they are computed when a phase ends in some lane, and not in every round.
        return State(Private(wins), jax.lax.cond(any_lane(ends), released, lambda: after))

    def update(key, params: Params, state: State, report) -> State:
        _, won = report
        mine = jnp.arange(num_slots, dtype=jnp.int32) == slots(state.public, state.public.played)
        wins = wins_so_far(state) + jnp.where(mine, jnp.clip(won, 0, 1), 0).astype(integer)
        return advance(key, params, state.public, wins, jnp.ones((), integer))

    def rounds_ahead(public: Public, limit: jax.Array) -> jax.Array:
        """How many rounds of the phase are left, at most `limit`."""
        return jnp.minimum(limit, length(public) - public.played)

    def plan_block(keys, params: Params, public: Public, contexts: None, limit) -> BlockPlan:
        del params, contexts
        played = public.played + jnp.arange(len(keys), dtype=integer)
        return BlockPlan(public.duels[slots(public, played)], rounds_ahead(public, limit))

    def absorb_block(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        _, feedback = report
        every = jnp.arange(len(keys), dtype=integer)
        won = jnp.where(every < plan.length, jnp.clip(feedback, 0, 1), 0).astype(integer)
        places = slots(state.public, state.public.played + every)
        wins = wins_so_far(state).at[places].add(won)
        return advance(keys[plan.length - 1], params, state.public, wins, plan.length), plan.length

    def counted(public: Public, ahead: jax.Array) -> jax.Array:
        """[num_slots], duels of each pair in the next rounds of the phase."""
        ends = jnp.cumsum(public.plays)
        begins = jnp.maximum(ends - public.plays, public.played)
        return jnp.maximum(jnp.minimum(ends, public.played + ahead) - begins, 0)

    def places(public: Public) -> jax.Array:
        """[num_slots], of each pair in a flattened matrix."""
        return public.duels[:, 0] * num_arms + public.duels[:, 1]

    def plan_counts(key, params: Params, public: Public, limit) -> CountPlan:
        del key, params
        each = counted(public, rounds_ahead(public, limit))
        return CountPlan(jnp.zeros(num_arms**2, integer).at[places(public)].add(each))

    def privatize_counts(key, params: Params, public: Public, plan: CountPlan, totals):
        del key, params, public
        return plan.counts, totals

    def absorb_counts(key, params: Params, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        ahead = counts.sum(dtype=integer)
        won = jnp.clip(won, 0, counts).astype(integer)[places(state.public)]
        won = jnp.where(counted(state.public, ahead) > 0, won, 0)
        return advance(key, params, state.public, wins_so_far(state) + won, ahead)

    def answer(params: Params, public: Public) -> jax.Array:
        utilities = jnp.sum(jnp.asarray(params.features) * public.estimate[None], axis=1)
        return ties.largest(jnp.where(public.active, utilities, -jnp.inf), ties.ranks(public.tie_word, num_arms))

    return Learner(
        params=params,
        guarantee=claimed(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        answer=answer,
        blocks=(Blocks(BLOCK, plan_block, absorb_block),),
        counts=Counts(plan_counts, privatize_counts, absorb_counts),
        horizon=rounds,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), answer=arms(num_arms)),
    )
