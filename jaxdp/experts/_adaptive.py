"""Losses that depend on the learner's plays in earlier rounds, but never on its play in the same round."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Scalar, default_float, factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._adversary import cast, means_vector
from jaxdp.experts._comparators import Comparison, add_round, check_switches, init_comparison, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry
from jaxdp.random.coins import coins
from jaxdp.validation import check_count, check_horizon, check_number, check_positive, check_within


@pytree_dataclass
class AdaptiveParams:
    """The parameters of `adaptive_losses`, which JAX traces.

    Attributes:
        means: [num_experts] float in [0, 1], each expert's mean loss if it was not played in the previous round.
        penalised: [num_experts] float in [0, 1], each expert's mean loss if it was played in the previous round.
    """

    means: np.ndarray
    penalised: np.ndarray


class LastPlay(NamedTuple):
    """The last play, on which the next losses depend, and sums of past losses.

    Attributes:
        last: [] int32, the expert played in the previous round; -1 before the first round.
        comparison: sums of past losses, for metrics.
    """

    last: jax.Array
    comparison: Comparison


@pytree_dataclass
class RepeatParams:
    """The parameters of `punish_repeats`, which JAX traces.

    Attributes:
        memory: [] integer >= 0, the number of rounds for which a play is punished.
        good_mean: [] float in [0, 1/2], 1/2 - gap (rounded): the good expert's mean loss in rounds in which it is not
            punished.
    """

    memory: Scalar
    good_mean: Scalar


class Plays(NamedTuple):
    """The good expert and past plays, on which later losses depend, and sums of past losses.

    Attributes:
        good_expert: [] int32, the expert with the smaller mean while it is not punished.
        since: [num_experts] integer in [1, memory + 1], the number of rounds since each expert was played; memory + 1
            if the expert was not played within the last `memory` rounds.
        comparison: sums of past losses, for metrics.
    """

    good_expert: jax.Array
    since: jax.Array
    comparison: Comparison


@factory
def adaptive_losses(means: ArrayLike, *, penalty: float, num_switches: int | None = None) -> Environment:
    """An adaptive adversary with losses of 0 or 1: the expert played in the previous round has a larger mean loss.

    Args:
        means: [num_experts] in [0, 1], mean losses of experts that were not played in the previous round.
        penalty: default of the value `penalty` (see Values).
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, >= 0; None omits this
            metric.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in {0, 1}), which depend only on
        plays of earlier rounds. The outcome and the metrics in hindsight are as for `loss_sequence`.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1], penalty is not in [0, 1], or
            num_switches is not an integer >= 0.

    Values:
        penalty: in [0, 1]; by default the argument `penalty`. It is added to the mean loss of the expert played in the
            previous round; the result is clipped to 1.

    Source:
        None; this is a simple adaptive adversary.

    Deviations:
        In float32 a probability is a multiple of 2^-24.
    """
    means, switches = means_vector("means", means), check_switches(num_switches)
    unplayed_means = cast(means)  # this object is shared by all penalties

    def params(*, penalty: float = penalty) -> AdaptiveParams:
        check_within("penalty", check_number("penalty", penalty), 0.0, 1.0)
        return AdaptiveParams(means=unplayed_means, penalised=cast(np.minimum(means + penalty, 1.0)))

    params()  # checks the default

    def feedback(key, params: AdaptiveParams, world: LastPlay, action):
        played_last = jnp.arange(len(means), dtype=world.last.dtype) == world.last
        losses = coins(key, jnp.where(played_last, params.penalised, params.means))
        loss = entry(losses, action)
        return LastPlay(action.astype(jnp.int32), add_round(world.comparison, losses, loss)), losses, {"loss": loss}

    return Environment(
        params=params,
        init=lambda key, params: LastPlay(jnp.int32(-1), init_comparison(len(means), switches)),
        context=None,
        feedback=feedback,
        hindsight=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        interface=losses_interface(len(means)),
    )


@factory
def punish_repeats(
    *, num_experts: int, memory: int = 1, gap: float = 0.25, num_switches: int | None = None
) -> Environment:
    """Losses that punish repeated plays: an expert has loss 1 if it was played within the last `memory` rounds.

    In rounds in which it is not punished, an expert has a loss of 0 or 1 with mean 1/2, or with mean 1/2 - gap for one
    good expert. Each lane draws its good expert. The learner does not know this expert.

    Args:
        num_experts: number of experts, >= 2.
        memory: default of the value `memory` (see Values).
        gap: default of the value `gap` (see Values).
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, >= 0; None omits this
            metric.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in {0, 1}), which depend only on
        plays of earlier rounds. Outcomes: `loss`, the loss of the expert played; `planted_regret`, this loss minus the
        good expert's loss in the same round. For an action outside [0, num_experts) both are NaN, and no expert is
        punished for it. Metrics in hindsight are as for `loss_sequence`, computed from the losses that occurred.

    Raises:
        ValueError: if num_experts is not an integer >= 2, memory is not an integer >= 0 or memory + 1 overflows in
            JAX's integers, gap is not in (0, 1/2], or num_switches is not an integer >= 0.

    Values:
        memory: an integer >= 0, the number of rounds for which a play is punished; by default the argument `memory`.
        gap: in (0, 1/2], 1/2 minus the good expert's mean; by default the argument `gap`.

    Source:
        None; inspired by the adversaries of Asi, Feldman, Koren & Talwar (2023). Against these adversaries, only
        learners that frequently switch experts have small regret.

    Deviations:
        In float32 a probability is a multiple of 2^-24.

    Examples:
        >>> punish_repeats(num_experts=10, memory=5).params(gap=0.5).good_mean.item()
        0.0
    """
    size, switches = check_count("num_experts", num_experts, 2), check_switches(num_switches)

    def params(*, memory: int = memory, gap: float = gap) -> RepeatParams:
        # `memory` must be below the largest integer, because rounds since a play are counted up to memory + 1.
        rounds = check_horizon(memory, name="memory", minimum=0, spare=1)
        if check_positive("gap", gap) > 0.5:
            raise ValueError(f"gap must be in (0, 1/2], got {gap}")
        return RepeatParams(
            memory=np.dtype(jax.dtypes.canonicalize_dtype(int)).type(rounds),
            good_mean=scalar_leaf("1/2 - gap", 0.5 - gap),
        )

    params()  # checks the defaults

    def init(key, params: RepeatParams) -> Plays:
        good = jax.random.randint(key, (), 0, size, jnp.int32)
        return Plays(good, jnp.full(size, jnp.asarray(params.memory) + 1), init_comparison(size, switches))

    def feedback(key, params: RepeatParams, world: Plays, action):
        experts = jnp.arange(size, dtype=jnp.int32)
        means = jnp.where(experts == world.good_expert, params.good_mean, jnp.asarray(0.5, default_float()))
        losses = coins(key, jnp.where(world.since <= params.memory, jnp.ones_like(means), means))
        loss = entry(losses, action)
        # This is updated after the losses, because they must not depend on this round's play.
        one = jnp.ones_like(world.since)
        since = jnp.where(experts == action.astype(jnp.int32), one, jnp.minimum(world.since, params.memory) + 1)
        next_world = Plays(world.good_expert, since, add_round(world.comparison, losses, loss))
        return next_world, losses, {"loss": loss, "planted_regret": loss - entry(losses, world.good_expert)}

    return Environment(
        params=params,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        interface=losses_interface(size),
    )
