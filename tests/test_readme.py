"""The README's Python and its shell lines run as printed, and its table of claims is the registry's."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import xarray as xr

from jaxdp.__main__ import app, main
from jaxdp.registry import ESTIMATORS, LEARNERS, claims_table

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
MAKE, JOB_ARRAY = (next(block for block in SHELL if text in block) for text in ("make run", "#SBATCH"))  # pyright: ignore
SCRIPT = next(block for block in PYTHON if "LocalCluster" in block)
LINES = [line for block in SHELL if block not in (MAKE, JOB_ARRAY) for line in block.splitlines()]
QUICK = ("jaxdp list", "--comparisons docs/examples", "--release")
TASKS = 4


@pytest.fixture
def checkout(tmp_path):
    """A folder like a fresh checkout after `make`: what is shipped, and a `.venv`, which is this Python."""
    for name in ("jaxdp", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    interpreter = tmp_path / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    interpreter.chmod(0o755)
    return tmp_path


def in_shell(folder, *command, **variables):
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_python_blocks_run_one_after_the_other(capsys, checkout, monkeypatch):
    """In one notebook. The script of a cluster is one of its own, below."""
    monkeypatch.chdir(checkout)
    names: dict[str, Any] = {"__name__": "a notebook"}
    for block in PYTHON:
        if block != SCRIPT:
            exec(block, names)
    printed = capsys.readouterr().out
    assert LEARNERS.pop("once_each") is names["entry"]  # for the other tests
    assert printed.splitlines()[-1] == "consistent"
    assert isinstance(names["results"], xr.Dataset)
    assert names["estimate"].converged
    assert names["found"].verdict == "consistent"
    assert "estimator" in printed
    assert "violated" in printed
    assert (checkout / "runs" / "ranking.zarr").is_dir()


@pytest.mark.slow
def test_the_cluster_script_runs(checkout):
    pytest.importorskip("distributed")
    (checkout / "cluster.py").write_text(SCRIPT)
    assert "pseudo_regret" in in_shell(checkout, "python", "cluster.py")
    results = xr.open_zarr(checkout / "runs" / "cluster.zarr")
    assert results.computed.all()
    assert results.pseudo_regret.mean("seed").notnull().all()


def test_quick_shell_lines_run(checkout):
    quick = [line for line in LINES if any(text in line for text in QUICK)]
    assert len(quick) == len(QUICK)
    for line in quick:
        assert in_shell(checkout, "bash", "-c", line)


@pytest.mark.slow
def test_shell_lines_run_one_after_the_other(checkout):
    """All but `make run`, which is the study with which the command line is tested, and `make test`, which is this."""
    for line in LINES:
        assert in_shell(checkout, "bash", "-c", line)
    assert (checkout / "audit.json").is_file()
    assert sorted(path.name for path in (checkout / "results").iterdir()) == [
        *("dueling-ballots", "dueling-linear", "dueling-regret", "dueling-trust"),
        *("ldp-bandits", "ldp-best-arm", "ldp-linear"),
        "private-policy",
        *("private-ranking", "private-ranking-2", "private-ranking-3"),
        "reward-estimation",
        *("tracking-regret", "tracking-separation", "tracking-your-losses", "trust-models"),
    ]


@pytest.mark.slow
def test_the_job_array_runs(checkout):
    """With the variables that SLURM sets, and an `srun` that runs one process."""
    srun = checkout / ".venv" / "bin" / "srun"
    srun.write_text('#!/bin/sh\nexec "$@"\n')
    srun.chmod(0o755)
    (checkout / "job.sh").write_text(JOB_ARRAY)
    assert f"--array=0-{TASKS - 1}\n" in JOB_ARRAY
    whole = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": f"{TASKS - 1}", "SLURM_ARRAY_TASK_COUNT": f"{TASKS}"}
    for task in range(TASKS):
        in_shell(checkout, "bash", "job.sh", SLURM_ARRAY_TASK_ID=f"{task}", **whole)
        done = xr.open_zarr(checkout / "runs" / "job-array.zarr").computed
        assert bool(done.all()) == (task == TASKS - 1)


COMMANDS = re.findall(r"python -m jaxdp ((?:[^`\n#\\]|\\\n)+)", TEXT)


@pytest.mark.parametrize("line", sorted({" ".join(line.replace("\\\n", " ").split()) for line in COMMANDS}))
def test_every_command_that_is_mentioned_is_there(line):
    command, words = typer.main.get_command(app), shlex.split(line)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]  # pyright: ignore[reportAttributeAccessIssue]
    if words:
        command.make_context(line, words)  # parses, and runs nothing


def test_the_table_of_claims_is_the_registrys(monkeypatch, capsys):
    """`python -m jaxdp list --claims` prints it anew."""
    monkeypatch.setattr(sys, "argv", ["jaxdp", "list", "--claims"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out.strip() == claims_table()
    start, end = "<!-- claims -->", "<!-- end -->"
    assert TEXT.split(start)[1].split(end)[0].strip() == claims_table()


def test_the_table_of_claims_names_everyone_once():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_table().splitlines()[2:]]
    entries = {**LEARNERS, **ESTIMATORS}
    assert [row[0].strip("`") for row in rows] == [*entries]
    for (name, entry), (_, source, trust, unit, claimed, proof) in zip(entries.items(), rows, strict=True):
        claim = entry.make().guarantee(**entry.values)
        assert (trust, unit) == ((claim.trust_model, claim.privacy_unit) if claim.is_private else ("", "nothing")), name
        assert proof == (entry.proof if claim.is_private else "")
        assert source
        assert (claimed == "none") == (not claim.is_private)
    for name in ("mle", "plackett_luce_mle", "ballot_mle", "literal_objective_perturbation"):
        assert not entries[name].make().guarantee(**entries[name].values).is_private
