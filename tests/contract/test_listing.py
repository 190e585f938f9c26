"""Listings of the registry, and names that it does not have."""

import re
from dataclasses import replace

import pytest

from jaxdp import registry
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.registry.overview import overview
from jaxdp.registry.table import paper


def test_listing_names_everything_once():
    everyone = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    for width, place in ((400, 1), (118, 0), (80, 0), (64, 0)):
        lines = registry.listing(width=width).splitlines()
        assert max(map(len, lines)) <= width
        words = [line.split() for line in lines]
        assert [row[place] for row in words if len(row) > place and row[place] in everyone] == list(everyone)
    assert len(registry.listing("mechanism", width=400).splitlines()) == 1 + len(MECHANISMS)
    assert [line for line in registry.listing(width=60).splitlines() if line.endswith("s:")] == [
        "mechanisms:",
        "learners:",
        "estimators:",
    ]


def test_a_listing_that_is_searched_has_a_line_for_each():
    rows = registry.listing("learner", width=None).splitlines()
    assert rows[0].split()[:2] == ["KIND", "NAME"]
    assert [row.split()[1] for row in rows[1:]] == list(LEARNERS)
    assert all(LEARNERS[row.split()[1]].summary in row for row in rows[1:])


def named(row):
    """Returns the names of the entries in a row of the overview."""
    name, _, _, _, *variants = re.split(r"\s{2,}", row)
    told = [re.sub(r" \(.*\)", "", each) for each in re.split(r", (?![^(]*\))", variants[0])] if variants else []
    known = {*MECHANISMS, *LEARNERS, *ESTIMATORS}
    return [each for each in (name, *(f"{name}_{v}" if f"{name}_{v}" in known else v for v in told)) if each in known]


def test_the_overview_names_everything_once_in_a_row_an_algorithm():
    text = overview(width=200)
    body = text.split("\n\nVARIANTS has")[0].splitlines()
    assert body[0].split() == ["NAME", "TRUST", "CLAIM", "UNIT", "VARIANTS"]
    rows = [line for line in body[1:] if line and not line.endswith(":")]
    names = [name for row in rows for name in named(row)]
    assert sorted(names) == sorted((*MECHANISMS, *LEARNERS, *ESTIMATORS))
    factories = {(entry.family, entry.factory) for t in (MECHANISMS, LEARNERS, ESTIMATORS) for entry in t.values()}
    assert len(rows) == len(factories)
    titles = [line for line in body if line.endswith(":")]
    assert len(titles) == len(set(titles))
    assert "experts (learners):" in titles
    only = overview("estimator").splitlines()
    assert [line for line in only if line.endswith(":")] == ["estimation (estimators):"]


def test_the_overview_has_a_row_for_each_mechanism_without_a_factory(monkeypatch):
    for name, like in (("mine", "laplace"), ("yours", "gaussian")):
        monkeypatch.setitem(MECHANISMS, name, replace(MECHANISMS[like], factory=None, variant={}, family="ours"))
    rows = overview(width=200).split("ours (mechanisms):\n")[1].splitlines()[:2]
    assert [row.split()[:3] for row in rows] == [["mine", "central", "ε-DP"], ["yours", "central", "(ε,"]]


def test_the_overview_tells_trust_unit_and_what_is_as_published():
    rows = {line.split()[0]: re.split(r"\s{2,}", line) for line in overview(width=200).splitlines() if "  " in line}
    assert rows["rucb"] == ["rucb", "local", "ε-DP", "duel", "blocks (central)"]
    assert rows["mirror_descent"][1:4] == ["central", "ρ-zCDP", "round"]  # noqa: RUF001
    assert "noisy_losses (local), paper (local, as published)" in rows["mirror_descent"][4]
    assert rows["hedge"] == ["hedge", "-", "no claim", "-"]
    assert rows["gaussian"][4] == "classical_gaussian"


def test_the_overview_fits(monkeypatch):
    long = "a_rather_long_name_" * 5
    whole = overview()
    assert max(map(len, whole.splitlines())) <= 100
    for width in (40, 64, 100):
        assert max(map(len, overview(width=width).splitlines())) <= width
        assert overview(width=width).split()[:2] in (["NAME", "TRUST"], ["NAME:", "TRUST,"])
    monkeypatch.setitem(registry.LEARNERS, long, LEARNERS["rucb"])
    assert f"blocks (central), {long}" in " ".join(overview(width=200).split())
    for width in (40, 100):
        assert max(map(len, overview(width=width).splitlines())) <= width
        assert long in "".join(overview(width=width).split())


def test_a_name_that_is_not_there_is_told_with_its_neighbours():
    with pytest.raises(
        KeyError, match="exponential_weight: no entry has this name; similar names: exponential_weights"
    ):
        LEARNERS["exponential_weight"]
    with pytest.raises(KeyError, match="xyz: no entry has this name; all names: laplace, gaussian, "):
        MECHANISMS["xyz"]
    assert "exponential_weight" not in LEARNERS
    assert LEARNERS.get("exponential_weight") is None


def test_a_listing_names_papers_by_their_authors():
    rows = {line.split()[1]: line for line in registry.listing("learner", width=400).splitlines()}
    assert rows["ebs_elimination"].endswith("  Saha & Asi 2024, Alg. 1")
    assert rows["rucb"].endswith("  Zoghi et al. 2014, Alg. 1")
    for name, entry in {**MECHANISMS, **LEARNERS, **ESTIMATORS}.items():
        assert re.search(r"(19|20)\d\d", paper(entry.source)), name


def test_a_name_longer_than_the_terminal_is_not_cut(monkeypatch):
    name = "a_rather_long_name_" * 5
    monkeypatch.setitem(registry.LEARNERS, name, LEARNERS["rucb"])
    for width in (40, 80, 120):
        text = registry.listing("learner", width=width)
        assert max(map(len, text.splitlines())) <= width
        assert name in "".join(text.split())
    with pytest.raises(ValueError, match="width must be an integer >= 40, got 20"):
        registry.listing(width=20)
    with pytest.raises(ValueError, match="width must be an integer >= 40, got 20"):
        overview(width=20)


def test_a_listing_refuses_other_kinds():
    with pytest.raises(ValueError, match="kind must be one of mechanism, learner, estimator, got 'estimation'"):
        registry.listing("estimation")
    with pytest.raises(ValueError, match="kind must be one of mechanism, learner, estimator, got 'estimation'"):
        overview("estimation")
