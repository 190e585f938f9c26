"""A pytest plugin: JAX as the tests have it, with strict promotion and a compilation cache that all processes share."""

import gc
import os
import sys
from pathlib import Path

import jax

from tests.loop.collection import ROOT

SETTINGS = {
    "jax_compilation_cache_dir": str(ROOT / ".cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,  # single operations too: every process needs them
}

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
for name, value in SETTINGS.items():
    if name.upper() not in os.environ:
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for the processes that tests start

# Traced programs are many small objects that live long: Python's usual thresholds spend a sixth of the tests' time on
# looking through them again.
gc.set_threshold(200_000, 20, 100)

# JAX keeps every program that it has lowered, each in an MLIR context of its own of a megabyte, and each new context
# looks through the tables of all that are alive. They are forgotten often, where JAX has these caches by these names;
# traces and compiled programs are kept longer, because tracing common operations again takes some seconds.
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
LOWERED_CACHES = ("pjit", "_pjit_lower"), ("interpreters.pxla", "_cached_lowering_to_hlo")
SOME, MANY = 50, 3000
# Compiled programs are mapped memory. A process of many audits reached Linux's limit of 65,530 maps, and crashed.
MANY_MAPS = 30_000
counts = {"lowered": 0, "since all": 0}


def count(event: str, duration_secs: float, **kwargs: str | int) -> None:
    """Counts the programs that were lowered since they were last forgotten."""
    for name in counts:
        counts[name] += event == LOWERED


jax.monitoring.register_event_duration_secs_listener(count)


def forget_lowered() -> bool:
    """Forgets lowered programs, and returns whether it could."""
    caches = [getattr(sys.modules.get(f"jax._src.{module}"), name, None) for module, name in LOWERED_CACHES]
    if None in caches:
        return False
    for cache in caches:
        cache.cache_clear()  # pyright: ignore[reportOptionalMemberAccess]
    return True


def number_of_maps() -> int:
    """Returns the number of this process's memory maps; 0 where the system does not list them."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


ENABLED = "jax_enable_compilation_cache"
is_enabled = getattr(jax.config, ENABLED)


def pytest_runtest_logfinish() -> None:
    """Forgets programs after the test with which they became many; after `--no-cache` the cache is on again."""
    if getattr(jax.config, ENABLED) != is_enabled:
        jax.config.update(ENABLED, is_enabled)
    if counts["lowered"] < SOME:
        return
    limit = MANY if forget_lowered() else 10 * SOME
    counts["lowered"] = 0
    if counts["since all"] >= limit or number_of_maps() >= MANY_MAPS:
        jax.clear_caches()
        gc.collect()
        counts["since all"] = 0
