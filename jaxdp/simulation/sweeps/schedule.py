"""Tiles on this process's devices: as many at a time as memory and devices have room for, chunks as they are done."""

import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.memory import free_bytes, is_out_of_memory
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.lanes import Compiled, tiles_in_flight

Arrays = dict[str, np.ndarray]
Chunks = Generator[tuple[Chunk, Arrays], None, None]
USED_MEMORY = 0.8  # of what is free


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
    """
    wanted = (in_flight or tiles_in_flight(compiled.devices)) * len(compiled.devices)
    free = [free_bytes(device) for device in compiled.devices]
    if compiled.tile_bytes == 0 or any(number is None for number in free):
        return wanted
    one_pool = compiled.devices[0].platform == "cpu"
    known = [number for number in free if number is not None]
    held = min(known) if one_pool else min(known) * len(known)
    return int(min(wanted, max(1, USED_MEMORY * held // compiled.tile_bytes)))


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
        self._idle: queue.SimpleQueue[Callable[..., Any]] = queue.SimpleQueue()
        each = in_flight or tiles_in_flight(compiled.devices)
        for tile in [*compiled.tiles] * each:
            self._idle.put(tile)
        self._known: dict[int, Arrays] = {}

    @property
    def at_a_time(self) -> int:
        """Tiles that run at a time."""
        return self._gate.limit

    def seconds_of_a_tile(self) -> float:
        """Runs the first tile, and keeps its results for when they are wanted."""
        start = time.perf_counter()
        self._known[0] = self._tile(0)
        return time.perf_counter() - start

    def chunks(self, wanted: Sequence[Chunk], advance: Callable[[int], object]) -> Chunks:
        """Computes chunks, in their order.

        A tile that two of them share is computed once. Tiles go on while the caller does something with a chunk.

        Args:
            wanted: of this program, in the order of their lanes.
            advance: called with the number of lanes done since the last call.

        Yields:
            The chunk, and its outputs by name, each with a leading axis of its lanes.

        Raises:
            MemoryError: if a single tile does not fit.
        """
        tiles = sorted({tile for chunk in wanted for tile in self._tiles(chunk)})
        coming, queued = iter(tiles), deque[tuple[int, Future[Arrays]]]()
        pool = ThreadPoolExecutor(self.at_a_time)

        def fill() -> None:
            while len(queued) < 2 * self.at_a_time and (tile := next(coming, None)) is not None:
                queued.append((tile, pool.submit(self._tile, tile)))

        try:
            fill()
            last: tuple[int, Arrays] = (-1, {})
            for chunk in wanted:
                arrays: Arrays = {}
                for tile in self._tiles(chunk):
                    if tile != last[0]:
                        index, future = queued.popleft()
                        last = (index, future.result())
                        fill()
                    first = tile * self._size
                    start, stop = max(first, chunk.start), min(first + self._size, chunk.stop)
                    for name, values in last[1].items():
                        if name not in arrays:
                            arrays[name] = np.empty((chunk.stop - chunk.start, *values.shape[1:]), values.dtype)
                        arrays[name][start - chunk.start : stop - chunk.start] = values[start - first : stop - first]
                    advance(stop - start)
                yield chunk, arrays
        finally:
            pool.shutdown(cancel_futures=True)

    def _tiles(self, chunk: Chunk) -> range:
        return range(chunk.start // self._size, -(-chunk.stop // self._size))

    def _tile(self, tile: int) -> Arrays:
        if tile in self._known:
            return self._known.pop(tile)
        first = tile * self._size
        lane = np.minimum(np.arange(first, first + self._size), self._lanes.num_lanes - 1)  # the last tile is padded
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
                        "use a smaller tile_size"
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
