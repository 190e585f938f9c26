"""Exponential weights over a class of sequences, drawn anew as rarely as their law permits."""

import functools
import math
from dataclasses import dataclass
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
    claimed,
    default_float,
    factory,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.conversions import zcdp_rho
from jaxdp.experts._clear_losses import of_expert
from jaxdp.experts._lane_kernels import keep_lane_layout, select  # the same values, in a layout for CPUs
from jaxdp.experts._lazy_weights.decisions import scale_losses, wants_another
from jaxdp.experts._lazy_weights.parameters import (
    ACCOUNTINGS,
    SMALLEST,
    LazyParameters,
    lazy_weights_parameters,
    privacy_cost,
    rounding_of_weights,
)
from jaxdp.experts._losses import UNIT, losses_interface, units_of
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.experts._scaled import Scaled
from jaxdp.experts._sequence_class import Label, SequenceClass, Sequences, Weights
from jaxdp.experts.classes import static
from jaxdp.mechanisms import round_up
from jaxdp.mechanisms.numerical import all_of, below_one, weighted_delta
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum
from jaxdp.numerics.kernels import any_lane
from jaxdp.random import fine_index
from jaxdp.validation import check_choice, check_count, check_epsilon, check_horizon, check_positive, check_within

SLACK = 1e-9  # relative, of the budget: given parameters may come from it
DRIFT = "; not covered: what rounding of weights adds to a resample's range over so many rounds"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        learning_rate: [] float > 0.
        fake_switch_prob: [] float in [0, 1], of a resample after a batch, whatever its losses were.
        batch: [] integer >= 1, rounds in a batch.
        budget: [] integer >= 0, most resamples.
    """

    learning_rate: Scalar
    fake_switch_prob: Scalar
    batch: Scalar
    budget: Scalar


class Private(NamedTuple):
    """What depends on losses.

    Attributes:
        weights: of the class, before this batch.
        losses: [num_experts] sums, in this batch so far.
    """

    weights: Weights
    losses: Sum


class Public(NamedTuple):
    """What has been released.

    Attributes:
        round: [] integer, rounds played.
        label: the sequence that is played, in its state in this batch.
        resamples: [] integer, so far.
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
    together: int = 1,
) -> Learner:
    """Plays a sequence of experts that has the law of exponential weights, and keeps it as long as that law permits.

    A sequence E is drawn from the prior of the class and played. After each batch of B rounds, with L its own loss in
    that batch, it is kept with probability (1 - p) exp(-rate L). Else, if there were fewer than K resamples, it is
    drawn anew with probability proportional to pi(E) exp(-rate * all its losses so far). Sequences switch *between*
    batches only: the class is that over ceil(T / B) steps, its losses are those of whole batches, and its weights move
    once a batch. A comparator that switches within batches loses at most floor(B / 2) a switch by that.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        sequences: a class of `jaxdp.experts.classes`, by default `static()`. The rate of `markov(switch_rate=...)` is
            that after a batch.
        num_switches: of the comparator for which parameters are tuned; by default 0 for `static()`, S for
            `switching(num_switches=S)`, for `markov(switch_rate=...)` the number expected were batches one round long
            (give it where batches are long); `markov()` needs it.
        accounting: "zcdp" or "pure".
        together: how many rounds of a batch are played at once, at most, in blocks; it changes no result. Best is the
            number of rounds in a batch, where that is 4 and more.

    Returns:
        A learner for losses ([num_experts] float in [0, 1]; clipped, NaN to 0); its actions are experts ([] int32).

    Raises:
        ValueError: if num_experts < 2, horizon or together < 1, accounting has another name, or the class does not fit;
            from `params`, if a value is out of range or the budget does not pay for it.

    Values:
        epsilon: the privacy budget, > 0.
        delta: for "zcdp", in (0, 1).
        learning_rate: > 0. This and the values below are by default those with the smallest provable regret,
            `lazy_weights_parameters`.
        fake_switch_prob: p, in (0, 1], or 0 at epsilon = inf.
        batch: B, in [1, T].
        budget: K, >= 0; where one of the three before is given, by default the largest that epsilon pays for.

    Privacy:
        - Unit: one round's loss vector; adjacency: replace one. Central model, losses may react to plays.
        - Released: the batches after which there was a resample, and the sequences drawn, hence all plays.
        - Decisions: a vector is in one batch, whose L it changes by at most 1. The log odds of keeping move within a
          range r = ln(1 + (e^rate - 1) / p). Later decisions depend on it through what was released alone.
        - Resamples: exponential mechanisms of range 2 rate, at most K of them.
        - Ranges r cost r^2 / 8 in zCDP: rho = r^2 / 8 + K rate^2 / 2. Pure: epsilon = max(rate, ln(1 + (1 - p) (1 -
          e^-rate) / p)) + 2 rate K. The claim is what the parameters cost, at most what `epsilon` allows.
        - Slack: a draw of probability p spends at most ln(p + (1 - p) e^(2 rate)), all of 2 rate only as p goes to 0,
          as `limited_updates_oblivious` proves. So the whole claim belongs to an event whose probability goes to 0. At
          the registry's example by pure accounting, of two experts, 0.949 of it is spent, by the exact law.
        - Private leaves: weights, losses of the batch. An auditor's tape shows both mechanisms; a decision that the
          budget forbids, and a resample that does not happen, cost 0 on it.

    Source:
        Asi, Feldman, Koren & Talwar (2023), private shrinking dartboard; Asi, Koren, Liu & Talwar (2024); over a class
        of sequences: "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Theorem 4.1. Before the cap the
        law of E at the start of a batch is that of exponential weights: kept weight and resampled weight add up to it.
        Hoeffding's lemma for losses in [0, B] then bounds the regret; see `lazy_weights_parameters`.

    Deviations:
        Privacy constants are proved here, and smaller than in the sources. Every class runs exactly, without a list of
        its sequences. Weights are floats, which round: `numerical_delta` has a proved bound, and the claim's argument
        says where there is none below 1, as for many rounds in float32. There, of sequences that may switch, the range
        of a resample was seen to exceed 2 rate by 3% at T = 10^6 and by 8% at 10^7. Losses are rounded to multiples of
        2^-20, and those of a batch summed as integers; evidence is a compensated sum of rate * loss in floats. Whether
        a sequence is kept is computed in 64 bits. Where the prior rolls on, a switch has the resolution 2^-23.
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    together = check_count("together", together)
    is_pure = check_choice("accounting", accounting, ACCOUNTINGS) == "pure"
    sequences = static() if sequences is None else sequences
    made = sequences(num_experts=num_experts, horizon=horizon)
    aim = made.num_switches if num_switches is None else check_count("num_switches", num_switches, 0)
    if aim is None:
        raise ValueError(f"num_switches must be given for {made.name}, got None")
    settings = functools.partial(
        _settings, num_experts=num_experts, horizon=horizon, aim=aim, sequences=sequences, accounting=accounting
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
        chosen = settings(epsilon, delta, learning_rate, fake_switch_prob, batch, budget)
        integer = jax.dtypes.canonicalize_dtype(int)
        return Params(
            learning_rate=scalar_leaf("learning_rate", chosen.learning_rate),
            fake_switch_prob=scalar_leaf("fake_switch_prob", chosen.fake_switch_prob),
            batch=integer.type(chosen.batch),
            budget=integer.type(chosen.budget),
        )

    def claim(
        epsilon: float,
        delta: float = 0.0,
        learning_rate: float | None = None,
        fake_switch_prob: float | None = None,
        batch: int | None = None,
        budget: int | None = None,
    ) -> Guarantee:
        argument = "one decision of bounded range, and at most so many resamples by the exponential mechanism"
        about = {"trust_model": "central", "privacy_unit": UNIT}
        if epsilon == math.inf:
            return Guarantee.none(**about, argument=argument)
        chosen = settings(epsilon, delta, learning_rate, fake_switch_prob, batch, budget)
        added = rounding_delta(chosen)
        about |= {"argument": argument + (DRIFT if added is None else ""), "numerical_delta": added}
        spent = privacy_cost(chosen.learning_rate, chosen.fake_switch_prob, chosen.budget, accounting=accounting)
        spent = float(spent) * (1 + SLACK)
        return Guarantee.pure(spent, **about) if is_pure else Guarantee.zcdp(spent, **about)

    def rounding_delta(chosen: LazyParameters) -> float | None:
        """What rounding adds to delta: probabilities of each resample are off by factors of e^(2 r) at most."""
        sums = jax.eval_shape(made.init).sums
        num_weights = sums.mantissa.size if isinstance(sums, Scaled) else num_experts
        log = rounding_of_weights(
            chosen.learning_rate,
            -(-horizon // chosen.batch),
            num_experts=num_experts,
            num_weights=num_weights,
            horizon=horizon,
            is_static=made.name == str(static()),
            unit=float(jnp.finfo(default_float()).eps) / 2,
        )
        rounded = below_one(2 * chosen.budget * math.expm1(min(2 * log, 1.0)))
        return all_of(rounded, weighted_delta(num_weights, chosen.budget))

    def steps(params: Params, round: jax.Array) -> jax.Array:
        """The class's round in the batch of this round: it is begun late, with one step a batch left to go."""
        batch = jnp.asarray(params.batch).astype(round.dtype)
        return horizon - (horizon + batch - 1) // batch + round // batch

    def init(key, params: Params) -> State:
        none = jnp.zeros((), jnp.result_type(int))
        weights = made.init()
        label = made.draw(key, weights, steps(params, none))
        return State(Private(weights, fixed_point.zero(num_experts)), Public(none, label, none))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.label.expert

    def privatize(key, params: Params, public: Public, context: None, action, feedback) -> jax.Array:
        del key, params, public, context, action
        return units_of(feedback)

    def advance(key, params: Params, state: State, losses: Sum, rounds: jax.Array) -> State:
        """After rounds of one batch, the losses of which are added up, and the last of which may be its end."""
        weights, public = state.private.weights, state.public
        played = public.round + rounds
        is_end = (played % params.batch == 0) & (played < horizon)
        # A branch only where no lane of a batch is at the end of its batch: then nothing moves.
        after = jax.lax.cond(
            any_lane(is_end),
            lambda: _batch_end(
                made, key, params, weights, losses, public, played, steps(params, public.round), is_end, is_pure
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

    def absorb(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        losses = fixed_point.add(state.private.losses, sum_rounds(report, planned))
        rounds = plan.length.astype(state.public.round.dtype)
        return advance(keys[plan.length - 1], params, state, losses, rounds), plan.length

    values = only(params, [name for name in _VALUES if name != "delta" or not is_pure])
    return Learner(
        params=values,
        guarantee=claimed(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(min(together, fixed_point.MOST_TERMS), plan, absorb),) if together > 1 else (),
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


_VALUES = ("epsilon", "delta", "learning_rate", "fake_switch_prob", "batch", "budget")


def _batch_end(
    made: SequenceClass,
    key: jax.Array,
    params: Params,
    weights: Weights,
    losses: Sum,
    public: Public,
    played: jax.Array,
    step: jax.Array,
    is_end: jax.Array,
    is_pure: bool,
) -> State:
    """A round at whose end the batch may end: if it does, weights move, and the sequence is kept or drawn anew."""
    key_keep, key_draw, key_roll = jax.random.split(key, 3)
    may = is_end & (public.resamples < params.budget)
    moved = made.forward(weights, step, scale_losses(params.learning_rate, losses).astype(default_float()))
    own = Sum(*(of_expert(word, public.label.expert) for word in losses))
    resampled = may & wants_another(key_keep, params, own, may, is_pure)
    drawn, rolled = (
        _draw_sequence(key_draw, made, params, moved, step + 1, resampled),
        made.roll(key_roll, public.label, step),
    )

    label = select(resampled, drawn, select(is_end, rolled, public.label))
    return State(
        Private(
            select(is_end, moved, weights),
            keep_lane_layout(jax.tree.map(lambda word: jnp.where(is_end, 0, word), losses)),
        ),
        Public(played, label, public.resamples + resampled.astype(public.resamples.dtype)),
    )


def _draw_sequence(
    key: jax.Array, made: SequenceClass, params: Params, weights: Weights, step: jax.Array, resampled: jax.Array
) -> Label:
    """A sequence drawn by weight."""
    law = made.law(weights, step).ravel()
    scores = jnp.log(law)
    epsilon = jnp.where(resampled, 2 * params.learning_rate, 0)
    told = record(Entry("resample", scores, "spread", key, params.learning_rate, epsilon, jnp.square(epsilon) / 8))
    place = fine_index(key, law if told is scores else jax.nn.softmax(told))
    return Label(place % made.num_experts, place // made.num_experts)


@functools.lru_cache(maxsize=1024)
def _settings(
    epsilon: float,
    delta: float,
    learning_rate: float | None,
    fake_switch_prob: float | None,
    batch: int | None,
    budget: int | None,
    *,
    num_experts: int,
    horizon: int,
    aim: int,
    sequences: Sequences,
    accounting: str,
) -> LazyParameters:
    """The parameters in use, as the program holds them: the rate rounded down, the probability rounded up."""
    best = lazy_weights_parameters(
        epsilon=check_epsilon(epsilon),
        delta=delta,
        num_experts=num_experts,
        horizon=horizon,
        num_switches=aim,
        sequences=sequences,
        accounting=accounting,
    )
    is_private = epsilon < math.inf
    given_any = not (learning_rate is None and fake_switch_prob is None and batch is None)
    rate = best.learning_rate if learning_rate is None else check_positive("learning_rate", learning_rate)
    fake = best.fake_switch_prob if fake_switch_prob is None else fake_switch_prob
    check_within("fake_switch_prob", fake, 0.0, 1.0)
    if is_private and not fake >= SMALLEST:
        raise ValueError(f"fake_switch_prob must be >= {SMALLEST:g} at a finite epsilon, got {fake}")
    size = best.batch if batch is None else check_count("batch", batch)
    if size > horizon:
        raise ValueError(f"batch must be <= horizon, got {size} at horizon {horizon}")
    rate, fake = float(leaf_rounded_down("learning_rate", rate)), float(round_up(fake, default_float()))
    decisions = -(-horizon // size) - 1
    most = decisions
    if is_private:
        allowed = (zcdp_rho(epsilon, delta) if accounting == "zcdp" else epsilon) * (1 + SLACK)
        once = float(privacy_cost(rate, fake, 0, accounting=accounting))
        each = float(privacy_cost(rate, fake, 1, accounting=accounting)) - once
        if once > allowed:
            raise ValueError(
                f"epsilon must pay for one decision at learning_rate {rate:g} and fake_switch_prob {fake:g}, got "
                f"{epsilon}: larger fake_switch_prob or smaller learning_rate needed"
            )
        most = min(decisions, int((allowed - once) / each))
    if budget is None:
        budget = most if given_any else min(best.budget, most)
    elif check_count("budget", budget, 0) > most and is_private:
        raise ValueError(
            f"budget must be <= {most}, the resamples that epsilon pays for or that there are, got {budget}"
        )
    return LazyParameters(rate, fake, size, int(budget), best.regret_bound)
