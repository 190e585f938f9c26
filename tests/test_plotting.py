"""Figures are drawn, and measured: nothing outside the figure, and no band that wrecks an axis."""

import warnings

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from jaxdp import plotting
from jaxdp.studies import private_ranking, reward_estimation

pytestmark = pytest.mark.once

ESTIMATORS = ("mle", "objective_perturbation", "debiased_rr", "literal_objective_perturbation")
EPSILONS = (0.1, 0.5, 1.0, 2.0, float("inf"))


def errors(num_epsilons=1, num_dims=1, num_samples=(1000, 3000, 10000), num_seeds=5, spread=0.1):
    """Errors of about (3, 2, 1, ...) / sqrt(num_samples), with the same relative spread over seeds everywhere."""
    sizes = len(ESTIMATORS), num_epsilons, num_dims, len(num_samples), num_seeds
    dims = ("estimator", "epsilon", "dim", "num_samples", "seed")
    coords = {
        "estimator": list(ESTIMATORS),
        "epsilon": list(EPSILONS[-num_epsilons:]),
        "dim": [5 * (index + 1) for index in range(num_dims)],
        "num_samples": list(num_samples),
        "seed": range(num_seeds),
    }
    noise = xr.DataArray(np.random.default_rng(0).uniform(1 - spread, 1 + spread, sizes), coords, dims)
    return noise * xr.DataArray(np.arange(1.0, 5), dims="estimator") / np.sqrt(noise.num_samples)


def abilities(num_epsilons=1, items=("Milwaukee", "Baltimore", "a team with a very long name indeed"), num_seeds=5):
    sizes = 3, num_epsilons, num_seeds, len(items)
    coords = {"estimator": list(ESTIMATORS[:3]), "epsilon": list(EPSILONS[-num_epsilons:]), "item": list(items)}
    values = np.random.default_rng(0).normal(size=sizes)
    return xr.DataArray(values, coords, ("estimator", "epsilon", "seed", "item"))


def curves(values, **changes):
    arguments = {
        "x": "num_samples",
        "xlabel": "comparisons n",
        "ylabel": "l2 error of the reward parameter, |θ̂ - θ*|",
        "title": "What label privacy costs in reward estimation (d = 5)",
        "labels": reward_estimation.LABELS,
    }
    return plotting.error_curves(values, **{**arguments, **changes})


def intervals(values, **changes):
    arguments = {"title": "What label privacy costs a ranking", "labels": private_ranking.LABELS}
    return plotting.ability_intervals(values, **{**arguments, **changes})


def check_inside(figure: Figure):
    """Draws the figure; every text and legend must lie inside it, and every panel must have room."""
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that does not fit only warns
        canvas.draw()
    renderer = canvas.get_renderer()
    artists = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]  # pyright: ignore[reportAttributeAccessIssue]
    ticks = [label for panel in figure.axes for label in (*panel.get_xticklabels(), *panel.get_yticklabels())]
    for artist in [*(artist for artist in artists if artist not in ticks), *figure.legends]:
        box = artist.get_window_extent(renderer)
        assert box.x0 >= -0.5 and box.y0 >= -0.5, artist  # noqa: PT018  half a pixel is rounding
        assert box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5, artist  # noqa: PT018
    whole = figure.get_tightbbox(renderer)  # with tick labels
    assert whole.x0 >= -0.01
    assert whole.y0 >= -0.01
    assert whole.x1 <= figure.get_figwidth() + 0.01
    assert whole.y1 <= figure.get_figheight() + 0.01
    for panel in figure.axes:
        size = panel.get_window_extent(renderer)
        assert size.width >= 1.2 * figure.dpi
        assert size.height >= 0.8 * figure.dpi
        labelled = panel.get_tightbbox(renderer)
        assert labelled is not None
        assert not figure.legends[0].get_window_extent(renderer).overlaps(labelled)


def plotted(figure: Figure):
    return [line for line in figure.axes[0].get_lines() if np.size(line.get_xdata())]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("num_epsilons", "num_dims"),
    [(2, 3), *(pytest.param(*sizes, marks=SLOW) for sizes in [(1, 1), (5, 3), (1, 3), (2, 1), (5, 1)])],
)
def test_error_curves_fit_their_figure(num_epsilons, num_dims):
    check_inside(curves(errors(num_epsilons, num_dims, spread=0.9, num_seeds=3)))


