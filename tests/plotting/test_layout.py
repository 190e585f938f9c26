"""Figures are drawn, and measured: nothing outside the figure, nothing on top of something else."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection

from jaxdp import plotting
from jaxdp.plotting import layout
from jaxdp.studies import private_ranking, reward_estimation
from tests.plotting.made_up import EPSILONS, ESTIMATORS, check_inside, entries, errors, regret, single


def grid(values, **changes):
    options = {
        "labels": reward_estimation.LABELS,
        "xscale": "log",
        "yscale": "log",
        "title": "What label privacy costs",
    }
    dims = {"x": "num_samples", "hue": "estimator", "col": "epsilon", "row": "num_features"}
    return plotting.facets(values, **{**dims, **options, **changes})


def abilities(num_epsilons=1, items=("Milwaukee", "Baltimore", "a team with a very long name indeed"), num_seeds=5):
    coords = {"estimator": list(ESTIMATORS[:3]), "epsilon": list(EPSILONS[-num_epsilons:]), "item": list(items)}
    sizes = 3, num_epsilons, len(items), num_seeds
    return xr.DataArray(np.random.default_rng(0).normal(size=sizes), coords, (*coords, "seed"), "ability")


def items(values, **changes):
    options = {"y": "item", "hue": "estimator", "col": "epsilon", "width": 2.6, "labels": private_ranking.LABELS}
    return plotting.facets(values, draw=plotting.dot_plot, **{**options, "title": "A ranking", **changes})


@pytest.mark.parametrize(
    ("num_epsilons", "num_sizes"),
    [(2, 3), (1, 1), (5, 3), (1, 3), (2, 1), (5, 1)],
)
def test_grids_fit_their_figure(num_epsilons, num_sizes):
    check_inside(grid(errors(num_epsilons, num_sizes, spread=0.9, num_seeds=3)))


@pytest.mark.parametrize("num_epsilons", [1, 2, 5])
def test_dot_plots_fit_their_figure(num_epsilons):
    check_inside(items(abilities(num_epsilons)))


def test_long_words_widen_or_wrap():
    check_inside(items(abilities(items=("$cheap$ and $", "x" * 80))))
    check_inside(grid(errors(), title="many words " * 20, labels={"mle": "a name of many words " * 6}))
    check_inside(plotting.curves(single(errors()), hue="estimator", ylabel="a long name " * 9).figure)


def test_a_text_is_as_wide_as_its_widest_line():
    assert layout.text_width("wide text\nno", 10) == layout.text_width("wide text", 10)


def test_single_panels_fit_their_figure():
    check_inside(plotting.curves(regret(), hue="epsilon", title="Regret").figure)
    check_inside(plotting.cost_of_privacy(regret(), title="many words " * 20).figure)
    check_inside(plotting.dot_plot(single(errors()).isel(num_samples=0), y="estimator").figure)


def test_panels_go_on_in_the_next_line():
    values = errors(num_epsilons=5, num_samples=(1000, 3000))
    figure = plotting.facets(values, x="num_samples", hue="estimator", col="epsilon", abreast=3)
    check_inside(figure)
    shown = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title() for panel in shown] == [plotting.epsilon_label(epsilon) for epsilon in EPSILONS]
    assert [bool(panel.get_ylabel()) for panel in shown] == [True, False, False, True, False]
    assert [bool(panel.get_xlabel()) for panel in shown] == [False, False, True, True, True]
    assert len({panel.get_ylim() for panel in shown}) == 1


def test_a_figure_too_narrow_is_noticed():
    figure = grid(errors())
    figure.set_figwidth(3.0)
    with pytest.raises((AssertionError, UserWarning)):
        check_inside(figure)


def test_rows_are_named():
    values = errors(num_sizes=2).rename(num_features="policy").assign_coords(policy=["greedy", "timid"])
    figure = grid(values, row="policy", labels={"greedy": "GREEDY", "mle": "no privacy"})
    check_inside(figure)
    assert [panel.get_ylabel().split("\n")[0] for panel in figure.axes] == ["GREEDY", "timid"]
    assert figure.legends[0].get_texts()[0].get_text() == "no privacy"


def test_spare_panels_are_for_the_user():
    figure = plotting.facets(regret(), col="epsilon", abreast=3, spare=1, sharex=False)
    shown = [panel for panel in figure.axes if panel.get_visible()]
    assert len(shown) == 4
    assert not shown[3].has_data()


def test_facets_name_what_is_missing():
    with pytest.raises(ValueError, match="col or row must be a dimension, got neither"):
        plotting.facets(regret(), hue="epsilon")
    with pytest.raises(ValueError, match="values must have one value along epsilon"):
        plotting.facets(errors(2, 2), x="num_samples", hue="estimator", col="num_features")
    with pytest.raises(ValueError, match="col must be another dimension than hue, got 'epsilon'"):
        plotting.facets(regret(), hue="epsilon", col="epsilon")


def test_more_is_drawn_on_each_panel():
    """Checks that `also` gets the axes and the values of each panel after its curves; its bounds are in the legend."""
    values, levels, seen = regret(), {0.5: 3.0, 1.0: 5.0, np.inf: 7.0}, []

    def also(ax, own):
        seen.append((float(own.epsilon), len(ax.get_lines())))
        plotting.bound(ax, own["round"].values, levels[float(own.epsilon)], label="a level")

    figure = plotting.facets(values, x="round", col="epsilon", also=also)
    assert seen == [(float(value), 1) for value in values.epsilon.values]
    for ax, value in zip(figure.axes, values.epsilon.values, strict=True):
        assert set(np.asarray(ax.get_lines()[-1].get_ydata()).tolist()) == {levels[value]}
    assert "a level" in entries(figure)


def test_level_panels():
    figure = plotting.panels(1, 2)
    values = regret()
    for ax, part in zip(figure.axes, (values, 100 * values), strict=True):
        plotting.curves(part, hue="epsilon", ax=ax, yscale="log")
    before = [ax.get_ylim() for ax in figure.axes]
    assert before[0] != before[1]
    plotting.share_limits(figure)
    assert {ax.get_ylim() for ax in figure.axes} == {(before[0][0], before[1][1])}


def test_level_panels_keep_their_direction():
    figure = plotting.panels(1, 2)
    for ax, limits in zip(figure.axes, ((1.5, -0.5), (2.0, -1.0)), strict=True):
        ax.set_ylim(limits)
    plotting.share_limits(figure)
    assert [ax.get_ylim() for ax in figure.axes] == [(2.0, -1.0)] * 2


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_hidden_and_empty_panels_have_no_part_in_level_panels(scale):
    factors = np.array([1.0, 30.0, 0.01])[:, None, None] if scale == "log" else np.ones((3, 1, 1))
    coords = {"epsilon": [0.1, 1.0, 10.0], "round": [10, 20, 40, 80]}
    seeds = [0.01, 0.01, 1.9, 2.08] if scale == "log" else [0.98, 0.99, 1.01, 1.02]
    values = xr.DataArray(
        50 * factors * np.broadcast_to(seeds, (3, 4, 4)), coords, ("epsilon", "round", "seed"), "regret"
    )
    figure = plotting.facets(values, col="epsilon", abreast=2, sharey=False, yscale=scale)
    limits = np.array([ax.get_ylim() for ax in figure.axes[:3]])
    plotting.share_limits(figure)
    assert {ax.get_ylim() for ax in figure.axes[:3]} == {(limits[:, 0].min(), limits[:, 1].max())}
    if scale == "log":  # bands with ends <= 0 reach the new bottom edge
        (band,) = [artist for artist in figure.axes[1].collections if isinstance(artist, PolyCollection)]
        assert np.min(np.asarray(band.get_paths()[0].vertices)[:, 1]) == limits[:, 0].min()


def test_heat_maps_keep_their_limits_in_level_panels():
    figure = plotting.panels(1, 3)
    left, middle, right = figure.axes
    plotting.heatmap(
        single(errors()).transpose("estimator", ...), x="num_samples", y="estimator", ax=left, numbers=False
    )
    plotting.curves(regret(), hue="epsilon", ax=middle, yscale="linear")
    bar = figure.axes[3]
    before = [ax.get_ylim() for ax in figure.axes]
    plotting.share_limits(figure)
    assert [ax.get_ylim() for ax in figure.axes] == before
    middle.set_ylim(-1, 1)
    plotting.curves(regret(), hue="epsilon", ax=right, yscale="log")
    with pytest.raises(ValueError, match="figure must have limits > 0 for its logarithmic panels, got -1"):
        plotting.share_limits(figure)
    assert bar.get_ylim() == before[3]
