"""Planted entries, while a test needs them."""

import importlib
import sys

import pytest

from jaxdp.registry import LEARNERS, MECHANISMS

collect_ignore = ["planted.py", "planted_shuffle.py"]  # a search for doctests would import, and so register them
MODULES = ("tests.privacy.planted", "tests.privacy.planted_shuffle")
TABLES = (LEARNERS, MECHANISMS)


@pytest.fixture
def planted():
    """Entries by name; later tests find the registry as it was."""
    before = [set(table) for table in TABLES]
    for module in MODULES:
        importlib.import_module(module)
    new = [set(table) - old for table, old in zip(TABLES, before, strict=True)]
    yield {name: table[name] for table, names in zip(TABLES, new, strict=True) for name in names}
    for table, names in zip(TABLES, new, strict=True):
        for name in names:
            del table[name]
    for module in MODULES:
        del sys.modules[module]
