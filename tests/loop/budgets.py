"""A pytest plugin: marks tests `slow` by their measured durations, and measures the CPU seconds of each test.

Seconds are of user and system, of the test's process and the processes that it started and waited for: they hardly
depend on what else the machine does.
"""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.durations import budget_of, is_over, read_durations, read_kept

STARTED = pytest.StashKey[float]()
SHOWN = 10
SURPRISING = 4  # times the budget: a test's duration depends on which one compiles shared parts


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that measure and select tests."""
    group = parser.getgroup("budgets")
    group.addoption("--measure", metavar="FILE", help="append each test's CPU seconds and outcome, one JSON a line")
    group.addoption("--list", metavar="FILE", help="write all collected tests and their marks, as JSON")
    group.addoption("--unmeasured", action="store_true", help="run only tests without a measured duration")
    group.addoption("--only", metavar="FILE", help="run only the tests whose node ids FILE has, one a line")


def pytest_configure(config: pytest.Config) -> None:
    """Registers what receives reports, in the one process that receives them all."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reports(config), "budget-reports")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks slow tests, and leaves out tests that the options do not select."""
    durations, kept = read_durations(config.rootpath), read_kept(config.rootpath)
    for item in items:
        if item.get_closest_marker("slow"):
            raise pytest.UsageError(f"{item.nodeid} is marked slow by hand; `make durations` measures what is slow")
        if is_over(item.nodeid, durations) and item.nodeid not in kept and not item.get_closest_marker("always"):
            item.add_marker(pytest.mark.slow)
    if file := config.getoption("list"):
        marks = {item.nodeid: sorted({mark.name for mark in item.iter_markers()}) for item in items}
        Path(file).write_text(json.dumps(marks))
    if config.getoption("unmeasured"):
        _keep(config, items, {item.nodeid for item in items if durations.get(item.nodeid) is None})
    if only := config.getoption("only"):
        names = set(Path(only).read_text().splitlines())
        if unknown := names - {item.nodeid for item in items}:
            raise pytest.UsageError(f"--only: {only} names tests that were not collected: {', '.join(sorted(unknown))}")
        _keep(config, items, names)


def _keep(config: pytest.Config, items: list[pytest.Item], names: set[str]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Starts measuring a test."""
    item.stash[STARTED] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds to the reports of a test, each after one of its phases, the CPU seconds since its start."""
    report = yield
    report.cpu_seconds = cpu_seconds() - item.stash[STARTED]  # pyright: ignore[reportOptionalMemberAccess]
    return report


class Reports:
    """Writes what `--measure` asks for, and lists tests that are over the budget though nothing says so."""

    def __init__(self, config: pytest.Config) -> None:
        """Makes an empty file for the measured durations, if they are asked for."""
        self.kept = read_kept(config.rootpath)
        self.measure = config.getoption("measure")
        self.outcomes: dict[str, str] = {}
        self.unexpected: dict[str, float] = {}
        if self.measure:
            Path(self.measure).parent.mkdir(parents=True, exist_ok=True)
            Path(self.measure).write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Records a test after its last phase."""
        name, crashed = report.nodeid, report.when not in ("setup", "call", "teardown")
        if report.outcome != "passed":
            self.outcomes[name] = report.outcome
        if report.when != "teardown" and not crashed:
            return
        seconds, outcome = getattr(report, "cpu_seconds", 0.0), self.outcomes.pop(name, "passed")
        if self.measure:
            with Path(self.measure).open("a") as file:
                file.write(json.dumps({"test": name, "cpu": round(seconds, 2), "outcome": outcome}) + "\n")
        if (
            seconds > SURPRISING * budget_of(name)
            and name not in self.kept
            and not {"slow", "always"} & set(report.keywords)
        ):
            self.unexpected[name] = seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Lists the tests that `make durations` would move to the long run, or that have outdated durations."""
        if not self.unexpected:
            return
        rows = sorted(self.unexpected.items(), key=lambda row: -row[1])
        terminalreporter.section(
            f"{len(rows)} tests took much more than their budget of CPU seconds: see `make durations`"
        )
        for name, seconds in rows[:SHOWN]:
            terminalreporter.line(f"{seconds:6.1f} s {name}")
