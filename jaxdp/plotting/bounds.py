"""Theory's curves beside measured ones: as printed, or through a curve's first mark."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from jaxdp.plotting.figure import finish
from jaxdp.plotting.places import fit_y
from jaxdp.plotting.records import BELOW, NEUTRAL, Drawn, curves_on, record

ORDER = {"linestyle": (0, (1, 1.5)), "linewidth": 1.1}
LOWEST = "lowest"


def bound(
    ax: Axes,
    x: Any,
    y: Any,
    *,
    through: Any = None,
    label: str | None = None,
    color: Any = None,
    legend: bool = True,
) -> Axes:
    """Draws a bound: a grey line as it is printed, or dotted and scaled to pass through a curve's first mark.

    A bound that is known up to a factor says how a curve rises or falls, not how high it is.

    Args:
        ax: axes that `curves` drew on.
        x: where the bound is known, [count]; finite ones alone are drawn.
        y: the bound there, [count]; or one number, a level.
        through: None draws the bound as printed. A value of the curves' `hue`, or their legend text, scales it to pass
            through that curve's first mark, in its colour; "lowest" through the lowest first mark; a number through
            that height at the first x.
        label: legend text. Bounds of several colours with one text share one entry.
        color: of the line; None is as said above.
        legend: whether axes of the user's get a legend.

    Returns:
        The axes. A scaled bound is not drawn where the first mark is missing or not positive, nor where it is not
        finite; neither is one at fewer than two x.

    Raises:
        ValueError: if x and y differ in shape, `through` names no curve, or x does not reach its first mark.

    Examples:
        >>> import xarray as xr
        >>> from jaxdp.plotting import curves
        >>> counts = [100, 400]
        >>> values = xr.DataArray([[3.0, 5.0], [1.0, 2.0]], {"num_samples": counts}, ("num_samples", "seed"))
        >>> ax = curves(values, label="measured")
        >>> ax = bound(ax, counts, [0.1, 0.05], through="measured", label="order of a theorem")
        >>> [float(height) for height in ax.get_lines()[-1].get_ydata()]
        [4.0, 2.0]
    """
    at, heights = np.atleast_1d(np.asarray(x, float)), np.asarray(y, float)
    heights = np.full(at.shape, heights) if heights.ndim == 0 else heights
    if at.ndim != 1 or at.shape != heights.shape:
        raise ValueError(f"y must have one number for each x, got shapes {heights.shape} and {at.shape}")
    placed = np.isfinite(at)
    at, heights = at[placed], heights[placed]
    order = np.argsort(at, kind="stable")
    at, heights = at[order], heights[order]
    style: dict[str, Any] = {"zorder": BELOW, "label": label or "_bound", "color": color or NEUTRAL}
    if through is None:
        if len(at) > 1:
            ax.plot(at, heights, **style)
            blank = np.full(len(at), np.nan)
            record(ax, Drawn(None, label or "", at, heights, blank, blank, "", "", style["color"]))
    else:
        place, height, colour = _first_mark(ax, through, at)
        factor = height / _at(place, at, heights) if len(at) > 1 else np.nan
        if len(at) > 1 and np.isfinite(height) and not at[0] <= place <= at[-1]:
            raise ValueError(f"x must reach the mark that the bound passes through, at {place:g}, got {at.tolist()}")
        if np.isfinite(factor) and factor > 0 and np.isfinite(heights).all():
            ax.plot(at, factor * heights, **{**style, "color": color or colour}, **ORDER)
    fit_y(ax)
    return finish(ax, legend=legend)


def _first_mark(ax: Axes, through: Any, at: np.ndarray) -> tuple[float, float, Any]:
    """Place, height and colour of the mark that a bound passes through."""
    drawn = curves_on(ax)
    own = [old for old in drawn if through in (old.hue, old.label)]
    if own:
        return float(own[0].at[0]), float(own[0].middle[0]), own[0].colour
    if through == LOWEST:
        firsts = [old for old in drawn if np.isfinite(old.middle[0])]
        if not firsts:
            return np.nan, np.nan, NEUTRAL
        lowest = min(firsts, key=lambda old: old.middle[0] if old.middle[0] > 0 else np.inf)
        return float(lowest.at[0]), float(lowest.middle[0]), NEUTRAL
    if isinstance(through, int | float | np.number) and not isinstance(through, bool):
        return float(at[0]) if len(at) else np.nan, float(through), NEUTRAL
    known = [old.label or old.hue for old in drawn]
    raise ValueError(
        f"through must be one of {', '.join(map(str, known)) or 'no curve'}, 'lowest' or a number, got {through!r}"
    )


def _at(place: float, at: np.ndarray, heights: np.ndarray) -> float:
    """The bound at a place; between its own places along a straight line on logarithmic axes."""
    same = np.flatnonzero(np.isclose(at, place, rtol=1e-9))
    if same.size:
        return float(heights[same[0]])
    if not at[0] < place < at[-1] or np.any(heights <= 0) or at[0] <= 0:
        return np.nan
    return float(np.exp(np.interp(np.log(place), np.log(at), np.log(heights))))
