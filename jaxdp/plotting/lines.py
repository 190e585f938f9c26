"""Curves of a mean, median or proportion over seeds, with bands."""

from collections.abc import Collection
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from jaxdp.plotting.figure import axes_to_draw_on, finish, name_axes
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
from jaxdp.plotting.positions import (
    FAINT,
    AxisPositions,
    axis_positions,
    break_sentence,
    draw_band,
    fit_y,
    prepare_x,
    prepare_y,
)
from jaxdp.plotting.records import Drawn, curves_on, note, record, style_index
from jaxdp.plotting.style import grey_style, style
from jaxdp.plotting.summaries import Summary, summary

BAND_WIDTH = 7.0  # width of a band in points, if there is a single x
APART_WIDTH = 4.0  # width of a band behind a break, in points
BESIDE = 1.15  # if there is a single x, the ratio of the positions of two neighbouring curves
DODGE = 0.04  # maximum distance between bars at the same x, relative to the distance from the first to the last x
OTHERS = "others"  # legend text of grey curves
BETWEEN = 0.5  # bars at the same x cover at most this part of the distance to the next x


def curves(
    values: xr.DataArray,
    *,
    x: str | None = None,
    hue: str | None = None,
    ax: Axes | None = None,
    band: str | None = "t",
    labels: Labels | None = None,
    label: str | None = None,
    bars: bool = False,
    highlight: Collection[Any] | None = None,
    xscale: str | None = None,
    yscale: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str = "",
    legend: bool = True,
    over: str = "seed",
) -> Axes:
    """Draws statistics over seeds against one dimension, with a curve and a band for every value of another dimension.

    Args:
        values: one variable of a sweep's results, with the dimension of seeds. Dimensions other than seeds, `x` and
            `hue` must have size one.
        x: dimension on the horizontal axis. None chooses `round` if there are several rounds; otherwise the only
            dimension other than `hue` with several values. An infinite value is drawn at the right end, after an axis
            break. On a logarithmic axis of `epsilon` with three or more finite values, the smallest value is drawn at
            the left end, before an axis break, if it is at least 1,000 times smaller than the next value.
        hue: dimension with one curve for each value.
        ax: axes to draw on; None makes a figure, which a notebook shows. Curves on the axes are kept.
        band: "t" (mean, 95% confidence interval by Student's t), "quantile" (median, central 95% of seeds), "share"
            (proportion of ones, for values 0 or 1; 95% confidence interval by Clopper-Pearson) or None (mean without a
            band).
        labels: texts of the values of `hue` in the legend, and of values of `x` that are not numbers at the axis.
        label: legend text of the curve if there is no `hue`.
        bars: whether to draw error bars, side by side, instead of bands. If no value of `x` is a finite number, bars
            are always drawn.
        highlight: values of `hue` that get colours and bands; the other curves are grey and share one legend entry. A
            panel with more than seven coloured curves is hard to read. None highlights all curves.
        xscale: "linear" or "log". None chooses "log" if all x are positive and the largest finite x is at least 10
            times the smallest. For positive `epsilon`, or one positive x, None always chooses "log".
        yscale: "linear" or "log". None keeps any other scale than "linear" that you have set on `ax`. Otherwise None
            chooses the scale in the same way from the heights of the marks, or "linear" if `band` is "share".
        xlabel: text of the horizontal axis; None derives it from the name, or from the attributes `long_name` and
            `units`.
        ylabel: text of the vertical axis; None derives it in the same way.
        title: title of the figure, or of the axes if `ax` is given.
        legend: whether `ax` gets a legend; ignored if jaxdp made the figure, which has one legend for all its axes (if
            `panels` made it, only after `explain`).
        over: the dimension of seeds.

    Returns:
        The axes. The figure's caption, or `caption(ax)`, explains marks, bands, truncated bands and missing marks.

    Raises:
        ValueError: if the values are not real numbers with a dimension of seeds (for "share", zeros and ones); other
            dimensions have several values; `x` is None and no default exists; an x cannot be drawn on the axis; or an
            option is not among its choices, or contradicts another option.

    Examples:
        >>> values = xr.DataArray([[3.0, 5.0], [1.0, 2.0]], {"epsilon": [1.0, 2.0]}, ("epsilon", "seed"), "l2_error")
        >>> curves(values, x="epsilon")
        <axes: l2 error against ε>
        >>> curves(values.expand_dims(num_arms=[2, 4]), x="epsilon")
        Traceback (most recent call last):
        ...
        ValueError: values must have one value along num_arms, got (num_arms: 2, epsilon: 2, seed: 2): choose one, \
such as values.isel(num_arms=-1), or draw them all with hue='num_arms' or facets(values, col='num_arms')
    """
    values = check_values(values, over)
    otherwise = "draw them all with " + ("hue={0} or " if hue is None else "") + "facets(values, col={0})"
    x = x or default_x(values, hue, over=over)
    values = keep_dimensions(values, ("x", x), ("hue", hue), over=over, otherwise=otherwise)
    estimates = summary(values, band, over)
    along = values_of(values[x])
    positions = axis_positions(x, along, xscale, labels_of(x, along, labels))
    ax = axes_to_draw_on(ax, title)
    positions = prepare_x(ax, positions)
    is_share = band == "share" and ax.get_yscale() == "linear"
    prepare_y(ax, "linear" if is_share and yscale is None else yscale, estimates.middle.values)
    hues = [None] if hue is None else values_of(values[hue])
    if highlight is not None:
        _check_highlight(highlight, hue, hues)
    draw_curves(ax, positions, estimates, hue, labels, bars or not positions.joined.any(), label or "", highlight)
    note(ax, break_sentence(x, positions))
    note(ax, unit_sentence(values, labels))
    fit_y(ax)
    if band == "share" and ax.get_yscale() == "linear":
        ax.set_ylim(-0.03, 1.03)
    if len(positions.at) == 1 and positions.scale == "log":
        room = BESIDE ** max(2, len(hues))
        ax.set_xlim(positions.at[0] / room, positions.at[0] * room)
    ax.grid(visible=True, which="major", alpha=0.35)
    y_text = title_of(values) if ylabel is None else ylabel
    name_axes(ax, title_of(values, x) if xlabel is None else xlabel, y_text)
    return finish(ax, legend=legend)


