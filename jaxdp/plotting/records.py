"""Records of the curves on axes, from which captions, styles, axis limits and scaled bounds are derived."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxdp.plotting.summaries import NOT_FINITE

BELOW = 1.5  # zorder of bounds, which are drawn below the curves and come last in legends
NEUTRAL = "#888888"  # visible on white and on black


class Drawn(NamedTuple):
    """One curve or bound on axes.

    Attributes:
        hue: value of `hue`; None if there is no hue.
        label: legend text; empty if there is none.
        at: positions of the marks on the horizontal axis, before curves are moved apart; in a dot plot, indices of
            rows.
        middle: heights of the marks; in a dot plot, their horizontal positions.
        low: lower ends of the band; NaN if there is no band.
        high: upper ends of the band; NaN if there is no band.
        marks: meaning of the marks, as text; empty for a bound.
        spread: meaning of the band, as text; empty if there is no band.
        colour: colour of the curve.
        bars: whether the band is drawn as bars.
        style: index of colour, marker and line; None for a grey curve or a bound.
        missing: why a mark may be NaN, as text.
    """

    hue: Any
    label: str
    at: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    marks: str
    spread: str
    colour: Any
    bars: bool = False
    style: int | None = None
    missing: str = NOT_FINITE

    def positive(self) -> "Drawn":
        """Returns the curve with NaN for marks at zero or below and their bands, for a logarithmic axis."""
        is_positive = self.middle > 0
        middle, low, high = (np.where(is_positive, part, np.nan) for part in (self.middle, self.low, self.high))
        return self._replace(middle=middle, low=low, high=high)


_DRAWN: WeakKeyDictionary[Axes, list[Drawn]] = WeakKeyDictionary()
_NOTES: WeakKeyDictionary[Axes, list[str]] = WeakKeyDictionary()
_MARKS: WeakKeyDictionary[Axes, "ref[Artist]"] = WeakKeyDictionary()  # an invisible artist, which `ax.clear()` removes


def _is_cleared(ax: Axes) -> bool:
    """Returns whether nothing was recorded since the axes were made or cleared."""
    mark = _MARKS[ax]() if ax in _MARKS else None
    return mark is None or mark.axes is not ax


def _start_records(ax: Axes) -> None:
    """Starts new records of `ax` if it has none, or if it was cleared, after which its old records are invalid."""
    if _is_cleared(ax):
        _DRAWN.pop(ax, None)
        _NOTES.pop(ax, None)
        mark = Artist()
        mark.set_visible(False)
        mark.set_in_layout(False)
        _MARKS[ax] = ref(ax.add_artist(mark))


def record(ax: Axes, drawn: Drawn) -> None:
    """Records a drawn curve or bound."""
    _start_records(ax)
    _DRAWN.setdefault(ax, []).append(drawn)


def records(ax: Axes) -> list[Drawn]:
    """Returns the curves and bounds on the axes, in the order in which they were drawn."""
    return [] if _is_cleared(ax) else _DRAWN.get(ax, [])


def curves_on(ax: Axes) -> list[Drawn]:
    """Returns the curves on the axes, without bounds."""
    return [drawn for drawn in records(ax) if drawn.marks]


def style_index(ax: Axes, label: str, default: int) -> int:
    """Returns the index of a new curve's style.

    In a figure, curves with the same label have the same style, and a new label gets a style that no curve has.

    Args:
        ax: axes to draw on.
        label: legend text; empty for a curve without legend text.
        default: index for an empty label, and for a new label unless a curve of the figure already has this index. In
            this case the new label gets the smallest free index.
    """
    figure = ax.get_figure(root=True)
    panels = [ax] if figure is None else figure.axes
    label_of_style = {
        drawn.style: drawn.label for panel in panels for drawn in curves_on(panel) if drawn.style is not None
    }
    for index, other in label_of_style.items():
        if label and other == label:
            return index
    if not label or default not in label_of_style:
        return default
    return min(index for index in range(len(label_of_style) + 1) if index not in label_of_style)


def note(ax: Axes, text: str) -> None:
    """Adds a sentence to the `caption` of the axes."""
    _start_records(ax)
    notes = _NOTES.setdefault(ax, [])
    if text and text not in notes:
        notes.append(text)


def _notes(ax: Axes) -> list[str]:
    return [] if _is_cleared(ax) else _NOTES.get(ax, [])


def handles(panels: Iterable[Axes]) -> tuple[list[Any], list[str]]:
    """Returns the symbols and labels of a legend: each label once, curves before bounds.

    A label with several colours, such as the label of a bound that is drawn through several curves, has a grey symbol.
    """
    entries: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            first = entries.setdefault(label, handle)
            if isinstance(first, Line2D) and isinstance(handle, Line2D) and first.get_color() != handle.get_color():
                line = {"linestyle": first.get_linestyle(), "linewidth": first.get_linewidth()}
                entries[label] = Line2D([], [], color=NEUTRAL, zorder=BELOW, **line)
                entries[label].set_linestyle(first._unscaled_dash_pattern)  # pyright: ignore[reportAttributeAccessIssue]
    ordered = sorted(entries, key=lambda label: _order(entries[label]) == BELOW)  # stable
    return [entries[label] for label in ordered], ordered


def _order(handle: Any) -> float:
    return handle.get_zorder() if hasattr(handle, "get_zorder") else 2.0


def caption(panels: Axes | Sequence[Axes]) -> str:
    r"""Returns sentences that explain marks, bands and bars on axes, for the caption of your own figure.

    Args:
        panels: axes on which functions of this package drew.

    Returns:
        The sentences; empty if nothing was drawn. They also mention logarithmic axes, bands that are truncated at the
        bottom of a logarithmic axis, infinity behind an axis break, privacy units, and values without a mark.

    Examples:
        >>> import numpy as np, xarray as xr
        >>> from jaxdp.plotting import curves
        >>> values = xr.DataArray(np.ones((3, 2)), {"round": [1, 2, 3]}, ("round", "seed"))
        >>> caption(curves(values, xscale="linear"))
        "Marks: mean of 2 seeds. Bands: 95% confidence interval of that mean (Student's\xa0t)."
    """
    panels = [panels] if isinstance(panels, Axes) else [panel for panel in panels if records(panel) or _notes(panel)]
    groups: dict[str, list[Axes]] = {}
    for panel in panels:
        groups.setdefault(_meaning(panel), []).append(panel)
    groups.pop("", None)
    sentences = list(groups)
    if len(groups) > 1:
        sentences = [
            f"{_name(group_panels[0])}: {meaning.removeprefix('Marks: ')}" for meaning, group_panels in groups.items()
        ]
    if any(_has_cut_band(panel) for panel in panels):
        sentences.append("A band that meets the bottom edge continues below it.")
    sentences += [_scales(panels), *dict.fromkeys(text for panel in panels for text in _notes(panel))]
    middles = [(panel, drawn.middle) for panel in panels for drawn in curves_on(panel)]
    curves = [drawn for panel in panels for drawn in curves_on(panel)]
    missing = dict.fromkeys(drawn.missing for drawn in curves if not np.isfinite(drawn.middle).all())
    sentences += [f"No mark: {reason}." for reason in missing]
    if any((middle <= 0).any() for panel, middle in middles if panel.get_yscale() == "log"):
        sentences.append("No mark: a value of zero or below, as the axis is logarithmic.")
    return " ".join(filter(None, sentences))


def _meaning(panel: Axes) -> str:
    """Returns sentences on the meaning of the marks, bands and bars of a panel, each once."""
    sentences = []
    for drawn in curves_on(panel):
        kind = "Bars" if drawn.bars else "Bands"
        sentences.append(f"Marks: {drawn.marks}." + (f" {kind}: {drawn.spread}." if drawn.spread else ""))
    return " ".join(dict.fromkeys(sentences))


def _name(panel: Axes) -> str:
    text = " ".join((panel.get_ylabel() or panel.get_title()).split())
    return text[:1].upper() + text[1:] if text else "Another panel"


def _has_cut_band(panel: Axes) -> bool:
    """Returns whether a band reaches below the bottom edge of a logarithmic axis."""
    bottom = panel.get_ylim()[0]
    return panel.get_yscale() == "log" and any((drawn.positive().low < bottom).any() for drawn in curves_on(panel))


def _scales(panels: Sequence[Axes]) -> str:
    """Returns a sentence that names the logarithmic axes; "" if there are none or panels' scales differ.

    Panels in which every curve has a single mark are not considered.
    """
    scales = {
        (panel.get_xscale(), panel.get_yscale())
        for panel in panels
        if any(len(curve.at) > 1 for curve in curves_on(panel))
    }
    if scales == {("log", "log")}:
        return "Both axes are logarithmic."
    if scales == {("log", "linear")}:
        return "The horizontal axis is logarithmic."
    return "The vertical axis is logarithmic." if scales == {("linear", "log")} else ""
