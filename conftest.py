"""Settings that every test runs under: strict promotion, and a compilation cache shared by all test processes."""

from pathlib import Path

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
