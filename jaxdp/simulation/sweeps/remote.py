"""Chunks on other processes or machines, through any `concurrent.futures` executor.

Workers get `build` and the grid, trace and compile by themselves, and hand back arrays: they need no common file
system. What they compile must be the same program everywhere, which is checked by its hashes.
"""

import hashlib
import math
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import jax
import numpy as np

from jaxdp.memory import free_host_bytes
from jaxdp.random.threefry import key_from_data
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.identity import differences
from jaxdp.simulation.sweeps.labels import Output
from jaxdp.simulation.sweeps.patience import Patience
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks, Runner

MOST_QUEUED = 1024  # chunks handed to the executor at a time,
FEWEST_QUEUED = 64  # and this many whatever their size, so that no worker waits
PART_OF_MEMORY = 4  # that results may take which came faster than they are written
MOST_KEPT = 4  # sweeps whose compiled programs a worker keeps


def pack(build: Callable[..., Any], plan: Plan) -> bytes:
    """What a worker needs to know of a sweep.

    Raises:
        ValueError: if `build` or a value of the grid cannot be pickled.
    """
    import cloudpickle  # here, as a sweep in this process needs none

    key = (np.asarray(jax.random.key_data(plan.key)), str(jax.random.key_impl(plan.key)))
    try:
        return cloudpickle.dumps(  # also functions of a notebook or a script, and closures
            {
                "build": build,
                "axes": plan.axes,
                "static_axes": plan.static_axes,
                "num_seeds": plan.num_seeds,
                "tile_size": plan.tile_size,
                "key": key,
                "x64": bool(jax.config.read("jax_enable_x64")),
            }
        )
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"build and the grid's values must be what cloudpickle can pickle for an executor, got {error}"
        ) from error


class Job:
    """A sweep as a worker has it."""

    def __init__(self, packed: bytes) -> None:
        """Unpacks and checks it."""
        told = pickle.loads(packed)
        self.x64 = told["x64"]
        with jax.enable_x64(self.x64):
            self.plan = Plan(
                told["build"],
                told["axes"],
                told["static_axes"],
                num_seeds=told["num_seeds"],
                key=key_from_data(*told["key"]),
                tile_size=told["tile_size"],
                devices=None,
            )
            self.identity = self.plan.identity()
        self._runners: dict[int, Runner] = {}
        self._lock = threading.Lock()

    def runner(self, program: int) -> Runner:
        """The compiled program, with one tile at a time on a CPU: executors have a worker for each core."""
        with self._lock:
            if program not in self._runners:
                compiled = self.plan.program(program).compile()
                self.plan.release(program)
                in_flight = 1 if compiled.devices[0].platform == "cpu" else None
                self._runners[program] = Runner(compiled, self.plan.lanes, in_flight=in_flight)
            return self._runners[program]


def describe(packed: bytes) -> tuple[dict[str, Any], list[str]]:
    """On a worker: the sweep's identity there, and its devices."""
    job = _job(packed)
    return job.identity, [f"{device.platform}: {device.device_kind}" for device in job.plan.devices]


def compute(packed: bytes, chunk: Chunk, identity: dict[str, Any]) -> Arrays:
    """On a worker: one chunk.

    Raises:
        RuntimeError: if this worker's program, versions or kind of device are not those of the first.
    """
    job = _job(packed)
    found = differences(job.identity, identity)
    if found:
        raise RuntimeError(f"workers must run the same program, got one where {'; '.join(found[:5])}")
    with jax.enable_x64(job.x64):
        ((_, arrays),) = job.runner(chunk.program).chunks([chunk], lambda lanes: None)
    return arrays


def remote_chunks(
    executor: Executor,
    packed: bytes,
    wanted: Sequence[Chunk],
    identity: dict[str, Any],
    outputs: Mapping[str, Output],
    patience: Patience,
) -> Chunks:
    """Has an executor compute chunks, and hands them over as they come.

    Args:
        executor: any; one that retries what a lost worker held is the better for it.
        packed: from `pack`.
        wanted: chunks.
        identity: from `describe`.
        outputs: of a lane.
        patience: how long to wait for them.

    Yields:
        The chunk, and its outputs, each with a leading axis of lanes.

    Raises:
        RuntimeError: if the executor gives a chunk up, or returns something else.
        TimeoutError: if it finishes no chunk for too long.
    """
    coming = iter(wanted)
    running: dict[Future[Arrays], Chunk] = {}
    lane_bytes = sum(math.prod(output.shape) * output.dtype.itemsize for output in outputs.values())
    largest = lane_bytes * max((chunk.stop - chunk.start for chunk in wanted), default=1)
    fitting = (free_host_bytes() or 0) // (PART_OF_MEMORY * max(largest, 1))
    most = min(max(fitting, FEWEST_QUEUED), MOST_QUEUED)

    def fill() -> None:
        while len(running) < most and (chunk := next(coming, None)) is not None:
            running[_submitted(executor, compute, packed, chunk, identity)] = chunk

    failed: Exception | None = None
    try:
        fill()
        patience.answered()
        while running:
            what = f"{len(running)} chunks" + ("" if failed is None else f", after {_reason(failed)}")
            for future in patience.wait(running, what):
                chunk = running.pop(future)
                try:
                    arrays = future.result()
                    _check_arrays(arrays, chunk, outputs)
                except Exception as error:  # the others' results are handed over before this is told
                    failed = failed or error
                    continue
                yield chunk, arrays
                patience.answered()  # what the caller did with it took its own time
            if failed is not None and not any(future.running() for future in running):
                break
            if failed is None:
                fill()
    finally:
        for future in running:
            future.cancel()
    if failed is not None:
        if isinstance(failed, ValueError | MemoryError):  # the worker is well, what it was given is not
            raise failed
        raise RuntimeError(f"the executor gave up: {_reason(failed)}") from failed


def first_description(executor: Executor, packed: bytes, patience: Patience) -> tuple[dict[str, Any], list[str]]:
    """What `describe` says on the first worker that answers.

    Raises:
        RuntimeError: if none does.
        TimeoutError: if none does for too long.
    """
    asked = _submitted(executor, describe, packed)
    try:
        patience.wait([asked], "a first worker")
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


def check_executor(executor: Any) -> None:
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


def check_code(theirs: dict[str, Any], plan: Plan) -> None:
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
    lanes = chunk.stop - chunk.start
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


_jobs: OrderedDict[str, Job] = OrderedDict()
_jobs_lock = threading.Lock()


def _job(packed: bytes) -> Job:
    digest = hashlib.sha256(packed).hexdigest()
    with _jobs_lock:
        if digest not in _jobs:
            _jobs[digest] = Job(packed)
            while len(_jobs) > MOST_KEPT:
                _jobs.popitem(last=False)
        _jobs.move_to_end(digest)
        return _jobs[digest]
