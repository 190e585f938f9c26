"""Measured durations of tests, in CPU seconds: which tests are slow, and how new figures enter `durations.json`."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tests.loop.collection import ROOT, collect

BUDGET = 0.2  # CPU seconds: a test that takes more is left to the long run
# Golden comparisons and planted mistakes find most wrong algorithms for their seconds.
LARGER = 3.0
WITH_LARGER = re.compile(r"tests/(privacy/|(\w+/)*test_(golden|mistakes)\w*\.py)")
SHOWN = 20  # names that are printed at most
FOLDER = Path("tests/loop")
Durations = Mapping[str, float | None]


def read_durations(root: Path) -> dict[str, float | None]:
    """Returns CPU seconds by node id; None for a test that is known to be slow and has not been measured."""
    path = root / FOLDER / "durations.json"
    return json.loads(path.read_text()) if path.exists() else {}


def read_kept(root: Path) -> set[str]:
    """Returns the node ids of tests that `make test` runs at any duration: each alone notices some mutation."""
    path = root / FOLDER / "kept.json"
    return set(json.loads(path.read_text())) if path.exists() else set()


def write_kept(root: Path, tests: Collection[str]) -> None:
    """Writes the node ids that `read_kept` returns, one a line."""
    (root / FOLDER / "kept.json").write_text(json.dumps(sorted(tests), indent=0) + "\n")


def is_over(name: str, durations: Durations) -> bool:
    """Returns whether a test's duration is unknown to be within the budget; a test without an entry is within."""
    seconds = durations.get(name, 0.0)
    return seconds is None or seconds > budget_of(name)


def budget_of(name: str) -> float:
    """Returns the CPU seconds that a test may take in `make test`."""
    return LARGER if WITH_LARGER.match(name) else BUDGET


def read_measured(paths: Iterable[Path]) -> dict[str, float]:
    """Returns CPU seconds by node id from the files that `pytest --measure` wrote, except of tests that failed."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return {row["test"]: row["cpu"] for row in rows if row["outcome"] != "failed"}


def merge(old: Durations, measured: Mapping[str, float], tests: Collection[str]) -> dict[str, float | None]:
    """Returns the durations of the tests that exist, with new figures where they differ by more than noise.

    Args:
        old: durations so far.
        measured: new figures.
        tests: node ids of all tests that exist; others are dropped.
    """
    merged = {name: old[name] for name in old if name in tests}
    for name, seconds in measured.items():
        if name in tests and _differs(merged.get(name), seconds):
            merged[name] = round(seconds, 2)
    return dict(sorted(merged.items()))


def _differs(old: float | None, new: float) -> bool:
    return old is None or abs(new - old) > max(BUDGET / 4, old / 4)


def write_durations(root: Path, durations: Durations) -> None:
    """Writes one test a line, in the order of names."""
    (root / FOLDER / "durations.json").write_text(json.dumps(dict(sorted(durations.items())), indent=0) + "\n")


def main(files: list[str]) -> None:
    """Adds measured durations to `durations.json`, and prints what became of it."""
    old = read_durations(ROOT)
    tests = {name for marks in collect().values() for name in marks}
    new = merge(old, read_measured(map(Path, files)), tests)
    write_durations(ROOT, new)
    moved = [name for name in new if is_over(name, new) != is_over(name, old)]
    for heading, names in (
        ("tests no longer exist", sorted(set(old) - set(new))),
        ("tests are now left to the long run", [name for name in moved if is_over(name, new)]),
        ("tests are no longer left to the long run", [name for name in moved if not is_over(name, new)]),
    ):
        more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
        print(f"{len(names)} {heading}", *names[:SHOWN], *more, sep="\n    ")
    print(f"{sum(new.get(name) is None for name in tests)} of {len(tests)} tests have no figure")


if __name__ == "__main__":
    main(sys.argv[1:])
