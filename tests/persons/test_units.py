"""The axis `unit`: results equal separate runs bit for bit, tables say the unit, and misuse is refused by name."""

import csv
import dataclasses
import html
import io
import re
import warnings
from functools import partial

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp import bandits, experts, per_person
from jaxdp.comparisons.report import _odds_table, write_report
from jaxdp.persons import with_unit
from jaxdp.plotting import dot_plot, panels
from jaxdp.simulation.store.provenance import provenance
from jaxdp.studies import running
from jaxdp.studies.declared import BoundStudy

VISITS = jaxdp.Visits.random(people=120, each=3, seed=2)
WORLD = bandits.bernoulli_bandit([0.2, 0.8], visits=VISITS)
KEY = jax.random.key(3)
GRID = {"axes": {"epsilon": [1.0, 4.0]}, "num_seeds": 8, "key": KEY, "tile_size": 16}


def tree(horizon):
    return bandits.ucb_central(num_arms=2, release="tree", horizon=horizon)


@pytest.fixture(scope="module")
def result():
    return jaxdp.compare(
        {"UCB": bandits.ucb, "tree": tree},
        WORLD,
        epsilon=[1.0, 4.0],
        horizon=len(VISITS),
        num_seeds=8,
        key=KEY,
        unit=["round", "person"],
        reports=2,
    )


def test_a_sweep_over_units_has_the_bits_of_two_sweeps():
    learner = bandits.ucb(num_arms=2)
    run = partial(jaxdp.simulator, learner, WORLD, len(VISITS), reports=2)
    both = jaxdp.sweep(run, static_axes={"unit": ["round", "person"]}, **GRID)
    for unit, played in (("round", learner), ("person", per_person(learner, reports=2))):
        alone = jaxdp.sweep(jaxdp.simulator(played, WORLD, len(VISITS)), **GRID)
        np.testing.assert_array_equal(both.pseudo_regret.sel(unit=unit).values, alone.pseudo_regret.values)
    assert not np.array_equal(both.pseudo_regret.sel(unit="round"), both.pseudo_regret.sel(unit="person"))


def test_a_comparison_has_the_bits_of_each_learner_with_its_number_of_heard_rounds(result):
    for unit, learner in (("round", tree(360)), ("person", per_person(tree(240), reports=2))):
        alone = jaxdp.sweep(jaxdp.simulator(learner, WORLD, len(VISITS)), **GRID)
        values = result.dataset.pseudo_regret.sel(learner="tree", unit=unit)
        np.testing.assert_array_equal(values.values, alone.pseudo_regret.values)


def test_tables_name_the_unit_and_rank_each_unit_alone(result):
    assert "per round, ε = 1" in result.table()
    assert "per person, ε = 4" in result.table("markdown")
    rows = list(csv.DictReader(io.StringIO(result.table("csv"))))
    assert [row["unit"] for row in rows] == ["round", "round", "person", "person"] * 2
    alone = jaxdp.Comparison(result.dataset.sel(unit=["person"]), "pseudo_regret")
    np.testing.assert_array_equal(result.not_worse().sel(unit="person"), alone.not_worse().sel(unit="person"))
    assert "At ε = 4 per person after 360 rounds" in result.verdict(epsilon=4.0, unit="person")
    with pytest.raises(ValueError, match=r"unit must be one of round, person, got None"):
        result.verdict(epsilon=4.0)


def test_claims_are_for_the_unit_of_their_column(result):
    claims = result.claims()
    own = claims[claims.algorithm == "learner"]
    assert set(own[own.unit == "person"].privacy_unit) == {"one person"}
    assert set(own[own.unit == "round"].privacy_unit) == {"one round's reward"}
    assert (own.claimed_epsilon == own.epsilon).all()


def test_a_figure_has_a_curve_for_each_learner_and_unit(result):
    _, names = result.plot().get_legend_handles_labels()
    assert names == ["UCB per round", "tree per round", "UCB per person", "tree per person"]
    one = jaxdp.Comparison(result.dataset.sel(unit=["person"]), "pseudo_regret")
    assert one.plot().get_legend_handles_labels()[1] == ["UCB", "tree"]


