"""The text about a store names each claim in the currency in which it was proved."""

from types import SimpleNamespace
from typing import Any

from jaxdp.core import Guarantee
from jaxdp.simulation.store.inspection import _guarantees


def test_a_claim_without_epsilon_shows_its_budget():
    about = {"trust_model": "central", "privacy_unit": "one record", "argument": "noise"}
    claims = [
        Guarantee.zcdp(0.02, **about),
        Guarantee.gaussian(0.5, **about),
        Guarantee.approximate(1.0, 0.001, **about),
        Guarantee.none(**about),
    ]
    source: Any = SimpleNamespace(points=[SimpleNamespace(guarantees={"counter": claim}) for claim in claims])
    assert _guarantees(source) == [
        "counter, central, one record, replace-one: noise",
        "    0.02-zCDP at 1 grid point",
        "    0.5-GDP at 1 grid point",
        "    (1, 0.001)-DP at 1 grid point",
        "counter",
        "    no claim at 1 grid point",
    ]
