"""One table of speeds, from the cases of the other benchmarks: `make bench`, meant to take under ten minutes.

Run as `python benchmarks/table.py`, with names of rows to measure only those, and `--out FILE` for another file than
.cache/bench.json. The other benchmarks run as they are, with fewer repetitions; what they time is recorded. Columns:

- ns: of a lane's round on one core: wall time x cores / (lanes x rounds), of the fastest of some calls in turn.
- Numba: how many times longer the peer takes, one scalar loop for each lane, on the same cores.
- plain: how many times longer `jit(vmap(run))` takes in one call, for the same learner by rounds, with JAX's own keys
  and on the same cores; over at most PLAIN_ROUNDS rounds, its first ones included.
- compiling: seconds, of one program.
- operations: of a lane's round, as XLA's cost analysis counts them in a compiled program of one plain round: keys, act,
  feedback, privatize, update. It is an estimate: operations on integers, as of random words, and transcendental ones
  count as one each, and a loop's body counts once. Blocks and counts have the number of their plain rounds.
- times longer: ns, compared with so many additions and multiplications of float32 on one core, from its nearest cache,
  at the rate that is measured here.
- GPU: rounds of all lanes a second on a GPU, if there is one.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks import (
    bench_bandits,
    bench_contextual,
    bench_dueling,
    bench_engine,
    bench_experts,
    bench_real_data,
    timing,
)
from jaxdp.simulation.store.processor import cores, host_processor
from jaxdp.simulation.store.provenance import versions

REPEATS = 3
PLAIN_ROUNDS = 200
OUT = Path(".cache/bench.json")
CPU = jax.devices("cpu")[0]


ROWS: dict[str, Callable[[], None]] = {
    "explore_then_commit": lambda: bench_engine.bench_explore_then_commit([CPU]),
    "exponential_weights, 64 experts": lambda: bench_engine.bench_exponential_weights([CPU], 64),
    "tsallis_inf": bench_bandits.bench_tsallis_inf,
    "ucb": bench_bandits.bench_ucb,
    "thompson": bench_bandits.bench_thompson,
    "fkm": lambda: bench_bandits.bench_convex("fkm"),
    "two_point": lambda: bench_bandits.bench_convex("two_point"),
    "ebs_elimination": bench_dueling.bench_ebs_elimination,
    "rucb": bench_dueling.bench_rucb,
    "double_thompson": bench_dueling.bench_double_thompson,
    "versatile_sparring": bench_dueling.bench_versatile_sparring,
    "lazy_weights": bench_experts.bench_lazy_weights,
    "svt_restarts": bench_experts.bench_svt_restarts,
    "mirror_descent": bench_experts.bench_mirror_descent,
    "counter_weights": bench_experts.bench_counter_weights,
    "limited_updates": bench_experts.bench_limited_updates,
    "limited_updates, real losses": bench_real_data.bench_limited_updates,
    "explore_then_commit, real rewards": bench_real_data.bench_explore_then_commit,
    "svt_lazy, real losses": bench_real_data.bench_svt_lazy,
    "tree_counter, real data": bench_real_data.bench_tree_counter,
    "tree_counter, Gaussian noise, real data": bench_real_data.bench_gaussian_tree,
    "toeplitz_counter, real data": bench_real_data.bench_toeplitz_counter,
    "linear_ucb, d = 5": bench_contextual.bench_linear_ucb,
    "generalized_linear, d = 5": bench_contextual.bench_generalized_linear,
    "linear_ucb_joint, d = 5": bench_contextual.bench_linear_ucb_joint,
}


def rows_of(name: str, recording: timing.Recording) -> Iterator[dict[str, Any]]:
    """Yields one row for each way in which a benchmark's learner was played."""
    ours = [label for label in recording.seconds if label.startswith("jaxdp")]
    (peer,) = [recording.seconds[label] for label in recording.seconds if label.startswith("Numba")][:1] or [None]
    for label, case in zip(ours, recording.played, strict=True):
        how = next(word for word in ("rounds", "blocks", "counts") if word in label)
        _, learner, environment, options = next(made for made in recording.made if made[0] is case["run"])
        rounds = case["lanes"] * options["horizon"]
        plain, operations = _plain(learner, environment, options, case)
        mine = recording.seconds[label]
        yield {
            "learner": f"{name}, by {how}",
            "lanes": case["lanes"],
            "horizon": options["horizon"],
            "ns_per_lane_round_and_core": mine * cores() * 1e9 / rounds,
            "times_numba": None if peer is None else peer / mine,
            "times_plain": plain / (mine / options["horizon"]),
            "compiling_seconds": case["compiling"],
            "operations_per_lane_round": operations,
            "times_longer_than_operations": mine * cores() / rounds / (operations / rate()),
            "gpu_rounds_per_second": _on_gpu(case, options["horizon"]),
        }


