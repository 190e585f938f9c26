"""The registered claims equal `claims.json`, and a change of one is named."""

import dataclasses

import jax
import pytest

from jaxdp.registry import LEARNERS
from tests.loop import claims

pytestmark = pytest.mark.always  # the guard of all claims


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="the file has the claims of 32 bits")
def test_the_registered_claims_are_those_of_the_file():
    assert list(claims.differences(claims.claims_in_file(), claims.claims_now())) == []


def test_a_claim_that_changed_is_named_with_both_values_and_the_command(monkeypatch):
    before = claims.claims_now()  # and not the file's: the test above alone compares that
    entry = LEARNERS["rucb"]
    monkeypatch.setitem(LEARNERS, "rucb", dataclasses.replace(entry, values={**entry.values, "epsilon": 2.0}))
    assert list(claims.differences(before, claims.claims_now())) == [
        "rucb: epsilon of its claim was 1.0 in tests/loop/claims.json and is 2.0 now; if this is meant, renew the "
        "file: python tests/loop/claims.py"
    ]


def test_entries_that_only_one_side_has_are_named_and_rounding_is_not():
    old = {"a": {"epsilon": 1.0, "rho": None}, "b": {"epsilon": 1.0}}
    assert list(claims.differences(old, {"a": {"epsilon": 1.0 + 1e-8, "rho": None}, "b": {"epsilon": 1.0}})) == []
    sentences = list(claims.differences(old, {"a": {"epsilon": 1.0 + 1e-5, "rho": 0.5}, "c": {"epsilon": 1.0}}))
    assert [sentence.split(";")[0] for sentence in sentences] == [
        "a: epsilon of its claim was 1.0 in tests/loop/claims.json and is 1.00001 now",
        "a: rho of its claim was None in tests/loop/claims.json and is 0.5 now",
        "b: tests/loop/claims.json has its claim, and no entry has this name",
        "c: its claim is not in tests/loop/claims.json",
    ]
