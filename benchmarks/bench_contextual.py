"""Contextual bandits against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_contextual.py`, with the names of learners to measure only those.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_engine import lanes_of
from benchmarks.peers import numba_contextual as peers
from benchmarks.timing import interleaved, machine, simulator
from jaxdp.bandits import contextual
from jaxdp.bandits.contextual import _descent as descent
from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.core import Environment, Learner
from jaxdp.mechanisms import toeplitz_counter
from jaxdp.mechanisms.continual_counting.buffers import find_buffers

ARMS, EPSILON, DELTA = 20, 1.0, 1e-5
DIMS = (5, 20)
LANES, TILE = {5: 2048, 20: 512}, {5: 512, 20: 128}
HORIZON = {5: 1000, 20: 400}
REPEATS = 5
EVERY = {"every round": 1, "every 50th round": 50}  # as by a share of 1% after 5000 rounds
Peer = Callable[[np.ndarray], None]  # fills the regret of all lanes


def bench_learner(
    name: str, learner: Learner, environment: Environment, peer: Peer, horizon: int, values: dict[str, Any]
) -> None:
    """By rounds, and by blocks where there are some, in tiles of lanes, as a sweep plays it."""
    dim = learner.interface.context.shape[-1]
    lanes, tile = LANES[dim], TILE[dim]
    calls, theirs = {}, np.zeros(lanes)
    print(f"{name}, {lanes} lanes in tiles of {tile}, horizon {horizon}")
    for engine in ("rounds", *(["blocks"] if learner.blocks else [])):
        run = simulator(learner, environment, horizon, engine=engine, outcomes=["pseudo_regret"])
        call, compile_seconds = lanes_of(run, jax.devices("cpu")[0], lanes, tile, params=run.params(**values))
        calls[f"jaxdp by {engine}"] = call
        print(f"  {engine} compiled in {compile_seconds:.1f} s")
    seconds = interleaved(REPEATS, {**calls, "Numba, one loop per lane": lambda: peer(theirs)})
    last = seconds["Numba, one loop per lane"]
    for who, each in seconds.items():
        print(f"  {who:<26}{each * 1e9 / (lanes * horizon):9.1f} ns a round, Numba takes {last / each:.2f} times that")
    for who, call in calls.items():
        ours = np.asarray(call()["pseudo_regret"], float).ravel()
        error = np.hypot(ours.std(), theirs.std()) / np.sqrt(lanes)
        print(f"  {who:<26} regret {ours.mean():.2f}, Numba's {theirs.mean():.2f} +- {error:.2f}", flush=True)
        if not abs(ours.mean() - theirs.mean()) <= 5 * error:
            raise AssertionError(f"regrets of {name} {who} and its peer must agree, got {ours.mean()}, {theirs.mean()}")


def radii_of(radii: ellipsoid.Radii, noise: np.ndarray, dim: int, of_rewards: bool = True) -> tuple:
    """[horizon + 1] bounds L and widths, by the noise's size."""
    rounds = jnp.arange(len(noise), dtype=jnp.float32)
    bound = ellipsoid.eigenvalue_bound(radii, jnp.asarray(noise, jnp.float32))
    width = ellipsoid.noise_width(radii, bound, jnp.asarray(noise, jnp.float32))
    width = width + (ellipsoid.reward_width(radii, bound, rounds, dim) if of_rewards else 0)
    return np.asarray(bound), np.asarray(width)


def bench_linear_ucb() -> None:
    for dim in DIMS:
        horizon, values = HORIZON[dim], {"epsilon": EPSILON, "delta": DELTA}
        for how, every in EVERY.items():
            learner = contextual.linear_ucb(num_arms=ARMS, dim=dim, horizon=horizon, update_every=every)
            params = learner.params(**values)
            shape = radii_of(params.radii, np.sqrt(np.arange(horizon + 1)), dim)
            stddev = float(params.channel.noise_stddev)

            def peer(regret, dim=dim, stddev=stddev, shape=shape, every=every, horizon=horizon):
                peers.linear_ucb((ARMS, dim), stddev, *shape, every, 0.5, 0.5, horizon, regret)

            world = contextual.linear_contexts("cube", num_arms=ARMS, dim=dim)
            bench_learner(f"linear_ucb, {ARMS} arms, d = {dim}, solved {how}", learner, world, peer, horizon, values)


