"""Comparisons from end to end: results equal the runs of each learner, tables, claims, and errors."""

import csv
import dataclasses
import functools
import io
import re
from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits
from jaxdp.comparisons._compare import _with_tile
from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms

WORLD = bandits.bernoulli_bandit([0.2, 0.8, 0.5])
KEY = jax.random.key(5)
SMALL = {"epsilon": [1.0, float("inf")], "horizon": 60, "num_seeds": 8, "key": KEY}


def alternating(*, num_arms):
    """Plays the arms one after the other; it takes no epsilon."""
    return Learner(
        params=lambda: {},
        guarantee=lambda: Guarantee.none(trust_model="local", privacy_unit="one reward", argument="none"),
        init=lambda key, params: State((), np.int32(0)),
        act=lambda key, params, public, context: public % num_arms,
        privatize=lambda key, params, public, context, action, feedback: (),
        update=lambda key, params, state, report: State((), state.public + 1),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )


@pytest.fixture(scope="module")
def result():
    learners = {
        "UCB": bandits.ucb,
        "100% & co_": (bandits.explore_then_commit, {"explore_rounds": 12}),
        "in turn": alternating,
        "made": bandits.tsallis_inf(num_arms=3),
    }
    return jaxdp.compare(learners, WORLD, **SMALL)


def test_each_learner_has_the_bits_of_its_own_sweep(result):
    run = jaxdp.simulator(bandits.ucb(num_arms=3), WORLD, 60)
    alone = jaxdp.sweep(run, axes={"epsilon": SMALL["epsilon"]}, num_seeds=8, key=KEY, tile_size=16)
    np.testing.assert_array_equal(result.dataset.pseudo_regret.sel(learner="UCB").values, alone.pseudo_regret.values)


def test_a_learner_without_epsilon_plays_the_same_at_all_budgets(result):
    in_turn = result.values().sel(learner="in turn")
    np.testing.assert_array_equal(in_turn.isel(epsilon=0).values, in_turn.isel(epsilon=1).values)
    assert in_turn.values[0] == pytest.approx(60 * (0.6 + 0.3) / 3)
    claims = result.claims()
    assert claims[claims.learner == "in turn"].claim.str.startswith("no claim").all()


def test_tables_hold_the_same_means(result):
    rows = list(csv.DictReader(io.StringIO(result.table("csv"))))
    means = result.values().astype(float).mean("seed")
    assert len(rows) == 8
    for row in rows:
        assert float(row["mean"]) == pytest.approx(float(means.sel(learner=row["name"], epsilon=float(row["epsilon"]))))
        assert float(row["low"]) <= float(row["mean"]) <= float(row["high"])
    for format in ("text", "markdown", "latex"):
        text = result.table(format)
        for row in rows:
            half = (float(row["high"]) - float(row["low"])) / 2
            if half > 0:
                digits = max(0, 1 - int(np.floor(np.log10(half))))
                assert f"{float(row['mean']):,.{digits}f}" in text


def test_marks_agree_between_formats(result):
    good = [bool(int(row["not_worse"])) for row in csv.DictReader(io.StringIO(result.table("csv")))]
    assert 0 < sum(good) < len(good)
    assert result.table("markdown").count("**") == 2 * sum(good)
    assert result.table("latex").count(r"\mathbf") == sum(good)
    assert len(re.findall(r"\d \*", result.table().split("\n\n")[0])) == sum(good)
    assert result._repr_html_().count("<b>") == sum(good)


def test_latex_and_html_escape_names(result):
    assert r"100\% \& co\_ &" in result.table("latex")
    assert "100% &amp; co_" in result._repr_html_()
    assert result.table("latex").count("{") == result.table("latex").count("}")


def test_the_verdict_names_every_learner_once(result):
    sentence = result.verdict(epsilon=1.0)
    assert sentence.count("\n") == 0
    assert "has the least mean cumulative regret" in sentence
    assert all(sentence.count(name) == 1 for name in ("UCB (", "100% & co_ (", "in turn (", "made ("))
    with pytest.raises(ValueError, match="epsilon must be one of 1, inf, got 2"):
        result.verdict(epsilon=2.0)
    with pytest.raises(ValueError, match="epsilon must be one of 1, inf, got None"):
        result.verdict()
    assert result.verdict(1.0, 60) == sentence
    with pytest.raises(ValueError, match="horizon must be one of 60, got 999"):
        result.verdict(1.0, 999)
    with pytest.raises(ValueError, match="unit must be None for a comparison without units, got round"):
        result.verdict(1.0, unit="round")


