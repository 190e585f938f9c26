"""Phased elimination of arms with features: G-optimal designs choose the duels, and each phase has one release.

The steps of Algorithm 2 of DP-Dueling (Saha & Asi, 2024):

* Init: D_1 are the given features; kappa is `Params.slope`, and the paper's delta is failure_prob.
* The active arms D_l are `Public.active`; xi_l is `margin_of(phase)` for phase = l - 1.
* `first_design` and `next_design` compute pi_l. `plan_tight` or `plan_paper` computes the pairs C_l and their numbers
  of duels T_l, from the N of `duels_tight` or `duels_paper`. Only `plan_paper` plays the t_0 exploratory duels.
* `act` plays a phase's duels: all duels of the first pair in `Public.duels`, then of the second pair, and so on.
* `release` computes the noisy counts o^_l, the weights w^_l and the arms D_(l+1) that stay, once per phase.
* The duels of the last remaining arm with itself form an endless phase, which `start_phase` builds.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    arms,
    default_float,
    factory,
    guarantee_for,
    leaf_rounded_down,
    pairs,
    scalar_leaf,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling._arm_features import check_features
from jaxdp.dueling._g_optimal_elimination import bulk
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
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics.kernels import any_lane
from jaxdp.random import ties
from jaxdp.validation import check_choice, check_horizon, check_positive, check_probability

CONSTANTS = ("tight", "paper")


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        failure_prob: [] float in (0, 1).
        confidence_multiplier: [] float > 0, multiplies the number of a phase's duels.
        radius: [] float > 0, the maximum norm of estimated weights.
        slope: [] float > 0, kappa, the smallest slope of the logistic function at arguments up to 2 radius in absolute
            value, or up to 2 (radius + 1) with the paper's constants.
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
    """The state that only the curator knows.

    Attributes:
        wins: [num_slots] integer, for each pair of this phase the number of duels that its left arm won. The first
            round of a phase restarts the counts from zero.
    """

    wins: jax.Array


class Public(NamedTuple):
    """The releases so far, and values computed from them.

    Attributes:
        active: [num_arms] bool, the remaining arms.
        estimate: [dim] float, the weights estimated at the end of the last phase; 0 in the first phase.
        phase: [] int32, number of phases that have ended.
        played: [] integer, number of rounds of this phase that have been played.
        duels: [num_slots, 2] int32, the pairs of this phase.
        plays: [num_slots] integer >= 0, the number of duels of each pair in this phase. They sum to the largest integer
            if the phase never ends or only one arm is left.
        rank: [] int32, dimension of the span of the differences of the pairs' features.
        tie_word: [] uint32, a random word that breaks ties in the recommendation.
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
    r"""Plays a few pairs in phases; after each phase, fits utilities to noisy wins, and drops arms with low utilities.

    The utility of an arm with features x is r(x) = x^T w*, with |w*| <= radius. The left arm wins with probability
    sigma(r[left] - r[right]), for the logistic function sigma. Phase l = 1, 2, ... has the margin xi = 2^-l:

    1. A G-optimal design pi for the differences z = x - y of active arms is computed; it has m pairs. Its value g is
    the largest z.V^-1.z over all differences, for V = sum_z pi(z) z z^T; if the design is optimal, g is the rank d of
    the differences.
    2. Each pair of the design duels T(z) = ceil(N pi(z)) times. Laplace(1 / epsilon) noise is added once to its number
    of wins; o(z) is the noisy number.
    3. w minimises the sum of T(z) ln(1 + e^{z.w}) - o(z) z.w over |w| <= radius.
    4. Arm x stays if its estimated utility x^T w is at most xi below the largest estimated utility of an active arm.

    The first design is computed on the host. Later designs are computed within the program, for the remaining arms of
    each lane. N (see Math) is computed from the value g of the actual design, so the guarantee (see Values) also holds
    for a design that is not optimal. The last remaining arm duels with itself.

    Args:
        features: [num_arms, dim] with num_arms >= 2 and 1 <= dim <= num_arms; the rows are distinct, with norms of at
            most 1.
        constants: "tight"; or "paper": the published numbers of duels, for the same estimator. With q = failure_prob, T
            = horizon, d = dim and kappa = sigma'(2 (radius + 1)), the published number is N = 16 d^5 ln(d T / q) /
            (kappa epsilon xi) + 64 d ln(T / q) / (kappa xi)^2. Every phase then plays t0 = 2 (d^1.5 + d sqrt(ln(1 /
            q)))^2 + (16 d / kappa^4) (d^2 + ln(T / q)) further duels, in proportion to the design for all arms. Arms
            stay if they are less than 2 xi below the largest estimated utility.
        horizon: rounds T, >= 2; required for "paper", and not allowed otherwise.
        design_gap: > 0, the fraction by which the value g of a design within the program may exceed its minimum, if
            4,096 steps reach it. A smaller gap takes more steps, and reduces g, to which N is proportional for a given
            m, by less than this fraction. In float32 the gap can hardly be smaller than 1e-2.

    Returns:
        A learner with blocks and counts. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32,
        1 if the left arm wins, else 0 (clipped). Counts are for ordered pairs, in the order of a flattened matrix. The
        learner recommends the active arm with the largest estimated utility; ties are broken at random.

    Raises:
        ValueError: if features are not as above, constants is unknown, design_gap is not > 0, or horizon is out of
            range, missing for "paper", or given for "tight". The result's `params` raises this error if a value is out
            of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies N and t0.
        radius: > 0, by default 1, an upper bound on the norm of w*. Suppose that constants is "tight",
            confidence_multiplier is 1, and users follow the logistic model with |w*| <= radius. Then with probability
            >= 1 - failure_prob the best arm is never dropped, and after each phase l all remaining arms have a utility
            within 2 xi of the best arm's. A smaller confidence_multiplier explores less; this does not change the
            privacy, but gives up the guarantee. For arms without features, use the rows of an identity matrix; then the
            guarantee assumes logistic preferences (Bradley-Terry-Luce).

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: a duel changes one count of one phase, its pair's, by at most 1. The counts of a phase have L1
          sensitivity 1, and are released once, each with Laplace(1 / epsilon) noise. Earlier releases determine the
          pairs, their numbers of duels and the ends of phases, so phases have different users and compose in parallel.
        - Released: `estimate` and values computed from it, which are post-processing of the noisy counts.
        - Private: `wins`.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 2; designs after Kiefer & Wolfowitz (1960).

    Deviations:
        * For an infinite set the paper uses a net; here the arms are given (`jaxdp.design.ball_net` makes a net).
        * A phase's design is for the differences of its active arms; the published text uses the differences of all
          arms.
        * Only differences are estimated, since the published bound on single arms needs 0 among the arms. Arms are
          dropped if they are more than xi below the best estimate, instead of 2 xi.
        * The number of a pair's duels is rounded up.
        * The weights are confined to the ball, so a minimum always exists, and kappa is larger.
        * One bound holds for all differences at once, so neither t0 nor a union bound over arms is needed.
        * For "paper": all duels of a pair are in its count; the t0 duels are spread in proportion to the design, not at
          random; C1 = C2 = 1; and no guarantee is proved for these numbers.
        * Noise is integer, as in `laplace`.

    Math:
        The estimated weights of phase $l$ are, with $z$ over the pairs of its design,

        $$
        \hat w = \operatorname{argmin}_{|w| \le r}
        \sum_z \Big( T(z) \ln(1 + e^{z^\top w}) - \tilde O(z) z^\top w \Big), \quad
        \tilde O(z) = O(z) + \mathrm{Laplace}(1 / \varepsilon)
        $$

        where $r$ is `radius`. $T(z) = \lceil N \pi(z) \rceil$, and for "tight" $N$ is the root of

        $$
        \frac{A}{2 \kappa} \sqrt{\frac{g}{N}} + \frac{g B}{\kappa \varepsilon N} = 2^{-l}, \quad
        \kappa = \frac{e^{2 r}}{(1 + e^{2 r})^2}
        $$

        with $A = \sqrt{d} + \sqrt{2 x}$, $B = m + \sqrt{2 m x} + x$ and $x = \ln(4 l^2 / \beta)$, where $\beta$ is
        `failure_prob`, $m$ the number of pairs of the design and $g$ its value.

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
        raise ValueError(f"horizon must be given for 'paper' and left out otherwise, got {horizon} for {constants!r}")
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
            raise ValueError(f"radius must be smaller: the link's slope underflows {leaf.dtype}, got {radius}")
        return Params(
            epsilon=leaf_rounded_down("epsilon", check_laplace(epsilon)),
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
        """Returns the margin xi = 2^-l of the phase l = phase + 1."""
        return jnp.exp2(-(phase + 1).astype(leaf.dtype))

    def duels_of(number: jax.Array, design: Design) -> jax.Array:
        """Returns each pair's number of duels, T(z), [slots] float; 0 for weight 0, even if N is infinite."""
        return jnp.where(design.weights > 0, jnp.ceil(number * design.weights), 0)

    def plan_tight(params: Params, design: Design, phase: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns a phase's pairs [num_slots, 2] int32, numbers of duels [num_slots] float, and rank [] int32."""
        values: Any = {"epsilon": params.epsilon, "failure_prob": params.failure_prob, "slope": params.slope}
        number = duels_tight(design, phase, margin_of(phase), **values)
        num_duels = duels_of(params.confidence_multiplier * number, design)
        return jnp.asarray(design.pairs), num_duels, jnp.asarray(design.rank)

    def plan_paper(params: Params, design: Design, phase: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the tuple of `plan_tight`; the pairs of the first design follow the pairs of the phase's design."""
        assert rounds is not None
        first = jax.tree.map(jnp.asarray, params.first)
        published: Any = {"dim": dim, "horizon": rounds, "failure_prob": params.failure_prob, "slope": params.slope}
        number = duels_paper(margin_of(phase), epsilon=params.epsilon, **published)
        num_duels = duels_of(params.confidence_multiplier * number, design)
        explored = duels_of(params.confidence_multiplier * explored_paper(**published), first)
        same = jnp.all(design.pairs[:, None] == first.pairs[None], axis=2) & (design.weights > 0)[:, None]
        # Pairs of both designs have one count.
        num_duels = num_duels + jnp.sum(jnp.where(same, explored[None], 0), axis=1)
        explored = jnp.where(jnp.any(same, axis=0), 0, explored)
        return jnp.concatenate([design.pairs, first.pairs]), jnp.concatenate([num_duels, explored]), first.rank

    plan_phase: Callable[..., tuple[jax.Array, jax.Array, jax.Array]] = plan_paper if is_paper else plan_tight

    def start_phase(
        params: Params, active: jax.Array, estimate: jax.Array, phase: jax.Array, design: Design, word
    ) -> Public:
        """Returns the public state before the first round of a phase; `phase` is the number of ended phases."""
        duels, num_duels, rank = plan_phase(params, design, phase)
        # A phase with more duels than an integer can count does not end: its numbers sum to the largest integer.
        is_endless = ~(jnp.sum(num_duels) < largest * (1 - 1e-5))  # the error of a float sum is smaller than this
        cap = largest // num_slots
        plays = jnp.where(is_endless & (num_duels >= cap), cap, num_duels.astype(integer))
        remainder = jnp.where(is_endless, largest - plays.sum(dtype=integer), 0)
        plays = plays + jnp.where(jnp.arange(num_slots) == jnp.argmax(plays), remainder, 0)
        is_alone = jnp.asarray(design.rank) == 0  # one arm is left, or all remaining arms are equal
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
        first, all_arms = jax.tree.map(jnp.asarray, params.first), jnp.ones(num_arms, bool)
        start = start_phase(params, all_arms, jnp.zeros(dim, leaf.dtype), jnp.int32(0), first, ties.own_word(key))
        return State(Private(jnp.zeros(num_slots, integer)), start)

    def length(public: Public) -> jax.Array:
        """Returns the number of rounds of the phase."""
        return public.plays.sum(dtype=integer)

    def slots(public: Public, played: jax.Array) -> jax.Array:
        """Returns the indices, in `Public.duels`, of the pairs that duel in the given rounds of the phase, from 0."""
        slot = jnp.searchsorted(jnp.cumsum(public.plays), played, side="right")
        return jnp.minimum(slot, num_slots - 1).astype(jnp.int32)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.duels[slots(public, public.played)]

    def wins_so_far(state: State) -> jax.Array:
        # Before this phase's first round, `Private.wins` still holds the wins of the previous phase.
        return jnp.where(state.public.played == 0, 0, state.private.wins)

    def release(key, params: Params, public: Public, wins: jax.Array) -> Public:
        """Returns the state after a phase: an estimate from noisy wins, the remaining arms, and the next pairs."""
        noisy = laplace(key, wins, params.epsilon, l1_sensitivity=1.0)
        points = jnp.asarray(params.features)
        differences = points[public.duels[:, 0]] - points[public.duels[:, 1]]
        estimate = fit_in_ball(differences, public.plays, noisy, public.rank, jnp.asarray(params.radius))
        utilities = jnp.sum(points * estimate[None], axis=1)
        behind = jnp.max(jnp.where(public.active, utilities, -jnp.inf)) - utilities
        xi = margin_of(public.phase)
        active = public.active & ~((behind >= 2 * xi) if is_paper else (behind > xi))
        return start_phase(
            params, active, estimate, public.phase + 1, next_design(points, active, gap), public.tie_word
        )

    def advance(key, params: Params, public: Public, wins: jax.Array, rounds: jax.Array) -> State:
        """Adds `rounds` to the phase's round counter (`wins` includes them already); drops arms if the phase ends."""
        after = public._replace(played=public.played + rounds)
        ends = (after.played == length(public)) & (jnp.sum(public.active, dtype=jnp.int32) > 1)

        def end_phase() -> Public:
            next_public = release(key, params, public, wins)
            return jax.tree.map(lambda ended, unended: jnp.where(ends, ended, unended), next_public, after)

        # Designs are slow, so they are computed only if a phase ends in some lane.
        return State(Private(wins), branch(any_lane(ends), end_phase, lambda: after))

    def update(key, params: Params, state: State, report) -> State:
        _, won = report
        is_played_slot = jnp.arange(num_slots, dtype=jnp.int32) == slots(state.public, state.public.played)
        wins = wins_so_far(state) + jnp.where(is_played_slot, jnp.clip(won, 0, 1), 0).astype(integer)
        return advance(key, params, state.public, wins, jnp.ones((), integer))

    def recommend(params: Params, public: Public) -> jax.Array:
        utilities = jnp.sum(jnp.asarray(params.features) * public.estimate[None], axis=1)
        return ties.largest(jnp.where(public.active, utilities, -jnp.inf), ties.ranks(public.tie_word, num_arms))

    steps = bulk.Algorithm(num_arms, slots, length, wins_so_far, advance)
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        recommend=recommend,
        blocks=(bulk.blocks(steps),),
        counts=bulk.counts(steps),
        horizon=rounds,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
    )
