"""Helpers for studies that compare learners: sweeps, text tables, and panels of a figure."""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.core import Environment
from jaxdp.plotting import Figure
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.registry.titles import display_name
from jaxdp.simulation import Run, simulator, sweep
from jaxdp.stats import power_law, smallest_epsilon
from jaxdp.studies.arguments import fixed_delta
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.seeds import FEWEST_FOR_A_MEAN, no_verdict
from jaxdp.studies.tables import table_of
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import check_choice

WITHIN = 0.1  # maximum excess regret, relative to the non-private regret
UNIFORM = "uniform play"
UTILITY_REGRET = "cumulative regret (in utility)"


# ---- the sweep -------------------------------------------------------------------------------------------------------
def compare(
    build: Callable[..., Run],
    static_axes: Mapping[str, Sequence[Any]],
    *,
    num_seeds: int,
    key: jax.Array,
    tile: int,
    epsilon: Sequence[float],
    fixed: Mapping[str, float] | None = None,
    order: Sequence[str] = (),
    **scheduling: Any,
) -> xr.Dataset:
    """Runs a sweep over epsilon, and over learners, problems and sizes (static axes), which need separate programs.

    Args:
        build: function from a point of `static_axes` to the run of a learner on a problem.
        static_axes: the learners, problems and sizes to compare.
        num_seeds: number of repetitions.
        key: root PRNG key.
        tile: tile size (number of lanes) on a CPU.
        epsilon: privacy budgets.
        fixed: parameter values that are the same in all runs; they become scalar coordinates.
        order: the first dimensions of the results, in order; by default the keys of `static_axes`.
        **scheduling: further arguments of `sweep`.

    Returns:
        The outputs of the runs, with the dimensions (*order, epsilon, round, seed, *other dimensions of the outputs).
        Runs without rounds have no dimension `round`.
    """
    fixed = fixed or {}
    results = sweep(
        build,
        axes={"epsilon": list(epsilon), **{name: [value] for name, value in fixed.items()}},
        static_axes=static_axes,
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(tile, scheduling),
        **scheduling,
    ).squeeze(list(fixed))
    dims = (*(order or static_axes), "epsilon", "round", "seed")
    return results.transpose(*(name for name in dims if name in results.dims), ...)


def select_names(names: Sequence[str], known: Iterable[str], argument: str = "learner") -> list[str]:
    """Returns `names`, or all known names if `names` is empty; raises ValueError for an unknown name."""
    known = tuple(known)
    for name in names:
        check_choice(argument, name, known)
    return list(names) or list(known)


def bind_values(run: Run, values: Mapping[str, Any]) -> Run:
    """Returns a copy of the run with keyword arguments `values` bound in its functions `params` and `guarantee`."""
    return dataclasses.replace(run, params=partial(run.params, **values), guarantee=partial(run.guarantee, **values))


def keep_last_round(run: Run, outputs: Sequence[str], values: Mapping[str, Any]) -> Run:
    """Returns a run that has only the named `outputs`, and only their values after the last round.

    The keyword arguments in `values` are bound in the run's functions `params` and `guarantee`.
    """
    simulate = run.simulate

    def last(key: jax.Array, params: object) -> Mapping[str, jax.Array]:
        recorded = simulate(key, params)
        return {name: recorded[name][-1] for name in outputs}

    return dataclasses.replace(bind_values(run, values), simulate=last, dims=dict.fromkeys(outputs, ()), coords={})


def distinct_learners(
    left_out: Collection[str], is_candidate: Callable[[LearnerEntry], bool]
) -> dict[str, LearnerEntry]:
    """Returns the registered learners for which `is_candidate` is true, keyed by name.

    An entry's variant is the dict of options that distinguish it from other entries of its factory. The options
    `left_out` are first removed. If several entries then have the same factory and variant, only the first entry is
    returned.
    """
    candidates: dict[str, LearnerEntry] = {}
    for name, entry in LEARNERS.items():
        variant = {key: value for key, value in entry.variant.items() if key not in left_out}
        entry = dataclasses.replace(entry, variant=variant)
        is_new = all((entry.factory, variant) != (other.factory, other.variant) for other in candidates.values())
        if is_new and is_candidate(entry):
            candidates[name] = entry
    return candidates


