"""The 1987 American League, East: abilities as published (Agresti, 1990), through both ways in."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxdp.estimation import estimate, mle
from jaxdp.preferences import ComparisonTable, baseball1987
from jaxdp.studies.private_ranking import private_ranking

PUBLISHED = {
    "Baltimore": 0.0,
    "Boston": 1.108,
    "Cleveland": 0.684,
    "Detroit": 1.436,
    "Milwaukee": 1.581,
    "New York": 1.248,
    "Toronto": 1.294,
}


def through_estimate(table: ComparisonTable) -> dict[str, float]:
    features, labels = table.design()
    result = estimate(mle(zero_sum=True), features, labels, key=jax.random.key(0))
    assert result.converged
    return dict(zip(table.items, np.asarray(result.theta, float).tolist(), strict=True))


def through_study(table: ComparisonTable) -> dict[str, float]:
    results = private_ranking(table, epsilon=[1.0], num_seeds=2, key=jax.random.key(0))
    ability = results.ability.sel(estimator="mle", epsilon=1.0)
    assert bool(results.converged.sel(estimator="mle").all())
    np.testing.assert_array_equal(ability.isel(seed=0), ability.isel(seed=1))
    names = results["item"].values.tolist()
    found = ability.isel(seed=0).values.astype(float)
    ranks = results["rank"].sel(estimator="mle", epsilon=1.0).isel(seed=0).values
    np.testing.assert_array_equal(np.argsort(ranks), np.argsort(-found))
    return dict(zip(names, found.tolist(), strict=True))


def check_published(abilities: dict[str, float]) -> None:
    assert set(abilities) == set(PUBLISHED)
    for team, published in PUBLISHED.items():
        assert abilities[team] - abilities["Baltimore"] == pytest.approx(published, abs=1e-3), team


@pytest.mark.parametrize("abilities", [through_estimate, through_study])
def test_published_abilities(abilities):
    check_published(abilities(baseball1987()))


@pytest.mark.parametrize("abilities", [through_estimate, through_study])
def test_winners_and_losers_swapped_would_be_noticed(abilities):
    table = baseball1987()
    swapped = dataclasses.replace(table, wins=table.totals - table.wins)
    with pytest.raises(AssertionError):
        check_published(abilities(swapped))


def test_one_game_less_would_be_noticed():
    table = baseball1987()
    wins = table.wins.copy()
    wins[np.argmax(wins)] -= 1
    with pytest.raises(AssertionError):
        check_published(through_estimate(dataclasses.replace(table, wins=wins)))
