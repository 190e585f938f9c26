"""Learners that track experts against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_experts.py`, with the names of learners to measure only those.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_engine import lanes_of
from benchmarks.peers import numba_experts, numba_lazy
from benchmarks.timing import interleaved, machine, simulator
from jaxdp.core import Environment, Learner
from jaxdp.experts import classes

SHIFTS, GAP, OTHERS = 5, 0.4, 0.5
EPSILON, DELTA = 1.0, 1e-6
# No powers of two.
LANES, TILE = {10: 4224, 100: 2112, 1000: 192}, {10: 1056, 100: 528, 1000: 96}
ROUNDS = {10: 2000, 100: 600, 1000: 150}
REPEATS = 5
MEANS = np.array([OTHERS - GAP, OTHERS])
Peer = Callable[[np.ndarray], Any]  # fills regret


def bench(
    title: str,
    learner: Learner,
    horizon: int,
    num: int,
    peers: dict[str, Callable[[Any], Peer]],
    engine: str = "rounds",
    lanes: int | None = None,
    tile: int | None = None,
    world: Environment | None = None,
    **values: Any,
) -> None:
    """One learner against its peers, which are made of its parameters."""
    if world is None:
        world = jaxdp.experts.shifting_losses(num_experts=num, horizon=horizon, num_shifts=SHIFTS, gap=GAP)
    if engine == "auto":
        engine = "blocks" if learner.blocks else "rounds"
    run = simulator(learner, world, horizon, engine=engine, outcomes=["pseudo_regret"])
    params = run.params(**values)
    lanes, tile = lanes or LANES[num], tile or TILE[num]
    call, compiling = lanes_of(run, jax.devices("cpu")[0], lanes, tile, params=params)
    regrets = {name: np.zeros(lanes) for name in peers}
    made = {name: peer(params["learner"]) for name, peer in peers.items()}
    functions: dict[str, Callable[[], Any]] = {f"jaxdp by {engine}": call}
    functions |= {name: (lambda peer=peer, name=name: peer(regrets[name])) for name, peer in made.items()}
    seconds = interleaved(REPEATS, functions)
    ours = np.asarray(call()["pseudo_regret"], float).ravel()
    regrets = {f"jaxdp by {engine}": ours, **regrets}
    print(f"{title}, {num} experts, {lanes} lanes in tiles of {tile}, horizon {horizon}; compiled in {compiling:.1f} s")
    for name, value in seconds.items():
        ratio = value / seconds[f"jaxdp by {engine}"]
        found = regrets[name]
        print(
            f"  {name:<38}{value * 1e9 / (lanes * horizon):9.2f} ns a round {ratio:7.2f}x   "
            f"regret {found.mean():.2f} +- {found.std() / np.sqrt(lanes):.2f}",
            flush=True,
        )
    for name in regrets:
        error = np.hypot(ours.std(), regrets[name].std()) / np.sqrt(lanes)
        if not abs(ours.mean() - regrets[name].mean()) <= 5 * error:
            raise AssertionError(
                f"the regrets of {title} and {name} must agree, got {ours.mean()}, {regrets[name].mean()}"
            )


def _segment(horizon: int) -> int:
    return -(-horizon // (SHIFTS + 1))


def bench_hedge() -> None:
    for num, horizon in ROUNDS.items():

        def peer(params, num=num, horizon=horizon):
            return lambda regret: numba_experts.hedge(
                num, MEANS, _segment(horizon), horizon, float(params.learning_rate), regret
            )

        learner = jaxdp.experts.hedge(num_experts=num, horizon=horizon)
        bench("hedge", learner, horizon, num, {"Numba": peer})


def bench_fixed_share() -> None:
    for num, horizon in ROUNDS.items():

        def peer(params, num=num, horizon=horizon):
            return lambda regret: numba_experts.fixed_share(
                num, MEANS, _segment(horizon), horizon, float(params.learning_rate), float(params.switch_rate), regret
            )

        learner = jaxdp.experts.fixed_share(num_experts=num, horizon=horizon, num_switches=SHIFTS)
        bench("fixed_share", learner, horizon, num, {"Numba": peer})


def bench_mirror_descent() -> None:
    for num, horizon in ROUNDS.items():
        rate = SHIFTS / (horizon - 1)

        def peer(params, num=num, horizon=horizon, rate=rate):
            return lambda regret: numba_experts.fixed_share(
                num, MEANS, _segment(horizon), horizon, float(params.learning_rate), rate, regret
            )

        learner = jaxdp.experts.mirror_descent(num_experts=num, horizon=horizon, num_switches=SHIFTS)
        bench("mirror_descent", learner, horizon, num, {"Numba": peer}, epsilon=EPSILON, delta=DELTA)


def bench_counter_weights() -> None:
    from jaxdp.mechanisms.continual_counting.buffers import find_buffers

    for num, horizon in ROUNDS.items():
        rate = SHIFTS / (horizon - 1)
        weights, gaps = (each.astype(np.float32) for each in find_buffers(horizon))

        def peer(params, num=num, horizon=horizon, rate=rate, weights=weights, gaps=gaps):
            return lambda regret: numba_experts.counter_weights(
                *(num, MEANS, _segment(horizon), horizon, float(params.learning_rate), rate),
                *(float(params.counter.noise_stddev), weights, gaps, regret),
            )

        learner = jaxdp.experts.counter_weights(
            num_experts=num, horizon=horizon, sequences=classes.markov(switch_rate=rate), num_switches=SHIFTS
        )
        bench("counter_weights, markov", learner, horizon, num, {"Numba": peer}, epsilon=EPSILON, delta=DELTA)


def bench_lazy_weights() -> None:
    num, horizon = 10, 2000
    for batch in (1, 19):
        steps = -(-horizon // batch)
        odds, futures = odds_and_futures(num, steps)

        def numba(peer, batch=batch, odds=odds, futures=futures):
            def made(params):
                return lambda regret: peer(
                    *(num, MEANS, _segment(horizon), horizon, float(params.learning_rate)),
                    *(float(params.fake_switch_prob), batch, int(params.budget), odds, futures, regret),
                )

            return made

        learner = jaxdp.experts.lazy_weights(
            num_experts=num, horizon=horizon, sequences=classes.switching(num_switches=SHIFTS), together=batch
        )
        peers = {
            "Numba, a power of two for each entry": numba(numba_lazy.lazy_switching),
            "Numba, plain float64": numba(numba_lazy.lazy_doubles),
        }
        bench(
            f"lazy_weights(switching({SHIFTS})), batch {batch}",
            learner,
            horizon,
            num,
            peers,
            lanes=2112,
            tile=528,
            engine="auto",
            epsilon=4.0,
            delta=DELTA,
            batch=batch,
        )


def odds_and_futures(num: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """For each step the odds of a switch in each row, and the rows' futures: their ratios."""
    rows = SHIFTS + 1
    left = np.arange(steps)[::-1].astype(float)  # steps to come
    terms = np.ones((steps, rows))
    for k in range(1, rows):
        terms[:, k] = terms[:, k - 1] * np.maximum(left - (k - 1), 0) / k * (num - 1)
    futures = np.cumsum(terms, axis=1)[:, ::-1]
    following = np.vstack([futures[1:], np.ones((1, rows))])
    come = np.hstack([following[:, 1:], np.zeros((steps, 1))])
    odds = (num - 1) * come / futures
    odds[-1] = 0
    return odds.astype(np.float32), (futures / futures[:, :1]).astype(np.float32)


