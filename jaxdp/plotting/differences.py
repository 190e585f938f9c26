"""Plots of paired differences from a reference, with their confidence intervals."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from jaxdp.plotting.figure import axes_to_draw_on, finish, name_axes
from jaxdp.plotting.labels import Labels, default_x, keep_dimensions, labels_of, title_of, unit_sentence, values_of
from jaxdp.plotting.lines import draw_curves
from jaxdp.plotting.positions import axis_positions, break_sentence, prepare_x, prepare_y
from jaxdp.plotting.records import NEUTRAL, note
from jaxdp.plotting.summaries import Summary

REQUIRED = ("difference", "low", "high")
LEVEL = 0.05


def paired(
    differences: xr.Dataset,
    *,
    x: str | None = None,
    hue: str | None = None,
    ax: Axes | None = None,
    labels: Labels | None = None,
    xscale: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draws paired differences from a reference with their confidence intervals, and a zero line.

    Args:
        differences: a dataset with `difference`, `low` and `high`, as `jaxdp.stats.paired` returns it. If it has
            p-values (`p_adjusted`, or else `p_value`), a mark is open (hollow) unless its p-value is at most 0.05.
        x: dimension on the horizontal axis. None chooses `epsilon` if it is a dimension and is not `hue`; otherwise
            `round` if there are several rounds; otherwise the only dimension other than `hue` with several values.
        hue: dimension with one curve for each value. None chooses the only dimension other than `x` with several
            values, or no dimension if there is none.
        ax: axes to draw on; None makes a figure, which a notebook shows.
        labels: texts of the values of `hue` in the legend, and of values of `x` that are not numbers at the axis.
        xscale: as in `curves`.
        xlabel: text of the axis; None derives it from the name.
        ylabel: text of the axis; None writes "paired difference".
        title: title of the figure, or of the axes if `ax` is given.
        legend: whether `ax` gets a legend; ignored if jaxdp made the figure, which has one legend for all its axes (if
            `panels` made it, only after `explain`).

    Returns:
        The axes.

    Raises:
        ValueError: if a variable is missing, dimensions other than `x` and `hue` have several values, or x is None and
            the default of `x` is not exactly one dimension.

    Examples:
        >>> coords = {"epsilon": [0.1, 1.0, float("inf")]}
        >>> costs = {"difference": [3.0, 1.0, 0.0], "low": [2.0, -1.0, -1.0], "high": [4.0, 3.0, 1.0]}
        >>> paired(xr.Dataset({name: ("epsilon", numbers) for name, numbers in costs.items()}, coords))
        <axes: paired difference against ε>
    """
    is_dataset = isinstance(differences, xr.Dataset)
    missing = [name for name in REQUIRED if not is_dataset or name not in differences]
    if missing:
        received = f"one without {', '.join(missing)}" if is_dataset else type(differences).__name__
        raise ValueError(f"differences must be a Dataset with difference, low and high, got {received}")
    difference = differences.difference
    if x is None:
        x = "epsilon" if "epsilon" in difference.dims and hue != "epsilon" else default_x(difference, hue)
    remaining = [str(name) for name in difference.dims if name != x and difference.sizes[name] > 1]
    hue = remaining[0] if hue is None and len(remaining) == 1 else hue
    otherwise = "draw them all with x={0} or hue={0}"
    variables = {
        name: keep_dimensions(differences[name], ("x", x), ("hue", hue), otherwise=otherwise) for name in differences
    }
    x_values = values_of(variables["difference"][x])
    positions = axis_positions(x, x_values, xscale, labels_of(x, x_values, labels))
    ax = axes_to_draw_on(ax, title)
    positions = prepare_x(ax, positions)
    prepare_y(ax, "linear", variables["difference"].values)
    ax.axhline(0, color=NEUTRAL, linewidth=1.0, zorder=1.4)
    p_values = next((variables[name] for name in ("p_adjusted", "p_value") if name in variables), None)
    middle, low, high = (variables[name] for name in REQUIRED)
    estimates = Summary(middle, low, high, "mean of paired differences", "their intervals")
    # Bars stand side by side, which moves marks along the axis, so bars are drawn only for names or a single x.
    bars = not positions.joined.any() or len(positions.at) == 1
    for index, (points, line) in enumerate(draw_curves(ax, positions, estimates, hue, labels, bars)):
        if p_values is not None:
            point = {} if hue is None else {hue: index}
            middle, chances = (part.isel(point).values[positions.order] for part in (estimates.middle, p_values))
            is_open = ~(chances <= LEVEL)
            background = to_rgba(ax.get_facecolor())
            open_marks = {**line, "linestyle": "none", "markerfacecolor": background, "zorder": 3}
            ax.plot(points[is_open], middle[is_open], **open_marks)
    note(ax, break_sentence(x, positions))
    note(ax, unit_sentence(variables["difference"], labels))
    if p_values is not None:
        note(ax, f"Open marks: {'p adjusted' if p_values.name == 'p_adjusted' else 'p'} > {LEVEL:g}.")
    ax.grid(visible=True, which="major", alpha=0.35)
    name_axes(ax, title_of(difference, x) if xlabel is None else xlabel, ylabel or "paired difference")
    return finish(ax, legend=legend)
