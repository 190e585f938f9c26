"""Settings that every test runs under: strict promotion, and a compilation cache shared by all test processes."""

import gc
import os
from pathlib import Path

import jax

SETTINGS = {
    "jax_compilation_cache_dir": str(Path(__file__).parent / ".cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,  # single operations too: every process needs them
}

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
for name, value in SETTINGS.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # for the processes that tests start

# Traced programs are many small objects that live long: Python's usual thresholds spend a sixth of the tests' time on
# looking through them again.
gc.set_threshold(200_000, 20, 100)
