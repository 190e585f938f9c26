"""Timing that several benchmarks share."""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax

import jaxdp


class EnoughError(Exception):
    """A benchmark that is recorded has timed its first comparison."""


@dataclass
class Recording:
    """What a benchmark makes and times, up to its first comparison with a peer.

    Attributes:
        most_repeats: calls of each function that is timed, at most.
        made: run, learner, environment and options of each call of `simulator`.
        played: what was compiled, in order: run, lanes, tile, params, and seconds of compiling.
        seconds: of the first comparison, by name.
    """

    most_repeats: int
    made: list[tuple[Any, Any, Any, dict[str, Any]]] = field(default_factory=list)
    played: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


_recordings: list[Recording] = []


@contextlib.contextmanager
def record_benchmark(most_repeats: int) -> Iterator[Recording]:
    """Records a benchmark in this block, which ends after the first comparison."""
    _recordings.append(Recording(most_repeats))
    try:
        with contextlib.suppress(EnoughError):
            yield _recordings[-1]
    finally:
        _recordings.pop()


def simulator(learner: Any, environment: Any, horizon: int, **options: Any) -> Any:
    """`jaxdp.simulator`, which a recording sees."""
    run = jaxdp.simulator(learner, environment, horizon, **options)
    for recording in _recordings:
        recording.made.append((run, learner, environment, {"horizon": horizon, **options}))
    return run


def record_program(run: Any, lanes: int, tile: int, params: Any, compiling: float) -> None:
    """Adds a program of a run to the recording, if there is one."""
    for recording in _recordings:
        recording.played.append({"run": run, "lanes": lanes, "tile": tile, "params": params, "compiling": compiling})


def best_of(repeats: int, function: Callable[[], Any]) -> float:
    """Seconds of the fastest of some calls, after one that warms up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def interleaved(repeats: int, functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """As `best_of` for several functions in turn, so that a busy moment of the machine meets all of them.

    Raises:
        EnoughError: if the benchmark is recorded, after it was timed.
    """
    repeats = min([repeats, *(recording.most_repeats for recording in _recordings)])
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    if _recordings:
        _recordings[-1].seconds = best
        raise EnoughError
    return best


def tiled(function: Callable[..., Any], arguments: Sequence[Any], tile: int) -> tuple[Callable[[], list[Any]], float]:
    """A jitted function over tiles of its arguments' leading axis, as many in flight as cores, as a sweep does.

    Returns:
        (call, seconds to compile).
    """
    size = jax.tree.leaves(arguments[0])[0].shape[0]
    tiles = [tuple(a[start : start + tile] for a in arguments) for start in range(0, size, tile)]
    jax.block_until_ready(tiles)
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*tiles[0]).compile()
    seconds = time.perf_counter() - start
    pool = ThreadPoolExecutor(os.cpu_count())
    return lambda: list(pool.map(lambda t: jax.block_until_ready(compiled(*t)), tiles)), seconds


def machine() -> str:
    """What the numbers were measured on."""
    device = jax.devices()[0]
    where = f"{device.platform} ({device.device_kind})"
    return f"{platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__} on {where}"
