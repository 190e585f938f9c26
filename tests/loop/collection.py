"""The tests that exist in either precision, and their marks."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRECISIONS = (32, 64)  # some tests exist in one of them only


def collect() -> dict[int, dict[str, set[str]]]:
    """Returns, for each precision, the marks of all tests by node id; both are collected at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        files = {bits: Path(folder) / f"{bits}.json" for bits in PRECISIONS}
        running = [_start(bits, file) for bits, file in files.items()]
        for process in running:
            printed = process.communicate()[0]
            if process.returncode:
                raise RuntimeError(f"tests could not be collected:\n{printed}")
        return {
            bits: {name: set(marks) for name, marks in json.loads(file.read_text()).items()}
            for bits, file in files.items()
        }


def _start(bits: int, file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "--list", file],
        cwd=ROOT,
        env={**os.environ, "JAX_ENABLE_X64": str(int(bits == 64))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
