"""Audits registered claims in several processes at the same time."""

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import jax

from jaxdp import registry
from jaxdp.audit import ScoreboardRow, scoreboard
from jaxdp.studies.command import root_key
from jaxdp.studies.garbage import collect_garbage_rarely

MIN_CLAIMS = 8  # minimum number of claims that justifies a second process, which takes seconds to start
MAX_DEFAULT_JOBS = 2  # maximum default number of processes, because each process may need several gigabytes
CLAIMS_PER_CACHE = 16  # number of claims after which a process drops compiled programs: JAX slows down with many
# Programs that run for a long time have their own options; these flags are for single operations.
XLA_FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
_audit_counter = itertools.count(1)
# JAX settings that workers copy from this process.
SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_enable_x64",
    "jax_num_cpu_devices",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_platforms",
)


class Task(NamedTuple):
    """One claim to audit.

    Attributes:
        name: the entry's name in the registry.
        seed: seed of the root key.
        confidence: confidence of the row's lower bound.
        options: further options of `scoreboard`.
    """

    name: str
    seed: int
    confidence: float
    options: Mapping[str, Any]


def usual_jobs(claims: int, cores: int, backend: str) -> int:
    """Returns the default number of processes for `claims` audits on `cores` cores.

    The default is 1 if there are fewer than `MIN_CLAIMS` claims, or on an accelerator, because processes cannot share
    an accelerator. Otherwise it is `cores`, but at most `MAX_DEFAULT_JOBS`.
    """
    return min(MAX_DEFAULT_JOBS, cores) if claims >= MIN_CLAIMS and backend == "cpu" else 1


def side_by_side(
    names: Sequence[str],
    *,
    seed: int,
    jobs: int,
    modules: Sequence[str] = (),
    confidence: float = 0.95,
    **options: Any,
) -> Generator[ScoreboardRow]:
    """Audits registered claims in several processes; yields a row of `scoreboard` for each name, in the given order.

    Args:
        names: names of entries.
        seed: seed of the root key, as on the command line.
        jobs: number of processes.
        modules: modules that register a user's entries; each process first imports them.
        confidence: simultaneous confidence of the lower bounds of all rows.
        **options: further options of `scoreboard`.

    Yields:
        Each row, as soon as this row and all rows before it are done. If the caller stops iterating, the processes end.

    Raises:
        MemoryError: if a process ends abnormally. Usually it was killed for lack of memory, but it may also have failed
            to start, for example because it cannot import `modules`.
    """
    row_confidence = 1 - (1 - confidence) / max(1, len(names))
    tasks = [Task(name, seed, row_confidence, options) for name in names]
    settings = {name: getattr(jax.config, name) for name in SETTINGS}
    earlier_children = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(settings, tuple(modules)),
    )
    try:
        with _environment_of_workers():  # processes start when they get their first tasks
            rows = pool.map(_compute_row, tasks)
        yield from rows
    except BrokenProcessPool as error:
        raise MemoryError(f"one of {jobs} processes was killed, perhaps for lack of memory: try --jobs 1") from error
    except BaseException:  # includes interruptions; otherwise rows in progress would run for up to a minute
        for process in set(multiprocessing.active_children()) - earlier_children:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Sets environment variables for processes that start inside: one OpenBLAS thread, and options of XLA on a CPU."""
    variables = {"OPENBLAS_NUM_THREADS": "1"}  # other threads of a process would wait for matrix products by spinning
    if jax.default_backend() == "cpu":
        variables["XLA_FLAGS"] = f"{XLA_FLAGS} {os.environ.get('XLA_FLAGS', '')}"  # the user's flags override these
    former = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _start_worker(settings: Mapping[str, Any], modules: Sequence[str]) -> None:
    """Prepares a worker process: sets JAX's `settings`, and loads the entries that `modules` and plugins register.

    The process ignores interruptions, which its parent handles.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    for name, value in settings.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)
    registry.load_plugins(lambda sentence: None)  # the parent process has reported failures
    registry.import_modules(modules)


def _compute_row(task: Task) -> ScoreboardRow:
    (row,) = scoreboard(root_key(task.seed), registry.attacks([task.name]), confidence=task.confidence, **task.options)
    if next(_audit_counter) % CLAIMS_PER_CACHE == 0:
        jax.clear_caches()
    return row
