"""Rewards that are fixed in advance, in one array that all lanes share."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, arms, default_float, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics import compensated
from jaxdp.numerics.lookup import entry
from jaxdp.sequences import kept_matrix, shown_row
from jaxdp.validation import check_flag, check_positive

ROWS = 1 << 16  # number of rows that are checked at a time


@pytree_dataclass
class RewardParams:
    """The rewards.

    Attributes:
        rewards: [horizon, num_arms] uint8, float16 or float, in [0, scale].
    """

    rewards: np.ndarray


class Replay(NamedTuple):
    """Sums over the rounds played.

    Attributes:
        round: [] integer, rounds played.
        rewards: [num_arms] compensated sums of each arm's rewards over all rounds, whether or not it was played.
        played_total: [] compensated sum of the rewards of the arms that were played.
    """

    round: jax.Array
    rewards: compensated.Sum
    played_total: compensated.Sum


@factory
def reward_sequence(rewards: ArrayLike, *, scale: float = 1.0, binary: bool = False) -> Environment:
    """Rewards that are fixed in advance (an oblivious adversary), such as your own data with the reward of every arm.

    All lanes of a run share one array. Arrays of float16 or float32 keep their dtype. Booleans, and integers if scale <
    256, are stored as uint8. All other numbers are stored in JAX's default float dtype. The rewards of a round are
    converted to the default float dtype when they are used.

    Args:
        rewards: [horizon, num_arms] numbers or booleans in [0, scale]. A read-only array in C order is copied only if
            its dtype changes.
        scale: between 1e-31 and 8e37 (in 64-bit mode: between 1e-291 and 4e307); an entry is divided by `scale` to
            give the reward. Use 255 for uint8 rewards that use their whole range.
        binary: whether all entries are 0 or `scale` and rewards are passed to the learner as integers.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_arms) and rewards ([] float in [0, 1]; if
        binary, [] int32 in {0, 1}). It supports blocks. The outcome `reward` is the reward of the arm played.
        Summaries: `best_reward`, the total reward of the best fixed arm so far; `regret`, `best_reward` minus the total
        reward of the arms played. The reward is NaN if the arm is outside [0, num_arms) or the round is beyond the
        horizon. If binary, the feedback is 0 in these cases, but the outcomes are NaN.

    Raises:
        ValueError: if rewards are not a matrix of at least one round and two arms, with entries in [0, scale] (if
            binary: 0 or scale), or need more memory than is free on the device; if scale is not > 0, or is too small or
            large; or if binary is neither True nor False.

    Source:
        Standard.

    Deviations:
        Sums are compensated.

    Examples:
        >>> import jax, jaxdp
        >>> clicks = np.tile(np.array([[0, 1, 1]], np.uint8), (500, 1))
        >>> learner = jaxdp.bandits.thompson(num_arms=3)
        >>> run = jaxdp.simulator(learner, reward_sequence(clicks, binary=True), horizon=500)
        >>> bool(run(jax.random.key(0), run.params(epsilon=2.0))["regret"][-1] < 50)
        True
    """
    scale = check_positive("scale", scale)
    array = kept_matrix("rewards", rewards, scale, columns="arms", column="num_arms")
    horizon, num_arms = array.shape
    if check_flag("binary", binary):
        for start in range(0, horizon, ROWS):
            rows = array[start : start + ROWS]
            if np.any((rows != 0) & (rows != scale)):
                raise ValueError(f"rewards must be 0 or {scale:g} if binary, got other numbers")
    params = RewardParams(rewards=array)  # all runs share this object
    dtype = default_float()

    def init(key, params: RewardParams) -> Replay:
        del key, params
        return Replay(
            jnp.zeros((), jnp.result_type(int)),
            compensated.zero(jnp.zeros(num_arms, dtype)),
            compensated.zero(jnp.zeros((), dtype)),
        )

    def after(world: Replay, row: jax.Array, reward: jax.Array) -> Replay:
        return Replay(world.round + 1, compensated.add(world.rewards, row), compensated.add(world.played_total, reward))

    def to_feedback(reward: jax.Array) -> jax.Array:
        return (reward > 0).astype(jnp.int32) if binary else reward

    def feedback(key, params: RewardParams, world: Replay, action):
        del key
        row = shown_row(params.rewards, world.round, scale)
        reward = entry(row, action)
        return after(world, row, reward), to_feedback(reward), {"reward": reward}

    def block(keys, params: RewardParams, world: Replay, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        rows = jax.vmap(lambda round_: shown_row(params.rewards, round_, scale))(rounds)
        reward = jax.vmap(entry)(rows, actions)

        def step(world: Replay, step_inputs: tuple[jax.Array, jax.Array]) -> tuple[Replay, Replay]:
            world = after(world, *step_inputs)
            return world, world

        _, worlds = jax.lax.scan(step, world, (rows, reward), unroll=16)
        return worlds, to_feedback(reward), {"reward": reward}

    def hindsight(params: RewardParams, world: Replay) -> dict[str, jax.Array]:
        del params
        best = jnp.argmax(world.rewards.total - world.rewards.excess)
        best_total = jax.tree.map(lambda leaf: leaf[best], world.rewards)
        played = world.played_total
        regret = (best_total.total - played.total) - (best_total.excess - played.excess)  # large numbers first
        return {"regret": regret, "best_reward": best_total.total}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=hindsight,
        block=block,
        interface=Interface(arms(num_arms), Space("integers" if binary else "numbers", (), 0, 1)),
        horizon=horizon,
    )
