"""How the long run is cut: everything that `make test` leaves out, in parts that are short enough and hardly move."""

import json
import os
import subprocess

import pytest

from tests.loop import parts as module
from tests.loop.collection import ROOT
from tests.loop.parts import main, run_part, take_turn
from tests.loop.units import (
    CORES,
    JOBS,
    LIMIT,
    OPTIMISED,
    PLANNED,
    TARGETS,
    Estimates,
    Unit,
    cut,
    expected_seconds,
    list_units,
)

MARKS = {
    "a::quick": set(),
    "a::slow": {"slow"},
    "b::precise": {"precision"},
    "b::both": {"precision", "slow"},
    "c::lanes": {"optimised"},
    "c::slow_lanes": {"optimised", "slow"},
}
TESTS = {32: MARKS, 64: MARKS | {"b::wide": set()}}
DURATIONS = {
    "a::quick": 0.2,
    "a::slow": 10.0,
    "b::precise": 0.1,
    "b::both": None,
    "c::lanes": 2.5,  # over the budget, and not of those that take longest
    "c::slow_lanes": 10.0,
}


def test_the_long_run_is_what_is_left_out():
    units = list_units(TESTS, DURATIONS)
    assert [unit[:2] for unit in units] == [
        ("64 bits", "a::quick"),
        ("64 bits", "a::slow"),
        ("64 bits", "b::both"),
        ("64 bits", "b::wide"),
        ("64 bits optimised", "c::lanes"),
        ("64 bits optimised", "c::slow_lanes"),
        ("32 bits optimised", "a::quick"),
        ("32 bits optimised", "a::slow"),
        ("32 bits optimised", "b::both"),
        ("32 bits optimised", "b::precise"),
        ("32 bits optimised", "c::slow_lanes"),
        *((target, target) for target in TARGETS),
    ]
    seconds = {unit[:2]: unit.seconds for unit in units}
    assert seconds["64 bits", "a::slow"] == 10.0 / CORES
    assert seconds["32 bits optimised", "a::slow"] == OPTIMISED * 10.0 / CORES
    assert seconds["64 bits optimised", "c::lanes"] == 2.5 / CORES  # measured with optimisation


def test_tests_without_a_figure_take_as_long_as_others():
    estimate = Estimates(DURATIONS)
    assert (estimate("b::both"), estimate("new"), estimate("a::slow")) == (10.0, (0.2 + 0.1) / 2, 10.0)
    assert Estimates({})("new") > 0


@pytest.fixture(scope="module")
def units():
    """Makes many units of uneven sizes, and two targets."""
    sizes = [5.0 + (7919 * place) % 101 for place in range(200)]
    tests = [
        Unit("64 bits" if place < 120 else "32 bits optimised", f"t{place}", size) for place, size in enumerate(sizes)
    ]
    return [*tests, Unit("docs", "docs", 700.0), Unit("test-newest", "test-newest", 900.0)]


def test_parts_are_few_short_and_in_order(units):
    parts = cut(units)
    assert [unit for part in parts for unit in part] == units
    seconds = [expected_seconds(part) for part in parts]
    assert max(seconds) <= PLANNED < LIMIT
    assert len(parts) <= sum(seconds) / PLANNED + 3
    assert cut(units) == parts


def test_a_new_test_leaves_most_others_in_their_part(units):
    before, after = (
        {unit[:2]: number for number, part in enumerate(cut(some)) for unit in part}
        for some in (units, [*units[:50], Unit("64 bits", "t49b", 30.0), *units[50:]])
    )
    assert sum(before[unit] != after[unit] for unit in before) < len(units) / 10


def test_a_unit_longer_than_a_part_is_one_of_its_own():
    long = Unit("docs", "docs", 2 * LIMIT)
    assert cut([Unit("32 bits optimised", "a", 1.0), long, Unit("x", "b", 1.0)])[1] == [long]


