"""Papers reproduced: rules and verdicts, the rows, the command, its files and the page."""

import csv
import json
import math
import re
import sys
from pathlib import Path

import pytest

from benchmarks.papers import PAPERS, rows_of
from benchmarks.papers.page import HERE, PAGE, committed_page, page
from benchmarks.papers.record import listed, make_record, reproduced, summary, told, write
from benchmarks.papers.rows import (
    AGREES,
    DIFFERS,
    NOT_MEASURED,
    UNDECIDED,
    Interval,
    Row,
    Size,
    at_least,
    at_most,
    between,
    row,
    verdict,
)
from benchmarks.papers.run import main

SMALL = Size("small")

# Every bound of the papers that the library has as a function, every table and figure, every theorem and corollary.
STATEMENTS = {
    "dp-reward": [
        "Figure 1",
        "Thm 3.1",
        "Thm 3.2",
        "Thm 4.1",
        "Thm 4.2",
        "Cor. 4.3",
        "Thm 4.5",
        "Thm C.2",
        "Thm 5.1",
        "Thm 5.2",
        "Thm 5.3",
        "Cor. 5.4",
        "Remark 5.5",
        "Thm D.3",
        "Thm D.5",
        "Thm E.1",
        "Eq. (9)",
        "Section 4.4",
    ],
    "dp-dueling": [
        "Lemma 1",
        "Thm 1",
        "Thm 2",
        "Thm 3",
        "Remark 1",
        "Remark 2",
        "Remark 3",
        "Remark 4",
        "Lemma 11",
        "Kiefer",
    ],
    "tracking": [
        "Table 1",
        "Thm 3.1",
        "Thm 3.6",
        "Section 3.2",
        "Thm 4.1",
        "Prop. 1",
        "Cor. 4.1.1",
        "Thm 5.1",
        "Prop. 2",
        "Thm 5.2",
        "Thm B.1",
    ],
    "ldp-bandits": [
        "Table 1, convex",
        "Table 1, convex and smooth",
        "Table 1, strongly convex",
        "Table 1, strongly convex and smooth",
        "Table 1, two points, convex",
        "Table 1, two points, strongly convex",
        "Thm 8; Table 1, linear",
        "Thm 10; Table 1, generalized",
        "Thm 1",
        "Thms 2, 5",
        "Thm 3",
        "Cor. 4",
        "Thm 6",
        "Thm 7",
        "Thm 9",
        "Appendix B.1",
        "Appendix B.2",
    ],
}

# Rows that need no simulation, and their verdicts: on the claim, and on the corrected form.
EXACT = {
    "dp-reward": {
        "Eq. (2)": (AGREES, ""),
        "Thm 3.2, proof; κ of section 4.3; Lemma D.2": (DIFFERS, AGREES),
        "Thm 4.1, threshold": (DIFFERS, AGREES),
        "Thm 5.2": (AGREES, ""),
    },
    "dp-dueling": {
        "Lemma 1": (AGREES, ""),
        "Alg. 1, removals": (DIFFERS, AGREES),
        "Property (1), (2) of effective Borda scores": (DIFFERS, AGREES),
        "Proof of Thm 1, utilities": (DIFFERS, AGREES),
        "Remark 1": (AGREES, ""),
        "Kiefer-Wolfowitz theorem": (AGREES, ""),
        "Eq. (12), in Lemmas 7 and 8": (DIFFERS, AGREES),
    },
    "tracking": {
        "Alg. 2, line 11": (DIFFERS, AGREES),
        "Thm 4.1, size of the class": (DIFFERS, AGREES),
    },
    "ldp-bandits": {
        "Thms 2, 5": (DIFFERS, AGREES),
        "Section 3.1, stochastic losses; footnote 5": (DIFFERS, AGREES),
        "Thm 7": (AGREES, ""),
        "Thm 9": (DIFFERS, AGREES),
        "Alg. 3, line 11": (DIFFERS, AGREES),
    },
}


def the_row(paper: str, number: str) -> Row:
    return next(each for each in rows_of(paper) if each.number == number)


# ---- rules -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rule", "found", "expected"),
    [
        (at_most(1), Interval(0.5, 0.2, 0.9), AGREES),
        (at_most(1), Interval(1.5, 1.2, 1.9), DIFFERS),
        (at_most(1), Interval(0.9, 0.5, 1.3), UNDECIDED),
        (at_most(1), Interval(1.0, 1.0, 1.0), AGREES),
        (at_least(0), Interval(0.3, 0.1, 0.5), AGREES),
        (at_least(0), Interval(-0.3, -0.5, -0.1), DIFFERS),
        (between(-0.6, -0.4), Interval(-0.5, -0.55, -0.45), AGREES),
        (between(-0.6, -0.4), Interval(-0.9, -1.0, -0.8), DIFFERS),
        (between(-0.6, -0.4), Interval(-0.5, -0.9, -0.1), UNDECIDED),
        (at_most(1), Interval(2.0, 2.0, math.inf), DIFFERS),  # an audit's lower bound
        (at_most(1), Interval(0.5, 0.5, math.inf), UNDECIDED),
        (at_most(1), Interval(2.0, -math.inf, 2.0), UNDECIDED),  # an upper bound
        (at_most(1), Interval(0.5, -math.inf, 0.5), AGREES),
        (at_most(1, refutes=False), Interval(1.5, 1.2, 1.9), UNDECIDED),
        (at_most(1, refutes=False), Interval(0.5, 0.2, 0.9), AGREES),
        (at_most(1), Interval(math.nan, math.nan, math.nan), UNDECIDED),
        (at_most(1), Interval(0.5, math.nan, math.nan), UNDECIDED),  # one seed
    ],
)
def test_an_interval_is_judged_as_a_whole(rule, found, expected):
    assert rule.judge(found) == expected


