"""The layout of figures: text that wraps within a figure's width, and a legend in one box with the title."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

# In inches.
LEAST_WIDTH = 6.0
LINE_HEIGHT = 0.22
MARGIN = 0.3  # kept free beside a line of text, left and right together
LEGEND_MARK = 0.7  # a legend's mark, its gap and the space up to the next column
LEGEND_COLUMNS = 4


def text_width(text: str, size: str) -> float:
    """Width in inches of one line of text, in the default font."""
    font = FontProperties(size=size)
    return float(TextPath((0, 0), text, prop=font, usetex=False).get_extents().width) / 72 if text.strip() else 0.0


def wrapped(text: str, width: float, size: str) -> str:
    """The text with line breaks between words, such that no line is wider than `width` inches if words allow it."""
    lines = [""]
    for word in text.split(" "):  # not at no-break spaces
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def _columns(names: Sequence[str], width: float) -> int:
    """How many legend columns fit into `width` inches."""
    widest = max(text_width(name, "medium") for name in names)
    return max(1, min(len(names), LEGEND_COLUMNS, int((width - MARGIN) / (widest + LEGEND_MARK))))


def new_figure(width: float, panels: float, title: str, names: Sequence[str], below: Sequence[str]) -> Figure:
    """An empty figure with its text below the panels, high enough for the panels, the text and the legend.

    Args:
        width: of the figure, in inches.
        panels: height of the panels with their own labels, in inches.
        title: of the figure.
        names: legend texts.
        below: paragraphs below the panels.
    """
    text = "\n".join(wrapped(paragraph, width - MARGIN, "medium") for paragraph in below)
    legend = -(-len(names) // _columns(names, width))
    lines = text.count("\n") + 1 + legend + 1.5 * (wrapped(title, width - MARGIN, "x-large").count("\n") + 1)
    figure = Figure(figsize=(width, panels + 0.3 + LINE_HEIGHT * lines), layout="constrained")
    figure.supxlabel(text, fontsize="medium")
    return figure


def add_legend(figure: Figure, handles: Sequence, title: str, names: Sequence[str]) -> None:
    """Title and legend in one box above the panels: apart, they would overlap."""
    width = figure.get_figwidth()
    figure.legend(
        handles,
        [wrapped(name, width - MARGIN - LEGEND_MARK, "medium") for name in names],
        title=wrapped(title, width - MARGIN, "x-large"),
        title_fontproperties=FontProperties(size="x-large"),
        loc="outside upper center",
        ncols=_columns(names, width),
        frameon=False,
        fontsize="medium",
        alignment="center",
    )
