"""Exponential weights over a class of sequences of experts, which rarely resample the sequence."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import (
    BlockPlan,
    Blocks,
    Guarantee,
    Learner,
    Scalar,
    State,
    factory,
    guarantee_for,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._lane_kernels import keep_lane_layout, select  # they set a layout for CPUs
from jaxdp.experts._lazy_weights.decisions import Weighing, draw, rejects_sequence, weigh_experts, weigh_sequences
from jaxdp.experts._lazy_weights.parameters import (
    ACCOUNTINGS,
    SLACK,
    LazyParameters,
    chosen_parameters,
    privacy_cost,
    rounding_of_weights,
)
from jaxdp.experts._losses import UNIT, losses_interface, of_expert, reveal_units
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.experts._scaled import Scaled
from jaxdp.experts._sequence_class import Label, SequenceClass, Sequences, Weights
from jaxdp.experts.classes import static
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.numerical import all_of, weighted_delta
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum
from jaxdp.numerics.kernels import any_lane
from jaxdp.validation import check_choice, check_count, check_horizon

DRIFT = "; not covered: the rounding of weights, which over so many rounds widens a resample's range"


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        learning_rate: [] float > 0.
        fake_switch_prob: [] float in [0, 1], p, the probability of a resample after a batch without losses.
        batch: [] integer >= 1, number of rounds in a batch.
        budget: [] integer >= 0, maximum number of resamples.
    """

    learning_rate: Scalar
    fake_switch_prob: Scalar
    batch: Scalar
    budget: Scalar


class Private(NamedTuple):
    """The private state, which depends on losses and is not released.

    Attributes:
        weights: the weights of the class before the current batch; for `static()`, the exact sums of each expert's
            losses. They do not change after the last resample that the budget allows.
        losses: [num_experts] sums of the losses in the current batch so far.
    """

    weights: Weights | Sum
    losses: Sum


class Public(NamedTuple):
    """The released state.

    Attributes:
        round: [] integer, rounds played.
        label: the state of the current sequence in the current batch.
        resamples: [] integer, number of resamples so far.
    """

    round: jax.Array
    label: Label
    resamples: jax.Array


