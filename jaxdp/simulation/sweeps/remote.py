"""Computes chunks in other processes or on other machines, through any `concurrent.futures` executor."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

from jaxdp.memory import free_host_bytes
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.identity import differences
from jaxdp.simulation.sweeps.labels import Output
from jaxdp.simulation.sweeps.patience import Patience
from jaxdp.simulation.sweeps.plan import Hardware, Plan
from jaxdp.simulation.sweeps.progress import Reporter
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks
from jaxdp.simulation.sweeps.source import fitting_lanes, whole_tiles
from jaxdp.simulation.sweeps.worker import compute, describe, pack

MOST_QUEUED = 1024  # maximum number of chunks that are submitted to the executor at a time
FEWEST_QUEUED = 64  # this many chunks may be submitted at a time, however large they are, so that no worker waits
PART_OF_MEMORY = 4  # results that wait to be written may take 1 / 4 of the free memory
PART_FOR_A_CHUNK = 256  # a chunk of several tiles takes at most 1 / 256 of the free memory, as many may arrive at once
CHUNKS_OF_A_PROGRAM = 64  # number of chunks of a program with very many tiles
TILES_OF_A_CHUNK = 6  # if there are enough tiles; a chunk of a single tile takes nearly twice as long for each lane
FEWEST_CHUNKS = 16  # minimum number of chunks of a program with at least this number of tiles


class RemoteSource:
    """A `Source` on an executor's workers."""

    def __init__(self, plan: Plan, executor: Executor, timeout: float | None, report: Reporter) -> None:
        """Gets the identity and the devices of the first worker that responds.

        If the tile size was not requested, the plan gets the worker's default.

        Args:
            plan: plan of the sweep.
            executor: an executor, preferably one that retries the tasks of a lost worker.
            timeout: the maximum time in seconds until the first worker responds, and between two finished chunks; None
                if there is no limit.
            report: gets steps and the number of lanes that are done, for bars and callbacks.

        Raises:
            ValueError: if `executor` is not an executor, or starts processes by fork or for a limited number of tasks;
                if the sweep cannot be pickled, or its checks fail on the worker.
            RuntimeError: if the executor fails or changes results, or the first worker has other code than this
                process.
            TimeoutError: if no worker responds in time.
        """
        _check_executor(executor)
        self._plan, self._executor, self._report = plan, executor, report
        self._patience = Patience(timeout)
        self._packed = pack(plan)
        self.identity, devices = self._first_description(self._packed)
        if plan.asked_tile_size is None:  # the worker's kind of device decides
            plan.set_tile_size(self.identity["tile_size"])
        self.hardware = Hardware(devices, self.identity["processor"], self.identity["settings"])
        _check_code(self.identity, plan)

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """Returns the identity that the sweep `plan` would have on a worker's hardware."""
        return self._first_description(pack(plan))[0]

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes one chunk on a worker. Returns its outputs keyed by name, with a leading axis of lanes."""
        ((_, arrays),) = self._arriving_chunks([chunk])
        return arrays

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """Returns a small number of lanes for a chunk, so that workers share chunks evenly. Ignores `sharers`."""
        del sharers
        num_lanes = self._plan.lanes.num_lanes
        several_tiles = min(TILES_OF_A_CHUNK * self._plan.tile_size, num_lanes // FEWEST_CHUNKS)
        lanes = max(num_lanes // CHUNKS_OF_A_PROGRAM, several_tiles)
        return whole_tiles(self._plan, min(fitting_lanes(self._plan, PART_FOR_A_CHUNK), lanes))

    def chunks(self, requested: Sequence[Chunk]) -> Chunks:
        """Computes chunks, and yields each with its outputs keyed by name, in the order in which workers finish.

        Raises:
            ValueError: if a worker raises it.
            MemoryError: if a worker raises it.
            RuntimeError: if the executor fails to compute a chunk for any other reason, or changes its results.
            TimeoutError: if the executor finishes no chunk within the timeout.
        """
        computed, report = self._arriving_chunks(requested), self._report
        report.describe("compiling")  # until the first chunk; workers do not report when they start to run
        first = next(computed, None)
        if first is not None:
            with report.running("running"), contextlib.closing(computed):
                report.advance(first[0].num_lanes, counted=False)
                yield first
                for chunk, arrays in computed:
                    report.advance(chunk.num_lanes)
                    yield chunk, arrays

    def _arriving_chunks(self, requested: Sequence[Chunk]) -> Chunks:
        """Yields chunks as they arrive. Memory limits the number of submitted chunks, but not below `FEWEST_QUEUED`."""
        remaining = iter(requested)
        running: dict[Future[Arrays], Chunk] = {}
        largest = self._plan.lane_bytes * max((chunk.num_lanes for chunk in requested), default=1)
        fitting = (free_host_bytes() or 0) // (PART_OF_MEMORY * max(largest, 1))
        limit = min(max(fitting, FEWEST_QUEUED), MOST_QUEUED)
        failed: Exception | None = None
        try:
            self._fill(running, remaining, limit)
            self._patience.restart()
            while running:
                what = f"{len(running)} chunks" + ("" if failed is None else f", after {_reason(failed)}")
                for future in self._patience.wait(running, what):
                    chunk = running.pop(future)
                    try:
                        arrays = future.result()
                        _check_arrays(arrays, chunk, self._plan.outputs)
                    except Exception as error:  # raised after the results of other chunks are returned
                        failed = failed or error
                        continue
                    yield chunk, arrays
                    self._patience.restart()  # the time that the caller takes does not count
                if failed is not None and not any(future.running() for future in running):
                    break
                if failed is None:
                    self._fill(running, remaining, limit)
        finally:
            for future in running:
                future.cancel()
        if failed is not None:
            if isinstance(failed, ValueError | MemoryError):  # the fault is in the input, not in the worker
                raise failed
            raise RuntimeError(f"the executor gave up: {_reason(failed)}") from failed

    def _fill(self, running: dict[Future[Arrays], Chunk], remaining: Iterator[Chunk], limit: int) -> None:
        while len(running) < limit and (chunk := next(remaining, None)) is not None:
            running[_submit(self._executor, compute, self._packed, chunk, self.identity)] = chunk

    def _first_description(self, packed: bytes) -> tuple[dict[str, Any], list[str]]:
        """Returns the identity of the sweep `packed` on the first worker that responds, and this worker's devices."""
        future = _submit(self._executor, describe, packed)
        self._patience.restart()
        try:
            self._patience.wait([future], "a first worker")
        finally:
            future.cancel()
        try:
            description = future.result()
        except ValueError:
            raise
        except Exception as error:
            raise RuntimeError(f"the executor gave up: {_reason(error)}") from error
        if not (isinstance(description, tuple | list) and len(description) == 2 and isinstance(description[0], dict)):
            raise RuntimeError(f"executor must return workers' results unchanged, got {type(description).__name__}")
        return description[0], list(description[1])


