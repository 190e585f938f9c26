"""The rows of the benchmarks: each can be made, all are measured in one way, and the table and its page show them."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import jaxdp
from benchmarks import measure, run, table
from benchmarks.measure import Case, Work
from benchmarks.row import LearnerRow, check_agreement, tile_of_many
from benchmarks.rows import all_rows, select_rows

pytestmark = pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="the benchmarks measure programs of 32 bits")
LEARNERS = {name: row for name, row in all_rows().items() if isinstance(row, LearnerRow)}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_row_is_of_a_learner_a_world_and_values_that_fit(name):
    row = LEARNERS[name]
    made = jaxdp.simulator(row.learner(row.horizon), row.world(row.horizon), row.horizon, engine=row.engine)
    params = made.params(**row.values)
    assert row.lanes % (row.tile or row.lanes) == 0
    for peer in row.peers.values():
        assert callable(peer(row.horizon, params))


def test_rows_of_real_valued_central_data_come_first():
    names = list(all_rows())
    first = names[: next(index for index, name in enumerate(names) if "real" not in name)]
    assert {name.partition(",")[0] for name in first} >= {"limited_updates", "explore_then_commit", "svt_lazy"}
    for engine in ("rounds", "blocks"):
        assert f"limited_updates, real losses, by {engine}" in first
    assert "tree_counter, real data, by rounds" in first
    assert all(all_rows()[name].in_table for name in first)


def test_rows_are_selected_by_name_or_by_its_beginning():
    assert list(select_rows(["rucb"])) == ["rucb, by rounds"]
    assert list(select_rows(["hedge, 100 experts", "ucb, by rounds"])) == [
        "hedge, 100 experts, by rounds",
        "ucb, by rounds",
    ]
    assert all(row.in_table for row in select_rows([]).values())
    with pytest.raises(ValueError, match="got 'ruc'"):
        select_rows(["ruc"])


def test_an_unknown_name_is_refused_before_anything_is_measured(capsys):
    assert run.main(["rucb; nothing"]) == 2
    assert "got 'nothing'" in capsys.readouterr().err


class Clock:
    """A clock that calls move on, each by its own seconds in each turn."""

    def __init__(self, **seconds):
        self.now, self.order, self.seconds = 0.0, [], {name: iter(values) for name, values in seconds.items()}

    def call(self, name):
        self.order.append(name)
        self.now += next(self.seconds[name])


def test_calls_take_turns_and_a_ratio_is_the_median_over_turns(monkeypatch):
    clock = Clock(ours=[50, 1, 2, 10], peer=[50, 3, 6, 20])
    monkeypatch.setattr(measure, "CLOCKS", {"wall": lambda: clock.now, "processor": lambda: 2 * clock.now})
    works = {
        "ours": Work(lambda: clock.call("ours"), units=4, cores=2, compiling=1.5),
        "peer": Work(lambda: clock.call("peer"), units=2, cores=2),
    }
    record = measure.measure(Case(works=works, size="4", unit="word"), repeats=3)
    assert clock.order == ["ours", "peer"] * 4
    assert record["ns"] == 2 * 2 / 4 * 1e9
    assert record["ns_spread"] == [0.5e9, 5e9]
    assert record["ratios"] == {"peer": 2 * 3}  # ratios 3, 3 and 2, of half as many units
    assert record["seconds"]["peer"]["wall"] == [3, 6, 20]
    assert record["compiling_seconds"] == 1.5


def test_by_the_processor_cores_are_counted_once(monkeypatch):
    clock = Clock(ours=[1, 4])
    monkeypatch.setattr(measure, "CLOCKS", {"wall": lambda: clock.now, "processor": lambda: clock.now})
    works = {"ours": Work(lambda: clock.call("ours"), units=2, cores=2)}
    record = measure.measure(Case(works=works, size="", unit=""), repeats=1, clock="processor")
    assert record["ns"] == 2e9
    assert record["peer"] is None


def test_a_peer_that_computes_something_else_is_refused():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(10, 1, 500), rng.normal(10, 1, 500)
    check_agreement("regrets", ours, theirs)
    with pytest.raises(AssertionError, match="regrets must agree"):
        check_agreement("regrets", ours, theirs + 0.5)


RECORD = {
    "machine": "x86_64, 2 cores",
    "processor": "AuthenticAMD-25-1 avx avx2 fma sse",
    "date": "2026-01-02T03:04:05",
    "commit": "abc",
    "repeats": 7,
    "seconds": 125.2,
    "load_at_the_end": 0.5,
    "rows": [
        {
            **{"name": "ucb, by rounds", "size": "16 x 40", "unit": "lane-round", "clock": "wall", "ns": 17.66},
            **{"peer": "Numba", "ratios": {"Numba": 2.345, "plain": 12.3}, "compiling_seconds": 0.84},
            **{"operations": 2040.0, "operations_per_second_and_core": 2e10},
        },
        {
            **{"name": "words", "size": "8", "unit": "word", "clock": "wall", "ns": 2.0},
            **{"peer": "jax.random", "ratios": {"jax.random": 4.0}, "compiling_seconds": None},
        },
    ],
}


def test_the_page_has_the_table_of_a_record(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(table.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    table.write_page(page, RECORD)
    text = page.read_text(encoding="utf-8")
    assert "x86_64, 2 cores, AVX2 without AVX-512. 2026-01-02, commit abc: 2 rows in 2 min 5 s; medians of 7" in text
    assert "medians of 7 turns by wall time; load at the end 0.5.\n" in text
    assert "| ucb, by rounds | 16 x 40 | 17.7 | 2.35x | 12.3x | 0.8 s | 2,040 | 0.17x |\n" in text
    assert "| words | 8 | 2 | 4.00x jax.random | - | - | - | - |\n" in text
    assert "| thompson, by rounds |" not in text  # the former table is gone
    before, after = (table.PAGE.read_text(encoding="utf-8").split(mark) for mark in (table.START, table.END))
    assert text.startswith(before[0])
    assert text.endswith(after[1])


def test_a_page_without_its_marks_stays_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Nothing\n")
    with pytest.raises(ValueError, match="page must have lines"):
        table.write_page(page, RECORD)
    assert page.read_text() == "# Nothing\n"


def test_rows_run_at_tiny_sizes(tmp_path, capsys):
    out = tmp_path / "bench.json"
    names = "ucb, by rounds; toeplitz_counter; words, one key, 1,000,000; audit, laplace"
    assert run.main(["--quick", "--floors", "--out", str(out), names]) == 0
    rows = {row["name"]: row for row in json.loads(out.read_text())["rows"]}
    assert len(rows) == 4
    assert set(rows["ucb, by rounds"]["ratios"]) == {"Numba", "NumPy", "floor", "plain"}
    assert all(row["ns"] > 0 for row in rows.values())
    assert "NumPy: " in capsys.readouterr().out


def test_a_row_whose_peer_plays_another_game_fails():
    row = all_rows()["thompson, by rounds"]
    assert isinstance(row, LearnerRow)

    def make_peer(horizon, params):
        return lambda regret: regret.fill(0.0)

    wrong = dataclasses.replace(row, peers={"Numba": make_peer}, scripts={}, in_table=False)
    with pytest.raises(AssertionError, match="must agree"):
        measure.measure(wrong.prepare(quick=True), 1)


def test_rows_without_a_tile_have_the_default_of_sweeps_with_many_lanes():
    simulated = jaxdp.simulator(jaxdp.bandits.ucb(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.2, 0.6]), 10)
    assert tile_of_many(simulated, simulated.params(epsilon=1.0)) == 1056
