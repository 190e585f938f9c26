"""Rows of an audit of registered claims, several at the same time, each in a process of its own."""

import itertools
import multiprocessing
import signal
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import jax

from jaxdp import registry
from jaxdp.audit import Row, scoreboard
from jaxdp.studies.command import root_key

FEWEST = 8  # claims that are worth a second process, which takes seconds to start
MOST = 2  # processes, unless more are asked for: each holds up to some gigabytes
FORGETS = 16  # claims after which a process forgets its programs: JAX gets slower with each that it keeps
_audited = itertools.count(1)
# What the command line, or its user, has set in this process.
SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_enable_x64",
    "jax_num_cpu_devices",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_platforms",
)


class Task(NamedTuple):
    """One claim.

    Attributes:
        name: as it is registered.
        seed: of the root key.
        confidence: of its row.
        options: of `scoreboard`, other than these.
    """

    name: str
    seed: int
    confidence: float
    options: Mapping[str, Any]


def usual_jobs(claims: int, cores: int, backend: str) -> int:
    """How many processes audit so many claims where nobody says; a second one would not share an accelerator."""
    return min(MOST, cores) if claims >= FEWEST and backend == "cpu" else 1


def side_by_side(
    names: Sequence[str],
    *,
    seed: int,
    jobs: int,
    modules: Sequence[str] = (),
    confidence: float = 0.95,
    **options: Any,
) -> Generator[Row]:
    """`scoreboard` of registered claims by several processes: the same rows, in the same order.

    Args:
        names: of entries.
        seed: of the root key, as the command line takes it.
        jobs: processes.
        modules: whose import registers entries of a user.
        confidence: that all lower bounds of all rows hold.
        **options: as `scoreboard` takes them.

    Yields:
        One row per name, as it and those before it are done. When the caller stops, the processes are ended.

    Raises:
        MemoryError: if a process is ended from outside.
    """
    each = 1 - (1 - confidence) / max(1, len(names))
    tasks = [Task(name, seed, each, options) for name in names]
    settings = {name: getattr(jax.config, name) for name in SETTINGS}
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(settings, tuple(modules)),
    )
    try:
        yield from pool.map(_row, tasks)
    except BrokenProcessPool as error:
        raise MemoryError(
            f"one of {jobs} processes was ended from outside, as for want of memory: try --jobs 1"
        ) from error
    except BaseException:  # an interruption, too: what is being computed would take up to a minute more
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(settings: Mapping[str, Any], modules: Sequence[str]) -> None:
    """What a process does first; an interruption of the terminal is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name, value in settings.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)
    registry.load_plugins(lambda sentence: None)  # who started it has told what fails
    registry.import_modules(modules)


def _row(task: Task) -> Row:
    """One claim's row."""
    (row,) = scoreboard(root_key(task.seed), registry.attacks([task.name]), confidence=task.confidence, **task.options)
    if next(_audited) % FORGETS == 0:
        jax.clear_caches()
    return row
