"""A curator's releases: exact noise, drawn once for each user, and kept in a file; wrong releases are caught."""

import functools
import itertools
import json
import math
import random
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxdp
from jaxdp.__main__ import app
from jaxdp.abtests import AnytimeCentral, FixedTest, _release
from jaxdp.abtests._schedule import Schedule
from jaxdp.mechanisms import _secret_noise


@functools.cache
def plan():
    return jaxdp.abtest(rate=0.5, lift=0.2, epsilon=1.0, trust="central", num_runs=100)


def bits(users) -> tuple[np.ndarray, np.ndarray]:
    control, treatment = (np.random.default_rng(arm).random(users) for arm in range(2))
    return (control < 0.5).astype(int), (treatment < 0.7).astype(int)


@pytest.fixture
def fixed_words(monkeypatch):
    """Replaces the operating system's words by a seeded generator."""
    monkeypatch.setattr(_secret_noise.secrets, "randbelow", random.Random(7).randrange)


def test_users_who_come_later_do_not_change_earlier_releases(tmp_path, fixed_words):
    rule, path = plan().test("anytime", release=True), tmp_path / "release.json"
    control, treatment = bits(2_000)
    assert isinstance(rule.rule, AnytimeCentral)
    first = rule.evaluate(control[:500], treatment[:600], path)
    early = json.loads(path.read_text())["releases"]
    assert len(early) == len(rule.rule.looks(500))
    assert first.waiting == 1_100 - first.users
    again = rule.evaluate(control[:500], treatment[:600], path)
    assert again == first, "no noise is drawn again"
    later = rule.evaluate(control, treatment, path)
    sums = json.loads(path.read_text())["releases"]
    assert sums[: len(early)] == early
    assert len(sums) == len(rule.rule.looks(2_000)) > len(early)
    assert later.decision == "treatment is better"
    ends = [0, *rule.rule.looks(2_000)]
    exact = np.add.reduceat((treatment - control)[: ends[-1]], ends[:-1])
    assert 0 < np.abs(np.transpose(sums)[0] - exact).max() < 40, "planted: no noise"
    with pytest.raises(ValueError, match="must have all users so far"):
        rule.evaluate(control[:500], treatment[:500], path)


def test_the_test_that_looks_once_draws_once(tmp_path, fixed_words):
    rule, path, users = plan().test("fixed", release=True), tmp_path / "release.json", plan().needs.fixed // 2
    verdict = rule.evaluate(*bits(users), path)
    assert rule.evaluate(*bits(users), path) == verdict
    released = json.loads(path.read_text())["releases"][0]
    assert released != [int(arm.sum()) for arm in bits(users)]
    assert verdict.rates == pytest.approx([one / users for one in released])
    with pytest.raises(ValueError, match="the fixed test looks once"):
        rule.evaluate(*bits(users + 1), path)
    with pytest.raises(ValueError, match=r"of this plan and kind of test, got .* of kind fixed, not anytime"):
        plan().test("anytime", release=True).evaluate(*bits(users), path)


