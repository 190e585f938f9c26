"""Shows and runs the parts of the long run.

python -m tests.loop.parts show | run PART ... | all | turn NUMBER SECONDS
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from tests.loop.collection import ROOT, collect
from tests.loop.durations import read_durations
from tests.loop.units import JOBS, LIMIT, TARGETS, Estimates, Unit, cut, expected_seconds, list_units

FILES = ROOT / ".cache" / "parts"
DUE = FILES / "due.json"  # units to run first next time: [[job, name], ...]
STAGES = ROOT / ".cache" / "stages"


def show(parts: Sequence[Sequence[Unit]], tests: dict[int, dict[str, set[str]]]) -> None:
    """Prints the parts, and what `make test` leaves out."""
    durations = read_durations(ROOT)
    for number, part in enumerate(parts):
        print(f"part {number}: {_describe(part)}, about {expected_seconds(part):.0f} s on two cores")
    estimate = Estimates(durations)
    quick = [name for name, marks in tests[32].items() if "slow" not in marks]
    wide = [name for name, marks in tests[64].items() if "precision" in marks and "slow" not in marks]
    unknown = sum(durations.get(name) is None for name in tests[32])
    print(
        f"{len(parts)} parts, {sum(map(expected_seconds, parts)) / 60:.0f} minutes\n"
        f"`make test` runs {len(quick)} of {len(tests[32])} tests in 32 bits, {len(wide)} of {len(tests[64])} in 64: "
        f"{sum(map(estimate, quick)):.0f} and {sum(map(estimate, wide)):.0f} CPU seconds\n"
        f"{unknown} tests have no figure: {estimate.assumed[True]:.1f} CPU seconds assumed for a slow one, "
        f"{estimate.assumed[False]:.1f} for another"
    )


def _describe(part: Sequence[Unit]) -> str:
    jobs = [(job, len(list(units))) for job, units in groupby(part, key=lambda unit: unit.job)]
    return ", ".join(f"make {job}" if job in TARGETS else f"{count} tests in {job}" for job, count in jobs)


def run_part(parts: Sequence[Sequence[Unit]], number: int, seconds: float | None = None) -> list[Unit]:
    """Runs a part, and prints the seconds of each job.

    Args:
        parts: all parts.
        number: which one is run.
        seconds: when it is stopped; None for never.

    Returns:
        The units that failed or were not run.
    """
    start, failed = time.monotonic(), []
    print(f"part {number} of {len(parts)}: {_describe(parts[number])}", flush=True)
    for job, units in groupby(parts[number], key=lambda unit: unit.job):
        begun = time.monotonic()
        left = None if seconds is None else max(0.0, start + seconds - begun)
        failed += _run_job(number, job, list(units), left)
        _print_stage(f"part {number}, {job}: {time.monotonic() - begun:.0f} s")
    spent = time.monotonic() - start
    late = f", MORE THAN THE {LIMIT:.0f} s OF A PART" if spent > LIMIT else ""
    result = "FAILED" if failed else "passed"
    _print_stage(f"part {number}: {spent:.0f} s{late}; {expected_seconds(parts[number]):.0f} s expected; {result}")
    return failed


def _print_stage(line: str) -> None:
    print(f"stage {line}", flush=True)
    with STAGES.open("a") as file:
        file.write(f"stage {line}\n")


def _run_job(number: int, job: str, units: list[Unit], seconds: float | None) -> list[Unit]:
    """Returns the units that failed or were not run."""
    measured = FILES / f"{number}-{job.replace(' ', '-')}.jsonl"
    measured.unlink(missing_ok=True)
    process = subprocess.Popen(_command(job, units, measured), cwd=ROOT, env=_environment(job), start_new_session=True)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        status = process.wait()
        print(f"part {number}, {job}: STOPPED after {seconds:.0f} s", flush=True)
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    if not status:
        return []
    rows = [json.loads(line) for line in measured.read_text().splitlines()] if measured.exists() else []
    passed = {row["test"] for row in rows if row["outcome"] != "failed"}
    print(f"part {number}, {job}: {len(passed)} of {len(units)} passed", flush=True)
    return [unit for unit in units if unit.name not in passed] or units


def _failed(number: int) -> set[str]:
    """Returns the tests of a part that are recorded as failed."""
    lines = [line for file in FILES.glob(f"{number}-*.jsonl") for line in file.read_text().splitlines()]
    return {row["test"] for row in map(json.loads, lines) if row["outcome"] == "failed"}


def _command(job: str, units: list[Unit], measured: Path) -> list[str | Path]:
    if job in TARGETS:
        return ["make", "--no-print-directory", job]
    names = measured.with_suffix(".txt")
    names.write_text("".join(f"{unit.name}\n" for unit in units))
    files = sorted({unit.name.split("::")[0] for unit in units})
    workers = ["-n", os.environ.get("WORKERS", "2"), "--dist", "worksteal"]
    return [sys.executable, "-m", "pytest", *workers, "--only", names, "--measure", measured, *files]


def _environment(job: str) -> dict[str, str]:
    if job in TARGETS:
        return dict(os.environ)
    flags = "" if JOBS[job].optimised else os.environ["QUICKLY"]
    return {
        **os.environ,
        "JAX_ENABLE_X64": str(int(JOBS[job].bits == 64)),
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),  # of a blank XLA makes the name of a file
    }


def take_turn(parts: Sequence[Sequence[Unit]], count: int, seconds: float) -> bool:
    """Runs the parts that are due, then part `count` modulo their number, and returns whether all passed.

    A part is due if it failed in an earlier run, was interrupted, or had no time: that it had none is printed, and is
    no failure, unless a test failed before its time was up. Units and not numbers are recorded, since tests that change
    move the ends of parts. The record is renewed before each part, so that a run that is killed forgets none.
    """
    end, turn = time.monotonic() + seconds, count % len(parts)
    due = [tuple(pair) for pair in json.loads(DUE.read_text())] if DUE.exists() else None
    owed = {number: [unit for unit in part if unit[:2] in set(due or ())] for number, part in enumerate(parts)}
    owed = {number: units for number, units in owed.items() if units}
    print(f"part {turn} of {len(parts)} has its turn: {count} modulo {len(parts)}")
    if due is None:
        print(
            "earlier runs left no record here: a part that failed in one of them is not known, and waits for its turn"
        )
    elif owed:
        print(f"first those that failed or were not run to their end: {', '.join(map(str, owed))}")
    owed.setdefault(turn, [parts[turn][0]])
    passed = True
    for place, number in enumerate([*owed]):
        _write_due(owed)
        left = end - time.monotonic()
        if place and expected_seconds(parts[number]) > left:
            _print_stage(f"part {number}: NOT RUN for want of time; the next run owes it, if .cache is kept")
        else:
            owed[number] = run_part(parts, number, left)
            in_time = time.monotonic() < end
            passed &= not (owed[number] and in_time) and not _failed(number) & {unit.name for unit in owed[number]}
            if owed[number] and not in_time:
                _print_stage(f"part {number}: NOT RUN to its end for want of time; the next run owes the rest")
    _write_due(owed)
    return passed


def _write_due(owed: Mapping[int, Sequence[Unit]]) -> None:
    DUE.write_text(json.dumps([unit[:2] for units in owed.values() for unit in units]))


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line; its status is 1 if something failed."""
    parser = argparse.ArgumentParser(prog="parts", description="The long run, in parts.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("show", help="print the parts")
    commands.add_parser("all", help="run all parts")
    run = commands.add_parser("run", help="run some parts")
    run.add_argument("parts", type=int, nargs="+")
    turn = commands.add_parser("turn", help="run the part whose turn it is, after those that failed")
    turn.add_argument("count", type=int, help="the number of commits")
    turn.add_argument("seconds", type=float, help="when parts are stopped")
    options, start = parser.parse_args(arguments), time.monotonic()
    FILES.mkdir(parents=True, exist_ok=True)
    tests = collect()
    parts = cut(list_units(tests, read_durations(ROOT)))
    if options.command == "show":
        return show(parts, tests)
    if options.command == "turn":
        sys.exit(not take_turn(parts, options.count, options.seconds - (time.monotonic() - start)))
    numbers = range(len(parts)) if options.command == "all" else options.parts
    if unknown := [number for number in numbers if number not in range(len(parts))]:
        parser.error(f"PART must be one of the parts 0 to {len(parts) - 1}, got {unknown[0]}")
    failed = [number for number in numbers if run_part(parts, number)]
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
