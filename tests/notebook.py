"""Cells run in a fresh kernel of this Python, as a notebook runs them, and their outputs."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
LAUNCH = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]


class ThisPython(KernelSpecManager):
    """Knows one kernel, regardless of the user's kernels: the Python that runs the tests."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(argv=LAUNCH, display_name=kernel_name, language="python")


def run_cells(*sources: str, timeout: float = 300, cwd: Path | None = None, env: dict[str, str] | None = None) -> Any:
    """Executes cells one after the other in a fresh kernel, and returns each cell's outputs.

    Args:
        *sources: one text for each cell.
        timeout: seconds that a cell may take.
        cwd: where the kernel works; None is an empty folder, which is removed afterwards.
        env: variables that the kernel has beside those of this process.

    Returns:
        For each cell the list of its outputs, as `nbformat` has them: a dict with `output_type` ("stream",
        "display_data", "execute_result") and `text`, or `data` by MIME type. `shown` tells their text.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell raises.
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work") if cwd is None else cwd
        work.mkdir(exist_ok=True)
        settings = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "IPYTHONDIR": str(Path(folder, "ipython")),  # nothing of the user's profile, and nothing written to it
            "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path(folder, "matplotlib"))),
        }
        manager = AsyncKernelManager(
            kernel_name="tests", kernel_spec_manager=ThisPython(), connection_file=str(Path(folder, "kernel.json"))
        )
        client = NotebookClient(notebook, km=manager, timeout=timeout, resources={"metadata": {"path": str(work)}})
        client.execute(cleanup_kc=True, env={**os.environ, **settings, **(env or {})})
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: Any) -> str:
    """Returns the text of one cell's outputs: its stdout and stderr, and its values as plain text."""
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
