"""Settings that every test runs under: strict promotion, and a compilation cache shared by all test processes."""

import gc
import os
from pathlib import Path

import jax

pytest_plugins = ["tests.loop.budgets"]

SETTINGS = {
    "jax_compilation_cache_dir": str(Path(__file__).parent / ".cache" / "jax"),
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

# JAX keeps every program that it has lowered, each in an MLIR context of its own, and each new context looks through
# the tables of all that are alive: after some thousand programs lowering takes several times as long, and gigabytes.
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
MANY = 500  # forgetting them costs about a second, of operations that are traced again
lowered = 0


def count(event: str, duration_secs: float, **kwargs: str | int) -> None:
    """Counts the programs that were lowered since they were last forgotten."""
    global lowered
    lowered += event == LOWERED


jax.monitoring.register_event_duration_secs_listener(count)


def pytest_runtest_logfinish() -> None:
    """Forgets all programs after the test with which they became many."""
    global lowered
    if lowered >= MANY:
        jax.clear_caches()
        gc.collect()
        lowered = 0