def test_arrays_of_budgets_and_a_verdict_with_a_mean_that_is_not_finite(result):
    small = {**SMALL, "epsilon": np.array([1.0, np.inf]), "horizon": np.array([20])}
    assert jaxdp.compare({"UCB": bandits.ucb}, WORLD, **small).values().sizes["epsilon"] == 2
    dataset = result.dataset.copy(deep=True)
    dataset["pseudo_regret"].loc[{"learner": "UCB", "seed": 3}] = np.nan
    changed = dataclasses.replace(result, dataset=dataset)
    assert "UCB (local): no finite mean" in changed.verdict(epsilon=1.0)
    assert not changed.verdict(epsilon=1.0).startswith("At ε = 1 after 60 rounds, UCB")


def test_several_horizons_are_separate_runs():
    result = jaxdp.compare({"Exp3": bandits.exp3, "UCB": bandits.ucb}, WORLD, **{**SMALL, "horizon": [20, 60]})
    assert result.values().dims == ("learner", "horizon", "epsilon", "seed")
    run = jaxdp.simulator(bandits.exp3(num_arms=3, horizon=20), WORLD, 20)
    alone = jaxdp.sweep(run, axes={"epsilon": SMALL["epsilon"]}, num_seeds=8, key=KEY, tile_size=16)
    np.testing.assert_array_equal(
        result.values().sel(learner="Exp3", horizon=20).values, alone.pseudo_regret.isel(round=-1).values
    )
    assert "T = 20, ε = 1" in result.table()
    assert "after 20 rounds" in result.verdict(1.0, 20)
    result.plot()


def test_the_caption_of_a_figure_names_trust_models_and_the_break(result):
    trust_models = "Trust models: central (100% & co_), local (UCB, made)."
    text = jaxdp.plotting.caption(result.plot())
    assert trust_models in text
    assert "Behind the break of the axis: ε = ∞ (non-private)." in text
    finite = dataclasses.replace(result, dataset=result.dataset.sel(epsilon=[1.0]))
    text = jaxdp.plotting.caption(finite.plot())
    assert trust_models in text
    assert "Behind" not in text
    non_private = dataclasses.replace(result, dataset=result.dataset.sel(learner=["in turn"]))
    assert "Trust" not in jaxdp.plotting.caption(non_private.plot())


def test_counts_are_named_as_unpaired():
    etc = (bandits.explore_then_commit, {"explore_rounds": 12})
    result = jaxdp.compare({"ETC": etc, "Exp3": bandits.exp3}, WORLD, **SMALL, engine="counts")
    assert result.unpaired == ("ETC",)
    assert "Unpaired, on different worlds (played by counts): ETC." in result.caption()


def test_estimators_meet_the_same_data():
    estimators = {"SGD": jaxdp.estimation.sgd_rr, "fit": jaxdp.estimation.debiased_rr()}
    problem = jaxdp.estimation.gaussian_rewards(num_samples=50, dim=2)
    result = jaxdp.compare(estimators, problem=problem, epsilon=1.0, num_seeds=6, key=KEY, metric="l2_error")
    run = jaxdp.estimation_run({"SGD": jaxdp.estimation.sgd_rr(), "fit": jaxdp.estimation.debiased_rr()}, problem)
    alone = jaxdp.sweep(run, axes={"epsilon": [1.0]}, num_seeds=6, key=KEY, tile_size=16)
    np.testing.assert_array_equal(result.dataset.l2_error.values, alone.l2_error.values)
    assert result.verdict().startswith("At ε = 1, ")
    with pytest.raises(ValueError, match="horizon must be None for a comparison without horizons, got 50"):
        result.verdict(horizon=50)
    ignored: list[dict[str, Any]] = [{"engine": "rounds"}, {"reports": 3}, {"horizon": 9}]
    for changed in ignored:
        with pytest.raises(ValueError, match=f"{next(iter(changed))} must be left out with problem"):
            jaxdp.compare(estimators, problem=problem, epsilon=1.0, num_seeds=6, key=KEY, **changed)