def test_captions_and_every_row_say_the_privacy_unit(result):
    assert "Claims are for one round's reward (per round) and one person (per person)." in result.caption()
    in_figure = jaxdp.plotting.caption(result.plot())
    assert "one round's reward (UCB per round, tree per round) and one person (UCB per person, tree" in in_figure
    rows = list(csv.DictReader(io.StringIO(result.table("csv"))))
    assert [row["privacy_unit"] for row in rows] == (["one round's reward"] * 2 + ["one person"] * 2) * 2


def test_figures_of_a_sweep_say_the_unit(tmp_path):
    learner, units = bandits.ucb(num_arms=2), ["round", "person"]
    run = partial(jaxdp.simulator, learner, WORLD, len(VISITS))
    store = tmp_path / "units.zarr"
    both = jaxdp.sweep(run, static_axes={"unit": units}, store=store, **GRID)
    for results in (both, jaxdp.open(store)):
        assert results.privacy_unit.values.tolist() == ["one round's reward", "one person"]
        caption = jaxdp.plotting.caption(jaxdp.plotting.cost_of_privacy(results.pseudo_regret, hue="unit"))
        assert "Claims are for one round's reward (per round) and one person (per person)." in caption
        one = jaxdp.plotting.cost_of_privacy(results.pseudo_regret.sel(unit="person"))
        assert "Claims are for one person." in jaxdp.plotting.caption(one)
        panels = jaxdp.plotting.facets(results.pseudo_regret, x="epsilon", col="unit")
        assert jaxdp.plotting.caption(panels.axes).count("Claims are for") == 1


def test_a_report_names_the_unit_of_each_row(result):
    text = re.sub("<[^>]+>", " ", write_report(result.dataset))
    rows = re.findall(r"UCB per (\w+) +1 +(one round|one person)", text)
    assert {("round", "one round"), ("person", "one person")} <= set(rows)
    assert ("person", "one round") not in rows


def test_a_report_shows_each_attack_at_its_unit(result):
    def attacks_of(*rows):
        """Returns the bounds at epsilon = 1, by the unit of the run and the unit of the claim."""
        audit = [{"currency": "epsilon", "lower_bound": 0.5, "claimed": 1.0} | row for row in rows]
        text = html.unescape(re.sub("<[^>]+>", "|", _odds_table(points, audit, "learner", 1.0)))
        cells = re.findall(r"UCB per (\w+)\|+1\|+(one round's reward|one person)\|+[\d.]+%\|+([^|]*)", text)
        return {(run, claim): bound for run, claim, bound in cells if bound != "not attacked"}

    points = provenance(result.dataset).points
    per_round = {"name": "UCB", "lower_bound": 0.25, "privacy_unit": "one round's reward"}
    person = {"name": "UCB", "privacy_unit": "one person"}
    at_round = {("round", "one round's reward"): "epsilon ≥ 0.25 of 1"}
    at_person = {("person", "one person"): "epsilon ≥ 0.5 of 1"}
    assert attacks_of(per_round, person) == attacks_of(person, per_round) == at_round | at_person
    assert attacks_of(person, per_round | {"name": "tree"}) == at_person
    assert attacks_of({"name": "UCB", "lower_bound": 0.25}) == at_round
    assert attacks_of({"name": "UCB per person"}) == at_person


def test_reports_and_figures_of_studies_say_the_unit():
    units = {"privacy_unit": ("learner", ["one person", "one duel's outcome"]), "learner": ["means", "duels"]}
    dataset = xr.Dataset({"regret": (("learner", "seed"), np.ones((2, 3)))}, units)
    sentence = "Claims are for one person (means) and one duel's outcome (duels)."
    for values in (dataset.regret, dataset.regret.drop_vars("privacy_unit")):  # drawn by the study, or added

        def draw(_, drawn=values):
            figure = panels()
            dot_plot(drawn, y="learner", ax=figure.axes[0])
            figure.explain(title="Regret")
            return figure

        study = BoundStudy(simulate=lambda: dataset, figure=draw, report=lambda _: "A table.")
        assert running._report(study, dataset) == f"A table.\n\n{sentence}"
        assert jaxdp.plotting.caption(running._figure(study, dataset).axes).count(sentence) == 1