def resize(entry: Any, horizon: int, **sizes: int) -> Any:
    """Returns a registered entry at other sizes: for `horizon` rounds or labels, and for num_arms arms or experts.

    Sizes that are not given have the defaults of the factory, except `explore_rounds`, which is about `horizon`^(2/3).
    """
    known = {**sizes, "num_experts": sizes.get("num_arms"), "num_samples": horizon, "horizon": horizon}
    names = (*entry.sizes, "horizon") if isinstance(entry, LearnerEntry) else entry.sizes
    chosen = {name: known.get(name) for name in names}
    if "explore_rounds" in chosen:  # it has no default
        chosen["explore_rounds"] = sizes["num_arms"] * math.ceil(horizon ** (2 / 3) / sizes["num_arms"])
    return entry.sized(**chosen)


def entry_run(
    entry: LearnerEntry,
    world: Environment,
    num_arms: int,
    horizon: int,
    *,
    checkpoints: Sequence[int],
    delta: float,
    engine: Any = "auto",
) -> Run:
    """Returns the run of a registered learner in `world`, with `num_arms` arms and `horizon` rounds.

    The engine is "counts" if the learner supports it, and otherwise `engine`. `delta` is passed to learners that take a
    delta.
    """
    entry = resize(entry, horizon, num_arms=num_arms)
    learner = entry.make()
    run = simulator(learner, world, horizon, checkpoints=checkpoints, engine="counts" if learner.counts else engine)
    return bind_values(run, fixed_delta(entry.values, delta, horizon))


def trust_models_of(entries: Mapping[str, LearnerEntry], names: Sequence[str]) -> list[str]:
    """Returns the trust model that each entry claims."""
    return [entries[name].make().guarantee(**entries[name].values).trust_model for name in names]


def learner_labels(groups: xr.DataArray) -> dict[str, str]:
    """Returns "GROUP: DISPLAY NAME" for every learner, for legends and tables with several groups.

    Args:
        groups: a coordinate along one dimension of names, such as `results.trust_model` along `learner`.
    """
    names = [str(name) for name in groups[groups.dims[0]].values]
    model_of = [str(group).split(",")[0] for group in groups.values]  # without the kind of claim
    labels = [
        f"{group}: {display_name(name, without=model)}"
        for name, group, model in zip(names, groups.values, model_of, strict=True)
    ]
    if len(set(labels)) < len(names):  # some names differ only in the group
        labels = [f"{group}: {display_name(name)}" for name, group in zip(names, groups.values, strict=True)]
    return dict(zip(names, labels, strict=True))


