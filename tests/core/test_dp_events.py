"""Claims as events of dp-accounting: its accountants give the claim's epsilon, or a safe bound on it."""

import math
import sys

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from jaxdp import Guarantee

ABOUT = {"trust_model": "central", "privacy_unit": "one record", "argument": "noise"}
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE
ADD = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
DELTAS = (1e-9, 1e-5, 1e-2)


def spent(accountant, relation, delta, *events):
    made = accountant(neighboring_relation=relation)
    for event in events:
        made.compose(event)
    return float(made.get_epsilon(delta))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, 30.0])
def test_a_pure_claim(epsilon):
    claim = Guarantee.pure(epsilon, **ABOUT)
    event = claim.to_dp_event()
    exact = spent(PLDAccountant, ADD, 0.0, event)
    assert epsilon <= exact * (1 + 1e-9) <= epsilon * 1.001 + 1e-3
    for delta in DELTAS:  # the tight curve of epsilon-DP: delta' = (e^epsilon - e^epsilon') / (1 + e^epsilon)
        least = math.log(max(math.exp(epsilon) - delta * (1 + math.exp(epsilon)), 1e-300))
        found = spent(PLDAccountant, ADD, delta, event)
        assert max(least, 0.0) * (1 - 1e-9) <= found <= max(least, 0.0) * 1.001 + 1e-3
        assert found <= spent(RdpAccountant, REPLACE, delta, claim.to_dp_event(accountant="rdp")) * (1 + 1e-6) + 1e-3
    wrong = Guarantee.pure(epsilon / 2, **ABOUT).to_dp_event()
    assert not epsilon <= spent(PLDAccountant, ADD, 0.0, wrong)


CLAIMS = {
    "pure": Guarantee.pure(0.1, **ABOUT),
    "approximate": Guarantee.approximate(0.1, 1e-7, **ABOUT),
    "zcdp": Guarantee.zcdp(0.02, **ABOUT),
    "gaussian": Guarantee.gaussian(0.3, **ABOUT),
    "none": Guarantee.none(**ABOUT),
}
TIMES, TAKEN = 5, {"pld": (PLDAccountant, ADD), "rdp": (RdpAccountant, REPLACE)}


def spent_at_once(accountant, relation, event):
    made = accountant(neighboring_relation=relation)
    made.compose(event, TIMES)
    return float(made.get_epsilon(1e-5))


@pytest.mark.parametrize("accountant", TAKEN)
@pytest.mark.parametrize("kind", CLAIMS)
def test_composed_at_once_is_composed_one_by_one(kind, accountant):
    claim = CLAIMS[kind]
    event = claim.to_dp_event(accountant=accountant, delta_apart=True)
    if (kind, accountant) == ("zcdp", "pld"):
        with pytest.raises(dp_accounting.UnsupportedEventError):
            spent(*TAKEN[accountant], 1e-5, event)
        return
    made, relation = TAKEN[accountant]
    one_by_one = spent(made, relation, 1e-5, *[event] * TIMES)
    assert spent_at_once(made, relation, event) == pytest.approx(one_by_one, rel=1e-6)
    if claim.is_private:
        assert one_by_one > 1.5 * spent(made, relation, 1e-5, event)
    if kind == "pure" and accountant == "pld":
        assert one_by_one == pytest.approx(TIMES * claim.epsilon, rel=1e-3)


def test_randomized_response_as_it_is_would_be_counted_once():
    odds = math.exp(-0.1)
    event = dp_accounting.RandomizedResponseDpEvent(2 * odds / (1 + odds), 2)
    assert spent_at_once(PLDAccountant, REPLACE, event) < 0.11


@pytest.mark.parametrize("relation", dp_accounting.NeighboringRelation)
def test_accountants_that_would_count_too_little_refuse_pure_claims(relation):
    claim, taken = CLAIMS["pure"], 0
    for accountant in (PLDAccountant, RdpAccountant):
        for name in TAKEN:
            try:
                found = spent_at_once(accountant, relation, claim.to_dp_event(accountant=name))
            except dp_accounting.UnsupportedEventError:
                continue
            taken += 1
            assert found >= (1 - 1e-3) * TIMES * claim.epsilon
    assert taken == 1  # each relation has one accountant


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_gaussian_claim(mu, delta):
    claim = Guarantee.gaussian(mu, **ABOUT)
    event, epsilon = claim.to_dp_event(), claim.epsilon_at(delta)
    assert spent(PLDAccountant, ADD, delta, event) == pytest.approx(epsilon, rel=1e-3, abs=1e-4)
    for accountant in (PLDAccountant, RdpAccountant):
        for relation in (REPLACE, ADD):
            assert spent(accountant, relation, delta, event) >= epsilon * (1 - 1e-6)
    both = spent(PLDAccountant, ADD, delta, event, event)
    assert both == pytest.approx(claim.compose(claim).epsilon_at(delta), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_zcdp_claim(rho, delta):
    claim = Guarantee.zcdp(rho, **ABOUT)
    found, epsilon = spent(RdpAccountant, REPLACE, delta, claim.to_dp_event()), claim.epsilon_at(delta)
    assert epsilon * (1 - 1e-9) <= found <= epsilon * 1.05 + 1e-3
    assert found > Guarantee.zcdp(rho / 2, **ABOUT).epsilon_at(delta) * 1.1


@pytest.mark.parametrize("trust_model", ["central", "shuffle", "joint"])
def test_an_approximate_claim_keeps_its_delta_apart(trust_model):
    claim = Guarantee.approximate(1.0, 1e-6, **{**ABOUT, "trust_model": trust_model})
    with pytest.raises(ValueError, match="delta_apart must be True for an \\(epsilon, delta\\) claim"):
        claim.to_dp_event()
    events = [claim.to_dp_event(delta_apart=True)] * 3
    composed = claim.compose(claim).compose(claim)
    assert spent(PLDAccountant, ADD, 1e-12, *events) == pytest.approx(composed.epsilon, rel=1e-3)
    assert spent(PLDAccountant, ADD, 1e-2 - composed.delta, *events) < composed.epsilon
    with pytest.raises(ValueError, match="delta_apart must be True or False, got 1"):
        claim.to_dp_event(delta_apart=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="accountant"):
        claim.to_dp_event(accountant="gdp")


def test_no_claim_has_no_privacy():
    claims = (Guarantee.none(**ABOUT), Guarantee.none(**ABOUT, delta=0.1), Guarantee.pure(float("inf"), **ABOUT))
    for claim in claims:
        assert claim.to_dp_event() == dp_accounting.NonPrivateDpEvent()
        assert spent(PLDAccountant, REPLACE, 1e-3, claim.to_dp_event()) == float("inf")
    assert spent(PLDAccountant, ADD, 1e-3, Guarantee.pure(800.0, **ABOUT).to_dp_event()) == pytest.approx(800.0)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"to_dp_event needs dp-accounting: pip install 'jaxdp\[accounting\]'"):
        Guarantee.pure(1.0, **ABOUT).to_dp_event()
