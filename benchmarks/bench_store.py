"""What a store costs: a sweep that writes against one in memory, in one run; and the memory of a million lanes.

Run as `python benchmarks/bench_store.py`.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.timing import interleaved, machine

LANES, TILE, REPEATS = 100_000, 256, 3
MANY = 1_000_000
HORIZONS = {"experts": 300, "commit": 2000}


def experts():
    """A softmax learner, which takes a while."""
    learner = jaxdp.experts.exponential_weights(num_experts=64, horizon=HORIZONS["experts"])
    losses = jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, 64))
    return jaxdp.simulator(learner, losses, HORIZONS["experts"], checkpoints=5)


def commit():
    """A learner that is nearly free."""
    learner = jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=400)
    return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.5, 0.5, 0.5, 0.6]), HORIZONS["commit"])


def sweep(build, num_lanes, **arguments):
    axes = {"epsilon": [0.1, 1.0]}
    return jaxdp.sweep(build, axes=axes, num_seeds=num_lanes // 2, key=jax.random.key(0), tile_size=TILE, **arguments)


def bench_writing(folder):
    print(f"{LANES:,} lanes in tiles of {TILE}, from build to dataset")
    for build in (experts, commit):
        numbers = iter(range(100))
        seconds = interleaved(
            REPEATS,
            {
                "in memory": lambda build=build: sweep(build, LANES),
                "to a store": lambda build=build, numbers=numbers: sweep(
                    build, LANES, store=folder / f"{build.__name__}-{next(numbers)}.zarr"
                ),
            },
        )
        ratio = seconds["to a store"] / seconds["in memory"]
        print(
            f"  {build.__name__:<10}" + "".join(f"{name} {value:7.2f} s   " for name, value in seconds.items()), end=""
        )
        print(f"{ratio:.3f} times")


def million(store):
    """In a process of its own: a million lanes, and the most memory that the process had."""
    start = time.perf_counter()
    results = sweep(commit, MANY, store=store)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{MANY:,} lanes of explore_then_commit, horizon {HORIZONS['commit']:,}, to a store", end=": ")
    print(f"{seconds:.1f} s, at most {peak:.2f} GiB; regret {float(results.pseudo_regret.mean()):.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        million(Path(sys.argv[1]))
    else:
        print(machine())
        with tempfile.TemporaryDirectory() as name:
            bench_writing(Path(name))
            subprocess.run([sys.executable, __file__, os.path.join(name, "million.zarr")], check=True)
