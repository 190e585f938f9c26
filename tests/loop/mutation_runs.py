"""Runs the tests that name a mutated file, in copies of a checkout."""

import json
import os
import queue
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.loop import naming
from tests.loop.durations import read_kept, write_kept
from tests.loop.mutations import ROOT, Mutation
from tests.loop.selection import Selection, kind_of
from tests.loop.stages import compile_quickly

MOST_SECONDS = 300  # of a processor, for each of the two processes of a mutation
NEAREST = 20  # tests that the first process runs; the second one runs the others
TOOLS = ("__init__.py", "durations.py", "mutation_runs.py", "mutations.py", "naming.py", "running.py", "selection.py")
TOOLS += ("stages.py", "budgets.py")  # an older checkout gets these
CONTRACT = "tests/contract"
NO_TESTS = 5  # exit status of pytest


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
        self.lock = threading.Lock()
        self.failing: dict[str, bool] = {}  # without any mutation, by test
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
        select = [sys.executable, "-m", "tests.loop.mutation_runs", marks, *there]
        done = subprocess.run(
            select, cwd=self.clean, env=_environment(self.clean), stdout=subprocess.PIPE, text=True, check=True
        )
        self.tests: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])

    def close(self) -> None:
        """Removes the copies."""
        self.folder.cleanup()

    def run(self, mutation: Mutation) -> dict[str, Any]:
        """Returns the outcome of a mutation as a row: its verdict, the test that noticed it, and seconds."""
        copy, start = self.free.get(), time.monotonic()
        path, failing = copy / mutation.path, list[str]()
        verdict, by = "not there", ""
        text = path.read_text() if path.exists() else ""
        try:
            path.write_text(mutation.mutated(text))
            tests = self.tests[mutation.path]
            while True:  # tests that fail anyway are left out
                verdict, by = _first_failure(copy, [test for test in tests if test not in failing])
                if verdict != "noticed" or not self.fails_anyway(by):
                    break
                failing.append(by)
        except (ValueError, FileNotFoundError):
            pass
        finally:
            if text:
                path.write_text(text)
            self.free.put(copy)
        seconds = time.monotonic() - start
        return {"mutation": str(mutation), "verdict": verdict, "by": by, "seconds": seconds, "failing": failing}

    def fails_anyway(self, test: str) -> bool:
        """Returns whether a test fails without a mutation."""
        with self.lock:
            if test not in self.failing:
                self.failing[test] = _pytest(self.clean, [test]).returncode not in (0, NO_TESTS)
            return self.failing[test]


def _first_failure(copy: Path, tests: list[str]) -> tuple[str, str]:
    """Returns the verdict and the first test that fails."""
    for part in (tests[:NEAREST], tests[NEAREST:]):
        if not part:
            continue
        done = _pytest(copy, ["-x", *part])
        failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if failed:
            return "noticed", failed[0]
        if done.returncode < 0:
            return "no time", ""
        if done.returncode not in (0, NO_TESTS):
            return "noticed", f"pytest: {' '.join((done.stdout + done.stderr).split())[-200:]}"
    return "survived", ""


def _pytest(copy: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a copy, in a process that ends when it has used its time."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(copy)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    return subprocess.run(
        [*command, *arguments], cwd=copy, env=_environment(copy), capture_output=True, text=True, preexec_fn=limit
    )


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy)}


class Selections:
    """A pytest plugin: the tests that name each of some files, nearest first.

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

            def place(item: pytest.Item, path: str = path, chosen: Selection = chosen) -> tuple[Any, ...]:
                _, is_other, seconds = chosen.place(item)
                package = Path("tests", *Path(path).parts[1:2]).as_posix()
                nearness = [not is_other, kind_of(item) == "golden", item.nodeid.startswith((path, package))]
                return *(not is_near for is_near in nearness), not item.nodeid.startswith(CONTRACT), item.path, seconds

            self.tests[path] = [item.nodeid for item in sorted(named, key=place)]


def keep(root: Path, test: str) -> None:
    """Adds a slow test to those that `make test` runs at any duration."""
    write_kept(root, {*read_kept(root), test})


if __name__ == "__main__":
    plugin = Selections(sys.argv[2:])
    pytest.main(["--collect-only", "-q", "-q", "-p", "no:cacheprovider", "-m", sys.argv[1]], plugins=[plugin])
    print(json.dumps(plugin.tests))
