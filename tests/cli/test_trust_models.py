"""The study of trust models: which bandits play, what its text and figure say, and errors."""

import math

import jax
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.core import arms
from jaxdp.registry import LEARNERS
from jaxdp.studies import trust_models as study
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.comparison import resize


def test_every_bandit_with_arms_plays():
    known = study.arm_learners()
    assert {"tsallis_inf", "ucb", "thompson", "exp3_laplace", "ucb_central", "ucb_central_tree"} <= set(known)
    assert {"successive_elimination_central", "explore_then_commit"} <= set(known)
    assert "explore_then_commit_bounded" not in known  # the same for binary rewards
    for name, entry in known.items():
        made = resize(entry, 90, num_arms=4).make()
        assert made.interface is not None
        assert made.interface.action == arms(4)
        assert made.horizon in (None, 90)
        assert LEARNERS[name].factory is entry.factory


@pytest.fixture(scope="module")
def small():
    return study.trust_models(
        epsilon=[1.0, math.inf],
        learner=["ucb", "ucb_central"],
        mean=[0.9, 0.1],
        horizon=100,
        num_seeds=3,
        key=jax.random.key(4),
    )


def test_results(small):
    regret = small.pseudo_regret
    assert regret.dims == ("learner", "epsilon", "round", "seed")
    assert regret["round"].values[-1] == 100
    assert np.all(np.diff(regret, axis=2) >= 0)
    worst = 0.8 * (regret["round"] - small.best_arm_plays)
    np.testing.assert_allclose(regret, worst.transpose(*regret.dims), atol=1e-4)
    np.testing.assert_array_equal(small.trust_model, ["local", "central"])
    assert study.uniform_regret(small) == pytest.approx(40)


def test_the_report_holds_the_numbers_of_the_dataset(small):
    mean, half = mean_and_half_width(small.pseudo_regret.isel(round=-1))
    lines = study.report(small).splitlines()
    assert lines[0] == "regret after 100 rounds, arms with means 0.9, 0.1"
    for line, name in zip(lines[2:4], ("ucb_central", "ucb"), strict=True):
        model = "central" if name == "ucb_central" else "local"
        assert line.startswith(f"{model}: UCB ")
        for value in (1.0, math.inf):
            at = {"learner": name, "epsilon": value}
            assert f"{float(mean.sel(at)):,.0f} +- {float(half.sel(at)):,.0f}" in line
    assert lines[4].split()[-2:] == ["40", "40"]


def test_the_figure(small):
    figure = study.figure(small)
    FigureCanvasAgg(figure).draw()
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["trusted curator", "nobody is trusted", "no privacy"]
    assert len({panel.get_ylim() for panel in figure.axes}) == 1
    alone = study.figure(small.sel(learner=["ucb"], epsilon=[1.0]))
    assert [panel.get_title() for panel in alone.axes] == ["nobody is trusted"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": ["rucb"]}, r"learner must be one of .*tsallis_inf.*, got 'rucb'"),
        ({"mean": [0.5, 0.5]}, r"mean must have at least two different values, got \[0.5, 0.5\]"),
        ({"mean": [0.5, 1.5]}, r"means must be in \[0, 1\], got 1.5"),
        ({"horizon": 99}, "horizon must be an integer >= 100, got 99"),
        ({"epsilon": [0.0]}, "epsilon must be > 0, got 0"),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        study.trust_models(**{"learner": ["ucb"], "horizon": 200, "num_seeds": 2, "key": jax.random.key(4), **values})
