"""A command that the user stops reports in a few lines which results are safe."""

import os
import signal
import subprocess
import sys
import time

from tests.cli.test_command_line import REPOSITORY

# A shell's background jobs ignore SIGINT, and their children inherit that.
INTERRUPTIBLE = """
import signal
from jaxdp.__main__ import app, main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def test_control_c_is_told_in_lines_and_not_as_a_traceback(tmp_path):
    arguments = ("sweep", "reward-estimation", "--num-samples", "300", "--seeds", "4000", "--store", "s.zarr")
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(REPOSITORY / ".cache" / "jax")}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments, "--chunk-size", "16"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.poll() is None and not list((tmp_path / "s.zarr" / "computed").rglob("c/*/*/*")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert err.startswith("interrupted: ")
    assert f"lanes of the sweep are safe in {tmp_path / 's.zarr'}; the same call computes the rest" in err
    assert "Traceback" not in err
