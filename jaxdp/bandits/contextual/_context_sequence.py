"""Contexts and rewards that are fixed in advance, in two arrays that all simulated runs share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits.contextual._contexts import check_contexts
from jaxdp.core import Environment, Interface, Space, arms, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics.lookup import entry
from jaxdp.sequences import kept_numbers, shown_numbers


@pytree_dataclass
class SequenceParams:
    """The contexts and rewards, with the dtypes that `context_sequence` names.

    Attributes:
        contexts: [horizon, num_arms, dim].
        rewards: [horizon, num_arms].
    """

    contexts: np.ndarray
    rewards: np.ndarray


def stored_contexts(contexts: ArrayLike) -> np.ndarray:
    """Checks contexts, and returns them as a read-only array [horizon, num_arms, dim] of a dtype that is stored.

    Raises:
        ValueError: if the shape of contexts is wrong, there are fewer than two arms, contexts are not finite, a norm
            exceeds 1 by more than rounding, or they need more memory than is free on the device.
    """

    def check(rows: np.ndarray) -> None:
        check_contexts("contexts", rows, 3)

    return kept_numbers("contexts", contexts, ("horizon", "num_arms", "dim"), check)


@factory
def context_sequence(contexts: ArrayLike, rewards: ArrayLike) -> Environment:
    """Contexts and rewards that are fixed in advance, such as your own data with the reward of every arm.

    All lanes of a run share the two arrays. Arrays of float16, float32 or integers of at most 16 bits keep their dtype,
    and booleans are stored as uint8. The numbers of these arrays are converted to JAX's default float dtype round by
    round, when they are used. Arrays of other dtypes are converted to this dtype in advance. A read-only array in C
    order is copied only if its dtype changes.

    Args:
        contexts: [horizon, num_arms, dim] finite, of norm at most 1 up to rounding, with num_arms >= 2.
        rewards: [horizon, num_arms] finite; each learner clips them to its own bound.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_arms), contexts ([num_arms, dim] float) and
        rewards ([] float). It can play several rounds at once (blocks). Outcomes: `pseudo_regret`, the largest reward
        of the round minus the reward of the arm played; `reward`; `best_arm_plays`, the number of rounds in which this
        regret is 0. An arm outside [0, num_arms) pays NaN, and its regret is NaN. Contexts and rewards beyond the
        horizon are NaN.

    Raises:
        ValueError: if contexts or rewards are not as described above, or need more memory than is free on the device.

    Source:
        Standard.

    Deviations:
        None.

    Examples:
        >>> context_sequence(np.eye(2, dtype=np.float16)[None], [[0.0, 1.0]]).params().contexts.dtype
        dtype('float16')
    """
    stored = stored_contexts(contexts)
    horizon, num_arms, dim = stored.shape
    stored_rewards = kept_numbers("rewards", rewards, ("horizon", "num_arms"))
    if stored_rewards.shape != (horizon, num_arms):
        raise ValueError(
            f"rewards must be [{horizon}, {num_arms}], as contexts have {horizon} rounds and {num_arms} arms, got "
            f"shape {stored_rewards.shape}"
        )
    params = SequenceParams(contexts=stored, rewards=stored_rewards)  # all runs share this object

    def context(key, params: SequenceParams, world) -> jax.Array:
        del key
        return shown_numbers(params.contexts, world)

    def many_contexts(keys, params: SequenceParams, world) -> jax.Array:
        rounds = world + jnp.arange(len(keys), dtype=world.dtype)
        return jax.vmap(lambda round_: shown_numbers(params.contexts, round_))(rounds)

    def feedback(key, params: SequenceParams, world, action):
        del key
        return world + 1, *reward_and_outcome(params, world, action)

    def block(keys, params: SequenceParams, world, contexts: Any, actions):
        del contexts
        rounds = world + jnp.arange(len(keys), dtype=world.dtype)
        return rounds + 1, *jax.vmap(lambda round_, action: reward_and_outcome(params, round_, action))(rounds, actions)

    return Environment(
        params=lambda: params,
        init=lambda key, params: jnp.zeros((), jnp.result_type(int)),
        context=context,
        feedback=feedback,
        block=block,
        contexts=many_contexts,
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim), -1.0, 1.0)),
        horizon=horizon,
    )


def reward_and_outcome(
    params: SequenceParams, round_: jax.Array, action: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Returns the reward ([] float) of the arm played in a round, and the outcomes of the round."""
    row = shown_numbers(params.rewards, round_)
    reward = entry(row, action)
    gap = jnp.max(row) - reward
    return reward, {"pseudo_regret": gap, "reward": reward, "best_arm_plays": gap == 0}
