"""The stages of `make check` for one subject.

Each function returns a note, or raises a `FailedError` that begins with the name of the check.
"""

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.metadata
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.golden import same_results
from tests.loop import claims, naming
from tests.loop.budgets import cpu_seconds
from tests.loop.running import FORK, FailedError
from tests.loop.selection import Selection, files_for, kind_of

ROOT = naming.ROOT
KEPT = ROOT / ".cache" / "check"
CHECKOUTS = 4  # of earlier commits that are kept
LANES = 2000  # by which distributions are compared
TRIALS = 10**5
CONFIDENCE = 0.9999  # of an audit: of all entries, all right, one in a hundred versions of the library has one flagged
TESTS_SECONDS = 20.0  # processor time, after which no further test starts


def style(wanted: naming.Subject) -> str:
    """Runs the linter and the formatter over the subject's files, entries and tests."""
    files = list(map(str, naming.with_other_trees(wanted)))
    for what, arguments in (("lint", ["check", "--quiet"]), ("format", ["format", "--check", "--quiet"])):
        done = _ran([sys.executable, "-m", "ruff", *arguments, *files])
        if done.returncode:
            raise FailedError(f"{what}: {_first_line(done.stdout + done.stderr)}")
    return ""


def types(wanted: naming.Subject) -> str:
    """Checks the types of the subject's files, entries and tests."""
    files = list(map(str, naming.with_other_trees(wanted)))
    done = _ran([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *files])
    if done.returncode:
        errors = [line.strip() for line in done.stdout.splitlines() if " error: " in line]
        raise FailedError(f"types: {(errors or [_first_line(done.stdout + done.stderr)])[0]}")
    return ""


def claim(name: str) -> str:
    """Compares an entry's claim with the committed one."""
    from jaxdp.registry.registered import claim_of

    old = {each: made for each, made in claims.claims_in_file().items() if each == name}
    new = {name: claims.rounded(claim_of(naming.entries()[name]).to_dict())}
    for sentence in claims.differences(old, new):
        raise FailedError(f"claim: {sentence}")
    return ""


def contract(name: str, kind: str) -> str:
    """Runs the checks of an entry's contract of one kind, and stops at the first that fails."""
    importlib.import_module("tests.loop.jax_settings")  # sets JAX as the tests have it
    from jaxdp.testing import checks_of

    checks = [each for each in checks_of(name, num_lanes=LANES) if each.kind == kind]
    for each in checks:
        try:
            each()
        except AssertionError as error:
            raise FailedError(f"{each.name}: {error}") from error
    return f"{len(checks)} checks"


def audit(name: str, part: str) -> str:
    """Audits an entry's claim at both of its points, without a search.

    Args:
        name: of the entry.
        part: "noise", the values that get noise and how; or "outputs", by many of them and by their exact distribution.
    """
    importlib.import_module("tests.loop.jax_settings")  # sets JAX as the tests have it
    import jax

    from jaxdp import registry
    from jaxdp.audit import format_notes, scoreboard

    left_out = {"attacks": {}, "distributions": None} if part == "noise" else {"grey_box": None}
    target = dataclasses.replace(registry.attacks([name])[name], **left_out)
    second = target.second
    if second is not None:
        second = dataclasses.replace(second, **left_out)
        target = dataclasses.replace(target, second=second)
    if part == "noise" and target.grey_box is None:
        return "there is no grey box"
    row = next(scoreboard(jax.random.key(0), {name: target}, trials=TRIALS, confidence=CONFIDENCE, searched=False))
    print(*format_notes(row), sep="\n")
    tried = {(each.point, each.path) for each in row.attempts}
    planned = {("", path) for path in target.attacks}
    planned |= {(second.point, path) for path in list(second.attacks)[:1]} if second else set()
    if planned - tried or any(re.match("grey box( at .*)?: ", each) for each in row.notes):
        raise FailedError(f"audit, {part}: {row.notes[0]}")  # it raised an exception, which a scoreboard only notes
    if row.faults:
        raise FailedError(f"audit, noise: {row.faults[0]}")
    bound = f"{row.lower_bound:.3g} of {row.claimed:.3g} claimed"
    if row.verdict == "violated":
        distributions = [each for each in row.notes if each.startswith("exact distribution at ")]
        how = f"at least {bound}"
        if row.lower_bound <= row.claimed:
            how = (
                distributions[0]
                if distributions
                else f"their distribution has {row.exact:.3g}, claimed is {row.claimed:.3g}"
            )
        raise FailedError(f"audit, outputs: {row.currency}: {how}")
    return row.verdict if part == "noise" else f"{row.verdict}, {bound}"


class Watch:
    """A pytest plugin that remembers the first failure, and counts what ran, by kind.

    Tests of independent versions and mistakes start as long as the process has used few CPU seconds for them.
    """

    def __init__(self) -> None:
        self.failure, self.kinds, self.seconds = "", dict[str, int](), dict[str, float]()
        self.kind, self.left, self.until = "", 0, 0.0

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leaves out a test if tests of its kind have used their time."""
        if kind_of(item) == "tests":
            self.until = self.until or cpu_seconds() + TESTS_SECONDS
            if cpu_seconds() > self.until:
                self.left += 1
                return True
        return None

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Notes the kind of the test that runs."""
        self.kind = kind_of(item)
        self.kinds[self.kind] = self.kinds.get(self.kind, 0) + 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds its seconds, and notes its failure."""
        self.seconds[self.kind] = self.seconds.get(self.kind, 0.0) + report.duration
        if report.failed and not self.failure:
            crash: Any = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message if crash else report.longrepr)
            self.failure = f"{self.kind}: {report.nodeid}: {_first_line(reason)}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes a file that cannot be imported."""
        if report.failed and not self.failure:
            self.failure = f"tests: {report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}"

    def note(self) -> str:
        """Returns how many tests of each kind ran, with their seconds."""
        ran = ", ".join(f"{self.kinds[kind]} {kind} in {self.seconds[kind]:.1f} s" for kind in self.kinds)
        return f"{ran}; {self.left} more are left to `make test`" if self.left else ran


