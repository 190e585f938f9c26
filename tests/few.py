"""A few of many cases always, the others with the slow tests."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Cases for `parametrize`: all but those in `kept` are marked slow."""
    cases = list(cases)
    assert all(case in cases for case in kept)
    return [case if case in kept else _slow(case) for case in cases]


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
