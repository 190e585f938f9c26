"""Losses that react to the plays. They depend on plays of earlier rounds only: each is fixed before the play counts."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Scalar, default_float, factory, scalar_leaf
from jaxdp.experts._adversary import cast, means_vector
from jaxdp.experts._comparators import Comparison, after, begun, check_switches, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry
from jaxdp.random.coins import coins
from jaxdp.validation import check_count, check_horizon, check_number, check_positive, check_within


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class AdaptiveParams:
    """Losses that react to the last play.

    Attributes:
        means: [num_experts] float in [0, 1], mean losses of experts that were not played in the round before.
        penalised: [num_experts] float in [0, 1], mean losses of an expert that was.
    """

    means: np.ndarray
    penalised: np.ndarray


class LastPlay(NamedTuple):
    """What the losses depend on.

    Attributes:
        last: [] int32, the expert played in the round before; -1 at the start.
        comparison: the losses so far.
    """

    last: jax.Array
    comparison: Comparison


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class RepeatParams:
    """Losses that punish repeats.

    Attributes:
        memory: [] integer >= 0, for how many rounds a play is punished.
        good_mean: [] float in [0, 1/2), the good expert's mean loss where it is not punished.
    """

    memory: Scalar
    good_mean: Scalar


class Plays(NamedTuple):
    """What the losses depend on.

    Attributes:
        good_expert: [] int32, the one with the smaller mean.
        since: [num_experts] integers in [1, memory + 1], rounds since each expert was played.
        comparison: the losses so far.
    """

    good_expert: jax.Array
    since: jax.Array
    comparison: Comparison


@factory
def adaptive_losses(means: ArrayLike, *, penalty: float, num_switches: int | None = None) -> Environment:
    """Losses of 0 or 1 that react to the plays: the expert played in the round before has a larger mean.

    Args:
        means: [num_experts] in [0, 1], mean losses of the others.
        penalty: in [0, 1]; the default of the value.
        num_switches: how often the sequence of experts may switch that `dynamic_regret` compares with, >= 0; None for
            none.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in [0, 1]), which depend on plays
        of earlier rounds only. Outcome and summaries as for `loss_sequence`.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1], penalty is not in [0, 1], or
            num_switches is not a whole number >= 0.

    Values:
        penalty: in [0, 1], is added to the mean loss of the expert played in the round before, up to a mean of 1; by
            default the argument.

    Source:
        None; the simplest adversary that adapts.

    Deviations:
        In float32 a probability is a multiple of 2^-24.
    """
    means, switches = means_vector("means", means), check_switches(num_switches)
    others = cast(means)  # one object at every penalty

    def params(*, penalty: float = penalty) -> AdaptiveParams:
        check_within("penalty", check_number("penalty", penalty), 0.0, 1.0)
        return AdaptiveParams(means=others, penalised=cast(np.minimum(means + penalty, 1.0)))

    params()  # refuses a bad default now

    def feedback(key, params: AdaptiveParams, world: LastPlay, action):
        played_last = jnp.arange(len(means), dtype=world.last.dtype) == world.last
        losses = coins(key, jnp.where(played_last, params.penalised, params.means))
        loss = entry(losses, action)
        return LastPlay(action.astype(jnp.int32), after(world.comparison, losses, loss)), losses, {"loss": loss}

    return Environment(
        params=params,
        init=lambda key, params: LastPlay(jnp.int32(-1), begun(len(means), switches)),
        context=None,
        feedback=feedback,
        summary=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        interface=losses_interface(len(means)),
    )


@factory
def punish_repeats(
    *, num_experts: int, memory: int = 1, gap: float = 0.25, num_switches: int | None = None
) -> Environment:
    """Losses that punish playing an expert again: one that was played in the last `memory` rounds has loss 1.

    All others have losses of 0 or 1 of mean 1/2, except for one unknown expert, whose mean is 1/2 - gap. It is drawn
    for each lane.

    Args:
        num_experts: number of experts, >= 2.
        memory: for how many rounds a play is punished; the default of the value.
        gap: how far the good expert's mean lies below 1/2; the default of the value.
        num_switches: how often the sequence of experts may switch that `dynamic_regret` compares with, >= 0; None for
            none.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in {0, 1}), which depend on plays
        of earlier rounds only. Outcomes: `loss`, of the expert played, NaN outside [0, num_experts), which punishes
        nobody; `planted_regret`, the loss less the one of the unknown expert in the same round. Summaries as for
        `loss_sequence`: with the losses as they were shown.

    Raises:
        ValueError: if num_experts < 2, memory < 0, gap is not in (0, 1/2], or num_switches is not a whole number >= 0.

    Values:
        memory: a whole number >= 0, by default the argument.
        gap: in (0, 1/2], by default the argument.

    Source:
        None; after the adversaries of Asi, Feldman, Koren & Talwar (2023), against which only learners that change
        their expert often have small regret.

    Deviations:
        In float32 a probability is a multiple of 2^-24.

    Examples:
        >>> punish_repeats(num_experts=10, memory=5).params(gap=0.5).good_mean.item()
        0.0
    """
    size, switches = check_count("num_experts", num_experts, 2), check_switches(num_switches)

    def params(*, memory: int = memory, gap: float = gap) -> RepeatParams:
        # One less than the largest integer: rounds since a play are counted up to memory + 1.
        rounds = check_horizon(memory, name="memory", minimum=0, spare=1)
        if check_positive("gap", gap) > 0.5:
            raise ValueError(f"gap must be in (0, 1/2], got {gap}")
        return RepeatParams(
            memory=np.dtype(jax.dtypes.canonicalize_dtype(int)).type(rounds),
            good_mean=scalar_leaf("1/2 - gap", 0.5 - gap),
        )

    params()  # refuses a bad default now

    def init(key, params: RepeatParams) -> Plays:
        good = jax.random.randint(key, (), 0, size, jnp.int32)
        return Plays(good, jnp.full(size, jnp.asarray(params.memory) + 1), begun(size, switches))

    def feedback(key, params: RepeatParams, world: Plays, action):
        experts = jnp.arange(size, dtype=jnp.int32)
        means = jnp.where(experts == world.good_expert, params.good_mean, jnp.asarray(0.5, default_float()))
        losses = coins(key, jnp.where(world.since <= params.memory, jnp.ones_like(means), means))
        loss = entry(losses, action)
        # Only now: this round's losses must not depend on this round's play.
        one = jnp.ones_like(world.since)
        since = jnp.where(experts == action.astype(jnp.int32), one, jnp.minimum(world.since, params.memory) + 1)
        now = Plays(world.good_expert, since, after(world.comparison, losses, loss))
        return now, losses, {"loss": loss, "planted_regret": loss - entry(losses, world.good_expert)}

    return Environment(
        params=params,
        init=init,
        context=None,
        feedback=feedback,
        summary=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        interface=losses_interface(size),
    )
