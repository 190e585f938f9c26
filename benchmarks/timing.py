"""Timing that several benchmarks share."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax


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
    """As `best_of` for several functions in turn, so that a busy moment of the machine meets all of them."""
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
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
