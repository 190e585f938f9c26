"""Computes chunks on this process's devices, program by program."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from jaxdp.memory import free_bytes
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.processor import cores
from jaxdp.simulation.sweeps.compilation import keep_for
from jaxdp.simulation.sweeps.lanes import Compiled, Program, tiles_in_flight
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Reporter, has_listener
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks, Runner, Started
from jaxdp.simulation.sweeps.source import fitting_lanes, whole_tiles
from jaxdp.simulation.sweeps.tiles import tile_seconds

SECONDS_OF_A_CHUNK = 20.0  # work that is lost if the process is killed; writing a chunk is much faster
PART_OF_MEMORY = 16  # a chunk of several tiles, and tiles that start early, take at most 1 / 16 of the free memory
FEWEST_CHUNKS = 4  # minimum number of chunks of a program for each process, if there are enough tiles
FEWEST_TILES_TO_TIME = 32
MOST_AHEAD = 4  # programs that are compiled before their turn, if there are two cores or more; each takes memory
LONG = 60.0  # seconds; a message announces tiles that take longer
MOMENT = 1.0  # seconds that a call waits for a tile of the first chunk before it traces another program
LOG = logging.getLogger("jaxdp")


class LocalSource:
    """A `Source` on this process's devices."""

    def __init__(self, plan: Plan, report: Reporter) -> None:
        """Prepares to compute `plan` and to report steps; calls `keep_for`, but compiles nothing yet."""
        self._plan, self._report = plan, report
        self._runners: dict[int, Runner] = {}
        self._origins: dict[int, str] = {}  # for each program, whether it was compiled or read from the cache
        self._compiling: dict[int, Future[tuple[Compiled, float]]] = {}
        self._ahead = MOST_AHEAD if cores() > 1 else 0
        self._compilers = ThreadPoolExecutor(min(MOST_AHEAD + 1, cores()))
        self.hardware = plan.hardware()
        self._folder = keep_for(plan.devices[0].platform)

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the sweep on these devices; traces all programs."""
        return self._plan.identity()

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """Returns the identity that the sweep `plan` would have on these devices."""
        return plan.identity()

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes one chunk. Returns its outputs keyed by name, with a leading axis of lanes."""
        ((_, arrays),) = self._runner(chunk.program).chunks([chunk], lambda lanes: None)
        return arrays

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """Returns the best number of lanes in a chunk.

        `sharers` is the number of processes that share the chunks of the store; None if there is no store, and only
        memory limits chunks. With a store, each process gets at least `FEWEST_CHUNKS` chunks of a program if there are
        enough tiles. A chunk then has at most as many tiles as run at a time. With many tiles, a chunk may have more:
        as many as take about `SECONDS_OF_A_CHUNK`. To find this number, a tile of the first program is run and timed.
        The tile's results are kept for later use.
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
        """Computes chunks, and yields each with its outputs keyed by name. A program is dropped after its last chunk.

        While a program is compiled and runs, this thread traces the next programs, and other threads compile at most
        `MOST_AHEAD` of them. On a single core, each program is traced and compiled just before it runs. Tracing checks
        a program's outputs. If the tiles of a program leave cores of a CPU idle, tiles of the next programs run, too.
        """
        programs = sorted({chunk.program for chunk in requested})
        chunks_of = {program: [chunk for chunk in requested if chunk.program == program] for program in programs}
        to_compile, to_check, to_start = deque(programs), set(programs), deque(programs)
        started: dict[int, Started] = {}
        is_first = True

        def prepare() -> bool:  # returns whether there was something to do
            if not (to_compile and self._ahead):
                return False
            if len(self._compiling) + len(self._runners) <= self._ahead:
                self._start_compiling(to_compile.popleft())
                return True
            for program in to_check.intersection(to_compile):
                to_check.remove(program)
                self._plan.check_program(program)
                return True
            return False

        def running() -> list[Future[Any]]:
            return [tile for tiles in started.values() for tile in tiles.running]

        def start_next() -> bool:  # returns whether tiles of one more program were started
            if not (to_start and self._ahead and self._can_start_early(to_start[0], len(running()))):
                return False
            program = to_start.popleft()
            started[program] = self._make_runner(program).start(chunks_of[program])
            return True

        def work_until_done(awaited: Future[Any]) -> None:
            while not awaited.done():
                if is_first and (has_listener() or awaited not in self._compiling.values()):
                    wait([awaited], MOMENT)  # so that the first results do not wait for another program to be traced
                if not (start_next() or prepare()):
                    pending = {future for future in (*self._compiling.values(), *running()) if not future.done()}
                    if not to_start or pending <= {awaited}:
                        return
                    wait({awaited, *pending}, return_when=FIRST_COMPLETED)

        try:
            for program in programs:
                if program in to_compile:
                    self._start_compiling(to_compile.popleft())
                runner = self._runner(program, work_until_done)
                if program not in started:
                    to_start.popleft()
                    started[program] = runner.start(chunks_of[program])
                computed = runner.chunks(chunks_of[program], self._report.advance, work_until_done, started[program])
                with self._report.running(self._running(program)), contextlib.closing(computed):
                    for chunk in computed:
                        is_first = False
                        yield chunk
                del started[program]
                self._runners.pop(program)
                self._plan.release(program)
        finally:
            for tiles in started.values():
                tiles.close()
            for waiting in [program for program, future in self._compiling.items() if future.cancel()]:
                del self._compiling[waiting]  # a later call compiles it

    def _can_start_early(self, program: int, num_running: int) -> bool:
        """Returns whether a CPU has an idle core and enough memory for the tiles of a program, which is compiled."""
        future = self._compiling.get(program)
        if future is None or not future.done() or future.exception() is not None:
            return False
        compiled, _ = future.result()
        num_tiles = tiles_in_flight(compiled.devices) * len(compiled.devices)
        if compiled.devices[0].platform != "cpu" or num_running >= num_tiles:
            return False
        free = free_bytes(compiled.devices[0])
        return free is not None and num_tiles * compiled.tile_bytes <= free // PART_OF_MEMORY

    def _start_compiling(self, program: int) -> None:
        """Traces a program in this thread, and starts to compile it in another, unless that was done before."""
        if program in self._runners or program in self._compiling:
            return
        before = self._report.text
        self._report.describe(f"tracing{self._static_values(program)}")
        self._plan.check_program(program)
        traced = self._plan.program(program)
        traced.trace()
        self._report.describe(before)
        self._compiling[program] = self._compilers.submit(_compile, traced)

    def _runner(self, program: int, work_until_done: Callable[[Future[Any]], object] = lambda future: None) -> Runner:
        """Returns the runner of a program; before it waits for the compiled program, calls `work_until_done`."""
        if program not in self._runners:
            self._start_compiling(program)
            work_until_done(self._compiling[program])
        if program not in self._runners:
            self._report.describe(f"compiling{self._static_values(program)}")
            self._make_runner(program)
        self._report.set_program(self._origins[program])
        return self._runners[program]

    def _make_runner(self, program: int) -> Runner:
        """Makes the runner of a program after waiting until it is compiled."""
        compiled, seconds = self._compiling.pop(program).result()
        cache_folder = f" ({self._folder})" if self._folder else ""
        origin = "from the cache" if compiled.from_cache else f"compiled in {seconds:.1f} s"
        self._origins[program] = f"program {origin}{cache_folder}"
        self._runners[program] = Runner(compiled, self._plan.lanes)
        self._announce(program, self._plan.program(program))
        return self._runners[program]

    def _static_values(self, program: int) -> str:
        return f", {self._plan.name(program)}" if self._plan.static_axes else ""

    def _announce(self, program: int, traced: Program) -> None:
        """Logs the estimated time of the first tile if lanes play round by round and the time exceeds a minute."""
        rounds = self._plan.rounds(program)
        if rounds is None or not self._plan.plays_by_rounds(program):
            return
        lanes, platform = self._plan.tile_size, self._plan.devices[0].platform
        seconds = tile_seconds(platform, rounds, lanes, traced.lane_bytes())
        if seconds > LONG:
            LOG.warning(f"a tile of {lanes:,} lanes plays {rounds:,} rounds; this may take {seconds / 60:.0f} minutes")

    def _running(self, program: int) -> str:
        return self._plan.name(program) if self._plan.static_axes else "running"


def _compile(traced: Program) -> tuple[Compiled, float]:
    """Compiles a program. Returns the compiled program and the time in seconds."""
    start = time.perf_counter()
    return traced.compile(), time.perf_counter() - start
