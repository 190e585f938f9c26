"""`make check` stops at the first failure in its order, names the check, and lists the omitted ones."""

import dataclasses
import os
import pickle
import time

import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import Target
from tests.loop import naming, stages
from tests.loop.check import check, entries_to_check, stages_of
from tests.loop.running import FailedError, Stage

# Newer versions of Python and JAX warn of every fork of a process with threads; the forked code uses neither.
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
    assert lines[0].startswith("rucb: jaxdp/dueling/_rucb/_rucb.py, ")
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
    assert entries_to_check(naming.subject("jaxdp/dueling/_rucb/_rucb.py")) == ["rucb", "rucb_blocks"]
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


def test_an_entry_without_a_test_fails_its_stage_and_a_file_says_so(monkeypatch):
    monkeypatch.setattr(stages.pytest, "main", lambda *arguments, **options: pytest.ExitCode.NO_TESTS_COLLECTED)
    with pytest.raises(FailedError, match="tests: no test names rucb"):
        stages.tests(naming.subject("rucb"))
    assert stages.tests(naming.subject("jaxdp/stats/arrays.py")).startswith("no test names jaxdp/stats/arrays.py")


ONES, ZEROS = ({"case": {"x": values}} for values in (np.ones(2), np.zeros(2)))


@pytest.fixture
def compare(monkeypatch, tmp_path):
    """Returns a function that compares results of two checkouts, given as (old, new)."""

    def of(old, new, **options):
        def write(checkout, bits, pattern, flags, file, times):
            file.write_bytes(pickle.dumps(old))
            return new if checkout == naming.ROOT else old

        monkeypatch.setattr(stages.same_results, "results", write)
        return stages.results("rucb", **options)

    monkeypatch.setattr(stages, "KEPT", tmp_path)
    monkeypatch.setattr(stages, "reference_commit", lambda: ("abc", ""))
    monkeypatch.setattr(stages, "_checkout", lambda commit: tmp_path)
    return of


@pytest.mark.parametrize(
    ("old", "note"), [(ONES, "1 outputs are those of abc"), ({}, "nothing to compare: rucb is not in abc")]
)
def test_equal_results_and_new_entries_pass(compare, old, note):
    assert compare(old, ONES) == note


def test_differences_that_are_meant_are_counted(compare):
    assert compare(ONES, ZEROS, may_differ=True) == "1 of 1 outputs differ from those of abc"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [(ONES, ZEROS, "results differ from"), (ONES, {}, "nothing was compared"), ({}, {}, "nothing was compared")],
)
def test_differences_and_comparisons_of_nothing_fail(compare, old, new, reason):
    with pytest.raises(FailedError, match=reason):
        compare(old, new)


def test_results_are_compared_with_the_last_landed_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "name")

    def commit(text):
        (tmp_path / "jaxdp" / "file.py").write_text(text)
        stages._git("add", "-A")
        stages._git("commit", "-q", "-m", text)
        return stages._git("rev-parse", "HEAD").strip()

    stages._git("init", "-q", "-b", "main")
    (tmp_path / "jaxdp").mkdir()
    first = commit("first")
    assert stages.reference_commit() == (None, "there is no earlier commit to compare with")
    second = commit("second")
    assert stages.reference_commit() == (first, "")
    (tmp_path / "jaxdp" / "file.py").write_text("changed")
    assert stages.reference_commit() == (second, "")
    stages._git("checkout", "-q", "-b", "mine")
    commit("third")
    commit("fourth")
    assert stages.reference_commit() == (second, "")
    commit("second")
    assert stages.reference_commit() == (None, f"jaxdp is that of {second[:10]}, file by file")
    (tmp_path / "jaxdp" / "file.py").write_text("changed again")
    assert stages.reference_commit() == (second, "")


def test_new_results_are_meant_where_the_variable_is_set(monkeypatch):
    meant = []
    monkeypatch.setattr(stages, "results", lambda name, may_differ: meant.append(may_differ))
    for value in ("", "0", "1"):
        monkeypatch.setenv("NEW_RESULTS", value)
        next(stage for stage in stages_of(naming.subject("rucb"))[0] if stage.name == "results of rucb").run()
    assert meant == [False, False, True]


def test_an_audit_that_finds_a_fault_or_raises_fails_its_stage(monkeypatch):
    right = registry.attacks(["randomized_response"])["randomized_response"].attacks["release"]

    def attacked(attack):
        target = Target(guarantee=attack.guarantee, attacks={"release": attack})
        monkeypatch.setattr(registry, "attacks", lambda names: {names[0]: target})
        return stages.audit("randomized_response", "outputs")

    monkeypatch.setattr(stages, "TRIALS", 1000)
    assert "consistent" in attacked(right)
    claimed = dataclasses.replace(right.guarantee, epsilon=right.guarantee.epsilon / 2)
    with pytest.raises(FailedError, match=r"audit, outputs: epsilon: at least .* of 0.5 claimed"):
        attacked(right._replace(guarantee=claimed))
    with pytest.raises(FailedError, match=r"audit, outputs: release: .*TypeError"):
        attacked(right._replace(release=lambda key: key))
