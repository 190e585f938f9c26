"""Measures how the time and the memory of sweeps grow with the number of lanes, and what Dask's workers cost.

`python benchmarks/million_lanes.py lanes 10_000 1_000_000` runs each size in a new process, with a store that is
removed afterwards. `dask 100_000` compares one process with four local workers. Both write their numbers to
`scale.json`; `draw` makes the figure of the site and prints its table. Times are processor time, as other programs may
run.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import numpy as np
from site_pages.pictures import svg

import jaxdp
from jaxdp import plotting
from jaxdp.plotting.style import style
from jaxdp.simulation import Run
from jaxdp.simulation.sweeps.progress import Progress

RECORD = Path(__file__).with_name("scale.json")
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "scale.svg"
HORIZON, EXPERTS, EPSILONS = 1000, 10, 500
CHUNK = 10_000  # lanes
WORKERS = 4
# Chunks in memory at once: one is computed, one is written, and Zarr copies and compresses one of the two outputs.
CHUNKS_IN_MEMORY = 3.5
BYTES_OF_A_LANE = 2 * 4 * HORIZON  # loss and pseudo_regret
MIB = 2**20
# Dask samples the stacks of its tasks every 10 ms and the memory of its workers every 100 ms, also without a dashboard.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


def run() -> Run:
    """Returns a run of the learner that has a checkpoint at every round."""
    learner = jaxdp.experts.exponential_weights(num_experts=EXPERTS, horizon=HORIZON)
    world = jaxdp.experts.stochastic_losses(np.linspace(0.2, 0.8, EXPERTS))
    return jaxdp.simulator(learner, world, HORIZON, checkpoints=range(1, HORIZON + 1))


def peak() -> float:
    """Returns the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Marks:
    """The clocks when the first lanes are done: tracing and compiling are over.

    Attributes:
        lanes: number of the lanes that are done by then.
        times: processor time and wall time, in seconds.
    """

    def __init__(self, *, predict: bool = False) -> None:
        self.lanes, self.times, self.predicted, self._predict = 0, (0.0, 0.0), 0.0, predict

    def __call__(self, progress: Progress) -> None:
        """Takes the marks at the first call, and prints the predicted memory."""
        if self.lanes:
            return
        self.lanes, self.times = progress.lanes, (time.process_time(), time.perf_counter())
        if self._predict:
            chunk = min(CHUNK, progress.num_lanes) * BYTES_OF_A_LANE
            self.predicted = peak() + CHUNKS_IN_MEMORY * chunk / MIB
            print(f"{progress.num_lanes:,} lanes, predicted: at most {self.predicted:.0f} MiB", flush=True)


def play(lanes: int, marks: Marks, **options: Any) -> dict[str, float]:
    """Runs a sweep to a store. Returns its times per lane and before the first lanes, and the size of the store."""
    epsilons = np.geomspace(0.01, 10, EPSILONS).tolist()
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        results = jaxdp.sweep(
            run,
            axes={"epsilon": epsilons},
            num_seeds=lanes // EPSILONS,
            key=jax.random.key(0),
            store=Path(folder) / "scale.zarr",
            progress=marks,
            **options,
        )
        ends = time.process_time(), time.perf_counter()
        results.close()
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    processor, wall = (end - mark for end, mark in zip(ends, marks.times, strict=True))
    left = lanes - marks.lanes
    return {
        "lanes": lanes,
        "microseconds_of_a_lane": processor / left * 1e6,
        "wall_microseconds_of_a_lane": wall / left * 1e6,
        "processor_seconds": processor,
        "seconds_before": marks.times[0] - start,
        "store_mib": stored / MIB,
    }


def measure_lanes(lanes: int) -> dict[str, float]:
    """Measures one size in this process, which should be new: its memory is the most that it ever had."""
    marks = Marks(predict=True)
    found = play(lanes, marks, chunk_size=CHUNK)
    return {**found, "predicted_mib": marks.predicted, "peak_mib": peak(), "load": os.getloadavg()[0]}