@factory
def lazy_weights(
    *,
    num_experts: int,
    horizon: int,
    sequences: Sequences | None = None,
    num_switches: int | None = None,
    accounting: str = "zcdp",
    rounds_per_step: int = 1,
) -> Learner:
    r"""Plays a sequence of experts drawn by exponential weights, and resamples the sequence only rarely.

    The learner draws a sequence of experts from the prior of the class, and plays it. After each batch of B rounds, the
    sequence is kept with a probability that decreases in the sequence's loss in this batch. Otherwise, if there have
    been fewer than K resamples, a new sequence is drawn with probability proportional to its prior times exp(-rate *
    its total loss so far). Sequences switch only *between* batches: the class has ceil(T / B) steps, and the losses of
    a step are the losses of a whole batch. If the comparator switches within batches, each switch increases the regret
    by at most floor(B / 2).

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        sequences: a class of `jaxdp.experts.classes`, by default `static()`. The switch rate of `markov` is the rate
            per batch.
        num_switches: the comparator's number of switches, >= 0 and < horizon, for which parameters are tuned. The
            default is 0 for `static()`, S for `switching(num_switches=S)`, and for `markov(switch_rate=...)` the
            rounded expected number of switches if a batch is one round (for longer batches, pass a number). `markov()`
            has no default.
        accounting: "zcdp" (from epsilon and delta) or "pure" (from epsilon).
        rounds_per_step: maximum number of rounds of a batch that are played in one step, in blocks; larger numbers than
            1,024 have the effect of 1,024, and with 1 the learner has no blocks. It affects the speed but not the
            results. If batches have at least 4 rounds, the fastest choice is the length of a batch.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if num_experts < 2, horizon < 1, rounds_per_step < 1, num_switches is not an integer >= 0 or is
            omitted for a class without a default, accounting is not one of the names above, or the class does not allow
            these sizes. The result's `params` raises this error if a value is out of range, the class has no sequence
            with num_switches switches, or the privacy cost of the values is more than epsilon allows.

    Values:
        epsilon: the privacy budget, > 0.
        delta: for "zcdp", in (0, 1).
        learning_rate: > 0. By default, this value and the following values minimise the proved regret bound (see
            `lazy_weights_parameters`).
        fake_switch_prob: p, the probability of a resample after a batch without losses; in [1e-6, 1], at epsilon = inf
            in [0, 1].
        batch: B, the number of rounds in a batch, in [1, T].
        budget: K, the maximum number of resamples, >= 0; at a finite epsilon also <= ceil(T / B) - 1, the number of
            decisions. If learning_rate, fake_switch_prob or batch is given, the default is the largest K <= ceil(T / B)
            - 1 that epsilon allows.

    Privacy:
        - Unit: one round's loss vector; adjacency: replace one. The claim is in the central model, and losses may
          depend on earlier plays.
        - Released: the batches after which a resample took place, and the sequences that were drawn; these determine
          all plays.
        - Decisions: A vector belongs to one batch, and changes the sequence's loss in this batch by at most 1. The log
          odds of keeping the sequence therefore vary in a range of width r = ln(1 + (e^rate - 1) / p). Later decisions
          depend on the vector only through released values.
        - Resamples: at most K exponential mechanisms of range 2 * rate.
        - Cost: A mechanism of range r costs r^2 / 8 in zCDP, so rho = r^2 / 8 + K * rate^2 / 2. In pure DP, epsilon =
          max(rate, ln(1 + (1 - p) * (1 - e^-rate) / p)) + 2 * rate * K. The claim is the cost of the parameters in use,
          which exceeds the budget by at most a factor of 1 + 3e-9 (a tolerance for rounding).
        - Slack: The privacy loss approaches the claim only for outcomes with probabilities approaching 0 (see
          `docs/proofs/selections.md`).
        - Private: the weights, and the losses of the current batch. An auditor's tape records both mechanisms. The
          recorded cost is 0 for a decision that the budget forbids, and for a resample that does not take place.

    Source:
        Asi, Feldman, Koren & Talwar (2023), private shrinking dartboard; Asi, Koren, Liu & Talwar (2024). Over a class
        of sequences: "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Theorem 4.1. As long as the budget
        is not used up, the sequence at the start of each batch is distributed according to exponential weights, because
        the probabilities of keeping and of drawing a sequence add up to this distribution. Hoeffding's lemma for losses
        in [0, B] then bounds the regret (see `lazy_weights_parameters`).

    Deviations:
        - The privacy constants are proved here, and are smaller than in the sources. The sums of weights over all
          sequences of a class are exact up to rounding, and need no list of the sequences.
        - Losses are rounded to multiples of 2^-20. The sums over a batch, and for `static()` over all rounds, are
          integers. The weights of `static()`, and the decision whether to keep a sequence, are computed from these sums
          with 64-bit floats.
        - The weights of sequences that may switch are rounded products of floats; `numerical_delta` includes a bound on
          the effect of rounding (`docs/proofs/lazy_weights.md`). If no bound is below 1, as for many rounds in float32,
          the claim's argument says so. In measurements, the range of a resample then exceeded 2 * rate by 3% at T =
          10^6 and by 8% at T = 10^7.
        - In float32, the probabilities of switches that are drawn from the prior are multiples of 2^-23.

    Math:
        After a batch in which the sequence that is played had the loss $L$, it is kept with probability

        $$
        (1 - p) e^{-\eta L}
        $$

        Otherwise a sequence $E$ is drawn, at most $K$ times in all, with probability proportional to

        $$
        \pi(E) \exp( -\eta L_{\mathrm{past}}(E) )
        $$

        where $\pi$ is the prior of the class and $L_{\mathrm{past}}(E)$ the loss of $E$ so far. The cost is $\rho$-zCDP
        with

        $$
        \rho = \frac{r^2}{8} + \frac{K \eta^2}{2}, \quad r = \ln\Big( 1 + \frac{e^{\eta} - 1}{p} \Big)
        $$
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    rounds_per_step = check_count("rounds_per_step", rounds_per_step)
    is_pure = check_choice("accounting", accounting, ACCOUNTINGS) == "pure"
    sequences = static() if sequences is None else sequences
    chain = sequences(num_experts=num_experts, horizon=horizon)
    is_static = chain.name == str(static())
    weighing = weigh_experts(num_experts) if is_static else weigh_sequences(chain)
    switches = chain.num_switches if num_switches is None else check_count("num_switches", num_switches, 0)
    if switches is None:
        raise ValueError(f"num_switches must be given for {chain.name}, got None")
    settings = functools.partial(
        chosen_parameters,
        num_experts=num_experts,
        horizon=horizon,
        switches=switches,
        sequences=sequences,
        accounting=accounting,
    )

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        learning_rate: float | None = None,
        fake_switch_prob: float | None = None,
        batch: int | None = None,
        budget: int | None = None,
    ) -> Params:
        tuned = settings(epsilon, delta, learning_rate, fake_switch_prob, batch, budget)
        integer = jax.dtypes.canonicalize_dtype(int)
        return Params(
            learning_rate=scalar_leaf("learning_rate", tuned.learning_rate),
            fake_switch_prob=scalar_leaf("fake_switch_prob", tuned.fake_switch_prob),
            batch=integer.type(tuned.batch),
            budget=integer.type(tuned.budget),
        )

    def claim(
        epsilon: float,
        delta: float = 0.0,
        learning_rate: float | None = None,
        fake_switch_prob: float | None = None,
        batch: int | None = None,
        budget: int | None = None,
    ) -> Guarantee:
        argument = (
            "a loss vector affects one decision of bounded range, and a limited number of resamples; each resample is "
            "by the exponential mechanism"
        )
        fields = {"trust_model": "central", "privacy_unit": UNIT}
        if epsilon == math.inf:
            return Guarantee.none(**fields, argument=argument)
        tuned = settings(epsilon, delta, learning_rate, fake_switch_prob, batch, budget)
        numerical_delta = rounding_delta(tuned)
        fields |= {
            "argument": argument + (DRIFT if numerical_delta is None else ""),
            "numerical_delta": numerical_delta,
        }
        spent = privacy_cost(tuned.learning_rate, tuned.fake_switch_prob, tuned.budget, accounting=accounting)
        spent = float(spent) * (1 + SLACK)
        return Guarantee.pure(spent, **fields) if is_pure else Guarantee.zcdp(spent, **fields)

    def rounding_delta(tuned: LazyParameters) -> float | None:
        """Returns a bound on the delta from rounding in draws and in float weights; None if no bound is below 1."""
        if is_static:
            return weighted_delta(num_experts, tuned.budget)
        sums = jax.eval_shape(chain.init).sums
        assert isinstance(sums, Scaled)
        return all_of(
            rounding_of_weights(tuned, num_experts=num_experts, num_weights=sums.mantissa.size, horizon=horizon),
            weighted_delta(sums.mantissa.size, tuned.budget),
        )

    def steps(params: Params, round: jax.Array) -> jax.Array:
        """Returns the class's round for the batch of `round`; batches are the last rounds of the class's T rounds."""
        batch = jnp.asarray(params.batch).astype(round.dtype)
        return horizon - (horizon + batch - 1) // batch + round // batch

    def init(key, params: Params) -> State:
        none = jnp.zeros((), jnp.result_type(int))
        label = chain.draw(key, chain.init(), steps(params, none))
        return State(Private(weighing.init(), fixed_point.zero(num_experts)), Public(none, label, none))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.label.expert

    def advance(key, params: Params, state: State, losses: Sum, rounds: jax.Array) -> State:
        """Advances by `rounds` rounds of one batch; `losses` are the sums of the batch's losses after these rounds."""
        weights, public = state.private.weights, state.public
        played = public.round + rounds
        is_end = (played % params.batch == 0) & (played < horizon)
        # XLA skips the computation for the end of a batch only if no lane is at the end of its batch.
        after = branch(
            any_lane(is_end),
            lambda: _batch_end(
                chain,
                weighing,
                key,
                params,
                weights,
                losses,
                public,
                played,
                steps(params, public.round),
                is_end,
                is_pure,
            ),
            lambda: State(Private(weights, losses), public._replace(round=played)),
        )
        return keep_lane_layout(after)

    def update(key, params: Params, state: State, report) -> State:
        losses = keep_lane_layout(fixed_point.add(state.private.losses, report))
        return advance(key, params, state, losses, jnp.ones_like(state.public.round))

    def plan(keys, params: Params, public: Public, contexts: None, limit) -> BlockPlan:
        del contexts
        left = params.batch - public.round % params.batch
        return BlockPlan(jnp.broadcast_to(public.label.expert, keys.shape), jnp.minimum(limit, left))

    def update_block(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        losses = fixed_point.add(state.private.losses, sum_rounds(report, planned))
        rounds = plan.length.astype(state.public.round.dtype)
        return advance(keys[plan.length - 1], params, state, losses, rounds), plan.length

    values = only(params, [name for name in _VALUES if name != "delta" or not is_pure])
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_units,
        update=update,
        blocks=(Blocks(min(rounds_per_step, fixed_point.MOST_TERMS), plan, update_block),)
        if rounds_per_step > 1
        else (),
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


_VALUES = ("epsilon", "delta", "learning_rate", "fake_switch_prob", "batch", "budget")


def _batch_end(
    chain: SequenceClass,
    weighing: Weighing,
    key: jax.Array,
    params: Params,
    weights: Weights | Sum,
    losses: Sum,
    public: Public,
    played: jax.Array,
    step: jax.Array,
    is_end: jax.Array,
    is_pure: bool,
) -> State:
    """Advances to round `played`; at the end of a batch, updates the weights, and keeps or resamples the sequence."""
    key_keep, key_draw, key_roll = jax.random.split(key, 3)
    # This flag is public. After the last resample the weights are no longer used.
    may_resample = is_end & (public.resamples < params.budget)

    def reconsider() -> tuple[Weights | Sum, jax.Array, Label]:
        new_weights = weighing.absorb(params.learning_rate, weights, step, losses)
        played_loss = Sum(*(of_expert(word, public.label.expert) for word in losses))
        resampled = may_resample & rejects_sequence(key_keep, params, played_loss, may_resample, is_pure)
        drawn = draw(key_draw, weighing, params, new_weights, step + 1, resampled)
        return select(may_resample, new_weights, weights), resampled, select(resampled, drawn, public.label)

    new_weights, resampled, drawn = branch(
        any_lane(may_resample), reconsider, lambda: (weights, jnp.zeros_like(may_resample), public.label)
    )
    rolled = chain.roll(key_roll, public.label, step)
    return State(
        Private(new_weights, keep_lane_layout(jax.tree.map(lambda word: jnp.where(is_end, 0, word), losses))),
        Public(
            played,
            select(is_end & ~resampled, rolled, drawn),
            public.resamples + resampled.astype(public.resamples.dtype),
        ),
    )
