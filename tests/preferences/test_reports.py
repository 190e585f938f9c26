"""Labels are privatized once: budgets of labels and persons, the unbiased loss, and the file for a DPO trainer."""

import json
import math
import secrets
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms._secret_noise import flip_threshold
from jaxdp.preferences import debiased_loss, private_labels, to_jsonl

KEY = jax.random.key(5)
NUM = 30_000


def check_flips(reports, labels, epsilon):
    flips = (reports != labels).mean()
    chance = 1 / (1 + math.exp(epsilon))
    assert abs(flips - chance) < 5 * math.sqrt(chance * (1 - chance) / len(labels))


def test_each_label_or_each_person_has_the_budget():
    labels = np.random.default_rng(0).integers(0, 2, NUM)
    private = private_labels(labels, 1.0, key=KEY)
    check_flips(private.reports, labels, 1.0)
    assert str(private.claim) == "1-DP, local, one label"
    persons = np.where(np.arange(NUM) % 2, np.arange(NUM) // 6, -1 - np.arange(NUM))  # 3 labels, or 1
    private = private_labels(labels, 1.0, persons=persons, key=KEY)
    assert str(private.claim) == "1-DP, local, one person"
    for has_three, epsilon in ((True, 1 / 3), (False, 1.0)):
        of_them = (persons >= 0) == has_three
        check_flips(private.reports[of_them], labels[of_them], epsilon)
        np.testing.assert_allclose(private.epsilons[of_them], epsilon)
        np.testing.assert_allclose(private.flip_probs[of_them], 1 / (1 + math.exp(epsilon)))
        with pytest.raises(AssertionError):  # planted: the budget is not divided, or divided where it need not be
            check_flips(private.reports[of_them], labels[of_them], 4 / 3 - epsilon)


def test_labels_are_randomized_independently():
    pairs = private_labels(np.zeros(NUM), 1.0, key=KEY).reports.reshape(-1, 2)
    both, chance = pairs.all(axis=1).mean(), (1 / (1 + math.e)) ** 2
    assert abs(both - chance) < 5 * math.sqrt(chance / len(pairs))


def test_infinite_epsilon_keeps_labels_and_ties_are_fair_coins():
    labels = np.asarray([0, 1, -3, 7, np.inf, -np.inf])
    private = private_labels(labels, math.inf, key=KEY)
    assert private.reports.tolist() == [0, 1, 0, 1, 1, 0]
    assert not private.claim.is_private
    for tie in (0.5, np.nan):
        ties = private_labels(np.full(NUM, tie), math.inf, key=KEY).reports
        assert abs(ties.mean() - 0.5) < 5 * 0.5 / math.sqrt(NUM)


@pytest.mark.parametrize("epsilon", [0.3, 4.0, math.inf])
def test_the_loss_is_unbiased_and_that_of_robust_dpo(epsilon):
    """Compares with the loss of Ray Chowdhury, Kini & Natarajan (2024) written with flip probabilities, in NumPy."""
    margins = np.asarray([-3.0, -0.1, 0.0, 2.0, 30.0])
    flip = 0.0 if math.isinf(epsilon) else 1 / (1 + math.exp(epsilon))
    one, zero = np.logaddexp(0, -margins), np.logaddexp(0, margins)
    losses = [np.asarray(debiased_loss(margins, np.full(5, report), epsilon)) for report in (0, 1)]
    robust = [((1 - flip) * a - flip * b) / (1 - 2 * flip) for a, b in ((zero, one), (one, zero))]
    np.testing.assert_allclose(losses, robust, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose((1 - flip) * losses[1] + flip * losses[0], one, rtol=1e-4, atol=1e-4)
    if flip:
        spread = (losses[1] - losses[0]) ** 2 * flip * (1 - flip)
        np.testing.assert_allclose(spread, margins**2 / (4 * math.sinh(epsilon / 2) ** 2), rtol=1e-4)


def test_the_loss_has_a_slope_and_takes_a_budget_a_report():
    epsilons = jnp.asarray([1.0, 2.0])
    slopes = jax.jit(jax.grad(lambda m: debiased_loss(m, jnp.ones(2, jnp.int32), epsilons).sum()))(jnp.zeros(2))
    np.testing.assert_allclose(slopes, -0.5 / np.tanh(np.asarray([0.5, 1.0])), rtol=1e-5)


def test_lists_of_reports_and_of_epsilons_may_have_traced_entries():
    def loss(report: Any, epsilon: Any) -> Any:
        reports: Any = [report, 1]
        epsilons: Any = [epsilon, 0.5]
        return debiased_loss(jnp.ones(2), reports, epsilons)

    np.testing.assert_allclose(jax.jit(loss)(1, 2.0), loss(1, 2.0), rtol=1e-6)


@pytest.mark.parametrize("name", ["margins", "reports", "epsilon"])
def test_the_loss_refuses_complex_numbers(name):
    values: dict[str, Any] = {"margins": [0.5, 0.5], "reports": [0, 1], "epsilon": [1.0, 1.0]}
    for convert in (np.asarray, jnp.asarray):
        with pytest.raises(ValueError, match=f"{name} must be real numbers, got complex"):
            debiased_loss(**{**values, name: convert(np.asarray(values[name]) + 1j)})


def test_the_loss_is_finite_at_the_smallest_epsilon():
    least = 2 * float(np.finfo(jax.dtypes.canonicalize_dtype(float)).tiny)
    assert np.isfinite(debiased_loss(jnp.ones(2), np.array([0, 1]), least)).all()
    with pytest.raises(ValueError, match=r"epsilon must be > 0, and at least .* for floats, got"):
        debiased_loss(jnp.ones(2), np.array([0, 1]), np.array([1.0, least / 2]))


def test_the_loss_takes_any_numbers_and_refuses_other_shapes():
    """Checks whole and short margins, with which epsilon must not be rounded, and a column that would broadcast."""
    reports, exact = jnp.ones(2, jnp.int32), debiased_loss(jnp.asarray([1.0, 2.0]), jnp.ones(2, jnp.int32), 0.7)
    for dtype in (jnp.int32, jnp.bfloat16):
        np.testing.assert_array_equal(debiased_loss(jnp.asarray([1, 2], dtype), reports, 0.7), exact)
    for shape, epsilon in (((2, 1), 0.7), ((2,), np.ones(3))):
        with pytest.raises(ValueError, match=r"reports must have the shape of margins, \(2,\), and epsilon this shape"):
            debiased_loss(jnp.zeros(2), jnp.ones(shape, jnp.int32), epsilon)
    for epsilon in (0.0, -1.0, math.nan, np.asarray([1.0, 0.0])):
        with pytest.raises(ValueError, match="epsilon must be > 0, and at least"):
            debiased_loss(jnp.zeros(2), reports, epsilon)
    with pytest.raises(ValueError, match="reports must be 0 or 1, got 1 of 2 that are not"):
        debiased_loss(jnp.zeros(2), np.asarray([-1, 1]), 1.0)
    with pytest.raises(ValueError, match="margins must have no masked entries"):
        debiased_loss(np.ma.array([0.0, 1.0], mask=[True, False]), reports, 1.0)


def test_a_file_of_reports_has_no_labels(tmp_path):
    labels = np.zeros(400, int)
    private = private_labels(labels, 1.0, key=KEY)
    path = tmp_path / "reports.jsonl"
    texts = {name: [f"{name} {row}" for row in range(400)] for name in ("prompts", "first", "second")}
    to_jsonl(private, path, **texts)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["chosen"].startswith("first") for row in rows] == (private.reports == 1).tolist()
    assert {row["flip_prob"] for row in rows} == {private.flip_probs[0]}
    assert all({row["chosen"], row["rejected"]} == {f"first {k}", f"second {k}"} for k, row in enumerate(rows))
    with pytest.raises(FileExistsError):
        to_jsonl(private, path, **texts)
    with pytest.raises(ValueError, match="second must have one text for each report, 400, got 3"):
        to_jsonl(private, tmp_path / "other", **{**texts, "second": ["a", "b", "c"]})
    with pytest.raises(TypeError):
        to_jsonl(private, tmp_path / "other", **{**texts, "second": [object()] * 400})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"first must be texts that UTF-8 can encode, got 'a\\ud800' in row 0"):
        to_jsonl(private, tmp_path / "other", **{**texts, "first": ["a\ud800"] * 400})
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [[0, 1]]}, r"labels must be a vector of real numbers, got int64 of shape \(1, 2\)"),
        ({"labels": np.array([1 + 5j, 0])}, "labels must be a vector of real numbers, got complex128"),
        ({"labels": ["a", "b"]}, "labels must be a vector of real numbers"),
        ({"labels": np.ma.array([0, 1], mask=[False, True])}, "labels must have no masked entries, got 1 of them"),
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": math.nan}, "epsilon must be > 0"),
        ({"persons": ["a"]}, r"persons must have one id for each label, 2, got shape \(1,\)"),
        (
            {"persons": np.asarray([7, np.nan], object)},
            "persons must be ids that are all text or all integers, got float",
        ),
        ({"key": 3}, "key must be one typed PRNG key"),
    ],
)
def test_wrong_labels_are_refused(changes, message):
    values = {"labels": [0, 1], "epsilon": 1.0, "persons": None, "key": KEY} | changes
    with pytest.raises(ValueError, match=message):
        private_labels(values.pop("labels"), values.pop("epsilon"), **values)