def bench_svt_restarts() -> None:
    num, horizon, lanes, tile = 10, 20_000, 1056, 264
    for every in (1, 16):
        restarts = np.zeros(lanes)
        checks = -(-horizon // every)

        def peer(params, every=every, restarts=restarts, checks=checks):
            return lambda regret: numba_experts.svt_restarts(
                *(num, MEANS, _segment(horizon), horizon, 8.0, every, params.block_slack, params.slack_before),
                *(float(params.window_slack), np.float32(params.margin), checks.bit_length(), regret, restarts),
            )

        learner = jaxdp.experts.svt_restarts(num_experts=num, horizon=horizon, check_every=every)
        about = {"engine": "auto", "lanes": lanes, "tile": tile, "epsilon": 8.0}
        bench(f"svt_restarts, a question every {every}", learner, horizon, num, {"Numba": peer}, **about)


def bench_limited_updates() -> None:
    """Losses whose law does not change; by counts an epoch is one step."""
    num = 10
    means = np.full(num, OTHERS)
    means[num // 2] -= GAP
    for engine, horizon, lanes in (("rounds", 20_000, 1056), ("blocks", 20_000, 1056), ("counts", 1_000_000, 128)):

        def peer(params, horizon=horizon):
            return lambda regret: numba_experts.limited_updates(num, MEANS, horizon, horizon, EPSILON, regret)

        learner = jaxdp.experts.limited_updates(num_experts=num, losses="binary")
        world = jaxdp.experts.stochastic_losses(means)
        about = {"engine": engine, "lanes": lanes, "tile": min(lanes // 2, 264), "epsilon": EPSILON}
        bench("limited_updates", learner, horizon, num, {"Numba": peer}, world=world, **about)


BENCHMARKS = {
    "lazy_weights": bench_lazy_weights,
    "svt_restarts": bench_svt_restarts,
    "mirror_descent": bench_mirror_descent,
    "counter_weights": bench_counter_weights,
    "hedge": bench_hedge,
    "fixed_share": bench_fixed_share,
    "limited_updates": bench_limited_updates,
}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
