"""Figures from datasets. Every band is explained in the figure itself."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

# Okabe & Ito (2008): told apart with any colour vision; markers and line styles carry the same information in print.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "-", "--", "-.", ":", "--", "-.")
Z_95 = 1.96


def mean_and_half_width(values: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """The mean over a dimension and the half width of its 95% confidence interval, 1.96 standard errors.

    Args:
        values: at least one value along `over`.
        over: the dimension of independent repetitions.

    Returns:
        (mean, half width), without that dimension; the half width is NaN for a single value.
    """
    count = values.sizes[over]
    if count < 2:
        return values.mean(over), xr.full_like(values.mean(over), np.nan)
    return values.mean(over), Z_95 * values.std(over, ddof=1) / np.sqrt(count)


def epsilon_label(epsilon: float) -> str:
    """How a figure names a budget."""
    return "ε = ∞ (no privacy)" if np.isinf(epsilon) else f"ε = {epsilon:g}"


def error_curves(
    errors: xr.DataArray, *, x: str, xlabel: str, ylabel: str, title: str, labels: Mapping[str, str]
) -> Figure:
    """Mean error against `x`, one panel for every epsilon, one row for every dim, one curve for every estimator.

    Args:
        errors: dimensions estimator, epsilon, dim, seed and `x`; positive.
        x: the dimension on the horizontal axis.
        xlabel: its label, with the unit.
        ylabel: label of the errors, with the unit.
        title: of the figure.
        labels: legend text of each estimator.

    Returns:
        A figure with logarithmic axes and 95% confidence bands of the mean over seeds.
    """
    mean, half = mean_and_half_width(errors)
    epsilons, dims, xs = errors.epsilon.values, errors.dim.values, errors[x].values
    figure = Figure(figsize=(1.2 + 3.2 * len(epsilons), 1.6 + 3.1 * len(dims)), layout="constrained")
    panels = figure.subplots(len(dims), len(epsilons), sharex=True, sharey=True, squeeze=False)
    for row, dim in enumerate(dims):
        for column, epsilon in enumerate(epsilons):
            panel = panels[row, column]
            for index, estimator in enumerate(errors.estimator.values):
                point = {"estimator": estimator, "epsilon": epsilon, "dim": dim}
                centre, width = mean.sel(point).values, half.sel(point).values
                style = index % len(COLOURS)
                panel.plot(
                    xs,
                    centre,
                    LINES[style],
                    color=COLOURS[style],
                    marker=MARKERS[style],
                    markersize=4.5,
                    linewidth=1.5,
                    label=labels.get(str(estimator), str(estimator)),
                )
                low = np.maximum(centre - width, np.finfo(float).tiny)
                panel.fill_between(xs, low, centre + width, color=COLOURS[style], alpha=0.25, linewidth=0)
            panel.set(xscale="log", yscale="log")
            panel.grid(visible=True, which="major", alpha=0.35)
            panel.set_xticks(xs, [f"{value:,}" for value in xs], rotation=45)
            panel.minorticks_off()
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter("{x:g}")
            if row == 0:
                panel.set_title(epsilon_label(epsilon))
        panels[row, 0].set_ylabel(ylabel if len(dims) == 1 else f"d = {dim}\n{ylabel}")
    seeds = errors.sizes["seed"]
    bands = f"Lines: mean of {seeds} seeds. Bands: 95% confidence interval of that mean. Both axes are logarithmic."
    figure.supxlabel(f"{xlabel}\n{bands}", fontsize="medium")
    _head(figure, panels[0, 0], title)
    return figure


def ability_intervals(abilities: xr.DataArray, *, title: str, labels: Mapping[str, str]) -> Figure:
    """Estimated abilities of items, one panel for every epsilon, with the spread that the noise of privacy makes.

    Args:
        abilities: dimensions estimator, epsilon, seed and item.
        title: of the figure.
        labels: legend text of each estimator.

    Returns:
        A figure with the median over seeds, and bars from the 2.5% to the 97.5% quantile.
    """
    low, middle, high = (abilities.quantile(q, "seed") for q in (0.025, 0.5, 0.975))
    epsilons, items = abilities.epsilon.values, abilities["item"].values
    figure = Figure(figsize=(1.6 + 2.6 * len(epsilons), 1.9 + 0.42 * len(items)), layout="constrained")
    panels = figure.subplots(1, len(epsilons), sharex=True, sharey=True, squeeze=False)
    estimators = abilities.estimator.values
    offsets = np.linspace(-0.24, 0.24, len(estimators))
    for panel, epsilon in zip(panels[0], epsilons, strict=True):
        for index, (estimator, offset) in enumerate(zip(estimators, offsets, strict=True)):
            point = {"estimator": estimator, "epsilon": epsilon}
            centre = middle.sel(point).values
            panel.errorbar(
                centre,
                np.arange(len(items)) + offset,
                xerr=[centre - low.sel(point).values, high.sel(point).values - centre],
                fmt=MARKERS[index],
                color=COLOURS[index],
                markersize=4.5,
                capsize=2,
                linewidth=1.2,
                label=labels.get(str(estimator), str(estimator)),
            )
        panel.set_title(epsilon_label(epsilon))
        panel.grid(visible=True, axis="x", alpha=0.35)
        panel.axvline(0, color="#888888", linewidth=0.8)
    panels[0, 0].set_yticks(np.arange(len(items)), items)
    panels[0, 0].invert_yaxis()
    figure.supxlabel(
        "ability (log odds; mean of all items = 0)\n"
        f"Marks: median of {abilities.sizes['seed']} seeds. Bars: central 95% of seeds (2.5% to 97.5% quantile), the "
        "spread of privacy's noise alone.",
        fontsize="medium",
    )
    _head(figure, panels[0, 0], title)
    return figure


def _head(figure: Figure, panel: Axes, title: str) -> None:
    """Title and legend in one box above the panels: apart, they would overlap."""
    handles, names = panel.get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        title=title,
        title_fontsize="x-large",
        loc="outside upper center",
        ncols=min(len(names), 4),
        frameon=False,
    )
