"""Losses that are fixed in advance: one array, which all lanes share."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, factory
from jaxdp.experts._comparators import Comparison, after, begun, check_switches, followed, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry
from jaxdp.sequences import kept_matrix, shown_row
from jaxdp.validation import check_positive


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class SequenceParams:
    """Losses that are fixed in advance.

    Attributes:
        losses: [horizon, num_experts] uint8, float16 or float, in [0, scale].
    """

    losses: np.ndarray


class Replay(NamedTuple):
    """How far the losses have been shown.

    Attributes:
        round: [] integer, rounds played.
        comparison: the losses so far.
    """

    round: jax.Array
    comparison: Comparison


@factory
def loss_sequence(losses: ArrayLike, *, scale: float = 1.0, num_switches: int | None = None) -> Environment:
    """Losses that are fixed in advance: an oblivious adversary.

    All lanes of a run share the one array. It stays of the type that it has, as long as that is bool, uint8, float16 or
    float32, and each round's losses are widened to JAX's default float type where they are shown. Other whole numbers
    become uint8 where the scale allows it, and all else the default float type.

    Args:
        losses: [horizon, num_experts] numbers or truth values in [0, scale]. One that is read-only is not copied.
        scale: finite and > 0: an entry of this size is the loss 1. 255 for uint8 losses that use their whole range; a
            uint8 entry of 1 is the loss 1 unless it is given.
        num_switches: how often the sequence of experts may switch that `dynamic_regret` compares with, in
            [0, horizon); None for none.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_experts) and losses ([num_experts] float in
        [0, 1]), with blocks. Outcome: `loss`, of the expert played. Summaries: `regret`, the loss less the one of the
        best fixed expert so far; `best_loss`, that expert's; with num_switches, `dynamic_regret` and
        `best_sequence_loss`, the same for the best sequence of experts so far with at most so many switches. An expert
        outside [0, num_experts) has the loss NaN, and so have all experts in rounds beyond the horizon.

    Raises:
        ValueError: if losses are not a matrix of at least one round and two experts, with entries in [0, scale], or
            take more memory than the device has free; if scale is not finite and > 0, or num_switches is not in
            [0, horizon).

    Source:
        Standard.

    Deviations:
        Sums are compensated, so that in float32 regrets after 10^6 rounds are off by less than 0.01.

    Examples:
        >>> loss_sequence(np.array([[0, 255], [51, 0]], np.uint8), scale=255).params().losses.dtype
        dtype('uint8')
    """
    scale = check_positive("scale", scale)
    array = kept_matrix("losses", losses, scale, columns="experts", column="num_experts")
    horizon, num_experts = array.shape
    switches = check_switches(num_switches, horizon)
    params = SequenceParams(losses=array)  # one object for all runs

    def row(params: SequenceParams, round_: jax.Array) -> jax.Array:
        return shown_row(params.losses, round_, scale)

    def init(key, params) -> Replay:
        del key, params
        return Replay(jnp.zeros((), jnp.result_type(int)), begun(num_experts, switches))

    def feedback(key, params: SequenceParams, world: Replay, action):
        del key
        losses = row(params, world.round)
        loss = entry(losses, action)
        return Replay(world.round + 1, after(world.comparison, losses, loss)), losses, {"loss": loss}

    def block(keys, params: SequenceParams, world: Replay, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        losses = jax.vmap(lambda round_: row(params, round_))(rounds)
        loss = jax.vmap(entry)(losses, actions)
        return Replay(rounds + 1, followed(world.comparison, losses, loss)), losses, {"loss": loss}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        summary=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        block=block,
        interface=losses_interface(num_experts),
        horizon=horizon,
    )
