"""Figures with the width, the fonts and the file format that a paper at a venue needs."""

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib import font_manager

from jaxdp.validation import check_positive, did_you_mean

USUAL_POINTS = 10.0  # font size of figures outside a paper
POINTS = 8.0  # font size if the width is given in inches
RATIO = 0.72  # height of a panel with its labels, relative to its width
LEAST_HEIGHT = 1.6  # minimum height of a panel with its labels, in inches
LEAST_INCHES, MOST_INCHES = 1.5, 20.0
SERIFS = ("STIXGeneral", "DejaVu Serif")  # these come with Matplotlib
FORMAT = {"pdf.fonttype": 42, "ps.fonttype": 42, "mathtext.fontset": "stix", "savefig.dpi": 300}


class Paper(NamedTuple):
    """The style of figures for a paper.

    Attributes:
        width: width of a figure, in inches.
        caption: whether figures contain their caption.
        settings: Matplotlib's settings.
    """

    width: float
    caption: bool
    settings: Mapping[str, Any]

    @property
    def scale(self) -> float:
        """The size of fonts, lines and marks, relative to their size in figures outside a paper."""
        return float(self.settings["font.size"]) / USUAL_POINTS

    def panel_height(self, columns: int) -> float:
        """Returns the height in inches of a panel with its labels, in a figure with `columns` columns of panels."""
        return max(LEAST_HEIGHT, RATIO * self.width / columns)


_current: ContextVar[Paper | None] = ContextVar("paper", default=None)


@contextlib.contextmanager
def paper(style: str | float, *, columns: int = 1, caption: bool = True) -> Iterator[None]:
    r"""Applies the size and the fonts of a paper to figures that are drawn in its `with` block.

    A figure may be saved in the block or after it. Figures have exactly the requested width, so \includegraphics
    without a width shows them at their true size. PDF files embed their fonts as Type 42, as venues require.

    Args:
        style: the width in inches, or the name of a bundle of the package tueplots, such as "icml2024", "neurips2024",
            "iclr2024", "aistats2025" or "jmlr2001". A bundle sets the venue's width of a column (see `columns`),
            fonts and font sizes. Bundles need `pip install tueplots`. TeX is not used.
        columns: 1 for the width of one column, or 2 for the full width of a two-column page; it must be 1 if `style` is
            a width in inches.
        caption: whether figures contain their caption. If not, `jaxdp.plotting.caption(ax)` returns the text.

    Raises:
        ValueError: if the style is neither a width in [1.5, 20] nor a bundle of tueplots; if columns is not 1 or 2; if
            columns is 2 and the venue has one column or the style is a width in inches.
        ModuleNotFoundError: if a bundle is named and tueplots is not installed.

    Examples:
        >>> import xarray as xr
        >>> from jaxdp.plotting import cost_of_privacy
        >>> values = xr.DataArray([[3.0, 5.0], [1.0, 2.0]], {"epsilon": [0.5, 1.0]}, ("epsilon", "seed"), "l2_error")
        >>> with paper(3.25, caption=False):
        ...     figure = cost_of_privacy(values).figure
        >>> float(figure.get_figwidth())
        3.25
    """
    if columns not in (1, 2):
        raise ValueError(f"columns must be 1 or 2, got {columns}")
    settings, width = _bundle(style, columns) if isinstance(style, str) else _inches(style, columns)
    with in_paper(Paper(width, bool(caption), settings)):
        yield


def current_paper() -> Paper | None:
    """Returns the style of the enclosing `with paper(...)` block; None outside such a block."""
    return _current.get()


def current_scale() -> float:
    """Returns the size of lines and marks, relative to their size in figures outside a paper."""
    style = current_paper()
    return 1.0 if style is None else style.scale


@contextlib.contextmanager
def in_paper(style: Paper | None) -> Iterator[None]:
    """Sets the style for its `with` block, in which a figure is drawn or saved; None keeps the current style."""
    if style is None:
        yield
        return
    token = _current.set(style)
    try:
        settings: Any = dict(style.settings)
        with mpl.rc_context(settings):
            yield
    finally:
        _current.reset(token)


def _inches(style: float, columns: int) -> tuple[dict[str, Any], float]:
    width = check_positive("style", style)
    if not LEAST_INCHES <= width <= MOST_INCHES:
        raise ValueError(f"style must be a width in [{LEAST_INCHES}, {MOST_INCHES:g}] inches, got {width}")
    if columns != 1:
        raise ValueError(f"columns must be 1 with a width in inches, got {columns}")
    return {**FORMAT, "font.size": POINTS}, width


def _bundle(style: str, columns: int) -> tuple[dict[str, Any], float]:
    try:
        from tueplots import bundles
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the style {style!r} needs the package tueplots: pip install tueplots, or give a width in inches"
        ) from error
    names = [name for name, value in vars(bundles).items() if inspect.isfunction(value) and not name.startswith("_")]
    if style not in names:
        raise ValueError(
            f"style must be a width in inches or one of {', '.join(names)}, got {style!r}{did_you_mean(style, names)}"
        )
    make = getattr(bundles, style)
    options = inspect.signature(make).parameters
    if columns == 2 and "column" not in options:
        raise ValueError(f"columns must be 1 for {style}, which has one column, got 2")
    arguments: dict[str, Any] = {"usetex": False} if "usetex" in options else {}
    if columns == 2:
        arguments["column"] = "full"
    settings = dict(make(**arguments))
    width, _ = settings.pop("figure.figsize")
    kinds = ("font.", "axes.", "legend.", "xtick.", "ytick.")
    chosen = {name: value for name, value in settings.items() if name.startswith(kinds)}
    chosen = {**chosen, **FORMAT, "text.usetex": False}
    if "font.serif" in chosen:
        available = set(font_manager.get_font_names())
        fonts = [chosen["font.serif"]] if isinstance(chosen["font.serif"], str) else chosen["font.serif"]
        chosen["font.serif"] = [*(font for font in fonts if font in available), *SERIFS]
    chosen.setdefault("font.size", POINTS)
    return chosen, float(width)
