"""Dots, exponents, paired differences and heat maps show their numbers."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, same_color

from jaxdp import plotting, stats
from tests.plotting.made_up import below, check_inside, entries, errors, heights, regret


def learners():
    """Makes regret of three learners: the first has an exponent of 1/2, the second 1, the third as the first."""
    power = xr.DataArray([0.0, 0.5, 0.0], {"learner": ["half", "one", "again"]}, "learner")
    return (regret() * regret()["round"] ** power).rename("pseudo_regret")


def test_dot_plots_are_medians_with_quantiles():
    values = errors(num_seeds=40).isel(epsilon=0, num_features=0)
    ax = plotting.dot_plot(values, y="num_samples", hue="estimator", reference=0.0)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["n = 1,000", "n = 3,000", "n = 10,000"]
    for container, estimator in zip(ax.containers, values.estimator.values, strict=True):
        own = values.sel(estimator=estimator)
        np.testing.assert_allclose(container[0].get_xdata(), own.median("seed"))
        ends = np.array([segment[:, 0] for segment in container[2][0].get_segments()])
        np.testing.assert_allclose(ends, own.quantile([0.025, 0.975], "seed").transpose("num_samples", "quantile"))
    assert "central 95% of seeds" in below(ax.figure)
    check_inside(ax.figure)


def test_a_failed_fit_has_no_dot():
    values = errors().isel(epsilon=0, num_features=0)
    values[1, 2, 0] = np.nan
    ax = plotting.dot_plot(values, y="num_samples", hue="estimator")
    np.testing.assert_array_equal(np.isfinite(ax.containers[1][0].get_xdata()), [True, True, False])
    assert "No mark" in below(ax.figure)


def test_slopes_are_those_of_the_fit():
    ax = plotting.slopes(learners(), hue="epsilon", expected=0.5)
    fit = stats.power_law(learners(), "round")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["half", "one", "again"]
    for container, epsilon in zip(ax.containers, fit.epsilon.values, strict=True):
        np.testing.assert_allclose(container[0].get_xdata(), fit.exponent.sel(epsilon=epsilon))
        np.testing.assert_allclose(container[0].get_xdata(), [0.5, 1.0, 0.5], atol=0.01)
    assert entries(ax.figure)[-1] == "0.5"
    check_inside(ax.figure)


def test_slopes_of_a_mean_of_zero_have_no_dot():
    values = learners().isel(epsilon=0).copy()
    values.loc[{"learner": "half"}] = 0.0
    caption = plotting.caption(plotting.slopes(values))
    assert "No mark: a mean was not positive, or a value was not finite." in caption
    assert caption.count("No mark") == 1


def test_slopes_in_epsilon_leave_infinity_out():
    last = regret().isel(round=-1)
    ax = plotting.slopes(last, x="epsilon")
    (container,) = ax.containers
    np.testing.assert_allclose(container[0].get_xdata(), stats.power_law(last.isel(epsilon=[0, 1]), "epsilon").exponent)
    assert "ε = ∞ is left out of the fit." in below(ax.figure)
    with pytest.raises(ValueError, match="values must have one value along epsilon"):
        plotting.slopes(learners().expand_dims(gap=[1, 2]))
    with pytest.raises(ValueError, match="epsilon must have at least two different values"):
        plotting.slopes(last.isel(epsilon=[0, 2]), x="epsilon")


def test_paired_differences_take_what_stats_makes():
    values = learners().isel(round=-1)
    found = stats.paired(values, "learner", against="half")
    ax = plotting.paired(found)
    mean = found.difference.sel(learner="one")
    joined, apart = [
        line for line in ax.get_lines() if line.get_marker() == "o" and same_color(line.get_markerfacecolor(), "black")
    ]
    np.testing.assert_allclose(heights(joined), mean.isel(epsilon=[0, 1]))
    np.testing.assert_allclose(heights(apart), mean.isel(epsilon=[2]))
    assert entries(ax.figure) == ["one", "again"]
    assert any(np.all(np.asarray(line.get_ydata()) == 0) for line in ax.get_lines())
    hollow = [line for line in ax.get_lines() if line.get_markerfacecolor() == (1.0, 1.0, 1.0, 1.0)]
    counts = [np.size(line.get_xdata()) for line in hollow]
    assert counts == [int((found.p_adjusted.sel(learner=name) > 0.05).sum()) for name in ("one", "again")]
    assert counts[1] == 3  # no difference at all
    assert "Open marks: p adjusted > 0.05." in below(ax.figure)
    check_inside(ax.figure)
    cost = stats.paired(values, "epsilon", against=np.inf)
    assert entries(plotting.paired(cost).figure) == ["half", "one", "again"]


def test_paired_differences_need_their_variables():
    with pytest.raises(ValueError, match="differences must be a Dataset with difference, low and high"):
        plotting.paired(regret().to_dataset())
    found = stats.paired(learners(), "learner", against="half")
    with pytest.raises(ValueError, match="values must have one value along round, learner"):
        plotting.paired(found)


def test_heat_maps_hold_their_numbers():
    values = regret((np.inf, 1.0, 0.5), num_rounds=4)
    ax = plotting.heatmap(values, x="epsilon", y="round")
    (mesh,) = ax.collections
    expected = values.mean("seed").sortby("epsilon").transpose("round", "epsilon")
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(4, 3), expected)
    assert isinstance(mesh.norm, LogNorm)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "1", "∞"]
    assert len(ax.texts) == 12
    assert ax.texts[0].get_text() == f"{float(expected[0, 0]):.3g}"
    assert "Numbers: mean of 6 seeds, of cumulative regret." in below(ax.figure)
    check_inside(ax.figure)


def test_large_heat_maps_have_a_colour_bar():
    coords = {"epsilon": np.geomspace(0.1, 10, 10), "gap": np.linspace(0.1, 1, 10)}
    values = xr.DataArray(np.random.default_rng(0).uniform(1, 2, (10, 10, 3)), coords, (*coords, "seed"), "regret")
    values[3, 4, 0] = np.nan
    ax = plotting.heatmap(values, x="epsilon", y="gap", title="A map")
    assert not ax.texts
    assert len(ax.figure.axes) == 2
    assert "Colours: mean of 3 seeds, of regret. Empty: a value was not finite" in below(ax.figure)
    assert plotting.heatmap(values, x="epsilon", y="gap", numbers=True).texts
    check_inside(ax.figure)
    with pytest.raises(ValueError, match="scale must be linear where a mean is <= 0, got 'log'"):
        plotting.heatmap(values - 5, x="epsilon", y="gap", scale="log")


def test_infinities_keep_their_sign():
    values = xr.DataArray(
        np.ones((2, 3, 2)), {"prior": [1, 2], "bound": [-np.inf, 0.5, np.inf]}, ("prior", "bound", "seed")
    )
    ax = plotting.heatmap(values, x="bound", y="prior")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["-∞", "0.5", "∞"]


def test_everything_public_is_described():
    for name in plotting.__all__:
        assert getattr(plotting, name).__doc__, name


def test_intervals_of_differences_stand_at_their_epsilon():
    """Checks that marks do not move along the axis, as they would with bars side by side."""
    values = learners().isel(round=-1)
    found = stats.paired(values, "learner", against="half")
    ax = plotting.paired(found)
    at = [line.get_xdata() for line in ax.get_lines() if str(line.get_label()) in ("one", "again")]
    assert len(at) == 2
    np.testing.assert_array_equal(at[0], at[1])
    assert {*np.asarray(at[0]).tolist()} <= {*values.epsilon.values.tolist()}
