"""Figures and axes that a notebook shows. A figure has one legend, and a caption that explains marks and bands."""

import io
import textwrap
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import axes, figure
from matplotlib.colors import to_rgba

from jaxdp.plotting import layout
from jaxdp.plotting._paper import current_paper, in_paper
from jaxdp.plotting.records import caption, handles
from jaxdp.plotting.style import text_colour

LABEL_LENGTH = 3.0  # maximum length of a line of a vertical label, in inches
COLOUR_BAR = "<colorbar>"  # Matplotlib's label of a colour bar's axes
LIGHT = 0.5  # brightness above which a text colour implies a dark background


class Figure(figure.Figure):
    """A Matplotlib figure that a notebook shows as a cell's last value, without pyplot.

    The background is opaque. `explain` adds a title, a legend and a caption, which are updated whenever a function of
    this package draws on the figure.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_facecolor(_opaque(self.get_facecolor()))
        self._explained = False
        self._title = self._note = ""
        self._height: float | None = None
        self._paper = current_paper()

    def explain(self, *, title: str = "", note: str = "", height: float | None = None) -> None:
        """Writes the title and one legend above the panels, and a caption on marks and bands below the panels.

        Args:
            title: title of the figure; a long title is wrapped.
            note: more sentences for the caption.
            height: height of all panels with their labels, in inches. None keeps the height of the previous call, or
                in the first call chooses the height of the figure.
        """
        self._explained, self._title, self._note = True, title, note
        if height is not None or self._height is None:
            self._height = float(self.get_figheight()) if height is None else height
        self.refresh()

    def refresh(self) -> None:
        """Updates legend and caption, if `explain` was called."""
        if not self._explained or self._height is None:
            return
        for legend in list(self.legends):
            legend.remove()
        panels = [panel for panel in self.axes if panel.get_visible()]
        marks, names = handles(panels)
        text = " ".join(filter(None, (caption(panels), self._note)))
        with in_paper(self._paper):
            layout.surround(self, self._height, self._title, marks, names, text)

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Saves the figure as Matplotlib does. A figure for a paper has the paper's fonts and resolution."""
        with in_paper(self._paper):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Returns the picture at twice the resolution at which a notebook shows it."""
        buffer = io.BytesIO()
        width, height = (round(length * self.dpi) for length in self.get_size_inches())
        self.savefig(buffer, format="png", dpi=2 * self.dpi, facecolor=self.get_facecolor(), transparent=False)
        return buffer.getvalue(), {"width": width, "height": height}

    def __repr__(self) -> str:
        panels = [panel for panel in self.axes if panel.get_visible() and panel.get_label() != COLOUR_BAR]
        count = "1 panel" if len(panels) == 1 else f"{len(panels)} panels"
        description = self._title or next(filter(None, map(_description, panels)), "")
        return f"<figure of {count}{': ' if description else ''}{textwrap.shorten(description, 120)}>"

    __str__ = __repr__  # Matplotlib's text contains only the size


class Axes(axes.Axes):
    """Matplotlib axes; if they are a cell's last value, a notebook shows their whole figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        root_figure = self.get_figure(root=True)
        return root_figure._repr_png_() if isinstance(root_figure, Figure) else None

    def __repr__(self) -> str:
        description = textwrap.shorten(_description(self), 120)
        return f"<axes{': ' if description else ''}{description}>"

    __str__ = __repr__


def panels(rows: int = 1, columns: int = 1, *, width: float = 3.2, height: float = 3.2, **sharing: Any) -> Figure:
    """Returns a figure with empty panels to draw on.

    A notebook shows the figure as a cell's last value.

    Args:
        rows: number of rows of panels.
        columns: number of columns of panels.
        width: width of one panel, in inches. Panels are wider if the figure would otherwise be less than 6 inches wide.
            Ignored in a `paper`, where panels share the width.
        height: height of one panel, in inches; in a `paper`, the maximum height.
        **sharing: arguments of Matplotlib's `Figure.subplots`, such as `sharey=True`.

    Returns:
        The figure; its panels are `figure.axes`, row by row. To add one legend and a caption, call
        `figure.explain(title=...)` before or after drawing.

    Examples:
        >>> figure = panels(1, 2, sharey=True)
        >>> left, right = figure.axes
        >>> figure
        <figure of 2 panels>
    """
    if (style := current_paper()) is None:
        size = (max(layout.LEAST_WIDTH, 1.2 + width * columns), height * rows)
    else:
        size = (style.width, min(height, style.panel_height(columns)) * rows)
    new_figure = Figure(figsize=size, layout="constrained")
    new_figure.subplots(rows, columns, squeeze=False, subplot_kw={"axes_class": Axes}, **sharing)
    return new_figure


def axes_to_draw_on(ax: axes.Axes | None, title: str = "") -> axes.Axes:
    """Returns `ax`, or the axes of a new figure with legend and caption if `ax` is None.

    Raises ValueError if `ax` is neither Matplotlib axes nor None.
    """
    if ax is None:
        new_figure = panels()
        new_figure.explain(title=title, height=3.4 if current_paper() is None else None)
        return new_figure.axes[0]
    if not isinstance(ax, axes.Axes):
        raise ValueError(f"ax must be Matplotlib axes, or None for a new figure, got {type(ax).__name__}")
    if title:
        ax.set_title(title)
    return ax


def finish(ax: axes.Axes, *, legend: bool = True) -> axes.Axes:
    """Updates the legend and the caption if `ax` belongs to a `Figure`; otherwise adds a legend if `legend` is true."""
    root_figure = ax.get_figure(root=True)
    if isinstance(root_figure, Figure):
        root_figure.refresh()
    elif legend:
        marks, names = handles([ax])
        if names:
            ax.legend(marks, names, frameon=False, fontsize="small", labelcolor=text_colour(ax))
    return ax


def name_axes(ax: axes.Axes, xlabel: str, ylabel: str) -> None:
    """Sets the labels of both axes, and wraps a long vertical label."""
    ax.set_xlabel(xlabel)
    style = current_paper()
    length = LABEL_LENGTH if style is None else min(LABEL_LENGTH, 0.7 * style.panel_height(1))
    ax.set_ylabel(layout.wrap_text(ylabel, length, "medium"))


def siblings(ax: axes.Axes) -> Iterator[axes.Axes]:
    """Yields the axes that share the vertical axis of `ax`, including `ax` itself."""
    yield from ax.get_shared_y_axes().get_siblings(ax)


def _description(panel: axes.Axes) -> str:
    labels = [" ".join(text.split()) for text in (panel.get_ylabel(), panel.get_xlabel())]
    return " against ".join(filter(None, labels)) or panel.get_title()


def _opaque(colour: Any) -> tuple[float, float, float, float]:
    """Returns the opaque RGBA colour of `colour` over white, or over black if Matplotlib's text colour is light."""
    red, green, blue, alpha = to_rgba(colour)
    text = np.mean(to_rgba(mpl.rcParams["text.color"])[:3])
    paper = 0.0 if text > LIGHT else 1.0
    red, green, blue = (alpha * value + (1 - alpha) * paper for value in (red, green, blue))
    return red, green, blue, 1.0