def draw_curves(
    ax: Axes,
    where: AxisPositions,
    estimates: Summary,
    hue: str | None,
    labels: Labels | None,
    bars: bool,
    label: str = "",
    highlight: Collection[Any] | None = None,
) -> list[tuple[np.ndarray, dict[str, Any]]]:
    """Draws and records a curve with its band for each value of `hue`, or one curve if `hue` is None.

    Args:
        ax: axes to draw on.
        where: positions of the marks.
        estimates: the marks and bands, along the horizontal dimension and `hue`.
        hue: dimension with one curve for each value.
        labels: as in `curves`.
        bars: whether to draw error bars instead of bands.
        label: legend text if `hue` is None.
        highlight: as in `curves`.

    Returns:
        For each curve, the horizontal positions of its marks and Matplotlib's keywords for its line.
    """
    hues = [None] if hue is None else values_of(estimates.middle[hue])
    texts = [label] if hue is None else labels_of(hue, hues, labels)
    start, drawn = len(curves_on(ax)), []
    for index, value in enumerate(hues):
        part_of_hue = estimates if hue is None else estimates.select({hue: index})
        middle, low, high = (
            part.values[where.order] for part in (part_of_hue.middle, part_of_hue.low, part_of_hue.high)
        )
        text = texts[index]
        is_grey = highlight is not None and value not in highlight
        if is_grey:
            text, low, high = OTHERS, np.full_like(middle, np.nan), np.full_like(middle, np.nan)
        index_of_style = None if is_grey else style_index(ax, text, start + index)
        line = grey_style() if index_of_style is None else style(index_of_style, ax)
        meaning = estimates.marks, estimates.spread, line["color"]
        curve = Drawn(value, text, where.at, middle, low, high, *meaning, bars, index_of_style)
        drawn.append((draw_curve(ax, where, curve, line, index, len(hues)), line))
        record(ax, curve)
    return drawn


def _check_highlight(highlight: Collection[Any], hue: str | None, hues: Collection[Any]) -> None:
    if hue is None:
        raise ValueError(f"highlight must be left out without hue, got {list(highlight)}")
    for value in highlight:
        if value not in hues:
            raise ValueError(f"highlight must have values of {hue}, one of {', '.join(map(str, hues))}, got {value!r}")