def test_a_claim_for_a_person_is_not_shown_as_one_for_a_round():
    learner = per_person(bandits.ucb(num_arms=2))
    results = jaxdp.sweep(jaxdp.simulator(learner, WORLD, len(VISITS)), **GRID)
    assert results.privacy_unit.item() == "one person"
    # Planted: the claim of the learner inside.
    wrong = dataclasses.replace(
        jaxdp.simulator(learner, WORLD, len(VISITS)),
        guarantee=lambda **values: {"learner": bandits.ucb(num_arms=2).guarantee(**values)},
    )
    assert jaxdp.sweep(wrong, **GRID).privacy_unit.item() != "one person"


def test_estimators_without_a_claim_have_no_unit():
    estimators = {"local": jaxdp.estimation.debiased_rr(), "clear": jaxdp.estimation.mle()}
    run = jaxdp.estimation_run(estimators, jaxdp.estimation.gaussian_rewards(num_samples=50, dim=2))
    results = jaxdp.sweep(run, axes={"epsilon": [1.0]}, num_seeds=2, key=KEY, tile_size=16)
    assert dict(zip(results.estimator.values, results.privacy_unit.values, strict=True)) == {
        "local": "one label",
        "clear": "",
    }


def test_a_learner_without_a_best_action_plays_its_own_next_one():
    assert "rest='act'" in repr(with_unit(experts.exponential_weights(num_experts=2, horizon=80), "person"))
    assert "reports=2, rest='best'" in repr(with_unit(bandits.ucb_central(num_arms=2), "person", 2))


def test_only_learners_have_units():
    for wrong in (None, bandits.ucb):
        for unit in ("round", "person"):
            with pytest.raises(ValueError, match=r"learner must be of type jaxdp\.Learner, got"):
                with_unit(wrong, unit)  # pyright: ignore[reportArgumentType]


def test_a_learner_that_hears_persons_stays_as_it_is():
    person = per_person(bandits.ucb(num_arms=2), reports=3)
    assert with_unit(person, "person") is person
    with pytest.raises(ValueError, match=r'unit must be "person" for a learner with a claim for a person, got "round"'):
        with_unit(person, "round")
    assert with_unit(person, "person", 3) is person
    with pytest.raises(ValueError, match="reports must be left out for a learner made with 3 reports, got 5"):
        with_unit(person, "person", 5)


def test_misuse_is_refused_by_name():
    plain = bandits.bernoulli_bandit([0.2, 0.8])
    small = {"epsilon": 1.0, "horizon": 20, "num_seeds": 5, "key": KEY}
    with pytest.raises(ValueError, match=r'world must have visits for the unit "person", .*visits=jaxdp.Visits'):
        jaxdp.compare({"UCB": bandits.ucb}, plain, unit="person", **small)
    with pytest.raises(ValueError, match=r"unit must be one of round, person, got 'people'"):
        jaxdp.compare({"UCB": bandits.ucb}, WORLD, unit=["people"], **small)
    with pytest.raises(ValueError, match=r"reports must be .*>= 1, got 0"):
        jaxdp.compare({"UCB": bandits.ucb}, WORLD, unit="person", reports=0, **small)
    with pytest.raises(ValueError, match=r'reports must come with unit="person", got 2 without a unit'):
        jaxdp.compare({"UCB": bandits.ucb}, WORLD, reports=2, **small)
    with pytest.raises(ValueError, match=r"""reports must come with unit="person", got 2 with unit='round'"""):
        jaxdp.compare({"UCB": bandits.ucb}, WORLD, unit="round", reports=2, **small)
    with pytest.raises(ValueError, match=r'reports must come with unit="person", .*got 2 without a unit'):
        jaxdp.simulator(bandits.ucb(num_arms=2), WORLD, 20, reports=2)
    with pytest.raises(ValueError, match=r"environment must have visits .*visits=jaxdp.Visits"):
        jaxdp.simulator(bandits.ucb(num_arms=2), plain, 20, unit="person")
    with pytest.raises(ValueError, match=r"unit must be one of round, person, got 'record'"):
        jaxdp.simulator(bandits.ucb(num_arms=2), WORLD, 20, unit="record")


def test_a_run_for_a_round_warns_of_returning_people_only_if_no_unit_is_given():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for unit in ("round", None):
            jaxdp.simulator(bandits.ucb(num_arms=2), WORLD, 20, unit=unit).params(epsilon=1.0)
    assert len([one for one in caught if "a person comes up to 3 times" in str(one.message)]) == 1
