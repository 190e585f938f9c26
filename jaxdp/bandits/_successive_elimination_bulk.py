"""Plays many rounds of successive elimination in one step: in blocks, or from the number of plays of each arm.

Playing in blocks gives the same results as playing round by round, bit for bit. A block contains at most 16 sweeps over
the active arms, and ends as soon as arms are dropped. A plan of counts contains either a part of a sweep, or whole
sweeps such that no arm can be dropped before the end of the last sweep.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._best_arm import Reports, Sums, num_active, rank, sweep_counts
from jaxdp.core import BlockPlan, Blocks, Counts, State, default_float
from jaxdp.numerics.kernels import across_lanes

SWEEPS = 16  # maximum number of sweeps in a block


class Algorithm(NamedTuple):
    """The sizes and functions of a learner from which `blocks` and `counts` are built.

    Attributes:
        num_arms: number of arms.
        reports: the randomizer of rewards.
        leads: (active, sums) -> [num_arms]: for each arm, the maximum sum over active arms minus the arm's own sum.
        radius: (params, sweeps) -> [] float; an active arm is dropped if its entry of `leads` exceeds the radius.
        far_below: (params, active, sweeps, sums) -> [num_arms] bool, which arms to drop.
    """

    num_arms: int
    reports: Reports
    leads: Callable[[jax.Array, Sums], jax.Array]
    radius: Callable[[Any, jax.Array], jax.Array]
    far_below: Callable[[Any, jax.Array, jax.Array, Sums], jax.Array]


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns functions that plan a block of at most 16 sweeps, and play the block in one step.

    A block has one slot for each sweep and each arm. The slots of dropped arms are empty, and in the first sweep also
    the slots of arms that have already been played.
    """
    num_arms = algorithm.num_arms
    block = SWEEPS * num_arms

    def rounds_of(public: Any) -> jax.Array:  # [SWEEPS, num_arms] int32, each slot's round; `block` if empty
        starts = jnp.arange(SWEEPS, dtype=jnp.int32) * num_active(public) - public.turn
        rounds = starts[:, None] + rank(public)[None, :]
        return jnp.where(public.active[None, :] & (rounds >= 0), rounds, block)

    def slot_rounds(params: Any, public: Any) -> jax.Array:
        del params
        return rounds_of(public).ravel()

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del keys, params, contexts
        ahead = SWEEPS * num_active(public) - public.turn
        indices = jnp.arange(num_arms, dtype=jnp.int32)
        return BlockPlan(jnp.tile(indices, SWEEPS), jnp.minimum(limit, ahead.astype(limit.dtype)))

    def run_sweeps(block: tuple) -> tuple:
        """Runs the sweeps of a block until arms are dropped; returns (active, sweeps, sums, rounds used).

        `block` is (params, public, reports by sweep and arm, rounds by sweep and arm, the number of rounds until
        each sweep ends, length). The last axis of each array is the batch axis.
        """
        params, public, reported, rounds, ends, length = block

        def sweep(carry, step_inputs):
            active, sweeps, sums, used, is_open = carry
            reported, rounds, end = step_inputs
            sums = algorithm.reports.add(sums, (rounds < length[None]) & is_open[None], reported)
            is_over = is_open & (end <= length)
            sweeps = sweeps + is_over.astype(sweeps.dtype)
            dropped = is_over[None] & algorithm.far_below(params, active, sweeps, sums)
            used = jnp.where(is_open, jnp.minimum(end, length), used)
            return (active & ~dropped, sweeps, sums, used, is_over & ~jnp.any(dropped, axis=0)), None

        start = (public.active, public.sweeps, public.sums, jnp.zeros_like(length), length > 0)
        return jax.lax.scan(sweep, start, (reported, rounds, ends))[0][:4]

    run_sweeps_in_lanes = across_lanes(run_sweeps)

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        del keys
        public = state.public
        arms_left, length = num_active(public), plan.length.astype(jnp.int32)
        ends = jnp.arange(1, SWEEPS + 1, dtype=jnp.int32) * arms_left - public.turn
        reported = report[1].reshape(SWEEPS, num_arms)
        active, sweeps, sums, used = run_sweeps_in_lanes((params, public, reported, rounds_of(public), ends, length))
        after = public._replace(active=active, sweeps=sweeps, turn=(public.turn + used) % arms_left, sums=sums)
        return State((), after), used.astype(plan.length.dtype)

    return Blocks(block, plan, update_block, slot_rounds=slot_rounds)


def counts(algorithm: Algorithm) -> Counts:
    """Returns functions that play many rounds in one step, given each arm's number of plays and the sum of its reports.

    A sweep adds one bit to each sum, so it changes each entry of `leads` by at most 1, and the radius never decreases.
    Let d be the radius minus the largest lead over active arms, rounded down, but at least 1. No arm can be dropped
    before the last of the next d sweeps, so the order of the rounds in these sweeps does not matter.
    """

    def sweeps_ahead(params: Any, public: Any) -> jax.Array:
        leads = jnp.where(public.active, algorithm.leads(public.active, public.sums), 0)
        lead = jnp.max(leads).astype(default_float())
        return jnp.floor(algorithm.radius(params, public.sweeps) - lead)

    def drop(params: Any, public: Any, is_over: jax.Array) -> Any:
        dropped = is_over & algorithm.far_below(params, public.active, public.sweeps, public.sums)
        return public._replace(active=public.active & ~dropped)

    return sweep_counts(algorithm.reports, sweeps_ahead, drop)
