"""Theory's curves stand where they should."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from tests.plotting.made_up import check_inside, entries, errors, heights, labelled, regret, single

COUNTS = np.array([1000, 3000, 10000])
ORDER = COUNTS**-0.5


def drawn(values):
    return plotting.curves(single(values), x="num_samples", hue="estimator")


def test_a_scaled_bound_passes_through_its_curves_first_mark():
    values = errors()
    ax = drawn(values)
    for name in ("mle", "debiased_rr"):
        plotting.bound(ax, COUNTS, 7 * ORDER, through=name, label="order of a theorem")
        line = ax.get_lines()[-1]
        first = float(single(values).sel(estimator=name).isel(num_samples=0).mean())
        np.testing.assert_allclose(heights(line), first * ORDER / ORDER[0])
        assert line.get_color() == labelled(ax, name).get_color()
        assert line.is_dashed()
    check_inside(ax.figure)
    assert entries(ax.figure)[-1] == "order of a theorem"
    assert len(entries(ax.figure)) == 5
    shared: Any = ax.figure.legends[0].legend_handles[-1]
    assert shared.get_color() == "#888888"  # of several colours


def test_a_bound_of_zero_at_the_first_mark_is_not_drawn():
    ax = drawn(errors())
    lines = len(ax.get_lines())
    plotting.bound(ax, COUNTS, [0.0, 1.0, 2.0], through="mle")
    assert len(ax.get_lines()) == lines


def test_as_printed_and_through_the_lowest():
    values = regret()
    ax = plotting.curves(values, hue="epsilon")
    rounds = values["round"].values
    plotting.bound(ax, rounds, 1e3 * rounds**0.5, label="as printed")
    np.testing.assert_allclose(heights(ax.get_lines()[-1]), 1e3 * rounds**0.5)
    assert ax.get_ylim()[1] > 1e3 * rounds[-1] ** 0.5
    assert not ax.get_lines()[-1].is_dashed()
    top = ax.get_ylim()
    plotting.bound(ax, rounds, rounds**2.0, through="lowest", label="order")
    lowest = float(values.isel(round=0).mean("seed").min())
    np.testing.assert_allclose(heights(ax.get_lines()[-1]), lowest * (rounds / rounds[0]) ** 2)
    assert ax.get_ylim() == top  # an order's height says nothing
    plotting.bound(ax, rounds, rounds, through=5)
    assert heights(ax.get_lines()[-1])[0] == 5
    plotting.bound(ax, rounds, rounds, through=0.5)  # the curve at epsilon = 0.5
    np.testing.assert_allclose(heights(ax.get_lines()[-1])[0], values.isel(round=0, epsilon=0).mean())


def test_between_its_own_places_a_bound_is_interpolated():
    ax = drawn(errors())
    plotting.bound(ax, [100, 10**5], [1.0, 1000**-0.25], through="mle")  # x^(-1/4)
    first = heights(labelled(ax, "mle"))[0]
    np.testing.assert_allclose(heights(ax.get_lines()[-1])[0], first * 10**0.25)


def test_a_bound_passes_through_a_mark_at_a_tiny_position():
    values = xr.DataArray(np.full((2, 3), 4.0), {"delta": [1e-9, 1e-8]}, ("delta", "seed"), "l2_error")
    ax = plotting.curves(values, x="delta", label="mine")
    plotting.bound(ax, [1e-10, 1e-9, 1e-8], [3.0, 2.0, 1.0], through="mine")
    np.testing.assert_allclose(heights(ax.get_lines()[-1]), [6.0, 4.0, 2.0])


def test_a_logarithmic_axis_without_curves():
    ax = plotting.panels().axes[0]
    ax.set_yscale("log")
    plotting.bound(ax, [1.0, np.inf], [2.0, 1.0])
    assert not ax.get_lines()
    plotting.bound(ax, [1.0, 2.0], [2.0, 1.0], through=3.0)
    np.testing.assert_allclose(heights(ax.get_lines()[-1]), [3.0, 1.5])


def test_no_bound_where_there_is_none():
    values = errors()
    values[0, 0, 0, 0, 3] = np.nan
    ax = drawn(values)
    count = len(ax.get_lines())
    plotting.bound(ax, COUNTS, ORDER, through="mle", label="x")
    plotting.bound(ax, COUNTS, [np.nan, 1.0, 1.0], through="debiased_rr", label="x")
    plotting.bound(ax, COUNTS[:1], ORDER[:1], through="debiased_rr", label="x")
    plotting.bound(ax, COUNTS[:1], ORDER[:1], label="x")
    assert len(ax.get_lines()) == count
    assert "x" not in entries(ax.figure)
    plotting.bound(ax, [*COUNTS, np.inf], [*ORDER, 1.0])
    assert len(heights(ax.get_lines()[-1])) == 3


def test_wrong_bounds():
    ax = drawn(errors())
    with pytest.raises(ValueError, match=r"through must be one of mle, .*, 'lowest' or a number, got 'nobody'"):
        plotting.bound(ax, COUNTS, ORDER, through="nobody")
    with pytest.raises(ValueError, match=r"y must have one number for each x, got shapes \(2,\) and \(3,\)"):
        plotting.bound(ax, COUNTS, ORDER[:2])
    with pytest.raises(ValueError, match="through must be one of no curve"):
        plotting.bound(Figure().add_subplot(), COUNTS, ORDER, through="mle")


def test_a_bound_that_does_not_reach_its_mark_is_refused():
    values = xr.DataArray(np.ones((2, 3)), {"round": [10.0, 100.0]}, ("round", "seed"), "regret")
    ax = plotting.curves(values, x="round", label="mine")
    with pytest.raises(ValueError, match="x must reach the mark that the bound passes through, at 10, got"):
        plotting.bound(ax, [50.0, 100.0], [1.0, 2.0], through="mine", label="order")


def test_a_number_is_a_level():
    values = regret()
    ax = plotting.curves(values, hue="epsilon")
    rounds = values["round"].values
    plotting.bound(ax, rounds, 7.0, label="uniform play")
    np.testing.assert_array_equal(heights(ax.get_lines()[-1]), np.full(len(rounds), 7.0))
    with pytest.raises(ValueError, match="y must have one number for each x"):
        plotting.bound(ax, rounds, [7.0])
