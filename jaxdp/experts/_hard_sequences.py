"""The losses of a lower bound, and arrays of losses that are drawn or computed in advance."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_made
from jaxdp.core import Environment, Space, factory
from jaxdp.experts._shifting import shifting_losses
from jaxdp.validation import check_count, check_horizon, check_key


@factory
def lower_bound_losses(
    *, num_experts: int, horizon: int, num_phases: int, gap: float = 0.5, num_switches: int | None = None
) -> Environment:
    """Losses of the lower bound for shifting adversaries: the phases draw their good experts from disjoint sets.

    The rounds are divided into num_phases phases of equal length. Each phase draws its good expert from about N /
    num_phases experts that no other phase uses. So earlier phases contain no information about this expert, and each
    phase costs a private learner a regret of about ln(N / num_phases) / epsilon.

    Args:
        num_experts: number of experts N, >= num_phases and >= 2.
        horizon: number of rounds, >= num_phases.
        num_phases: number of phases S, >= 1.
        gap: default of the value `gap` (see Values).
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, in [0, horizon). If
            None, the environment has no metrics in hindsight.

    Returns:
        `shifting_losses` with equal segments and good experts from disjoint sets.

    Raises:
        ValueError: if num_phases is not an integer in [1, min(num_experts, horizon)], or `shifting_losses` raises this
            error.

    Values:
        gap, other_mean: as for `shifting_losses`. By default the good expert has loss 0, and all other experts have
            losses of 0 or 1 with mean 1/2. With `gap=1, other_mean=1`, all other losses are 1.
        num_shifts: number of phases minus one, in [0, num_phases), by default num_phases - 1.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), section 3.2, "Lower bound for shifting
        adversary"; each phase is the static lower bound of Asi, Feldman, Koren & Talwar (2023).

    Deviations:
        In the paper, each phase uses the losses of a static lower bound, which depend on the learner's epsilon. Here
        the gap is a value.
    """
    most_phases = min(check_count("num_experts", num_experts, 2), check_horizon(horizon))
    return shifting_losses(
        num_experts=num_experts,
        horizon=horizon,
        num_shifts=check_count("num_phases", num_phases, maximum=most_phases) - 1,
        good_experts="own_parts",
        gap=gap,
        num_switches=num_switches,
    )


def sample_losses(environment: Environment, key: jax.Array, *, horizon: int | None = None, **values: Any) -> np.ndarray:
    """Draws an array of losses from an environment, so that all lanes of a run can share the same losses.

    Args:
        environment: an environment, usually with losses that do not depend on the plays. If they do, the result
            contains the loss vectors that occur if expert 0 is played in every round.
        key: typed PRNG key.
        horizon: number of rounds, >= 1; by default the environment's horizon.
        values: arguments of the environment's `params`.

    Returns:
        [horizon, num_experts] in [0, 1]; the dtype is uint8 if all losses are 0 or 1, otherwise JAX's default float
        dtype.

    Raises:
        ValueError: if the environment has no losses, key is not a single typed PRNG key, neither the environment nor
            the arguments define a horizon, `horizon` is < 1 or larger than the environment's horizon, or the
            environment's `params` raises this error.

    Examples:
        >>> from jaxdp.experts import loss_sequence
        >>> shifting = shifting_losses(num_experts=4, horizon=100, num_shifts=3)
        >>> losses = sample_losses(shifting, jax.random.key(0), gap=0.3)
        >>> losses.shape, losses.dtype, loss_sequence(losses).horizon
        ((100, 4), dtype('uint8'), 100)
    """
    check_made("environment", environment, Environment)
    feedback = environment.interface.feedback if environment.interface else None
    if isinstance(feedback, Space) and (feedback.kind != "numbers" or len(feedback.shape) != 1):
        raise ValueError(f"environment must have losses of experts as feedback, got {environment}")
    limit = environment.horizon
    rounds = check_horizon(horizon if horizon is not None else limit if limit is not None else 0)
    if limit is not None and rounds > limit:
        raise ValueError(f"horizon must be <= {limit}, the environment's, got {horizon}")
    key_world, key_rounds = jax.random.split(check_key(key))
    params = environment.params(**values)

    def step(world: Any, round_: jax.Array) -> tuple[Any, jax.Array]:
        round_key = jax.random.fold_in(key_rounds, round_)
        world, losses, _ = environment.feedback(round_key, params, world, jnp.int32(0))
        return world, losses

    def draw_all(key: jax.Array) -> jax.Array:
        return jax.lax.scan(step, environment.init(key, params), jnp.arange(rounds))[1]

    losses = np.asarray(jax.jit(draw_all)(key_world))
    return losses.astype(np.uint8) if np.isin(losses, (0, 1)).all() else losses


def alternating_losses(*, num_experts: int, horizon: int, period: int = 1) -> np.ndarray:
    """Returns fixed losses; after the first period, follow-the-leader has loss 1 in at least half of the rounds.

    In the first `period` rounds, experts with even indices have loss 1/2, and experts with odd indices have loss 0. In
    the second period of this length, odd experts have loss 1, and even experts have loss 0. In each later period the
    two groups swap their losses. So the experts with the smaller total loss after a period have loss 1 in the next
    period. A sequence of experts that switches after every period has no loss. With period 1, follow-the-leader has
    loss 1 in all rounds after the first round.

    Args:
        num_experts: number of experts, >= 2.
        horizon: number of rounds, >= 1.
        period: number of rounds after which the two groups of experts swap their losses, >= 1.

    Returns:
        [horizon, num_experts] float16 in {0, 1/2, 1}.

    Raises:
        ValueError: if an argument is out of range.

    Source:
        For period 1: the example of linear regret of follow-the-leader in Cesa-Bianchi & Lugosi (2006), section 3.2.

    Examples:
        >>> alternating_losses(num_experts=2, horizon=4).tolist()
        [[0.5, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    size, rounds = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    turns = np.arange(rounds) // check_count("period", period)
    losses = ((turns[:, None] + np.arange(size)) % 2 == 0).astype(np.float16)
    losses[turns == 0] /= 2
    return losses
