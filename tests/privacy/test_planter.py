"""Texts that tests replace to plant a mistake still occur in the library: many of these tests are in the long run."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from tests.privacy.planter import planted

TESTS = Path(__file__).parents[1]


def literal_changes():
    """Yields (file, module, text) for every call of `planted` in which the texts are written out."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if "planted(" not in text or path == Path(__file__):
            continue
        for call in ast.walk(ast.parse(text)):
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "planted" or not call.args:
                continue
            if not isinstance(call.args[0], ast.Constant) or not str(call.args[0].value).startswith("jaxdp."):
                continue
            for change in call.args[1:]:
                if isinstance(change, ast.Tuple) and isinstance(change.elts[0], ast.Constant):
                    yield path.name, str(call.args[0].value), str(change.elts[0].value)


def test_every_text_that_a_test_replaces_occurs_once():
    changes = list(literal_changes())
    assert len(changes) >= 4
    counts = {change: inspect.getsource(importlib.import_module(change[1])).count(change[2]) for change in changes}
    assert {change: count for change, count in counts.items() if count != 1} == {}


def test_a_text_that_does_not_occur_is_refused():
    with pytest.raises(ValueError, match="must have this text once, got 0 times 'no such text'"):
        planted("jaxdp.mechanisms.shuffle", ("no such text", "another"))
