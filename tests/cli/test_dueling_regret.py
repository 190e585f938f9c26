"""The study of dueling bandits: which learners play, what its text and figure say, and errors."""

import math
import re

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp import plotting
from jaxdp.core import pairs
from jaxdp.core.interface import is_space
from jaxdp.registry import LEARNERS
from jaxdp.studies import dueling_regret as study
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.comparison import resize
from jaxdp.theory import dueling as theory

CELL = re.compile(r"([\d,]+) \+- ([\d,]+|nan)")


def made_up(num_seeds=4, learners=("ebs_phased", "rucb")):
    """Makes regret of about 3 T^(1/2) / epsilon for the first learner and 5 T^(1/4) for the second one."""
    coords = {
        "learner": list(learners),
        "epsilon": [1.0, math.inf, 0.5],
        "round": [100, 300, 1000],
        "seed": range(num_seeds),
    }
    sizes = [len(values) for values in coords.values()]
    noise = xr.DataArray(np.random.default_rng(0).uniform(0.9, 1.1, sizes), coords, list(coords))
    power = 0.5 / (1 + xr.DataArray(range(len(learners)), dims="learner"))
    budget = (1 / noise.epsilon.clip(max=100)) ** (xr.DataArray(range(len(learners)), dims="learner") == 0)
    results = xr.Dataset({"pseudo_regret": noise * 4 * noise["round"] ** power * budget})
    models = ["central"] + ["local"] * (len(learners) - 1)
    return results.assign_coords(utility=("arm", [0.0, 1.0, -1.0]), trust_model=("learner", models), delta=1e-6)


def test_every_registered_dueling_bandit_plays():
    """Plays all learners of pairs, at any number of arms and rounds, with defaults in place of the registry's tiny
    values.
    """
    tiny = {name: entry.make() for name, entry in LEARNERS.items()}

    def plays_pairs(made):
        action = made.interface and made.interface.action
        return is_space(action) and action.kind == "integers" and action.shape == (2,)

    # Those of arms with features, which the study's arms do not have, are left out.
    registered = {name for name, made in tiny.items() if plays_pairs(made) and LEARNERS[name].family == "dueling"}
    known = study.duel_learners()
    assert set(known) == registered
    assert {"ebs_phased", "rucb"} <= registered
    assert "explore_then_commit" not in registered
    for name, entry in known.items():
        made = resize(entry, 70, num_arms=5).make()
        assert made.interface is not None
        assert made.interface.action == pairs(5)
        assert made.horizon in (None, 70)
        assert (made.horizon is None) == (tiny[name].horizon is None)
    assert repr(resize(known["ebs_elimination_gaussian"], 70, num_arms=5).make()) == (
        "ebs_elimination(num_arms=5, horizon=70, noise='gaussian')"
    )


@pytest.fixture(scope="module")
def small():
    return study.dueling_regret(
        epsilon=[0.5, math.inf],
        learner=["rucb", "ebs_phased"],
        utility=[0.0, 3.0],
        horizon=120,
        num_seeds=3,
        key=jax.random.key(3),
    )


def test_results(small):
    regret = small.pseudo_regret
    assert regret.dims == ("learner", "epsilon", "round", "seed")
    assert regret.learner.values.tolist() == ["rucb", "ebs_phased"]
    assert regret["round"].values[-1] == 120
    assert np.all(np.diff(regret["round"]) > 0)
    assert np.all(np.diff(regret, axis=2) >= 0)
    assert float(regret.max()) <= 120 * 6
    phased = regret.sel(learner="ebs_phased")  # in its first phase: all pairs alike, so that every second arm is wrong
    np.testing.assert_allclose(phased.isel(round=-1), 120 * 3.0)
    assert float(regret.sel(learner="rucb", epsilon=math.inf).isel(round=-1).mean()) < 120 * 2
    np.testing.assert_array_equal(small.trust_model, ["local", "central"])
    np.testing.assert_allclose(study.gaps(small), [1 / (1 + math.exp(-3)) - 0.5])
    assert study.report(small)


def test_tables_hold_the_numbers_of_the_dataset():
    results = made_up()
    mean, half = mean_and_half_width(results.pseudo_regret.isel(round=-1))
    lines = study.table(results).splitlines()
    assert lines[0] == "regret after 1,000 rounds"
    for line, name, label in zip(lines[2:4], ("ebs_phased", "rucb"), ("EBS, phases", "RUCB"), strict=True):
        assert label in line
        cells = [[float(number.replace(",", "")) for number in pair] for pair in CELL.findall(line)]
        np.testing.assert_allclose(cells, np.stack([mean.sel(learner=name), half.sel(learner=name)], 1), atol=0.51)
    bound = theory.regret_upper([1.0, math.inf, 0.5], 1000, study.gaps(results))
    assert [float(cell.replace(",", "")) for cell in lines[4].split()[-3:]] == pytest.approx(bound, abs=0.51)


