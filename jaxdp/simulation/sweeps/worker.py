"""An executor's worker: unpacks a sweep, traces and compiles it, and computes chunks.

Workers return arrays, so they need no common file system. All must compile the same program, which its hashes check.
"""

import hashlib
import pickle
import threading
from collections import OrderedDict
from typing import Any

import jax
import numpy as np

from jaxdp.random.threefry import key_from_data
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.identity import differences
from jaxdp.simulation.sweeps.compilation import keep_for
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Runner

MOST_KEPT = 4  # sweeps; a worker keeps their compiled programs


def pack(plan: Plan) -> bytes:
    """Returns a sweep as bytes, for a worker.

    Raises:
        ValueError: if `build` or a value of the grid cannot be pickled.
    """
    import cloudpickle  # here, as sweeps without an executor do not need it

    key = (np.asarray(jax.random.key_data(plan.key)), str(jax.random.key_impl(plan.key)))
    try:
        return cloudpickle.dumps(  # also functions of a notebook or a script, and closures
            {
                "build": plan.build,
                "axes": plan.axes,
                "static_axes": plan.static_axes,
                "num_seeds": plan.num_seeds,
                "tile_size": plan.asked_tile_size,
                "key": key,
                "x64": bool(jax.config.read("jax_enable_x64")),
            }
        )
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"build and the grid's values must be picklable by cloudpickle for an executor, got {error}"
        ) from error


class Job:
    """A sweep on a worker."""

    def __init__(self, packed: bytes) -> None:
        """Unpacks and checks it."""
        sweep = pickle.loads(packed)
        self.x64 = sweep["x64"]
        with jax.enable_x64(self.x64):
            self.plan = Plan(
                sweep["build"],
                sweep["axes"],
                sweep["static_axes"],
                num_seeds=sweep["num_seeds"],
                key=key_from_data(*sweep["key"]),
                tile_size=sweep["tile_size"],
                devices=None,
            )
            self.identity = self.plan.identity()
        keep_for(self.plan.devices[0].platform)
        self._runners: dict[int, Runner] = {}
        self._lock = threading.Lock()

    def runner(self, program: int) -> Runner:
        """Returns the compiled program, with one tile at a time on a CPU: executors have a worker for each core."""
        with self._lock:
            if program not in self._runners:
                compiled = self.plan.program(program).compile()
                self.plan.release(program)
                in_flight = 1 if compiled.devices[0].platform == "cpu" else None
                self._runners[program] = Runner(compiled, self.plan.lanes, in_flight=in_flight)
            return self._runners[program]


def describe(packed: bytes) -> tuple[dict[str, Any], list[str]]:
    """Returns the sweep's identity on this worker, and the worker's devices."""
    job = _job(packed)
    return job.identity, job.plan.place().devices


def compute(packed: bytes, chunk: Chunk, identity: dict[str, Any]) -> Arrays:
    """Returns one chunk's outputs by name, each with a leading axis of lanes.

    Raises:
        RuntimeError: if this worker's program, versions or kind of device differ from the first worker's.
    """
    job = _job(packed)
    differing = differences(job.identity, identity)
    if differing:
        raise RuntimeError(f"workers must run the same program, got one where {'; '.join(differing[:5])}")
    with jax.enable_x64(job.x64):
        ((_, arrays),) = job.runner(chunk.program).chunks([chunk], lambda lanes: None)
    return arrays


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
