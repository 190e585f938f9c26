"""Plays blocks of rounds with a single arm each, and releases their noisy totals, for learners in the central model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits import _arm_blocks_bulk as bulk
from jaxdp.core import Interface, Learner, Space, State, arms, default_float
from jaxdp.core.central import reveal_feedback
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.some_lanes import in_flagged_lanes
from jaxdp.numerics import compensated


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        total: [] integer, the sum of rewards in the current block; reset to zero in the first round of a block.
    """

    total: jax.Array


class Public(NamedTuple):
    """Public state: released values, and statistics of them.

    `ucb_central` uses this state too. Parentheses say what differs there with release="tree".

    Attributes:
        round: [] integer, rounds played.
        plays: [num_arms] integer, plays of each arm in blocks that have ended (tree: in all rounds).
        sums: [num_arms] compensated noisy sums (see `numerics.compensated`) of each arm's rewards, over all of the
            arm's blocks that have ended; if `ArmBlocks.forgets`, over only the last of them. (tree: the counters'
            estimates, [num_arms] float.)
        arm: [] int32, the arm of the current block; between two blocks, the arm of the next block (tree: the arm of the
            next round).
        played: [] integer, rounds played in the current block (tree: 0).
    """

    round: jax.Array
    plays: jax.Array
    sums: Any
    arm: jax.Array
    played: jax.Array


class ArmBlocks(NamedTuple):
    """A rule that plays one arm per block, and releases each block's total with Laplace(1 / epsilon) noise at its end.

    Attributes:
        num_arms: number of arms.
        choose: (key, params, rounds, num_rewards, sums) -> [] int32, the next arm. `sums` are [num_arms] floats.
            `num_rewards` are the numbers of rewards in these sums, 0 for an arm without a release. `params` has the
            field `epsilon`.
        growth: (params) -> the plays of a block divided by the arm's plays before this block. The plays of a block are
            rounded down to an integer, but are at least 1.
        forgets: whether an arm's new release replaces the arm's sum; if False, it is added to the sum. If True, growth
            must be 1.
    """

    num_arms: int
    choose: Callable[..., jax.Array]
    growth: Callable[[Any], Any]
    forgets: bool = False

    def init(self, key, params) -> State:
        del key, params
        plays, sums = jnp.zeros(self.num_arms, jnp.result_type(int)), jnp.zeros(self.num_arms, default_float())
        return State(Private(plays[0]), Public(plays[0], plays, compensated.zero(sums), jnp.int32(0), plays[0]))

    def act(self, key, params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.arm

    def update(self, key, params, state: State, report) -> State:
        _, reward = report
        integer = jnp.result_type(int)
        return self.advance(key, params, state, jnp.clip(reward, 0, 1).astype(integer), jnp.ones((), integer))

    def length(self, params, public: Public) -> jax.Array:
        """Returns the block's length in rounds: `growth` times the arm's earlier plays, rounded down, but at least 1.

        If the arm's number of plays would overflow, the length is the largest integer, and the block never ends.
        """
        before, largest = public.plays[public.arm], jnp.iinfo(public.plays.dtype).max
        grown = self.growth(params) * before.astype(default_float())
        is_endless = grown >= float(largest) - before.astype(grown.dtype)
        return jnp.where(is_endless, largest, jnp.maximum(grown.astype(before.dtype), 1))

    def advance(self, key, params, state: State, reward: jax.Array, num_rounds: jax.Array) -> State:
        """Advances the state by `num_rounds` rounds of a block, in which the rewards sum to `reward`.

        If the block ends with these rounds, the function releases the block's noisy total and chooses the next arm.
        """
        public = state.public
        total = jnp.where(public.played == 0, 0, state.private.total) + reward
        after = public._replace(round=public.round + num_rounds, played=public.played + num_rounds)

        def end_block(key: jax.Array, params, total: jax.Array, after: Public) -> Public:
            is_played = jnp.arange(self.num_arms, dtype=after.arm.dtype) == after.arm
            noisy = laplace(key, total, params.epsilon, l1_sensitivity=1.0)
            before = after.sums
            if self.forgets:
                before = jax.tree.map(lambda sums: jnp.where(is_played, 0, sums), before)
            sums = compensated.add(before, jnp.where(is_played, noisy, 0))
            plays = after.plays + jnp.where(is_played, after.played, 0)
            next_arm = self.choose(key, params, after.round, self.num_rewards(plays), sums.total - sums.excess)
            return Public(after.round, plays, sums, next_arm, jnp.zeros_like(after.played))

        is_end = after.played == self.length(params, public)
        return State(Private(total), in_flagged_lanes(is_end, end_block, after, key, params, total, after))

    def num_rewards(self, plays: jax.Array) -> jax.Array:
        """Returns the number of rewards in each arm's noisy sum, [num_arms] integer.

        If the learner forgets, this is the length of the arm's last block. An arm then has 1, 2, 4, 8, ... plays, and
        half of them, rounded up, are in its last block.
        """
        return (plays + 1) // 2 if self.forgets else plays

    def best_action(self, params, public: Public) -> jax.Array:
        del params
        sums, count = public.sums.total - public.sums.excess, self.num_rewards(public.plays)
        means = sums / jnp.maximum(count, 1).astype(sums.dtype)
        return jnp.argmax(jnp.where(count > 0, means, -jnp.inf)).astype(jnp.int32)

    def learner(self, params: Callable[..., Any], guarantee: Callable[..., Any]) -> Learner:
        """Returns a learner for binary rewards with these `params` and `guarantee`; it supports blocks and counts."""
        algorithm = bulk.Algorithm(self.num_arms, jnp.result_type(int), self.length, self.advance)
        return Learner(
            params=params,
            guarantee=guarantee,
            init=self.init,
            act=self.act,
            privatize=reveal_feedback,
            update=self.update,
            blocks=(bulk.blocks(algorithm),),
            counts=bulk.counts(algorithm),
            interface=Interface(arms(self.num_arms), Space("integers", (), 0, 1)),
            best_action=self.best_action,
        )
