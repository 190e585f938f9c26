"""A far smaller epsilon is behind a break at the left of the axis, as infinity is at the right."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting, stats
from jaxdp.comparisons import report
from jaxdp.plotting.positions import SLASH
from tests.plotting.made_up import check_inside, heights, regret

EPSILONS = (1e-6, 0.01, 0.03, 0.1, 0.3, np.inf)
TINY = r"$\mathdefault{10^{-6}}$"
TICKS = {0.0025: TINY, 0.01: "0.01", 0.03: "0.03", 0.1: "0.1", 0.3: "0.3", 1.2: "∞"}


def line(*epsilons):
    """Makes losses of three seeds at these epsilons."""
    grid = np.array(epsilons)
    heights = np.arange(9.0, 9.0 - len(grid), -1)[:, None] * [0.9, 1.0, 1.1]
    return xr.DataArray(heights, {"epsilon": grid}, ("epsilon", "seed"), "l2_error")


def learners(*epsilons):
    return xr.concat([line(*epsilons), 2 * line(*epsilons)], "learner").assign_coords(learner=["ucb", "imed"])


def ticks(ax):
    return dict(zip(ax.get_xticks(), [text.get_text() for text in ax.get_xticklabels()], strict=True))


def positions(drawn_line):
    return np.asarray(drawn_line.get_xdata(), float).tolist()


def dotted_lines(ax):
    """Returns the positions of the ends of each dotted line."""
    return [positions(found) for found in ax.get_lines() if found.is_dashed() and len(found.get_xdata()) == 2]


def slashes(ax):
    """Returns the positions of the slashes at each break."""
    return [positions(found) for found in ax.get_lines() if found.get_marker() == SLASH]


def break_between(inner, outer):
    return [inner * (outer / inner) ** part for part in (0.42, 0.5)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_far_smaller_epsilon_is_behind_a_break(order):
    values = line(*EPSILONS).isel(epsilon=slice(None, None, order))
    ax = plotting.cost_of_privacy(values)
    assert ticks(ax) == pytest.approx(TICKS)
    solid, apart = [found for found in ax.get_lines() if found.get_marker() == "o"]
    assert positions(solid) == [0.01, 0.03, 0.1, 0.3]
    assert positions(apart) == [0.0025, 1.2]
    assert apart.get_linestyle() == "None"
    mean = values.mean("seed")
    np.testing.assert_allclose(heights(solid), mean.sel(epsilon=[0.01, 0.03, 0.1, 0.3]))
    np.testing.assert_allclose(heights(apart), mean.sel(epsilon=[1e-6, np.inf]))
    assert dotted_lines(ax) == [[0.0025, 0.01], [0.3, 1.2]]
    np.testing.assert_allclose(slashes(ax), [break_between(0.3, 1.2), break_between(0.01, 0.0025)])
    left, right = ax.get_xlim()
    assert 0.001 < left < 0.0025  # the empty decades are gone
    assert 1.2 < right < 3


@pytest.mark.parametrize("style", [None, 2.2, 3.25, "icml2024"])
def test_its_label_does_not_overlap_the_next_one(style):
    if style is None:
        check_inside(plotting.cost_of_privacy(learners(*EPSILONS), hue="learner").figure)
        return
    with plotting.paper(style):
        ax = plotting.cost_of_privacy(learners(*EPSILONS), hue="learner")
        check_inside(ax.figure)
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {45 if style == 2.2 else 0}


@pytest.mark.parametrize(
    ("epsilons", "first"),
    [
        ((0.001, 0.999, 2, 3), 0.001),
        ((0.001, 1, 2, 3), 0.25),
        ((0.00003, 0.03, 2, 3), 0.0075),  # 0.03 / 0.00003 is rounded to less than 1,000
        ((1e-6, 1, 2), 0.25),
        ((1e-6, 1), 1e-6),
        ((1e-6, 1, np.inf), 1e-6),
    ],
)
def test_it_is_1000_times_smaller_than_the_first_of_two_others(epsilons, first):
    ax = plotting.curves(line(*epsilons), x="epsilon")
    assert min(ticks(ax)) == pytest.approx(first)
    assert len(slashes(ax)) == (first not in epsilons) + (np.inf in epsilons)
    assert len(dotted_lines(ax)) == len(slashes(ax))


def test_other_dimensions_and_linear_axes_have_no_left_break():
    ax = plotting.curves(line(1e-6, 1, 2, 3).rename(epsilon="gap"), x="gap", xscale="log")
    assert ticks(ax) == {1e-6: TINY, 1: "1", 2: "2", 3: "3"}
    ax = plotting.curves(line(1e-6, 1, 2, 3), x="epsilon", xscale="linear")
    assert ticks(ax) == {1e-6: TINY, 1: "1", 2: "2", 3: "3"}


def test_ticks_have_the_true_values():
    ax = plotting.curves(line(2.5e-6, *np.arange(1, 9)), x="epsilon")  # more values than usually get a tick
    assert list(ticks(ax).values()) == [r"$\mathdefault{2.5\times10^{-6}}$", *map(str, range(1, 9))]
    assert list(ticks(plotting.curves(line(0.0002, 1, 2), x="epsilon")).values()) == ["0.0002", "1", "2"]


def test_later_curves_use_the_break_of_the_first():
    ax = plotting.curves(line(*EPSILONS), x="epsilon", label="first")
    plotting.curves(line(1e-6, 0.1, 0.2, np.inf), x="epsilon", label="again", ax=ax)
    plotting.curves(line(0.003, 0.02, 0.05), x="epsilon", label="inside", ax=ax)
    plotting.curves(line(1e-6, 0.03), x="epsilon", label="two", ax=ax)
    plotting.curves(line(*np.geomspace(0.01, 0.5, 9)), x="epsilon", label="many", ax=ax)
    assert {at: ticks(ax)[at] for at in TICKS} == TICKS
    assert ticks(ax)[0.2] == "0.2"
    assert len(slashes(ax)) == 2
    assert dotted_lines(ax) == [[0.0025, 0.01], [0.3, 1.2], [0.0025, 0.1], [0.2, 1.2], [0.0025, 0.03]]


def test_a_later_curve_can_bring_the_break():
    ax = plotting.curves(line(0.004, 0.1), x="epsilon", label="first")
    plotting.curves(line(1e-6, 0.01, 0.1), x="epsilon", label="second", ax=ax)
    assert ticks(ax) == pytest.approx({0.001: TINY, 0.004: "0.004", 0.01: "0.01", 0.1: "0.1"})
    np.testing.assert_allclose(slashes(ax), [break_between(0.004, 0.001)])


@pytest.mark.parametrize("first", [(1e-6, 0.01), (0.0005, 0.01)])
def test_a_later_curve_brings_none_if_it_is_not_far_from_the_first(first):
    ax = plotting.curves(line(*first), x="epsilon", label="first")
    plotting.curves(line(1e-6, 0.01, 0.1), x="epsilon", label="second", ax=ax)
    assert ticks(ax)[1e-6] == TINY
    assert not slashes(ax)


@pytest.mark.parametrize(("second", "smallest"), [((0.0025, 0.1), "0.0025"), ((1e-7, 0.01, 0.1), "1e-07")])
def test_values_beyond_the_left_break_are_refused(second, smallest):
    ax = plotting.curves(line(*EPSILONS), x="epsilon", label="first")
    message = f"x must be above 0.0025 on these axes, the position of 1e-06, got {smallest}; draw all curves in one"
    with pytest.raises(ValueError, match=message):
        plotting.curves(line(*second), x="epsilon", label="second", ax=ax)


def test_a_refused_curve_leaves_no_break():
    ax = plotting.curves(line(0.01, 0.1, 1), x="epsilon", label="first")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"x must be below 0.8 on these axes, the position of infinity, got 1;"):
            plotting.curves(line(1e-6, 0.1, 0.2, np.inf), x="epsilon", label="second", ax=ax)
    plotting.curves(line(0.001, 2), x="epsilon", label="third", ax=ax)
    assert not slashes(ax)


def test_cleared_axes_have_no_break():
    ax = plotting.curves(line(*EPSILONS), x="epsilon", label="first")
    ax.clear()
    plotting.bound(ax, [1e-6, 1], [1, 2])
    assert positions(ax.get_lines()[-1]) == [1e-6, 1]
    plotting.curves(line(0.001, 0.1), x="epsilon", label="second", ax=ax)
    assert ticks(ax) == {0.001: "0.001", 0.1: "0.1"}


@pytest.mark.parametrize("bars", [False, True])
def test_small_multiples(bars):
    figure = plotting.facets(learners(*EPSILONS), x="epsilon", col="learner", bars=bars)
    check_inside(figure)
    for panel in figure.axes:
        assert ticks(panel) == pytest.approx(TICKS)
        np.testing.assert_allclose(dotted_lines(panel), [[0.0025, 0.01], [0.3, 1.2]])
        assert len(slashes(panel)) == 2


def test_own_axes():
    own: Any = Figure().add_subplot()
    plotting.cost_of_privacy(regret(EPSILONS), ax=own)
    assert ticks(own) == pytest.approx(TICKS)


def test_bars_side_by_side_stay_at_their_tick():
    ax = plotting.cost_of_privacy(learners(*EPSILONS), hue="learner", bars=True)
    apart = [positions(found) for found in ax.get_lines() if found.get_marker() in ("o", "s")]
    lefts = [at[0] for at in apart if len(at) == 2]
    assert 0.002 < lefts[0] < 0.0025 < lefts[1] < 0.003


def test_bounds_end_at_the_left_break():
    ax = plotting.cost_of_privacy(learners(*EPSILONS), hue="learner")
    limits = ax.get_xlim()
    orders = 1 / np.array(EPSILONS)
    for through, height in (("imed", 16.0), ("lowest", 8.0), (3.0, 3.0)):
        plotting.bound(ax, EPSILONS, orders, through=through)
        order = ax.get_lines()[-1]
        assert positions(order) == [0.01, 0.03, 0.1, 0.3]
        np.testing.assert_allclose(heights(order), height * orders[1:5] / orders[1])
    grid = np.geomspace(1e-6, 0.3, 200)
    plotting.bound(ax, grid, np.sqrt(grid))
    assert positions(ax.get_lines()[-1]) == grid[grid > 0.005].tolist()
    assert ax.get_xlim() == limits


def test_paired_differences():
    differences = stats.paired(learners(*EPSILONS), "learner", against="ucb")
    ax = plotting.paired(differences, x="epsilon")
    assert ticks(ax) == pytest.approx(TICKS)
    assert dotted_lines(ax) == [[0.0025, 0.01], [0.3, 1.2]]


def test_the_line_of_a_report_is_at_the_mark():
    drawn = plotting.cost_of_privacy(learners(*EPSILONS), hue="learner")
    comparison: Any = SimpleNamespace(plot=lambda: drawn)
    for epsilon, position in ((1e-6, 0.0025), (0.1, 0.1)):
        assert "<svg" in report._figure(comparison, epsilon)
        assert positions(drawn.get_lines()[-1]) == [position, position]
