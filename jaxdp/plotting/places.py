"""Positions of values on an axis, with infinity behind a break of the axis; scales, ticks and limits."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

from jaxdp.plotting.figure import siblings
from jaxdp.plotting.labels import number
from jaxdp.plotting.layout import LEAST_WIDTH, text_width
from jaxdp.plotting.records import curves_on, records
from jaxdp.plotting.style import text_colour
from jaxdp.validation import check_choice

SCALES = ("linear", "log")
WIDE = 10.0  # ratio of the largest to the smallest value that suggests a logarithmic axis
FEW = 6  # up to this number of values, each gets a tick, except rounds
APART = 4.0  # on a logarithmic axis, position of infinity relative to the largest finite value
SHORT_RATIO = 50.0  # a logarithmic horizontal axis with a smaller ratio of its ends has ticks between powers of ten
MARGINS = 0.05  # Matplotlib's margins beside the marks
SLASH = ((-0.5, -1.0), (0.5, 1.0))  # a marker; two of them show a break of the axis

FAINT = 0.25  # opacity of bands

_CHOSEN: WeakSet[Axes] = WeakSet()  # axes with a vertical scale set by the user
_INFINITY: WeakKeyDictionary[Axes, float] = WeakKeyDictionary()  # position of infinity
# On logarithmic axes: bands with lower ends <= 0, and their positions, lower and upper ends.
_CUT: WeakKeyDictionary[Axes, list[Any]] = WeakKeyDictionary()


class Places(NamedTuple):
    """The positions of a dimension's values.

    Attributes:
        order: indices of the values, in the order of their positions.
        at: positions, in that order.
        joined: number of values, from the first on, that a line joins: the finite numbers; 0 for values that are not
            numbers.
        ticks: (position, text) of each tick; empty if Matplotlib chooses ticks.
        scale: "log" or "linear".
        is_number: whether the values are numbers.
    """

    order: np.ndarray
    at: np.ndarray
    joined: int
    ticks: list[tuple[float, str]]
    scale: str
    is_number: bool


def places(name: str, values: Sequence[Any], scale: str | None, texts: Sequence[str]) -> Places:
    """Returns the positions of a dimension's values: numbers in order and then infinity; other values in equal steps.

    Args:
        name: name of the dimension.
        values: values of the dimension.
        scale: "linear" or "log". None: "log" if all values are positive and the name is "epsilon" or there is only one
            value, otherwise the result of `suggested_scale`. Ignored if values are not numbers.
        texts: tick texts of values that are not numbers.

    Raises:
        ValueError: if a value is NaN or minus infinity, or is not positive on a logarithmic axis.
    """
    if scale is not None:
        check_choice("xscale", scale, SCALES)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        at = np.arange(len(values), dtype=float)
        return Places(np.arange(len(values)), at, 0, list(zip(at.tolist(), texts, strict=True)), "linear", False)
    order = np.argsort(array, kind="stable")
    at = array[order].astype(float)
    finite = int(np.isfinite(at).sum())
    if np.isnan(at).any() or np.isneginf(at).any():
        raise ValueError(f"{name} must be finite or infinity, got {array.tolist()}")
    if scale == "log" and finite and at[0] <= 0:
        raise ValueError(f"xscale must be linear where {name} has values <= 0, got 'log' and {at[0]:g}")
    always = (name == "epsilon" or len(at) == 1) and bool((at > 0).all())
    scale = scale or ("log" if always else suggested_scale(at[:finite]))
    if finite < len(at):
        last = at[finite - 1] if finite else 1.0
        step = 0.25 * (last - at[0]) or 1.0 if finite else 0.0
        at[finite:] = last * (APART if finite else 1.0) if scale == "log" else last + step
    few = finite < len(at) or len(at) == 1 or (len(at) <= FEW and name != "round")
    ticks = [(float(position), number(array[index])) for position, index in zip(at, order, strict=True)] if few else []
    return Places(order, at, finite, ticks, scale, True)


def suggested_scale(values: np.ndarray) -> str:
    """Returns "log" if finite values are positive and the largest is at least 10 times the smallest, else "linear"."""
    values = values[np.isfinite(values)]
    wide = values.size > 0 and values.min() > 0 and values.max() >= WIDE * values.min()
    return "log" if wide else "linear"


def prepare_x(ax: Axes, positions: Places) -> Places:
    """Sets scale and ticks of the horizontal axis and, if there is infinity, the break of the axis.

    Returns:
        The positions. If infinity has a position on these axes already, it keeps this position.

    Raises:
        ValueError: if the position of a finite value would not be below the position of infinity.
    """
    positions = _align_infinity(ax, positions)
    ticks_so_far = _ticks_so_far(ax)  # setting a scale resets the ticks
    ax.set_xscale(positions.scale)
    if positions.ticks:
        ticks = sorted({**ticks_so_far, **dict(positions.ticks)}.items())
        rotation = 45 if _too_long(ax, ticks, positions.scale) else 0
        ax.set_xticks([position for position, _ in ticks], [text for _, text in ticks], rotation=rotation)
        ax.xaxis.set_minor_locator(NullLocator())
    elif positions.scale == "log" and positions.at.max() / positions.at.min() < SHORT_RATIO:
        _set_log_ticks(
            ax.xaxis, positions.at.min(), positions.at.max(), is_short=True
        )  # Matplotlib's texts would overlap
    if 0 < positions.joined < len(positions.at) and not curves_on(ax):
        last, infinity_at = positions.at[positions.joined - 1 : positions.joined + 1]
        gap = [
            last * (infinity_at / last) ** part if positions.scale == "log" else last + part * (infinity_at - last)
            for part in (0.42, 0.5)
        ]
        ax.plot(
            gap,
            [0, 0],
            linestyle="none",
            marker=SLASH,
            markersize=9,
            color=text_colour(ax),
            markeredgewidth=1.0,
            clip_on=False,
            transform=ax.get_xaxis_transform(),
        )
    return positions


def _align_infinity(ax: Axes, positions: Places) -> Places:
    """Returns `positions` with infinity at the position that earlier curves on `ax` gave it, if there are any.

    Raises ValueError if a finite position is not below the position of infinity.
    """
    infinite, finite = positions.at[positions.joined :], positions.at[: positions.joined]
    drawn = [position for curve in curves_on(ax) for position in curve.at]
    if not drawn:  # no curve yet, or the axes were cleared
        _INFINITY.pop(ax, None)
    infinity_at = _INFINITY.get(ax, float(infinite[0]) if positions.is_number and len(infinite) else np.inf)
    drawn = [] if ax in _INFINITY else drawn
    beyond = [position for position in (*finite, *drawn) if position >= infinity_at]
    if positions.is_number and beyond and infinity_at < np.inf:
        raise ValueError(
            f"x must be below {infinity_at:g} on these axes, the position of infinity, got {max(beyond):g}; draw all "
            "curves in one call with hue=, or draw the curves with the largest x first"
        )
    if positions.is_number and len(infinite):
        _INFINITY[ax] = infinity_at
        ticks = [(infinity_at if position == infinite[0] else position, text) for position, text in positions.ticks]
        return positions._replace(
            at=np.where(np.arange(len(positions.at)) < positions.joined, positions.at, infinity_at), ticks=ticks
        )
    return positions


def prepare_y(ax: Axes, scale: str | None, middles: np.ndarray) -> None:
    """Sets the vertical scale: `scale`, or the scale that the user has set, or the scale that all marks suggest."""
    shared = list(siblings(ax))
    if scale is not None:
        ax.set_yscale(check_choice("yscale", scale, SCALES))
    drawn = [curve.middle for other in shared for curve in curves_on(other)]
    if not drawn:
        _CHOSEN.difference_update(shared)
    if scale is not None or (not drawn and ax.get_yscale() != "linear"):
        _CHOSEN.update(shared)
    if any(other in _CHOSEN for other in shared):
        return
    ax.set_yscale(suggested_scale(np.concatenate([*map(np.ravel, drawn), np.ravel(middles)])))


def fit_y(ax: Axes) -> None:
    """Sets limits of a logarithmic vertical axis that show all marks, upper ends of bands and unscaled bounds."""
    if ax.get_yscale() != "log":
        return
    drawn = [curve for other in siblings(ax) for curve in records(other)]
    middle, low, high = (
        np.concatenate([np.ravel(part) for part in parts])
        for parts in zip(*((curve.middle, curve.low, curve.high) for curve in drawn), strict=True)
    )
    bottom, top = log_limits(middle, low, high)
    ax.set_ylim(bottom, top)
    for other in siblings(ax):
        for band, points, lower, upper in _CUT.get(other, []):
            if (polygons := band()) is not None:
                polygons.set_verts(_polygons(points, np.clip(lower, bottom, None), upper))
    _set_log_ticks(ax.yaxis, bottom, top, is_short=top / bottom < 1e3)


def _set_log_ticks(axis: Axis, low: float, high: float, *, is_short: bool) -> None:
    """Sets ticks of a logarithmic axis at powers of ten, and if `is_short` also at twice and five times these.

    `low` and `high` are the axis limits. Ticks are plain numbers if these are within [0.001, 100,000].
    """
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_short else (1,)))
    if is_short:
        axis.set_minor_locator(NullLocator())
    plainly = low >= 1e-3 and high <= 1e5
    axis.set_major_formatter("{x:,g}" if plainly else LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))


def draw_band(ax: Axes, points: np.ndarray, low: np.ndarray, high: np.ndarray, colour: Any) -> None:
    """Fills the band of a curve; on a logarithmic axis `fit_y` later cuts the part below the bottom edge."""
    is_cut = ax.get_yscale() == "log" and bool((low <= 0).any())
    lower_end = np.where(low > 0, low, high) if is_cut else low  # positive for Matplotlib's limits, until `fit_y`
    band = ax.fill_between(points, lower_end, high, color=colour, alpha=FAINT, linewidth=0)
    if is_cut:
        _CUT.setdefault(ax, []).append((ref(band), points, low, high))


def _polygons(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Returns the outlines of a band, one for each stretch without NaN."""
    is_known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    stretches = np.split(is_known, np.flatnonzero(np.diff(is_known) > 1) + 1)
    return [
        np.concatenate([np.column_stack([points[s], low[s]]), np.column_stack([points[s], high[s]])[::-1]])
        for s in stretches
        if s.size
    ]


