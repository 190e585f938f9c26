"""Elimination by effective Borda scores many rounds at a time, with the results of single rounds bit for bit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling import ebs_arms as arms
from jaxdp.dueling.ebs_arms import Params, Private, Public, Trees
from jaxdp.dueling.ebs_sweeps import Block, Swept, schedule, sweep_arms
from jaxdp.kernels import across_lanes, own_kernel
from jaxdp.learner import BlockPlan, Blocks, State
from jaxdp.mechanisms.continual_counting import nodes as tree

SWEEPS = 15  # counts of fewer than 16 duels share a word, see `ebs_sweeps`


def elimination_blocks(trees: Trees, num_arms: int) -> Blocks:
    """Blocks of at most as many sweeps over the arms as a counter has entries in its smallest inner node.

    Until an arm is dropped, arms take turns on the left. A block has a place for each sweep and arm, in this order; the
    places of arms without turns stay empty. A counter's clock ends at most one inner node on the way, with all those
    above it.

    Args:
        trees: of the counters.
        num_arms: >= 2.
    """
    num_sweeps = min(SWEEPS, trees.arity)
    block = num_sweeps * num_arms
    every = np.arange(num_arms, dtype=np.int32)
    sweeps = np.arange(num_sweeps, dtype=np.int32)[:, None]
    natural = np.arange(block, dtype=np.int32)
    swept = across_lanes(lambda inputs: sweep_arms(trees, inputs))

    def order(params: Params, public: Public) -> jax.Array:
        del params

        def places(now, alone):
            place = sweeps * now.size[None] + now.rank[None, :]
            return jnp.where(alone, natural, jnp.where(now.turns[None, :], place, block).ravel())

        return own_kernel(places, schedule(public.active, arms.duels(public), num_sweeps), _alone(public))

    def plan(keys, params: Params, public: Public, limit) -> BlockPlan:
        del params
        alone = _alone(public)
        length = schedule(public.active, arms.duels(public), num_sweeps).length.astype(limit.dtype)
        left = jnp.where(alone, jnp.argmax(public.active).astype(jnp.int32), np.tile(every, num_sweeps))
        return BlockPlan(
            jnp.stack([left, own_kernel(arms.opponents, keys, public.active)], axis=-1),
            jnp.where(alone, limit, jnp.minimum(limit, length)),
        )

    def privatize(keys, params: Params, public: Public, plan: BlockPlan, feedback):
        del keys, params, public
        return plan.actions, feedback

    def absorb(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        public, private = state.public, state.private
        actions, feedback = report
        alone = _alone(public)
        nodes = _while_any(
            public.dropped.any() & ~alone,
            lambda place: arms.remove(trees, keys[place], params, public, private),
            jnp.argmax(schedule(public.active, arms.duels(public), num_sweeps).turns),
            tree.Nodes(public.digits, private.sums, public.estimates),
        )
        length = plan.length.astype(jnp.int32)
        found: Swept = swept(
            Block(
                params=params,
                squared_radius=jnp.asarray(params.squared_radius)[jnp.sum(public.active, dtype=jnp.int32)],
                active=public.active,
                played=arms.duels(public),
                nodes=nodes,
                length=jnp.where(alone, 0, length),
                won=feedback,
                right=actions[:, 1],
                noise=jax.vmap(lambda key: arms.draw(trees, key, params, (1,))[0])(keys),
                upper_noise=_upper_noise(keys, params, nodes.digits[0]),
            )
        )
        dropped = jnp.where(alone, public.dropped, found.dropped)
        after = Public(
            public.active & ~found.dropped,
            dropped,
            public.plays + found.met(found.plays, num_arms).astype(public.plays.dtype),
            found.nodes.digits,
            found.nodes.estimates,
        )
        wins = private.wins + found.met(found.wins, num_arms).astype(private.wins.dtype)
        used = jnp.where(alone, plan.length, found.used.astype(plan.length.dtype))
        return State(Private(wins, found.nodes.sums), after), used

    def _upper_noise(keys, params: Params, digits: jax.Array) -> jax.Array:
        """[levels - 1, num_arms] noise of the inner nodes that may end, from the keys of the rounds that end them."""
        if trees.levels == 1:
            return jnp.zeros((0, num_arms), jnp.result_type(float))
        row = jnp.clip(trees.arity - digits - 1, 0, num_sweeps - 1)

        def draw(key):
            return arms.draw(trees, jax.random.fold_in(key, arms.UPPER), params, (trees.levels - 1, 1))[:, 0]

        return jax.vmap(draw, out_axes=1)(keys[row * num_arms + every])

    return Blocks(block, plan, privatize, absorb, order)


def _alone(public: Public) -> jax.Array:
    return jnp.sum(public.active, dtype=jnp.int32) == 1


def _while_any(needed: jax.Array, compute, inputs, otherwise) -> Any:
    """compute(inputs) if it is needed. A loop, not a branch, which a batch of lanes enters if one of them needs it."""

    def body(carry):
        # Bound to the carry: else XLA would move what it computes out of the loop, and so compute it always.
        _, held = jax.lax.optimization_barrier((carry[0], inputs))
        return jnp.zeros((), bool), compute(held)

    return jax.lax.while_loop(lambda carry: carry[0], body, (needed, otherwise))[1]