# ---- text ------------------------------------------------------------------------------------------------------------
def format_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Formats rows as aligned columns below a title; `head` has the headings of all columns except the first."""
    return table_of(title, [["", *head], *rows])


def epsilon_headers(results: xr.Dataset | xr.DataArray) -> list[str]:
    """Returns a heading for each epsilon."""
    return [plotting.epsilon_label(value) for value in results.epsilon.values]


def mean_rows(
    values: xr.DataArray,
    labels: Mapping[Any, str],
    *,
    by: str = "learner",
    half: xr.DataArray | None = None,
    digits: int = 0,
    dash: bool = False,
) -> list[list[str]]:
    """Formats a row of `mean +- half width` for each label, with means over seeds and their 95% intervals.

    Args:
        values: values with the dimensions `by`, seed, and one dimension for the columns.
        labels: maps values of `by` to labels of the rows, in the order of the rows.
        by: dimension of the rows.
        half: half widths of the intervals. None computes them by Student's t over seeds.
        digits: digits after the decimal point.
        dash: whether a NaN mean is printed as a dash.
    """
    mean, widths = mean_and_half_width(values)
    form = f".{digits}f" if digits else ",.0f"

    def cell(middle: float, width: float) -> str:
        return "-" if dash and np.isnan(middle) else f"{middle:{form}} +- {width:{form}}"

    return format_rows(labels, cell, mean, widths if half is None else half, by=by)


def format_rows(
    labels: Mapping[Any, str], form: Callable[..., str], *values: xr.DataArray, by: str = "learner"
) -> list[list[str]]:
    """Formats a row for each label.

    Args:
        labels: maps values of `by` to labels of the rows, in the order of the rows.
        form: function that formats a cell from one number of each of `values`.
        *values: arrays with the dimension `by` and one dimension for the columns.
        by: dimension of the rows.
    """
    return [[label, *map(form, *(part.sel({by: name}).values for part in values))] for name, label in labels.items()]


def mean_table(
    title: str,
    values: xr.DataArray,
    labels: Mapping[Any, str],
    *,
    below: Mapping[str, Any] | None = None,
    head: Sequence[str] | None = None,
    **form: Any,
) -> str:
    """Formats a table with a title, the rows by `mean_rows`, and then the rows `below`.

    Each row of `below` has one number for each column, or one number for all columns. The columns are values of
    epsilon, unless `head` has other headings. `form` are further arguments of `mean_rows`.
    """
    head = epsilon_headers(values) if head is None else head
    rows = mean_rows(values, labels, **form)
    for label, numbers in (below or {}).items():
        rows.append([label, *(f"{value:,.0f}" for value in np.broadcast_to(numbers, len(head)))])
    return format_table(title, head, rows)


def exponent(values: xr.DataArray, x: str, is_used: np.ndarray | None = None, sign: int = 1) -> str:
    """Formats the fitted exponent a of mean ~ x^a with its 95% interval; a dash if fewer than two points are used.

    `x` names a dimension of the values. `is_used` selects points along it; None selects all points. With sign = -1, the
    text has -a.
    """
    values = values if is_used is None else values.isel({x: np.flatnonzero(is_used)})
    if values.sizes[x] < 2:
        return "-"
    fit = power_law(values, x)
    middle, *ends = (round(sign * float(fit[name]), 2) + 0.0 for name in ("exponent", "low", "high"))  # no -0.00
    low, high = sorted(ends)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def has_infinity(results: xr.Dataset) -> bool:
    """Returns whether the results include non-private runs (an infinite epsilon)."""
    return bool(np.isinf(results.epsilon.values).any())


def nearest_epsilon(results: xr.Dataset) -> float:
    """Returns the finite epsilon nearest to 1 on a logarithmic scale; infinity if none is finite."""
    values = results.epsilon.values
    finite = values[np.isfinite(values)]
    return float(finite[np.abs(np.log(finite)).argmin()]) if len(finite) else math.inf


def sufficient_epsilon_table(
    title: str,
    regret: xr.DataArray,
    free: xr.DataArray,
    head: Sequence[str],
    rows: Callable[[xr.DataArray], list[list[str]]],
    *,
    ending: str = "",
) -> str:
    """Formats the smallest epsilon from which on tests show that regret is at most 1.1 times the non-private regret.

    `free` is the non-private regret. `rows` makes the table's rows from an array of these epsilons, which has the
    dimensions of the regret except epsilon and seed. `ending` is appended to the title.
    """
    if (seeds := regret.sizes["seed"]) < FEWEST_FOR_A_MEAN:
        return f"{title}: {no_verdict(seeds, FEWEST_FOR_A_MEAN)}"
    sufficient = smallest_epsilon(regret - (1 + WITHIN) * free, at_most=0.0)
    return format_table(title + ending, head, rows(sufficient))


def format_threshold(value: Any) -> str:
    """Formats an epsilon as a number, or as "none of these" if it is NaN or infinite."""
    return f"{float(value):g}" if math.isfinite(value) else "none of these"


# ---- panels ----------------------------------------------------------------------------------------------------------
class Line(NamedTuple):
    """A bound or reference line in a panel; its fields are arguments of `plotting.bound`."""

    at: Any
    heights: Any
    label: str
    through: Any = None


class Panel(NamedTuple):
    """A panel with values against `x`, or against epsilon if `x` is empty; additional lines; keywords for plotting."""

    values: xr.DataArray
    x: str = ""
    lines: Sequence[Line] = ()
    style: Mapping[str, Any] = {}


def draw_growth(regret: xr.DataArray, hue: str, col: str, also: Callable[..., Any], **style: Any) -> tuple[Figure, Any]:
    """Draws regret against rounds on logarithmic axes, with one panel for each value of `col`.

    Returns the figure and the axes of an additional empty panel. `also` draws more on each panel, as in
    `plotting.facets`; `style` are keywords for all panels.
    """
    options = {"also": also, "spare": 1, "sharex": False, "xscale": "log", "yscale": "log"}
    figure = plotting.facets(regret, x="round", hue=hue, col=col, ylabel=UTILITY_REGRET, **options, **style)
    return figure, figure.axes[regret.sizes[col]]


def draw(figure: Figure, panels: Iterable[Panel], **shared: Any) -> None:
    """Draws panels on the axes of a figure, in order; `shared` are keywords for all panels."""
    for ax, panel in zip(figure.axes, panels, strict=True):
        style = {**shared, **panel.style}
        if panel.x:
            plotting.curves(panel.values, x=panel.x, ax=ax, **style)
        else:
            plotting.cost_of_privacy(panel.values, ax=ax, **style)
        for line in panel.lines:
            draw_line(ax, line)


def draw_line(ax: Any, line: Line) -> None:
    """Draws a bound as a grey line. If `line.through` is given, draws it dotted and scaled, so that it starts there."""
    plotting.bound(ax, line.at, line.heights, through=line.through, label=line.label)
