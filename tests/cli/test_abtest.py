"""`python -m jaxdp abtest` plans, draws and evaluates a file; wrong files are refused in one sentence."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxdp.__main__ import app
from jaxdp.abtests import abtest
from jaxdp.abtests._files import Arms, evaluate, read_arms

PLAN = ("abtest", "--rate", ".5", "--lift", ".2", "--epsilon", "1")


def run(*arguments):
    return CliRunner().invoke(app, [*PLAN, *map(str, arguments)])


@pytest.fixture
def log(tmp_path):
    """Makes arms of unequal size: 0.5 and 0.7 among users, reports at epsilon 1."""
    rng, path = np.random.default_rng(5), tmp_path / "log.csv"
    arm = rng.random(9_000) < 0.6
    flip = rng.random(9_000) < 1 / (1 + np.e)
    bit = (rng.random(9_000) < np.where(arm, 0.7, 0.5)) ^ flip
    lines = [f"{'new' if a else 'old'},{int(b)}" for a, b in zip(arm, bit, strict=True)]
    path.write_text("\n".join(["arm,report", *lines, ""]))
    return path


def test_a_plan_with_its_picture_and_its_file(log, tmp_path):
    picture = tmp_path / "users.png"
    result = run("--trust", "local", "--users", 5_000, "--plot", picture, "--reports", log, "--control", "old")
    assert result.exit_code == 0, result.output
    assert "looks once (two-proportion z-test)" in result.output
    assert "smallest epsilon for the planned lift" in result.output
    lines = result.output.splitlines()
    assert "treatment is better" in lines[1], "the verdict comes before the plan"
    bits = read_arms(log, "old", is_private=False)
    assert f"{len(bits.treatment) - len(bits.control):,} users of new have no partner in the other arm" in result.output
    assert "simulation" not in result.output.lower()
    for name in ("rate of old", "rate of new", "difference of rates", "lift"):
        assert re.search(rf"  {name}: .*, 95% interval .* to ", result.output)
    assert picture.stat().st_size > 10_000


def test_the_printed_confidence_is_not_rounded():
    plan = abtest(rate=0.5, lift=0.2, epsilon=1.0, trust="local", failure_prob=1e-3)
    bits = np.arange(100, dtype=np.int8) % 2
    arms = Arms(bits, bits, ("old", "new"), np.repeat(np.asarray([0, 1], np.int8), 100))
    assert ", 99.9% interval" in evaluate(plan, "anytime", arms, seed=0)


def test_a_curator_s_file_is_a_simulation(log):
    text = run("--trust", "central", "--reports", log, "--control", "old").output
    assert "treatment is better" in text
    assert "Simulation: the noise follows from --seed 0. Another seed gives other numbers" in text
    assert "difference of rates: " in text
    assert "rate of old" not in text, "S and D do not determine single rates"


@pytest.mark.parametrize(
    ("old", "new", "trust", "sentence"),
    [
        ("old,1", "old,2", "local", r"reports must be 0 or 1 in the second column, got '2' in line \d+, and"),
        ("old,1", "old,2", "central", r"reports must be 0 or 1 in the second column, got \d+ of 9000 that are not"),
        ("arm,report\n", "", "local", "reports must name its columns in the first line"),
        ("arm,report\n", "", "central", r"columns in the first line, got 0 or 1 in the second column in .*log\.csv$"),
        ("arm,report", "arm,report,day", "local", "reports must have two columns"),
        ("old,1", "ann,old,1", "local", r"reports must have two columns, .* Expected 2 fields in line \d+, saw 3"),
        ("new", "old", "local", "reports must have two arms in the first column, got 1"),
        ("new,1", "other,1", "local", "reports must have two arms in the first column, got 3"),
    ],
)
def test_wrong_files_are_refused(log, old, new, trust, sentence):
    log.write_text(log.read_text().replace(old, new))
    with pytest.raises(ValueError, match=sentence):
        read_arms(log, "old", is_private=trust == "central")


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    for encoding in ("utf-16", "latin-1"):
        path.write_bytes("arm,report\nä,1\nb,0\n".encode(encoding))
        with pytest.raises(ValueError, match=r"reports must be UTF-8 text, got other bytes in .*log\.csv"):
            read_arms(path, "b", is_private=False)


def test_the_control_must_be_named(log):
    with pytest.raises(ValueError, match="control must be the name of an arm, new or old, got None"):
        read_arms(log, None, is_private=False)


def test_nothing_is_overwritten_and_endings_are_known(log, tmp_path):
    for plot, sentence in (
        (log, "plot must end in"),
        (tmp_path / "no" / "a.png", "plot must lie in a folder"),
        (tmp_path, "plot must end in"),
    ):
        assert sentence in str(run("--trust", "local", "--plot", plot).exception)
    (tmp_path / "a.png").touch()
    assert "must be a new file" in str(run("--trust", "local", "--plot", tmp_path / "a.png").exception)


def test_counts_that_are_looked_at_once_are_no_file(log):
    result = run("--trust", "central", "--reports", log, "--control", "old", "--kind", "fixed")
    assert "kind must be anytime for a file with central trust" in str(result.exception)


def test_errors_of_a_release_name_its_options(log, tmp_path):
    options = ("--trust", "central", "--reports", log, "--control", "old", "--kind", "fixed", "--release")
    for path, message in [
        (tmp_path / "no" / "file", "--release must lie in a folder that exists"),
        (log, "--release must be a file of releases that jaxdp wrote"),
    ]:
        assert str(run(*options, path).exception).startswith(message)
    assert run(*options, tmp_path / "released").exit_code == 0
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:1], *sorted(lines[1:]), ""]))
    assert str(run(*options, tmp_path / "released").exception).startswith("--reports must begin with the 9,000 users")
