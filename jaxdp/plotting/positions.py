"""Positions, scales, ticks and limits of axes. Infinity, and an ε far below the next one, are behind axis breaks."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from matplotlib import figure
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import QuadMesh
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

from jaxdp.plotting.figure import siblings
from jaxdp.plotting.labels import number
from jaxdp.plotting.layout import LEAST_WIDTH, text_width
from jaxdp.plotting.records import curves_on, records
from jaxdp.plotting.style import text_colour
from jaxdp.validation import check_choice

SCALES = ("linear", "log")
WIDE = 10.0  # ratio of the largest to the smallest value that suggests a logarithmic axis
FEW = 6  # on an axis without a break, at most this number of values get a tick each, except several rounds
APART = 4.0  # on a logarithmic axis, the ratio of the positions of the two values next to an axis break
FAR = 1000.0  # the smallest of three or more finite epsilons is behind an axis break if the next is >= FAR times larger
SHORT_RATIO = 50.0  # a logarithmic horizontal axis with a smaller ratio of outer marks has ticks between powers of ten
MARGINS = 0.05  # Matplotlib's margin on each side of the marks, relative to the distance between the outer marks
SLASH = ((-0.5, -1.0), (0.5, 1.0))  # a marker; two of them show an axis break

FAINT = 0.25  # opacity of bands

_CHOSEN: WeakSet[Axes] = WeakSet()  # axes with a vertical scale that the user or a plot requires
_APART: WeakKeyDictionary[Axes, dict[float, float]] = WeakKeyDictionary()  # position of each value behind an axis break
# For each logarithmic axis, the bands with lower ends <= 0, with their positions, lower ends and upper ends.
_CUT: WeakKeyDictionary[Axes, list[Any]] = WeakKeyDictionary()


class AxisPositions(NamedTuple):
    """The positions of a dimension's values.

    Attributes:
        order: indices of the values, in the order of their positions.
        at: positions, in that order.
        joined: [count] whether the value is a number that is not behind an axis break; a line joins these values.
        ticks: (position, text) of each tick; empty if Matplotlib chooses ticks.
        scale: "log" or "linear".
        is_number: whether the values are numbers.
        ends: for each value behind an axis break, its position if the axes are empty. Before `prepare_x`, `at` and
            `ticks` contain the value itself instead of its position.
    """

    order: np.ndarray
    at: np.ndarray
    joined: np.ndarray
    ticks: list[tuple[float, str]]
    scale: str
    is_number: bool
    ends: dict[float, float]


def axis_positions(name: str, values: Sequence[Any], scale: str | None, texts: Sequence[str]) -> AxisPositions:
    """Returns the positions of a dimension's values: numbers in ascending order, other values in equal steps.

    Infinity is behind an axis break. On a logarithmic axis of `epsilon` with three or more finite values, the smallest
    value is also behind an axis break if it is at least `FAR` times smaller than the next.

    Args:
        name: name of the dimension.
        values: values of the dimension.
        scale: "linear" or "log". For positive values, None chooses "log" if the name is "epsilon" or there is only one
            value; otherwise `suggested_scale` decides. Ignored if values are not numbers.
        texts: tick texts of values that are not numbers.

    Raises:
        ValueError: if scale is unknown, a value is NaN or minus infinity, or scale is "log" and a value is <= 0.
    """
    if scale is not None:
        check_choice("xscale", scale, SCALES)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        at = np.arange(len(values), dtype=float)
        ticks = list(zip(at.tolist(), texts, strict=True))
        return AxisPositions(np.arange(len(values)), at, np.zeros(len(values), bool), ticks, "linear", False, {})
    order = np.argsort(array, kind="stable")
    at = array[order].astype(float)
    finite = int(np.isfinite(at).sum())
    if np.isnan(at).any() or np.isneginf(at).any():
        raise ValueError(f"{name} must be finite or infinity, got {array.tolist()}")
    if scale == "log" and finite and at[0] <= 0:
        raise ValueError(f"xscale must be linear where {name} has values <= 0, got 'log' and {at[0]:g}")
    always = (name == "epsilon" or len(at) == 1) and bool((at > 0).all())
    scale = scale or ("log" if always else suggested_scale(at[:finite]))
    ends = {}
    if finite < len(at):
        last = at[finite - 1] if finite else 1.0
        step = 0.25 * (last - at[0]) or 1.0 if finite else 0.0
        ends[np.inf] = float(last * (APART if finite else 1.0) if scale == "log" else last + step)
    if name == "epsilon" and scale == "log" and finite > 2 and _is_far(at[0], at[1]):
        ends[float(at[0])] = float(at[1] / APART)
    few = bool(ends) or len(at) == 1 or (len(at) <= FEW and name != "round")
    ticks = [(float(value), _tick_text(array[index])) for value, index in zip(at, order, strict=True)] if few else []
    return AxisPositions(order, at, ~np.isin(at, list(ends)), ticks, scale, True, ends)


def _is_far(smallest: float, following: float) -> bool:
    return following >= FAR * smallest * (1 - 1e-9)  # rounding must not decide


def _tick_text(value: Any) -> str:
    text = number(value)
    return LogFormatterSciNotation()(float(text)) if "e" in text else text


def suggested_scale(values: np.ndarray) -> str:
    """Returns "log" if finite values are positive and the largest is at least 10 times the smallest, else "linear"."""
    values = values[np.isfinite(values)]
    wide = values.size > 0 and values.min() > 0 and values.max() >= WIDE * values.min()
    return "log" if wide else "linear"


def prepare_x(ax: Axes, positions: AxisPositions) -> AxisPositions:
    """Sets the scale, the ticks and the breaks of the horizontal axis.

    Returns:
        The positions. A value that is already behind a break of this axis keeps its position.

    Raises:
        ValueError: if the position of another value is not to the left of infinity's position, or not to the right of
            the position of the value behind the left axis break.
    """
    drawn = [position for curve in curves_on(ax) for position in curve.at]
    _APART[ax] = earlier = positions_apart(ax)
    positions = _set_apart(ax, positions, drawn)
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
    for value, outer in _APART[ax].items():
        if value in earlier or not positions.joined.any():
            continue
        nearest = min((*drawn, *positions.at[positions.joined]), key=lambda position: abs(position - outer))
        gap = [
            nearest * (outer / nearest) ** part if positions.scale == "log" else nearest + part * (outer - nearest)
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


def break_sentence(name: str, positions: AxisPositions) -> str:
    """Returns a sentence on infinity behind an axis break, for captions; "" if no such break is drawn."""
    if np.inf not in positions.ends or not positions.joined.any():
        return ""
    return "Behind the break of the axis: " + ("ε = ∞ (non-private)." if name == "epsilon" else f"{name} = ∞.")


def positions_apart(ax: Axes) -> dict[float, float]:
    """Returns the position of each value that is behind a break in the horizontal axis."""
    return _APART.get(ax, {}) if curves_on(ax) else {}  # no curve yet, or the axes were cleared


def left_break(ax: Axes) -> float:
    """Returns the position of the left break in the horizontal axis; minus infinity if there is no left break."""
    lefts = [at * APART**0.5 for value, at in positions_apart(ax).items() if value < np.inf]
    return lefts[0] if lefts else -np.inf


def _set_apart(ax: Axes, positions: AxisPositions, drawn: Sequence[float]) -> AxisPositions:
    """Returns `positions` after moving values behind axis breaks to their positions on `ax`.

    A value that is already behind a break of `ax` keeps its position. `drawn` contains the positions of the previous
    curves on `ax`. A new left break is made only if `ax` has no left break, and the value behind it is far from the
    previous curves, too. Raises ValueError if another value would be at or beyond the position of a value behind a
    break.
    """
    if not positions.is_number:
        return positions
    earlier, ends = positions_apart(ax), dict(positions.ends)
    left = min(ends, default=np.inf)
    if left < np.inf:
        following = min((*drawn, ends[left] * APART))
        ends[left] = following / APART
        if any(value < np.inf for value in earlier) or not _is_far(left, following):
            del ends[left]
    ends |= earlier
    on_axis = [value for value in positions.at if value not in ends]
    for value, end in ends.items():
        marks = on_axis if value in earlier else [*on_axis, *drawn]
        if value == np.inf and max(marks, default=-np.inf) >= end:
            raise ValueError(
                f"x must be below {end:g} on these axes, the position of infinity, got {max(marks):g}; draw all "
                "curves in one call with hue=, or draw the curves with the largest x first"
            )
        if value < np.inf and min(marks, default=np.inf) <= end:
            raise ValueError(
                f"x must be above {end:g} on these axes, the position of {value:g}, got {min(marks):g}; draw all "
                "curves in one call with hue="
            )
    _APART[ax] = ends
    ticks = positions.ticks or ([(float(value), _tick_text(value)) for value in positions.at] if ends else [])
    return positions._replace(
        at=np.array([ends.get(value, value) for value in positions.at]),
        joined=~np.isin(positions.at, list(ends)),
        ticks=[(ends.get(value, value), text) for value, text in ticks],
    )


def prepare_y(ax: Axes, scale: str | None, middles: np.ndarray) -> None:
    """Sets the vertical scale to `scale`. None keeps a scale that the user has set, or chooses one for all marks."""
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
    """Sets limits of a logarithmic vertical axis that include all marks, upper ends of bands and unscaled bounds."""
    if ax.get_yscale() != "log":
        return
    drawn = [curve for other in siblings(ax) for curve in records(other)]
    if not drawn:
        return
    middle, low, high = (
        np.concatenate([np.ravel(part) for part in parts])
        for parts in zip(*((curve.middle, curve.low, curve.high) for curve in drawn), strict=True)
    )
    _set_log_limits(ax, *log_limits(middle, low, high))


def share_limits(figure: figure.Figure) -> None:
    """Gives all panels of a figure the same vertical limits, which contain the limits of each panel.

    Panels are then as easy to compare as with `sharey=True`, but each panel keeps its own tick labels. Heat maps,
    colour bars, hidden panels, and empty panels without limits of their own are left out.

    Raises:
        ValueError: if a logarithmic panel would get a limit <= 0.

    Examples:
        >>> from jaxdp.plotting import panels
        >>> figure = panels(1, 2)
        >>> left, right = figure.axes
        >>> left.set_ylim(1, 3), right.set_ylim(2, 9)
        ((1.0, 3.0), (2.0, 9.0))
        >>> share_limits(figure)
        >>> left.get_ylim() == right.get_ylim() == (1, 9)
        True
    """
    panels = [ax for ax in figure.axes if ax.get_visible() and _has_vertical_limits(ax)]
    limits = [limit for ax in panels for limit in ax.get_ylim()]
    for ax in panels:
        if ax.get_yscale() == "log" and min(limits) <= 0:
            raise ValueError(f"figure must have limits > 0 for its logarithmic panels, got {min(limits):g}")
    for ax in panels:
        if ax.get_yscale() == "log" and records(ax):
            _set_log_limits(ax, min(limits), max(limits))
        else:
            ends = (max(limits), min(limits)) if ax.yaxis_inverted() else (min(limits), max(limits))
            ax.set_ylim(ends)


def _has_vertical_limits(ax: Axes) -> bool:
    """Returns whether axes have data or limits, and are neither a heat map nor a colour bar."""
    is_map = any(isinstance(artist, QuadMesh) for artist in ax.collections)
    return not is_map and (ax.has_data() or not ax.get_autoscaley_on())


def _set_log_limits(ax: Axes, bottom: float, top: float) -> None:
    """Sets limits and ticks of a logarithmic vertical axis, and truncates bands at its bottom edge."""
    ax.set_ylim(bottom, top)
    for other in siblings(ax):
        for band, points, lower, upper in _CUT.get(other, []):
            if (polygons := band()) is not None:
                polygons.set_verts(_polygons(points, np.clip(lower, bottom, None), upper))
    _set_log_ticks(ax.yaxis, bottom, top, is_short=top / bottom < 1e3)


def _set_log_ticks(axis: Axis, low: float, high: float, *, is_short: bool) -> None:
    """Sets ticks of a logarithmic axis at powers of ten, and if `is_short` also at 2 and 5 times powers of ten.

    `low` and `high` are the ends of the axis, or its outer marks. Tick labels are plain numbers if both are within
    [0.001, 100,000].
    """
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_short else (1,)))
    if is_short:
        axis.set_minor_locator(NullLocator())
    plainly = low >= 1e-3 and high <= 1e5
    axis.set_major_formatter("{x:,g}" if plainly else LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))


def draw_band(ax: Axes, points: np.ndarray, low: np.ndarray, high: np.ndarray, colour: Any) -> None:
    """Fills a curve's band; on a logarithmic axis, `fit_y` later truncates a band with ends <= 0 at the bottom edge."""
    is_cut = ax.get_yscale() == "log" and bool((low <= 0).any())
    lower_end = np.where(low > 0, low, high) if is_cut else low  # positive for Matplotlib's limits, until `fit_y`
    band = ax.fill_between(points, lower_end, high, color=colour, alpha=FAINT, linewidth=0)
    if is_cut:
        _CUT.setdefault(ax, []).append((ref(band), points, low, high))


def _polygons(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Returns the outlines of a band, one for each run of consecutive points with finite ends."""
    is_known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    stretches = np.split(is_known, np.flatnonzero(np.diff(is_known) > 1) + 1)
    return [
        np.concatenate([np.column_stack([points[s], low[s]]), np.column_stack([points[s], high[s]])[::-1]])
        for s in stretches
        if s.size
    ]


def log_limits(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Returns the limits of a logarithmic axis that shows every mark and every band's upper end."""
    # Lower ends below a tenth of the mark are ignored, because they would extend the axis without limit.
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
    """Returns whether the labels of the ticks (position, text) would overlap on a horizontal axis with this scale."""
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
    """Returns the horizontal axis's ticks at marks of previous curves, as a dictionary of texts by position."""
    drawn = {position for curve in curves_on(ax) for position in curve.at}
    if not drawn:
        return {}
    texts = [label.get_text() for label in ax.get_xticklabels()]
    return {position: text for position, text in zip(ax.get_xticks(), texts, strict=False) if position in drawn}
