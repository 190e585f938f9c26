"""Runs tiles on this process's devices, several at a time if memory allows."""

import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.memory import check_room, free_bytes, is_out_of_memory
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.lanes import Compiled, tiles_in_flight
from jaxdp.simulation.sweeps.tiles import whole_tile

Arrays = dict[str, np.ndarray]
Chunks = Generator[tuple[Chunk, Arrays], None, None]
USED_MEMORY = 0.8  # fraction of the free memory that tiles may use
# The maximum SIMD width, in 32-bit numbers. If it does not divide a tile's size, other instructions compute the
# remaining lanes. In a test with 300 lanes of the exact estimators, the positions in tiles changed the last bits of 6
# lanes in tiles of 100, of 2 lanes in tiles of 33, and of no lane in tiles of 16 or 256. No lane of a softmax learner
# and a Cholesky learner depended on its position in tiles of 4 to 256. But even if a tile's size is a multiple of 16,
# XLA can compile the last lanes differently: among 420 lanes of `linear_ucb` that changed their positions, 21 in tiles
# of 16 and 2 in tiles of 256 had other last bits. `growth._check_positions` therefore compares lanes before a store
# grows and packs lanes.
VECTOR = 16


class Lanes(NamedTuple):
    """The numbering of lanes, by which lane = grid point * num_seeds + seed."""

    num_seeds: int
    num_lanes: int


