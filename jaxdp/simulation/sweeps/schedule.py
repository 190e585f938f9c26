"""Runs tiles on this process's devices, as many at a time as memory and devices have room for."""

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
USED_MEMORY = 0.8  # share of the free memory
# The largest SIMD width. The remainder of a tile of another size is computed by other instructions: among 300 lanes of
# the exact estimators, 6 changed last bits with their positions in tiles of 100, 2 in tiles of 33, none in tiles of 16
# or 256 (nor any lane of a softmax and a Cholesky learner, in tiles of 4 to 256). The last lanes can still be compiled
# differently: among 420 lanes of `linear_ucb` that had grown, 21 in tiles of 16 and 2 in tiles of 256 had other last
# bits. Lanes are therefore compared before they are packed (`growth._check_places`).
VECTOR = 16


class Lanes(NamedTuple):
    """The numbering of lanes: lane = grid point * num_seeds + seed."""

    num_seeds: int
    num_lanes: int


class Gate:
    """Lets at most `limit` threads run at a time; the limit can fall."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._running = 0
        self._changed = threading.Condition()

    def enter(self) -> int:
        """Waits for a free slot. Returns the limit."""
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
            return self.limit

    def leave(self) -> None:
        """Releases the slot."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def halve(self, seen: int) -> bool:
        """Reduces the limit that a thread entered under to half, unless it has fallen since; False if it was 1."""
        with self._changed:
            if seen == 1:
                return False
            self.limit = min(self.limit, seen // 2)
            return True


def max_tiles(compiled: Compiled, in_flight: int | None = None) -> int:
    """Returns how many tiles to run at a time: as many as devices take, and as fit in their free memory.

    Args:
        compiled: the program.
        in_flight: tiles for each device; None is `tiles_in_flight`.

    Returns:
        At least one.

    Raises:
        MemoryError: if a single tile needs more than is free, with the largest tile size that does not.
    """
    desired = (in_flight or tiles_in_flight(compiled.devices)) * len(compiled.devices)
    free = [free_bytes(device) for device in compiled.devices]
    if compiled.tile_bytes == 0 or any(number is None for number in free):
        return desired
    one_pool = compiled.devices[0].platform == "cpu"
    known_free = [number for number in free if number is not None]
    usable = min(known_free) if one_pool else min(known_free) * len(known_free)
    # On a CPU the kernel would kill the process without a message.
    advice = smaller_tile(compiled.tile_size, compiled.tile_bytes, min(known_free))
    check_room(f"a tile of {compiled.tile_size} lanes", compiled.tile_bytes, min(known_free), advice)
    return int(min(desired, max(1, USED_MEMORY * usable // compiled.tile_bytes)))


def smaller_tile(tile_size: int, tile_bytes: int, free: int | None) -> str:
    """Returns advice about a tile that does not fit, as the end of a message."""
    if tile_size == 1:
        return "make the run smaller"
    lanes = None if free is None or not tile_bytes else int(USED_MEMORY * free * tile_size / tile_bytes)
    if lanes is None or lanes >= tile_size:  # memory ran out although the tile should fit
        lanes = tile_size // 2
    return f"tile_size={whole_tile(max(lanes, 1))} is the largest that should fit"


class Runner:
    """Runs tiles of one program."""

    def __init__(self, compiled: Compiled, lanes: Lanes, *, in_flight: int | None = None) -> None:
        """Determines how many tiles run at a time.

        Args:
            compiled: the program.
            lanes: the numbering of lanes.
            in_flight: tiles at a time on each device; None is as many as it takes.
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
        """Returns the seconds of the first tile, whose results are kept for later."""
        lanes = np.arange(min(self._size, self._lanes.num_lanes))
        start = time.perf_counter()
        self._first_tile = lanes, self._tile(lanes, aligned=True)
        return time.perf_counter() - start

    def chunks(self, requested: Sequence[Chunk], advance: Callable[[int], object]) -> Chunks:
        """Computes chunks, in order.

        Each tile is filled with the lanes of one chunk after the other, so that neighbouring chunks share tiles. A lane
        has the same position in the same tile for any set of requested chunks, unless all are `packed`. Tiles go on
        while the caller uses a chunk.

        Args:
            requested: chunks of this program, in the order in which they are returned.
            advance: called with the number of lanes done since the last call.

        Yields:
            The chunk, and its outputs by name, each with a leading axis of its lanes.

        Raises:
            MemoryError: if a single tile does not fit.
        """
        aligned = self._size % VECTOR != 0 or not all(chunk.packed for chunk in requested)
        coming, queued = self._tiles(requested, aligned), deque[tuple[int, Future[Arrays]]]()
        pool = ThreadPoolExecutor(self.at_a_time)

        def fill() -> None:
            while len(queued) < 2 * self.at_a_time and (lanes := next(coming, None)) is not None:
                queued.append((len(lanes), pool.submit(self._tile, lanes, aligned)))

        try:
            fill()
            tile: Arrays = {}
            used = held = 0
            for chunk in requested:
                arrays: Arrays = {}
                filled, total = 0, chunk.num_lanes
                while filled < total:
                    if used == held:
                        held, future = queued.popleft()
                        tile, used = future.result(), 0
                        fill()
                    count = min(held - used, total - filled)
                    for name, values in tile.items():
                        if name not in arrays:
                            arrays[name] = np.empty((total, *values.shape[1:]), values.dtype)
                        arrays[name][filled : filled + count] = values[used : used + count]
                    used, filled = used + count, filled + count
                    advance(count)
                yield chunk, arrays
        finally:
            pool.shutdown(cancel_futures=True)

    def _tiles(self, requested: Sequence[Chunk], aligned: bool) -> Iterator[np.ndarray]:
        """Yields the chunks' lanes, tile by tile, some not full; if `aligned`, lane n is at n modulo the tile size."""
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
        """Returns the results of at most a tile's number of lanes."""
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
            seen = self._gate.enter()
            run = self._idle.get()
            try:
                return _on_host(run(point, seed))
            except (jax.errors.JaxRuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if not self._gate.halve(seen):
                    raise MemoryError(
                        f"a tile of {self._size} lanes does not fit in memory (it needs {self._tile_bytes:,} bytes); "
                        f"{smaller_tile(self._size, self._tile_bytes, self._free)}"
                    ) from error
                warnings.warn(
                    f"memory ran out with {seen} tiles at a time; continuing with {self._gate.limit}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            finally:
                self._idle.put(run)
                self._gate.leave()


def _on_host(outputs: Mapping[str, jax.Array]) -> Arrays:
    return jax.device_get(dict(outputs))
