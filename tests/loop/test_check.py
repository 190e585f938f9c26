"""`make check` stops at the first failure in its order, names the check, and says what it left out."""

import dataclasses
import os
import time

import pytest

from jaxdp import registry
from jaxdp.audit import Target
from tests.loop import naming, stages
from tests.loop.check import check, entries_to_check, stages_of
from tests.loop.running import FailedError, Stage

# Newer versions of Python and JAX warn of every fork of a process with threads; what is forked here uses neither.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork")


def fails(sentence, after=0.0):
    def run():
        time.sleep(after)
        print("all that it printed")
        raise FailedError(sentence)

    return run


def report_of(found, left_out=()):
    lines = []
    status = check("rucb", lines.append, lambda wanted: (found, list(left_out)))
    return status, lines


def test_all_is_well():
    status, lines = report_of([Stage("style", lambda: ""), Stage("audit", lambda: "consistent")], ["rucb_blocks"])
    assert status == 0
    assert lines[0].startswith("rucb: jaxdp/dueling/_rucb.py, ")
    assert lines[1] == "left to `make test`: rucb_blocks"
    assert [line.split(" of processors: ")[1] for line in lines[2:]] == ["style", "audit: consistent", "in all"]


def test_the_first_failure_in_order_is_reported_though_a_later_one_comes_sooner(tmp_path):
    late = tmp_path / "late"
    found = [
        Stage("style", lambda: ""),
        Stage("contract", fails("no key used twice: in act", after=0.5)),
        Stage("tests", fails("golden: test_duels")),
        Stage("results", late.touch),  # pyright: ignore[reportArgumentType]
    ]
    status, lines = report_of(found)
    assert status == 1
    assert lines[2:] == ["rucb: no key used twice: in act", lines[3], "all that it printed"]
    assert lines[3].startswith("(contract, after ")
    assert not late.exists()


def test_stages_that_are_of_no_interest_any_more_are_stopped():
    start = time.monotonic()
    status, lines = report_of([Stage("style", fails("lint: E501")), Stage("tests", lambda: str(time.sleep(60)))])
    assert (status, lines[1]) == (1, "rucb: lint: E501")
    assert time.monotonic() - start < 30


def test_errors_and_dead_processes_are_failures():
    def raises():
        raise RuntimeError("no such\nthing")

    assert report_of([Stage("tests", raises)])[1][1] == "rucb: tests: RuntimeError: no such thing"
    assert report_of([Stage("tests", lambda: os._exit(3))])[1][1] == "rucb: tests: the process ended with 3"


def test_an_unknown_name_is_one_sentence():
    lines = []
    assert check("rucp", lines.append) == 2
    (sentence,) = lines
    assert "got 'rucp'; near it: rucb" in sentence


def test_stages_of_a_name_a_file_and_a_folder():
    names, left_out = stages_of(naming.subject("rucb"))
    assert [stage.name for stage in names] == [
        *("claim of rucb", "contract of rucb", "noise of rucb", "outputs of rucb", "tests"),
        *("distribution of rucb", "results of rucb", "style", "types"),
    ]
    assert left_out == []
    assert [stage.name for stage in stages_of(naming.subject("jaxdp/stats"))[0]] == ["tests", "style", "types"]
    assert entries_to_check(naming.subject("jaxdp/dueling/_rucb.py")) == ["rucb", "rucb_blocks"]
    shared = naming.subject("jaxdp/dueling/reports.py")
    assert len(entries_to_check(shared)) == 3
    assert len(stages_of(shared)[1]) == len(shared.entries) - 3


def test_a_claim_that_is_not_the_committed_one_fails_its_stage(monkeypatch):
    assert stages.claim("rucb") == ""
    other = {**stages.claims.claims_in_file()["rucb"], "epsilon": 0.5}
    monkeypatch.setattr(stages.claims, "claims_in_file", lambda: {"rucb": other})
    with pytest.raises(FailedError, match=r"claim: rucb: epsilon of its claim was 0.5 in .* and is 1.0 now"):
        stages.claim("rucb")


def test_a_file_that_the_linter_refuses_fails_its_stage(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text('"""A file."""\nimport os\n')
    wanted = naming.subject("rucb")._replace(files=(file,))
    with pytest.raises(FailedError, match=r"lint: .*F401"):
        stages.style(wanted)


def test_an_audit_that_finds_a_fault_or_raises_fails_its_stage(monkeypatch):
    right = registry.attacks(["randomized_response"])["randomized_response"].attacks["release"]

    def attacked(attack):
        target = Target(claim=attack.claim, attacks={"release": attack})
        monkeypatch.setattr(registry, "attacks", lambda names: {names[0]: target})
        return stages.audit("randomized_response", "outputs")

    monkeypatch.setattr(stages, "TRIALS", 1000)
    assert "consistent" in attacked(right)
    claimed = dataclasses.replace(right.claim, epsilon=right.claim.epsilon / 2)
    with pytest.raises(FailedError, match=r"audit, outputs: epsilon: at least .* of 0.5 claimed"):
        attacked(right._replace(claim=claimed))
    with pytest.raises(FailedError, match=r"audit, outputs: release: .*TypeError"):
        attacked(right._replace(release=lambda key: key))
