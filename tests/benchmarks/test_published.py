"""Attacks on published code: what needs no checkout."""

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.published import greedy, prototypes, regret, run
from benchmarks.published.adapters import REPOSITORIES
from benchmarks.published.arms import Pulling
from benchmarks.published.cases import Repository
from benchmarks.published.matches import matches
from benchmarks.published.players import play_arms
from jaxdp.audit import python_learner
from jaxdp.audit.adversary import UserData

PAGE = Path(run.__file__).parents[2] / "docs/project/beside_published_code.md"


def pull_alternately(module, rounds):
    total = np.zeros(2)
    for round_ in range(rounds):
        arm = round_ % 2
        total[arm] += module.sample_reward(float(arm), 0)
    return total


def test_a_function_that_draws_its_own_rewards_is_played_round_by_round():
    module = SimpleNamespace()
    learner = python_learner(
        lambda: Pulling(module, lambda: pull_alternately(module, 4), ("total",)),
        num_actions=2,
        guarantee=1.0,
        observe=["shown"],
    )
    answers = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])
    actions, shown = learner.run(0, UserData(answers))
    assert actions.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(shown, [[0.1, 0.0], [0.1, 0.4], [0.6, 0.4], [0.6, 0.4]])


def test_its_errors_name_the_round():
    def fail(module):
        module.sample_reward(1.0, 0)
        raise KeyError("theirs")

    module = SimpleNamespace()
    learner = python_learner(lambda: Pulling(module, lambda: fail(module)), num_actions=2, guarantee=1.0)
    with pytest.raises(RuntimeError, match="failed in round 0, counted from 0: KeyError: 'theirs'"):
        learner.run(0, UserData(np.zeros((2, 2))))


def test_the_page_shows_the_kept_results():
    page = Path(run.__file__).with_name("README.md").read_text()
    results = json.loads(run.RESULTS.read_text())
    assert run.table(results) in page
    assert set(results) <= set(REPOSITORIES)
    for rows in results.values():
        for row in rows.values():
            violated = row["lower_bound"] > row["epsilon"]
            assert row["verdict"] == (
                "violated" if violated else "consistent" if row["lower_bound"] else "nothing shown"
            )


def test_the_letters_name_the_kept_bounds():
    letters = Path(run.__file__).with_name("letters.md").read_text()
    for repository, rows in json.loads(run.RESULTS.read_text()).items():
        letter = letters.partition(f"## {repository}")[2].partition("## ")[0]
        for code, row in rows.items():
            if row["verdict"] == "violated":
                assert f"`{code}`" in letter
                assert f"{row['lower_bound']:.2f}" in letter, code


def test_other_files_than_the_attacked_commit_are_refused(tmp_path, monkeypatch, capsys):
    repository = REPOSITORIES["MIFA-Lab/LDPbandit2020"]
    with pytest.raises(ValueError, match="checkout must be a folder with src"):
        run.digest(tmp_path, repository)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "linucb.py").write_text("raise AssertionError")
    monkeypatch.setattr(sys, "argv", ["run", "MIFA-Lab/LDPbandit2020", "--checkout", str(tmp_path)])
    with pytest.raises(SystemExit):
        run.main()
    assert "its files have another digest" in capsys.readouterr().err


@pytest.fixture
def checkouts(tmp_path, monkeypatch):
    """Returns a folder with a checkout of one known repository, and a folder without one."""
    (tmp_path / "under_any_name").mkdir()
    (tmp_path / "under_any_name" / "code.py").write_text("value = 1")
    (tmp_path / "another_commit").mkdir()
    (tmp_path / "another_commit" / "code.py").write_text("value = 2")
    repository = Repository("https://example.org/known", "1234567", "", ("*.py",), lambda folder: {})
    known = repository._replace(digest=run.digest(tmp_path / "under_any_name", repository))
    monkeypatch.setattr(run, "REPOSITORIES", {"a/known": known, "a/absent": repository._replace(files=("*.c",))})
    return tmp_path


def test_checkouts_are_found_by_their_files_and_attacked_one_by_one(checkouts, monkeypatch, capsys):
    assert run.find_checkouts(checkouts) == {"a/known": checkouts / "under_any_name"}
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command: commands.append(command) or SimpleNamespace(returncode=3))
    monkeypatch.setattr(sys, "argv", ["run", "--checkouts", str(checkouts), "--missing", "--trials", "100"])
    with pytest.raises(SystemExit) as stopped:
        run.main()
    assert stopped.value.code == 3
    (command,) = commands
    assert command[3:6] == ["a/known", "--checkout", str(checkouts / "under_any_name")]
    assert command[6:] == ["--trials", "100", "--results", str(run.RESULTS), "--missing"]
    assert "a/absent: no checkout at 1234567" in capsys.readouterr().out