def measure_dask(lanes: int) -> dict[str, float]:
    """Compares a process with `WORKERS` workers of one thread each, after a sweep in which all programs are compiled.

    The processor time of Dask has the workers' whole time and this process's time from the first finished chunk on.
    """
    import dask
    from dask.distributed import Client, LocalCluster

    alone = play(lanes, Marks())
    about: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set(QUIET),
        LocalCluster(**about) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        cold = sum(client.run(time.process_time).values())
        play(lanes, Marks(), executor=client.get_executor())
        before = sum(client.run(time.process_time).values())
        together = play(lanes, Marks(), executor=client.get_executor())
        of_workers = sum(client.run(time.process_time).values()) - before
    seconds = (of_workers + together["processor_seconds"]) / lanes * 1e6
    return {
        "lanes": lanes,
        "workers": WORKERS,
        "alone_microseconds_of_a_lane": alone["microseconds_of_a_lane"],
        "microseconds_of_a_lane": seconds,
        "of_workers": of_workers / lanes * 1e6,
        "of_main_process": together["processor_seconds"] / lanes * 1e6,
        "compiling_seconds_of_a_worker": (before - cold - of_workers) / WORKERS,
        "efficiency": alone["microseconds_of_a_lane"] / seconds,
        "load": os.getloadavg()[0],
    }


def record(kind: str, found: dict[str, Any]) -> None:
    """Writes a measurement to the record, in place of the one of the same number of lanes."""
    whole = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    others = [each for each in whole.get(kind, []) if each["lanes"] != found["lanes"]]
    rounded = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in found.items()}
    whole[kind] = sorted([*others, rounded], key=lambda each: each["lanes"])
    whole |= {"machine": {"cores": os.cpu_count(), "jax": jax.__version__}}
    RECORD.write_text(json.dumps(whole, indent=1) + "\n")


def draw(found: dict[str, Any]) -> None:
    """Draws the figure of the site, and prints its table in Markdown."""
    lanes = found["lanes"]
    numbers = [each["lanes"] for each in lanes]
    figure = plotting.panels(1, 2)
    time_axes, memory_axes = figure.axes
    times = [each["microseconds_of_a_lane"] for each in lanes]
    time_axes.plot(numbers, times, label="measured", **style(0, time_axes))
    mean = float(np.mean(times))
    time_axes.axhspan(0.9 * mean, 1.1 * mean, color="#888888", alpha=0.25, label="mean, plus or minus 10%")
    time_axes.set(xlabel="lanes", ylabel="processor time of a lane (µs)", xscale="log", ylim=(0, None))
    memory_axes.plot(numbers, [each["peak_mib"] for each in lanes], label="measured", **style(0, memory_axes))
    predicted = [each["predicted_mib"] for each in lanes]
    memory_axes.plot(numbers, predicted, label="printed in advance", **style(1, memory_axes))
    stored = [each["lanes"] * BYTES_OF_A_LANE / MIB for each in lanes]
    memory_axes.plot(numbers, stored, label="all results", **style(2, memory_axes))
    memory_axes.set(xlabel="lanes", ylabel="memory of the process (MiB)", xscale="log", yscale="log")
    for axes in figure.axes:
        axes.legend(fontsize="small")
    FIGURE.write_text(svg(figure), encoding="utf-8")
    print("| lanes | processor time of a lane | most memory | printed in advance | all results | store |")
    print("|---|---|---|---|---|---|")
    for each in lanes:
        cells = [f"{each['lanes']:,}", f"{each['microseconds_of_a_lane']:.0f} µs", f"{each['peak_mib']:.0f} MiB"]
        cells += [f"{each['predicted_mib']:.0f} MiB", f"{each['lanes'] * BYTES_OF_A_LANE / MIB:,.0f} MiB"]
        print("|", " | ".join([*cells, f"{each['store_mib']:.0f} MiB"]), "|")


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("lanes", "dask", "draw", "child"))
    parser.add_argument("lanes", nargs="*", type=int, help=f"numbers of lanes, multiples of {EPSILONS}")
    args = parser.parse_args()
    if args.verb == "draw":
        draw(json.loads(RECORD.read_text()))
    for lanes in args.lanes:
        if args.verb == "lanes":
            subprocess.run([sys.executable, __file__, "child", str(lanes)], check=True)
        else:
            kind = "lanes" if args.verb == "child" else "dask"
            found = measure_lanes(lanes) if kind == "lanes" else measure_dask(lanes)
            print(json.dumps(found), flush=True)
            record(kind, found)


if __name__ == "__main__":
    main()
