"""Where values stand on an axis: scales that the data suggest, infinity apart from the rest, ticks and limits."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

from jaxdp.plotting.figure import siblings
from jaxdp.plotting.layout import LEAST_WIDTH, text_width
from jaxdp.plotting.records import curves_on, records
from jaxdp.plotting.style import text_colour
from jaxdp.plotting.words import number
from jaxdp.validation import check_choice

SCALES = ("linear", "log")
WIDE = 10.0  # how many times the smallest value the largest is where a logarithmic axis is suggested
FEW = 6  # values that each get a tick
APART = 4.0  # factor from the largest finite value to where infinity stands
MARGINS = 0.05  # Matplotlib's, beside the marks
SLASH = ((-0.5, -1.0), (0.5, 1.0))

FAINT = 0.25  # opacity of bands

_CHOSEN: WeakSet[Axes] = WeakSet()  # whose vertical scale is the user's
_INFINITY: WeakKeyDictionary[Axes, float] = WeakKeyDictionary()  # where it stands
_CUT: WeakKeyDictionary[Axes, list[Any]] = WeakKeyDictionary()  # bands that go below zero, and their numbers


class Places(NamedTuple):
    """Where the values of a dimension stand.

    Attributes:
        order: positions of the values, in the order in which they stand.
        at: where, in that order.
        joined: how many of the first ones are joined by a line; the others stand apart.
        ticks: (place, text) of each; empty where Matplotlib finds ticks.
        scale: "log" or "linear".
    """

    order: np.ndarray
    at: np.ndarray
    joined: int
    ticks: list[tuple[float, str]]
    scale: str


def places(name: str, values: Sequence[Any], scale: str | None, texts: Sequence[str]) -> Places:
    """Where the values of a dimension stand: numbers in their order with infinity apart, anything else in equal steps.

    Args:
        name: of the dimension.
        values: of it.
        scale: "linear", "log", or None for what they suggest.
        texts: of the values, where they are not numbers.

    Raises:
        ValueError: if a value has no place, or none on a logarithmic axis.
    """
    if scale is not None:
        check_choice("xscale", scale, SCALES)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        at = np.arange(len(values), dtype=float)
        return Places(np.arange(len(values)), at, 0, list(zip(at.tolist(), texts, strict=True)), "linear")
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
    ticks = [(float(place), number(array[index])) for place, index in zip(at, order, strict=True)] if few else []
    return Places(order, at, finite, ticks, scale)


def suggested_scale(values: np.ndarray) -> str:
    """Logarithmic where all values are positive, and the largest is at least 10 times the smallest."""
    values = values[np.isfinite(values)]
    wide = values.size > 0 and values.min() > 0 and values.max() >= WIDE * values.min()
    return "log" if wide else "linear"


def prepare_x(ax: Axes, found: Places) -> Places:
    """Scale, ticks and, where infinity stands apart, the break of the horizontal axis.

    Returns:
        The places, with infinity where it stands on these axes already.

    Raises:
        ValueError: if a finite value would stand where infinity does, or beyond.
    """
    found = _beside_infinity(ax, found)
    ticks_so_far = _ticks_so_far(ax)  # a scale begins with ticks of its own
    ax.set_xscale(found.scale)
    if found.ticks:
        ticks = sorted({**ticks_so_far, **dict(found.ticks)}.items())
        turned = 45 if _too_long(ax, ticks, found.scale) else 0
        ax.set_xticks([place for place, _ in ticks], [text for _, text in ticks], rotation=turned)
        ax.xaxis.set_minor_locator(NullLocator())
    if 0 < found.joined < len(found.at) and not curves_on(ax):
        last, apart = found.at[found.joined - 1 : found.joined + 1]
        share = 0.42, 0.5
        gap = [last * (apart / last) ** s if found.scale == "log" else last + s * (apart - last) for s in share]
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
    return found


def _beside_infinity(ax: Axes, found: Places) -> Places:
    """Infinity has one place on axes, to the right of everything finite."""
    mine, finite = found.at[found.joined :], found.at[: found.joined]
    is_number = bool(found.ticks) or found.joined > 0  # names have no infinity
    drawn = [place for old in curves_on(ax) for place in old.at]
    if not drawn:  # none yet, or they were cleared
        _INFINITY.pop(ax, None)
    apart = _INFINITY.get(ax, float(mine[0]) if is_number and len(mine) else np.inf)
    drawn = [] if ax in _INFINITY else drawn
    beyond = [place for place in (*finite, *drawn) if place >= apart]
    if is_number and beyond and apart < np.inf:
        raise ValueError(
            f"x must stay below {apart:g} on these axes, where infinity stands, got {max(beyond):g}; draw all curves "
            "in one call with hue=, or first those that reach furthest"
        )
    if is_number and len(mine):
        _INFINITY[ax] = apart
        ticks = [(apart if place == mine[0] else place, text) for place, text in found.ticks]
        return found._replace(at=np.where(np.arange(len(found.at)) < found.joined, found.at, apart), ticks=ticks)
    return found


def prepare_y(ax: Axes, scale: str | None, middles: np.ndarray) -> None:
    """The vertical scale: the chosen one, that of the user's axes, or what all marks on the shared axis suggest."""
    shared = list(siblings(ax))
    if scale is not None:
        ax.set_yscale(check_choice("yscale", scale, SCALES))
    drawn = [old.middle for other in shared for old in curves_on(other)]
    if not drawn:
        _CHOSEN.difference_update(shared)
    if scale is not None or (not drawn and ax.get_yscale() != "linear"):
        _CHOSEN.update(shared)
    if any(other in _CHOSEN for other in shared):
        return
    ax.set_yscale(suggested_scale(np.concatenate([*map(np.ravel, drawn), np.ravel(middles)])))


