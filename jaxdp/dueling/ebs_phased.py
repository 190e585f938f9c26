"""Phased elimination by effective Borda scores, with one private release a phase."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
    claimed,
    factory,
    pairs,
    scalar_leaf,
)
from jaxdp.mechanisms import noisy_leads
from jaxdp.validation import check_epsilon, check_num_arms, check_positive, check_probability

BLOCK_PER_ARM = 16


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        passes: [num_phases, num_arms + 1] integer >= 1, how often each phase plays all pairs of so many active arms;
            the largest integer stands for a phase that is too long to end.
    """

    epsilon: Scalar
    passes: np.ndarray


class Private(NamedTuple):
    """What the curator knows.

    Attributes:
        wins: [num_arms] integer, duels of the phase that each arm has won as the left one. They are counted from zero
            again in the first round of a phase.
    """

    wins: jax.Array


class Public(NamedTuple):
    """What has been released, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        phase: [] int32, phases that have ended.
        played: [] integer, rounds of this phase played.
    """

    active: jax.Array
    phase: jax.Array
    played: jax.Array


@factory
def ebs_phased(*, num_arms: int) -> Learner:
    """Duels of all pairs of active arms; after each phase, arms with a low noisy share of wins are dropped.

    Phase e = 1, 2, ... looks for arms whose effective Borda score, their probability of beating a random active arm,
    is about D = 2^-e below the best. Each active arm is the left one in n duels, against each active arm in turn
    (itself included), with x = ln(8 S e^2 / failure_prob), S active arms and

        n = max(32 x / D^2, 8 x / (epsilon D)),  rounded up to a multiple of S.

    Then each arm's wins get Laplace(1 / epsilon) noise, once, and an arm whose noisy share is more than D / 2 below the
    largest one is dropped. An arm that is left alone duels with itself.

    Values: `epsilon`, the privacy budget, > 0; `failure_prob`, in (0, 1), by default 0.05; `confidence_multiplier`,
    > 0, by default 1, which multiplies n. With 1 the best arm is dropped with probability <= failure_prob, if the
    preferences have a total order as in DP-Dueling. Less is more daring, as private, and without that guarantee.

    Args:
        num_arms: number of arms, >= 2.

    Returns:
        A learner whose actions are pairs of arms ([2] int32: left, right), with blocks and counts (of ordered pairs, in
        the order of a flattened matrix). Feedback is [] int32, 1 if the left arm wins, clipped to {0, 1}.

    Raises:
        ValueError: if num_arms < 2 or all pairs are more than integers count.

    Privacy: epsilon-DP in the central model; unit: one duel's outcome; adjacency: replace one. A duel enters one count
        (the left arm's) of one phase, by 1; the counts of a phase, of L1 sensitivity 1, are released once, with
        Laplace(1 / epsilon) noise each. When phases end follows from earlier releases, so that phases concern different
        users and compose in parallel. Private leaves: `wins`. Released: `active`, post-processing of the noisy counts.
    Source: DP-Dueling (Saha & Asi, 2024), Algorithm 1, in the phased form that mends its analysis: there scores of an
        active set that depends on the outcomes are treated as fixed. Hoeffding's inequality leaves each share within
        D / 8 of its mean but for probability 2 exp(-x), and noise within n D / 8 but for exp(-x): 3/8 of failure_prob
        / e^2 over all arms of a phase, and less than failure_prob over all phases.
    Deviations: opponents come in turn, not at random, which leaves the mean of a share exact and its spread smaller.
        Noisy counts are compared by their leads (`noisy_leads`), which floats hold; floating-point noise, as in
        `laplace`.

    >>> import jax, jaxdp
    >>> duels = jaxdp.dueling.utility_duels([2.0, 0.0, -1.0])
    >>> run = jaxdp.simulator(ebs_phased(num_arms=3), duels, horizon=10**6, engine="counts")
    >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
    >>> outputs["best_duels"].item() > 990_000
    True
    """
    num_arms, integer = check_num_arms(num_arms), jnp.result_type(int)
    largest = int(jnp.iinfo(integer).max)
    num_phases = integer.itemsize * 4  # the last one would be too long to end: 32 x 4^e duels

    def passes(epsilon: float, failure_prob: float, confidence_multiplier: float) -> np.ndarray:
        table = np.full((num_phases, num_arms + 1), largest, integer)
        for index, gap in enumerate((2.0 ** -np.arange(1, num_phases + 1)).tolist()):
            for size in range(1, num_arms + 1):
                x = math.log(8 * size * (index + 1) ** 2 / failure_prob)
                duels = confidence_multiplier * max(32 * x / gap**2, 8 * x / gap / epsilon)
                if duels * size < largest:  # all of the phase's rounds
                    table[index, size] = min(math.ceil(duels / size), largest // size**2)
        return table

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        leaf = scalar_leaf("epsilon", check_epsilon(epsilon))
        return Params(epsilon=leaf, passes=passes(epsilon, failure_prob, confidence_multiplier))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one duel's outcome",
            argument="each outcome enters one count, released once by the Laplace mechanism at L1 sensitivity 1",
        )

    def init(key, params: Params) -> State:
        del key, params
        public = Public(jnp.ones(num_arms, bool), jnp.int32(0), jnp.zeros((), integer))
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def size_of(public: Public) -> jax.Array:
        return jnp.sum(public.active, dtype=integer)

    def length(params: Params, public: Public) -> jax.Array:
        """Rounds of this phase; a lone arm plays on for ever."""
        size = size_of(public)
        each = jnp.asarray(params.passes)[jnp.minimum(public.phase, num_phases - 1), size]
        return jnp.where((size == 1) | (each == largest), largest, each * jnp.where(each == largest, 0, size * size))

    def duels(public: Public, played: jax.Array) -> jax.Array:
        """The pairs [..., 2] of these rounds of the phase: left arms in turn, and after all of them the next right."""
        arms = jnp.argsort(~public.active, stable=True).astype(jnp.int32)  # active ones first
        size = size_of(public)
        return jnp.stack([arms[played % size], arms[played // size % size]], axis=-1)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return duels(public, public.played)

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del key, params, public, context
        return action, feedback  # central model: the curator sees the duel and its outcome

    def wins_so_far(state: State) -> jax.Array:
        return jnp.where(state.public.played == 0, 0, state.private.wins)

    def release(key, params: Params, public: Public, wins: jax.Array) -> Public:
        leads = noisy_leads(key, wins, params.epsilon, l1_sensitivity=1.0, among=public.active)
        size = size_of(public)
        each = (length(params, public) // size).astype(leads.dtype)  # duels of each arm as the left one
        margin = each * jnp.exp2(-(public.phase + 2).astype(leads.dtype))  # n D / 2
        return Public(public.active & (-leads <= margin), public.phase + 1, jnp.zeros_like(public.played))

    def advance(key, params: Params, public: Public, wins: jax.Array, rounds: jax.Array) -> State:
        """Goes on by some rounds of the phase, and drops arms if it ends with the last of them."""
        after = public._replace(played=public.played + rounds)
        after = jax.lax.cond(
            (after.played == length(params, public)) & (size_of(public) > 1),
            lambda: release(key, params, public, wins),
            lambda: after,
        )
        return State(Private(wins), after)

    def update(key, params: Params, state: State, report) -> State:
        action, won = report
        mine = jnp.arange(num_arms, dtype=action.dtype) == action[0]
        wins = wins_so_far(state) + jnp.where(mine, jnp.clip(won, 0, 1), 0).astype(integer)
        return advance(key, params, state.public, wins, jnp.ones((), integer))

    def rounds_ahead(params: Params, public: Public, limit: jax.Array) -> jax.Array:
        return jnp.minimum(limit, length(params, public) - public.played)

    def plan_block(keys, params: Params, public: Public, contexts: None, limit) -> BlockPlan:
        del contexts
        played = public.played + jnp.arange(len(keys), dtype=integer)
        return BlockPlan(duels(public, played), rounds_ahead(params, public, limit))

    def absorb_block(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        won = jnp.where(planned, jnp.clip(feedback, 0, 1), 0).astype(integer)
        wins = wins_so_far(state) + won @ jax.nn.one_hot(actions[:, 0], num_arms, dtype=integer)
        return advance(keys[plan.length - 1], params, state.public, wins, plan.length), plan.length

    def plan_counts(key, params: Params, public: Public, limit) -> CountPlan:
        del key
        ahead, size = rounds_ahead(params, public, limit), size_of(public)
        rank = jnp.cumsum(public.active, dtype=integer) - 1
        place = rank[:, None] + size * rank[None, :]  # of the pair among the rounds of a pass
        every = size * size
        last = public.played + ahead - 1
        counts = (last - place) // every - (public.played - 1 - place) // every
        return CountPlan(jnp.where(public.active[:, None] & public.active[None, :], counts, 0).ravel())

    def privatize_counts(key, params: Params, public: Public, plan: CountPlan, totals):
        del key, params, public
        return plan.counts, totals

    def absorb_counts(key, params: Params, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        won = jnp.clip(won, 0, counts).astype(integer).reshape(num_arms, num_arms).sum(1)
        return advance(key, params, state.public, wins_so_far(state) + won, counts.sum(dtype=integer))

    return Learner(
        params=params,
        guarantee=claimed(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(BLOCK_PER_ARM * num_arms, plan_block, absorb_block),),
        counts=Counts(plan_counts, privatize_counts, absorb_counts),
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
