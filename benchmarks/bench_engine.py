"""The engine against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_engine.py`. On a machine with a GPU the learners run there too.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_random import bench_words
from benchmarks.peers import numba_learners
from benchmarks.timing import interleaved, machine, record_program, simulator
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.schedule import Lanes, Runner

LANES, TILE, EPSILON = 1024, 256, 1.0
ARMS, EXPLORE_ROUNDS, ARM_HORIZON = 8, 50_000, 100_000
EXPERT_HORIZON = 1000
SWEEP_LANES = 4096


def lanes_of(run, device, num_lanes=LANES, tile=TILE, epsilon=EPSILON, params=None):
    """A function that runs all lanes as a sweep does, and seconds to compile it."""
    params = run.params(epsilon=epsilon) if params is None else params
    start = time.perf_counter()
    compiled = Program(run, jax.random.key(0), [params], tile, [device]).compile()
    seconds = time.perf_counter() - start
    record_program(run, num_lanes, tile, params, seconds)
    everything = chunks((), (num_lanes,), (num_lanes,))

    def call():
        runner = Runner(compiled, Lanes(num_lanes, num_lanes))
        ((_, outputs),) = runner.chunks(everything, advance=lambda count: None)
        return outputs

    return call, seconds


def report(title, seconds, rounds, compile_seconds, reference):
    print(title)
    for name, value in seconds.items():
        compiling = f"   compiled in {compile_seconds[name]:.1f} s" if name in compile_seconds else ""
        print(
            f"  {name:<38}{value:8.3f} s {value * 1e9 / rounds:9.2f} ns a round  {rounds / value:9.2e} rounds/s"
            f"   {seconds[reference] / value:6.2f}x{compiling}"
        )


def bench_explore_then_commit(devices):
    means = np.linspace(0.2, 0.8, ARMS)
    learner = jaxdp.bandits.explore_then_commit(num_arms=ARMS, explore_rounds=EXPLORE_ROUNDS)
    environment = jaxdp.bandits.bernoulli_bandit(means)
    peer_regret = np.zeros(LANES)
    reference = "Numba, fastmath float32, parallel"
    functions, compile_seconds = {}, {}
    for device in devices:
        for engine in ("rounds", "blocks", "counts"):
            name = f"jaxdp by {engine}, {device.platform}"
            run = simulator(learner, environment, ARM_HORIZON, engine=engine)
            functions[name], compile_seconds[name] = lanes_of(run, device)
    small = np.asarray(means, np.float32)
    functions[reference] = lambda: numba_learners.explore_then_commit(
        small, EPSILON, EXPLORE_ROUNDS, ARM_HORIZON, peer_regret
    )
    seconds = interleaved(3, functions)
    regret = next(iter(functions.values()))()["pseudo_regret"].mean()
    title = f"explore_then_commit, {ARMS} arms, {LANES} lanes, horizon {ARM_HORIZON}; regret {regret:.1f}, "
    report(f"{title}{peer_regret.mean():.1f}", seconds, LANES * ARM_HORIZON, compile_seconds, reference)


def bench_exponential_weights(devices, num_experts):
    means = np.linspace(0.2, 0.8, num_experts)
    learner = jaxdp.experts.exponential_weights(num_experts=num_experts, horizon=EXPERT_HORIZON)
    run = simulator(learner, jaxdp.experts.stochastic_losses(means), EXPERT_HORIZON)
    rate = float(run.params(epsilon=EPSILON)["learner"].learning_rate)
    peer_regret = np.zeros(LANES)
    reference = "Numba, fastmath float32, parallel"
    functions, compile_seconds = {}, {}
    for device in devices:
        name = f"jaxdp by rounds, {device.platform}"
        functions[name], compile_seconds[name] = lanes_of(run, device)
    small = np.asarray(means, np.float32)
    functions[reference] = lambda: numba_learners.exponential_weights(small, EPSILON, rate, EXPERT_HORIZON, peer_regret)
    seconds = interleaved(3, functions)
    regret = next(iter(functions.values()))()["pseudo_regret"].mean()
    title = (
        f"exponential_weights, {num_experts} experts, {LANES} lanes, horizon {EXPERT_HORIZON}; regret {regret:.1f}, "
    )
    report(f"{title}{peer_regret.mean():.1f}", seconds, LANES * EXPERT_HORIZON, compile_seconds, reference)


def bench_sweep_overhead(device):
    """A sweep against the bare program: the same tiles of the same run, without dataset and labels."""
    learner = jaxdp.experts.exponential_weights(num_experts=64, horizon=EXPERT_HORIZON)
    environment = jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, 64))
    run = simulator(learner, environment, EXPERT_HORIZON)
    params = jax.device_put(run.params(epsilon=EPSILON), device)
    seeds = np.arange(SWEEP_LANES, dtype=np.uint32)
    keys = jax.vmap(lambda seed: jax.random.fold_in(jaxdp.random.key(0), seed))(seeds)
    tiles = [jax.device_put(keys[start : start + TILE], device) for start in range(0, SWEEP_LANES, TILE)]
    pool = ThreadPoolExecutor(os.cpu_count())
    compiled = jax.jit(jax.vmap(run, in_axes=(0, None))).lower(tiles[0], params).compile()
    lanes, _ = lanes_of(run, device, SWEEP_LANES)

    def bare_from_scratch():
        program = jax.jit(jax.vmap(lambda key, params: run(key, params), in_axes=(0, None)))  # a new one each time
        program = program.lower(tiles[0], params).compile()
        return list(pool.map(lambda tile: jax.device_get(program(tile, params)), tiles))

    def sweep():
        axes = {"epsilon": [EPSILON]}
        return jaxdp.sweep(lambda: run, axes=axes, num_seeds=SWEEP_LANES, key=jax.random.key(0), devices=[device])

    pairs = {
        "tiles alone": {
            "bare jit(vmap(run)), a tile per core": lambda: list(
                pool.map(lambda tile: jax.device_get(compiled(tile, params)), tiles)
            ),
            "the sweep's lanes": lanes,
        },
        "with tracing and compiling": {
            "bare jit(vmap(run)), a tile per core": bare_from_scratch,
            "sweep, from build to dataset": sweep,
        },
    }
    print(f"sweep of exponential_weights, 64 experts, {SWEEP_LANES} lanes in tiles of {TILE}, horizon {EXPERT_HORIZON}")
    for title, functions in pairs.items():
        seconds = interleaved(3, functions)
        bare, ours = seconds.values()
        for name, value in seconds.items():
            print(f"  {title + ': ' + name:<66}{value:8.3f} s")
        print(f"  {title + ': ratio':<66}{ours / bare:8.2f}")


def bench_counts(device):
    """Compile time, memory and seconds do not know the horizon."""
    environment = jaxdp.bandits.bernoulli_bandit(np.linspace(0.2, 0.8, ARMS))
    learner = jaxdp.bandits.explore_then_commit(num_arms=ARMS, explore_rounds=800)
    print("explore_then_commit by counts, 1000 lanes")
    for horizon in (10**3, 10**9):
        run = simulator(learner, environment, horizon, engine="counts")
        params = run.params(epsilon=EPSILON)
        keys = jax.device_put(jax.random.split(jaxdp.random.key(0), 1000), device)
        start = time.perf_counter()
        compiled = jax.jit(jax.vmap(run, in_axes=(0, None))).lower(keys, params).compile()
        compile_seconds = time.perf_counter() - start
        seconds = interleaved(3, {"": lambda: jax.block_until_ready(compiled(keys, params))})[""]  # noqa: B023
        memory = compiled.memory_analysis().temp_size_in_bytes
        print(
            f"  horizon {horizon:>13,}: {seconds:.4f} s, compiled in {compile_seconds:.1f} s, "
            f"{memory / 1e6:.2f} MB of temporary memory"
        )


def main():
    print(machine())
    devices = [jax.devices("cpu")[0]]
    if jax.default_backend() != "cpu":
        devices.insert(0, jax.devices()[0])
    bench_words()
    bench_explore_then_commit(devices)
    for num_experts in (37, 64):
        bench_exponential_weights(devices, num_experts)
    bench_sweep_overhead(devices[0])
    bench_counts(devices[0])


if __name__ == "__main__":
    main()