PARTS = [[Unit("32 bits optimised", f"test_{number}", 100.0)] for number in range(4)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes a folder in which parts are recorded, and the numbers of those that ran; those in `wrong` fail."""
    monkeypatch.setattr(module, "DUE", tmp_path / "due.json")
    monkeypatch.setattr(module, "STAGES", tmp_path / "stages")
    return tmp_path


def turn(monkeypatch, count, seconds=1000.0, wrong=()):
    """Takes a turn; returns whether all passed, and which parts ran."""
    ran = []

    def run(parts, number, seconds):
        ran.append(number)
        return parts[number] if number in wrong else []

    monkeypatch.setattr(module, "run_part", run)
    return take_turn(PARTS, count, seconds), ran


def test_parts_take_turns_and_one_that_failed_runs_first(folder, monkeypatch, capsys):
    assert turn(monkeypatch, 6) == (True, [2])
    assert "part 2 of 4 has its turn" in capsys.readouterr().out
    assert turn(monkeypatch, 7, wrong={3}) == (False, [3])
    assert turn(monkeypatch, 8, wrong={3}) == (False, [3, 0])
    assert turn(monkeypatch, 9) == (True, [3, 1])
    assert turn(monkeypatch, 10) == (True, [2])


def test_a_part_without_time_is_reported_and_runs_first_next_time(folder, monkeypatch, capsys):
    assert turn(monkeypatch, 1, wrong={1}) == (False, [1])
    assert turn(monkeypatch, 2, seconds=120.0) == (True, [1])
    assert "part 2: NOT RUN" in capsys.readouterr().out
    assert turn(monkeypatch, 3) == (True, [2, 3])


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_part_that_is_stopped_owes_the_rest_and_fails_if_a_test_did(folder, monkeypatch, capsys, outcome):
    part = [Unit("32 bits optimised", f"test_{number}", 1.0) for number in range(2)]
    monkeypatch.setattr(module, "FILES", folder)
    (folder / "0-32-bits-optimised.jsonl").write_text(json.dumps({"test": "test_0", "outcome": outcome}))

    def stop(parts, number, seconds):
        return part[outcome == "passed" :]

    monkeypatch.setattr(module, "run_part", stop)
    assert take_turn([part], 0, 0.0) == (outcome == "passed")
    assert "part 0: NOT RUN to its end" in capsys.readouterr().out
    assert json.loads((folder / "due.json").read_text()) == [list(unit[:2]) for unit in stop(None, 0, 0.0)]


def test_an_interrupted_run_forgets_no_part(folder, monkeypatch):
    turn(monkeypatch, 1, wrong={1})

    def stop(parts, number, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_part", stop)
    with pytest.raises(KeyboardInterrupt):
        take_turn(PARTS, 2, 1000.0)
    assert turn(monkeypatch, 3) == (True, [1, 2, 3])


def test_all_units_that_failed_are_recorded(folder, monkeypatch):
    parts = [[Unit("32 bits optimised", f"test_{number}", 1.0) for number in range(4)]]
    monkeypatch.setattr(module, "run_part", lambda parts, number, seconds: parts[0][1:3])
    assert not take_turn(parts, 0, 1000.0)
    ran = []
    monkeypatch.setattr(module, "run_part", lambda parts, number, seconds: ran.append(number) or [])
    assert take_turn([[unit] for unit in parts[0]], 0, 1000.0)
    assert ran == [1, 2, 0]


def test_without_a_record_nothing_is_claimed_about_earlier_runs(folder, monkeypatch, capsys):
    turn(monkeypatch, 0)
    assert "not known" in capsys.readouterr().out
    turn(monkeypatch, 1)
    assert "not known" not in capsys.readouterr().out


def test_what_failed_or_did_not_run_is_returned(folder, monkeypatch, capsys):
    units = [Unit("32 bits optimised", f"test_it.py::test_{name}", 1.0) for name in ("right", "wrong", "last")]
    rows = [
        {"test": units[0].name, "cpu": 1.0, "outcome": "passed"},
        {"test": units[1].name, "cpu": 1.0, "outcome": "failed"},
    ]
    monkeypatch.setattr(module, "FILES", folder)

    def command(end):
        return lambda job, units, measured: [
            "sh",
            "-c",
            f"printf '%s\\n' '{json.dumps(rows[0])}' '{json.dumps(rows[1])}' >{measured}; {end}",
        ]

    monkeypatch.setattr(module, "_command", command("exit 1"))
    assert run_part([units], 0) == units[1:]
    assert "1 of 3 passed" in capsys.readouterr().out
    monkeypatch.setattr(module, "_command", command("exit 0"))
    assert run_part([units], 0) == []
    monkeypatch.setattr(module, "_command", command("sleep 60"))
    assert run_part([units], 0, seconds=1.0) == units[1:]
    printed = capsys.readouterr().out
    assert "STOPPED after 1 s" in printed
    assert "FAILED" in printed
    monkeypatch.setattr(module, "LIMIT", 0.0)
    monkeypatch.setattr(module, "_command", command("exit 0"))
    run_part([units], 0)
    assert "MORE THAN" in (folder / "stages").read_text().splitlines()[-1]


def test_a_part_that_does_not_exist_is_refused(folder, monkeypatch, capsys):
    monkeypatch.setattr(module, "FILES", folder)
    monkeypatch.setattr(module, "collect", lambda: TESTS)
    with pytest.raises(SystemExit) as stopped:
        main(["run", "99"])
    assert stopped.value.code == 2
    assert "PART must be one of the parts 0 to" in capsys.readouterr().err


def test_flags_of_optimised_jobs_name_no_file(monkeypatch):
    """Checks flags: XLA takes one without a dash, such as a blank, for the name of a file, and ends the process."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("QUICKLY", "--quick=1")
    flags = [module._environment(job)["XLA_FLAGS"] for job in JOBS]
    assert set(flags) == {"", "--quick=1"}


def test_make_passes_no_flags_of_the_shell_that_turn_optimisation_off():
    flags = "--xla_backend_optimization_level=0 --xla_cpu_max_isa=AVX2 --xla_cpu_use_fusion_emitters=false"
    command = ["make", "--no-print-directory", "--eval", "shown:; @echo $$XLA_FLAGS", "shown"]
    shown = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MAKEFLAGS": "", "XLA_FLAGS": flags}, capture_output=True, text=True
    )
    assert shown.stdout.strip() == "--xla_cpu_max_isa=AVX2"
