"""The plugin that marks slow tests, over a small folder of tests with durations of its own."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from tests.loop import budgets
from tests.loop.durations import is_over, merge, read_durations, read_measured, write_durations

pytest_plugins = "pytester"
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
    spend(0.1)
    yield
    spend(0.1)
def test_busy(costly): spend(0.1)
def test_waiting(): time.sleep(0.4)
def test_wrong(): assert False
"""
DURATIONS = {
    "test_it.py::test_quick": 0.2,
    "test_it.py::test_slow": 0.3,
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


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest over a small folder; returns its status, its output, and a row for each test that ran."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    loop = pytester.mkdir("tests") / "loop"
    loop.mkdir()
    (loop / "durations.json").write_text(json.dumps(DURATIONS))
    (loop / "kept.json").write_text(json.dumps(["test_it.py::test_kept"]))
    pytester.makefile(".py", test_it=TESTS)
    pytester.makefile(".ini", pytest="[pytest]\naddopts = -q -p tests.loop.budgets\nmarkers =\n    slow\n    always\n")

    def run(*arguments):
        # Plugins of other packages may use marks that are not declared here.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        if "-n" in arguments:
            arguments = ("-p", "xdist.plugin", *arguments)
        measured = pytester.path / "measured" / "tests.jsonl"
        done = pytester.runpytest("--measure", measured, *arguments)
        rows = [json.loads(line) for line in measured.read_text().splitlines()]
        return done.ret, f"{done.stdout}{done.stderr}", {row["test"].split("::")[1]: row for row in rows}

    return run


def test_only_tests_within_the_budget_run(run):
    status, printed, rows = run("-m", "not slow")
    assert status == 1, printed
    assert set(rows) == ALL - LEFT_OUT
    _, printed, rows = run("-m", "slow")
    assert set(rows) == LEFT_OUT, printed


def test_seconds_and_outcomes_are_those_of_all_phases(run):
    _, printed, rows = run("-n", "1")
    assert set(rows) == ALL, printed
    assert {name for name, row in rows.items() if row["outcome"] == "failed"} == {"test_wrong"}
    assert 0.28 < rows["test_busy"]["cpu"] < 0.6
    assert rows["test_waiting"]["cpu"] < 0.2
    assert "their budget" not in printed


def test_tests_are_chosen_by_name_or_for_want_of_a_figure(run, pytester):
    assert set(run("--unmeasured")[2]) == ALL - {"test_quick", "test_slow", "test_kept"}
    pytester.path.joinpath("names").write_text("test_it.py::test_new\ntest_it.py::test_slow\n")
    assert set(run("--only", "names")[2]) == {"test_new", "test_slow"}
    pytester.path.joinpath("names").write_text("test_it.py::test_new\ntest_it.py::test_gone\n")
    status, printed, rows = run("--only", "names")
    assert status
    assert "test_gone" in printed
    assert not rows


def test_a_test_that_has_become_slow_is_reported(run, pytester, monkeypatch):
    pytester.makefile(".py", test_it=TESTS + TOO_BUSY)
    monkeypatch.setattr(budgets, "SURPRISING", 0.5)
    status, printed, _ = run("-k", "over or known")
    assert not status, printed
    assert "1 tests took much more than their budget" in printed
    assert "test_it.py::test_over" in printed
    assert "test_known" not in printed


def test_comparisons_and_mistakes_have_a_larger_budget():
    files = ("privacy/test_it", "algorithms/dueling/rucb/test_golden", "algorithms/bandits/test_golden_arms")
    quick = {f"tests/{file}.py::test_it": 2.0 for file in (*files, "algorithms/dueling/rucb/test_mistakes")}
    slow = {f"tests/{file}.py::test_it": 2.0 for file in ("audit/test_it", "algorithms/dueling/rucb/test_rucb")}
    assert [name for name in {**quick, **slow} if is_over(name, {**quick, **slow})] == [*slow]
    assert all(is_over(name, {name: 3.1}) for name in quick)


def test_a_mark_by_hand_is_refused(run, pytester):
    pytester.makefile(".py", test_it="import pytest\n\n@pytest.mark.slow\ndef test_it(): pass\n")
    status, printed, rows = run()
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py::test_it is marked slow by hand" in printed
    assert not rows


def test_new_figures_replace_old_ones_that_differ_by_more_than_noise():
    old = {"a": 1.0, "b": 1.0, "c": 8.0, "d": None, "f": 0.16, "g": 0.16, "gone": 1.0}
    measured = {"a": 1.2, "b": 1.631, "c": 5.9, "d": 0.04, "e": 2.0, "f": 0.2, "g": 0.22, "other": 1.0}
    merged = merge(old, measured, tests={*"abcdefgh"})
    assert merged == {"a": 1.0, "b": 1.63, "c": 5.9, "d": 0.04, "e": 2.0, "f": 0.16, "g": 0.22}
    assert list(merged) == sorted(merged)


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


def test_matrix_products_use_one_thread():
    """Compares the process's time with this thread's time. Cannot fail on one core, where OpenBLAS has one thread."""
    matrix = np.ones((400, 400))
    process, thread = time.process_time(), time.thread_time()
    for _ in range(16):
        np.matmul(matrix, matrix)
    assert time.process_time() - process < 1.3 * (time.thread_time() - thread) + 0.01
