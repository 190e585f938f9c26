"""A user's own learner, estimator and mechanism, from a package outside: listed, checked and audited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxdp import registry
from jaxdp.__main__ import main
from jaxdp.registry import plugins
from jaxdp.registry.searching import _code
from jaxdp.testing import check_registered

REPOSITORY, OWN_MODULE = Path(__file__).parents[2], Path(__file__).with_name("own_algorithms.py")
OWN = ("follow_the_leader", "share_of_ones", "noisy_count", "quiet_count")
# One distribution that works, one with a module that fails, and one with a taken name.
POINTS = {
    "own-algorithms": "all = own_algorithms:register",
    "own-broken": "one = own_broken",
    "own-clash": "one = own_clash:register",
}
BY_IMPORT = "import own_algorithms\nown_algorithms.register()\n"
BROKEN = 'raise RuntimeError("no luck\\ntoday")\n'
CLASH = """
import dataclasses, jaxdp
def register():
    jaxdp.register("laplace", dataclasses.replace(jaxdp.registry.MECHANISMS["laplace"], summary="mine"))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Makes a folder with installed distributions, as pip does."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(OWN_MODULE, folder)
    (folder / "own_broken.py").write_text(BROKEN)
    (folder / "own_clash.py").write_text(CLASH)
    for name, point in POINTS.items():
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[jaxdp.register]\n{point}\n")
    return folder


def python(site, *arguments):
    path = os.pathsep.join([str(site), str(REPOSITORY)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_they_are_listed_and_what_is_broken_is_told(site):
    result = python(site, "-m", "jaxdp", "list", "--all")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout  # no colours in a pipe
    assert max(map(len, result.stdout.splitlines())) <= 80
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if not line.startswith(" ")}
    assert set(OWN) < set(rows)
    assert {*registry.MECHANISMS, *registry.LEARNERS, *registry.ESTIMATORS} < set(rows)
    assert "1-DP, local, one label" in rows["follow_the_leader"]
    assert "mine" not in rows["laplace"]
    broken, clash = sorted(result.stderr.splitlines())
    assert broken == (
        "warning: the entry point one of own-broken (own_broken) was not loaded: RuntimeError: no luck today"
    )
    assert clash.startswith("warning: the entry point one of own-clash (own_clash:register) was not loaded: ValueError")
    assert clash.endswith("name must be new, got 'laplace', which is a registered mechanism")


@pytest.fixture
def in_process(tmp_path, monkeypatch, capsys):
    """Runs the command line in this process, in a folder with a module; its registrations are removed afterwards."""
    shutil.copy(OWN_MODULE, tmp_path)
    (tmp_path / "own_by_import.py").write_text(BY_IMPORT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(plugins, "_imported", {})
    tables: list[dict[str, Any]] = [registry.MECHANISMS, registry.LEARNERS, registry.ESTIMATORS]
    before = [dict(table) for table in tables]

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["jaxdp", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, capsys.readouterr()

    yield run
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    for module in ("own_algorithms", "own_by_import"):
        sys.modules.pop(module, None)


def test_they_are_audited(in_process):
    code, printed = in_process("audit", *OWN, "--with", "own_by_import", "--trials", "20000")
    assert code == 1, printed.err
    verdicts = {line.split()[0]: line.split()[-1] for line in printed.out.splitlines()[1:]}
    assert verdicts == {name: "violated" if name == "quiet_count" else "consistent" for name in OWN}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.filterwarnings("ignore:the entry point one of own-")
@pytest.mark.usefixtures("in_process")
def test_they_are_checked(name, site, monkeypatch):
    """Checks that entry points are loaded when a name is looked up."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(plugins, "_tried", set())
    check_registered(name)


def test_a_module_that_is_named_registers_without_an_entry_point(in_process):
    code, printed = in_process("list", "--kind", "learner", "--with", "own_by_import")
    assert code == 0, printed.err
    assert "follow_the_leader" in printed.out
    code, printed = in_process("audit", "quiet_count", "--with", "own_by_import", "--trials", "3000")
    assert code == 1, printed.err
    assert printed.out.splitlines()[1].split()[-1] == "violated"
    code = _code(registry.MECHANISMS["quiet_count"], "quiet_count", "release", np.float64(1), np.float64(2))
    assert "registry.import_modules(['own_by_import'])" in code.splitlines()  # another process does not know them
    code, printed = in_process("audit", "quiet_mouse", "--with", "own_by_import")
    assert (code, "Did you mean quiet_count" in printed.err) == (2, True)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("not_there", "a module that can be imported, got 'not_there': ModuleNotFoundError: No module named"),
        ("own_by_import.py", "with must name a module that can be imported, got 'own_by_import.py'"),
        ("../own_by_import", "with must be the dotted name of a module, got '../own_by_import'"),
        ("taken", "name must be new, got 'rucb', which is a registered learner"),
    ],
)
def test_a_module_that_cannot_be_used_is_told_in_one_line(module, message, in_process):
    Path("taken.py").write_text("import jaxdp\njaxdp.register('rucb', jaxdp.registry.LEARNERS['rucb'])\n")
    code, printed = in_process("list", "--with", module)
    assert code == 2
    assert message in printed.err
    assert printed.err.count("\n") == 1


UNUSABLE = {
    "gone": ("import nothing_here", r"got 'gone': ModuleNotFoundError: No module named 'nothing_here'"),
    "divides": (
        "def f():\n    1 / 0\n\n\nf()",
        r"got 'divides': ZeroDivisionError: division by zero \(.*divides.py, line 2\)",
    ),
    "leaves": ("import sys\n\nsys.exit(0)", r"got 'leaves': SystemExit: 0"),
    "unfinished": ("x = (", r"got 'unfinished': SyntaxError: '\(' was never closed"),
    "silent": ("x = 1", r"calls jaxdp\.register, got 'silent', which does not"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_modules_that_register_nothing_are_refused_in_one_sentence(name, tmp_path, monkeypatch):
    code, message = UNUSABLE[name]
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        registry.import_modules([name])
    sys.modules.pop(name, None)


def test_a_module_of_python_is_refused(monkeypatch):
    """Checks a module that was imported before, although another module has registered an entry."""
    monkeypatch.setitem(registry.LEARNERS, "mine", registry.LEARNERS["rucb"])
    with pytest.raises(ValueError, match=r"with must name a module that calls jaxdp\.register, got 'os'"):
        registry.import_modules(["os"])
