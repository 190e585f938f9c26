"""Chunks computed by other processes or machines, through any `concurrent.futures` executor."""

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
from jaxdp.simulation.sweeps.plan import Place, Plan
from jaxdp.simulation.sweeps.progress import Reporter
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks
from jaxdp.simulation.sweeps.source import fitting_lanes, whole_tiles
from jaxdp.simulation.sweeps.worker import compute, describe, pack

MOST_QUEUED = 1024  # chunks handed to the executor at a time,
FEWEST_QUEUED = 64  # and this many whatever their size, so that no worker waits
PART_OF_MEMORY = 4  # that results may take which came faster than they are written
PART_FOR_A_CHUNK = 256  # of memory, as many chunks come at a time
CHUNKS_OF_A_PROGRAM = 64


class RemoteSource:
    """An executor's workers, as a `Source`."""

    def __init__(self, plan: Plan, executor: Executor, timeout: float | None, report: Reporter) -> None:
        """Asks the first worker that answers for its identity and devices.

        Args:
            plan: of the sweep.
            executor: any; one that retries what a lost worker held is the better for it.
            timeout: seconds in which the executor must finish something; None is any time.
            report: gets what is being done, for bars and callbacks.

        Raises:
            ValueError: if the executor or what it would be given is none.
            RuntimeError: if no worker answers, or the first has other code than this process.
            TimeoutError: if none answers in time.
        """
        _check_executor(executor)
        self._plan, self._executor, self._report = plan, executor, report
        self._patience = Patience(timeout)
        self._packed = pack(plan)
        self.identity, devices = self._first_description(self._packed)
        if plan.asked_tile_size is None:  # the worker's kind of device decides
            plan.set_tile_size(self.identity["tile_size"])
        self.place = Place(devices, self.identity["processor"], self.identity["settings"])
        _check_code(self.identity, plan)

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """As `Source`, as a worker finds it."""
        return self._first_description(pack(plan))[0]

    def sample(self, chunk: Chunk) -> Arrays:
        """As `Source`, by a worker."""
        ((_, arrays),) = self._coming([chunk])
        return arrays

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """As `Source`; there are enough chunks to share them evenly among workers."""
        del sharers
        lanes = min(fitting_lanes(self._plan, PART_FOR_A_CHUNK), self._plan.lanes.num_lanes // CHUNKS_OF_A_PROGRAM)
        return whole_tiles(self._plan, lanes)

    def chunks(self, wanted: Sequence[Chunk]) -> Chunks:
        """As `Source`, in the order in which workers finish.

        Raises:
            RuntimeError: if the executor gives a chunk up, or returns something else.
            TimeoutError: if it finishes no chunk for too long.
        """
        found, report = self._coming(wanted), self._report
        report.describe("compiling")  # until the first chunk comes, which ran in seconds that nothing tells here
        first = next(found, None)
        if first is not None:
            with report.running("running"), contextlib.closing(found):
                report.advance(first[0].num_lanes, counted=False)
                yield first
                for chunk, arrays in found:
                    report.advance(chunk.num_lanes)
                    yield chunk, arrays

    def _coming(self, wanted: Sequence[Chunk]) -> Chunks:
        """Chunks as they come, with as many handed to the executor as memory has room for."""
        coming = iter(wanted)
        running: dict[Future[Arrays], Chunk] = {}
        largest = self._plan.lane_bytes * max((chunk.num_lanes for chunk in wanted), default=1)
        fitting = (free_host_bytes() or 0) // (PART_OF_MEMORY * max(largest, 1))
        most = min(max(fitting, FEWEST_QUEUED), MOST_QUEUED)
        failed: Exception | None = None
        try:
            self._fill(running, coming, most)
            self._patience.answered()
            while running:
                what = f"{len(running)} chunks" + ("" if failed is None else f", after {_reason(failed)}")
                for future in self._patience.wait(running, what):
                    chunk = running.pop(future)
                    try:
                        arrays = future.result()
                        _check_arrays(arrays, chunk, self._plan.outputs)
                    except Exception as error:  # the others' results are handed over before this is told
                        failed = failed or error
                        continue
                    yield chunk, arrays
                    self._patience.answered()  # what the caller did with it took its own time
                if failed is not None and not any(future.running() for future in running):
                    break
                if failed is None:
                    self._fill(running, coming, most)
        finally:
            for future in running:
                future.cancel()
        if failed is not None:
            if isinstance(failed, ValueError | MemoryError):  # the worker is well, what it was given is not
                raise failed
            raise RuntimeError(f"the executor gave up: {_reason(failed)}") from failed

    def _fill(self, running: dict[Future[Arrays], Chunk], coming: Iterator[Chunk], most: int) -> None:
        while len(running) < most and (chunk := next(coming, None)) is not None:
            running[_submitted(self._executor, compute, self._packed, chunk, self.identity)] = chunk

    def _first_description(self, packed: bytes) -> tuple[dict[str, Any], list[str]]:
        """What `describe` says of a sweep on the first worker that answers."""
        asked = _submitted(self._executor, describe, packed)
        try:
            self._patience.wait([asked], "a first worker")
        finally:
            asked.cancel()
        try:
            found = asked.result()
        except ValueError:
            raise
        except Exception as error:
            raise RuntimeError(f"the executor gave up: {_reason(error)}") from error
        if not (isinstance(found, tuple | list) and len(found) == 2 and isinstance(found[0], dict)):
            raise RuntimeError(f"the executor must hand back what workers return, got {type(found).__name__}")
        return found[0], list(found[1])


def _check_executor(executor: Any) -> None:
    """Checks that it is an executor, and that its processes are no forks.

    Raises:
        ValueError: if not.
    """
    if not hasattr(executor, "submit"):
        raise ValueError(f"executor must have submit, as those of concurrent.futures, got {executor!r}")
    tasks = getattr(executor, "_max_tasks_per_child", None)
    if tasks is not None:  # it takes the ended processes for idle ones (CPython's gh-115634), with no jaxdp at all
        raise ValueError(
            "executor must be without max_tasks_per_child, since Python's pools wait for ever once all processes have "
            f"done their tasks, and every new process would compile again, got max_tasks_per_child={tasks}"
        )
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise ValueError(
            "executor must start new processes, since forks of one that has used JAX hang, got start method fork; use "
            'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
        )


def _check_code(theirs: dict[str, Any], plan: Plan) -> None:
    """Checks that workers have the code that this process has, where the two can be compared.

    Raises:
        RuntimeError: if not.
    """
    mine = plan.identity()
    alike = all(mine[name] == theirs[name] for name in ("device", "processor", "versions", "x64"))
    programs, others = (
        {
            program: {
                part: hashes[part] for part in (("program", "params", "guarantees") if alike else ("guarantees",))
            }
            for program, hashes in record["programs"].items()
        }
        for record in (mine, theirs)
    )
    found = differences(programs, others, "programs")
    if found:
        raise RuntimeError(f"workers must have the code of this process; restart those where {'; '.join(found[:5])}")


def _check_arrays(arrays: Any, chunk: Chunk, outputs: Mapping[str, Output]) -> None:
    """Checks that a worker's results came over as they were.

    Raises:
        RuntimeError: if not.
    """
    lanes = chunk.num_lanes
    wanted = {name: f"{output.dtype} {(lanes, *output.shape)}" for name, output in outputs.items()}
    found = type(arrays).__name__
    if isinstance(arrays, Mapping):
        found = {
            name: f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
            for name, values in arrays.items()
        }
    if found != wanted:
        raise RuntimeError(f"it must hand back what workers return, arrays {wanted}, got {found}")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error) or 'what it had not begun was cancelled, as when it is shut down'}"


def _submitted(executor: Executor, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    try:
        return executor.submit(function, *arguments)
    except RuntimeError as error:  # it broke, or was shut down
        future: Future[Any] = Future()
        future.set_exception(error)
        return future
