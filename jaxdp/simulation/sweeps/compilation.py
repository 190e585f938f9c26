"""Stores compiled programs on disk, so that other processes do not compile them again."""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from jaxdp.simulation.store.processor import host_processor
from jaxdp.user_cache import user_cache

WIDEST = ("avx512f", "avx2", "avx", "sse4_2", "sve", "asimd", "neon")
CACHE_HIT = "/jax/compilation_cache/cache_hits"  # an event of JAX
SHORTEST = 0.1  # seconds; programs that compile faster are not stored


def cache_compilations(folder: str | Path | None = None) -> Path | None:
    """Stores JAX's compiled programs on disk from now on, so that other processes do not compile them again.

    This function configures JAX's persistent compilation cache. Programs that compile in less than 0.1 seconds (or in
    less than JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS, if it is set) are not stored. Results stay bit-identical. The
    command line calls this function unless `--no-cache` is given.

    Warns:
        RuntimeWarning: if the folder cannot be written. Every process then compiles its programs.

    Args:
        folder: the folder for programs. None means the folder in JAX's configuration (for example from
            JAX_COMPILATION_CACHE_DIR) or, if none is configured, `jaxdp` in the user's cache directory
            ($XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%). Anyone who can write to the folder can run
            code as you, so no other user may have this permission. The folder grows over time, and you can delete it at
            any time.

    Returns:
        The path where programs are stored, or None if the folder cannot be written. The path is a subfolder for the
        version of jaxlib and the processor, such as `jaxlib-0.10.2-x86_64-avx2-1f0c2a9b`, because a program for one
        kind of processor may not run on another. If `folder` is None and JAX's configuration has a folder, the path is
        that folder, without a subfolder, and the configuration does not change.
    """
    configured = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if folder is None and configured:
        return Path(configured)
    try:
        path = (user_cache() / "jaxdp" if folder is None else Path(folder).resolve()) / folder_name()
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        warnings.warn(
            f"compiled programs are not stored on disk, as their folder cannot be written: {error}",
            stacklevel=2,
            category=RuntimeWarning,
        )
        return None
    if configured != str(path):
        compilation_cache.reset_cache()  # otherwise a process that has compiled something keeps its former folder
        jax.config.update("jax_compilation_cache_dir", str(path))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    return path


def keep_for(platform: str) -> Path | None:
    """Calls `cache_compilations`, unless the device is a CPU, where compiling is fast, or JAX's cache is disabled.

    Returns the folder, or None if programs are not stored.
    """
    allowed = jax.config.jax_enable_compilation_cache  # pyright: ignore[reportAttributeAccessIssue]
    return cache_compilations() if platform != "cpu" and allowed else None


@contextlib.contextmanager
def count_hits() -> Iterator[list[str]]:
    """Yields a list that gets one entry for each program that JAX reads from its disk cache in this thread."""
    hits: list[str] = []
    thread = threading.get_ident()

    def listen(event: str, **details: str | int) -> None:
        del details
        if event == CACHE_HIT and threading.get_ident() == thread:
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        yield hits
    finally:
        jax.monitoring.unregister_event_listener(listen)


def configure_cache(keep: bool, tell: Callable[[str], object]) -> None:
    """Stores compiled programs on disk if `keep` is true, and otherwise turns JAX's compilation cache off.

    It must be called before JAX starts. It calls `tell` with one sentence if the programs cannot be stored.
    """
    if not keep:
        jax.config.update("jax_enable_compilation_cache", False)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache_compilations()
    for warning in caught:
        tell(f"warning: {warning.message}")


def folder_name() -> str:
    """Returns the name of the folder for programs of this version of jaxlib and this processor."""
    words = host_processor()
    features = words.split()
    widest = next((feature for feature in WIDEST if feature in features), "plain")
    digest = hashlib.sha256(words.encode()).hexdigest()[:8]
    machine = platform.machine().lower() or "unknown"
    return f"jaxlib-{importlib.metadata.version('jaxlib')}-{machine}-{widest}-{digest}"
