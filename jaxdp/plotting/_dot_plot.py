"""Dot plots with error bars, for estimates of several quantities and for fitted exponents."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from jaxdp.plotting._paper import current_paper
from jaxdp.plotting.figure import axes_to_draw_on, finish
from jaxdp.plotting.labels import (
    Labels,
    check_values,
    default_x,
    keep_dimensions,
    labels_of,
    title_of,
    unit_sentence,
    values_of,
)
from jaxdp.plotting.layout import room_for_names
from jaxdp.plotting.records import BELOW, NEUTRAL, Drawn, curves_on, note, record, style_index
from jaxdp.plotting.style import style
from jaxdp.plotting.summaries import Summary, seed_count, summary
from jaxdp.stats import power_law

SPREAD = 0.48  # vertical distance from the first to the last dot of a row, relative to the distance between rows
ROW_HEIGHT = 0.42  # in inches


def dot_plot(
    values: xr.DataArray,
    *,
    y: str,
    hue: str | None = None,
    ax: Axes | None = None,
    band: str | None = "quantile",
    labels: Labels | None = None,
    reference: float | None = None,
    xlabel: str | None = None,
    title: str = "",
    legend: bool = True,
    over: str = "seed",
) -> Axes:
    """Draws one row of dots with error bars for every value of a dimension, such as the items of a ranking.

    Args:
        values: one variable of a sweep's results, with the dimension of seeds. Dimensions other than seeds, `y` and
            `hue` must have size one.
        y: dimension with one row for each value, from top to bottom.
        hue: dimension with one dot in every row for each of its values; None draws one dot in every row.
        ax: axes to draw on; None makes a figure, which a notebook shows.
        band: meaning of the bars, as in `curves`.
        labels: texts for values of `hue` and `y`; the default text is derived from the value and its dimension's name.
        reference: position of a grey vertical line for comparison; None draws no line.
        xlabel: text of the axis; None derives it from the name of the values.
        title: title of the figure, or of the axes if `ax` is given.
        legend: whether `ax` gets a legend; ignored if jaxdp made the figure, which has one legend for all its axes (if
            `panels` made it, only after `explain`).
        over: the dimension of seeds.

    Returns:
        The axes.

    Raises:
        ValueError: if the values are not real numbers with a dimension of seeds, other dimensions have several values,
            or an option is not among its choices.

    Examples:
        >>> values = xr.DataArray([[3.0, 5.0], [1.0, 2.0]], {"item": ["tea", "coffee"]}, ("item", "seed"), "ability")
        >>> [tick.get_text() for tick in dot_plot(values, y="item").get_yticklabels()]
        ['tea', 'coffee']
    """
    values = keep_dimensions(
        check_values(values, over), ("y", y), ("hue", hue), over=over, otherwise="draw them all with hue={0}"
    )
    xlabel = title_of(values) if xlabel is None else xlabel
    ax = _draw(summary(values, band, over), y, hue, ax, labels, xlabel, title)
    note(ax, unit_sentence(values, labels))
    if reference is not None:
        ax.axvline(reference, color=NEUTRAL, linewidth=0.8, zorder=BELOW)
    return finish(ax, legend=legend)


def slopes(
    values: xr.DataArray,
    *,
    x: str | None = None,
    hue: str | None = None,
    ax: Axes | None = None,
    expected: float | None = None,
    labels: Labels | None = None,
    xlabel: str | None = None,
    title: str = "",
    legend: bool = True,
    over: str = "seed",
) -> Axes:
    """Draws the fitted exponents a of mean ~ x^a (`jaxdp.stats.power_law`), as dots with 95% confidence intervals.

    Args:
        values: one variable of a sweep's results, with the dimension of seeds. At most one dimension other than seeds,
            `x` and `hue` has several values; each of its values gets one row.
        x: dimension with the base x of the power; None chooses the dimension as `curves` does. Infinite `epsilon` is
            not used in the fit.
        hue: dimension with one dot in every row for each of its values; None draws one dot in every row.
        ax: axes to draw on; None makes a figure, which a notebook shows.
        expected: an exponent for comparison, drawn as a grey line; None draws no line.
        labels: texts for the values of the rows and of `hue`.
        xlabel: text of the axis; None derives it from the names of `x` and of the values.
        title: title of the figure, or of the axes if `ax` is given.
        legend: whether `ax` gets a legend; ignored if jaxdp made the figure, which has one legend for all its axes (if
            `panels` made it, only after `explain`).
        over: the dimension of seeds.

    Returns:
        The axes.

    Raises:
        ValueError: if the values are not real numbers with a dimension of seeds; more than one other dimension has
            several values; `x` or `hue` is not a dimension, or they are the same; `x` is None and no default exists; or
            x (without infinite `epsilon`) has fewer than two different values or a value that is not positive and
            finite.

    Examples:
        >>> rounds = xr.DataArray([10.0, 100.0, 1000.0], dims="round")
        >>> values = (rounds**0.5 * xr.DataArray([1.0, 1.1], dims="seed")).assign_coords(round=rounds)
        >>> slopes(values.rename("regret"), expected=0.5)
        <axes: exponent of rounds T in regret>
    """
    values = check_values(values, over)
    x = x or default_x(values, hue, over=over)
    lines = [str(name) for name in values.dims if name not in (over, x, hue) and values.sizes[name] > 1]
    y = lines[0] if lines else None
    otherwise = "draw them all with hue={0}"
    values = keep_dimensions(values, ("x", x), ("hue", hue), ("y", y), over=over, otherwise=otherwise).astype(float)
    left_out = x == "epsilon" and bool(np.isinf(values[x]).any())
    if left_out:
        values = values.isel({x: np.isfinite(values[x])})
    fit = power_law(values, x, over)
    count, few = seed_count(values.sizes[over]), values.sizes[over] < 2
    spread = "" if few else "its 95% confidence interval (delta method, Student's\u00a0t)"
    missing = "a mean was not positive, or a value was not finite"
    estimates = Summary(fit.exponent, fit.low, fit.high, f"fitted exponent of the mean of {count}", spread, missing)
    xlabel = f"exponent of {title_of(values, x)} in {title_of(values) or 'the mean'}" if xlabel is None else xlabel
    ax = _draw(estimates, y, hue, ax, labels, xlabel, title)
    note(ax, unit_sentence(values, labels))
    if left_out:
        note(ax, "ε = ∞ is left out of the fit.")
    if expected is not None:
        ax.axvline(expected, color=NEUTRAL, linewidth=1.0, zorder=BELOW, label=f"{expected:g}")
    return finish(ax, legend=legend)


def _draw(
    estimates: Summary,
    y: str | None,
    hue: str | None,
    ax: Axes | None,
    labels: Labels | None,
    xlabel: str,
    title: str,
) -> Axes:
    """Draws dots with error bars: one row for every value of y, with one dot for every value of hue."""
    is_new_figure = ax is None
    ax = axes_to_draw_on(ax, title)
    names = [""] if y is None else labels_of(y, values_of(estimates.middle[y]), labels)
    hues = [None] if hue is None else values_of(estimates.middle[hue])
    texts = [""] if hue is None else labels_of(hue, hues, labels)
    at, start = np.arange(len(names)), len(curves_on(ax))
    offsets = np.linspace(-SPREAD / 2, SPREAD / 2, len(hues)) if len(hues) > 1 else [0.0]
    for index, (value, offset) in enumerate(zip(hues, offsets, strict=True)):
        part_of_hue = estimates if hue is None else estimates.select({hue: index})
        middle, low, high = (
            np.atleast_1d(limits.values) for limits in (part_of_hue.middle, part_of_hue.low, part_of_hue.high)
        )
        text = texts[index]
        index_of_style = style_index(ax, text, start + index)
        line: dict[str, Any] = style(index_of_style, ax)
        ax.errorbar(
            middle,
            at + offset,
            xerr=np.maximum([middle - low, high - middle], 0),  # rounding may make a zero length negative
            fmt=line["marker"],
            color=line["color"],
            markersize=line["markersize"],
            capsize=2,
            linewidth=0.8 * line["linewidth"],
            label=text or "_dot_plot",
        )
        meaning = estimates.marks, estimates.spread, line["color"]
        drawn = Drawn(value, text, at, middle, low, high, *meaning, bars=True, style=index_of_style)
        record(ax, drawn._replace(missing=estimates.missing))
    ax.set_yticks([] if y is None else at, [] if y is None else names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=True, axis="x", alpha=0.35)
    ax.set_xlabel(xlabel)
    figure = ax.get_figure(root=True)
    if is_new_figure and figure is not None:
        if current_paper() is None:
            figure.set_figwidth(figure.get_figwidth() + room_for_names(ax))
        figure.explain(title=title, height=1.0 + ROW_HEIGHT * max(2, len(names)))  # pyright: ignore
    return ax
