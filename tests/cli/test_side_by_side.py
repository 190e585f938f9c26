"""Claims that are audited at the same time, each in a process of its own."""

import dataclasses
import multiprocessing
import os

import pytest

from jaxdp import registry
from jaxdp.audit import scoreboard
from jaxdp.studies.command import root_key
from jaxdp.studies.side_by_side import _environment_of_workers, side_by_side, usual_jobs

NAMES = ["randomized_response", "k_ary_randomized_response", "randomize_scalar"]
HOW = {"trials": 3000, "searched": False, "turn": 1}


def test_rows_are_those_of_one_process_and_nothing_goes_on_when_the_caller_stops():
    wanted = scoreboard(root_key(1), registry.attacks(NAMES), **HOW)
    rows = side_by_side(NAMES, seed=1, jobs=2, **HOW)
    for _ in NAMES[:2]:
        own, other = (dataclasses.replace(next(board), seconds=0.0) for board in (wanted, rows))
        assert own == other
    rows.close()
    assert not multiprocessing.active_children()


def test_the_environment_of_processes_is_not_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_hlo_as_text=false")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    former = dict(os.environ)
    with _environment_of_workers():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
        assert os.environ["XLA_FLAGS"].endswith(" --xla_dump_hlo_as_text=false")
    assert dict(os.environ) == former


def test_a_process_that_is_killed_is_told():
    rows = side_by_side(NAMES, seed=1, jobs=2, **HOW)
    next(rows)
    for process in multiprocessing.active_children():
        process.kill()
    with pytest.raises(MemoryError, match="one of 2 processes was killed"):
        list(rows)


def test_entries_of_a_users_module_are_known_to_the_processes(tmp_path, monkeypatch):
    """Registers an entry that claims half of its cost."""
    text = """
        import dataclasses, jaxdp
        from jaxdp.registry import MECHANISMS
        honest = MECHANISMS["randomized_response"]
        claim = lambda epsilon: honest.guarantee(epsilon=epsilon / 2)
        jaxdp.register("a_liar", dataclasses.replace(honest, guarantee=claim))
    """
    (tmp_path / "liars.py").write_text("\n".join(line.strip() for line in text.splitlines()))
    monkeypatch.chdir(tmp_path)
    rows = list(side_by_side(["a_liar", NAMES[0]], seed=0, jobs=2, modules=["liars"], **HOW))
    assert [(row.name, row.verdict) for row in rows] == [("a_liar", "violated"), (NAMES[0], "consistent")]


@pytest.mark.parametrize(
    ("claims", "cores", "backend", "jobs"),
    [(100, 2, "cpu", 2), (100, 16, "cpu", 2), (7, 2, "cpu", 1), (100, 1, "cpu", 1), (100, 16, "gpu", 1)],
)
def test_how_many_where_nobody_says(claims, cores, backend, jobs):
    assert usual_jobs(claims, cores, backend) == jobs