def _plain(learner: Any, environment: Any, options: dict[str, Any], case: dict[str, Any]) -> tuple[float, float]:
    """Seconds of a round of all lanes by the plain program, and operations of a lane's round."""
    horizon = min(options["horizon"], PLAIN_ROUNDS)
    short = jaxdp.simulator(
        learner._replace(horizon=None), environment, horizon, engine="rounds", outcomes=options.get("outcomes")
    )
    lanes, params = case["lanes"], case["params"]

    keys = jax.random.split(jax.random.key(0), lanes)
    program = jax.jit(jax.vmap(short, (0, None))).lower(keys, params).compile()
    seconds = timing.best_of(REPEATS, lambda: jax.block_until_ready(program(keys, params))) / horizon
    return seconds, _operations(learner, environment, params)


def _operations(learner: Any, environment: Any, params: Any, lanes: int = 16) -> float:
    """Operations of one plain round of a lane: see above."""
    own, others = params["learner"], params["environment"]

    def begin(key: jax.Array) -> Any:
        return learner.init(key, own), environment.init(key, others)

    def play(key: jax.Array, state: Any, world: Any) -> Any:
        of_context, of_feedback = jax.random.split(jax.random.fold_in(key, 0))
        of_act, of_report, of_update = jax.random.split(jax.random.fold_in(key, 1), 3)
        context = environment.context(of_context, others, world) if environment.context else None
        action = learner.act(of_act, own, state.public, context)
        world, feedback, outcome = environment.feedback(of_feedback, others, world, action)
        report = learner.privatize(of_report, own, state.public, context, action, feedback)
        return learner.update(of_update, own, state, report), world, outcome

    keys = jax.random.split(jaxdp.random.key(0), lanes)
    state, world = jax.eval_shape(jax.vmap(begin), keys)
    told = jax.jit(jax.vmap(play)).lower(keys, state, world).compile().cost_analysis()
    told = (told[0] if isinstance(told, list) else told) or {}
    return (told.get("flops", 0.0) + told.get("transcendentals", 0.0)) / lanes


def _on_gpu(case: dict[str, Any], horizon: int) -> float | None:
    if jax.default_backend() == "cpu":
        return None
    call, _ = bench_engine.lanes_of(case["run"], jax.devices()[0], case["lanes"], case["tile"], params=case["params"])
    return case["lanes"] * horizon / timing.best_of(REPEATS, call)


_rate: list[float] = []


def rate() -> float:
    """Additions and multiplications a second on one core, of float32 in its nearest cache."""
    if not _rate:
        steps, size, terms = 20_000, 2048, 16

        def many(x: jax.Array) -> jax.Array:
            def step(_: Any, x: jax.Array) -> jax.Array:
                for term in range(terms):
                    x = x * jnp.float32(0.999 - term * 1e-3) + jnp.float32(0.5)
                return x

            return jax.lax.fori_loop(0, steps, step, x)

        x = jax.device_put(np.ones(size, np.float32), CPU)
        program = jax.jit(many).lower(x).compile()
        _rate.append(2 * terms * steps * size / timing.best_of(REPEATS, lambda: jax.block_until_ready(program(x))))
    return _rate[0]


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """Returns the table, with a column for a GPU if there is a figure of one."""
    heads = ["learner", "lanes x rounds", "ns", "Numba", "plain", "compiling", "operations", "times longer"]
    with_gpu = any(row["gpu_rounds_per_second"] is not None for row in rows)
    heads += ["GPU, rounds/s"] if with_gpu else []
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]

    def cell(value: float | None, text: str) -> str:
        return "-" if value is None else text.format(value)

    for row in rows:
        cells = [
            row["learner"],
            f"{row['lanes']:,} x {row['horizon']:,}",
            f"{row['ns_per_lane_round_and_core']:.3g}",
            cell(row["times_numba"], "{:.2f}x"),
            cell(row["times_plain"], "{:.1f}x"),
            f"{row['compiling_seconds']:.1f} s",
            cell(row["operations_per_lane_round"], "{:,.0f}"),
            cell(row["times_longer_than_operations"], "{:.2g}x"),
        ]
        cells += [cell(row["gpu_rounds_per_second"], "{:.2e}")] if with_gpu else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"of {'; '.join(ROWS)}; all without")
    parser.add_argument("--out", type=Path, default=OUT)
    told = parser.parse_args()
    for name in told.rows:
        if name not in ROWS:
            parser.error(f"rows must be among {'; '.join(ROWS)}, got {name!r}")
    warnings.filterwarnings("ignore", message="the horizon .* ends before")  # plain programs are short
    start, rows = time.perf_counter(), []
    print(timing.machine())
    for name in told.rows or ROWS:
        with timing.record_benchmark(REPEATS) as recording:
            ROWS[name]()
        rows += rows_of(name, recording)
        print(as_markdown(rows).splitlines()[-1], flush=True)
        record = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "versions": versions(),
            "processor": host_processor(),
            "cores": cores(),
            "device": f"{jax.devices()[0].platform}: {jax.devices()[0].device_kind}",
            "float32_operations_per_second_and_core": rate(),
            "load_at_the_end": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "seconds": time.perf_counter() - start,
            "rows": rows,
        }
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text(json.dumps(record, indent=1))
    print(f"\n{as_markdown(rows)}\n\n{told.out}: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
