"""Theoretical bounds for comparison with measured curves, unscaled or scaled to pass through a curve's first mark."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from jaxdp.plotting.figure import finish
from jaxdp.plotting.positions import fit_y, left_break
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
    """Draws an unscaled bound as a grey line, or a scaled bound as a dotted line.

    A scaled bound passes through a curve's first mark, which is the leftmost mark that is not behind the left axis
    break. If `through` is a number, the bound has this height at its first position instead.

    Scale a bound that is known only up to a constant factor. The scaled bound then shows how a curve should rise or
    fall, but not how high the curve should be.

    Args:
        ax: axes that `curves` drew on.
        x: [count] positions at which the bound is known. The bound is not drawn at infinity, nor at positions behind
            the left axis break.
        y: [count] values of the bound, or one number for a constant bound.
        through: None draws the bound unscaled. A value of the curves' `hue`, or a curve's legend text, scales the bound
            to pass through that curve's first mark, and gives it that curve's colour. "lowest" scales the bound to pass
            through the lowest positive first mark of all curves. A number that is not a value of `hue` scales the bound
            to have that height at the first x.
        label: legend text; None adds no legend entry. Bounds with equal texts share one legend entry.
        color: colour of the line. None chooses the colour of the curve that `through` names, or grey if `through` names
            no curve.
        legend: whether `ax` gets a legend; ignored if jaxdp made the figure, which has one legend for all its axes (if
            `panels` made it, only after `explain`).

    Returns:
        The axes. A scaled bound is not drawn if the first mark is missing or 0, if the bound at this mark is 0 or has
        the opposite sign, or if the bound is not finite. If the mark is between two positions x, a scaled bound is
        drawn only if all its positions and all its values are positive. No bound is drawn if x has fewer than two
        finite positions that are not behind the left axis break.

    Raises:
        ValueError: if the shapes of x and y differ, no curve has the hue or label `through`, or the first mark is
            outside the range of x.

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
    points, heights = np.atleast_1d(np.asarray(x, float)), np.asarray(y, float)
    heights = np.full(points.shape, heights) if heights.ndim == 0 else heights
    if points.ndim != 1 or points.shape != heights.shape:
        raise ValueError(f"y must have one number for each x, got shapes {heights.shape} and {points.shape}")
    is_drawn = np.isfinite(points) & (points > left_break(ax))
    points, heights = points[is_drawn], heights[is_drawn]
    order = np.argsort(points, kind="stable")
    points, heights = points[order], heights[order]
    style: dict[str, Any] = {"zorder": BELOW, "label": label or "_bound", "color": color or NEUTRAL}
    if through is None:
        if len(points) > 1:
            ax.plot(points, heights, **style)
            blank = np.full(len(points), np.nan)
            record(ax, Drawn(None, label or "", points, heights, blank, blank, "", "", style["color"]))
    else:
        mark_x, height, colour = _first_mark(ax, through, points)
        at_mark = _interpolate(mark_x, points, heights) if len(points) > 1 else np.nan
        factor = height / at_mark if at_mark != 0 else np.nan
        if len(points) > 1 and np.isfinite(height) and not points[0] <= mark_x <= points[-1]:
            raise ValueError(
                f"x must reach the mark that the bound passes through, at {mark_x:g}, got {points.tolist()}"
            )
        if np.isfinite(factor) and factor > 0 and np.isfinite(heights).all():
            ax.plot(points, factor * heights, **{**style, "color": color or colour}, **ORDER)
    fit_y(ax)
    return finish(ax, legend=legend)


def _first_mark(ax: Axes, through: Any, points: np.ndarray) -> tuple[float, float, Any]:
    """Returns the position, height and colour of the mark on `ax` through which a scaled bound passes.

    `points` are the bound's positions, in ascending order. If `through` is a curve's hue or label, the mark is that
    curve's first mark. If `through` is "lowest", the mark is the lowest positive first mark of all curves. If it is a
    number, the mark is the point with this height at `points[0]`.
    """
    curves = [
        curve._replace(at=curve.at[is_seen], middle=curve.middle[is_seen])
        for curve in curves_on(ax)
        if (is_seen := curve.at > left_break(ax)).any()
    ]
    matches = [curve for curve in curves if through in (curve.hue, curve.label)]
    if matches:
        return float(matches[0].at[0]), float(matches[0].middle[0]), matches[0].colour
    if through == LOWEST:
        firsts = [curve for curve in curves if np.isfinite(curve.middle[0])]
        if not firsts:
            return np.nan, np.nan, NEUTRAL
        lowest = min(firsts, key=lambda curve: curve.middle[0] if curve.middle[0] > 0 else np.inf)
        return float(lowest.at[0]), float(lowest.middle[0]), NEUTRAL
    if isinstance(through, int | float | np.number) and not isinstance(through, bool):
        return float(points[0]) if len(points) else np.nan, float(through), NEUTRAL
    names = [curve.label or curve.hue for curve in curves]
    raise ValueError(
        f"through must be one of {', '.join(map(str, names)) or 'no curve'}, 'lowest' or a number, got {through!r}"
    )


def _interpolate(x: float, points: np.ndarray, heights: np.ndarray) -> float:
    """Returns the height of a bound at x, by linear interpolation of log heights over log points.

    If x equals a point, the result is the height at this point. Otherwise the result is NaN if x is outside the range
    of the points, or if a height or the first point is not positive.
    """
    equal_points = np.flatnonzero(np.isclose(points, x, rtol=1e-9, atol=0))
    if equal_points.size:
        return float(heights[equal_points[0]])
    if not points[0] < x < points[-1] or np.any(heights <= 0) or points[0] <= 0:
        return np.nan
    return float(np.exp(np.interp(np.log(x), np.log(points), np.log(heights))))
