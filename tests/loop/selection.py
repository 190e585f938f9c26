"""Runs the tests that name a registered entry, or a file or folder of the library, and no others.

Usage, from the root: `python -m pytest -p tests.loop.selection --of rucb $(python tests/loop/selection.py rucb)`; the
files are those that may have such tests. `make check` uses the same selection.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])

from tests.loop import naming
from tests.loop.durations import read_durations

CONTRACT = ("test_structure.py", "test_distribution.py")  # `make check` runs the tests that they run, one by one
UNKNOWN = 1.0  # seconds of a test that has not been measured
KINDS = ("golden", "mutants", "doctests", "tests")  # in the order in which they run


class Selection:
    """A pytest plugin: it leaves out tests that do not name the subject, and orders the others.

    Args:
        wanted: the subject.
        skip_slow: whether tests marked slow are left out, except the quickest of independent versions or of the zoo's
            mistakes where all of these are slow, and one if all tests are.
    """

    def __init__(self, wanted: naming.Subject, *, skip_slow: bool = True) -> None:
        self.wanted, self.skip_slow, self.durations = wanted, skip_slow, read_durations(naming.ROOT)
        self.folder = naming.folder_of(wanted.text)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keeps what names the subject."""
        chosen = self.of_ids([item for item in items if self.names(item)])
        if self.skip_slow:
            quick = [item for item in chosen if item.get_closest_marker("slow") is None]
            for kind in ("golden", "mutants"):
                if not any(kind_of(item) == kind for item in quick):
                    quick += sorted((item for item in chosen if kind_of(item) == kind), key=self.known_seconds)[:1]
            chosen = quick or sorted(chosen, key=self.place)[:1]
        chosen.sort(key=self.place)
        kept = {*map(id, chosen)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen

    def place(self, item: pytest.Item) -> tuple[int, bool, float]:
        """Returns the sort key of tests: kind, whether a file is not the subject's own, and duration."""
        stems = {path.stem.strip("_") for path in self.wanted.own} | {*self.wanted.entries}
        is_own = item.path.stem.removeprefix("test_") in stems
        seconds = self.durations.get(item.nodeid, UNKNOWN)
        return KINDS.index(kind_of(item)), not is_own, UNKNOWN if seconds is None else seconds

    def known_seconds(self, item: pytest.Item) -> float:
        """Returns a test's duration, infinite if it is unknown."""
        seconds = self.durations.get(item.nodeid)
        return float("inf") if seconds is None else seconds

    def names(self, item: pytest.Item) -> bool:
        """Returns whether a test names the subject: in its code, or as a parameter."""
        if isinstance(item, pytest.DoctestItem):
            return item.path in self.wanted.own
        if item.path.is_relative_to(self.folder):
            return True
        if item.path == naming.ZOO:
            return self.names_case(item)
        if {*self.wanted.entries} & {*_values(item)}:
            return True
        function = getattr(item, "originalname", None) or item.name
        owner = getattr(item, "cls", None)
        return naming.names_in_test(item.path, owner.__name__ if owner else function, self.wanted)

    def names_case(self, item: pytest.Item) -> bool:
        """Returns whether the zoo's case, which is the test's parameter, names the subject."""
        from tests.privacy.mutants import ZOO

        cases = [ZOO[value] for value in _values(item) if value in ZOO]
        return any(naming.names_in_test(Path(case.__code__.co_filename), case.__name__, self.wanted) for case in cases)

    def of_ids(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Returns the tests without those for other entries, where a test has a parameter that is an entry's name."""
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        kept = []
        for group in groups.values():
            mine = [item for item in group if {*self.wanted.entries} & {*_values(item)}]
            others = [item for item in group if {*naming.entries()}.isdisjoint(_values(item))]
            kept += mine or others
        return kept


def files_for(wanted: naming.Subject) -> list[Path]:
    """Returns the test files that may name the subject, and its own files for their doctests."""
    folder = naming.folder_of(wanted.text)
    tests = [
        file
        for file in naming.test_files()
        if file.name not in CONTRACT
        and (
            naming.names_in_file(file, wanted)
            or (wanted.entries and naming.by_registry(file))
            or file.is_relative_to(folder)
        )
    ]
    return [*tests, *sorted(wanted.own)]


def kind_of(item: pytest.Item) -> str:
    """Returns the kind of a test, one of `KINDS`."""
    if isinstance(item, pytest.DoctestItem):
        return "doctests"
    if item.path.stem.startswith("test_golden"):
        return "golden"
    return "mutants" if item.path == naming.ZOO else "tests"


def _values(item: pytest.Item) -> Iterable[str]:
    """Returns a test's parameters that are text."""
    call: Any = getattr(item, "callspec", None)
    return () if call is None else [value for value in call.params.values() if isinstance(value, str)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--of`."""
    parser.addoption("--of", help="run only tests that name this entry, or this file or folder of the library")


def pytest_configure(config: pytest.Config) -> None:
    """Selects tests where `--of` is given."""
    text: Any = config.getoption("--of", None)
    if text:
        config.pluginmanager.register(Selection(naming.subject(text), skip_slow=False))


if __name__ == "__main__":
    print(*(file.relative_to(naming.ROOT) for file in files_for(naming.subject(sys.argv[1]))), sep="\n")