def _check_executor(executor: Any) -> None:
    """Raises a ValueError if `executor` is not an executor, or if its processes are forks or end after some tasks."""
    if not hasattr(executor, "submit"):
        raise ValueError(f"executor must have submit, as executors of concurrent.futures have, got {executor!r}")
    tasks = getattr(executor, "_max_tasks_per_child", None)
    if tasks is not None:  # CPython's gh-115634: the pool takes ended processes for idle processes
        raise ValueError(
            f"executor must not have max_tasks_per_child, got {tasks}: Python's pools wait forever when all processes "
            "have done their tasks, and every new process would compile again"
        )
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise ValueError(
            "executor must start new processes, got start method fork: forks of a process that used JAX hang; use "
            'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
        )


def _check_code(worker_record: dict[str, Any], plan: Plan) -> None:
    """Raises a RuntimeError if workers have other code.

    Compares claims and, if hardware, versions and `x64` are the same, programs and parameters.
    """
    local_record = plan.identity()
    same_hardware = all(
        local_record[name] == worker_record[name] for name in ("device", "processor", "versions", "x64")
    )
    programs, worker_programs = (
        {
            program: {
                part: hashes[part]
                for part in (("program", "params", "guarantees") if same_hardware else ("guarantees",))
            }
            for program, hashes in record["programs"].items()
        }
        for record in (local_record, worker_record)
    )
    differing = differences(programs, worker_programs, "programs")
    if differing:
        raise RuntimeError(
            f"workers must have the code of this process; restart workers where {'; '.join(differing[:5])}"
        )


def _check_arrays(arrays: Any, chunk: Chunk, outputs: Mapping[str, Output]) -> None:
    """Raises a RuntimeError if names, dtypes or shapes of a worker's results are wrong."""
    lanes = chunk.num_lanes
    expected = {name: f"{output.dtype} {(lanes, *output.shape)}" for name, output in outputs.items()}
    received = type(arrays).__name__
    if isinstance(arrays, Mapping):
        received = {
            name: f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
            for name, values in arrays.items()
        }
    if received != expected:
        raise RuntimeError(f"executor must return workers' results unchanged, arrays {expected}, got {received}")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error) or 'tasks were cancelled before they started, as by a shutdown'}"


def _submit(executor: Executor, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    try:
        return executor.submit(function, *arguments)
    except RuntimeError as error:  # the executor is broken or was shut down
        future: Future[Any] = Future()
        future.set_exception(error)
        return future
