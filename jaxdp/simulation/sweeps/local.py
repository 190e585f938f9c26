"""Computes chunks on this process's devices, program by program."""

import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Any

from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.compilation import count_hits, keep_for
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Reporter
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks, Runner
from jaxdp.simulation.sweeps.source import fitting_lanes, whole_tiles
from jaxdp.simulation.sweeps.tiles import tile_seconds

SECONDS_OF_A_CHUNK = 20.0  # work that is lost if the process is killed; writing a chunk is much faster
PART_OF_MEMORY = 16
FEWEST_CHUNKS = 4  # for each program and process
FEWEST_TILES_TO_TIME = 32
LONG = 60.0  # seconds; a message announces tiles that take longer
LOG = logging.getLogger("jaxdp")


class LocalSource:
    """A `Source` on this process's devices."""

    def __init__(self, plan: Plan, report: Reporter) -> None:
        """Prepares to compute `plan` and to report steps; compiles nothing yet."""
        self._plan, self._report = plan, report
        self._runners: dict[int, Runner] = {}
        self.place = plan.place()
        self._folder = keep_for(plan.devices[0].platform)

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the sweep on these devices; traces all programs."""
        return self._plan.identity()

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """Returns the identity of another sweep; see `Source`."""
        return plan.identity()

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes one chunk; see `Source`."""
        ((_, arrays),) = self._runner(chunk.program).chunks([chunk], lambda lanes: None)
        return arrays

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """Returns the best number of lanes in a chunk (see `Source`): with a store, about `SECONDS_OF_A_CHUNK` of work.

        If there are many tiles, it runs and times one tile; the results are used later.
        """
        plan, lanes = self._plan, fitting_lanes(self._plan, PART_OF_MEMORY)
        if sharers is not None:
            lanes = min(lanes, plan.lanes.num_lanes // (FEWEST_CHUNKS * sharers))
            runner = self._runner(0)
            tiles = runner.at_a_time
            if plan.lanes.num_lanes >= FEWEST_TILES_TO_TIME * plan.tile_size:
                with self._report.running(self._running(0)):
                    seconds = runner.seconds_of_a_tile()  # while no other tile runs
                tiles = max(tiles, int(SECONDS_OF_A_CHUNK / seconds * runner.at_a_time))
            lanes = min(lanes, tiles * plan.tile_size)
        return whole_tiles(plan, lanes)

    def chunks(self, requested: Sequence[Chunk]) -> Chunks:
        """Computes chunks; see `Source`. Each program is compiled for its first chunk and dropped after its last."""
        for program in range(len(self._plan.runs)):
            chunks_of_program = [chunk for chunk in requested if chunk.program == program]
            if chunks_of_program:
                runner = self._runner(program)
                with (
                    self._report.running(self._running(program)),
                    contextlib.closing(runner.chunks(chunks_of_program, self._report.advance)) as computed,
                ):
                    yield from computed
                self._runners.pop(program)
                self._plan.release(program)

    def _runner(self, program: int) -> Runner:
        if program not in self._runners:
            static_values = f", {self._plan.name(program)}" if self._plan.static_axes else ""
            self._report.describe(f"tracing{static_values}")
            traced = self._plan.program(program)
            traced.trace()
            self._report.describe(f"compiling{static_values}")
            with count_hits() as hits:
                start = time.perf_counter()
                compiled = traced.compile()
                seconds = time.perf_counter() - start
            cache_folder = f" ({self._folder})" if self._folder else ""
            origin = "from the cache" if hits else f"compiled in {seconds:.1f} s"
            self._report.set_program(f"program {origin}{cache_folder}")
            self._runners[program] = Runner(compiled, self._plan.lanes)
            self._announce(program, traced)
        return self._runners[program]

    def _announce(self, program: int, traced: Program) -> None:
        """Logs how long the first tile takes, if this is known and more than a minute."""
        rounds = self._plan.rounds(program)
        if rounds is None or not self._plan.plays_by_rounds(program):
            return
        lanes, platform = self._plan.tile_size, self._plan.devices[0].platform
        seconds = tile_seconds(platform, rounds, lanes, traced.lane_bytes())
        if seconds > LONG:
            LOG.warning(f"a tile of {lanes:,} lanes plays {rounds:,} rounds; this may take {seconds / 60:.0f} minutes")

    def _running(self, program: int) -> str:
        return self._plan.name(program) if self._plan.static_axes else "running"