def log_limits(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Returns the limits of a logarithmic axis that shows every mark and every band's upper end."""
    # Lower ends below a tenth of the mark do not count: they would stretch the axis without limit.
    low = np.where(low > middle / 10, low, middle)
    values = np.concatenate([low, middle, high])
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return 0.1, 1.0  # nothing to show
    bottom, top = values.min(), values.max()
    pad = (top / bottom) ** 0.04 * 1.02
    steps = np.outer(10.0 ** np.arange(np.floor(np.log10(bottom / pad)), np.log10(top * pad)), (1, 2, 5))
    if np.sum((steps >= bottom / pad) & (steps <= top * pad)) < 2:  # an axis needs two ticks
        pad *= 2.5
    return float(bottom / pad), float(top * pad)


def _too_long(ax: Axes, ticks: Sequence[tuple[float, str]], scale: str) -> bool:
    """Returns whether the texts of ticks (position, text) would overlap on a horizontal axis of this scale."""
    if len(ticks) < 2:
        return False
    figure = ax.get_figure(root=True)
    length = ax.get_position().width * (figure.get_figwidth() if figure is not None else LEAST_WIDTH)
    at = np.array([position for position, _ in ticks])
    at = np.log(at) if scale == "log" else at
    gaps = np.diff(at) / (at[-1] - at[0]) * length / (1 + 2 * MARGINS)
    widths = np.array([text_width(text, "medium") for _, text in ticks])
    return bool((gaps < (widths[1:] + widths[:-1]) / 2 + 0.05).any())


def _ticks_so_far(ax: Axes) -> dict[float, str]:
    """Returns the ticks of the horizontal axis at marks of curves that were drawn before: text by position."""
    drawn = {position for curve in curves_on(ax) for position in curve.at}
    if not drawn:
        return {}
    texts = [label.get_text() for label in ax.get_xticklabels()]
    return {position: text for position, text in zip(ax.get_xticks(), texts, strict=False) if position in drawn}
