"""Tiles on this process's devices: as many at a time as memory and devices have room for, chunks as they are done."""

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
USED_MEMORY = 0.8  # of what is free
# Numbers that processors add at a time, at most. What is left over in a tile of another size is computed by other
# instructions: of 300 lanes of the exact estimators, 6 changed last bits with their places in tiles of 100, 2 in tiles
# of 33, none in tiles of 16 or 256 (nor any of a softmax and a Cholesky learner, in tiles of 4 to 256). The last lanes
# can be compiled otherwise all the same: of 420 lanes of `linear_ucb` that had grown, 21 in tiles of 16 and 2 in tiles
# of 256 had other last bits. So it is tried before lanes are packed (`growth._check_places`).
VECTOR = 16


class Lanes(NamedTuple):
    """Which lane is which: lane = grid point * num_seeds + seed."""

    num_seeds: int
    num_lanes: int


class Gate:
    """Lets at most `limit` threads in at a time; the limit can fall."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._running = 0
        self._changed = threading.Condition()

    def enter(self) -> int:
        """Waits for a place. Returns the limit."""
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
            return self.limit

    def leave(self) -> None:
        """Gives the place back."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def halve(self, seen: int) -> bool:
        """Halves the limit that someone entered under, unless it has fallen since. Returns False if it was 1."""
        with self._changed:
            if seen == 1:
                return False
            self.limit = min(self.limit, seen // 2)
            return True


def room(compiled: Compiled, in_flight: int | None = None) -> int:
    """How many tiles to run at a time: as many as devices take, and as their free memory holds.

    Args:
        compiled: the program.
        in_flight: tiles for each device; None is `tiles_in_flight`.

    Returns:
        At least one.

    Raises:
        MemoryError: if a single tile needs more than is free, with the largest tile size that does not.
    """
    wanted = (in_flight or tiles_in_flight(compiled.devices)) * len(compiled.devices)
    free = [free_bytes(device) for device in compiled.devices]
    if compiled.tile_bytes == 0 or any(number is None for number in free):
        return wanted
    one_pool = compiled.devices[0].platform == "cpu"
    known = [number for number in free if number is not None]
    held = min(known) if one_pool else min(known) * len(known)
    # On a CPU the kernel would end the process without a word.
    advice = smaller_tile(compiled.tile_size, compiled.tile_bytes, min(known))
    check_room(f"a tile of {compiled.tile_size} lanes", compiled.tile_bytes, min(known), advice)
    return int(min(wanted, max(1, USED_MEMORY * held // compiled.tile_bytes)))


def smaller_tile(tile_size: int, tile_bytes: int, free: int | None) -> str:
    """Returns what to do about a tile that does not fit, as words that end a message."""
    if tile_size == 1:
        return "make the run smaller"
    lanes = None if free is None or not tile_bytes else int(USED_MEMORY * free * tile_size / tile_bytes)
    if lanes is None or lanes >= tile_size:  # it ran out although it should fit
        lanes = tile_size // 2
    return f"tile_size={whole_tile(max(lanes, 1))} is the largest that should"


class Runner:
    """Runs tiles of one program."""

    def __init__(self, compiled: Compiled, lanes: Lanes, *, in_flight: int | None = None) -> None:
        """Makes room.

        Args:
            compiled: the program.
            lanes: which lane is which.
            in_flight: tiles at a time on each device; None is as many as it takes.
        """
        self._lanes, self._size, self._tile_bytes = lanes, compiled.tile_size, compiled.tile_bytes
        self._gate = Gate(room(compiled, in_flight))
        self._free = free_bytes(compiled.devices[0])
        self._idle: queue.SimpleQueue[Callable[..., Any]] = queue.SimpleQueue()
        each = in_flight or tiles_in_flight(compiled.devices)
        for tile in [*compiled.tiles] * each:
            self._idle.put(tile)
        self._known: tuple[np.ndarray, Arrays] | None = None

    @property
    def at_a_time(self) -> int:
        """Tiles that run at a time."""
        return self._gate.limit

    def seconds_of_a_tile(self) -> float:
        """Runs the first tile, and keeps its results for when they are wanted."""
        lanes = np.arange(min(self._size, self._lanes.num_lanes))
        start = time.perf_counter()
        self._known = lanes, self._tile(lanes, aligned=True)
        return time.perf_counter() - start

    def chunks(self, wanted: Sequence[Chunk], advance: Callable[[int], object]) -> Chunks:
        """Computes chunks, in their order.

        Each tile is filled with lanes of one chunk after the other, so that chunks next to one another share one. A
        lane has the same place in the same tile whichever chunks are wanted, unless all are `packed`. Tiles go on while
        the caller does something with a chunk.

        Args:
            wanted: of this program, in the order in which they are wanted.
            advance: called with the number of lanes done since the last call.

        Yields:
            The chunk, and its outputs by name, each with a leading axis of its lanes.

        Raises:
            MemoryError: if a single tile does not fit.
        """
        aligned = self._size % VECTOR != 0 or not all(chunk.packed for chunk in wanted)
        coming, queued = self._tiles(wanted, aligned), deque[tuple[int, Future[Arrays]]]()
        pool = ThreadPoolExecutor(self.at_a_time)

        def fill() -> None:
            while len(queued) < 2 * self.at_a_time and (lanes := next(coming, None)) is not None:
                queued.append((len(lanes), pool.submit(self._tile, lanes, aligned)))

        try:
            fill()
            tile: Arrays = {}
            used = held = 0
            for chunk in wanted:
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

    def _tiles(self, wanted: Sequence[Chunk], aligned: bool) -> Iterator[np.ndarray]:
        """The chunks' lanes in tiles, of which some may not be full; those of aligned ones begin at multiples."""
        pieces: list[np.ndarray] = []
        room_left, last = self._size, -1
        for start, stop in (run for chunk in wanted for run in chunk.runs):
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
        """The results of lanes, of which there are at most as many as a tile has."""
        known = self._known
        if known is not None and np.array_equal(known[0][: len(lanes)], lanes):
            self._known = None
            return known[1]
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
                    f"memory ran out with {seen} tiles at a time; going on with {self._gate.limit}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            finally:
                self._idle.put(run)
                self._gate.leave()


def _on_host(outputs: Mapping[str, jax.Array]) -> Arrays:
    return jax.device_get(dict(outputs))
