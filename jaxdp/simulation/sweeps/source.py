"""Where a sweep's chunks come from: this process's devices, or an executor's workers."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from jaxdp.memory import free_host_bytes
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.store.chunks import Chunk, chunk_shape
from jaxdp.simulation.store.processor import processor, settings
from jaxdp.simulation.sweeps.patience import Patience
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Reporter
from jaxdp.simulation.sweeps.remote import check_code, check_executor, first_description, pack, remote_chunks
from jaxdp.simulation.sweeps.schedule import Chunks, Runner

SECONDS_OF_A_CHUNK = 20.0  # what a kill may lose, and long beside the writing of a chunk
BYTES_OF_A_CHUNK = 2**28
PART_OF_MEMORY = 16
PART_FOR_AN_EXECUTOR = 256
FEWEST_CHUNKS = 4  # of a program for each process
CHUNKS_FOR_AN_EXECUTOR = 64  # of a program
FEWEST_TILES_TO_TIME = 32


class Source:
    """Where chunks come from: this process's devices, or an executor."""

    def __init__(
        self, build: Callable[..., Run], plan: Plan, executor: Executor | None, timeout: float | None, report: Reporter
    ) -> None:
        """Asks the executor, if there is one, for its machine.

        Args:
            build: of the sweep.
            plan: of the sweep.
            executor: whose workers compute chunks; None is this process.
            timeout: seconds in which an executor must answer; None is any time.
            report: is told what is being done.
        """
        self._plan, self._executor, self._report = plan, executor, report
        if executor is not None:
            check_executor(executor)
        self._patience = Patience(timeout)
        self._packed = b"" if executor is None else pack(build, plan)
        self._identity: dict[str, Any] | None = None
        self._runners: dict[int, Runner] = {}
        self.devices = [f"{device.platform}: {device.device_kind}" for device in plan.devices]
        self.machine: dict[str, Any] = {"processor": processor(plan.devices[0]), "settings": settings()}
        if executor is not None:
            self._identity, self.devices = first_description(executor, self._packed, self._patience)
            self.machine = {name: self._identity[name] for name in self.machine}
            check_code(self._identity, plan)

    def identity(self) -> dict[str, Any]:
        """The sweep's, as it is where it runs."""
        if self._identity is None:
            self._identity = self._plan.identity()
        return self._identity

    def chunk_shape(
        self, lane_bytes: int, chunk_size: int | None, *, num_processes: int, timed: bool
    ) -> tuple[int, ...]:
        """The shape of a chunk along (*axes, seed): as given, or from memory and time.

        Args:
            lane_bytes: of a lane's results.
            chunk_size: lanes, as the user gave it, or None.
            num_processes: that share the chunks.
            timed: whether a chunk should take about `SECONDS_OF_A_CHUNK`; that runs a tile, which is kept.
        """
        plan, num_lanes = self._plan, self._plan.lanes.num_lanes
        sizes = [*(len(values) for values in plan.axes.values()), plan.num_seeds]
        if chunk_size is not None:
            return chunk_shape(sizes, chunk_size)
        part = PART_OF_MEMORY if self._executor is None else PART_FOR_AN_EXECUTOR  # which has many at a time
        memory = min(BYTES_OF_A_CHUNK, (free_host_bytes() or BYTES_OF_A_CHUNK) // part)
        lanes = min(memory // max(lane_bytes, 1), num_lanes)
        if self._executor is not None:
            lanes = min(lanes, num_lanes // CHUNKS_FOR_AN_EXECUTOR)
        elif timed:
            lanes = min(lanes, num_lanes // (FEWEST_CHUNKS * num_processes))
            runner = self._runner(0)
            tiles = runner.at_a_time
            if num_lanes >= FEWEST_TILES_TO_TIME * plan.tile_size:  # it runs alone
                with self._report.running(self._running(0)):
                    seconds = runner.seconds_of_a_tile()
                tiles = max(tiles, int(SECONDS_OF_A_CHUNK / seconds * runner.at_a_time))
            lanes = min(lanes, tiles * plan.tile_size)
        return chunk_shape(sizes, max(1, lanes // plan.tile_size) * plan.tile_size)  # whole tiles, where that can be

    def chunks(self, wanted: Sequence[Chunk]) -> Chunks:
        """Computes chunks, and reports how far they are."""
        report = self._report
        if self._executor is not None:
            outputs = self._plan.outputs()
            found = remote_chunks(self._executor, self._packed, wanted, self.identity(), outputs, self._patience)
            report.describe("compiling")  # until the first chunk comes, which ran in seconds that nothing tells here
            first = next(found, None)
            if first is not None:
                with report.running("running"), contextlib.closing(found):
                    report.advance(first[0].stop - first[0].start, counted=False)
                    yield first
                    for chunk, arrays in found:
                        report.advance(chunk.stop - chunk.start)
                        yield chunk, arrays
            return
        for program in range(len(self._plan.runs)):
            own = [chunk for chunk in wanted if chunk.program == program]
            if own:
                runner = self._runner(program)
                with (
                    report.running(self._running(program)),
                    contextlib.closing(runner.chunks(own, report.advance)) as found,
                ):
                    yield from found
                self._runners.pop(program)
                self._plan.release(program)

    def _runner(self, program: int) -> Runner:
        if program not in self._runners:
            about = f", {self._plan.name(program)}" if self._plan.static_axes else ""
            self._report.describe(f"tracing{about}")
            traced = self._plan.program(program)
            traced.trace()
            self._report.describe(f"compiling{about}")
            self._runners[program] = Runner(traced.compile(), self._plan.lanes)
        return self._runners[program]

    def _running(self, program: int) -> str:
        return self._plan.name(program) if self._plan.static_axes else "running"
