"""Loads what tests need, and only where they run."""

import atexit
import gc
import os

import pytest

pytest_plugins = ["tests.loop.budgets"]


def pytest_configure(config: pytest.Config) -> None:
    """Sets JAX, except in a process that only hands tests to workers: they would wait for its import."""
    os.environ.pop("COLUMNS", None)  # programs would wrap their output at the width of the terminal of whoever tests
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)  # the last one to run: the interpreter would free all programs, one by one
    if config.option.collectonly or config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.loop.jax_settings")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hides the objects with which a worker ends from its last collection of garbage, which pytest makes."""
    if hasattr(session.config, "workerinput"):
        gc.freeze()
