"""Runs on an executor's worker: unpacks a sweep, compiles it and computes chunks.

Workers return arrays, so they need no shared file system. Hashes show whether all workers compile the same program.
"""

import hashlib
import pickle
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from jaxdp.numerics.jax_options import current_options, set_options
from jaxdp.random.threefry import key_from_data
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.identity import differences
from jaxdp.simulation.sweeps.compilation import keep_for
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Runner

MOST_KEPT = 4  # a worker stores the compiled programs of at most this many sweeps


def pack(plan: Plan) -> bytes:
    """Serialises a sweep for a worker. Raises a ValueError if `build` or a value cannot be pickled."""
    import cloudpickle  # here, as sweeps without an executor do not need it

    key = (np.asarray(jax.random.key_data(plan.key)), str(jax.random.key_impl(plan.key)))
    try:
        return cloudpickle.dumps(  # can also pickle closures and functions of a notebook or a script
            {
                "build": plan.build,
                "axes": plan.axes,
                "static_axes": plan.static_axes,
                "num_seeds": plan.num_seeds,
                "tile_size": plan.asked_tile_size,
                "key": key,
                "options": current_options(),
            }
        )
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"build and the grid's values must be picklable by cloudpickle for an executor, got {error}"
        ) from error


class Job:
    """A sweep on a worker."""

    def __init__(self, packed: bytes) -> None:
        """Unpacks and checks the sweep."""
        sweep = pickle.loads(packed)
        self.options = sweep["options"]
        with set_options(self.options):
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
        """Returns the runner of a program; a CPU device runs one tile at a time, as there is a worker for each core."""
        with self._lock:
            if program not in self._runners:
                compiled = self.plan.program(program).compile()
                self.plan.release(program)
                in_flight = 1 if compiled.devices[0].platform == "cpu" else None
                self._runners[program] = Runner(compiled, self.plan.lanes, in_flight=in_flight)
            return self._runners[program]


def describe(packed: bytes) -> tuple[dict[str, Any], list[str]]:
    """Returns a sweep's identity on this worker, and the worker's devices. `packed` is the result of `pack`."""
    job = _job(packed)
    return job.identity, job.plan.hardware().devices


def compute(packed: bytes, chunk: Chunk, identity: dict[str, Any]) -> Arrays:
    """Returns the outputs of one chunk keyed by name, each with a leading axis of lanes.

    `packed` is the sweep, a result of `pack`, and `identity` is the sweep's identity on the first worker.

    Raises:
        RuntimeError: if the identity on this worker differs (by programs, versions, processor or settings).
    """
    job = _job(packed)
    differing = differences(job.identity, identity)
    if differing:
        raise RuntimeError(f"workers must run the same program, got one where {'; '.join(differing[:5])}")
    with set_options(job.options):
        ((_, arrays),) = job.runner(chunk.program).chunks([chunk], lambda lanes: None)
    return arrays


_jobs: OrderedDict[str, Job] = OrderedDict()
_jobs_lock = threading.Lock()


def _job(packed: bytes) -> Job:
    digest = hashlib.sha256(packed).hexdigest()
    with _jobs_lock:
        if digest not in _jobs:
            # Dask samples the frames of threads that run tasks. A frame keeps its variables, and JAX then adds unused
            # inputs to the traced program, which changes its hash. Dask samples no other thread, so a new thread makes
            # the job.
            with ThreadPoolExecutor(1) as pool:
                _jobs[digest] = pool.submit(Job, packed).result()
            while len(_jobs) > MOST_KEPT:
                _jobs.popitem(last=False)
        _jobs.move_to_end(digest)
        return _jobs[digest]