def release_of_a_word(monkeypatch, word):
    """Makes every random word of the operating system the same."""
    monkeypatch.setattr(secrets, "token_bytes", lambda count: np.full(count // 8, word, np.uint64).tobytes())


def test_a_release_flips_by_random_words_of_the_operating_system(monkeypatch):
    """Checks words at both sides of the thresholds of epsilon / k; planted: the threshold of the whole epsilon."""
    persons = np.array(["a", "a", "b"])
    whole, half = (flip_threshold(Fraction(budget)) for budget in (1.0, 0.5))
    assert whole < half
    for word, flipped in ((whole - 1, [1, 1, 1]), (whole, [1, 1, 0]), (half - 1, [1, 1, 0]), (half, [0, 0, 0])):
        release_of_a_word(monkeypatch, word)
        private = private_labels(np.zeros(3), 1.0, persons=persons, release=True)
        assert private.reports.tolist() == flipped
        assert private_labels(np.ones(3), 1.0, persons=persons, release=True).reports.tolist() == [
            1 - x for x in flipped
        ]
    assert private.epsilons.tolist() == [0.5, 0.5, 1.0]
    assert private.claim.numerical_delta == 0
    assert str(private.claim) == "1-DP, local, one person"


def test_a_release_has_the_distribution_of_reports(monkeypatch):
    generator = np.random.default_rng(5)
    monkeypatch.setattr(secrets, "token_bytes", generator.bytes)
    labels = np.repeat([0.0, 0.5, 1.0, np.nan, 0.25], NUM)
    shares = private_labels(labels, 1.0, release=True).reports.reshape(5, NUM).mean(1)
    flip = 1 / (1 + math.e)
    for share, chance in zip(shares, [0, 0.5, 1, 0.5, 0.25], strict=True):
        assert abs(share - (flip + chance * (1 - 2 * flip))) < 4 * math.sqrt(0.25 / NUM)


def test_a_release_has_no_key_and_a_finite_epsilon():
    for wrong, sentence in (
        ({"key": KEY, "release": True}, "key must be given if release is False, and only then, got a key"),
        ({}, "got no key and release=False"),
        ({"epsilon": math.inf, "release": True}, "epsilon must be finite for a release"),
    ):
        with pytest.raises(ValueError, match=sentence):
            private_labels(np.ones(2), **{"epsilon": 1.0, **wrong})
