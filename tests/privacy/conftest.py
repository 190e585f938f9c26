"""Planted entries, while a test needs them."""

import importlib
import sys

import pytest

collect_ignore = ["planted.py", "planted_shuffle.py"]  # a search for doctests would import, and so register them
MODULES = ("tests.privacy.planted", "tests.privacy.planted_shuffle")


@pytest.fixture
def planted():
    """Registers entries by name, and removes them after the test."""
    from jaxdp.registry import LEARNERS, MECHANISMS  # only now, when the plugins have set JAX

    tables = (LEARNERS, MECHANISMS)
    before = [set(table) for table in tables]
    for module in MODULES:
        importlib.import_module(module)
    new = [set(table) - old for table, old in zip(tables, before, strict=True)]
    yield {name: table[name] for table, names in zip(tables, new, strict=True) for name in names}
    for table, names in zip(tables, new, strict=True):
        for name in names:
            del table[name]
    for module in MODULES:
        del sys.modules[module]
