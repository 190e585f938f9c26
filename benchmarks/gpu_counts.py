"""The cost of a round on a GPU, counted without one: kernels, waits of the host, bytes and registers.

XLA's CUDA compiler gets the description of a card (`benchmarks/gpu/*.txtpb`), and nothing runs. `make gpu-counts` makes
an environment of its own (`requirements-gpu.lock`: CUDA's wheels have 4.4 GB), counts again, and fails if a count is
larger than in `benchmarks/gpu/counts.json`; `make gpu-counts WRITE=1` writes that file. Seconds are those that this
machine's cores spend on tracing and compiling, and no count: they are not compared.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import jaxdp
from benchmarks.gpu.dumps import loops, registers, round_loop
from jaxdp.numerics.platforms import trace_for
from jaxdp.simulation.sweeps.lanes import Program, compiler_options

FOLDER = Path(__file__).parent / "gpu"
COUNTS = FOLDER / "counts.json"
ROUNDS = 10_000
BLOCKS = 79  # at least, for explore-then-commit: blocks of 128 rounds, one of which ends with exploration
CARDS = {"h100": ("sm_90a", 65_536), "rtx4060": ("sm_89", 16_384)}  # their architecture, and lanes of a tile
LOOKS: dict[str, Any] = {
    "1 checkpoint": None,
    "10 checkpoints": 10,
    "50 checkpoints": 50,
    "log_spaced(16)": jaxdp.log_spaced(16),
    "a list": [10, 300, 1_000, ROUNDS],
}
COMPARED = ("kernels", "waits", "bytes", "registers")
MEANS = np.linspace(0.2, 0.8, 8)


def etc(*, engine: str = "rounds", rewards: str = "binary", checkpoints: Any = None) -> Any:
    """Returns the run of explore-then-commit with eight arms, by this engine, on rewards of this kind."""
    learner = jaxdp.bandits.explore_then_commit(num_arms=8, explore_rounds=800, rewards=rewards)
    world = jaxdp.bandits.bernoulli_bandit(MEANS) if rewards == "binary" else jaxdp.bandits.gaussian_bandit(MEANS)
    return jaxdp.simulator(learner, world, ROUNDS, engine=engine, checkpoints=checkpoints)


def bandit(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes the run of a learner with eight arms."""

    def run(checkpoints: Any = None) -> Any:
        world = jaxdp.bandits.bernoulli_bandit(MEANS)
        return jaxdp.simulator(factory(num_arms=8), world, ROUNDS, engine="rounds", checkpoints=checkpoints)

    return run


def dueling(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes the run of a learner that compares eight arms."""

    def run(checkpoints: Any = None) -> Any:
        world = jaxdp.dueling.matrix_duels(jaxdp.preferences.utility_matrix(np.linspace(2, 0, 8)))
        return jaxdp.simulator(factory(num_arms=8), world, ROUNDS, engine="rounds", checkpoints=checkpoints)

    return run


def experts(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes the run of a learner with sixteen experts."""

    def run(checkpoints: Any = None) -> Any:
        world = jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, 16))
        learner = factory(num_experts=16, horizon=ROUNDS)
        return jaxdp.simulator(learner, world, ROUNDS, engine="rounds", checkpoints=checkpoints)

    return run


EVERY_LOOK: dict[str, Callable[..., Any]] = {
    "explore_then_commit": etc,
    "explore_then_commit by auto": lambda **given: etc(engine="auto", **given),
    "ucb": bandit(jaxdp.bandits.ucb),
    "tsallis_inf": bandit(jaxdp.bandits.tsallis_inf),
    "exponential_weights": experts(jaxdp.experts.exponential_weights),
    "rucb": dueling(jaxdp.dueling.rucb),
    "versatile_sparring": dueling(jaxdp.dueling.versatile_sparring),
}
ONE_LOOK: dict[str, Callable[..., Any]] = {
    "explore_then_commit bounded": lambda **given: etc(rewards="bounded", **given),
    "limited_updates bounded": lambda: jaxdp.simulator(
        jaxdp.experts.limited_updates(num_experts=16),
        jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, 16)),
        ROUNDS,
    ),
    "ebs_elimination by auto": lambda: jaxdp.simulator(
        jaxdp.dueling.ebs_elimination(num_arms=8, horizon=ROUNDS),
        jaxdp.dueling.utility_duels(np.linspace(1, 0, 8)),
        ROUNDS,
    ),
    "ebs_elimination by rounds": lambda: jaxdp.simulator(
        jaxdp.dueling.ebs_elimination(num_arms=8, horizon=ROUNDS),
        jaxdp.dueling.utility_duels(np.linspace(1, 0, 8)),
        ROUNDS,
        engine="rounds",
    ),
    "double_thompson": dueling(jaxdp.dueling.double_thompson),
    "svt_lazy": experts(jaxdp.experts.svt_lazy),
}


