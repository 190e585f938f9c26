"""Environments that only tests need: with a context, with a memory, and around other environments."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Environment,
    Interface,
    Space,
    arms,
)


def linear_rewards(theta, *, num_arms: int, stddev: float = 0.1) -> Environment:
    """Builds rewards theta.x + N(0, stddev^2); every round shows num_arms features in the unit ball.

    `feedback` does not get the context, so the world holds the one of the round to come.
    """
    theta = np.asarray(theta, jax.dtypes.canonicalize_dtype(float))

    def draw(key):
        features = jax.random.normal(key, (num_arms, len(theta)))
        return features / (1 + jnp.linalg.norm(features, axis=1, keepdims=True))

    def feedback(key, params, world, action):
        key_noise, key_next = jax.random.split(key)
        means = world @ params
        reward = means[action] + stddev * jax.random.normal(key_noise)
        return draw(key_next), reward, {"pseudo_regret": means.max() - means[action], "reward": reward}

    return Environment(
        params=lambda: theta,
        init=lambda key, params: draw(key),
        context=lambda key, params, world: world,
        feedback=feedback,
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, len(theta)), -1, 1)),
    )


def rotting_rewards(means, *, plays_per_stage: int = 4, num_stages: int = 6) -> Environment:
    """Builds rewards of 0 or 1 with means that fall with the arm's plays: stage s pays with probability mean * 0.8^s.

    The world counts the plays. Means come from a table: no arithmetic that could round differently in a block.
    """
    exact = np.asarray(means)[:, None] * 0.8 ** np.arange(num_stages)[None, :]
    table = exact.astype(jax.dtypes.canonicalize_dtype(float))

    def feedback(key, params, world, action):
        stage = jnp.minimum(world // plays_per_stage, num_stages - 1)
        mean = jnp.take_along_axis(params, stage[:, None], axis=1)[:, 0]
        reward = (jax.random.uniform(key, dtype=params.dtype) < mean[action]).astype(jnp.int32)
        outcome = {"pseudo_regret": mean.max() - mean[action], "reward": reward, "won": reward > 0}
        return world + (np.arange(len(table), dtype=np.int32) == action).astype(world.dtype), reward, outcome

    def block(keys, params, world, contexts, actions):
        del contexts

        def step(world, entry):
            after, reward, outcome = feedback(entry[0], params, world, entry[1])
            return after, (after, reward, outcome)

        return jax.lax.scan(step, world, (keys, actions))[1]

    return Environment(
        params=lambda: table,
        init=lambda key, params: jnp.zeros(len(table), jnp.result_type(int)),
        context=None,
        feedback=feedback,
        hindsight=lambda params, world: {"plays": world, "most_played": jnp.argmax(world)},
        block=block,
        interface=Interface(arms(len(table)), Space("integers", (), 0, 1)),
        dims={"plays": ("arm",)},
    )


def with_plays(environment: Environment, num_arms: int) -> Environment:
    """Returns the same environment with one more outcome for each arm: how often it was played."""

    def names(action) -> dict[str, jax.Array]:
        return {f"plays_{arm}": action == arm for arm in range(num_arms)}

    def feedback(key, params, world, action):
        world, reward, outcome = environment.feedback(key, params, world, action)
        return world, reward, {**outcome, **names(action)}

    def block(keys, params, world, contexts, actions):
        assert environment.block is not None
        worlds, rewards, outcomes = environment.block(keys, params, world, contexts, actions)
        return worlds, rewards, {**outcomes, **names(actions)}

    def feedback_totals(key, params, world, counts):
        assert environment.feedback_totals is not None
        world, totals, outcomes = environment.feedback_totals(key, params, world, counts)
        return world, totals, {**outcomes, **{f"plays_{arm}": counts[arm] for arm in range(num_arms)}}

    return environment._replace(
        feedback=feedback,
        block=block if environment.block else None,
        feedback_totals=feedback_totals if environment.feedback_totals else None,
    )


def key_reader(num_arms: int = 2) -> Environment:
    """Builds rewards of 0 or 1 that ignore the arm; outcomes show the keys of the environment."""

    def feedback(key, params, world, action):
        del params, action
        draw = jax.random.uniform(key)
        return world, (draw < 0.5).astype(jnp.int32), {"draw": draw, "start": world}

    return Environment(
        params=lambda: (),
        init=lambda key, params: jax.random.uniform(key),
        context=None,
        feedback=feedback,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )


def paid(value) -> Environment:
    """Builds two arms; either has this outcome every round, and no reward."""
    return Environment(
        params=lambda: np.asarray(value),
        init=lambda key, params: (),
        context=None,
        feedback=lambda key, params, world, action: (world, jnp.int32(0), {"paid": params}),
        interface=Interface(arms(2), Space("integers", (), 0, 1)),
    )
