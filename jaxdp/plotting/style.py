"""Colours, markers and lines, on light and on dark backgrounds."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

# Okabe & Ito (2008): told apart with any colour vision; markers and line styles carry the same information in print.
# The first one is the axes' text colour: black on white, white on black.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "-", "--", "-.", ":", "--", "-.")
LEAST_CONTRAST = 0.3  # between the first curve and its background, of brightness


def text_colour(ax: Axes) -> Any:
    """The colour of the axes' text, or black or white where that would not be seen on their background."""
    figure = ax.get_figure(root=True)
    behind = np.ones(3)  # paper
    for colour in (figure.get_facecolor() if figure is not None else "white", ax.get_facecolor()):
        *rgb, alpha = to_rgba(colour)
        behind = alpha * np.array(rgb) + (1 - alpha) * behind
    text = ax.xaxis.label.get_color()
    if abs(_brightness(to_rgba(text)[:3]) - _brightness(behind)) >= LEAST_CONTRAST:
        return text
    return "white" if _brightness(behind) < LEAST_CONTRAST + 0.2 else "black"


def style(index: int, ax: Axes) -> dict[str, Any]:
    """Colour, marker and line of the curve at an index."""
    place = index % len(COLOURS)
    return {
        "color": text_colour(ax) if place == 0 else COLOURS[place],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def _brightness(rgb: Any) -> float:
    return float(np.dot((0.299, 0.587, 0.114), rgb))