def programs() -> dict[tuple[str, str], Callable[[], Any]]:
    """Returns the functions that make the counted runs, by (name of the run, name of the card)."""
    found: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, run in EVERY_LOOK.items():
        for look, checkpoints in LOOKS.items():
            found[f"{name}, {look}", "h100"] = lambda run=run, checkpoints=checkpoints: run(checkpoints=checkpoints)
    for name, run in ONE_LOOK.items():
        found[f"{name}, 1 checkpoint", "h100"] = run
    for name in ("explore_then_commit", "ucb", "exponential_weights"):
        found[f"{name}, 10 checkpoints", "rtx4060"] = lambda run=EVERY_LOOK[name]: run(checkpoints=10)
    return found


def count(run: Any, card: str, turns: int) -> dict[str, Any]:
    """Compiles a run for a card, and returns the cost of a turn of the loop that has at least `turns` turns."""
    architecture, lanes = CARDS[card]
    description = (FOLDER / f"{card}.txtpb").read_text()
    target = topologies.get_topology_desc("topology", "cuda", target_config=description, topology="1x1x1").devices[0]
    start = core_seconds()
    program = Program(run, jax.random.key(0), [run.params(epsilon=1.0)], lanes, jax.devices("cpu")[:1])
    with tempfile.TemporaryDirectory() as name:
        dumps = {"xla_dump_to": name, "xla_dump_hlo_as_text": True, "xla_dump_emitter_re": "ptx"}
        traced = program.trace_without_arrays(SingleDeviceSharding(target))
        compiled = traced.lower().compile(compiler_options("gpu") | dumps)
        seconds = core_seconds() - start
        folder = Path(name)
        loop = round_loop(loops(folder), turns)
        memory = compiled.memory_analysis()
        return {
            "kernels": loop.kernels[1],
            "fewest_kernels": loop.kernels[0],
            "waits": loop.waits,
            "bytes": round(loop.bytes / lanes, 1),
            "registers": registers(folder, architecture),
            "memory": round(memory.temp_size_in_bytes / lanes, 1),
            "seconds": round(seconds, 1),
        }


def core_seconds() -> float:
    """Returns the seconds that this process and its compilers used of all cores."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def rises(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """Returns the counts of a program that are larger than they were."""
    return [f"{name} rose from {old[name]} to {new[name]}" for name in COMPARED if new[name] > old[name]]


def main() -> int:
    """Counts, prints a row for each program, and compares or writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help="parts of names of programs; by default all")
    parser.add_argument(
        "--write", type=Path, nargs="?", const=COUNTS, help="write counts to a file, and keep its other counts"
    )
    given = parser.parse_args()
    versions = {"jax": jax.__version__, "jaxlib": jax.lib.__version__}
    file = given.write or COUNTS
    old = json.loads(file.read_text()) if file.exists() else {"versions": versions, "programs": {}}
    if old["versions"] != versions:
        raise SystemExit(f"counts must be of the versions in {file}, {old['versions']}, got {versions}")
    failed = []
    for (name, card), make in programs().items():
        if given.only and not any(part in name for part in given.only):
            continue
        new = count(make(), card, BLOCKS if name.startswith("explore_then_commit by auto") else ROUNDS)
        before = old["programs"].get(f"{name}, {card}")
        own = ["it has no counts yet: WRITE=1 writes them"] if before is None else rises(new, before)
        if given.write:
            old["programs"][f"{name}, {card}"] = new
            file.write_text(json.dumps(old, indent=1) + "\n")
        failed += [f"{name}, {card}: {rise}" for rise in own]
        kernels = f"{new['fewest_kernels']}-{new['kernels']}"
        counts = f"{kernels:>7} kernels{new['waits']:3} waits{new['bytes']:9} B{new['registers']:5} registers"
        held = f"{new['memory']:9} B held{new['seconds']:6} s"
        print(f"{name:44}{card:9}{counts}{held}  {'; '.join(own)}", flush=True)
    if given.write:
        return 0
    print("\n".join(failed) or "no count rose")
    return 1 if failed else 0


if __name__ == "__main__":
    with trace_for("gpu"):  # from the start on: JAX keeps its traces for a CPU
        raise SystemExit(main())