def bench_generalized_linear() -> None:
    for dim in DIMS:
        horizon = HORIZON[dim]
        values = {"epsilon": EPSILON, "delta": DELTA, "residual_bound": 1.0, "noise_proxy": 0.25}
        for how, every in EVERY.items():
            learner = contextual.generalized_linear(num_arms=ARMS, dim=dim, horizon=horizon, update_every=every)
            params = learner.params(**values)
            bound, width = radii_of(params.radii, np.sqrt(np.arange(horizon + 1)), dim, of_rewards=False)
            width = width + np.asarray(
                descent.prediction_width(params.descent, jnp.arange(horizon + 1, dtype=jnp.float32))
            )
            stddev, rate = float(params.channel.noise_stddev), float(params.descent.learning_rate)

            def peer(regret, dim=dim, told=(stddev, 1.0, rate, bound, width), every=every, horizon=horizon):
                peers.generalized_linear((ARMS, dim), *told, every, 1.0, horizon, regret)

            world = contextual.generalized_linear_contexts("cube", num_arms=ARMS, dim=dim)
            bench_learner(
                f"generalized_linear, {ARMS} arms, d = {dim}, solved {how}", learner, world, peer, horizon, values
            )


def bench_linear_ucb_joint() -> None:
    for dim in DIMS:
        horizon, values = HORIZON[dim], {"epsilon": EPSILON, "delta": DELTA}
        counter, buffers = toeplitz_counter(horizon=horizon), find_buffers(horizon)
        leaks = tuple(np.asarray(part, np.float32) for part in (buffers.gaps, buffers.weights))
        for how, every in EVERY.items():
            learner = contextual.linear_ucb_joint(num_arms=ARMS, dim=dim, horizon=horizon, update_every=every)
            params = learner.params(**values)
            variance = counter.variance(params.counter, np.arange(1, horizon + 1))
            shape = radii_of(params.radii, np.sqrt(np.concatenate([[0.0], variance])), dim)
            stddev = float(params.counter.noise_stddev)

            def peer(regret, dim=dim, told=(stddev, *leaks, *shape), every=every, horizon=horizon):
                peers.linear_ucb_joint((ARMS, dim), *told, every, 0.5, 0.5, horizon, regret)

            world = contextual.linear_contexts("cube", num_arms=ARMS, dim=dim)
            bench_learner(
                f"linear_ucb_joint, {ARMS} arms, d = {dim}, solved {how}", learner, world, peer, horizon, values
            )


def bench_normals() -> None:
    """230 normal variates a round, as a report of 20 dimensions takes them, and their sum."""
    count, rounds = 230, 200

    def one(key: jax.Array) -> jax.Array:
        def step(total, t):
            return total + jax.random.normal(jax.random.fold_in(key, t), (count,), jnp.float32), None

        return jax.lax.scan(step, jnp.zeros(count, jnp.float32), jnp.arange(rounds))[0].sum()

    lanes, tile = LANES[20], TILE[20]
    keys = jax.random.split(jaxdp.random.key(0), lanes).reshape(-1, tile)
    compiled = jax.jit(lambda keys: jax.lax.map(jax.vmap(one), keys)).lower(keys).compile()
    sums = np.zeros(lanes, np.float32)
    seconds = interleaved(
        REPEATS,
        {
            "jaxdp, one thread": lambda: jax.block_until_ready(compiled(keys)),
            "Numba, all threads": lambda: peers.normals(count, rounds, sums),
        },
    )
    for who, each in seconds.items():
        print(f"normals: {who:<22}{each * 1e9 / (lanes * rounds * count):7.2f} ns each")


BENCHMARKS = {
    "linear_ucb": bench_linear_ucb,
    "generalized_linear": bench_generalized_linear,
    "linear_ucb_joint": bench_linear_ucb_joint,
    "normals": bench_normals,
}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
