"""Dueling learners against strong peers, on the same cores in one run; compile time apart.

Run as `make bench`, or `python benchmarks/bench_dueling.py`.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_engine import lanes_of, report
from benchmarks.peers import numba_ebs
from benchmarks.timing import interleaved, machine
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.mechanisms.continual_counting.arity import level_variances

LANES, ARMS, EPSILON = 512, 8, 1.0
HORIZON, PLAIN_HORIZON = 100_000, 1000


def bench_ebs_elimination(horizon=HORIZON, lanes=LANES):
    """By blocks, against Numba and against the plain scan, round by round with JAX's own keys."""
    learner = jaxdp.dueling.ebs_elimination(num_arms=ARMS, horizon=horizon)
    duels = jaxdp.dueling.utility_duels(np.linspace(1, 0, ARMS))
    run = jaxdp.simulator(learner, duels, horizon, engine="blocks")
    short = jaxdp.simulator(learner._replace(horizon=None), duels, PLAIN_HORIZON, engine="rounds")
    params = run.params(epsilon=EPSILON)
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
    call, compile_seconds = lanes_of(run, jax.devices("cpu")[0], lanes)
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
    seconds["jit(vmap(scan)), jax.random's keys"] = seconds.pop("plain") * horizon / PLAIN_HORIZON
    mean = call()["pseudo_regret"].mean()
    error = regret.std() / np.sqrt(lanes)
    title = f"ebs_elimination, {ARMS} arms, {lanes} lanes, horizon {horizon}; "
    title += f"regret {mean:.0f}, Numba's {regret.mean():.0f} +- {error:.0f}"
    compiling = {blocks: compile_seconds, "jit(vmap(scan)), jax.random's keys": plain_seconds}
    report(title, seconds, lanes * horizon, compiling, reference)


def main():
    print(machine())
    bench_ebs_elimination()


if __name__ == "__main__":
    main()
