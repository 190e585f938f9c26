"""The plugin that marks slow tests, over a small folder of tests with durations of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop.durations import merge, read_durations, read_measured, write_durations

ROOT = Path(__file__).parents[2]
TESTS = """
import time

import pytest


def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_quick(): pass
def test_new(): pass
def test_slow(): pass
def test_unmeasured(): pass
def test_kept(): pass
@pytest.mark.always
def test_always(): pass
@pytest.fixture
def costly():
    spend(0.3)
    yield
    spend(0.2)
def test_busy(costly): spend(0.5)
def test_waiting(): time.sleep(0.6)
def test_wrong(): assert False
"""
DURATIONS = {
    "test_it.py::test_quick": 3.0,
    "test_it.py::test_slow": 3.1,
    "test_it.py::test_unmeasured": None,
    "test_it.py::test_kept": 50.0,
    "test_it.py::test_always": None,
}
LEFT_OUT = {"test_slow", "test_unmeasured"}
TOO_BUSY = """

@pytest.mark.always
def test_known(): spend(0.3)
def test_over(): spend(0.3)
"""
ALL = {line[4 : line.index("(")] for line in TESTS.splitlines() if line.startswith("def test")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of tests whose rootdir has durations of its own."""
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "tests/loop").mkdir(parents=True)
    (folder / "tests/loop/durations.json").write_text(json.dumps(DURATIONS))
    (folder / "tests/loop/kept.json").write_text(json.dumps(["test_it.py::test_kept"]))
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = -q -p tests.loop.budgets\nmarkers =\n    slow\n    always\n"
    )
    return folder


def run(folder, *arguments):
    """Returns the exit status, what was printed, and the outcome and seconds of the tests that ran, by their names."""
    measured = folder / "measured" / "tests.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--measure", measured, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "" if "-n" in arguments else "1"},
        capture_output=True,
        text=True,
    )
    rows = [json.loads(line) for line in measured.read_text().splitlines()]
    return done.returncode, done.stdout + done.stderr, {row["test"].split("::")[1]: row for row in rows}


def test_only_tests_within_the_budget_run(folder):
    status, printed, rows = run(folder, "-m", "not slow")
    assert status == 1, printed
    assert set(rows) == ALL - LEFT_OUT
    _, printed, rows = run(folder, "-m", "slow")
    assert set(rows) == LEFT_OUT, printed


def test_seconds_and_outcomes_are_those_of_all_phases(folder):
    _, printed, rows = run(folder, "-n", "1")
    assert set(rows) == ALL, printed
    assert {name for name, row in rows.items() if row["outcome"] == "failed"} == {"test_wrong"}
    assert 0.9 < rows["test_busy"]["cpu"] < 1.5
    assert rows["test_waiting"]["cpu"] < 0.3
    assert "CPU seconds" not in printed


def test_tests_are_chosen_by_name_or_for_want_of_a_figure(folder):
    assert set(run(folder, "--unmeasured")[2]) == ALL - {"test_quick", "test_slow", "test_kept"}
    (folder / "names").write_text("test_it.py::test_new\ntest_it.py::test_slow\n")
    assert set(run(folder, "--only", "names")[2]) == {"test_new", "test_slow"}
    (folder / "names").write_text("test_it.py::test_new\ntest_it.py::test_gone\n")
    status, printed, rows = run(folder, "--only", "names")
    assert status
    assert "test_gone" in printed
    assert not rows


def test_a_test_that_has_become_slow_is_reported(folder):
    (folder / "test_it.py").write_text(TESTS + TOO_BUSY)
    (folder / "conftest.py").write_text("import tests.loop.budgets\n\ntests.loop.budgets.BUDGET = 0.25\n")
    status, printed, _ = run(folder, "-k", "over or known")
    assert not status, printed
    assert "1 tests took more than 0.25 CPU seconds" in printed
    assert "test_it.py::test_over" in printed
    assert "test_known" not in printed


def test_new_figures_replace_old_ones_that_differ_by_more_than_noise():
    old = {"a": 1.0, "b": 1.0, "c": 8.0, "d": None, "gone": 1.0}
    measured = {"a": 1.4, "b": 1.63, "c": 5.9, "d": 0.04, "e": 2.0, "other": 1.0}
    merged = merge(old, measured, tests={"a", "b", "c", "d", "e", "f"})
    assert list(merged.items()) == [("a", 1.0), ("b", 1.6), ("c", 5.9), ("d", 0.0), ("e", 2.0)]


def test_measured_figures_are_of_tests_that_passed_or_were_skipped(tmp_path):
    rows = [("a", 0.5, "passed"), ("b", 0.5, "failed"), ("a", 0.6, "skipped")]
    file = tmp_path / "measured"
    file.write_text("".join(json.dumps(dict(zip(("test", "cpu", "outcome"), row, strict=True))) + "\n" for row in rows))
    assert read_measured([file]) == {"a": 0.6}


def test_durations_are_written_one_a_line_in_order(tmp_path):
    (tmp_path / "tests/loop").mkdir(parents=True)
    write_durations(tmp_path, {"b": None, "a": 0.5})
    assert (tmp_path / "tests/loop/durations.json").read_text() == '{\n"a": 0.5,\n"b": null\n}\n'
    assert read_durations(tmp_path) == {"a": 0.5, "b": None}
