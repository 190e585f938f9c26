"""Rows of bandits with contexts: 20 arms, contexts uniform in a cube, epsilon 1, delta 10^-5."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from benchmarks.contextual_floors import contextual_floor
from benchmarks.measure import Case, Work
from benchmarks.peers import numba_contextual as peers
from benchmarks.programs import compile_call
from benchmarks.row import LearnerRow, Row
from jaxdp.bandits import contextual
from jaxdp.bandits.contextual import _descent as descent
from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.mechanisms import toeplitz_counter
from jaxdp.mechanisms.continual_counting.buffers import find_buffers

ARMS = 20
PRIVATE = {"epsilon": 1.0, "delta": 1e-5}
SIZES = {5: {"lanes": 2048, "tile": 512, "horizon": 1000}, 20: {"lanes": 512, "tile": 128, "horizon": 400}}
EVERY = {"": 1, ", solved every 50th round": 50}  # as by a share of 1% after 5000 rounds


def radii_of(radii: ellipsoid.Radii, noise: np.ndarray, dim: int, of_rewards: bool = True) -> tuple:
    """Returns [horizon + 1] bounds L and widths, by the noise's size."""
    rounds = jnp.arange(len(noise), dtype=jnp.float32)
    bound = ellipsoid.eigenvalue_bound(radii, jnp.asarray(noise, jnp.float32))
    width = ellipsoid.noise_width(radii, bound, jnp.asarray(noise, jnp.float32))
    width = width + (ellipsoid.reward_width(radii, bound, rounds, dim) if of_rewards else 0)
    return np.asarray(bound), np.asarray(width)


def linear_peer(dim, every, horizon, params):
    learner = params["learner"]
    shape = radii_of(learner.radii, np.sqrt(np.arange(horizon + 1)), dim)
    stddev = float(learner.randomizer.noise_stddev)
    return partial(peers.linear_ucb, (ARMS, dim), stddev, *shape, every, 0.5, 0.5, horizon)


def generalized_peer(dim, every, horizon, params):
    learner = params["learner"]
    bound, width = radii_of(learner.radii, np.sqrt(np.arange(horizon + 1)), dim, of_rewards=False)
    rounds = jnp.arange(horizon + 1, dtype=jnp.float32)
    width = width + np.asarray(descent.prediction_width(learner.descent, rounds))
    sizes = float(learner.randomizer.noise_stddev), 1.0, float(learner.descent.learning_rate), bound, width
    return partial(peers.generalized_linear, (ARMS, dim), *sizes, every, 1.0, horizon)


def joint_peer(dim, every, horizon, params):
    learner, counter, buffers = params["learner"], toeplitz_counter(horizon=horizon), find_buffers(horizon)
    leaks = tuple(np.asarray(part, np.float32) for part in (buffers.gaps, buffers.weights))
    variance = counter.variance(learner.counter, np.arange(1, horizon + 1))
    shape = radii_of(learner.radii, np.sqrt(np.concatenate([[0.0], variance])), dim)
    stddev = float(learner.counter.noise_stddev)
    return partial(peers.linear_ucb_joint, (ARMS, dim), stddev, *leaks, *shape, every, 0.5, 0.5, horizon)


def several(name, factory, world, peer, values=PRIVATE):
    """Returns rows of 5 and 20 dimensions, solved in every round or in every 50th; the table has the first."""
    return [
        LearnerRow(
            title=f"{name}, d = {dim}{how}",
            learner=lambda horizon, dim=dim, every=every: factory(
                num_arms=ARMS, dim=dim, horizon=horizon, update_every=every
            ),
            world=lambda horizon, dim=dim: world("cube", num_arms=ARMS, dim=dim),
            values=values,
            peers={"Numba": partial(peer, dim, every)},
            floor=contextual_floor(name, ARMS, dim, every),
            in_table=dim == 5 and every == 1,
            **sizes,
        )
        for dim, sizes in SIZES.items()
        for how, every in EVERY.items()
    ]


def normals(count, rounds, lanes, tile):
    """Draws normal variates of a report, and their sum, on one thread."""

    def one(key: jax.Array) -> jax.Array:
        def step(total, t):
            return total + jax.random.normal(jax.random.fold_in(key, t), (count,), jnp.float32), None

        return jax.lax.scan(step, jnp.zeros(count, jnp.float32), jnp.arange(rounds))[0].sum()

    keys = jax.random.split(jaxdp.random.key(0), lanes).reshape(-1, tile)
    compiled, compiling = compile_call(lambda keys: jax.lax.map(jax.vmap(one), keys), (keys,))
    sums, units = np.zeros(lanes, np.float32), lanes * rounds * count
    works = {
        "jaxdp": Work(lambda: jax.block_until_ready(compiled(keys)), units, cores=1, compiling=compiling),
        "Numba": Work(lambda: peers.normals(count, rounds, sums), units),
    }
    return Case(works=works, size=f"{lanes:,} x {rounds:,} x {count}", unit="variate")


ROWS = [
    *several("linear_ucb", contextual.linear_ucb, contextual.linear_contexts, linear_peer),
    *several(
        "generalized_linear",
        contextual.generalized_linear,
        contextual.generalized_linear_contexts,
        generalized_peer,
        {**PRIVATE, "residual_bound": 1.0, "noise_proxy": 0.25},
    ),
    LearnerRow(
        title="greedy_sgd, d = 5",
        learner=lambda horizon: contextual.greedy_sgd(num_arms=ARMS, dim=5),
        world=lambda horizon: contextual.linear_contexts("cube", num_arms=ARMS, dim=5),
        values={"epsilon": 1.0},
        lanes=2048,
        tile=512,
        horizon=1000,
    ),
    *several("linear_ucb_joint", contextual.linear_ucb_joint, contextual.linear_contexts, joint_peer),
    Row(
        name="normals",
        make=normals,
        size={"count": 230, "rounds": 200, "lanes": 512, "tile": 128},  # as a report of 20 dimensions takes them
        quick={"rounds": 2, "lanes": 16, "tile": 8},
    ),
]
