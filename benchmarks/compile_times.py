"""Seconds of a processor to trace and to compile every registered run, at its tiny problem and without a cache.

Run as `python benchmarks/compile_times.py [NAME ...]`; parts of names choose runs. Each run gets a process of its own,
three times, and its row has the medians.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import numpy as np

import jaxdp
from jaxdp.numerics.platforms import trace_for
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.simulation.sweeps.lanes import compiler_options

LANES, REPEATS = 256, 3
BY_BLOCKS = "ebs_elimination of 8 arms by blocks"  # the largest program, beside the tiny ones


def simulation(name: str) -> tuple[Any, Any]:
    """Returns the run of a learner, and its parameters."""
    if name == BY_BLOCKS:
        learner = jaxdp.dueling.ebs_elimination(num_arms=8, horizon=100_000)
        run = jaxdp.simulator(learner, jaxdp.dueling.utility_duels(np.linspace(1, 0, 8)), 100_000)
        return run, run.params(epsilon=1.0)
    entry = LEARNERS[name]
    run = jaxdp.simulator(entry.make(), entry.make_environment(), entry.horizon, checkpoints=[1, entry.horizon])
    return run, run.params(**entry.values)


def estimator_fit(name: str) -> tuple[Any, Any]:
    """Returns a function of (key, params) that fits an estimator, and its parameters."""
    entry = ESTIMATORS[name]
    estimator, (features, labels) = entry.make(), entry.make_data(jax.random.key(0))

    def fit(key: jax.Array, params: Any) -> Any:
        key_report, key_fit = jax.random.split(key)
        return estimator.fit(key_fit, params, features, estimator.privatize(key_report, params, features, labels))

    return fit, estimator.params(**entry.values)


def seconds(name: str) -> tuple[float, float]:
    """Returns two numbers of processor seconds for the named run: to trace and lower it, and to compile it."""
    run, params = estimator_fit(name) if name in ESTIMATORS else simulation(name)
    keys = jaxdp.random.fast_key(jaxdp.lane_keys(jax.random.key(0), LANES))
    start = time.process_time()
    with trace_for("cpu"):
        lowered = jax.jit(jax.vmap(run, (0, None))).lower(keys, params)
    middle = time.process_time()
    lowered.compile(compiler_options("cpu"))
    return middle - start, time.process_time() - middle


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of runs; by default all runs")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="processes for each run")
    given = parser.parse_args()
    names = [
        name for name in (*LEARNERS, *ESTIMATORS, BY_BLOCKS) if not given.names or any(p in name for p in given.names)
    ]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.compile_times"])
    rows = []
    for name in names:
        measured = []
        for _ in range(given.repeats):
            with ProcessPoolExecutor(1, mp_context=context) as pool:  # a new process
                measured.append(pool.submit(seconds, name).result())
        rows.append((*(statistics.median(times) for times in zip(*measured, strict=True)), name))
        tracing, compiling, _ = rows[-1]
        print(f"{tracing + compiling:6.2f} s, tracing {tracing:5.2f} s  {name}", flush=True)
    tiny = [(tracing, tracing + compiling) for tracing, compiling, name in rows if name != BY_BLOCKS]
    if tiny:
        tracing, totals = sum(pair[0] for pair in tiny), [pair[1] for pair in tiny]
        median = statistics.median(totals)
        print(f"{len(tiny)} tiny runs: {sum(totals):.0f} s, tracing {tracing:.0f} s, median {median:.2f} s")


if __name__ == "__main__":
    main()