def fit_y(ax: Axes) -> None:
    """Limits of a logarithmic vertical axis that shows every mark, every band's upper end and every printed bound."""
    if ax.get_yscale() != "log":
        return
    drawn = [old for other in siblings(ax) for old in records(other)]
    middle, low, high = (
        np.concatenate([np.ravel(part) for part in parts])
        for parts in zip(*((old.middle, old.low, old.high) for old in drawn), strict=True)
    )
    bottom, top = log_limits(middle, low, high)
    ax.set_ylim(bottom, top)
    for other in siblings(ax):
        for band, at, lower, upper in _CUT.get(other, []):
            if (shown := band()) is not None:
                shown.set_verts(_polygons(at, np.clip(lower, bottom, None), upper))
    if top / bottom < 1e3:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(LogLocator())
    plainly = bottom >= 1e-3 and top <= 1e5
    ax.yaxis.set_major_formatter("{x:,g}" if plainly else LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))


def draw_band(ax: Axes, at: np.ndarray, low: np.ndarray, high: np.ndarray, colour: Any) -> None:
    """Fills between the limits of a curve. On a logarithmic axis `fit_y` cuts what goes below its bottom edge."""
    cut = ax.get_yscale() == "log" and bool((low <= 0).any())
    shown = np.where(low > 0, low, high) if cut else low  # for Matplotlib's limits, until `fit_y` sets them
    band = ax.fill_between(at, shown, high, color=colour, alpha=FAINT, linewidth=0)
    if cut:
        _CUT.setdefault(ax, []).append((ref(band), at, low, high))


def _polygons(at: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """The outline of a band, one for each stretch without NaN."""
    known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    return [
        np.concatenate([np.column_stack([at[s], low[s]]), np.column_stack([at[s], high[s]])[::-1]])
        for s in stretches
        if s.size
    ]


def log_limits(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """The limits of a logarithmic axis that shows every mark and every band's upper end.

    A lower end counts where it is more than a tenth of its mark; one further below would stretch the axis without end.
    """
    low = np.where(low > middle / 10, low, middle)
    values = np.concatenate([low, middle, high])
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return 0.1, 1.0  # nothing to show
    bottom, top = values.min(), values.max()
    pad = (top / bottom) ** 0.04 * 1.02
    steps = np.outer(10.0 ** np.arange(np.floor(np.log10(bottom / pad)), np.log10(top * pad)), (1, 2, 5))
    if np.sum((steps >= bottom / pad) & (steps <= top * pad)) < 2:  # fewer ticks than a scale needs
        pad *= 2.5
    return float(bottom / pad), float(top * pad)


def _too_long(ax: Axes, ticks: Sequence[tuple[float, str]], scale: str) -> bool:
    """Whether texts at these places would run into each other."""
    if len(ticks) < 2:
        return False
    figure = ax.get_figure(root=True)
    length = ax.get_position().width * (figure.get_figwidth() if figure is not None else LEAST_WIDTH)
    at = np.array([place for place, _ in ticks])
    at = np.log(at) if scale == "log" else at
    gaps = np.diff(at) / (at[-1] - at[0]) * length / (1 + 2 * MARGINS)
    widths = np.array([text_width(text, "medium") for _, text in ticks])
    return bool((gaps < (widths[1:] + widths[:-1]) / 2 + 0.05).any())


def _ticks_so_far(ax: Axes) -> dict[float, str]:
    """Ticks of the curves that are on the axes already."""
    drawn = {place for old in curves_on(ax) for place in old.at}
    if not drawn:
        return {}
    texts = [label.get_text() for label in ax.get_xticklabels()]
    return {place: text for place, text in zip(ax.get_xticks(), texts, strict=False) if place in drawn}