class Gate:
    """A gate that lets at most `limit` threads run at the same time. The limit can be reduced."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._running = 0
        self._changed = threading.Condition()

    def enter(self) -> int:
        """Waits for a free slot and takes it. Returns the limit."""
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
            return self.limit

    def leave(self) -> None:
        """Releases the slot."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def halve(self, limit_at_entry: int) -> bool:
        """Lowers the limit to at most half of `limit_at_entry`, a result of `enter`.

        Returns False, and keeps the limit, if `limit_at_entry` is 1.
        """
        with self._changed:
            if limit_at_entry == 1:
                return False
            self.limit = min(self.limit, limit_at_entry // 2)
            return True


def max_tiles(compiled: Compiled, in_flight: int | None = None) -> int:
    """Returns the number of tiles to run at a time, at least one, limited by the devices and by their free memory.

    `in_flight` is the number of tiles for each device; None means `tiles_in_flight`. If a single tile does not fit,
    raises a MemoryError with the advice of `smaller_tile`.
    """
    desired = (in_flight or tiles_in_flight(compiled.devices)) * len(compiled.devices)
    free = [free_bytes(device) for device in compiled.devices]
    if compiled.tile_bytes == 0 or any(number is None for number in free):
        return desired
    one_pool = compiled.devices[0].platform == "cpu"
    known_free = [number for number in free if number is not None]
    usable = min(known_free) if one_pool else min(known_free) * len(known_free)
    # If a tile did not fit on a CPU, the operating system would kill the process without a message.
    advice = smaller_tile(compiled.tile_size, compiled.tile_bytes, min(known_free))
    check_room(f"a tile of {compiled.tile_size} lanes", compiled.tile_bytes, min(known_free), advice)
    return int(min(desired, max(1, USED_MEMORY * usable // compiled.tile_bytes)))


def smaller_tile(tile_size: int, tile_bytes: int, free: int | None) -> str:
    """Returns advice for an error message about a tile that does not fit in `free` bytes: a smaller tile size.

    `tile_bytes` is the memory of a tile of `tile_size` lanes. `free` is None if the free memory is unknown.
    """
    if tile_size == 1:
        return "make the run smaller"
    lanes = None if free is None or not tile_bytes else int(USED_MEMORY * free * tile_size / tile_bytes)
    if lanes is None or lanes >= tile_size:  # memory ran out although the tile should have fitted
        lanes = tile_size // 2
    if lanes == 0:  # one lane does not fit either
        return "make the run smaller"
    return f"tile_size={whole_tile(lanes)} is the largest that should fit"


class Started(NamedTuple):
    """Tiles of a runner: lanes of later tiles; submitted tiles, each with its number of lanes; their threads.

    `aligned` is the argument of `Runner._tile` for these tiles.
    """

    lanes_of_tiles: Iterator[np.ndarray]
    tiles: deque[tuple[int, Future[Arrays]]]
    pool: ThreadPoolExecutor
    aligned: bool

    @property
    def running(self) -> list[Future[Arrays]]:
        """The submitted tiles that are not done."""
        return [tile for _, tile in self.tiles if not tile.done()]

    def close(self) -> None:
        """Drops the tiles that wait, and waits until the running tiles are done."""
        self.pool.shutdown(cancel_futures=True)


class Runner:
    """A runner for the tiles of one program."""

    def __init__(self, compiled: Compiled, lanes: Lanes, *, in_flight: int | None = None) -> None:
        """Sets the number of tiles that run at a time: `in_flight` on each device, or fewer if memory is short.

        If `in_flight` is None, the default for the kind of device is used.
        """
        self._lanes, self._size, self._tile_bytes = lanes, compiled.tile_size, compiled.tile_bytes
        self._gate = Gate(max_tiles(compiled, in_flight))
        self._free = free_bytes(compiled.devices[0])
        self._idle: queue.SimpleQueue[Callable[..., Any]] = queue.SimpleQueue()
        per_device = in_flight or tiles_in_flight(compiled.devices)
        for tile in [*compiled.tiles] * per_device:
            self._idle.put(tile)
        self._first_tile: tuple[np.ndarray, Arrays] | None = None

    @property
    def at_a_time(self) -> int:
        """The number of tiles that run at a time."""
        return self._gate.limit

    def seconds_of_a_tile(self) -> float:
        """Runs the first tile and returns its time in seconds. The results are kept for later use."""
        lanes = np.arange(min(self._size, self._lanes.num_lanes))
        start = time.perf_counter()
        self._first_tile = lanes, self._tile(lanes, aligned=True)
        return time.perf_counter() - start

    def start(self, requested: Sequence[Chunk]) -> Started:
        """Starts the first tiles of `requested`, for a later call of `chunks`."""
        aligned = self._size % VECTOR != 0 or not all(chunk.packed for chunk in requested)
        started = Started(self._tiles(requested, aligned), deque(), ThreadPoolExecutor(self.at_a_time), aligned)
        self._fill(started)
        return started

    def chunks(
        self,
        requested: Sequence[Chunk],
        advance: Callable[[int], object],
        work_until_done: Callable[[Future[Arrays]], object] = lambda tile: None,
        started: Started | None = None,
    ) -> Chunks:
        """Yields each chunk with its outputs, a dict of arrays with a leading axis of the chunk's lanes.

        Tiles are filled with the lanes of all requested chunks in order, so neighbouring chunks share tiles. Unless all
        chunks are `packed`, a lane has the same position in the same tile for any set of requested chunks. Tiles run
        while the caller uses a chunk.

        Args:
            requested: chunks of this program, in the order in which they are returned.
            advance: called with the number of lanes done since the last call.
            work_until_done: called with the next tile before the runner waits for it; does other work.
            started: the result of `start(requested)`; None if the tiles were not started.

        Raises:
            MemoryError: if a single tile does not fit.
        """
        started = started or self.start(requested)
        try:
            tile: Arrays = {}
            used = num_in_tile = 0
            for chunk in requested:
                arrays: Arrays = {}
                filled, total = 0, chunk.num_lanes
                while filled < total:
                    if used == num_in_tile:
                        num_in_tile, future = started.tiles[0]
                        work_until_done(future)
                        tile, used = future.result(), 0
                        started.tiles.popleft()
                        self._fill(started)
                    count = min(num_in_tile - used, total - filled)
                    for name, values in tile.items():
                        if name not in arrays:
                            arrays[name] = np.empty((total, *values.shape[1:]), values.dtype)
                        arrays[name][filled : filled + count] = values[used : used + count]
                    used, filled = used + count, filled + count
                    advance(count)
                yield chunk, arrays
        finally:
            started.close()

    def _fill(self, started: Started) -> None:
        while len(started.tiles) < 2 * self.at_a_time and (lanes := next(started.lanes_of_tiles, None)) is not None:
            started.tiles.append((len(lanes), started.pool.submit(self._tile, lanes, started.aligned)))

    def _tiles(self, requested: Sequence[Chunk], aligned: bool) -> Iterator[np.ndarray]:
        """Yields the lanes of each tile, which may be incomplete.

        If `aligned`, all lanes of a tile have consecutive numbers, and `_tile` runs lane n at n modulo the tile size.
        """
        pieces: list[np.ndarray] = []
        room_left, last = self._size, -1
        for start, stop in (run for chunk in requested for run in chunk.runs):
            if aligned and start != last:
                if pieces:
                    yield np.concatenate(pieces)
                pieces, room_left = [], self._size - start % self._size
            while start < stop:
                count = min(room_left, stop - start)
                pieces.append(np.arange(start, start + count))
                start, room_left = start + count, room_left - count
                if room_left == 0:
                    yield np.concatenate(pieces)
                    pieces, room_left = [], self._size
            last = stop
        if pieces:
            yield np.concatenate(pieces)

    def _tile(self, lanes: np.ndarray, aligned: bool) -> Arrays:
        """Returns the outputs of `lanes`, the lanes of one tile.

        If `aligned`, lane n runs at position n modulo the tile size; otherwise the lanes start at position 0.
        """
        first_tile = self._first_tile
        if first_tile is not None and np.array_equal(first_tile[0][: len(lanes)], lanes):
            self._first_tile = None
            return first_tile[1]
        skipped = int(lanes[0]) % self._size if aligned else 0
        filled = np.pad(lanes, (skipped, self._size - skipped - len(lanes)), "edge")
        values = self._run(filled)
        return {name: values[name][skipped : skipped + len(lanes)] for name in values}

    def _run(self, lane: np.ndarray) -> Arrays:
        point, seed = (index.astype(np.uint32) for index in np.divmod(lane, self._lanes.num_seeds))
        while True:
            limit_at_entry = self._gate.enter()
            run = self._idle.get()
            try:
                return _on_host(run(point, seed))
            except (jax.errors.JaxRuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if not self._gate.halve(limit_at_entry):
                    raise MemoryError(
                        f"a tile of {self._size} lanes does not fit in memory (it needs {self._tile_bytes:,} bytes); "
                        f"{smaller_tile(self._size, self._tile_bytes, self._free)}"
                    ) from error
                warnings.warn(
                    f"memory ran out with {limit_at_entry} tiles at once; continuing with {self._gate.limit}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            finally:
                self._idle.put(run)
                self._gate.leave()


def _on_host(outputs: Mapping[str, jax.Array]) -> Arrays:
    return jax.device_get(dict(outputs))
