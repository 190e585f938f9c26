"""The long run: what `make test` leaves out, cut into parts by the durations of tests."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from tests.loop.durations import Durations, is_over

LIMIT = 1200.0  # seconds that a part may take on two cores
PLANNED = 0.8 * LIMIT  # figures are noisy, and workers wait for the last tests
CORES = 2
UNKNOWN = {False: 0.5, True: 10.0}  # CPU seconds of tests within the budget and over it, before any is measured
START = 30.0  # seconds until the first test of a job runs
TARGETS = {"docs": 600.0, "test-newest": 900.0}  # targets of the Makefile, with their seconds on two cores
# The long run compiles with optimisation, as users do: a test takes this many times its figure.
FACTORS = {"64 bits": 1.4, "32 bits": 1.3}


class Unit(NamedTuple):
    """What runs as a whole: a test, or a target of the Makefile, which is a job of its own."""

    job: str
    name: str
    seconds: float  # on two cores


class Estimates:
    """CPU seconds of tests; one without a figure is assumed to take the mean of those on its side of the budget."""

    def __init__(self, durations: Durations) -> None:
        """Computes the means."""
        self.durations = durations
        figures = {name: seconds for name, seconds in durations.items() if seconds is not None}
        self.assumed = {
            over: fmean([figures[name] for name in figures if is_over(name, durations) == over] or [unknown])
            for over, unknown in UNKNOWN.items()
        }

    def __call__(self, name: str) -> float:
        """Returns a test's CPU seconds in 32 bits, compiled quickly."""
        seconds = self.durations.get(name)
        return self.assumed[is_over(name, self.durations)] if seconds is None else seconds


def list_units(tests: Mapping[int, Mapping[str, set[str]]], durations: Durations) -> list[Unit]:
    """Returns what the long run runs, in an order that new tests do not change.

    Args:
        tests: for 32 and 64 bits, the marks of all tests by node id.
        durations: of tests.
    """
    estimate = Estimates(durations)
    names = {
        "64 bits": [name for name, marks in tests[64].items() if "slow" in marks or "precision" not in marks],
        "32 bits": [name for name, marks in tests[32].items() if "slow" in marks],
    }
    units = [Unit(job, name, FACTORS[job] * estimate(name) / CORES) for job in FACTORS for name in sorted(names[job])]
    return [*units, *(Unit(target, target, seconds) for target, seconds in TARGETS.items())]


def cut(units: Sequence[Unit]) -> list[list[Unit]]:
    """Returns the smallest number of parts that are within the plan, about equally long, each a stretch of the units.

    Since parts are stretches, a new test moves the ends of parts, and most tests stay in theirs.
    """
    parts = _fill(units, PLANNED)
    low, high = 0.0, PLANNED
    while high - low > 1.0:
        capacity = (low + high) / 2
        fewer = _fill(units, capacity)
        if len(fewer) > len(parts):
            low = capacity
        else:
            high, parts = capacity, fewer
    return parts


def _fill(units: Sequence[Unit], capacity: float) -> list[list[Unit]]:
    """Starts a new part where the next unit would be too much."""
    parts: list[list[Unit]] = []
    seconds = 0.0
    for unit in units:
        added = unit.seconds + START * (not parts or unit.job != parts[-1][-1].job)
        if not parts or seconds + added > capacity:
            parts.append([])
            seconds, added = 0.0, unit.seconds + START
        parts[-1].append(unit)
        seconds += added
    return parts


def expected_seconds(part: Sequence[Unit]) -> float:
    """Returns how long a part takes on two cores."""
    return sum(unit.seconds for unit in part) + START * len({unit.job for unit in part})
