"""Starting, and ending, processes that sweep."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax

REPOSITORY = Path(__file__).parents[2]
WATCHDOG_SECONDS = 300


def start(store: Path, *, preload: str = "", **arguments) -> subprocess.Popen[str]:
    """Starts a process of `store_worker`.

    Args:
        store: its path.
        preload: Python statements to run first in the process.
        **arguments: of the worker.
    """
    worker = "tests.simulation.store_worker"
    statements = [
        "import runpy, signal, sys",
        # A shell's background jobs ignore SIGINT, and their children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        preload,
        "sys.argv[0] = ''",
        f"runpy.run_module({worker!r}, run_name='__main__')",
    ]
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join(statements), str(store), json.dumps(arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_ENABLE_X64": str(int(jax.config.read("jax_enable_x64")))},
    )


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Reads a process's output until a line begins with the text."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(text):
            return
    raise AssertionError(f"the process ended before it printed {text}: {process.communicate()[1]}")


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Waits for a process to end; returns its exit code, stdout and stderr."""
    out, err = process.communicate(timeout=WATCHDOG_SECONDS)
    return process.returncode, out, err