@pytest.mark.parametrize("num_epsilons", [pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW), 5])
def test_ability_intervals_fit_their_figure(num_epsilons):
    check_inside(intervals(abilities(num_epsilons)))


@pytest.mark.slow
def test_long_words_widen_or_wrap():
    check_inside(intervals(abilities(items=("$cheap$ and $", "x" * 80))))
    check_inside(curves(errors(), title="many words " * 20, labels={"mle": "a name of many words " * 6}))


def test_a_figure_too_narrow_is_noticed():
    figure = curves(errors())
    figure.set_figwidth(3.0)
    with pytest.raises((AssertionError, UserWarning)):
        check_inside(figure)


@pytest.mark.parametrize("num_samples", [pytest.param((100,), marks=SLOW), (100, 1000)])
def test_a_band_below_zero_does_not_stretch_the_axis(num_samples):
    values = errors(num_seeds=3, spread=0.9, num_samples=num_samples)
    mean, half = plotting.mean_and_half_width(values)
    assert (mean < half).any()
    figure = curves(values)
    check_inside(figure)
    panel = figure.axes[0]
    bottom, top = panel.get_ylim()
    assert float(mean.min()) / 20 < bottom < float(mean.min())
    assert float((mean + half).max()) < top < 2 * float((mean + half).max())
    left, right = panel.get_xlim()
    assert num_samples[0] / 10 < left < num_samples[0]
    assert num_samples[-1] < right < 10 * num_samples[-1]
    bands = [c for c in panel.collections if isinstance(c, FillBetweenPolyCollection | LineCollection)]
    assert len(bands) == len(ESTIMATORS)
    for band in bands:
        for path in band.get_paths():
            assert np.all(np.asarray(path.vertices)[:, 1] >= bottom * (1 - 1e-9))
    assert "goes on below" in figure._supxlabel.get_text()  # pyright: ignore[reportAttributeAccessIssue]


def test_narrow_bands_are_shown_whole():
    values = errors(num_seeds=50)
    figure = curves(values)
    mean, half = plotting.mean_and_half_width(values)
    bottom, top = figure.axes[0].get_ylim()
    assert bottom < float((mean - half).min())
    assert top > float((mean + half).max())
    caption = figure._supxlabel.get_text()  # pyright: ignore[reportAttributeAccessIssue]
    assert "goes on below" not in caption
    assert "Student's" in caption
    assert "No mark" not in caption


def test_axis_has_ticks_even_if_all_errors_are_alike():
    for level in (1.0, 4.9):
        values = level * xr.ones_like(errors())
        figure = curves(values)
        bottom, top = figure.axes[0].get_ylim()
        ticks = figure.axes[0].get_yticks()
        assert np.sum((ticks >= bottom) & (ticks <= top)) >= 2, level


def slope(num_samples, epsilon, row):
    del epsilon
    return row / np.sqrt(num_samples)


def order_lines(figure: Figure, panel=0):
    return [line for line in figure.axes[panel].get_lines() if not line.get_marker() or line.get_marker() == "None"]


def test_orders_pass_through_the_first_mark():
    text = "order of a theorem, through the first mark"
    values = errors(num_epsilons=2, num_dims=2)
    figure = curves(values, orders={"mle": slope, "debiased_rr": slope}, order_label=text, note="One more thing.")
    check_inside(figure)
    mean = values.mean("seed").sel(estimator=["mle", "debiased_rr"])
    for panel, point in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):  # epsilon, dim
        lines = order_lines(figure, panel)
        assert len(lines) == 2
        for line, estimator in zip(lines, mean.isel(epsilon=point[0], dim=point[1]), strict=True):
            heights = np.asarray(line.get_ydata(), float)
            np.testing.assert_allclose(heights[0], estimator[0])
            np.testing.assert_allclose(heights / heights[0], [1, 3**-0.5, 10**-0.5])
    entries = [entry.get_text() for entry in figure.legends[0].get_texts()]
    assert entries[-1].replace("\n", " ") == text
    assert len(entries) == len(ESTIMATORS) + 1
    assert figure._supxlabel.get_text().replace("\n", " ").endswith("One more thing.")  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
def test_orders_need_a_first_mark_and_two_points():
    assert not order_lines(curves(errors(num_samples=(100,)), orders={"mle": slope}, order_label="x"))
    values = errors()
    values[0, 0, 0, 0, 3] = np.nan
    figure = curves(values, orders=dict.fromkeys(ESTIMATORS, slope), order_label="x")
    assert len(order_lines(figure)) == len(ESTIMATORS) - 1
    assert not order_lines(curves(errors()))