def draw_curve(
    ax: Axes, where: AxisPositions, drawn: Drawn, line: dict[str, Any], index: int, count: int
) -> np.ndarray:
    """Draws one curve with its band, and returns the horizontal positions of its marks.

    Args:
        ax: axes to draw on.
        where: positions of the marks.
        drawn: heights of the marks, and the band.
        line: Matplotlib's keywords for the curve.
        index: index of the curve among the curves at the same x.
        count: number of curves at the same x.
    """
    at, joined, step = where.at, where.joined, index - (count - 1) / 2
    if ax.get_yscale() == "log":
        drawn = drawn.positive()
    if drawn.bars:
        at = _side_by_side(where, step, count)
    elif len(at) == 1:
        at = at * BESIDE**step if where.scale == "log" else at + 0.1 * step  # so that marks do not hide each other
    labelled = {**line, "label": drawn.label or "_curve"}
    if joined.any():
        ax.plot(at[joined], drawn.middle[joined], **labelled)
    if not joined.all():
        single = {**line, "linestyle": "none"} if joined.any() else {**labelled, "linestyle": "none"}
        ax.plot(at[~joined], drawn.middle[~joined], **single)
    for left in np.flatnonzero(np.diff(joined)):  # a dotted line across each break
        ends = slice(left, left + 2)
        ax.plot(at[ends], drawn.middle[ends], color=line["color"], linestyle=(0, (1, 3)), linewidth=1.0, alpha=0.7)
    # On a logarithmic axis, a bar that reaches below zero ends below the bottom edge.
    low = np.where(drawn.low > 0, drawn.low, np.abs(drawn.middle) * 1e-9) if ax.get_yscale() == "log" else drawn.low
    if drawn.bars:
        ax.errorbar(
            at,
            drawn.middle,
            np.abs(np.stack([drawn.middle - low, drawn.high - drawn.middle])),
            fmt="none",
            ecolor=line["color"],
            elinewidth=1.2,
            capsize=2,
        )
        return at
    joined = joined & (joined.sum() > 1)
    draw_band(ax, at[joined], drawn.low[joined], drawn.high[joined], line["color"])
    width = BAND_WIDTH if len(at) == 1 else APART_WIDTH
    ax.vlines(at[~joined], low[~joined], drawn.high[~joined], color=line["color"], alpha=FAINT, linewidth=width)
    return at


def _side_by_side(where: AxisPositions, step: float, count: int) -> np.ndarray:
    """Returns the horizontal positions of one curve's marks, each shifted by the same length on the axis.

    There are `count` curves, and `step` is the curve's index minus (count - 1) / 2. Error bars of different curves are
    then side by side, and remain apart from the bars at neighbouring x.
    """
    at = np.log(where.at) if where.scale == "log" else where.at
    length, least = (at[-1] - at[0], np.diff(at).min()) if len(at) > 1 else (1.0, 1.0)
    at = at + step * min(DODGE * length, BETWEEN * least / max(1, count - 1))
    return np.exp(at) if where.scale == "log" else at


def cost_of_privacy(
    values: xr.DataArray,
    *,
    hue: str | None = None,
    ax: Axes | None = None,
    band: str | None = "t",
    labels: Labels | None = None,
    title: str | None = None,
    **options: Any,
) -> Axes:
    """Draws statistics over seeds against epsilon, with epsilon = inf at the right end, after an axis break.

    If there are three or more finite epsilons, the smallest is drawn at the left end, before an axis break, if it is at
    least 1,000 times smaller than the next, as in `curves`.

    Args:
        values: one variable of a sweep's results, with the dimensions of seeds and epsilon. If there is a dimension
            `round`, only the last round is drawn, unless `hue` is "round".
        hue: dimension with one curve for each value.
        ax: axes to draw on; None makes a figure, which a notebook shows.
        band: as in `curves`.
        labels: legend text of each value of `hue`.
        title: as in `curves`; None writes the number of rounds if only the last round is drawn and `round` has
            a coordinate.
        **options: further arguments of `curves`.

    Returns:
        The axes.

    Raises:
        ValueError: in the same cases as `curves`.

    Examples:
        >>> epsilons = [0.1, 1.0, float("inf")]
        >>> values = xr.DataArray([[9.0, 8.0], [3.0, 4.0], [2.0, 3.0]], {"epsilon": epsilons}, ("epsilon", "seed"))
        >>> [tick.get_text() for tick in cost_of_privacy(values).get_xticklabels()]
        ['0.1', '1', '∞']
    """
    values = check_values(values, options.get("over", "seed"))
    if "round" in values.dims and hue != "round":
        values = values.isel(round=-1)
        if title is None and "round" in values.coords:
            title = f"after {int(values['round']):,} rounds"
    return curves(values, x="epsilon", hue=hue, ax=ax, band=band, labels=labels, title=title or "", **options)
