"""Successive elimination many rounds at a time: in blocks (bit for bit the results of single rounds), and as counts.

A block is some sweeps over the active arms; it ends where arms are dropped. A plan of counts is as many sweeps as
cannot drop an arm before the last of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._best_arm import Reports, Sums
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State, default_float
from jaxdp.numerics.kernels import across_lanes

SWEEPS = 16  # in a block


class Algorithm(NamedTuple):
    """The parts of the algorithm that bulk forms use.

    Attributes:
        num_arms: number of arms.
        reports: of rewards.
        size: (public) -> [] int32, the number of active arms.
        rank: (public) -> [num_arms] int32, the position of each active arm in a sweep.
        leads: (active, sums) -> [num_arms], how far each sum lies below the largest.
        radius: (params, sweeps) -> [] float; no arm is dropped for a lead of at most this.
        far_below: (params, active, sweeps, sums) -> [num_arms] bool, the arms to drop.
    """

    num_arms: int
    reports: Reports
    size: Callable[[Any], jax.Array]
    rank: Callable[[Any], jax.Array]
    leads: Callable[[jax.Array, Sums], jax.Array]
    radius: Callable[[Any, jax.Array], jax.Array]
    far_below: Callable[[Any, jax.Array, jax.Array, Sums], jax.Array]


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns blocks with a slot for each sweep and arm, in this order; slots of dropped arms stay empty."""
    num_arms, size = algorithm.num_arms, algorithm.size
    block = SWEEPS * num_arms

    def rounds_of(public: Any) -> jax.Array:  # [SWEEPS, num_arms] int32, the round of each slot; `block` for none
        starts = jnp.arange(SWEEPS, dtype=jnp.int32) * size(public) - public.turn
        rounds = starts[:, None] + algorithm.rank(public)[None, :]
        return jnp.where(public.active[None, :] & (rounds >= 0), rounds, block)

    def slot_rounds(params: Any, public: Any) -> jax.Array:
        del params
        return rounds_of(public).ravel()

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del keys, params, contexts
        ahead = SWEEPS * size(public) - public.turn
        indices = jnp.arange(num_arms, dtype=jnp.int32)
        return BlockPlan(jnp.tile(indices, SWEEPS), jnp.minimum(limit, ahead.astype(limit.dtype)))

    def run_sweeps(block: tuple) -> tuple:
        """Runs sweeps one after the other, until arms are dropped; each array has lanes on its last axis."""
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

    many_swept = across_lanes(run_sweeps)

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        del keys
        public = state.public
        num_active, length = size(public), plan.length.astype(jnp.int32)
        ends = jnp.arange(1, SWEEPS + 1, dtype=jnp.int32) * num_active - public.turn
        reported = report[1].reshape(SWEEPS, num_arms)
        active, sweeps, sums, used = many_swept((params, public, reported, rounds_of(public), ends, length))
        after = public._replace(active=active, sweeps=sweeps, turn=(public.turn + used) % num_active, sums=sums)
        return State((), after), used.astype(plan.length.dtype)

    return Blocks(block, plan, update_block, slot_rounds=slot_rounds)


def counts(algorithm: Algorithm) -> Counts:
    """Returns counts of plays, for reports that are bits.

    A sweep changes a lead by at most one bit, and the radius only grows. So with radius - (largest lead) sweeps, no arm
    can be dropped before the last of them, and their order does not matter.
    """
    size, reports = algorithm.size, algorithm.reports

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        num_active, ranks = size(public), algorithm.rank(public)
        lead = jnp.max(algorithm.leads(public.active, public.sums)).astype(default_float())
        slack = algorithm.radius(params, public.sweeps) - lead
        whole_sweeps = jnp.minimum(
            jnp.maximum(jnp.floor(slack), 1).astype(limit.dtype), limit // num_active.astype(limit.dtype)
        )
        is_whole = (public.turn == 0) & (whole_sweeps > 0)
        in_part = (ranks >= public.turn) & ((ranks - public.turn).astype(limit.dtype) < limit)
        counts = jnp.where(is_whole, whole_sweeps, in_part.astype(limit.dtype))
        return CountPlan(jnp.where(public.active, counts, 0))

    def privatize(key, params: Any, public: Any, plan: CountPlan, totals):
        del public
        assert reports.total is not None
        return plan.counts, reports.total(key, params.randomizer, jnp.clip(totals, 0, plan.counts), plan.counts)

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        del key, plan
        public, (counts, reported) = state.public, report
        num_active = size(public)
        sums = public.sums + reported.astype(public.sweeps.dtype)
        turn = public.turn.astype(counts.dtype) + jnp.sum(counts, dtype=counts.dtype)  # may be many sweeps
        over, turn = turn // num_active.astype(counts.dtype), turn % num_active.astype(counts.dtype)
        sweeps = public.sweeps + over.astype(public.sweeps.dtype)
        active = public.active & ~((over > 0) & algorithm.far_below(params, public.active, sweeps, sums))
        return State((), public._replace(active=active, sweeps=sweeps, turn=turn.astype(jnp.int32), sums=sums))

    return Counts(plan, privatize, update_counts)
