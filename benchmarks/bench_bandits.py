"""Bandits against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_bandits.py`, with the names of learners to measure only those.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_engine import lanes_of
from benchmarks.peers import numba_bandits, numpy_bandits
from benchmarks.timing import interleaved, machine, simulator
from jaxdp.bandits import bernoulli_bandit, successive_elimination_central, thompson, tsallis_inf, ucb
from jaxdp.bandits.convex import fkm, linear_losses, two_point
from jaxdp.core import Environment, Learner

ARMS, DIM, EPSILON = 10, 10, 1.0
LANES, TILE = 2112, 528  # rows that are a power of two apart would share few of a cache's sets
MEANS = np.linspace(0.2, 0.8, ARMS)
KEEP = 1 / (1 + np.exp(-EPSILON))
REPEATS = 7
LONG = 5000  # rounds of what takes few nanoseconds: starting a tile takes as long as some hundred rounds of it
SCRIPT_ROUNDS = 3000
Peer = Callable[[np.ndarray], None]  # fills the regret of all lanes
Script = Callable[[np.random.Generator, int], float]  # the regret of one lane after so many rounds


def bench_learner(
    name: str,
    learner: Learner,
    environment: Environment,
    peer: Peer,
    script: Script | None,
    horizon: int,
    sizes: str = f"{ARMS} arms",
) -> None:
    """By rounds, in tiles of lanes, as a sweep plays it."""
    one = ["pseudo_regret"]  # as the peer
    run = simulator(learner, environment, horizon, engine="rounds", outcomes=one)
    lanes, compile_seconds = lanes_of(run, jax.devices("cpu")[0], LANES, TILE, EPSILON)
    theirs = np.zeros(LANES)
    seconds = interleaved(REPEATS, {"jaxdp by rounds": lanes, "Numba, one loop per lane": lambda: peer(theirs)})
    nanoseconds = {who: each * 1e9 / (LANES * horizon) for who, each in seconds.items()}
    if script is not None:
        start = time.perf_counter()
        script(np.random.default_rng(0), SCRIPT_ROUNDS)
        nanoseconds["NumPy, step by step"] = (time.perf_counter() - start) * 1e9 / SCRIPT_ROUNDS
    ours = np.asarray(lanes()["pseudo_regret"], float).ravel()
    error = np.hypot(ours.std(), theirs.std()) / np.sqrt(LANES)
    print(
        f"{name}, {sizes}, {LANES} lanes in tiles of {TILE}, horizon {horizon}, epsilon {EPSILON}, compiled in "
        f"{compile_seconds:.1f} s; regret {ours.mean():.2f}, Numba's {theirs.mean():.2f} +- {error:.2f}"
    )
    mine = nanoseconds["jaxdp by rounds"]
    for who, each in nanoseconds.items():
        print(f"  {who:<26}{each:9.1f} ns a round {each / mine:8.2f} times ours")
    if not abs(ours.mean() - theirs.mean()) <= 5 * error:
        raise AssertionError(f"the regrets of {name} and its peer must agree, got {ours.mean()} and {theirs.mean()}")


def bench_tsallis_inf() -> None:
    for estimator, is_warm in (("iw", True), ("iw", False), ("rv", True)):
        is_importance = estimator == "iw"
        start = "the last root" if is_warm else "1, as the paper has it"
        bench_learner(
            f"tsallis_inf, {estimator}, Numba's Newton steps from {start}",
            tsallis_inf(num_arms=ARMS, estimator=estimator),
            bernoulli_bandit(MEANS),
            lambda regret, how=(is_importance, is_warm): numba_bandits.tsallis_inf(
                MEANS.astype(np.float32), KEEP, *how, LONG, regret
            ),
            lambda rng, rounds, kind=is_importance: numpy_bandits.tsallis_inf(rng, MEANS, KEEP, kind, rounds),
            LONG,
        )


def bench_ucb() -> None:
    bench_learner(
        "ucb",
        ucb(num_arms=ARMS),
        bernoulli_bandit(MEANS),
        lambda regret: numba_bandits.ucb(MEANS.astype(np.float32), KEEP, 4.0, LONG, regret),
        lambda rng, rounds: numpy_bandits.ucb(rng, MEANS, KEEP, 4.0, rounds),
        LONG,
    )


def bench_thompson() -> None:
    bench_learner(
        "thompson",
        thompson(num_arms=ARMS),
        bernoulli_bandit(MEANS),
        lambda regret: numba_bandits.thompson(MEANS.astype(np.float32), KEEP, 200, regret),
        lambda rng, rounds: numpy_bandits.thompson(rng, MEANS, KEEP, rounds),
        200,
    )


def bench_convex(name: str) -> None:
    horizon = 1000
    learner = {"fkm": fkm, "two_point": two_point}[name](dim=DIM, horizon=horizon)
    world = linear_losses(dim=DIM, feedback="point" if name == "fkm" else "difference")
    params = learner.params(epsilon=EPSILON)
    size = 1 / np.tanh(EPSILON / 2)
    leaves = 0.5, float(params.exploration), float(params.step), size

    def peer(regret: np.ndarray) -> None:
        getattr(numba_bandits, name)(DIM, *leaves, horizon, regret)

    bench_learner(name, learner, world, peer, None, horizon, sizes=f"dimension {DIM}")


def bench_counts() -> None:
    """10^9 rounds as totals."""
    horizon, lanes = 10**9, 1000
    learner = successive_elimination_central(num_arms=ARMS)
    run = simulator(learner, bernoulli_bandit(MEANS), horizon, engine="counts", outcomes=["pseudo_regret"])
    call, compile_seconds = lanes_of(run, jax.devices("cpu")[0], lanes, 250, EPSILON)
    seconds = interleaved(3, {"counts": call})["counts"]
    print(
        f"successive_elimination_central by counts, {ARMS} arms, {lanes} lanes, horizon {horizon}: {seconds:.3f} s, "
        f"compiled in {compile_seconds:.1f} s; regret {np.mean(call()['pseudo_regret']):.0f}"
    )


BENCHMARKS = {
    "tsallis_inf": bench_tsallis_inf,
    "ucb": bench_ucb,
    "thompson": bench_thompson,
    "fkm": lambda: bench_convex("fkm"),
    "two_point": lambda: bench_convex("two_point"),
    "counts": bench_counts,
}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
