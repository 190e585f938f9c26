"""A contextual learner in the local model, by rounds and blocks: for tests."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, Environment, Interface, Learner, Space, State, arms
from jaxdp.mechanisms import Moments, moment_randomizer


class Public(NamedTuple):
    """[] integer rounds played; sums of the reports; [dim] the direction in which arms are compared."""

    round: jax.Array
    sums: Moments
    theta: jax.Array


def local_moments(*, num_arms: int, dim: int, update_every: int) -> Learner:
    """Plays the arm that lies furthest in the direction of the sum of y x, which it looks at after so many rounds.

    Args:
        num_arms: >= 2.
        dim: of contexts.
        update_every: rounds between two looks.
    """
    randomizer = moment_randomizer(dim)

    def init(key, params) -> State:
        del key, params
        zeros = jnp.zeros(dim * (dim + 1) // 2), jnp.zeros(dim)
        return State((), Public(jnp.zeros((), jnp.result_type(int)), Moments(*zeros), zeros[1]))

    def arm(theta: jax.Array, context: jax.Array) -> jax.Array:
        return jnp.argmax(jnp.sum(context * theta[None], axis=-1)).astype(jnp.int32)

    def act(key, params, public: Public, context) -> jax.Array:
        del key, params
        return arm(public.theta, context)

    def privatize(key, params, public, context, action, feedback) -> Moments:
        del public
        return randomizer.report(key, params, (context[action], feedback))

    def after(public: Public, sums: Moments, rounds: jax.Array) -> State:
        round_ = public.round + rounds
        return State((), Public(round_, sums, jnp.where(round_ % update_every == 0, sums.cross, public.theta)))

    def update(key, params, state: State, report: Moments) -> State:
        del key, params
        public: Public = state.public
        sums = jax.tree.map(jnp.add, public.sums, report)
        return after(public, sums, jnp.ones_like(public.round))

    def plan(keys, params, public: Public, contexts, limit) -> BlockPlan:
        del keys, params
        return BlockPlan(
            jax.vmap(arm, (None, 0))(public.theta, contexts),
            jnp.minimum(limit, update_every - public.round % update_every),
        )

    def update_block(keys, params, state: State, plan: BlockPlan, report: Moments) -> tuple[State, jax.Array]:
        del keys, params
        public: Public = state.public

        def add(i, sums):  # one after the other, as rounds do
            return jax.tree.map(lambda x, each: jnp.where(i < plan.length, x + each[i], x), sums, report)

        return after(public, jax.lax.fori_loop(0, len(report.cross), add, public.sums), plan.length), plan.length

    return Learner(
        params=randomizer.params,
        guarantee=randomizer.guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(update_every, plan, update_block),),
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim))),
    )


class World(NamedTuple):
    """[] integer rounds played; a key of contexts: rewards follow the context that was shown."""

    round: jax.Array
    key: jax.Array


def sphere(*, num_arms: int, dim: int) -> Environment:
    """Makes arms on the unit sphere, which pay their first coordinate plus noise."""

    def drawn(world: World) -> jax.Array:
        points = jax.random.normal(jax.random.fold_in(world.key, world.round), (num_arms, dim))
        return points / jnp.sqrt(jnp.sum(points * points, axis=-1, keepdims=True))

    def answered(key, context, action):
        means = context[:, 0]
        reward = means[action] / 2 + jax.random.uniform(key, minval=-0.5, maxval=0.5)
        return reward, {"pseudo_regret": means.max() - means[action]}

    def feedback(key, params, world: World, action):
        del params
        return world._replace(round=world.round + 1), *answered(key, drawn(world), action)

    def later(world: World, size: int) -> World:
        return World(world.round + jnp.arange(size), jnp.broadcast_to(world.key, (size,)))

    def block(keys, params, world: World, contexts, actions):
        del params
        worlds = later(world, len(keys))
        return worlds._replace(round=worlds.round + 1), *jax.vmap(answered)(keys, contexts, actions)

    return Environment(
        params=lambda: {},
        init=lambda key, params: World(jnp.zeros((), jnp.result_type(int)), key),
        context=lambda key, params, world: drawn(world),
        contexts=lambda keys, params, world: jax.vmap(drawn)(later(world, len(keys))),
        feedback=feedback,
        block=block,
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim), -1, 1)),
    )