def test_exponents():
    text = study.growth(made_up(num_seeds=30))
    lines = text.splitlines()
    assert lines[0].endswith("of T, from 100 to 1,000 rounds; of 1/ε, from ε = 0.5 to 1 after 1,000 rounds")
    found = [[float(n) for n in re.findall(r"(-?\d\.\d\d) \(", line)] for line in lines[2:]]
    np.testing.assert_allclose(found, [[0.5, 0.5, 0.5, 1.0], [0.25, 0.25, 0.25, 0.0]], atol=0.04)
    assert "1/ε" not in study.growth(made_up().sel(epsilon=[0.5, math.inf]))
    assert "nan" in study.growth(made_up(num_seeds=1))


@pytest.mark.parametrize(
    ("num_seeds", "epsilons", "rounds"),
    [
        (4, [1.0, math.inf], 2),
        (4, [1.0, math.inf, 0.5], 3),
        (1, [math.inf], 3),
        (4, [0.5], 1),
    ],
)
def test_the_figure(num_seeds, epsilons, rounds):
    results = made_up(num_seeds, [f"learner {index}" for index in range(9)]).sel(epsilon=epsilons)
    results = results.isel(round=slice(rounds))
    figure = study.figure(results)
    FigureCanvasAgg(figure).draw()
    titles = [panel.get_title() for panel in figure.axes]
    ordered = sorted(epsilons)
    assert titles[: len(ordered) + 1] == [
        *map(plotting.epsilon_label, ordered),
        f"after {int(results['round'][-1]):,} rounds",
    ]
    regret = results.pseudo_regret.mean("seed")
    gaps = study.gaps(results)
    for panel, epsilon in zip(figure.axes, ordered, strict=False):
        lines = panel.get_lines()
        assert len(lines) == 9 + 2 * (rounds > 1)
        curves, (upper, lower) = lines[:9], lines[9:] if rounds > 1 else (None, None)
        for curve, expected in zip(curves, regret.sel(epsilon=epsilon), strict=True):
            np.testing.assert_allclose(np.asarray(curve.get_ydata(), float), expected)
        if upper is not None and lower is not None:
            at = results["round"].values
            np.testing.assert_allclose(np.asarray(upper.get_ydata(), float), theory.regret_upper(epsilon, at, gaps))
            order = theory.regret_lower(epsilon, at, gaps)
            first = float(regret.sel(epsilon=epsilon).isel(round=0).min())
            np.testing.assert_allclose(np.asarray(lower.get_ydata(), float), first * order / order[0])
    styles = {(line.get_color(), line.get_marker()) for line in figure.axes[0].get_lines()[:9]}
    assert len(styles) == 9
    entries = [entry.get_text().replace("\n", " ") for entry in figure.legends[0].get_texts()]
    if rounds > 1:
        assert entries[-2:] == [study.UPPER_LABEL, study.LOWER_LABEL]
    below = figure._supxlabel.get_text().replace("\n", " ")  # pyright: ignore[reportAttributeAccessIssue]
    assert "95% confidence interval" in below or num_seeds == 1
    assert "The constants of Thm 1 are not proved" in below


def test_regret_against_epsilon():
    """Checks that finite budgets are joined and infinity stands apart, and that the bounds end with the line."""
    results = made_up()
    panel = study.figure(results).axes[3]
    *_, upper, lower = panel.get_lines()
    mean = results.pseudo_regret.isel(round=-1).mean("seed")
    for name, mark in zip(results.learner.values, "os", strict=True):
        joined, apart = [line for line in panel.get_lines() if line.get_marker() == mark]
        np.testing.assert_allclose(np.asarray(joined.get_xdata(), float), [0.5, 1.0])
        np.testing.assert_allclose(np.asarray(joined.get_ydata(), float), mean.sel(learner=name, epsilon=[0.5, 1.0]))
        np.testing.assert_allclose(np.asarray(apart.get_ydata(), float), mean.sel(learner=name, epsilon=[math.inf]))
        assert float(np.asarray(apart.get_xdata())[0]) > 1
    gaps = study.gaps(results)
    np.testing.assert_allclose(np.asarray(upper.get_ydata(), float), theory.regret_upper([0.5, 1.0], 1000, gaps))
    order = theory.regret_lower([0.5, 1.0], 1000, gaps)
    np.testing.assert_allclose(
        np.asarray(lower.get_ydata(), float), float(mean.sel(epsilon=0.5).min()) * order / order[0]
    )
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0.5", "1", "∞"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": [1.0, 0.0]}, r"epsilon must be > 0, got 0.0"),
        ({"epsilon": [math.nan]}, r"epsilon must be > 0, got nan"),
        ({"learner": ["explore_then_commit"]}, r"learner must be one of .*rucb.*, got 'explore_then_commit'"),
        ({"utility": [1.0]}, r"utility must be at least two numbers with a unique maximum, got \[1.0\]"),
        ({"utility": [1.0, 1.0, 0.0]}, r"utility must be at least two numbers with a unique maximum"),
        ({"utility": [1.0, math.nan]}, r"utility must be finite, got nan at index \(1,\)"),
        ({"horizon": 99}, r"horizon must be an integer >= 100, got 99"),
        ({"horizon": math.nan}, r"horizon must be an integer >= 100, got nan"),
        ({"num_seeds": 0}, r"num_seeds must be an integer >= 1, got 0"),
        ({"learner": ["versatile_sparring_gaussian"], "delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        study.dueling_regret(
            **{"learner": ["rucb"], "horizon": 200, "num_seeds": 2, "key": jax.random.key(3), **values}
        )
