"""Rewards that are fixed in advance: one array, which all lanes share."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, arms, default_float, factory
from jaxdp.numerics import compensated
from jaxdp.numerics.lookup import entry
from jaxdp.sequences import kept_matrix, shown_row
from jaxdp.validation import check_flag, check_positive

ROWS = 1 << 16  # looked through at a time


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class RewardParams:
    """Rewards that are fixed in advance.

    Attributes:
        rewards: [horizon, num_arms] uint8, float16 or float, in [0, scale].
    """

    rewards: np.ndarray


class Replay(NamedTuple):
    """How far the rewards have been shown.

    Attributes:
        round: [] integer, rounds played.
        rewards: [num_arms] compensated sums, what each arm would have paid so far.
        own: [] compensated sum, what was paid.
    """

    round: jax.Array
    rewards: compensated.Sum
    own: compensated.Sum


@factory
def reward_sequence(rewards: ArrayLike, *, scale: float = 1.0, binary: bool = False) -> Environment:
    """Rewards that are fixed in advance, such as a user's own log: an oblivious adversary.

    All lanes of a run share the one array. It stays of the type that it has, as long as that is bool, uint8, float16 or
    float32, and each round's rewards are widened to JAX's default float type where they are shown. Other whole numbers
    become uint8 where the scale allows it, and all else the default float type.

    Args:
        rewards: [horizon, num_arms] numbers or truth values in [0, scale]. One that is read-only is not copied.
        scale: finite and > 0: an entry of this size is the reward 1. 255 for uint8 rewards that use their whole range.
        binary: whether all entries are 0 or `scale`, and rewards are shown as integers: what learners of binary rewards
            take.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_arms) and rewards ([] float in [0, 1]; if binary
        [] int32 in {0, 1}), with blocks. Outcome: `reward`, of the arm played. Summaries: `regret`, the reward of the
        best fixed arm so far less that of the arms played; `best_reward`, that arm's. An arm outside [0, num_arms) pays
        NaN, and so do all arms in rounds beyond the horizon; if binary what is shown is 0 then, and the outcomes are
        NaN all the same.

    Raises:
        ValueError: if rewards are not a matrix of at least one round and two arms, with entries in [0, scale] (if
            binary: 0 or scale), or take more memory than the device has free; if scale is not finite and > 0, or binary
            not True or False.

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
                raise ValueError(f"rewards must be 0 or {scale:g} if binary, got others")
    params = RewardParams(rewards=array)  # one object for all runs
    dtype = default_float()

    def init(key, params: RewardParams) -> Replay:
        del key, params
        return Replay(
            jnp.zeros((), jnp.result_type(int)),
            compensated.zero(jnp.zeros(num_arms, dtype)),
            compensated.zero(jnp.zeros((), dtype)),
        )

    def after(world: Replay, row: jax.Array, paid: jax.Array) -> Replay:
        return Replay(world.round + 1, compensated.add(world.rewards, row), compensated.add(world.own, paid))

    def shown(paid: jax.Array) -> jax.Array:
        return (paid > 0).astype(jnp.int32) if binary else paid

    def feedback(key, params: RewardParams, world: Replay, action):
        del key
        row = shown_row(params.rewards, world.round, scale)
        paid = entry(row, action)
        return after(world, row, paid), shown(paid), {"reward": paid}

    def block(keys, params: RewardParams, world: Replay, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)
        rows = jax.vmap(lambda round_: shown_row(params.rewards, round_, scale))(rounds)
        paid = jax.vmap(entry)(rows, actions)

        def step(world: Replay, now: tuple[jax.Array, jax.Array]) -> tuple[Replay, Replay]:
            world = after(world, *now)
            return world, world

        _, worlds = jax.lax.scan(step, world, (rows, paid), unroll=16)
        return worlds, shown(paid), {"reward": paid}

    def summary(params: RewardParams, world: Replay) -> dict[str, jax.Array]:
        del params
        best = jnp.argmax(world.rewards.total - world.rewards.excess)
        found = jax.tree.map(lambda leaf: leaf[best], world.rewards)
        regret = (found.total - world.own.total) - (found.excess - world.own.excess)  # large numbers first
        return {"regret": regret, "best_reward": found.total}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        summary=summary,
        block=block,
        interface=Interface(arms(num_arms), Space("integers" if binary else "numbers", (), 0, 1)),
        horizon=horizon,
    )
