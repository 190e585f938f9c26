"""Runs the tests that name a mutated file, in copies of a checkout: `python -m tests.loop.mutations --run`.

A mutation has one process, which stops at the first failure. The likeliest tests come first: those that refer to
definitions of the file; then, for its entries, the independent versions, the contract and the distribution; then all
others, and those that name a file which imports it. In each of these groups the quickest come first.
"""

import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.loop import naming
from tests.loop.budgets import cpu_seconds
from tests.loop.durations import read_kept, write_kept
from tests.loop.mutations import NOT_DECIDED, NOT_THERE, NOTICED, ROOT, SURVIVED, Mutation
from tests.loop.selection import Selection, kind_of
from tests.loop.stages import compile_quickly

MOST_SECONDS = 400.0  # processor time for a mutation, after which no further test starts
HARD = 600  # of a processor, for a process
TOOLS = ("__init__.py", "durations.py", "mutation_runs.py", "mutations.py", "naming.py", "running.py", "selection.py")
TOOLS += ("stages.py", "budgets.py")  # an older checkout gets these
CONTRACT = ("tests/contract/test_structure.py", "tests/contract/test_distribution.py")
BYTECODE = ROOT / ".cache" / "bytecode"  # if the Makefile has it; the copy's is removed with the copy
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:xdist")
ENDS = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Copies:
    """Copies of a checkout, each for one mutation at a time. They share a cache of compiled programs.

    Args:
        root: of the checkout.
        number: of copies.
        paths: of the files that are mutated, from the root.
        marks: pytest's expression for the tests that run.
    """

    def __init__(self, root: Path, number: int, paths: Iterable[str], marks: str) -> None:
        compile_quickly()
        self.folder = tempfile.TemporaryDirectory(prefix="jaxdp-mutations-")
        self.free: queue.Queue[Path] = queue.Queue()
        command = ["git", "ls-files", "-co", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        for copy in (Path(self.folder.name, str(place)) for place in range(number + 1)):
            for name in listed.stdout.splitlines():
                if (root / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(root / name, copy / name)
            (copy / "tests" / "loop").mkdir(exist_ok=True)
            for name in TOOLS:
                if (ROOT / "tests" / "loop" / name).exists():
                    shutil.copy(ROOT / "tests" / "loop" / name, copy / "tests" / "loop" / name)
            (copy / ".cache").symlink_to(ROOT / ".cache")
            self.free.put(copy)
        self.clean = self.free.get()
        there = [path for path in dict.fromkeys(paths) if (self.clean / path).exists()]
        self.tests: dict[str, list[str]] = _answer(self.clean, tests_by_path, marks, there)

    def close(self) -> None:
        """Removes the copies, and their bytecode."""
        shutil.rmtree(_bytecode(Path(self.folder.name)), ignore_errors=True)
        self.folder.cleanup()

    def run(self, mutation: Mutation, failing: Collection[str] = ()) -> dict[str, Any]:
        """Returns the outcome of a mutation as a row: its verdict, the test that noticed it, and CPU seconds.

        Args:
            mutation: that is made.
            failing: tests that fail without it, too, and are left out.
        """
        copy = self.free.get()
        path, made = copy / mutation.path, {"verdict": NOT_THERE, "by": "", "seconds": 0.0}
        text = path.read_text() if path.exists() else ""
        try:
            path.write_text(mutation.mutated(text))
            _forget(path)
            made = _answer(copy, first_failure, [test for test in self.tests[mutation.path] if test not in failing])
        except (ValueError, FileNotFoundError):
            pass
        finally:
            if text:
                path.write_text(text)
                _forget(path)
            self.free.put(copy)
        return {"mutation": mutation.identity, **made, "failing": sorted(failing)}

    def failing(self, tests: Iterable[str]) -> set[str]:
        """Returns the tests, or files of tests, that fail without a mutation."""
        return set(_answer(self.clean, failures, sorted(set(tests))))


def tests_by_path(marks: str, paths: list[str]) -> dict[str, list[str]]:
    """Returns the tests for each of some files, the likeliest first.

    Args:
        marks: pytest's expression for the tests that run.
        paths: of the files, from the root.
    """
    plugin = Selections(paths)
    pytest.main(["--collect-only", "-q", "-q", *OPTIONS, "-m", marks], plugins=[plugin])
    return plugin.tests


def first_failure(tests: list[str], most_seconds: float = MOST_SECONDS) -> dict[str, Any]:
    """Runs tests up to the first that fails, and returns the verdict."""
    watch = Watch(most_seconds)
    end = pytest.main(["-x", *OPTIONS, *tests], plugins=[watch]) if tests else pytest.ExitCode.OK
    verdict = NOTICED if watch.failed else SURVIVED if end in ENDS and not watch.has_no_time else NOT_DECIDED
    return {"verdict": verdict, "by": next(iter(watch.failed), ""), "seconds": round(cpu_seconds(), 1)}


def failures(tests: list[str]) -> list[str]:
    """Runs tests, and returns those that fail."""
    watch = Watch()
    pytest.main([*OPTIONS, *tests], plugins=[watch])
    return list(watch.failed)


class Watch:
    """A pytest plugin: which tests, or files, fail; and it begins none when the process has used its CPU seconds.

    Args:
        most_seconds: of processors.
    """

    def __init__(self, most_seconds: float = float("inf")) -> None:
        self.most_seconds, self.failed, self.has_no_time = most_seconds, list[str](), False

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Ends the run when there is no time."""
        if cpu_seconds() > self.most_seconds:
            self.has_no_time = True
            pytest.exit("no time")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a test that fails."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Adds a file that cannot be imported."""
        if report.failed:
            self.failed.append(report.nodeid)


class Selections:
    """A pytest plugin: the tests that name each of some files, or a file that imports it; the likeliest first.

    Args:
        paths: of the files, from the root.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths, self.tests = paths, dict[str, list[str]]()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Selects the tests."""
        for path in self.paths:
            chosen = Selection(naming.subject(path))
            named = chosen.of_ids([item for item in items if chosen.names(item)])
            nearest = sorted(
                named, key=lambda item, chosen=chosen: (likelihood(item, chosen.wanted), *chosen.place(item)[1:])
            )
            wider = Selection(chosen.wanted._replace(own=naming.with_importers(naming.ROOT / path)))
            others = [item for item in items if item not in named and wider.names(item)]
            self.tests[path] = [item.nodeid for item in (*nearest, *sorted(others, key=wider.place))]


def likelihood(item: pytest.Item, wanted: naming.Subject) -> int:
    """Returns in which group a test runs, 0 first."""
    function = getattr(item, "originalname", None) or item.name
    owner = getattr(item, "cls", None)
    if isinstance(item, pytest.DoctestItem) or naming.refers_to(
        item.path, owner.__name__ if owner else function, wanted
    ):
        return 0
    if kind_of(item) == "golden":
        return 1
    return 2 + CONTRACT.index(file) if (file := item.nodeid.partition("::")[0]) in CONTRACT else 4


def keep(root: Path, tests: Iterable[str]) -> None:
    """Adds slow tests to those that `make test` runs at any duration."""
    write_kept(root, {*read_kept(root), *tests})


def _answer(copy: Path, function: Any, *given: Any) -> Any:
    """Runs a function of this module in a copy, in a process that ends when it has used its time."""
    source = (
        "import json, sys; from pathlib import Path; from tests.loop import mutation_runs\n"
        f"given = json.loads(Path(sys.argv[1]).read_text())\n"
        f"Path(sys.argv[2]).write_text(json.dumps(mutation_runs.{function.__name__}(*given)))"
    )
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "asked"), Path(folder, "answer")
        asked.write_text(json.dumps(given))
        done = subprocess.run(
            [sys.executable, "-c", source, str(asked), str(answer)],
            cwd=copy,
            env={
                **os.environ,
                "PYTHONPATH": str(copy),
                "PYTHONPYCACHEPREFIX": str(BYTECODE),
                "PYTHONDONTWRITEBYTECODE": "",
            },
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (HARD, HARD)),
        )
        if answer.exists():
            return json.loads(answer.read_text())
    end = f"the process ended with {done.returncode}: {' '.join((done.stdout + done.stderr).split())[-200:]}"
    if function is not first_failure:
        raise RuntimeError(end)
    is_crash = done.returncode < 0 and done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL)
    return {"verdict": NOTICED if is_crash else NOT_DECIDED, "by": end, "seconds": 0.0}


def _forget(path: Path) -> None:
    """Removes a file's bytecode: two versions of one second may have the same length, and Python compares no more."""
    for file in _bytecode(path.parent).glob(f"{path.stem}.*.pyc"):
        file.unlink()


def _bytecode(path: Path) -> Path:
    return BYTECODE / path.resolve().relative_to("/")
