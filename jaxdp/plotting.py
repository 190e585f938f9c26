"""Figures from datasets. Every band is explained in the figure itself."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from scipy.special import stdtrit

from jaxdp.audit.intervals import clopper_pearson
from jaxdp.layout import LEAST_WIDTH, add_legend, new_figure, text_width, wrapped

# Okabe & Ito (2008): told apart with any colour vision; markers and line styles carry the same information in print.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "-", "--", "-.", ":", "--", "-.")

BAND_WIDTH = 7.0  # in points, of a confidence interval at a single x
APART = 1.15  # factor between curves at a single x
ORDER_STYLE = {"linestyle": (0, (1, 1.5)), "linewidth": 1.1}
BOUND_STYLE = {"color": "#888888", "zorder": 1.5}
PANELS_ABREAST = 3

Order = Callable[[np.ndarray, float, Any], np.ndarray]  # (x, epsilon, row) -> a bound, up to a factor
Bound = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (rounds, epsilons) -> a bound, broadcast


def mean_and_half_width(values: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """The mean over a dimension, and the half width of its 95% confidence interval by Student's t.

    The half width is t standard errors, where t is the 97.5% quantile of Student's distribution with count - 1 degrees
    of freedom: 12.7 for 2 values, 4.3 for 3, 1.97 for 200. A NaN is never skipped: both results are NaN with it.

    Args:
        values: at least one value along `over`.
        over: the dimension of independent repetitions.

    Returns:
        (mean, half width), without that dimension; the half width is NaN for a single value.

    >>> mean, half = mean_and_half_width(xr.DataArray([1.0, 2.0, 3.0], dims="seed"))
    >>> print(f"{mean.item():.3f} +- {half.item():.3f}")
    2.000 +- 2.484
    """
    count = values.sizes[over]
    mean = values.mean(over, skipna=False)
    if count < 2:
        return mean, xr.full_like(mean, np.nan)
    quantile = float(stdtrit(count - 1, 0.975))
    return mean, quantile * values.std(over, ddof=1, skipna=False) / np.sqrt(count)


def share_and_limits(hits: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """The share of hits along a dimension, and its 95% Clopper-Pearson confidence interval.

    Args:
        hits: 0 or 1, independent along `over`. A NaN is never skipped: all results are NaN with it.
        over: the dimension of independent repetitions.

    Returns:
        (share, lower limit, upper limit), in [0, 1], without that dimension.

    >>> share, low, high = share_and_limits(xr.DataArray([1.0, 1.0, 1.0, 0.0], dims="seed"))
    >>> print(f"{share.item():.2f} in [{low.item():.3f}, {high.item():.3f}]")
    0.75 in [0.194, 0.994]
    """
    total = hits.sum(over, skipna=False)
    low, high = (total.copy(data=limit) for limit in clopper_pearson(total.fillna(0).values, hits.sizes[over]))
    return total / hits.sizes[over], low.where(total.notnull()), high.where(total.notnull())


def epsilon_label(epsilon: float) -> str:
    """How a figure names a budget."""
    return "ε = ∞ (no privacy)" if np.isinf(epsilon) else f"ε = {epsilon:g}"


def seed_count(num_seeds: int) -> str:
    """How text names a number of seeds."""
    return "1 seed" if num_seeds == 1 else f"{num_seeds} seeds"


def error_curves(
    errors: xr.DataArray,
    *,
    x: str,
    xlabel: str,
    ylabel: str,
    title: str,
    labels: Mapping[str, str],
    row: str = "dim",
    row_label: Callable[[Any], str] = "d = {}".format,
    orders: Mapping[str, Order] | None = None,
    order_label: str = "",
    note: str = "",
) -> Figure:
    """Mean error against `x`, one panel for every epsilon, one row for every dim, one curve for every estimator.

    Args:
        errors: dimensions estimator, epsilon, seed, `row` and `x`; positive. A mean over a value that is not finite (a
            fit that failed) has no mark, and the caption says so.
        x: the dimension on the horizontal axis.
        xlabel: its label, with the unit.
        ylabel: label of the errors, with the unit.
        title: of the figure.
        labels: legend text of each estimator.
        row: the dimension with one row of panels for each value.
        row_label: names a value of it, where there are several.
        orders: bounds that are known up to a factor, by estimator. Each is drawn as a dotted curve in its estimator's
            colour, scaled to pass through the first mark of its panel; not where that mark or the bound is no number,
            nor at a single x.
        order_label: their legend text.
        note: one more sentence for the caption.

    Returns:
        A figure with logarithmic axes and 95% confidence bands (Student's t) of the mean over seeds. A band that goes
        far below its line, or below zero, is cut at the bottom of the axis, and the caption says so.
    """
    mean, half = mean_and_half_width(errors)
    bottom, top = _log_limits(mean.values, half.values)
    epsilons, rows, xs = errors.epsilon.values, errors[row].values, errors[x].values
    orders = orders if orders and len(xs) > 1 else {}
    names = _names(errors, labels) + ([order_label] if orders else [])
    handles = []
    width = max(LEAST_WIDTH, 1.2 + 3.2 * len(epsilons))
    caption = _curves_caption(errors.sizes["seed"], mean.values, mean.values - half.values < bottom)
    figure = new_figure(width, 3.2 * len(rows), title, names, [xlabel, f"{caption} {note}".strip()])
    panels = figure.subplots(len(rows), len(epsilons), sharex=True, sharey=True, squeeze=False)
    for place, value in enumerate(rows):
        for column, epsilon in enumerate(epsilons):
            panel = panels[place, column]
            panel.set(xscale="log", yscale="log", ylim=(bottom, top))
            for index, estimator in enumerate(errors.estimator.values):
                point = {"estimator": estimator, "epsilon": epsilon, row: value}
                centre, band = mean.sel(point).values, half.sel(point).values
                style = index % len(COLOURS)
                # At a single x curves would hide each other, and bands between x and x would have no width.
                at = xs if len(xs) > 1 else xs * APART ** (index - (errors.sizes["estimator"] - 1) / 2)
                if estimator in orders:
                    _draw_order(panel, xs, centre[0], orders[estimator](xs, epsilon, value), COLOURS[style])
                (line,) = panel.plot(
                    at,
                    centre,
                    LINES[style],
                    color=COLOURS[style],
                    marker=MARKERS[style],
                    markersize=4.5,
                    linewidth=1.5,
                )
                handles.append(line)
                low, high = np.clip(centre - band, bottom, None), centre + band
                if len(xs) > 1:
                    panel.fill_between(at, low, high, color=COLOURS[style], alpha=0.25, linewidth=0)
                else:
                    panel.vlines(at, low, high, color=COLOURS[style], alpha=0.25, linewidth=BAND_WIDTH)
            if len(xs) == 1:
                panel.set_xlim(xs[0] / APART ** len(errors.estimator), xs[0] * APART ** len(errors.estimator))
            panel.grid(visible=True, which="major", alpha=0.35)
            panel.set_xticks(xs, [f"{number:,}" for number in xs], rotation=45)
            panel.minorticks_off()
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter("{x:g}")
            if place == 0:
                panel.set_title(epsilon_label(epsilon))
        panels[place, 0].set_ylabel(ylabel if len(rows) == 1 else f"{row_label(value)}\n{ylabel}")
    order = [Line2D([], [], color="#555555", **ORDER_STYLE)] if orders else []
    add_legend(figure, [*handles[: errors.sizes["estimator"]], *order], title, names)
    return figure


def regret_curves(
    regret: xr.DataArray,
    *,
    title: str,
    ylabel: str,
    labels: Mapping[str, str],
    upper: tuple[str, Bound],
    lower: tuple[str, Bound],
    note: str = "",
) -> Figure:
    """Mean regret against rounds, one panel for every epsilon; and in one more panel against epsilon, after all rounds.

    Args:
        regret: dimensions learner, epsilon, round, seed; >= 0. A mean over a value that is not finite has no mark, and
            the caption says so; nor has one of zero.
        title: of the figure.
        ylabel: label of the regret, with the unit.
        labels: legend text of each learner.
        upper: legend text and an upper bound with its constants, which is drawn as it is, as a grey line.
        lower: legend text and a lower bound that is known up to a factor, drawn dotted and scaled to pass through the
            lowest first mark of each panel; not where that is no positive number, nor at a single x.
        note: one more sentence for the caption.

    Returns:
        A figure with logarithmic axes and 95% confidence bands (Student's t) of the mean over seeds; cut as those of
        `error_curves`. An infinite epsilon stands apart, to the right of the others.
    """
    mean, half = mean_and_half_width(regret)
    mean = mean.where(mean > 0)
    epsilons, rounds = regret.epsilon.values.astype(float), regret["round"].values.astype(float)
    order = np.argsort(epsilons)
    above = upper[1](rounds, epsilons[:, None])
    bottom, top = _log_limits(np.append(mean.values, above), np.append(half.values, np.zeros(above.shape)))
    learners = [str(name) for name in regret.learner.values]
    names = [labels.get(name, name) for name in learners] + [upper[0], lower[0]]
    wide, high = min(PANELS_ABREAST, len(epsilons) + 1), -(-(len(epsilons) + 1) // PANELS_ABREAST)
    caption = _curves_caption(regret.sizes["seed"], mean.values, mean.values - half.values < bottom)
    figure = new_figure(max(LEAST_WIDTH, 1.2 + 3.4 * wide), 3.4 * high, title, names, [f"{caption} {note}".strip()])
    panels = figure.subplots(high, wide, squeeze=False, sharey=True)
    for panel in panels.flat[len(epsilons) + 1 :]:
        panel.set_visible(False)
    for panel, place in zip(panels.flat, order, strict=False):
        point = {"epsilon": place}
        _draw_regrets(panel, rounds, mean.isel(point), half.isel(point), bottom, joined=len(rounds))
        _draw_bounds(panel, rounds, mean.isel(point), above[place], lower[1](rounds, epsilons[place]))
        panel.set(title=epsilon_label(epsilons[place]), xlabel="rounds T", xscale="log")
    panel, last = panels.flat[len(epsilons)], {"epsilon": order, "round": -1}
    finite = int(np.isfinite(epsilons).sum())
    at = epsilons[order]
    at[finite:] = 4 * at[finite - 1] if finite else 1.0
    _draw_regrets(panel, at, mean.isel(last), half.isel(last), bottom, joined=finite)
    below = lower[1](rounds[-1:], epsilons[order])
    _draw_bounds(panel, at[:finite], mean.isel(last).isel(epsilon=slice(finite)), above[order, -1][:finite], below)
    panel.set(title=f"after {rounds[-1]:,.0f} rounds", xlabel="ε", xscale="log")
    panel.set_xticks(at, ["∞" if np.isinf(value) else f"{value:g}" for value in epsilons[order]])
    panel.minorticks_off()
    for panel in panels.flat:
        panel.set(yscale="log", ylim=(bottom, top))
        panel.grid(visible=True, which="major", alpha=0.35)
    for panel in panels[:, 0]:
        panel.set_ylabel(ylabel)
    handles = [*panels.flat[0].get_lines()[: len(learners)], Line2D([], [], **BOUND_STYLE)]
    add_legend(figure, [*handles, Line2D([], [], **BOUND_STYLE, **ORDER_STYLE)], title, names)
    return figure


def _draw_regrets(
    panel: Axes, at: np.ndarray, mean: xr.DataArray, half: xr.DataArray, bottom: float, *, joined: int
) -> None:
    """Each learner's marks with their bands; the first `joined` of them with a line through them."""
    for index, (centre, band) in enumerate(zip(_by_learner(mean), _by_learner(half), strict=True)):
        style: dict[str, Any] = {
            "color": COLOURS[index % len(COLOURS)],
            "marker": MARKERS[index % len(MARKERS)],
            "markersize": 4.5,
            "linewidth": 1.5,
        }
        low, high = np.clip(centre - band, bottom, None), centre + band
        panel.plot(at[:joined], centre[:joined], LINES[index % len(LINES)], **style)
        panel.fill_between(at[:joined], low[:joined], high[:joined], color=style["color"], alpha=0.25, linewidth=0)
        if joined < len(at):
            panel.plot(at[joined:], centre[joined:], linestyle="none", **style)
            panel.vlines(at[joined:], low[joined:], high[joined:], color=style["color"], alpha=0.25, linewidth=4)


def _draw_bounds(panel: Axes, at: np.ndarray, mean: xr.DataArray, above: np.ndarray, below: np.ndarray) -> None:
    """The upper bound as it is, and the lower one through the lowest first mark."""
    if len(at) < 2:
        return
    panel.plot(at, above, **BOUND_STYLE)
    first = _by_learner(mean)[:, 0]
    if np.isfinite(first).any():
        panel.plot(at, np.nanmin(first) * below[: len(at)] / below[0], **BOUND_STYLE, **ORDER_STYLE)


def _by_learner(values: xr.DataArray) -> np.ndarray:
    return values.transpose("learner", ...).values


def _draw_order(panel: Axes, xs: np.ndarray, first: float, bound: np.ndarray, colour: str) -> None:
    """A bound that is known up to a factor, as a curve through the first mark, below the marks."""
    if np.isfinite(first) and first > 0 and np.isfinite(bound).all():
        panel.plot(xs, first * bound / bound[0], color=colour, zorder=1.5, **ORDER_STYLE)


def ability_intervals(abilities: xr.DataArray, *, title: str, labels: Mapping[str, str]) -> Figure:
    """Estimated abilities of items, one panel for every epsilon, with the spread that the noise of privacy makes.

    Args:
        abilities: dimensions estimator, epsilon, seed and item. Where a seed's value is NaN (a fit that failed) there
            is no mark, and the caption says so.
        title: of the figure.
        labels: legend text of each estimator.

    Returns:
        A figure with the median over seeds, and bars from the 2.5% to the 97.5% quantile.
    """
    low, middle, high = (abilities.quantile(q, "seed", skipna=False) for q in (0.025, 0.5, 0.975))
    epsilons, items = abilities.epsilon.values, [str(item) for item in abilities["item"].values]
    # The names share the figure's width with the panels; "$" is a character of a name, not the start of a formula.
    width = max(LEAST_WIDTH, 0.6 + max(text_width(item, "medium") for item in items) + 2.6 * len(epsilons))
    caption = (
        f"Marks: median of {seed_count(abilities.sizes['seed'])}. Bars: central 95% of seeds (2.5% to 97.5% quantile),"
        " the spread of privacy's noise alone." + _missing(middle.values)
    )
    below = ["ability (log odds; mean of all items = 0)", caption]
    figure = new_figure(width, 0.9 + 0.42 * len(items), title, _names(abilities, labels), below)
    panels = figure.subplots(1, len(epsilons), sharex=True, sharey=True, squeeze=False)
    estimators = abilities.estimator.values
    offsets = np.linspace(-0.24, 0.24, len(estimators))
    for panel, epsilon in zip(panels[0], epsilons, strict=True):
        for index, (estimator, offset) in enumerate(zip(estimators, offsets, strict=True)):
            point = {"estimator": estimator, "epsilon": epsilon}
            centre = middle.sel(point).values
            bars = np.stack([centre - low.sel(point).values, high.sel(point).values - centre])
            panel.errorbar(
                centre,
                np.arange(len(items)) + offset,
                xerr=np.maximum(bars, 0),  # rounding may make a bar of no length a negative one
                fmt=MARKERS[index % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
                markersize=4.5,
                capsize=2,
                linewidth=1.2,
            )
        panel.set_title(epsilon_label(epsilon))
        panel.grid(visible=True, axis="x", alpha=0.35)
        panel.axvline(0, color="#888888", linewidth=0.8)
    panels[0, 0].set_yticks(np.arange(len(items)), items, parse_math=False)
    panels[0, 0].set_ylim(len(items) - 0.5, -0.5)
    add_legend(figure, panels[0, 0].containers, title, _names(abilities, labels))
    return figure


def survival_curves(
    survival: xr.DataArray, agreement: xr.DataArray, *, winner: str, title: str, labels: Mapping[str, str]
) -> Figure:
    """How often a winner stays first, and how well rankings agree, at every epsilon.

    Args:
        survival: dimensions estimator, epsilon, seed; 1 where the winner comes first, else 0. Where a seed's value is
            NaN (a fit that failed) there is no mark, and the caption says so.
        agreement: the same dimensions; Kendall's tau with the ranking at no privacy.
        winner: its name.
        title: of the figure.
        labels: legend text of each estimator.

    Returns:
        A figure of two panels with 95% confidence intervals. Budgets are equally spaced, as infinity is one of them.
    """
    share, low, high = share_and_limits(survival)
    mean, half = mean_and_half_width(agreement)
    caption = (
        f"Left: share of {seed_count(survival.sizes['seed'])}, over privacy's noise alone; bars: its 95% confidence"
        " interval (Clopper-Pearson)."
        " Right: mean, bars: 95% confidence interval of that mean (Student's\u00a0t)."
        + _missing(np.stack([share.values, mean.values]))
    )
    figure = new_figure(LEAST_WIDTH * 1.6, 3.4, title, _names(survival, labels), ["ε", caption])
    panels = figure.subplots(1, 2, sharex=True)
    epsilons, estimators = survival.epsilon.values, survival.estimator.values
    offsets = np.linspace(-0.12, 0.12, len(estimators))
    for panel, centre, bars in (
        (panels[0], share, (share - low, high - share)),
        (panels[1], mean, (half.fillna(0), half.fillna(0))),
    ):
        for index, (estimator, offset) in enumerate(zip(estimators, offsets, strict=True)):
            sides = np.stack([side.sel(estimator=estimator).values for side in bars])
            panel.errorbar(
                np.arange(len(epsilons)) + offset,
                centre.sel(estimator=estimator).values,
                yerr=np.maximum(sides, 0),  # rounding may make a bar of no length a negative one
                fmt=MARKERS[index % len(MARKERS)] + LINES[index % len(LINES)],
                color=COLOURS[index % len(COLOURS)],
                markersize=4.5,
                capsize=2,
                linewidth=1.2,
            )
        panel.set_xticks(np.arange(len(epsilons)), ["∞" if np.isinf(value) else f"{value:g}" for value in epsilons])
        panel.grid(visible=True, alpha=0.35)
    panels[0].set_ylim(-0.03, 1.03)
    panels[0].set_ylabel(wrapped(f"how often {winner} comes first", 3.2, "medium"), parse_math=False)
    panels[1].set_ylabel("Kendall's tau with the ranking\nat no privacy")
    add_legend(figure, panels[0].containers, title, _names(survival, labels))
    return figure


def _log_limits(mean: np.ndarray, half: np.ndarray) -> tuple[float, float]:
    """The limits of a logarithmic axis that shows every mean and every band's upper end.

    A lower end counts where it is more than a tenth of its mean; one further below would stretch the axis without end.
    """
    low = np.where(mean - half > mean / 10, mean - half, mean)
    values = np.concatenate([np.ravel(values) for values in (low, mean, mean + half)])
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return 0.1, 1.0  # nothing to show
    bottom, top = values.min(), values.max()
    pad = (top / bottom) ** 0.04 * 1.02
    steps = np.outer(10.0 ** np.arange(np.floor(np.log10(bottom / pad)), np.log10(top * pad)), (1, 2, 5))
    if np.sum((steps >= bottom / pad) & (steps <= top * pad)) < 2:  # fewer ticks than a scale needs
        pad *= 2.5
    return float(bottom / pad), float(top * pad)


def _curves_caption(num_seeds: int, mean: np.ndarray, cut: np.ndarray) -> str:
    caption = f"Marks: mean of {seed_count(num_seeds)}."
    if num_seeds > 1:
        caption += " Bands: 95% confidence interval of that mean (Student's\u00a0t)."
    if np.any(cut):
        caption += " A band that meets the bottom edge goes on below it."
    return f"{caption} Both axes are logarithmic.{_missing(mean)}"


def _missing(marks: np.ndarray) -> str:
    return "" if np.isfinite(marks).all() else " No mark: a value was not finite for at least one seed."


def _names(values: xr.DataArray, labels: Mapping[str, str]) -> list[str]:
    return [labels.get(str(estimator), str(estimator)) for estimator in values.estimator.values]
