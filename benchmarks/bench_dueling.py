"""Duels against strong peers, on the same cores in one run; compile time apart.

Run as `make bench`, or `python benchmarks/bench_dueling.py`, with the names of learners to measure only those.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.peers import numba_duels
from benchmarks.timing import interleaved, machine
from jaxdp.dueling import double_thompson, matrix_duels, rucb, versatile_sparring
from jaxdp.learner import Learner
from jaxdp.preferences import utility_matrix
from jaxdp.simulation.chunks import chunks
from jaxdp.simulation.lanes import Program
from jaxdp.simulation.schedule import Lanes, Runner

ARMS, LANES, TILE, EPSILON, EXPLORATION_RATE = 8, 2048, 256, 1.0, 0.51
MATRIX = utility_matrix(np.linspace(2, 0, ARMS))
REPEATS = 7
Peer = Callable[[np.ndarray, float, np.ndarray], None]  # (matrix, probability of a true report, regret to fill)


def bench_learner(name: str, learner: Learner, peer: Peer, horizon: int) -> None:
    """By rounds, in tiles of lanes, as a sweep plays it."""
    run = jaxdp.simulator(learner, matrix_duels(MATRIX), horizon, engine="rounds")
    device = jax.devices("cpu")[0]
    compiled = Program(run, jax.random.key(0), [run.params(epsilon=EPSILON)], TILE, [device]).compile()
    everything = chunks((), (LANES,), (LANES,))
    regrets: dict[str, np.ndarray] = {"jaxdp by rounds": np.zeros(LANES), "Numba, one loop per lane": np.zeros(LANES)}
    ours, theirs = regrets.values()

    def play() -> None:
        ((_, outputs),) = Runner(compiled, Lanes(LANES, LANES)).chunks(everything, advance=lambda count: None)
        ours[:] = np.asarray(outputs["strong_regret"]).ravel()

    keep = 1 / (1 + np.exp(-EPSILON))
    matrix = MATRIX.astype(np.float32)
    functions = dict(zip(regrets, (play, lambda: peer(matrix, keep, theirs)), strict=True))
    seconds = interleaved(REPEATS, functions)
    error = np.hypot(ours.std(), theirs.std()) / np.sqrt(LANES)
    difference = abs(ours.mean() - theirs.mean())
    print(f"{name}, {ARMS} arms, {LANES} lanes in tiles of {TILE}, horizon {horizon}, epsilon {EPSILON}")
    for who, regret in regrets.items():
        nanoseconds = seconds[who] * 1e9 / (LANES * horizon)
        ratio = seconds["Numba, one loop per lane"] / seconds[who]
        print(f"  {who:<26}{nanoseconds:9.1f} ns a round {ratio:6.2f}x   regret {regret.mean():.2f}")
    if not difference <= 5 * error:
        raise AssertionError(f"the regrets of {name} and its peer must agree, got {difference} apart, error {error}")


def bench_rucb() -> None:
    def peer(matrix, keep, regret):
        numba_duels.rucb(matrix, keep, EXPLORATION_RATE, 1000, regret)

    bench_learner("rucb", rucb(num_arms=ARMS), peer, 1000)


def bench_double_thompson() -> None:
    def peer(matrix, keep, regret):
        numba_duels.double_thompson(matrix, keep, EXPLORATION_RATE, 200, regret)

    bench_learner("double_thompson", double_thompson(num_arms=ARMS), peer, 200)


def bench_versatile_sparring() -> None:
    for losses in ("importance", "reduced_variance"):

        def peer(matrix, keep, regret, is_importance=losses == "importance"):
            numba_duels.versatile_sparring(matrix, keep, is_importance, 1000, regret)

        learner = versatile_sparring(num_arms=ARMS, losses=losses)
        bench_learner(f"versatile_sparring, {losses}", learner, peer, 1000)


BENCHMARKS = {
    "rucb": bench_rucb,
    "double_thompson": bench_double_thompson,
    "versatile_sparring": bench_versatile_sparring,
}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