def test_rows_of_another_dimension():
    values = errors(num_dims=2).rename(dim="policy").assign_coords(policy=["greedy", "timid"])
    figure = curves(values, row="policy", row_label=str.upper)
    check_inside(figure)
    assert [panel.get_ylabel().split("\n")[0] for panel in figure.axes] == ["GREEDY", "TIMID"]


@pytest.mark.slow
def test_failed_fits_show():
    values = errors(num_epsilons=2)
    values[0, 0, 0, 1, 3] = np.nan
    figure = curves(values)
    check_inside(figure)
    np.testing.assert_array_equal(np.isfinite(plotted(figure)[0].get_ydata()), [True, False, True])
    assert "No mark" in figure._supxlabel.get_text()  # pyright: ignore[reportAttributeAccessIssue]
    failed = abilities()
    failed[1, 0, 2] = np.nan
    figure = intervals(failed)
    check_inside(figure)
    assert "No mark" in figure._supxlabel.get_text()  # pyright: ignore[reportAttributeAccessIssue]
    check_inside(curves(np.nan * errors()))


def test_one_seed_has_no_band():
    figure = curves(errors(num_seeds=1))
    check_inside(figure)
    assert "Marks: mean of 1 seed. Both" in figure._supxlabel.get_text().replace("\n", " ")  # pyright: ignore[reportAttributeAccessIssue]
    check_inside(intervals(abilities(num_seeds=1)))


@pytest.mark.parametrize("count", [2, 3, 10, 200])
def test_mean_and_half_width_against_scipy(count):
    values = np.random.default_rng(count).gamma(2.0, size=(4, count))
    mean, half = plotting.mean_and_half_width(xr.DataArray(values, dims=("x", "seed")))
    np.testing.assert_allclose(mean, np.mean(values, axis=1), rtol=1e-12)
    error = scipy.stats.sem(values, axis=1)
    np.testing.assert_allclose(half, scipy.stats.t.ppf(0.975, count - 1) * error, rtol=1e-9)
    low, high = scipy.stats.t.interval(0.95, count - 1, loc=np.mean(values, axis=1), scale=error)
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-9)
    assert np.all(np.abs(half / error - 1.96) > 0.01)  # a normal quantile would not pass


def test_mean_and_half_width_do_not_skip_nan():
    values = xr.DataArray([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], dims=("x", "seed"))
    mean, half = plotting.mean_and_half_width(values)
    np.testing.assert_array_equal(np.isnan(mean), [True, False])
    np.testing.assert_array_equal(np.isnan(half), [True, False])
    mean, half = plotting.mean_and_half_width(values.isel(seed=[0]))
    np.testing.assert_array_equal(mean, 1.0)
    assert np.isnan(half).all()


@pytest.mark.parametrize("num_seeds", [1, 40])
def test_survival_curves(num_seeds):
    rng = np.random.default_rng(0)
    coords = {"estimator": list(ESTIMATORS), "epsilon": [0.5, 2.0, np.inf]}
    dims, shape = (*coords, "seed"), (len(ESTIMATORS), 3, num_seeds)
    survival = xr.DataArray((rng.random(shape) < 0.8).astype(float), coords, dims)
    agreement = xr.DataArray(rng.uniform(-1, 1, shape), coords, dims)
    survival[0, 1, 0] = agreement[0, 1, 0] = np.nan
    figure = plotting.survival_curves(
        survival, agreement, winner="Ann $x^2", title="What privacy costs an election", labels={}
    )
    check_inside(figure)
    assert "No mark" in figure._supxlabel.get_text()  # pyright: ignore[reportAttributeAccessIssue]
    for panel, values in zip(figure.axes, (survival, agreement), strict=True):
        assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "2", "∞"]
        for container, mean in zip(panel.containers, values.mean("seed", skipna=False), strict=True):
            np.testing.assert_array_equal(container[0].get_ydata(), mean)


def test_share_and_limits_against_scipy():
    for count, hits in ((1, 0), (1, 1), (40, 38), (40, 40)):
        values = xr.DataArray(np.arange(count) < hits, dims="seed").astype(float)
        share, low, high = plotting.share_and_limits(values)
        expected = scipy.stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose([share, low, high], [hits / count, expected.low, expected.high], rtol=1e-9)
    values[3] = np.nan
    assert all(np.isnan(value) for value in plotting.share_and_limits(values))
