"""The Python and the shell lines of the README and of the site's pages run as printed."""

import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import jax
import pytest
import typer
import xarray as xr

from jaxdp.__main__ import app, main
from jaxdp.preferences import read_ballots
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, claims_table

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
CLUSTER, JOB_ARRAY, TRACKERS = "docs/howto/dask.md", "docs/howto/slurm.md", "docs/howto/experiment_trackers.md"
MADE_UP = ("mlflow", "wandb")  # imports of the page on trackers, which the tests do not need
WITH_ADAM = "docs/howto/any_model.md"  # Optax's Adam needs JAX's usual promotion of types
STUDIES = ("docs/howto/run_a_study.md", "docs/howto/own_data.md")
BRIEF = ("jaxdp list", "--comparisons docs/examples", "--release")
TASKS = 4
# Outputs of a page, besides running without an error.
PRINTED = {
    "README.md": ["0.001-DP", "no claim"],
    "docs/explanation/trust_models.md": ["0.5-DP, local, one duel's outcome", "1.5"],
    WITH_ADAM: [" of new pairs are ordered", "4-DP, local, one person", "chosen"],
    "docs/howto/audit_my_code.md": ["violated", "consistent"],
    "docs/howto/audit_their_code.md": ["violated"],
    "docs/howto/late_feedback.md": ["consistent 1.0"],
    "docs/howto/own_data.md": ["True"],
    "docs/howto/person.md": ["central, one person", "4000 1.0", "consistent 1.0"],
    "docs/howto/own_learner.md": ["consistent", "epsilon"],
    "docs/howto/own_mechanism.md": ["consistent"],
    "docs/howto/register.md": ["consistent"],
    "docs/howto/reward_head.md": ["no claim, central, one person", "1000-DP, local", "cut over persons     0.9"],
    "docs/howto/rewards.md": ["k_norm", "estimator", "1-DP (rounding: delta 1e-06), central, one label"],
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def with_code(language: str, *without: str) -> list[str]:
    """Returns the pages with code in a language."""
    return [page for page, text in PAGES.items() if blocks(text, language) and page not in without]


def lines_of(page: str) -> list[str]:
    """Returns a page's shell commands, except `make run`, a study that tests the command line, and `make test`."""
    lines = "".join(blocks(PAGES[page], "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("make ", "#"))]


@pytest.fixture
def checkout(tmp_path):
    """Makes a folder like a fresh checkout after `make`: the shipped files, and a `.venv`, which is this Python."""
    for name in ("jaxdp", "docs", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    interpreter = tmp_path / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    interpreter.chmod(0o755)
    return tmp_path


@pytest.fixture
def registered():
    """Removes a page's registrations after it."""
    tables: list[Any] = [LEARNERS, ESTIMATORS, MECHANISMS]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def in_shell(folder, *command, **variables):
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_page(page: str) -> dict[str, Any]:
    """Executes a page's Python, block after block, as cells of one notebook."""
    module = types.ModuleType("a_notebook")
    as_users_do = page == WITH_ADAM or jax.config.read("jax_enable_x64")  # pages have floats of 32 bits
    with jax.numpy_dtype_promotion("standard" if as_users_do else "strict"):
        for block in blocks(PAGES[page], "python"):
            exec(compile(block, page, "exec"), module.__dict__)
    return module.__dict__


@pytest.mark.parametrize("page", with_code("python", CLUSTER))
def test_the_python_of_a_page_runs(page, capsys, checkout, monkeypatch, registered):
    monkeypatch.chdir(checkout)
    for name in MADE_UP:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    names = run_page(page)
    printed = capsys.readouterr().out
    for text in PRINTED.get(page, ()):
        assert text in printed
    if "results" in names:
        assert isinstance(names["results"], xr.Dataset)
    if page == "docs/howto/sweeps_that_survive.md":
        assert (checkout / "runs" / "ranking.zarr").is_dir()
    if page == TRACKERS:
        logged = names["mlflow"].log_metric.call_args_list
        assert len(logged) == names["means"].size
        assert len(names["wandb"].init.return_value.__enter__.return_value.log.call_args_list) == names["means"].size


def test_example_files_can_be_saved_from_the_page_without_the_repository(tmp_path):
    page = PAGES["docs/howto/own_data.md"]
    matches, ballots = (block for block in blocks(page, "text") if "Ada" in block or "# DATA TYPE" in block)
    assert matches == (ROOT / "docs" / "examples" / "matches.csv").read_text()
    (tmp_path / "lunch.soi").write_text(ballots)
    saved, shipped = (read_ballots(folder / "lunch.soi") for folder in (tmp_path, ROOT / "docs" / "examples"))
    assert saved.items == shipped.items
    for name in ("pairs", "wins", "totals"):
        of_saved, of_shipped = (getattr(each.comparisons(unranked="last"), name) for each in (saved, shipped))
        assert of_saved.tolist() == of_shipped.tolist()


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if "docs/examples/" in text])
def test_a_page_says_where_example_files_are(page):
    assert "in the repository" in PAGES[page]


def long_sentences(text: str, most: int = 25) -> list[str]:
    """Returns the sentences of a page's paragraphs and list items that have more words than `most`."""
    prose = re.sub(r"(?s:^```.*?^```)|^[#|].*$", "\\n", text, flags=re.MULTILINE)
    parts = re.split(r"\n\s*\n|^- ", re.sub(r"\]\([^)]*\)", "]", prose), flags=re.MULTILINE)
    sentences = [each for part in parts for each in re.split(r"(?<=[.!?])\*{0,2}\s+", " ".join(part.split()))]
    return [each for each in sentences if len(each.split()) > most]


def test_the_readme_is_read_in_two_minutes():
    assert len(PAGES["README.md"].split()) <= 700
    assert long_sentences(PAGES["README.md"]) == []


def test_a_long_sentence_is_seen():
    long = " ".join(["word"] * 26)
    assert long_sentences(f"# A title\n\nOne sentence. {long}.\n\n- An item\n") == [f"{long}."]


def test_what_pages_print_is_about_pages():
    assert set(PRINTED) <= set(PAGES)
    assert {CLUSTER, JOB_ARRAY, TRACKERS, *STUDIES} <= set(PAGES)


def test_a_page_that_fails_is_seen(monkeypatch):
    monkeypatch.setitem(PAGES, "wrong.md", "Some text.\n\n```python\nimport jaxdp\n\njaxdp.no_such_name\n```\n")
    with pytest.raises(AttributeError, match="no_such_name"):
        run_page("wrong.md")


def test_the_cluster_script_runs(checkout):
    pytest.importorskip("distributed")
    (script,) = blocks(PAGES[CLUSTER], "python")
    (checkout / "cluster.py").write_text(script)
    assert "pseudo_regret" in in_shell(checkout, "python", "cluster.py")
    results = xr.open_zarr(checkout / "runs" / "cluster.zarr")
    assert results.computed.all()
    assert results.pseudo_regret.mean("seed").notnull().all()


def test_quick_shell_lines_run(checkout):
    quick = [line for page in STUDIES for line in lines_of(page) if any(text in line for text in BRIEF)]
    assert len(quick) == len(BRIEF)
    for line in quick:
        assert in_shell(checkout, "bash", "-c", line)


def test_shell_lines_of_studies_run_one_after_the_other(checkout):
    for page in STUDIES:
        for line in lines_of(page):
            assert in_shell(checkout, "bash", "-c", line)
    assert sorted(path.name for path in (checkout / "results").iterdir()) == [
        *("dueling-ballots", "dueling-linear", "dueling-regret", "dueling-trust"),
        *("ldp-bandits", "ldp-best-arm", "ldp-linear"),
        *("preference-pairs", "private-policy"),
        *("private-ranking", "private-ranking-2", "private-ranking-3"),
        "reward-estimation",
        *("tracking-regret", "tracking-separation", "tracking-your-losses", "trust-models"),
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in (*STUDIES, JOB_ARRAY) and lines_of(page)])
def test_shell_lines_of_a_page_run(page, checkout):
    for line in lines_of(page):
        assert in_shell(checkout, "bash", "-c", line)
    if page == "docs/howto/audit_my_code.md":
        assert (checkout / "audit.json").is_file()


def test_the_job_array_runs(checkout):
    """Sets the variables that SLURM sets, and an `srun` that runs one process."""
    (job,) = blocks(PAGES[JOB_ARRAY], "sh")
    srun = checkout / ".venv" / "bin" / "srun"
    srun.write_text('#!/bin/sh\nexec "$@"\n')
    srun.chmod(0o755)
    (checkout / "job.sh").write_text(job)
    assert f"--array=0-{TASKS - 1}\n" in job
    whole = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": f"{TASKS - 1}", "SLURM_ARRAY_TASK_COUNT": f"{TASKS}"}
    for task in range(TASKS):
        in_shell(checkout, "bash", "job.sh", SLURM_ARRAY_TASK_ID=f"{task}", **whole)
        done = xr.open_zarr(checkout / "runs" / "job-array.zarr").computed
        assert bool(done.all()) == (task == TASKS - 1)


COMMANDS = re.findall(r"python -m jaxdp ((?:[^`\n#\\]|\\\n)+)", "\n".join(PAGES.values()))


@pytest.mark.parametrize("line", sorted({" ".join(line.replace("\\\n", " ").split()) for line in COMMANDS}))
def test_every_command_that_is_mentioned_is_there(line):
    command, words = typer.main.get_command(app), shlex.split(line)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]  # pyright: ignore[reportAttributeAccessIssue]
    if words:
        command.make_context(line, words)  # parses, and runs nothing


def test_the_table_of_claims_is_printed(monkeypatch, capsys):
    """Compares with the text from which the site's table of algorithms is made (`tests/test_site.py`)."""
    monkeypatch.setattr(sys, "argv", ["jaxdp", "list", "--claims"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out.strip() == claims_table()


def test_the_table_of_claims_names_everyone_once():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_table().splitlines()[2:]]
    entries = {**LEARNERS, **ESTIMATORS}
    assert [row[0].strip("`") for row in rows] == [*entries]
    for (name, entry), (_, source, trust, unit, claimed, proof) in zip(entries.items(), rows, strict=True):
        claim = entry.make().guarantee(**entry.values)
        assert (trust, unit) == ((claim.trust_model, claim.privacy_unit) if claim.is_private else ("-", "nothing")), (
            name
        )
        assert proof == (entry.proof if claim.is_private else "-")
        assert source
        assert (claimed == "no claim") == (not claim.is_private)
    for name in ("mle", "plackett_luce_mle", "ballot_mle", "literal_objective_perturbation"):
        assert not entries[name].make().guarantee(**entries[name].values).is_private