def test_a_verdict_is_the_worst_of_its_rules():
    rules = {"a": at_most(1), "b": at_most(1)}
    low, high, wide = Interval.exact(0.5), Interval.exact(2), Interval(1, 0, 2)
    assert verdict(rules, {"a": low, "b": low}) == AGREES
    assert verdict(rules, {"a": low, "b": wide}) == UNDECIDED
    assert verdict(rules, {"a": high, "b": wide}) == DIFFERS
    assert verdict({}, {}) == NOT_MEASURED
    with pytest.raises(ValueError, match=r"measures must have \['b'\], got \['a'\]"):
        verdict(rules, {"a": low})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "why must give the reason why X has no measure"),
        ({"rules": {"a": at_most(1)}, "why": "so"}, "rules, measured and measure must be given together or not at all"),
        (
            {"measure": lambda size: {}, "measured": "it"},
            "rules, measured and measure must be given together or not at all",
        ),
        ({"why": "so", "corrected_rules": {"a": at_most(1)}}, "corrected must be given with corrected_rules"),
    ],
)
def test_rows_are_complete(arguments, message):
    with pytest.raises(ValueError, match=message):
        row("X", "Says.", **arguments)


def test_sizes_scale_repetitions():
    assert [Size(name).repeats(10, small=3) for name in ("small", "quick", "full")] == [3, 10, 80]


# ---- rows ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "number", ["Table 1, two points, strongly convex; Thm 6, eq. (4)", "Appendix B.1, stochastic arms"]
)
def test_growth_by_a_root_differs_from_a_logarithm(number):
    rule = the_row("ldp-bandits", number).rules["exponent of T, ε = 1"]
    assert rule.judge(Interval(0.5, 0.48, 0.52)) == DIFFERS
    assert rule.judge(Interval(0.08, 0.07, 0.09)) == AGREES


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_has_a_row(paper):
    numbers = [each.number for each in rows_of(paper)]
    assert len(set(numbers)) == len(numbers)
    for statement in STATEMENTS[paper]:
        assert any(re.search(rf"(^|\W){re.escape(statement)}(?!\d)", number) for number in numbers), statement


@pytest.mark.parametrize(("paper", "number"), [(paper, number) for paper, rows in EXACT.items() for number in rows])
def test_exact_rows_say_what_is_known(paper, number):
    own = the_row(paper, number)
    assert own.measure is not None
    found = own.measure(SMALL)
    says = make_record(own, found)
    assert (says["verdict"], says["corrected_verdict"]) == EXACT[paper][number]
    for name, rule in {**own.rules, **own.corrected_rules}.items():  # planted: a number far on the wrong side
        wrong = 1e9 if math.isfinite(rule.high) else -1e9
        planted = make_record(own, {**found, name: Interval.exact(wrong)})
        assert DIFFERS in (planted["verdict"], planted["corrected_verdict"])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_is_measured_in_its_small_form(paper):
    record = reproduced(paper, rows_of(paper), SMALL, lambda text: None)
    assert all(each["numbers"] or each["verdict"] == NOT_MEASURED for each in record["rows"])
    json.dumps(record, allow_nan=False)


# ---- the command -----------------------------------------------------------------------------------------------------
def in_process(*arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments, "--no-cache"])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr()


def test_the_command_lists_measures_and_overwrites_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, printed = in_process(monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    assert printed.out.strip() == listed()
    assert all(name in printed.out for name in PAPERS)
    for _ in range(2):
        code, printed = in_process("dp-dueling", "--row", "remark 1", monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, printed.err
    assert "Remark 1: AGREES" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 80
    first, second = (Path("results") / name for name in ("reproduce-dp-dueling", "reproduce-dp-dueling-2"))
    record = json.loads((first / "results.json").read_text())
    assert [each["number"] for each in record["rows"]] == ["Remark 1"]
    assert (second / "results.csv").exists()
    lines = list(csv.DictReader((first / "results.csv").open()))
    assert lines[0]["verdict"] == AGREES
    assert float(lines[0]["value"]) < 1
    code, printed = in_process(
        "tracking", "--row", "Prop. 2", "--out", str(first), monkeypatch=monkeypatch, capsys=capsys
    )
    assert code == 2
    assert "out must be a new or empty folder" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "paper must be one of dp-reward, dp-dueling, tracking, ldp-bandits, got 'nobody'"),
        (["--full"], "paper must be given with --full, --row, --out or --seed, got none"),
        (["--seed", "3"], "paper must be given with --full, --row, --out or --seed, got none"),
        (["tracking", "--row", "Thm 99"], "row must be in one of"),
        (["tracking", "--seed", "-1"], "seed must be in"),
        (["ldp-bandit"], "got 'ldp-bandit'. Did you mean ldp-bandits?"),
        (["dp-dueling", "--row", "Them 1"], "got 'Them 1'. Did you mean Thm 1"),
        (["dp-dueling", "--row", ""], "row must be a text that numbers of rows have, got ''"),
    ],
)
def test_errors_name_the_argument(arguments, message, monkeypatch, capsys):
    code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert message in printed.err


