"""`python -m jaxdp audit`: rows, JSON and exit codes."""

import dataclasses
import json
import math

import pytest
from typer.testing import CliRunner

import jaxdp.audit
from jaxdp import Guarantee, registry
from jaxdp.__main__ import app, main
from jaxdp.audit import Attack, GreyBox, Target
from jaxdp.audit._rows import NARROW

QUICK = ("--trials", "3000")


def audit(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments, *QUICK])


def test_rows_and_json(tmp_path):
    out = tmp_path / "board.json"
    result = audit("randomized_response", "k_ary_randomized_response", "--json", str(out))
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if not line.startswith("  worst")]
    assert len(lines) == 3
    assert lines[0].split() == list(NARROW)
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[0] == "randomized_response"
    assert lines[1].split()[-1] == "consistent"
    first, second = json.loads(out.read_text())
    assert (first["name"], second["name"]) == ("randomized_response", "k_ary_randomized_response")
    assert (first["currency"], first["claimed"], first["delta"], first["path"]) == ("epsilon", 1.0, 0.0, "release")
    assert (first["trials"], first["verdict"]) == (3000, "consistent")
    assert 0.7 < first["lower_bound"] == first["ratio"] <= 1.0
    assert first["confidence"] == pytest.approx(0.975)
    ways = [(one["point"], one["inputs"]) for one in first["attempts"]]
    assert ways == [("", "given"), ("epsilon=0.1", "given")]  # no other two labels differ
    assert ("", "found") in [(one["point"], one["inputs"]) for one in second["attempts"]]
    assert {one["trials"] for one in first["attempts"]} == {3000}
    assert first["attempts"][-1]["claimed"] == 0.1
    assert first["seconds"] > 0


def test_a_row_draws_by_the_seed_and_not_by_the_company(tmp_path):
    def told(*arguments):
        """Returns the event in the row of the last name, and how often it happened."""
        audit(*arguments, "--no-search", "--json", str(out := next(outs)))
        return json.loads(out.read_text())[-1]

    outs = (tmp_path / f"{number}.json" for number in range(3))
    together = told("randomize_scalar", "randomized_response")
    alone, other = told("randomized_response"), told("randomized_response", "--seed", "1")
    assert (alone["event"], alone["confidence"]) == (together["event"], 0.95)
    assert (alone["currency"], alone["claimed"], alone["delta"], alone["path"]) == ("epsilon", 1.0, 0.0, "release")
    assert (alone["name"], alone["trials"], alone["verdict"]) == ("randomized_response", 3000, "consistent")
    assert 0.7 < alone["lower_bound"] == alone["ratio"] <= 1.0
    assert [(one["point"], one["inputs"]) for one in alone["attempts"]] == [("", "given")]
    assert together["confidence"] == pytest.approx(0.975)
    assert together["lower_bound"] < alone["lower_bound"]  # two rows share the error
    assert other["event"] != together["event"]


def test_a_violation_is_exit_code_1(monkeypatch, tmp_path):
    honest = registry.MECHANISMS["randomized_response"]
    claims = {
        "a_liar": lambda epsilon: honest.guarantee(epsilon=epsilon / 2),
        "no_claim": lambda epsilon: honest.guarantee(epsilon=float("inf")),
    }
    for name, guarantee in claims.items():
        monkeypatch.setitem(registry.MECHANISMS, name, dataclasses.replace(honest, guarantee=guarantee))
    result = audit("a_liar", "randomized_response", "--no-search")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith(("a_liar", "randomized"))] == [
        "violated",
        "consistent",
    ]
    out = tmp_path / "board.json"
    result = audit("no_claim", "--json", str(out))
    assert result.exit_code == 0
    (row,) = json.loads(out.read_text())
    assert (row["claimed"], row["ratio"], row["verdict"]) == ("inf", 0.0, "consistent")


def test_currencies_faults_and_notes_are_told(monkeypatch):
    """Audits a claim in rho of half the cost, and a claim that cannot be attacked; the reason is below its row."""
    about = {"trust_model": "local", "privacy_unit": "one label", "argument": "half of it"}
    claim = Guarantee.zcdp(math.tanh(0.5) / 2, **about)

    def box(key):
        return GreyBox(guarantee=claim, sites=(), spent=0.0, faults=("noise\nused twice",))

    (given,) = registry.attacks(["randomized_response"]).values()
    attack = given if isinstance(given, Attack) else given.attacks["release"]
    targets = {
        "half": Target(guarantee=claim, attacks={"release": attack._replace(guarantee=claim)}, grey_box=box),
        "absent": Target(guarantee=claim, attacks={}, notes=("no neighbours",)),
    }
    monkeypatch.setattr(registry, "attacks", lambda names: targets)
    monkeypatch.setattr("jaxdp.registry.claims.select_names", lambda names: tuple(targets))
    result = audit()
    assert result.exit_code == 1
    _, half, fault, absent, note = result.output.splitlines()
    assert half.split()[1:3] == ["rho", "0.2311"]
    assert (half.split()[-1], fault) == ("violated", "  fault: noise used twice")
    assert (absent.split()[-2:], note) == (["-", "inconclusive"], "  note: no neighbours")


def test_an_interruption_leaves_the_rows_that_are_done(monkeypatch, tmp_path):
    out, seen = tmp_path / "board.json", []
    whole = jaxdp.audit.scoreboard

    def stopped(*arguments, **options):
        seen.append(json.loads(out.read_text()))
        for row in whole(*arguments, **options):
            yield row
            seen.append(json.loads(out.read_text()))
            if len(seen) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(jaxdp.audit, "scoreboard", stopped)
    audit("randomized_response", "k_ary_randomized_response", "randomize_scalar", "--no-search", "--json", str(out))
    assert [len(rows) for rows in seen] == [0, 1, 2]
    assert [row["name"] for row in json.loads(out.read_text())] == ["randomized_response", "k_ary_randomized_response"]


def test_what_is_refused_leaves_no_file(tmp_path):
    out = tmp_path / "board.json"
    for arguments in [("nothing",), ("laplace", "--seed", "-1")]:
        assert audit(*arguments, "--json", str(out)).exit_code != 0
    assert CliRunner().invoke(app, ["audit", "laplace", "--trials", "99", "--json", str(out)]).exit_code != 0
    assert not out.exists()


def test_help_says_what_the_confidence_is_of():
    assert "for all rows together" in " ".join(CliRunner().invoke(app, ["audit", "--help"]).output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "name must be one of laplace, gaussian"),
        (["lapalce"], "got 'lapalce'. Did you mean laplace"),
        (["laplace", "--trials", "99"], "trials must be an integer >= 100, got 99"),
        (["laplace", "--thorough", "--no-search"], "search must not be left out with --thorough"),
        (["laplace", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["laplace", "--seed", "-1"], "seed must be in [0, 2**32), got -1"),
        (["laplace", "--json", "absent/board.json"], "json must lie in a folder that exists, got absent/board.json"),
        (
            ["laplace", "--json", "mine.json"],
            "json must be a new file, so that no result is overwritten, got mine.json",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["jaxdp", "audit", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert (tmp_path / "mine.json").read_text() == "[]"
