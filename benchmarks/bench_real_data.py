"""Learners whose curator sees real-valued data, without a peer; compile time apart.

Run as `python benchmarks/bench_real_data.py`, with names of rows to measure only those.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_engine import lanes_of
from benchmarks.real_data import counting, real_losses, real_rewards
from benchmarks.timing import interleaved, machine, simulator
from jaxdp.core import Environment, Learner
from jaxdp.mechanisms import Counter

LANES, TILE = 1056, 264
EXPERTS = np.full(10, 0.5) - 0.2 * (np.arange(10) == 5)
ARMS = np.linspace(0.2, 0.8, 8)
REPEATS = 5


def bench(name: str, learner: Learner, world: Environment, horizon: int, engines: tuple[str, ...], **values: float):
    """Prints nanoseconds of a lane's round, by each engine."""
    calls, compiling = {}, {}
    for engine in engines:
        run = simulator(learner, world, horizon, engine=engine, outcomes=["pseudo_regret"])
        params = run.params(**values)
        label = f"jaxdp by {engine}"
        calls[label], compiling[label] = lanes_of(run, jax.devices("cpu")[0], LANES, TILE, params=params)
    for label, seconds in interleaved(REPEATS, calls).items():
        nanoseconds = seconds * 1e9 / (LANES * horizon)
        print(f"{name}, {label}: {nanoseconds:.1f} ns a round, compiled in {compiling[label]:.1f} s", flush=True)


def bench_limited_updates() -> None:
    learner = jaxdp.experts.limited_updates(num_experts=len(EXPERTS))
    bench("limited_updates", learner, real_losses(EXPERTS), 4000, ("rounds", "blocks"), epsilon=1.0)


def bench_explore_then_commit() -> None:
    learner = jaxdp.bandits.explore_then_commit(num_arms=len(ARMS), explore_rounds=10_000, rewards="bounded")
    bench("explore_then_commit", learner, real_rewards(ARMS), 20_000, ("rounds", "blocks"), epsilon=1.0)


def bench_svt_lazy() -> None:
    learner = jaxdp.experts.svt_lazy(num_experts=len(EXPERTS), horizon=2000)
    bench("svt_lazy", learner, real_losses(EXPERTS), 2000, ("rounds",), epsilon=4.0, best_loss=100.0)


def bench_counter(name: str, counter: Counter, **values: float) -> None:
    learner = counting(counter, len(EXPERTS))
    bench(name, learner, real_losses(EXPERTS), 1000, ("rounds",), **values)


def bench_tree_counter() -> None:
    bench_counter("tree_counter", jaxdp.mechanisms.tree_counter(horizon=1000), epsilon=1.0, l1_sensitivity=10.0)


def bench_gaussian_tree() -> None:
    counter = jaxdp.mechanisms.tree_counter(horizon=1000, noise="gaussian")
    bench_counter("tree_counter, Gaussian noise", counter, rho=1.0, l2_sensitivity=10.0**0.5)


def bench_toeplitz_counter() -> None:
    counter = jaxdp.mechanisms.toeplitz_counter(horizon=1000)
    bench_counter("toeplitz_counter", counter, rho=1.0, l2_sensitivity=10.0**0.5)


BENCHMARKS: dict[str, Callable[[], None]] = {
    "limited_updates": bench_limited_updates,
    "explore_then_commit": bench_explore_then_commit,
    "svt_lazy": bench_svt_lazy,
    "tree_counter": bench_tree_counter,
    "tree_counter, Gaussian noise": bench_gaussian_tree,
    "toeplitz_counter": bench_toeplitz_counter,
}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
