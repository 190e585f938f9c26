"""Loads what tests need, and only where they run."""

import atexit
import gc
import importlib
import os
from pathlib import Path

import pytest

# Set before NumPy is imported; pyproject.toml leaves out a plugin of zarr, which would import it earlier. Other threads
# of OpenBLAS would spin between the matrix products of audits, and use more processor time than the products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["tests.loop.budgets"]


def pytest_configure(config: pytest.Config) -> None:
    """Sets JAX, except in a process that only hands tests to workers: they would wait for its import."""
    os.environ.pop("COLUMNS", None)  # programs would wrap their output at the width of the terminal of whoever tests
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)  # the last one to run: the interpreter would free all programs, one by one
    if config.option.collectonly or config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.loop.jax_settings")


def pytest_collect_file(file_path: Path) -> None:
    """Imports a module of the library as programs do, before pytest imports it for its doctests.

    If its package is not imported yet, pytest imports the package, which imports the module, and then executes the
    module again: tests would replace functions of one copy and call those of the other.
    """
    root = Path(__file__).parent
    if file_path.is_relative_to(root / "jaxdp") and file_path.suffix == ".py" and file_path.stem != "__main__":
        importlib.import_module(".".join(file_path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hides the objects with which a worker ends from its last collection of garbage, which pytest makes."""
    if hasattr(session.config, "workerinput"):
        gc.freeze()
