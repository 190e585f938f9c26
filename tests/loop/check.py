"""Checks one algorithm, or one file or folder of the library, in a minute or two: `make check NAME=rucb`.

It runs, at most two at a time: the claim, against `claims.json`; the contract's checks; the audit without a search, of
the noise and of outputs; the independent version, the known mistakes and other tests that name it; the results, against
those of the last landed commit; the linter and the types. It stops at the first check that fails and prints its name
first. Exit status: 0 if all is well, 1 if a check fails, 2 if there is no such name. If NEW_RESULTS is set and not 0,
results that differ are listed and are no failure.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as conftest.py does: before NumPy is imported

from tests.loop import naming, stages  # noqa: E402
from tests.loop.running import Outcome, Stage, run_in_order  # noqa: E402

MOST = 3  # entries that share a file with a checked contract
Report = Callable[[str], object]


def stages_of(wanted: naming.Subject) -> tuple[list[Stage], list[str]]:
    """Returns the stages for a subject, in the order of its report, and omitted entries.

    A mistake should be named before the line that it made too long: style comes last.
    """
    names = entries_to_check(wanted)
    found = []
    for name in names:
        found.append(Stage(f"claim of {name}", lambda name=name: stages.claim(name)))
        found.append(Stage(f"contract of {name}", lambda name=name: stages.contract(name, "structure")))
        found.append(Stage(f"noise of {name}", lambda name=name: stages.audit(name, "noise")))
        found.append(Stage(f"outputs of {name}", lambda name=name: stages.audit(name, "outputs")))
    found.append(Stage("tests", lambda: stages.tests(wanted)))
    for name in names:
        found.append(Stage(f"distribution of {name}", lambda name=name: stages.contract(name, "distribution")))
    may_differ = os.environ.get("NEW_RESULTS", "") not in ("", "0")
    found += [Stage(f"results of {name}", lambda name=name: stages.results(name, may_differ)) for name in names]
    found += [Stage("style", lambda: stages.style(wanted)), Stage("types", lambda: stages.types(wanted))]
    return found, [name for name in wanted.entries if name not in names]


def entries_to_check(wanted: naming.Subject) -> list[str]:
    """Returns the entry itself; for a file, the entries with a factory in it, or else the first few that use it."""
    defined = naming.entries_defined_in(wanted)
    return [*(wanted.entries if wanted.text in wanted.entries else defined or wanted.entries)][:MOST]


def check(text: str, report: Report = print, choose: Callable[..., tuple[list[Stage], list[str]]] = stages_of) -> int:
    """Checks the subject of a name or path, and reports on it line by line.

    Args:
        text: a registered name, or a path from the root.
        report: is called with each line.
        choose: subject -> stages, and names that are left out.

    Returns:
        The exit status.
    """
    start = time.monotonic()
    try:
        wanted = naming.subject(text)
    except naming.UnknownNameError as error:
        report(str(error))
        return 2
    planned, left_out = choose(wanted)
    shown = ", ".join(file.relative_to(naming.ROOT).as_posix() for file in wanted.files[:4])
    more = f" and {len(wanted.files) - 4} more" if len(wanted.files) > 4 else ""
    report(f"{wanted.text}: {shown}{more}")
    if left_out:
        report(f"left to `make test`: {', '.join(left_out)}")
    seconds = 0.0
    for stage, outcome in run_in_order(planned):
        seconds += outcome.cpu
        if outcome.failure:
            for line in failure_lines(wanted, stage, outcome):
                report(line)
            return 1
        note = f": {outcome.note}" if outcome.note else ""
        report(f"{outcome.wall:6.1f} s, {outcome.cpu:5.1f} of processors: {stage.name}{note}")
    report(f"{time.monotonic() - start:6.1f} s, {seconds + time.process_time():5.1f} of processors: in all")
    return 0


def failure_lines(wanted: naming.Subject, stage: Stage, outcome: Outcome) -> Iterator[str]:
    """Yields the lines of a failure: first the check and its reason, then all that it printed."""
    yield f"{wanted.text}: {' '.join(outcome.failure.split())}"
    yield f"({stage.name}, after {outcome.wall:.1f} s)"
    if outcome.printed.strip():
        yield outcome.printed.rstrip()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        print("NAME must be given: a registered name, or a file or folder of jaxdp, as in: make check NAME=rucb")
        sys.exit(2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(ROOT)
    stages.compile_quickly()
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(check(sys.argv[1]))
