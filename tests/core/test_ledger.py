"""A ledger accepts what fits into a budget, for everyone and for each person, and nothing else."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from jaxdp import Guarantee, Ledger
from jaxdp.core.conversions import zcdp_rho

ABOUT = {"trust_model": "central", "privacy_unit": "one person", "argument": "noise"}


def pure(epsilon, **changes):
    return Guarantee.pure(epsilon, **{**ABOUT, **changes})


def test_decimal_budgets_add_up_exactly():
    ledger = Ledger(epsilon=0.3)
    for _ in range(3):
        ledger.spend(pure(0.1))
    assert ledger.balance() == 0
    with pytest.raises(ValueError, match="guarantee must fit into the budget that is left for everyone, epsilon 0 and"):
        ledger.spend(pure(1e-12))
    assert "3 releases, epsilon 0.3 of 0.3 spent by everyone" in repr(ledger)


def test_each_person_has_a_balance():
    ledger = Ledger(epsilon=1.0)
    ledger.spend(pure(0.5), persons=["ann", "bob"])
    ledger.spend(pure(0.3), persons=["bob", 7])
    ledger.spend(pure(0.2))
    assert [round(ledger.balance(person), 9) for person in ("ann", "bob", 7, "7", "eve")] == [0.3, 0, 0.5, 0.5, 0.8]
    assert ledger.balance() == 0  # a release of everyone reads Bob's data
    assert ledger.fits(pure(0.3), persons=["ann"])
    assert not ledger.fits(pure(0.3), persons=["ann", "bob"])
    with pytest.raises(ValueError, match=r"for each of 2 persons, epsilon 0 and delta 0, got 0\.3-DP"):
        ledger.spend(pure(0.3), persons=["ann", "bob"])
    assert ledger.balance("ann") == 0.3  # a refused release costs nothing


def test_rhos_add_up_to_the_largest_that_the_budget_implies():
    ledger, releases = Ledger(epsilon=1.0, delta=1e-6, accounting="zcdp"), 0
    claim = Guarantee.gaussian(0.02, **ABOUT)
    while ledger.fits(claim):
        ledger.spend(claim)
        releases += 1
    assert releases == math.floor(zcdp_rho(1.0, 0.9e-6) / 0.0002)
    sums = Ledger(epsilon=1.0)
    per_release = claim.epsilon_at(1e-6 / releases)
    assert releases > 1.5 * sums.balance() / per_release
    mixed = Ledger(epsilon=1.0, delta=1e-6, accounting="zcdp")
    mixed.spend(pure(0.1))
    mixed.spend(Guarantee.zcdp(0.001, **ABOUT))
    assert zcdp_rho(1.0, 0.9e-6) - mixed.balance() == pytest.approx(0.006)


def test_deltas_add_up_with_those_of_the_arithmetic():
    claim = Guarantee.approximate(0.1, 4e-7, **ABOUT, numerical_delta=2e-7)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.spend(claim)
    assert not ledger.fits(claim)
    message = r"epsilon 1 and delta 0 \(make the ledger with a delta, which covers rounding\), got 0\.1-DP"
    with pytest.raises(ValueError, match=message):
        Ledger(epsilon=1.0).spend(pure(0.1, numerical_delta=1e-9))
    for cost in (pure(2.0, numerical_delta=1e-9), Guarantee.approximate(0.1, 1e-5, **ABOUT)):
        with pytest.raises(ValueError, match=r"epsilon 1 and delta 0, got"):  # a delta for rounding would not help
            Ledger(epsilon=1.0).spend(cost)
    with pytest.raises(ValueError, match=r"epsilon 0\.9 and delta 4e-07, got"):
        ledger.spend(claim)
    counted = Ledger(epsilon=1.0, delta=1e-6, accounting="zcdp")
    assert counted.fits(pure(0.1, numerical_delta=1e-7))
    assert not counted.fits(pure(0.1, numerical_delta=1.1e-7))


@pytest.mark.parametrize(
    ("claim", "accounting", "message"),
    [
        ("x", "sums", "guarantee must be a jaxdp.Guarantee, got str"),
        (Guarantee.none(**ABOUT), "sums", "guarantee must have a budget"),
        (pure(0.1, trust_model="joint"), "sums", "must not be joint"),
        (pure(0.1, privacy_unit="one label"), "sums", "must be for one person \\(Guarantee.at_user_level converts"),
        (pure(0.1, adjacency="add-or-remove-one"), "sums", "must have the adjacency of earlier releases, replace-one"),
        (pure(0.1, sensitive_fields=("label",)), "sums", "must have the sensitive_fields of earlier releases"),
        (Guarantee.zcdp(0.1, **ABOUT), "sums", 'must have an epsilon for accounting="sums"'),
        (Guarantee.approximate(0.1, 1e-9, **ABOUT), "zcdp", "must not be an"),
    ],
)
def test_claims_that_do_not_add_are_refused(claim, accounting, message):
    ledger = Ledger(epsilon=1.0, delta=1e-6, accounting=accounting)
    ledger.spend(pure(0.1))
    with pytest.raises(ValueError, match=message):
        ledger.fits(claim)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": math.inf}, "epsilon must be finite"),
        ({"delta": 1.0}, r"delta must be in \[0, 1\)"),
        ({"delta": math.nan}, "delta must be"),
        ({"accounting": "rdp"}, "accounting must be one of sums, zcdp"),
        ({"accounting": "zcdp"}, 'delta must be > 0 for accounting="zcdp"'),
    ],
)
def test_wrong_budgets_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Ledger(**{"epsilon": 1.0, **values})


@pytest.mark.parametrize("persons", ["ann", [], [7.0], [True], ["ann", None], [b"ann"], np.ma.array([7], mask=[True])])
def test_persons_are_everyone_or_a_list_of_text_and_integers(persons):
    ledger = Ledger(epsilon=1.0)
    with pytest.raises(ValueError, match="persons must"):
        ledger.spend(pure(0.1), persons=persons)
    with pytest.raises(ValueError, match="persons must be ids that are text or integers, got float"):
        ledger.balance(7.0)


def test_a_file_keeps_balances_and_no_ids(tmp_path):
    ledger, path = Ledger(epsilon=1.0, delta=1e-6, accounting="zcdp"), tmp_path / "ledger.json"
    ledger.spend(Guarantee.gaussian(0.1, **ABOUT), persons=["ann"])
    ledger.spend(pure(0.1))
    ledger.save(path)
    assert "ann" not in path.read_text()
    read = Ledger.load(path)
    assert repr(read) == repr(ledger)
    assert [read.balance(who) for who in ("ann", "bob")] == [ledger.balance(who) for who in ("ann", "bob")]
    read.spend(pure(0.1))
    read.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.json"]


def test_two_processes_do_not_overwrite_each_other(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(epsilon=1.0).save(path)
    one, other = Ledger.load(path), Ledger.load(path)
    one.spend(pure(0.7))
    one.save(path)
    other.spend(pure(0.6))
    with pytest.raises(ValueError, match="path must be new or hold an earlier state of this ledger"):
        other.save(path)
    with pytest.raises(ValueError, match="path must be new"):
        Ledger(epsilon=1.0).save(path)
    notes = tmp_path / "notes.json"
    notes.write_text("[1, 2")
    with pytest.raises(ValueError, match=r"path must be a file that Ledger\.save wrote, got .*notes\.json"):
        one.save(notes)
    assert notes.read_text() == "[1, 2"
    assert Ledger.load(path).balance() == pytest.approx(0.3)


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = Ledger(epsilon=1.0)
    ledger.spend(pure(0.7))
    ledger.save(path)
    content = json.loads(path.read_text())
    for changed in (
        {**content, "epsilon": 0.5},
        {**content, "format": 2},
        {key: value for key, value in content.items() if key != "salt"},
        {**content, "releases": [{"persons": "everyone"}]},
        [],
    ):
        path.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=r"path must be a file that Ledger\.save wrote, got .*ledger\.json"):
            Ledger.load(path)


def test_the_tight_total_is_that_of_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    ledger = Ledger(epsilon=10.0, delta=1e-6)
    for _ in range(20):
        ledger.spend(pure(0.1))
    ledger.spend(pure(3.0), persons=["ann"])
    pld = pytest.importorskip("dp_accounting.pld").PLDAccountant(accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    pld.compose(pure(0.1).to_dp_event(), 20)
    assert ledger.tight_epsilon() == pytest.approx(pld.get_epsilon(1e-6), rel=1e-6)
    assert ledger.tight_epsilon() < 2.0 < ledger.tight_epsilon("ann")
    gaussians = Ledger(epsilon=1.0, delta=1e-6, accounting="zcdp")
    gaussians.spend(Guarantee.zcdp(0.01, **ABOUT))
    assert 0 < gaussians.tight_epsilon() <= 1.05 * Guarantee.zcdp(0.01, **ABOUT).epsilon_at(1e-6)
    assert Ledger(epsilon=1.0).tight_epsilon() == 0


def test_budgets_of_any_number_type_are_saved(tmp_path):
    Ledger(epsilon=np.float32(1), delta=1e-6).save(tmp_path / "ledger.json")  # pyright: ignore[reportArgumentType]
    assert Ledger.load(tmp_path / "ledger.json").epsilon == 1.0


@pytest.mark.parametrize("persons", [pd.DataFrame({"person": ["ann"]}), b"ann", {"ann": 1}, 5, None, np.asarray([[1]])])
def test_persons_that_are_no_list_are_refused(persons):
    ledger = Ledger(epsilon=1.0)
    claim = pure(0.9)
    with pytest.raises(ValueError, match="persons must be 'everyone' or a list of ids, got "):
        ledger.spend(claim, persons=persons)
    assert ledger.balance("person") == ledger.balance(97) == 1.0
    ledger.spend(claim, persons=pd.Series(["ann"], index=[7]))
    assert ledger.balance("ann") == pytest.approx(0.1)
