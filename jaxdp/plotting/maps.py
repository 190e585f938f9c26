"""Heat maps of means over two dimensions."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from jaxdp.plotting.figure import axes_to_draw_on, finish, name_axes
from jaxdp.plotting.labels import (
    Labels,
    check_values,
    keep_dimensions,
    label_of,
    number,
    title_of,
    unit_sentence,
    values_of,
)
from jaxdp.plotting.positions import SCALES, suggested_scale
from jaxdp.plotting.records import note
from jaxdp.plotting.summaries import seed_count
from jaxdp.validation import check_choice

MOST_TICKS = 9  # maximum number of ticks of an axis
COLOURS = "cividis"  # brightness increases along the scale, which people with any colour vision can read
MOST_NUMBERS = 80  # by default, each cell contains its mean as a number if there are at most this number of cells
BRIGHT = 0.55  # numbers are black from this point of the colour scale on, and white below it


def heatmap(
    values: xr.DataArray,
    *,
    x: str,
    y: str,
    ax: Axes | None = None,
    labels: Labels | None = None,
    scale: str | None = None,
    numbers: bool | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str = "",
    over: str = "seed",
) -> Axes:
    """Draws the mean over seeds for every pair of values of two dimensions, as colours with numbers or a colour bar.

    Args:
        values: one variable of a sweep's results, with the dimension of seeds. Dimensions other than seeds, `x` and `y`
            must have size one.
        x: dimension on the horizontal axis, from left to right; numbers are sorted in ascending order.
        y: dimension on the vertical axis, from bottom to top, sorted in the same way.
        ax: axes to draw on; None makes a figure, which a notebook shows.
        labels: texts for values of x and y that are not numbers.
        scale: scale of colours, "linear" or "log" (for positive means). None chooses "log" if all finite means are
            positive and the largest is at least 10 times the smallest.
        numbers: whether to write each mean into its cell; otherwise there is a colour bar. None writes numbers if there
            are at most 80 cells.
        xlabel: text of the horizontal axis; None derives it from the name.
        ylabel: text of the vertical axis; None derives it from the name.
        title: title of the figure, or of the axes if `ax` is given.
        over: the dimension of seeds.

    Returns:
        The axes. A cell is empty if its mean is not finite.

    Raises:
        ValueError: if the values are not real numbers with a dimension of seeds, other dimensions have several values,
            an option is not among its choices, or scale is "log" and a finite mean is <= 0.

    Examples:
        >>> values = xr.DataArray(np.ones((2, 3, 4)), {"epsilon": [1.0, 2.0], "gap": [0.1, 0.2, 0.3]},
        ...     ("epsilon", "gap", "seed"), "regret")
        >>> heatmap(values, x="epsilon", y="gap")
        <axes: gap against ε>
    """
    values = check_values(values, over)
    otherwise = "draw a map for each with facets(values, draw=heatmap, x=..., y=..., col={0})"
    values = keep_dimensions(values, ("x", x), ("y", y), over=over, otherwise=otherwise).astype(float)
    values = values.sortby([name for name in (x, y) if values[name].dtype.kind in "iuf"])
    mean = values.mean(over, skipna=False).transpose(y, x).values
    ax = axes_to_draw_on(ax, title)
    norm = _norm(mean, scale)
    mesh = ax.pcolormesh(
        np.ma.masked_invalid(mean), cmap=COLOURS, norm=norm, edgecolors=ax.get_facecolor(), linewidth=0.5
    )
    for axis, name in ((ax.xaxis, x), (ax.yaxis, y)):
        texts = [_tick_text(name, value, labels) for value in values_of(values[name])]
        stride = -(-len(texts) // MOST_TICKS)
        axis.set_ticks(np.arange(len(texts))[::stride] + 0.5, texts[::stride])
    if numbers if numbers is not None else mean.size <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(mean):
            if np.isfinite(value):
                colour = "black" if float(norm(value)) >= BRIGHT else "white"
                style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
                ax.text(column + 0.5, row + 0.5, _format_value(value), color=colour, **style)
        meaning = f"Numbers: mean of {seed_count(values.sizes[over])}"
    else:
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.colorbar(mesh, ax=ax, label=title_of(values))
        meaning = f"Colours: mean of {seed_count(values.sizes[over])}"
    name = title_of(values)
    note(ax, f"{meaning}{', of ' if name else ''}{name}.")
    note(ax, unit_sentence(values, labels))
    if not np.isfinite(mean).all():
        note(ax, "Empty: a value was not finite for at least one seed.")
    y_text = title_of(values, y) if ylabel is None else ylabel
    name_axes(ax, title_of(values, x) if xlabel is None else xlabel, y_text)
    return finish(ax, legend=False)


def _norm(mean: np.ndarray, scale: str | None) -> Normalize:
    """Returns the linear or logarithmic colour scale of the means; `suggested_scale` decides if `scale` is None."""
    finite = mean[np.isfinite(mean)]
    if not finite.size:
        return Normalize(0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    scale_used = suggested_scale(finite) if scale is None else check_choice("scale", scale, SCALES)
    if scale_used == "log" and low <= 0:
        raise ValueError(f"scale must be linear where a mean is <= 0, got 'log' and {low:g}")
    return LogNorm(low, high) if scale_used == "log" and high > low else Normalize(low, high)


def _tick_text(name: str, value: Any, labels: Labels | None) -> str:
    """Formats a value of the dimension `name` for an axis; values that are not numbers get the text of `label_of`."""
    if isinstance(value, float) and np.isfinite(value):
        return _format_value(value)
    return (
        number(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else label_of(name, value, labels)
    )


def _format_value(value: float) -> str:
    """Formats a number with three significant digits, or as an integer if its magnitude is in [1e3, 1e6)."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"
