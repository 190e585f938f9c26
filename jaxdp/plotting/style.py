"""Colours, markers and line styles of curves, for light and for dark backgrounds."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from jaxdp.plotting._paper import current_scale

# Okabe & Ito (2008): distinct with any colour vision. Markers and line styles also distinguish curves, for print.
# The first colour is replaced by the text colour of the axes: black on white, white on black.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "-", "--", "-.", ":", "--", "-.")
LEAST_CONTRAST = 0.3  # minimum difference in brightness between the first curve and the background


def text_colour(ax: Axes) -> Any:
    """Returns the colour of the axes' text, or black or white if the text contrasts too little with the background."""
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
    """Returns the plotting keywords of the curve with this index."""
    colour_index, scale = index % len(COLOURS), current_scale()
    return {
        "color": text_colour(ax) if colour_index == 0 else COLOURS[colour_index],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
        "markersize": 4.5 * scale,
        "linewidth": 1.5 * scale,
    }


def grey_style() -> dict[str, Any]:
    """Returns the plotting keywords of a curve that is not highlighted."""
    return {"color": "#aaaaaa", "linewidth": 0.8 * current_scale(), "zorder": 1.6}


def _brightness(rgb: Any) -> float:
    """Returns the perceived brightness of red, green and blue in [0, 1]: 0 for black, 1 for white."""
    return float(np.dot((0.299, 0.587, 0.114), rgb))
