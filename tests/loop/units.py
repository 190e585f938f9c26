"""The long run: what `make test` leaves out, cut into parts by the durations of tests."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from tests.loop.durations import LARGER, Durations, is_over

LIMIT = 1200.0  # seconds that a part may take on two cores
PLANNED = 0.8 * LIMIT  # figures are noisy, and workers wait for the last tests
CORES = 2
UNKNOWN = {False: 0.3, True: 10.0}  # CPU seconds of tests within the budget and over it, before any is measured
START = 30.0  # seconds until the first test of a job runs
TARGETS = {"docs": 600.0, "test-newest": 900.0}  # targets of the Makefile, with their seconds on two cores
OPTIMISED = 2.0  # times the figure of a test that was measured with programs that are compiled quickly


class Job(NamedTuple):
    """How tests run: in a precision, compiled with XLA's optimisation or quickly."""

    bits: int
    optimised: bool

    def runs(self, marks: set[str]) -> bool:
        """Returns whether this job runs a test that has these marks: if `make test` does not run it in the same way."""
        slow, optimised = "slow" in marks, "optimised" in marks
        if self.bits == 64:
            return optimised == self.optimised and (slow or "precision" not in marks)
        return slow or not optimised


# Everything in 32 bits is compiled as users compile it.
JOBS = {"64 bits": Job(64, False), "64 bits optimised": Job(64, True), "32 bits optimised": Job(32, True)}


class Unit(NamedTuple):
    """A unit that runs as a whole: a test, or a target of the Makefile, which is a separate job."""

    job: str
    name: str
    seconds: float  # on two cores


class Estimates:
    """CPU seconds of tests.

    A test without a figure is assumed to take the mean of those within their budgets; if it is known to be slow, the
    mean of those over the largest budget.
    """

    def __init__(self, durations: Durations) -> None:
        """Computes the means."""
        self.durations = durations
        figures = {name: seconds for name, seconds in durations.items() if seconds is not None}
        within = [seconds for name, seconds in figures.items() if not is_over(name, durations)]
        long = [seconds for seconds in figures.values() if seconds > LARGER]
        self.assumed = {False: fmean(within or [UNKNOWN[False]]), True: fmean(long or [UNKNOWN[True]])}

    def __call__(self, name: str) -> float:
        """Returns a test's CPU seconds in 32 bits, compiled quickly."""
        seconds = self.durations.get(name)
        return self.assumed[is_over(name, self.durations)] if seconds is None else seconds


def list_units(tests: Mapping[int, Mapping[str, set[str]]], durations: Durations) -> list[Unit]:
    """Returns the content of the long run, in an order that new tests do not change.

    Args:
        tests: for 32 and 64 bits, the marks of all tests by node id.
        durations: of tests.
    """
    estimate = Estimates(durations)
    units = []
    for name, job in JOBS.items():
        for test, marks in sorted(tests[job.bits].items()):
            if job.runs(marks):
                factor = OPTIMISED if job.optimised and "optimised" not in marks else 1.0
                units.append(Unit(name, test, factor * estimate(test) / CORES))
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