def test_an_interrupted_run_keeps_its_rows_and_attacks_the_missing_ones(checkouts, monkeypatch):
    attacked, results = [], checkouts / "results.json"

    def attack(case, trials):
        attacked.append(case)
        if attacked == ["first", "second"]:
            raise KeyboardInterrupt
        return {"lower_bound": len(attacked)}

    cases = {"A": "first", "B": "second", "C": "third"}
    known = run.REPOSITORIES["a/known"]._replace(cases=lambda folder: cases)
    monkeypatch.setitem(run.REPOSITORIES, "a/known", known)
    monkeypatch.setattr(run, "attack", attack)
    options = ["--checkout", str(checkouts / "under_any_name"), "--results", str(results), "--missing"]
    monkeypatch.setattr(sys, "argv", ["run", "a/known", *options])
    with pytest.raises(KeyboardInterrupt):
        run.main()
    assert json.loads(results.read_text()) == {"a/known": {"A": {"lower_bound": 1}}}
    run.main()
    assert attacked == ["first", "second", "second", "third"]
    bounds = {name: row["lower_bound"] for name, row in json.loads(results.read_text())["a/known"].items()}
    assert bounds == {"A": 1, "B": 3, "C": 4}


def test_the_pages_show_kept_regret_apart_from_refuted_claims():
    results = json.loads(regret.RESULTS.read_text())
    attacks = Path(run.__file__).with_name("README.md").read_text()
    linked = PAGE.read_text()
    assert regret.table(results, refuted=True) in attacks
    assert regret.table(results, refuted=False) in linked
    for name, rows in json.loads(run.RESULTS.read_text()).items():
        for code, row in rows.items():
            assert row["verdict"] != "violated" or code not in linked, f"{name}: {code}"


def test_the_page_shows_the_kept_prototypes():
    results = json.loads(prototypes.RESULTS.read_text())
    assert prototypes.table(results) in PAGE.read_text()
    rows = [results["counters"], *(problem["rows"] for problem in results["greedy"])]
    assert all(row["seeds"] == 100 for table in rows for row in table.values())


def test_the_page_shows_the_kept_regret_of_greedy_play():
    results = json.loads(greedy.RESULTS.read_text())
    assert greedy.table(results) in PAGE.read_text()
    assert [problem["world"] for problem in results] == list(greedy.PROBLEMS)


def is_spread(samples, stddev):
    """Returns whether the variance of independent samples is within five standard errors of a variance."""
    squares = np.square(samples)
    return abs(squares.mean() - stddev**2) < 5 * squares.std() / len(samples) ** 0.5


@pytest.mark.parametrize("count", [1, 3, 4, 13, 16])
def test_hybrid_counters_have_the_noise_of_their_definition(count):
    """Checks variance and radius after some entries: closed blocks, and nodes of the open block's tree."""
    counters = prototypes.HybridCounters(np.random.default_rng(0), (20_000, 2), epsilon=2.0, share=0.25)
    for _ in range(count):
        counters.feed(np.ones(20_000, int))
    levels = count.bit_length() - 1
    nodes = (count - 2**levels).bit_count()
    variance = 2 * ((levels + 1) / 0.5**2 + nodes * (levels / 1.5) ** 2)
    assert is_spread(counters.noise[:, 1], variance**0.5)
    assert not is_spread(counters.noise[:, 1], (variance + 2 / 0.5**2) ** 0.5)  # one more block
    assert not counters.noise[:, 0].any()
    radius = counters.radius(2.0)[0, 1]
    share = np.mean(counters.noise[:, 1] > radius)
    assert 0.005 < share < math.exp(-2.0)


def test_reports_of_gradients_are_unbiased_and_private():
    generator, gradient = np.random.default_rng(0), np.array([0.3, -0.4, 0.0])
    reports = prototypes.ball_report(generator, np.tile(gradient, (100_000, 1)), 1.0)
    errors = reports.std(axis=0) / len(reports) ** 0.5
    assert (abs(reports.mean(axis=0) - gradient) < 5 * errors).all()
    longest = prototypes.ball_report(generator, np.tile([1.0, 0.0, 0.0], (100_000, 1)), 1.0)
    share = np.mean(longest[:, 0] > 0)
    assert share / (1 - share) == pytest.approx(math.e, rel=0.03)


def test_kept_regret_is_of_today_s_matches():
    today = matches()
    assert set(today) <= set(REPOSITORIES)
    for name, rows in json.loads(regret.RESULTS.read_text()).items():
        for code, row in rows.items():
            match = today[name][code]
            assert (row["world"], row["epsilon"], row["horizon"], row["note"]) == ((*match[:3], match.note))
            assert set(row["ours"]) == set(match.ours)


def test_arms_are_played_with_their_means():
    class Alternating:
        round = 0

        def act(self):
            return self.round % 5

        def update(self, arm, reward):
            assert arm == self.round % 5
            assert reward in (0.0, 1.0)
            self.round += 1

    total, seconds = play_arms(lambda generator: Alternating(), 20)(np.random.default_rng(0))
    assert total == pytest.approx(4 * (0.125 + 0.25 + 0.375 + 0.5))
    assert seconds >= 0
