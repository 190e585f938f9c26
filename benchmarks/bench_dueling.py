"""Duels against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_dueling.py`, with the names of learners to measure only those.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_engine import lanes_of, report
from benchmarks.peers import numba_duels, numba_ebs
from benchmarks.peers.duelpy_peer import print_duelpy
from benchmarks.timing import interleaved, machine, simulator
from jaxdp.core import Learner
from jaxdp.dueling import double_thompson, matrix_duels, rucb, versatile_sparring
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.mechanisms.continual_counting.arity import level_variances
from jaxdp.preferences import utility_matrix

ARMS, EPSILON, EXPLORATION_RATE = 8, 1.0, 0.51
BLOCK_TILE, ELIMINATION_EPSILONS = 264, (1.0, 0.02)  # arms are dropped; all arms stay
LANES, TILE = 2112, 528  # rows that are a power of two apart would share few of a cache's sets
MATRIX = utility_matrix(np.linspace(2, 0, ARMS))
REPEATS = 7
Peer = Callable[[np.ndarray, float, np.ndarray], None]  # (matrix, probability of a true report, regret to fill)


def bench_learner(name: str, learner: Learner, peer: Peer, horizon: int) -> None:
    """By rounds, in tiles of lanes, as a sweep plays it."""
    one = ["pseudo_regret"]  # as the peer
    run = simulator(learner, matrix_duels(MATRIX), horizon, engine="rounds", outcomes=one)
    call, compile_seconds = lanes_of(run, jax.devices("cpu")[0], LANES, TILE, EPSILON)
    ours, theirs = np.zeros(LANES), np.zeros(LANES)
    regrets: dict[str, np.ndarray] = {"jaxdp by rounds": ours, "Numba, one loop per lane": theirs}

    def play() -> None:
        ours[:] = np.asarray(call()["pseudo_regret"]).ravel()

    keep = 1 / (1 + np.exp(-EPSILON))
    matrix = MATRIX.astype(np.float32)
    functions = dict(zip(regrets, (play, lambda: peer(matrix, keep, theirs)), strict=True))
    seconds = interleaved(REPEATS, functions)
    error = np.hypot(ours.std(), theirs.std()) / np.sqrt(LANES)
    sizes = f"{ARMS} arms, {LANES} lanes in tiles of {TILE}, horizon {horizon}, epsilon {EPSILON}"
    print(f"{name}, {sizes}, compiled in {compile_seconds:.1f} s")
    for who, regret in regrets.items():
        nanoseconds = seconds[who] * 1e9 / (LANES * horizon)
        ratio = seconds["Numba, one loop per lane"] / seconds[who]
        print(f"  {who:<26}{nanoseconds:9.1f} ns a round {ratio:6.2f}x   regret {regret.mean():.2f}")
    _check_agreement(name, ours.mean() - theirs.mean(), error)


def _check_agreement(name: str, difference: float, error: float) -> None:
    if not abs(difference) <= 5 * error:
        raise AssertionError(f"the regrets of {name} and its peer must agree, got {difference} apart, error {error}")


def bench_rucb() -> None:
    def peer(matrix, keep, regret):
        numba_duels.rucb(matrix, keep, EXPLORATION_RATE, 1000, regret)

    bench_learner("rucb", rucb(num_arms=ARMS), peer, 1000)
    print_duelpy("rucb", rucb(num_arms=ARMS), MATRIX, 1000, EXPLORATION_RATE)


def bench_double_thompson() -> None:
    def peer(matrix, keep, regret):
        numba_duels.double_thompson(matrix, keep, EXPLORATION_RATE, 200, regret)

    bench_learner("double_thompson", double_thompson(num_arms=ARMS), peer, 200)
    print_duelpy("double_thompson", double_thompson(num_arms=ARMS), MATRIX, 200, EXPLORATION_RATE)


def bench_versatile_sparring() -> None:
    for losses in ("importance", "reduced_variance"):

        def peer(matrix, keep, regret, is_importance=losses == "importance"):
            numba_duels.versatile_sparring(matrix, keep, is_importance, 1000, regret)

        learner = versatile_sparring(num_arms=ARMS, losses=losses)
        bench_learner(f"versatile_sparring, {losses}", learner, peer, 1000)


def bench_ebs_elimination() -> None:
    """By blocks, against Numba and against the plain scan, round by round with JAX's own keys."""
    for epsilon in ELIMINATION_EPSILONS:
        _bench_ebs_elimination(epsilon)


def _bench_ebs_elimination(epsilon: float, horizon: int = 100_000, tiles: int = 4, short_horizon: int = 1000) -> None:
    lanes = tiles * BLOCK_TILE
    learner = jaxdp.dueling.ebs_elimination(num_arms=ARMS, horizon=horizon)
    duels = jaxdp.dueling.utility_duels(np.linspace(1, 0, ARMS))
    one = ["pseudo_regret"]  # as the peer
    run = simulator(learner, duels, horizon, engine="blocks", outcomes=one)
    short = simulator(learner._replace(horizon=None), duels, short_horizon, engine="rounds", outcomes=one)
    params = run.params(epsilon=epsilon)
    mine, world = params["learner"], params["environment"]
    arity = best_arity(horizon + ARMS)
    regret = np.zeros(lanes)
    numba_arguments = (
        *(world.preferences.astype(np.float32), world.regrets["pseudo_regret"].astype(np.float32)),
        np.float32(mine.noise.l1_sensitivity / mine.noise.epsilon),
        *(leaf.astype(np.float32) for leaf in (mine.squared_radius, mine.intercepts, mine.slopes)),
        level_variances(arity, len(mine.slopes), True).astype(np.float32),
        *(arity, horizon, regret),
    )
    blocks, reference = "jaxdp by blocks", "Numba, fastmath float32, parallel"
    call, compile_seconds = lanes_of(run, jax.devices("cpu")[0], lanes, BLOCK_TILE, epsilon)
    keys = jax.random.split(jax.random.key(0), lanes)
    start = time.perf_counter()
    plain = jax.jit(jax.vmap(short, (0, None))).lower(keys, params).compile()
    plain_seconds = time.perf_counter() - start
    functions = {
        blocks: call,
        reference: lambda: numba_ebs.ebs_elimination(*numba_arguments),  # pyright: ignore[reportCallIssue]
        "plain": lambda: jax.block_until_ready(plain(keys, params)),
    }
    seconds = interleaved(3, functions)
    seconds["jit(vmap(scan)), jax.random's keys"] = seconds.pop("plain") * horizon / short_horizon
    ours = np.asarray(call()["pseudo_regret"], float).ravel()
    mean, error = ours.mean(), np.hypot(ours.std(), regret.std()) / np.sqrt(lanes)
    title = f"ebs_elimination, {ARMS} arms, {lanes} lanes, horizon {horizon}, epsilon {epsilon}; "
    title += f"regret {mean:.0f}, Numba's {regret.mean():.0f} +- {error:.0f}"
    compiling = {blocks: compile_seconds, "jit(vmap(scan)), jax.random's keys": plain_seconds}
    report(title, seconds, lanes * horizon, compiling, reference)
    _check_agreement("ebs_elimination", mean - regret.mean(), error)


BENCHMARKS = {
    "ebs_elimination": bench_ebs_elimination,
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
