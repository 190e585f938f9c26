"""Layout of figures: wraps text, and puts the title and the legend into one box."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib import cbook
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator

from jaxdp.plotting._paper import current_paper, current_scale

Size = str | float  # a font size, as one of Matplotlib's names or in points

# In inches, outside a paper.
LEAST_WIDTH = 6.0
LINE_HEIGHT = 0.22
MARGIN = 0.3  # free space beside a line of text, left and right together
LEGEND_MARK = 0.7  # width of a legend's symbol, the gap beside it and the space up to the next column
LEGEND_COLUMNS = 4


def text_width(text: str, size: Size) -> float:
    """Returns the width in inches of the widest line of a text, in the default font."""
    font = FontProperties(size=size)
    key = font.get_size_in_points(), tuple(font.get_family()), str(font.get_name())
    return max(_line_width(line, *key) for line in text.split("\n"))


@lru_cache(maxsize=4096)
def _line_width(text: str, points: float, family: tuple[str, ...], name: str) -> float:
    del name  # only a part of the cache key, because the font that the family resolves to may change
    font = FontProperties(size=points, family=list(family))
    # The outlines' exact extent takes twenty times as long, and differs by at most two points.
    return float(text_to_path.get_text_width_height_descent(text, font, bool(cbook.is_math_text(text)))[0]) / 72


def wrap_text(text: str, width: float, size: Size) -> str:
    """Breaks the text between words so that no line is wider than `width` inches, except single long words."""
    lines = [""]
    for word in text.split(" "):  # does not split at no-break spaces
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def room_for_names(ax: Axes) -> float:
    """Returns the additional width, in inches, that names beside a vertical axis need compared with numbers.

    The result is 0 if the axis has no names.
    """
    has_names = isinstance(ax.yaxis.get_major_locator(), FixedLocator)
    names = [label.get_text() for label in ax.get_yticklabels()] if has_names else []
    return max(0.0, max((text_width(name, "medium") for name in names), default=0.0) - 0.5)


def surround(
    figure: Figure, panels: float, title: str, handles: Sequence[Any], names: Sequence[str], caption: str
) -> None:
    """Adds title and legend above the panels and a caption below the panels, and adjusts the figure's height.

    Title and legend are in one box, because two boxes would overlap.

    Args:
        figure: a figure with constrained layout and without a legend.
        panels: height of the panels with their labels, in inches.
        title: title of the figure; may be empty.
        handles: symbols of the legend entries.
        names: texts of the legend entries.
        caption: caption of the figure; may be empty.
    """
    width, style, scale = figure.get_figwidth(), current_paper(), current_scale()
    margin, mark, line_height = MARGIN * scale, LEGEND_MARK * scale, LINE_HEIGHT * scale
    small: Size = "medium" if style is None else mpl.rcParams["legend.fontsize"]
    large: Size = "x-large" if style is None else mpl.rcParams["axes.titlesize"]
    below = wrap_text("" if style is not None and not style.caption else caption, width - margin, small)
    above = wrap_text(title, width - margin, large)
    columns = _columns(names, width - margin, mark, small)
    entries = [wrap_text(name, width - margin - mark, small) for name in names]
    legend = -(-len(names) // columns) + sum(entry.count("\n") for entry in entries)
    lines = (below.count("\n") + 1) * bool(below) + legend + 1.5 * (above.count("\n") + 1) * bool(above)
    figure.set_figheight(panels + 0.3 * scale + line_height * lines)
    figure.supxlabel(below, fontsize=small)
    if not entries:
        figure.suptitle(above, fontsize=large)
        return
    figure.suptitle("")
    figure.legend(
        handles,
        entries,
        title=above or None,
        title_fontproperties=FontProperties(size=large),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=small,
        alignment="center",
    )


def _columns(names: Sequence[str], width: float, mark: float, size: Size) -> int:
    """Returns the number of legend columns that fit into `width` inches, at least 1 and at most `LEGEND_COLUMNS`.

    A column is as wide as the widest text and a symbol, which takes `mark` inches. There are no empty columns.
    """
    widest = max((text_width(name, size) for name in names), default=0.0)
    return max(1, min(len(names), LEGEND_COLUMNS, int(width / (widest + mark))))
