"""Claims as events of dp-accounting: its accountants give the claim's epsilon, or a safe bound on it."""

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
    event = Guarantee.pure(epsilon, **ABOUT).to_dp_event()
    found = spent(PLDAccountant, REPLACE, 0.0, event)
    assert epsilon <= found * (1 + 1e-9) <= epsilon * 1.001 + 1e-3
    assert spent(PLDAccountant, REPLACE, 1e-9, event) == pytest.approx(epsilon, rel=2e-3, abs=1e-4)
    for delta in DELTAS:  # the tight curve of epsilon-DP: delta' = (e^epsilon - e^epsilon') / (1 + e^epsilon)
        exact = spent(PLDAccountant, REPLACE, delta, event)
        assert exact <= epsilon + 1e-3
        assert exact <= spent(RdpAccountant, REPLACE, delta, event) * (1 + 1e-6) + 1e-3
    wrong = Guarantee.pure(epsilon / 2, **ABOUT).to_dp_event()
    assert not epsilon <= spent(PLDAccountant, REPLACE, 0.0, wrong)


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
    assert spent(PLDAccountant, REPLACE, 1e-12, *events) == pytest.approx(composed.epsilon, rel=1e-3)
    assert spent(PLDAccountant, REPLACE, 1e-2 - composed.delta, *events) < composed.epsilon
    with pytest.raises(ValueError, match="delta_apart must be True or False, got 1"):
        claim.to_dp_event(delta_apart=1)  # pyright: ignore[reportArgumentType]


def test_no_claim_has_no_privacy():
    claims = (Guarantee.none(**ABOUT), Guarantee.none(**ABOUT, delta=0.1), Guarantee.pure(float("inf"), **ABOUT))
    for claim in claims:
        assert claim.to_dp_event() == dp_accounting.NonPrivateDpEvent()
        assert spent(PLDAccountant, REPLACE, 1e-3, claim.to_dp_event()) == float("inf")
    assert spent(PLDAccountant, REPLACE, 1e-3, Guarantee.pure(800.0, **ABOUT).to_dp_event()) == float("inf")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"to_dp_event needs dp-accounting: pip install 'jaxdp\[accounting\]'"):
        Guarantee.pure(1.0, **ABOUT).to_dp_event()