def tests(wanted: naming.Subject) -> str:
    """Runs the tests that name the subject: independent versions, then mistakes of the zoo, then all others."""
    watch = Watch()
    options = ["-x", "-p", "no:xdist", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    status = pytest.main([*options, *map(str, files_for(wanted))], plugins=[Selection(wanted), watch])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and not watch.failure:
        if wanted.text in wanted.entries:
            raise FailedError(f"tests: no test names {wanted.text}, and none of its docstrings has an example")
        return f"no test names {wanted.text}: those of its folder are run by the folder's name"
    if status != pytest.ExitCode.OK or watch.failure:
        raise FailedError(watch.failure or f"tests: pytest ended with {status!r}")
    return watch.note()


def results(name: str, may_differ: bool = False) -> str:
    """Compares an entry's results with the results of the last landed commit, in 32 bits.

    Args:
        name: of the entry.
        may_differ: whether a difference is a note and no failure.
    """
    commit, why = reference_commit()
    if commit is None:
        return why
    pattern = rf"^(learner|mechanism|estimator|\d+ arms,) {re.escape(name)}(,|$)"
    folder = _checkout(commit)
    worker = hashlib.sha256(same_results.WORKER.read_bytes()).hexdigest()[:12]
    versions = "-".join(importlib.metadata.version(each) for each in ("jax", "jaxlib", "numpy"))
    file = folder / f"{name}-{worker}-{versions}.pickle"
    if not file.is_file():
        part = file.with_suffix(f".{os.getpid()}")
        same_results.results(folder, 32, pattern, os.environ.get("XLA_FLAGS", ""), part, times=False)
        part.replace(file)
    new = KEPT / f"new-{os.getpid()}.pickle"
    try:
        found = same_results.results(ROOT, 32, pattern, os.environ.get("XLA_FLAGS", ""), new, times=False)
    finally:
        new.unlink(missing_ok=True)
    old = pickle.loads(file.read_bytes())
    if not found:
        raise FailedError(f"results: nothing was compared: {same_results.WORKER.name} has no case of {name}")
    if not old:
        return f"nothing to compare: {name} is not in {commit[:10]}"
    lines = list(same_results.differences(old, found))
    if lines:
        print(*lines, sep="\n")
        if may_differ:
            return f"{len(lines)} of {sum(map(len, found.values()))} outputs differ from those of {commit[:10]}"
        raise FailedError(f"results differ from those of {commit[:10]}: {lines[0]}")
    return f"{sum(map(len, found.values()))} outputs are those of {commit[:10]}"


def reference_commit() -> tuple[str | None, str]:
    """Returns the commit to compare results with; or None, and why there is nothing to compare.

    On a branch it is the last commit that the branch shares with main. On main it is the last commit if the library
    has changed since, and otherwise the commit before it.
    """
    try:
        changed = _git("status", "--porcelain", "--", "jaxdp").strip()
        commit = _landed_commit() or _git("rev-parse", "--verify", "HEAD" if changed else "HEAD~1").strip()
        if not changed and not _git("diff", "--name-only", commit, "HEAD", "--", "jaxdp").strip():
            return None, f"jaxdp is that of {commit[:10]}, file by file"
    except (OSError, subprocess.CalledProcessError):
        return None, "there is no earlier commit to compare with"
    return commit, ""


def _landed_commit() -> str | None:
    """Returns the commit at which HEAD left main, or main as it was last fetched; None if HEAD is there."""
    head = _git("rev-parse", "--verify", "HEAD").strip()
    for main in ("main", "origin/main"):
        with contextlib.suppress(subprocess.CalledProcessError):
            commit = _git("merge-base", "HEAD", main).strip()
            if commit != head:
                return commit
    return None


def _checkout(commit: str) -> Path:
    """Returns a folder with the library as it was at a commit, and removes the oldest of too many."""
    folder = KEPT / commit
    if not folder.is_dir():
        KEPT.mkdir(parents=True, exist_ok=True)
        part = KEPT / f"part-{os.getpid()}"
        archive = subprocess.run(["git", "archive", commit, "jaxdp"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(part, filter="data")
        part.replace(folder)
    os.utime(folder)
    folders = sorted((each for each in KEPT.iterdir() if each.is_dir()), key=lambda each: each.stat().st_mtime)
    for old in folders[:-CHECKOUTS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


@cache
def compile_quickly() -> None:
    """Sets the flags of a quick compilation, those that this XLA knows: it ends a process that names another one."""
    for flag in same_results.QUICKLY.split():
        flags = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
        tried = FORK.Process(target=_start, args=(flags,))
        tried.start()
        tried.join()
        if tried.exitcode == 0:
            os.environ["XLA_FLAGS"] = flags


def _start(flags: str) -> None:
    import jax

    os.environ["XLA_FLAGS"] = flags
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    jax.devices()
    os._exit(0)


def _ran(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
    return done


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