MADE = bandits.ucb(num_arms=3)
ERRORS = {
    "learners must be a dict": {"learners": [bandits.ucb]},
    r"learners\['x'\] must have a value for explore_rounds, as the pair \(explore_then_commit": {
        "learners": {"x": bandits.explore_then_commit}
    },
    r"learners\['x'\] must have arguments among .*, got reprot. Did you mean report": {
        "learners": {"x": (bandits.ucb, {"reprot": "rr"})}
    },
    r"learners\['x'\] must be a learner or its factory, got int": {"learners": {"x": 3}},
    r"learners\['x'\] must be a pair of a factory and a dict": {"learners": {"x": (bandits.ucb, 3)}},
    r"learners\['x'\] must make a learner, got Environment": {
        "learners": {"x": lambda: bandits.bernoulli_bandit([0.5, 0.5])}
    },
    r"learners must have strings as names, got 3": {"learners": {3: bandits.ucb}},
    r"learners must have names that do not begin with an underscore, got '_x'": {"learners": {"_x": bandits.ucb}},
    r"learners\['x'\] must have arguments among .*, got means": {
        "learners": {"x": (bandits.ucb, {"means": [0.1, 0.2]})}
    },
    r"learners\['x'\] must have arguments among epsilon, .*, got report": {
        "learners": {"x": (bandits.ucb(num_arms=3), {"report": "rr"})}
    },
    r"learners\['x'\] must get epsilon from the argument epsilon, got its own 0\.1": {
        "learners": {"x": (bandits.ucb, {"epsilon": 0.1})}
    },
    r"learners\['x'\] must get epsilon from the argument epsilon, got its own 0\.2": {
        "learners": {"x": MADE._replace(params=functools.partial(MADE.params, epsilon=0.2))}
    },
    r"epsilon must have at least one value, got \[\]": {"epsilon": []},
    "epsilon must be a number, got None": {"epsilon": None},
    "epsilon must be a number, got 'x'": {"epsilon": "x"},
    r"epsilon must be a number, got \[1\.0, 2\.0\]": {"epsilon": [[1.0, 2.0]]},
    r"horizon must have at least one value, got \[\]": {"horizon": []},
    r"unit must have at least one value, got \[\]": {"unit": []},
    "unit must be one of round, person, got 3": {"unit": 3},
    r"values must be a dict, as .*, got \[1\]": {"values": [1]},
    "num_seeds must be an integer >= 5, got 4": {"num_seeds": 4},
    "horizon must be given with a world, got None": {"horizon": None},
    "checkpoints must be left out with several horizons, got 3": {"horizon": [10, 20], "checkpoints": 3},
    "metric must be one of .*, got 'l2_error'": {"metric": "l2_error"},
    "values must be among .*, got detla": {"values": {"detla": 0.1}},
    "best must be one of least, largest, got 'most'": {"best": "most"},
    "world must be of type jaxdp.Environment, got an instance of list": {"world": [0.9, 0.5]},
    "exactly one of world and problem must be given, got none": {"world": None},
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_come_before_anything_runs(message, monkeypatch):
    monkeypatch.setattr("jaxdp.comparisons._compare.sweep", lambda *given, **more: pytest.fail("it ran"))
    with pytest.raises(ValueError, match=message):
        jaxdp.compare(**{"learners": {"UCB": bandits.ucb}, "world": WORLD, **SMALL, **ERRORS[message]})


def test_a_learner_of_two_points_gets_the_dimension_of_the_world():
    world = bandits.convex.quadratic_losses(dim=3, feedback="difference")
    result = jaxdp.compare({"two": bandits.convex.two_point}, world, epsilon=1.0, horizon=50, num_seeds=5, key=KEY)
    assert np.isfinite(result.values()).all()


def test_a_stored_comparison_grows(tmp_path):
    """Adds seeds that would fill a larger tile; the store keeps its tile."""
    values = {**SMALL, "horizon": 20, "store": tmp_path / "store"}
    small = jaxdp.compare({"UCB": bandits.ucb}, WORLD, **values)
    large = jaxdp.compare({"UCB": bandits.ucb}, WORLD, **{**values, "num_seeds": 20}, grow=True)
    np.testing.assert_array_equal(large.values().isel(seed=slice(8)).values, small.values().values)


@pytest.mark.parametrize(("lanes", "tile"), [(5, 16), (256, 256), (257, 144), (400, 208), (5000, 256)])
def test_a_tile_leaves_few_lanes_unused(lanes, tile):
    assert _with_tile({}, lanes) == {"tile_size": tile}
    assert _with_tile({"tile_size": 7}, lanes) == {"tile_size": 7}
