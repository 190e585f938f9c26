"""Privacy claims, and how they add up."""

import json
import math

import pytest

from jaxdp import Guarantee

CLAIM = {"epsilon": 0.5, "delta": 1e-3, "trust_model": "central", "privacy_unit": "one label", "argument": "noise"}


def test_epsilons_and_deltas_add():
    pair = Guarantee(**CLAIM).compose(Guarantee(**{**CLAIM, "epsilon": 0.25, "delta": 2e-3, "argument": "other noise"}))
    assert (pair.epsilon, pair.delta, pair.rho) == (0.75, pytest.approx(3e-3), None)
    assert (pair.trust_model, pair.privacy_unit, pair.adjacency) == ("central", "one label", "replace-one")
    assert "noise" in pair.argument
    assert "other noise" in pair.argument
    assert pair.is_private


def test_rhos_add_where_both_have_one():
    with_rho, without = Guarantee(**CLAIM, rho=0.1), Guarantee(**CLAIM)
    assert with_rho.compose(Guarantee(**CLAIM, rho=0.3)).rho == pytest.approx(0.4)
    assert with_rho.compose(without).rho is None
    assert without.compose(with_rho).rho is None


def test_infinite_epsilon_absorbs():
    pair = Guarantee(**CLAIM).compose(Guarantee(**{**CLAIM, "epsilon": math.inf}))
    assert pair.epsilon == math.inf
    assert not pair.is_private


def test_deltas_that_reach_one_claim_nothing():
    half = Guarantee(**{**CLAIM, "delta": 0.5})
    pair = half.compose(half)
    assert (pair.epsilon, pair.is_private) == (math.inf, False)
    assert half.compose(Guarantee(**{**CLAIM, "delta": 0.25})).delta == 0.75


@pytest.mark.parametrize(
    "other", [{"trust_model": "local"}, {"privacy_unit": "one user"}, {"adjacency": "add-or-remove-one"}]
)
def test_claims_about_different_things_do_not_compose(other):
    (name, value), claim = next(iter(other.items())), Guarantee(**CLAIM)
    with pytest.raises(ValueError, match=f"{name} must be the same .*{value}"):
        claim.compose(Guarantee(**{**CLAIM, **other}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("delta", 1.0),
        ("delta", -0.1),
        ("delta", math.nan),
        ("rho", -1.0),
        ("rho", math.nan),
        ("trust_model", "trusted"),
    ],
)
def test_a_wrong_claim(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        Guarantee(**{**CLAIM, name: value})


def test_a_claim_as_plain_values():
    values = json.loads(json.dumps(Guarantee(**{**CLAIM, "epsilon": math.inf}).to_dict(), allow_nan=False))
    assert values == {**CLAIM, "epsilon": "inf", "rho": None, "adjacency": "replace-one"}
