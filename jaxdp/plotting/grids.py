"""Grids of panels, one panel for every value of one or two dimensions."""

from collections.abc import Callable
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from jaxdp.plotting import records
from jaxdp.plotting._paper import current_paper
from jaxdp.plotting.figure import Figure, panels
from jaxdp.plotting.labels import Labels, check_values, default_x, keep_dimensions, labels_of, unit_sentence, values_of
from jaxdp.plotting.layout import room_for_names, wrap_text
from jaxdp.plotting.lines import curves
from jaxdp.validation import check_count

NARROWEST = 1.5  # minimum width of a panel in a paper, in inches
TITLE_MARGIN = 0.3  # free width beside a panel's title in a paper, in inches


def facets(
    values: xr.DataArray,
    *,
    x: str | None = None,
    y: str | None = None,
    hue: str | None = None,
    col: str | None = None,
    row: str | None = None,
    draw: Callable[..., Any] = curves,
    also: Callable[[Axes, xr.DataArray], object] | None = None,
    labels: Labels | None = None,
    title: str = "",
    note: str = "",
    abreast: int = 4,
    spare: int = 0,
    width: float = 3.2,
    height: float = 3.2,
    sharex: bool = True,
    sharey: bool = True,
    over: str = "seed",
    **options: Any,
) -> Figure:
    """Draws one panel for every value of one or two dimensions, with common axes and one legend.

    Args:
        values: one variable of a sweep's results, with the dimension of seeds. Dimensions other than seeds, `x`, `y`,
            `hue`, `col` and `row` must have size one.
        x: dimension on the horizontal axes. If neither `x` nor `y` is given, `x` has the same default as in `curves`.
        y: dimension on the vertical axes, for `dot_plot` and `heatmap`.
        hue: dimension with one curve for each value.
        col: dimension with one column of panels for each value. Without `row`, panels continue in the next row.
        row: dimension with one row of panels for each value.
        draw: function(values, ax=, labels=, over=, **options) that draws one panel: `curves`, `dot_plot`, `heatmap`, or
            your own function that calls one of them. It also gets `x` (given or by default), and `y` and `hue` if they
            are given. The values have the panel's `col` and `row` as scalar coordinates.
        also: function(axes, values) that draws more on each panel, such as bounds. It is called after `draw`, with the
            same values.
        labels: texts for values of `hue`, `col` and `row`, and for the values that `draw` labels.
        title: title of the figure.
        note: more sentences for the caption.
        abreast: maximum number of panels side by side; used only without `row`. In a `paper` there may be fewer, so
            that a panel is at least 1.5 inches wide.
        spare: number of empty panels after the last one, for your own drawings; used only without `row`.
        width: width of a panel, in inches, as in `panels`; ignored in a `paper`, where panels share the width.
        height: height of a panel, in inches; in a `paper`, the maximum height.
        sharex: whether all panels have the same horizontal axis.
        sharey: whether all panels have the same vertical axis.
        over: the dimension of seeds.
        **options: further arguments of `draw`.

    Returns:
        A figure, which a notebook shows, with one legend above the panels and a caption below them.

    Raises:
        ValueError: if the values are not real numbers with a dimension of seeds, other dimensions have several values,
            neither `col` nor `row` is given, `x` and `y` are None and `x` has no default, abreast < 1, spare < 0, or
            `draw` raises this error.

    Examples:
        >>> values = xr.DataArray([[[3.0, 5.0], [1.0, 2.0]]] * 2, dims=("epsilon", "round", "seed"), name="regret")
        >>> figure = facets(values.assign_coords(epsilon=[1.0, float("inf")]), col="epsilon", title="Two budgets")
        >>> figure, [panel.get_title() for panel in figure.axes]
        (<figure of 2 panels: Two budgets>, ['ε = 1', 'ε = ∞ (no privacy)'])
    """
    values = check_values(values, over)
    if col is None and row is None:
        raise ValueError("col or row must be a dimension, got neither: `curves` draws a single panel")
    if x is None and y is None:
        x = default_x(values, hue, col, row, over=over)
    axes = (("x", x), ("y", y), ("hue", hue))
    options_chosen = (*axes, ("col", col), ("row", row))
    values = keep_dimensions(
        values, *options_chosen, over=over, otherwise="draw them all with hue={0}, col={0} or row={0}"
    )
    sentence = unit_sentence(values, labels)
    values = values.drop_vars("privacy_unit", errors="ignore")  # the sentence is for all panels
    columns = [None] if col is None else values_of(values[col])
    rows = [None] if row is None else values_of(values[row])
    titles = [] if col is None else labels_of(col, columns, labels)
    row_titles = [] if row is None else labels_of(row, rows, labels)
    style = current_paper()
    if style is not None:
        abreast = min(check_count("abreast", abreast), max(1, int(style.width / NARROWEST)))
    num_across = len(columns) if row is not None else min(check_count("abreast", abreast), len(columns) + spare)
    count = len(rows) * len(columns) + (0 if row is not None else check_count("spare", spare, 0))
    num_down = len(rows) if row is not None else -(-count // num_across)
    figure = panels(num_down, num_across, width=width, height=height, sharex=sharex, sharey=sharey)
    grid = figure.axes
    for panel in grid[count:]:
        panel.set_visible(False)
    for number, (row_index, col_index) in enumerate((r, c) for r in range(len(rows)) for c in range(len(columns))):
        panel = grid[number]
        point = {name: index for name, index in ((row, row_index), (col, col_index)) if name is not None}
        dimensions = {option: name for option, name in axes if name is not None}
        draw(values.isel(point), **dimensions, labels=labels, ax=panel, over=over, **options)
        if also is not None:
            also(panel, values.isel(point))
        if col is not None and (row is None or row_index == 0):
            text = titles[col_index]
            panel.set_title(
                text if style is None else wrap_text(text, style.width / num_across - TITLE_MARGIN, "large")
            )
        if row is not None and len(rows) > 1 and number % num_across == 0:
            panel.set_ylabel(f"{row_titles[row_index]}\n{panel.get_ylabel()}")
    records.note(grid[0], sentence)
    _outer_labels(figure, num_across, len(columns) * len(rows), sharex=sharex, sharey=sharey)
    if style is None:
        figure.set_figwidth(figure.get_figwidth() + room_for_names(grid[0]))
    figure.explain(title=title, note=note, height=height * num_down if style is None else None)
    return figure


def _outer_labels(figure: Figure, num_across: int, count: int, *, sharex: bool, sharey: bool) -> None:
    """Removes labels of shared axes, except beside panels of the left column and below the lowest panel of a column.

    `num_across` is the number of panels in a row, and `count` is the number of used panels.
    """
    for number, panel in enumerate(figure.axes[:count]):
        if sharey and number % num_across:
            panel.set_ylabel("")
        lowest = number + num_across >= count
        if sharex:
            panel.tick_params(axis="x", labelbottom=lowest)
            if not lowest:
                panel.set_xlabel("")