def test_files_of_others_and_wrong_plans_are_refused(tmp_path):
    path = tmp_path / "release.json"
    other = jaxdp.abtest(rate=0.5, lift=0.2, epsilon=2.0, trust="central", num_runs=100)
    other.test("anytime", release=True).evaluate(*bits(500), path)
    before = path.read_text()
    for content, sentence in (
        (before, r"of releases of this plan and kind of test, got .* of epsilon 2.0, not 1.0"),
        ("{}", "file of releases that jaxdp wrote"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=sentence):
            plan().test("anytime", release=True).evaluate(*bits(500), path)
        assert path.read_text() == content
    with pytest.raises(ValueError, match=r"control must be 0 or 1, got 1 of 500"):
        plan().test("anytime", release=True).evaluate(np.append(bits(499)[0], 2), bits(500)[1], tmp_path / "new.json")
    with pytest.raises(ValueError, match="control and treatment must have"):
        plan().test("anytime", release=True).evaluate([0], [1], tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()
    local = jaxdp.abtest(rate=0.5, lift=0.2, epsilon=1.0, trust="local", num_runs=100)
    with pytest.raises(ValueError, match="trust must be central for a release, got local"):
        local.test("anytime", release=True)
    free = jaxdp.abtest(rate=0.5, lift=0.2, epsilon=math.inf, trust="central", num_runs=100)
    for kind in ("anytime", "fixed"):
        with pytest.raises(ValueError, match="epsilon must be finite for a release"):
            free.test(kind, release=True)


def releases(kind, bit, epsilon=1.0):
    """Releases the sums of one user of each arm: the control's bit is 0."""
    setting, arms = plan().setting._replace(epsilon=epsilon), [np.array([0]), np.array([bit])]
    if kind == "fixed":
        return _release.CentralRelease(FixedTest(setting, 2))._release_once(None, arms, Path("unused")).sums[0]
    rule = AnytimeCentral(setting, Schedule(1, 0.1))
    return _release.CentralRelease(rule)._release_epochs(rule, None, arms).sums[0]


def log_ratio(kind, draws=4_000):
    """Returns the log ratio of two frequencies of the event that tells neighbours apart best, and its error.

    A treatment bit of 1 raises each sum except the control's ones by 1. In the event all of these are at least 1.
    """
    hits = [sum(min(releases(kind, bit)[kind == "fixed" :]) >= 1 for _ in range(draws)) for bit in (0, 1)]
    return math.log(hits[1] / hits[0]), math.sqrt(sum(1 / hit for hit in hits))


@pytest.mark.parametrize("kind", ["anytime", "fixed"])
def test_neighbours_are_hidden_as_claimed(kind, fixed_words, monkeypatch):
    """Checks the ratio of probabilities; half the noise, and the whole epsilon for each of S and D, exceed it."""
    loss, error = log_ratio(kind)
    assert abs(loss - 1) < 4 * error, "the event reaches the claim"
    draw = _secret_noise.secret_discrete_laplace
    mutants = [lambda size, epsilon: draw(size, 2 * epsilon)]
    for wrong in [*mutants, *([lambda size, _: draw(size, 1.0)] if kind == "anytime" else [])]:
        monkeypatch.setattr(_release, "secret_discrete_laplace", wrong)
        loss, error = log_ratio(kind)
        assert loss > 1 + 4 * error


def numbers_of_releases(looks_of=None):
    """Returns the numbers of releases for all bits of three users of each arm; they are public."""
    numbers = set()
    for control in itertools.product((0, 1), repeat=3):
        for treatment in itertools.product((0, 1), repeat=3):
            arms = [np.asarray(control), np.asarray(treatment)]
            rule = AnytimeCentral(plan().setting, Schedule(1, 0.5))
            with pytest.MonkeyPatch.context() as patch:
                if looks_of:
                    patch.setattr(AnytimeCentral, "looks", lambda rule, pairs, lead=arms[1] - arms[0]: looks_of(lead))
                numbers.add(len(_release.CentralRelease(rule)._release_epochs(rule, None, arms).sums))
    return numbers


def test_looks_do_not_depend_on_bits():
    """Checks that all bits give three releases; a further look where the exact S first reaches 1 must show."""
    assert numbers_of_releases() == {3}
    assert numbers_of_releases(lambda lead: sorted({3, *(np.flatnonzero(np.cumsum(lead) == 1)[:1] + 1)})) == {1, 2}


@pytest.mark.parametrize("epsilon", np.random.default_rng(0).uniform(0.05, 30, 40).tolist())
def test_budgets_of_both_sums_add_up_exactly(epsilon, monkeypatch):
    budgets = []
    monkeypatch.setattr(_release, "secret_discrete_laplace", lambda size, each: budgets.append(each) or [0] * size)
    releases("anytime", 0, epsilon)
    assert len(budgets) == 2
    assert sum(map(Fraction, budgets)) == Fraction(epsilon)


def test_the_command_prints_the_verdict_and_its_claim_alone(tmp_path):
    log, path = tmp_path / "bits.csv", tmp_path / "release.json"
    arms = np.random.default_rng(0).permutation(np.repeat(["old", "new"], 2_000))
    values = np.random.default_rng(1).random(4_000) < np.where(arms == "new", 0.7, 0.5)
    log.write_text("arm,bit\n" + "".join(f"{arm},{int(bit)}\n" for arm, bit in zip(arms, values, strict=True)))
    command = ("abtest", "--rate", ".5", "--lift", ".2", "--epsilon", "1", "--trust", "central")
    command = [*command, "--reports", str(log), "--control", "old", "--release", str(path)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = CliRunner().invoke(app, command).output
        assert f"{path} is a new file" in first
        released = path.read_text()
        CliRunner().invoke(app, [*command, "--seed", "5"])
        assert path.read_text() == released, "the seed draws no noise"
    assert "treatment is better" in first
    assert "1-DP, central, one user's bit: " in first
    assert "imulation" not in first
    assert "looks once" not in first
    result = CliRunner().invoke(app, [*command, "--users", "100"])
    assert "release must come with --reports" in str(result.exception)
    text = CliRunner().invoke(app, command).output
    assert f"{path} has" in text
    assert "and 0 new ones" in text
    exchanged = [*command[: command.index("old")], "new", *command[command.index("old") + 1 :]]
    result = CliRunner().invoke(app, exchanged)
    assert "control must be the arm that was the control" in str(result.exception)


@pytest.mark.parametrize("kind", ["anytime", "fixed"])
def test_users_who_moved_are_refused(kind, tmp_path, fixed_words):
    """Exchanges the arms, reverses the order, removes or adds a user: noise for these would release users twice."""
    rule, path, users = plan().test(kind, release=True), tmp_path / "release.json", plan().needs.fixed // 2
    control, treatment = bits(users)
    arms = np.random.default_rng(2).permutation(np.repeat([0, 1], users))
    rule.evaluate(control, treatment, path, arms=arms)
    before = path.read_text()
    with pytest.raises(ValueError, match="control must be the arm that was the control"):
        rule.evaluate(treatment, control, path, arms=1 - arms)
    with pytest.raises(ValueError, match=r"arms must begin with the .* users who are in releases"):
        rule.evaluate(control[::-1], treatment[::-1], path, arms=arms[::-1])
    with pytest.raises(ValueError, match="arms must be given in all calls or in none"):
        rule.evaluate(control, treatment, path)
    with pytest.raises(ValueError, match="arms must be an array"):
        rule.evaluate(control[1:], treatment, path, arms=arms)
    if kind == "anytime":
        for shift in (arms[1:], np.append(arms[0], arms)):  # a user is missing, or came in front
            sizes = [int(np.sum(shift == arm)) for arm in (0, 1)]
            with pytest.raises(ValueError, match="arms must begin with"):
                rule.evaluate(np.resize(control, sizes[0]), np.resize(treatment, sizes[1]), path, arms=shift)
        more = [0, 1] * 500
        later = rule.evaluate(
            np.append(control, more), np.append(treatment, more), path, arms=np.append(arms, [0, 1] * 1_000)
        )
        assert later.users > 2 * users
        assert json.loads(path.read_text())["releases"][:3] == json.loads(before)["releases"][:3]
    else:
        assert path.read_text() == before


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="path must lie in a folder that exists"):
        plan().test("anytime", release=True).evaluate(*bits(500), tmp_path / "typo" / "release.json")
    assert not (tmp_path / "typo").exists()
