"""Curves show the numbers of their data, and name the omitted ones."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.plotting import records
from jaxdp.plotting.labels import labels_of
from jaxdp.studies.command import mean_and_half_width
from tests.plotting.made_up import ESTIMATORS, below, check_inside, entries, errors, heights, labelled, regret, single


def drawn(values, **options):
    return plotting.curves(single(values), x="num_samples", hue="estimator", xscale="log", yscale="log", **options)


def bands(ax):
    return [
        found for found in ax.collections if isinstance(found, PolyCollection | LineCollection) and found.get_paths()
    ]


@pytest.mark.parametrize("num_samples", [(100,), (100, 1000)])
def test_a_band_below_zero_does_not_stretch_the_axis(num_samples):
    values = errors(num_seeds=3, spread=0.9, num_samples=num_samples)
    mean, half = mean_and_half_width(values)
    assert (mean < half).any()
    ax = drawn(values)
    check_inside(ax.figure)
    bottom, top = ax.get_ylim()
    assert float(mean.min()) / 20 < bottom < float(mean.min())
    assert float((mean + half).max()) < top < 2 * float((mean + half).max())
    left, right = ax.get_xlim()
    assert num_samples[0] / 10 < left < num_samples[0]
    assert num_samples[-1] < right < 10 * num_samples[-1]
    assert len(bands(ax)) == len(ESTIMATORS)
    for band in ax.collections:
        if isinstance(band, PolyCollection):
            for path in band.get_paths():
                assert np.all(np.asarray(path.vertices)[:, 1] >= bottom * (1 - 1e-9))
    assert "continues below" in below(ax.figure)


def test_narrow_bands_are_shown_whole():
    values = errors(num_seeds=50)
    ax = drawn(values)
    mean, half = mean_and_half_width(values)
    bottom, top = ax.get_ylim()
    assert bottom < float((mean - half).min())
    assert top > float((mean + half).max())
    caption = below(ax.figure)
    assert "continues below" not in caption
    assert "Student's" in caption
    assert "No mark" not in caption
    for band, low, high in zip(bands(ax), single(mean - half), single(mean + half), strict=True):
        ends = np.asarray(band.get_paths()[0].vertices)[:, 1]
        np.testing.assert_allclose([ends.min(), ends.max()], [low.min(), high.max()])


@pytest.mark.parametrize("level", [1.0, 4.9])
def test_axis_has_ticks_even_if_all_errors_are_alike(level):
    ax = drawn(level * xr.ones_like(errors()))
    bottom, top = ax.get_ylim()
    ticks = ax.get_yticks()
    assert np.sum((ticks >= bottom) & (ticks <= top)) >= 2


def test_failed_fits_show():
    values = errors()
    values[0, 0, 0, 1, 3] = np.nan
    ax = drawn(values)
    check_inside(ax.figure)
    np.testing.assert_array_equal(np.isfinite(heights(ax.get_lines()[0])), [True, False, True])
    assert "No mark: a value was not finite" in below(ax.figure)
    check_inside(drawn(np.nan * errors()).figure)


def test_zero_has_no_mark_on_a_logarithmic_axis():
    values = errors()
    values[0, 0, 0, 0] = 0.0
    ax = drawn(values)
    np.testing.assert_array_equal(np.isfinite(heights(ax.get_lines()[0])), [False, True, True])
    assert "No mark: a value of zero or below" in below(ax.figure)
    assert plotting.curves(single(values), x="num_samples", hue="estimator").get_yscale() == "linear"


def test_one_seed_has_no_band():
    ax = drawn(errors(num_seeds=1))
    check_inside(ax.figure)
    assert "Marks: mean of 1 seed. Both" in below(ax.figure)


def test_curves_are_the_means_of_seeds():
    values = regret()
    ax = plotting.curves(values, hue="epsilon")  # rounds go without saying
    for epsilon in values.epsilon.values:
        line = labelled(ax, plotting.epsilon_label(epsilon))
        np.testing.assert_array_equal(line.get_xdata(), values["round"])
        np.testing.assert_allclose(heights(line), values.sel(epsilon=epsilon).mean("seed"))
    assert entries(ax.figure) == ["ε = 0.5", "ε = 1", "ε = ∞ (no privacy)"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds T", "cumulative regret")


@pytest.mark.parametrize(
    ("band", "text"), [("quantile", "Marks: median of 6 seeds."), (None, "Marks: mean of 6 seeds.")]
)
def test_other_bands(band, text):
    values = regret()
    ax = plotting.curves(values, hue="epsilon", band=band)
    assert text in below(ax.figure)
    assert "Student" not in below(ax.figure)
    middle = values.median("seed") if band else values.mean("seed")
    np.testing.assert_allclose(heights(labelled(ax, "ε = 1")), middle.sel(epsilon=1.0))
    if band is None:
        assert "Bands" not in below(ax.figure)
        assert not [path for found in bands(ax) for path in found.get_paths() if np.size(path.vertices)]


def test_shares_are_from_zero_to_one():
    hits = regret() > 100
    ax = plotting.curves(hits, hue="epsilon", band="share")
    assert ax.get_ylim() == (-0.03, 1.03)
    assert "Clopper-Pearson" in below(ax.figure)
    with pytest.raises(ValueError, match=r"values must be 0 or 1 if band is 'share', got 0.5"):
        plotting.curves(0.5 * hits, hue="epsilon", band="share")
    logarithmic: Any = Figure().add_subplot()
    logarithmic.set_yscale("log")
    plotting.curves(hits, hue="epsilon", band="share", ax=logarithmic)
    assert logarithmic.get_yscale() == "log"


def test_places_in_any_order_are_sorted():
    values = regret().isel(round=[3, 0, 2], epsilon=0)
    line = plotting.curves(values).get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), np.sort(values["round"]))
    np.testing.assert_allclose(heights(line), values.mean("seed").sortby("round"))


@pytest.mark.parametrize("epsilons", [(0.5, 1.0, np.inf), (np.inf, 1.0, 0.5)])
def test_no_privacy_stands_apart(epsilons):
    values = regret(epsilons)
    ax = plotting.cost_of_privacy(values)
    mean = values.isel(round=-1).mean("seed")
    joined, apart = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(np.asarray(joined.get_xdata(), float), [0.5, 1.0])
    np.testing.assert_allclose(heights(joined), mean.sel(epsilon=[0.5, 1.0]))
    np.testing.assert_allclose(heights(apart), mean.sel(epsilon=[np.inf]))
    assert float(np.asarray(apart.get_xdata())[0]) > 1
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "1", "∞"]
    assert repr(ax.figure) == "<figure of 1 panel: after 100,000 rounds>"
    check_inside(ax.figure)


def test_no_privacy_alone():
    ax = plotting.cost_of_privacy(regret((np.inf,)))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["∞"]
    assert "Bars" in below(ax.figure)
    check_inside(ax.figure)


def test_bars_stand_side_by_side():
    values = errors(num_epsilons=3).isel(num_features=0, num_samples=0)
    ax = plotting.cost_of_privacy(values, hue="estimator", bars=True)
    firsts = [np.asarray(labelled(ax, name).get_xdata())[0] for name in ESTIMATORS]
    assert np.all(np.diff(firsts) > 0)
    dense = values.isel(epsilon=0, drop=True).expand_dims(epsilon=np.geomspace(0.1, 10, 30))
    lines = plotting.cost_of_privacy(dense, hue="estimator", bars=True).get_lines()
    ends = [np.asarray(line.get_xdata(), float) for line in lines if line.get_label() in ESTIMATORS]
    assert np.all(np.max(ends, axis=0)[:-1] < np.min(ends, axis=0)[1:])
    assert "Bars:" in below(ax.figure)


def test_names_on_the_horizontal_axis():
    values = errors().isel(epsilon=0, num_features=0, num_samples=0)
    ax = plotting.curves(values, x="estimator")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == list(ESTIMATORS)
    assert ax.get_lines()[0].get_linestyle() == "None"


def test_axes_of_the_users_own():
    own: Any = Figure().add_subplot()
    own.set_yscale("log")
    assert plotting.curves(regret(), hue="epsilon", ax=own, title="mine") is own
    assert own.get_yscale() == "log"
    assert own.get_title() == "mine"
    assert [text.get_text() for text in own.get_legend().get_texts()] == ["ε = 0.5", "ε = 1", "ε = ∞ (no privacy)"]
    assert "95% confidence interval of that mean" in plotting.caption(own)
    assert own.figure._supxlabel is None
    plotting.curves(regret().isel(epsilon=0), ax=own, label="again")
    assert len({line.get_color() for line in own.get_lines()}) == 4
    without = Figure().add_subplot()
    assert plotting.curves(regret(), hue="epsilon", ax=without, legend=False).get_legend() is None


def test_units_and_long_names():
    values = regret()
    values["round"].attrs.update(long_name="steps of $", units="days")
    ax = plotting.curves(values.assign_attrs(long_name="what is lost"), hue="epsilon")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"steps of \$ (days)", "what is lost")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"values must have one value along epsilon, got .*hue='epsilon' or facets\(values, col='epsilon'\)"),
        ({"hue": "learner"}, "hue must be one of epsilon, round, got 'learner'"),
        ({"hue": "epsilon", "x": "epsilon"}, "hue must be another dimension than x, got 'epsilon'"),
        ({"hue": "epsilon", "band": "sem"}, "band must be one of t, quantile, share, got 'sem'"),
        ({"hue": "epsilon", "yscale": "cube"}, "yscale must be one of linear, log, got 'cube'"),
        ({"hue": "epsilon", "xscale": "cube"}, "xscale must be one of linear, log, got 'cube'"),
        ({"hue": "epsilon", "ax": 3}, "ax must be Matplotlib axes, or None for a new figure, got int"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        plotting.curves(regret(), **options)


def test_wrong_values():
    with pytest.raises(ValueError, match=r"one variable of the results, such as results.pseudo_regret, got a Dataset"):
        plotting.curves(regret().to_dataset())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"must have the dimension seed, .* got \(epsilon: 3, round: 8\)"):
        plotting.curves(regret().mean("seed"))
    with pytest.raises(ValueError, match="values must be an xarray DataArray, got ndarray"):
        plotting.curves(regret().values)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="x must be given: one of estimator, num_samples, got none"):
        plotting.curves(errors())
    with pytest.raises(ValueError, match="xscale must be linear where gap has values <= 0, got 'log' and 0"):
        plotting.curves(regret().isel(round=0).assign_coords(epsilon=[0.0, 1, 2]).rename(epsilon="gap"), xscale="log")
    with pytest.raises(ValueError, match="epsilon must be finite or infinity, got"):
        plotting.cost_of_privacy(regret((1.0, np.nan)))


def test_infinity_has_one_place_on_axes():
    def line(*epsilons):
        grid = np.array(epsilons)
        return xr.DataArray(np.ones((len(grid), 3)), {"epsilon": grid}, ("epsilon", "seed"), "l2_error")

    def ticks(ax):
        return dict(zip(ax.get_xticks(), [text.get_text() for text in ax.get_xticklabels()], strict=True))

    ax = plotting.curves(line(0.1, 1, 10, np.inf), x="epsilon", label="far")
    plotting.curves(line(0.1, 1, np.inf), x="epsilon", label="near", ax=ax)
    assert ticks(ax) == {0.1: "0.1", 1: "1", 10: "10", 40: "∞"}
    for first, second in [
        ((0.1, 1, np.inf), (0.1, 1, 4)),
        ((0.1, 1, 4), (0.1, 1, np.inf)),
        ((1, np.inf), (10, np.inf)),
    ]:
        ax = plotting.curves(line(*first), x="epsilon", label="first")
        with pytest.raises(ValueError, match="x must be below 4 on these axes, the position of infinity"):
            plotting.curves(line(*second), x="epsilon", label="second", ax=ax)


def test_axes_that_were_cleared_begin_anew():
    values = xr.DataArray(
        [[0.1, 3.0], [0.5, 0.5], [2.0, 2.0]], {"epsilon": [0.1, 1, np.inf]}, ("epsilon", "seed"), "error"
    )
    ax = plotting.curves(
        values, x="epsilon", yscale="log", label="first"
    )  # a band below zero, a chosen scale, infinity
    ax.clear()
    assert plotting.caption(ax) == ""
    longer = values.assign_coords(epsilon=[0.1, 40, np.inf]).isel(seed=[0, 0, 0])
    plotting.curves(longer, x="epsilon", yscale="linear", label="second", ax=ax)
    fresh = plotting.curves(longer, x="epsilon", yscale="linear", label="second")
    assert plotting.caption(ax) == plotting.caption(fresh)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1", "40", "∞"]
    assert ax.get_lines()[-1].get_color() == fresh.get_lines()[-1].get_color()


def test_a_figure_that_nobody_holds_is_freed():
    values = xr.DataArray([[0.1, 3.0], [2.0, 2.0]], {"round": [1.0, 100.0]}, ("round", "seed"), "error")
    ax = plotting.curves(values, x="round", yscale="log")
    alive = weakref.ref(ax)
    del ax
    gc.collect()
    assert alive() is None


def test_a_label_has_one_style_in_a_figure_and_a_style_one_label():
    values = single(errors())
    figure = plotting.panels(1, 2)
    figure.explain()
    left, right = figure.axes
    plotting.curves(values, hue="estimator", ax=left)
    plotting.curves(values.isel(estimator=[2, 1]), hue="estimator", ax=right)
    plotting.curves(values.isel(estimator=[0]), hue="estimator", labels={"mle": "another"}, ax=right)
    of_label = {}
    for panel in figure.axes:
        for line in panel.get_lines():
            of_label.setdefault(line.get_label(), set()).add((str(line.get_color()), line.get_marker()))
    assert set(of_label) == {*ESTIMATORS, "another"}
    assert all(len(styles) == 1 for styles in of_label.values())
    assert len({next(iter(styles)) for styles in of_label.values()}) == len(of_label)


def test_numbers_that_agree_in_six_digits_have_labels_of_their_own():
    epsilons = [0.1, 0.1 + 1e-9, 1.0, np.inf]
    assert labels_of("epsilon", epsilons) == ["ε = 0.1", "ε = 0.100000001", "ε = 1", "ε = ∞ (no privacy)"]
    assert labels_of("gap", [0.1, 0.1 + 1e-9], {0.1: "same", 0.1 + 1e-9: "same"}) == ["same", "same"]
    values = xr.DataArray(
        np.ones((2, 3, 2)), {"epsilon": epsilons[:2], "round": [1, 2, 3]}, ("epsilon", "round", "seed")
    )
    first, second = records.curves_on(plotting.curves(values, hue="epsilon"))
    assert first.label != second.label
    assert first.style != second.style


def test_curves_that_are_not_highlighted_share_one_grey_entry():
    values = single(errors())
    ax = plotting.curves(values, hue="estimator", highlight=["mle"])
    assert entries(ax.figure) == ["mle", "others"]
    with pytest.raises(ValueError, match=r"highlight must have values of estimator, one of mle, .* got 'lme'"):
        plotting.curves(values, hue="estimator", highlight=["lme"])
    with pytest.raises(ValueError, match=r"highlight must be left out without hue, got \['mle'\]"):
        plotting.curves(values.isel(estimator=0), highlight=["mle"])


def test_values_that_are_not_numbers_stand_side_by_side():
    numbers = np.random.default_rng(0).random((3, 20))
    values = xr.DataArray(numbers, dims=("method", "seed"), coords={"method": ["a", "b", "c"]}, name="regret")
    ax = plotting.curves(values, x="method")
    marks = [at for line in ax.lines if len(at := np.asarray(line.get_xdata()).tolist()) == 3]
    assert marks
    assert all(positions == [0, 1, 2] for positions in marks)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    middle = values.mean("seed")
    differences = xr.Dataset({"difference": middle, "low": middle - 1, "high": middle + 1})
    compared = plotting.paired(differences, x="method")
    assert [0, 1, 2] in [np.asarray(line.get_xdata()).tolist() for line in compared.lines]
