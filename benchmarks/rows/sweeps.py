"""Rows of whole sweeps: beside the bare program, and with results written to a store."""

import itertools
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

import jaxdp
from benchmarks.measure import CPU, Case, Work
from benchmarks.programs import compile_call, compile_lanes
from benchmarks.row import Row


def weights(horizon, checkpoints=None):
    """Builds a softmax learner, which takes a while."""
    learner = jaxdp.experts.exponential_weights(num_experts=64, horizon=horizon)
    world = jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, 64))
    return jaxdp.simulator(learner, world, horizon, checkpoints=checkpoints)


def commit(horizon):
    """Builds a learner that is nearly free."""
    learner = jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=horizon // 5)
    return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.5, 0.5, 0.5, 0.6]), horizon)


def sweep(run, lanes, tile, **arguments):
    axes = {"epsilon": [0.1, 1.0]}
    return jaxdp.sweep(run, axes=axes, num_seeds=lanes // 2, key=jax.random.key(0), tile_size=tile, **arguments)


def tiles_of(run, lanes, tile):
    params = jax.device_put(run.params(epsilon=1.0), CPU)
    keys = jaxdp.lane_keys(jax.random.key(0), lanes)
    return params, [jax.device_put(keys[start : start + tile], CPU) for start in range(0, lanes, tile)]


def tiles_alone(horizon, lanes, tile):
    """Measures the sweep's lanes beside `jit(vmap(run))`, a tile for each core: no tracing, dataset or labels."""
    run = weights(horizon)
    params, tiles = tiles_of(run, lanes, tile)
    compiled, _ = compile_call(jax.vmap(run, in_axes=(0, None)), (tiles[0], params))
    call, compiling = compile_lanes(run, CPU, lanes, tile, params)
    pool = ThreadPoolExecutor(os.cpu_count())
    works = {
        "jaxdp": Work(call, lanes * horizon, compiling=compiling),
        "bare": Work(
            lambda: list(pool.map(lambda keys: jax.device_get(compiled(keys, params)), tiles)), lanes * horizon
        ),
    }
    return Case(works=works, size=f"{lanes:,} x {horizon:,}", unit="lane-round")


def from_build(horizon, lanes, tile):
    """Measures from `build` to the dataset, beside tracing, compiling and running the bare program."""
    run = weights(horizon)
    params, tiles = tiles_of(run, lanes, tile)
    pool = ThreadPoolExecutor(os.cpu_count())

    def bare():
        compiled, _ = compile_call(
            jax.vmap(lambda key, params: run(key, params), in_axes=(0, None)), (tiles[0], params)
        )
        return list(pool.map(lambda keys: jax.device_get(compiled(keys, params)), tiles))

    def whole():
        axes = {"epsilon": [1.0]}
        return jaxdp.sweep(
            lambda: run, axes=axes, num_seeds=lanes, key=jax.random.key(0), tile_size=tile, devices=[CPU]
        )

    works = {"jaxdp": Work(whole, lanes * horizon), "bare": Work(bare, lanes * horizon)}
    return Case(works=works, size=f"{lanes:,} x {horizon:,}", unit="lane-round")


def to_store(build, horizon, lanes, tile, **about):
    """Measures a sweep that writes a store, beside the same sweep in memory."""
    folder, numbers = tempfile.TemporaryDirectory(), itertools.count()

    def write():
        path = Path(folder.name) / f"{next(numbers)}.zarr"
        sweep(lambda: build(horizon, **about), lanes, tile, store=path)

    units = lanes * horizon
    works = {
        "jaxdp": Work(write, units),
        "in memory": Work(lambda: sweep(lambda: build(horizon, **about), lanes, tile), units),
    }
    return Case(works=works, size=f"{lanes:,} x {horizon:,}", unit="lane-round", check=folder.cleanup)


QUICK = {"horizon": 20, "lanes": 32, "tile": 16}
ROWS = [
    Row(
        name="sweep, its tiles",
        make=tiles_alone,
        size={"horizon": 1000, "lanes": 4096, "tile": 256},
        quick=QUICK,
    ),
    Row(
        name="sweep, from build to dataset",
        make=from_build,
        size={"horizon": 1000, "lanes": 4096, "tile": 256},
        quick=QUICK,
    ),
    Row(
        name="store, exponential_weights",
        make=lambda **size: to_store(weights, checkpoints=5, **size),
        size={"horizon": 300, "lanes": 100_000, "tile": 256},
        quick=QUICK,
    ),
    Row(
        name="store, explore_then_commit",
        make=lambda **size: to_store(commit, **size),
        size={"horizon": 2000, "lanes": 100_000, "tile": 256},
        quick=QUICK,
    ),
]
