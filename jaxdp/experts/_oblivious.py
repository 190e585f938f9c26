"""Losses that are fixed in advance, in one array that all lanes share."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._comparators import Comparison, add_round, add_rounds, check_switches, init_comparison, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry
from jaxdp.sequences import kept_matrix, shown_row
from jaxdp.validation import check_positive


@pytree_dataclass
class SequenceParams:
    """The environment's parameters, which JAX traces.

    Attributes:
        losses: [horizon, num_experts] uint8, float16 or float, in [0, scale].
    """

    losses: np.ndarray


class Replay(NamedTuple):
    """The number of rounds played, and sums of past losses.

    Attributes:
        round: [] integer, rounds played.
        comparison: sums of past losses, for metrics.
    """

    round: jax.Array
    comparison: Comparison


@factory
def loss_sequence(losses: ArrayLike, *, scale: float = 1.0, num_switches: int | None = None) -> Environment:
    """Losses that are fixed in advance (an oblivious adversary).

    All lanes of a run share one array. Arrays of float16 or float32 keep their dtype. Booleans, and integers if scale <
    256, are stored as uint8. All other numbers are stored in JAX's default float dtype. The losses of a round are
    converted to the default float dtype when the learner receives them.

    Args:
        losses: [horizon, num_experts] numbers or booleans in [0, scale]. A read-only array in C order is copied only if
            its dtype changes.
        scale: between 1e-31 and 8e37 (in 64-bit mode: between 1e-291 and 4e307); an entry is divided by `scale` to
            give the loss. Use 255 for uint8 losses that use their whole range; with the default, a uint8 entry 1 is the
            loss 1.
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, in [0, horizon); None
            omits this metric.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_experts) and losses ([num_experts] float in [0,
        1]). It supports blocks. The outcome `loss` is the loss of the expert played. Metrics in hindsight: `best_loss`,
        the total loss of the best fixed expert so far; `regret`, the learner's total loss minus `best_loss`. If
        num_switches is given, there are also `best_sequence_loss`, the total loss of the best sequence of experts so
        far with at most num_switches switches, and `dynamic_regret`, the learner's total loss minus
        `best_sequence_loss`. An expert outside [0, num_experts) has loss NaN. In rounds beyond the horizon, all experts
        have loss NaN.

    Raises:
        ValueError: if losses are not a matrix of at least one round and two experts, with entries in [0, scale], or
            need more memory than is free on the device; if scale is not > 0, or is too small or large; or if
            num_switches is not in [0, horizon).

    Source:
        Standard.

    Deviations:
        Sums are compensated. In float32, the error of regrets after 10^6 rounds is less than 0.01.

    Examples:
        >>> loss_sequence(np.array([[0, 255], [51, 0]], np.uint8), scale=255).params().losses.dtype
        dtype('uint8')
    """
    scale = check_positive("scale", scale)
    array = kept_matrix("losses", losses, scale, columns="experts", column="num_experts")
    horizon, num_experts = array.shape
    switches = check_switches(num_switches, horizon)
    params = SequenceParams(losses=array)  # all runs share this object

    def row(params: SequenceParams, round_: jax.Array) -> jax.Array:
        return shown_row(params.losses, round_, scale)

    def init(key, params) -> Replay:
        del key, params
        return Replay(jnp.zeros((), jnp.result_type(int)), init_comparison(num_experts, switches))

    def feedback(key, params: SequenceParams, world: Replay, action):
        del key
        losses = row(params, world.round)
        loss = entry(losses, action)
        return Replay(world.round + 1, add_round(world.comparison, losses, loss)), losses, {"loss": loss}

    def block(keys, params: SequenceParams, world: Replay, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        losses = jax.vmap(lambda round_: row(params, round_))(rounds)
        loss = jax.vmap(entry)(losses, actions)
        return Replay(rounds + 1, add_rounds(world.comparison, losses, loss)), losses, {"loss": loss}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        block=block,
        interface=losses_interface(num_experts),
        horizon=horizon,
    )
