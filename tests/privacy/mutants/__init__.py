"""A zoo of known mistakes: every one must be flagged, and its correct twin must not.

Mistakes of an algorithm stand with its tests, in files `mutants.py` below `tests/algorithms`; others are in this
folder. A file has its mistakes in `CASES`, by name.
"""

import importlib
from pathlib import Path

TESTS = Path(__file__).parents[2]


def _files() -> list[Path]:
    here = [file for file in Path(__file__).parent.glob("*.py") if file.stem != "__init__"]
    return sorted([*here, *(TESTS / "algorithms").rglob("mutants.py")])


ZOO = {}
for file in _files():
    cases = importlib.import_module(".".join(file.relative_to(TESTS.parent).with_suffix("").parts)).CASES
    assert not {*ZOO} & {*cases}, file
    ZOO |= cases
