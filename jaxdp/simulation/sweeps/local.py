"""Chunks computed on this process's devices, program by program."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.processor import cores
from jaxdp.simulation.sweeps.lanes import Compiled, Program
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Reporter
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks, Runner
from jaxdp.simulation.sweeps.source import fitting_lanes, whole_tiles

SECONDS_OF_A_CHUNK = 20.0  # what a kill may lose, and long beside the writing of a chunk
PART_OF_MEMORY = 16
FEWEST_CHUNKS = 4  # of a program for each process
FEWEST_TILES_TO_TIME = 32
MOST_AT_A_TIME = 4  # programs that are compiled at a time, each of which takes memory
BYTES_AHEAD = 2**26  # of parameters of a program that is compiled before its turn


class LocalSource:
    """This process's devices, as a `Source`."""

    def __init__(self, plan: Plan, report: Reporter) -> None:
        """Compiles nothing yet.

        Args:
            plan: of the sweep.
            report: gets what is being done, for bars and callbacks.
        """
        self._plan, self._report = plan, report
        self._runners: dict[int, Runner] = {}
        self._compiling: dict[int, Future[Compiled]] = {}
        self.place = plan.place()

    @property
    def identity(self) -> dict[str, Any]:
        """The sweep's identity on these devices; all programs are traced for it."""
        return self._plan.identity()

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """As `Source`."""
        return plan.identity()

    def sample(self, chunk: Chunk) -> Arrays:
        """As `Source`."""
        ((_, arrays),) = self._runner(chunk.program).chunks([chunk], lambda lanes: None)
        return arrays

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """As `Source`; with a store, what takes about `SECONDS_OF_A_CHUNK`.

        Where there are many tiles one of them is run for that, and its results are kept.
        """
        plan, lanes = self._plan, fitting_lanes(self._plan, PART_OF_MEMORY)
        if sharers is not None:
            lanes = min(lanes, plan.lanes.num_lanes // (FEWEST_CHUNKS * sharers))
            runner = self._runner(0)
            tiles = runner.at_a_time
            if plan.lanes.num_lanes >= FEWEST_TILES_TO_TIME * plan.tile_size:
                with self._report.running(self._running(0)):
                    seconds = runner.seconds_of_a_tile()  # of one that runs alone
                tiles = max(tiles, int(SECONDS_OF_A_CHUNK / seconds * runner.at_a_time))
            lanes = min(lanes, tiles * plan.tile_size)
        return whole_tiles(plan, lanes)

    def chunks(self, wanted: Sequence[Chunk]) -> Chunks:
        """As `Source`. A program is compiled when its first chunk is due, or before, and forgotten after its last."""
        of_programs: dict[int, list[Chunk]] = {}
        for chunk in sorted(wanted, key=lambda chunk: chunk.program):
            of_programs.setdefault(chunk.program, []).append(chunk)
        programs, ahead = list(of_programs), self._ahead()
        pool = ThreadPoolExecutor(max(1, ahead))
        try:
            for index, program in enumerate(programs):
                for soon in programs[index : index + 1 + ahead] if ahead else ():
                    self._begin(pool, soon)
                runner = self._runner(program)
                with (
                    self._report.running(self._running(program)),
                    contextlib.closing(runner.chunks(of_programs[program], self._report.advance)) as found,
                ):
                    yield from found
                self._runners.pop(program)
                self._plan.release(program)
        finally:
            pool.shutdown(cancel_futures=True)
            self._compiling.clear()

    def _ahead(self) -> int:
        """How many programs to compile before their turn: on a CPU, which compiles one on a core or little more."""
        devices = self._plan.devices
        return min(cores(), MOST_AT_A_TIME) if len(devices) == 1 and devices[0].platform == "cpu" else 0

    def _begin(self, pool: ThreadPoolExecutor, program: int) -> None:
        """Traces a program here, whose settings of JAX are the caller's, and has it compiled in another thread."""
        if program in self._compiling or program in self._runners:
            return
        if self._plan.program(program).num_bytes <= BYTES_AHEAD:
            self._compiling[program] = pool.submit(self._traced(program).compile)

    def _runner(self, program: int) -> Runner:
        if program not in self._runners:
            begun = self._compiling.pop(program, None)
            compile_it = self._traced(program).compile if begun is None else begun.result
            self._report.describe(f"compiling{self._about(program)}")
            compiled = compile_it()
            self._runners[program] = Runner(compiled, self._plan.lanes)
        return self._runners[program]

    def _traced(self, program: int) -> Program:
        self._report.describe(f"tracing{self._about(program)}")
        traced = self._plan.program(program)
        traced.trace()
        return traced

    def _about(self, program: int) -> str:
        return f", {self._plan.name(program)}" if self._plan.static_axes else ""

    def _running(self, program: int) -> str:
        return self._plan.name(program) if self._plan.static_axes else "running"
