"""Where the losses of experts come from. All give full information: every round shows the losses of all experts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp import compensated
from jaxdp.core import Environment, Interface, Space, arms, default_float, factory
from jaxdp.gaps import unit_instance
from jaxdp.lookup import entry
from jaxdp.validation import check_number, check_within


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class StochasticParams:
    """Independent losses of 0 or 1.

    Attributes:
        means: [num_experts] float in [0, 1], the experts' mean losses.
        gaps: [num_experts] float >= 0, how far each lies above the smallest.
    """

    means: np.ndarray
    gaps: np.ndarray


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class SequenceParams:
    """Losses that are fixed in advance.

    Attributes:
        losses: [horizon, num_experts] float in [0, 1].
    """

    losses: np.ndarray


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class AdaptiveParams:
    """Losses that react to the plays.

    Attributes:
        means: [num_experts] float in [0, 1], mean losses of experts that were not played in the round before.
        penalised: [num_experts] float in [0, 1], mean losses of an expert that was.
    """

    means: np.ndarray
    penalised: np.ndarray


class Hindsight(NamedTuple):
    """What has happened, for the comparison with the best fixed expert.

    Attributes:
        round: [] integer, rounds played.
        last: [] int32, the expert played in the round before; -1 at the start.
        losses: [num_experts] compensated sums of the experts' losses.
        loss: [] compensated sum of the learner's own.
    """

    round: jax.Array
    last: jax.Array
    losses: compensated.Sum
    loss: compensated.Sum


@factory
def stochastic_losses(means: ArrayLike) -> Environment:
    """Losses of 0 or 1, independent over rounds and experts.

    Values: `gap`, > 0, how far the second-best mean lies above the smallest: all gaps change in proportion, and the
    smallest mean stays; by default that of `means`. `best_mean`, in [0, 1], the smallest mean, from which gaps are
    counted; by default that of `means`.

    Args:
        means: [num_experts] in [0, 1], mean losses.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in [0, 1]). Outcomes: `loss`, of
        the expert played; `pseudo_regret`, its mean loss less the smallest one. Both are NaN for an expert outside
        [0, num_experts).

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1]; from `params`, if a value is out of
            range or moves a mean out of [0, 1], or there is no gap to change.

    Source: standard.
    Deviations: in float32 a probability is a multiple of 2^-23.
    """
    given = _vector("means", means)

    def params(*, gap: float | None = None, best_mean: float | None = None) -> StochasticParams:
        exact, gaps = unit_instance(given, gap, best_mean, losses=True)
        return StochasticParams(means=_cast(exact), gaps=_cast(gaps))

    def feedback(key, params: StochasticParams, world, action):
        losses = _draw(key, jnp.asarray(params.means))
        gap = entry(jnp.asarray(params.gaps), action)
        return world, losses, {"loss": entry(losses, action), "pseudo_regret": gap}

    return Environment(
        params=params,
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        interface=_interface(len(given)),
    )


@factory
def loss_sequence(losses: ArrayLike) -> Environment:
    """Losses that are fixed in advance: an oblivious adversary.

    Args:
        losses: [horizon, num_experts] in [0, 1].

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_experts) and losses ([num_experts] float in
        [0, 1]). Outcome: `loss`, of the expert played. Summaries: `regret`, the loss less the one of the best fixed
        expert so far; `best_loss`, that expert's. An expert outside [0, num_experts) has the loss NaN, and so have all
        experts in rounds beyond the horizon.

    Raises:
        ValueError: if losses are not a matrix of at least one round and two experts, with entries in [0, 1].

    Source: standard.  Deviations: none.
    """
    losses = check_within("losses", losses, 0.0, 1.0)
    if losses.ndim != 2 or losses.shape[0] < 1 or losses.shape[1] < 2:
        raise ValueError(f"losses must be [horizon, num_experts] with at least two experts, got shape {losses.shape}")
    params = SequenceParams(losses=_cast(losses))  # one object for all runs

    def feedback(key, params: SequenceParams, world: Hindsight, action):
        del key
        return _shown(world, entry(jnp.asarray(params.losses), world.round), action)

    return _with_hindsight(lambda: params, feedback, losses.shape[1], horizon=len(losses))


@factory
def adaptive_losses(means: ArrayLike, *, penalty: float) -> Environment:
    """Losses of 0 or 1 that react to the plays: the expert played in the round before has a larger mean.

    Values: `penalty`, in [0, 1], is added to the mean loss of the expert played in the round before, up to a mean of 1;
    by default the argument.

    Args:
        means: [num_experts] in [0, 1], mean losses of the others.
        penalty: in [0, 1]; the default of the value.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float in [0, 1]), which depend on plays
        of earlier rounds only. Outcome and summaries as for `loss_sequence`.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1], or penalty is not in [0, 1].

    Source: none; the simplest adversary that adapts.
    Deviations: in float32 a probability is a multiple of 2^-23.
    """
    means = _vector("means", means)
    others = _cast(means)  # one object at every penalty

    def params(*, penalty: float = penalty) -> AdaptiveParams:
        check_within("penalty", check_number("penalty", penalty), 0.0, 1.0)
        return AdaptiveParams(means=others, penalised=_cast(np.minimum(means + penalty, 1.0)))

    params()  # refuses a bad default now

    def feedback(key, params: AdaptiveParams, world: Hindsight, action):
        played_last = jnp.arange(len(means), dtype=world.last.dtype) == world.last
        return _shown(world, _draw(key, jnp.where(played_last, params.penalised, params.means)), action)

    return _with_hindsight(params, feedback, len(means))


def _draw(key: jax.Array, means: jax.Array) -> jax.Array:
    return (jax.random.uniform(key, means.shape, means.dtype) < means).astype(means.dtype)


def _shown(world: Hindsight, losses: jax.Array, action: jax.Array) -> tuple[Hindsight, jax.Array, dict[str, jax.Array]]:
    """The world after these losses, the losses, and the outcome."""
    loss = entry(losses, action)
    after = Hindsight(
        world.round + 1,
        action.astype(jnp.int32),
        compensated.add(world.losses, losses),
        compensated.add(world.loss, loss),
    )
    return after, losses, {"loss": loss}


def _summary(params: Any, world: Hindsight) -> dict[str, jax.Array]:
    del params
    best = jnp.argmin(world.losses.total)
    # What rounding left out counts: the sums are large, and their difference is small.
    mine, theirs = world.loss, jax.tree.map(lambda leaf: leaf[best], world.losses)
    return {"regret": (mine.total - theirs.total) - (mine.excess - theirs.excess), "best_loss": theirs.total}


def _with_hindsight(params: Callable[..., Any], feedback, num_experts: int, horizon: int | None = None) -> Environment:
    def init(key, params) -> Hindsight:
        del key, params
        none = jnp.zeros(num_experts, default_float())
        return Hindsight(
            jnp.zeros((), jnp.result_type(int)), jnp.int32(-1), compensated.zero(none), compensated.zero(none[0])
        )

    return Environment(
        params=params,
        init=init,
        context=None,
        feedback=feedback,
        summary=_summary,
        interface=_interface(num_experts),
        horizon=horizon,
    )


def _interface(num_experts: int) -> Interface:
    return Interface(arms(num_experts), Space("numbers", (num_experts,), 0, 1))


def _vector(name: str, values: ArrayLike) -> np.ndarray:
    array = check_within(name, values, 0.0, 1.0)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"{name} must be a vector of at least two experts, got shape {array.shape}")
    return array


def _cast(values: np.ndarray) -> np.ndarray:
    return values.astype(default_float())