def test_a_full_run_says_its_time_first(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, printed = in_process("tracking", "--full", "--row", "Prop. 2", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    minutes = 8 * PAPERS["tracking"].minutes
    assert printed.out.startswith(f"tracking: 1 rows; all rows of the paper take at most {minutes} minutes")


# ---- texts and the page ----------------------------------------------------------------------------------------------
def made_up() -> dict:
    """Makes a record with an erratum whose claim differs, and an unmeasured row."""
    wrong = row(
        "Thm 1",
        "|x| <= 1 | always.",
        "x",
        lambda size: {},
        {"x": at_most(1)},
        corrected="2.",
        corrected_rules={"y": at_most(2)},
    )
    found = {"x": Interval(1.5, 1.4, 1.6), "y": Interval(1.5, 1.4, math.inf), "further": Interval.exact(3)}
    return {
        "paper": "tracking",
        "citation": "Somebody (2020), Something",
        "size": "quick",
        "seed": 0,
        "machine": "a machine",
        "versions": {"jax": "1"},
        "seconds": 1.0,
        "processor_seconds": 1.0,
        "rows": [make_record(wrong, found), make_record(row("Lemma 2", "Says.", why="Quoted."), {})],
    }


def test_a_number_of_the_claim_and_of_its_correction_is_told_of_both():
    shared = row(
        "Thm 1",
        "At most 1.",
        "x",
        lambda size: {},
        {"x": at_most(1)},
        corrected="At most 2.",
        corrected_rules={"x": at_most(2)},
    )
    record = made_up()
    record["rows"] = [make_record(shared, {"x": Interval.exact(1.5)})]
    assert "x: 1.5; claim: <= 1" in told(record["rows"][0])
    assert "x: 1.5; corrected form: <= 2" in told(record["rows"][0])
    assert "x: 1.5 (agrees if ≤ 1)<br>**differs** | At most 2. | x: 1.5 (agrees if ≤ 2)<br>**agrees** |" in page(
        [record]
    )


def test_a_row_is_told_with_its_numbers_and_reasons():
    record = made_up()
    texts = [told(each) for each in record["rows"]]
    assert texts[0].startswith("Thm 1: DIFFERS (corrected form: undecided)")
    assert "x: 1.5 (1.4 to 1.6); claim: <= 1" in texts[0]
    assert "further: 3" in texts[0]
    assert "Why: Quoted." in texts[1]
    assert "1 differs, 1 not measured" in summary(record)


def test_the_page_has_claims_and_errata(tmp_path):
    record = made_up()
    text = page([record])
    assert "| tracking | 2 | 0 | 1 | 0 | 1 | 0 |" in text
    assert "\\|x\\| ≤ 1 \\| always." in text
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in rows] == [6, 7]  # Lemma 2, and the erratum
    with pytest.raises(ValueError, match="records must be of different papers"):
        page([record, record])
    write(record, tmp_path)
    assert page([json.loads((tmp_path / "results.json").read_text())]) == text


def test_the_committed_page_is_that_of_its_records():
    assert committed_page() == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", PAPERS)
def test_committed_records_are_of_the_rows_as_they_are(paper):
    record = json.loads((HERE / "records" / f"{paper}.json").read_text(encoding="utf-8"))
    told_ = [
        (each["number"], each["claim"], each["measured"], each["corrected"], each["why"]) for each in record["rows"]
    ]
    assert told_ == [(each.number, each.claim, each.measured, each.corrected, each.why) for each in rows_of(paper)]
    assert record["size"] in ("quick", "full")
    for each, own in zip(record["rows"], rows_of(paper), strict=True):
        found = {
            number["measure"]: Interval(
                *(
                    {"low": -math.inf, "high": math.inf}[name] if number[name] is None else number[name]
                    for name in Interval._fields
                )
            )
            for number in each["numbers"]
        }
        if own.measure is not None:
            assert each["verdict"] == verdict(own.rules, found)
            assert own.rules.keys() <= found.keys()
            assert each["corrected_verdict"] == (verdict(own.corrected_rules, found) if own.corrected_rules else "")
            for of, rules in (("claim", own.rules), ("corrected", own.corrected_rules)):
                shown = {number["measure"]: number["rule"] for number in each["numbers"] if number["of"] == of}
                assert shown == {name: str(rule) for name, rule in rules.items()}
