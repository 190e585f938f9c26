"""The study that compares learners, as data: a sweep over its axes, its tables of text, and its panels."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.core import Environment
from jaxdp.plotting import Figure
from jaxdp.registry import LearnerEntry
from jaxdp.simulation import Run, simulator, sweep
from jaxdp.stats import power_law, smallest_epsilon
from jaxdp.studies.arguments import fixed_delta
from jaxdp.studies.command import columns, mean_and_half_width
from jaxdp.studies.seeds import FEWEST_FOR_A_MEAN, no_verdict
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import check_choice

WITHIN = 0.1  # of the regret without privacy
UNIFORM = "uniform play"


# ---- the sweep -------------------------------------------------------------------------------------------------------
def compare(
    build: Callable[..., Run],
    static_axes: Mapping[str, Sequence[Any]],
    *,
    epsilon: Sequence[float],
    num_seeds: int,
    key: jax.Array,
    tile: int,
    order: Sequence[str] = (),
    **scheduling: Any,
) -> xr.Dataset:
    """Sweeps over learners, problems and sizes, which have a program each, and over epsilon.

    Args:
        build: (point of `static_axes`) -> the run of a learner on a problem.
        static_axes: what is compared.
        epsilon: privacy budgets.
        num_seeds: repetitions.
        key: root key.
        tile: lanes that are computed together on a CPU.
        order: of the first dimensions; that of `static_axes` by default.
        **scheduling: as `sweep` takes it.

    Returns:
        The outputs of the runs, of dimensions (*order, epsilon, round, seed), as far as the runs have them.
    """
    results = sweep(
        build,
        axes={"epsilon": list(epsilon)},
        static_axes=static_axes,
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(tile),
        **scheduling,
    )
    wanted = (*(order or static_axes), "epsilon", "round", "seed")
    return results.transpose(*(name for name in wanted if name in results.dims), ...)


def chosen(given: Sequence[str], known: Iterable[str], name: str = "learner") -> list[str]:
    """Returns the names that are given, or all known ones without any; an unknown name is a ValueError."""
    names = tuple(known)
    for each in given:
        check_choice(name, each, names)
    return list(given) or list(names)


def with_values(run: Run, values: Mapping[str, Any]) -> Run:
    """Returns the run with these values of `params` and `guarantee` settled."""
    return dataclasses.replace(run, params=partial(run.params, **values), guarantee=partial(run.guarantee, **values))


def at_the_end(run: Run, outputs: Sequence[str], values: Mapping[str, Any]) -> Run:
    """Returns the run with values settled, whose outputs are these after the last round."""
    simulate = run.simulate

    def last(key: jax.Array, params: object) -> Mapping[str, jax.Array]:
        found = simulate(key, params)
        return {name: found[name][-1] for name in outputs}

    return dataclasses.replace(with_values(run, values), simulate=last, dims=dict.fromkeys(outputs, ()), coords={})


def sized(entry: LearnerEntry, num_arms: int, horizon: int) -> LearnerEntry:
    """Returns the entry for so many arms and rounds; its other sizes, of a tiny problem, go to their defaults."""
    sizes: dict[str, Any] = {**dict.fromkeys(entry.sizes), "num_arms": num_arms, "horizon": horizon}
    if "explore_rounds" in sizes:  # which has no default
        sizes["explore_rounds"] = num_arms * math.ceil(horizon ** (2 / 3) / num_arms)
    return entry.sized(**sizes)


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
    """Returns the run of a registered learner of this size, by counts where it has them, else by `engine`."""
    entry = sized(entry, num_arms, horizon)
    learner = entry.make()
    run = simulator(learner, world, horizon, checkpoints=checkpoints, engine="counts" if learner.counts else engine)
    return with_values(run, fixed_delta(entry.values, delta, horizon))


def trust_models_of(entries: Mapping[str, LearnerEntry], names: Sequence[str]) -> list[str]:
    """Returns the trust model that each entry claims."""
    return [entries[name].make().guarantee(**entries[name].values).trust_model for name in names]


# ---- text ------------------------------------------------------------------------------------------------------------
def titled(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns rows as aligned text below a title; the heads are those of all columns but the first."""
    return "\n".join([title, *columns([["", *head], *rows])])


def budgets(results: xr.Dataset | xr.DataArray) -> list[str]:
    """Returns the heads of columns that stand for epsilon."""
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
    """Returns a row of `mean +- half width` for each label: means over seeds, with their 95% intervals.

    Args:
        values: of dimensions `by`, that of the columns, and seed.
        labels: of the rows, in their order, by values of `by`.
        by: dimension of the rows.
        half: half widths, where they are not those of Student's t over seeds.
        digits: behind the point.
        dash: whether a mean that is NaN is a dash.
    """
    mean, widths = mean_and_half_width(values)
    widths = widths if half is None else half
    form = f".{digits}f" if digits else ",.0f"

    def cell(middle: float, width: float) -> str:
        return "-" if dash and np.isnan(middle) else f"{middle:{form}} +- {width:{form}}"

    return [
        [label, *map(cell, mean.sel({by: name}).values, widths.sel({by: name}).values)]
        for name, label in labels.items()
    ]


def mean_table(
    title: str,
    values: xr.DataArray,
    labels: Mapping[Any, str],
    *,
    below: Mapping[str, Any] | None = None,
    head: Sequence[str] | None = None,
    **form: Any,
) -> str:
    """Returns the rows of `mean_rows` below a title, with further rows: whole numbers, or one for all columns.

    The columns are epsilon unless `head` names them.
    """
    head = budgets(values) if head is None else head
    rows = mean_rows(values, labels, **form)
    for label, numbers in (below or {}).items():
        rows.append([label, *(f"{value:,.0f}" for value in np.broadcast_to(numbers, len(head)))])
    return titled(title, head, rows)


def exponent(values: xr.DataArray, x: str, kept: np.ndarray | None = None, sign: int = 1) -> str:
    """Returns an exponent of the mean along x with its 95% interval; a dash where fewer than two points are kept."""
    values = values if kept is None else values.isel({x: np.flatnonzero(kept)})
    if values.sizes[x] < 2:
        return "-"
    fit = power_law(values, x)
    middle, *ends = (round(sign * float(fit[name]), 2) + 0.0 for name in ("exponent", "low", "high"))  # no -0.00
    low, high = sorted(ends)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def has_infinity(results: xr.Dataset) -> bool:
    """Returns whether there is something to compare with: no privacy."""
    return bool(np.isinf(results.epsilon.values).any())


def nearest_epsilon(results: xr.Dataset) -> float:
    """Returns the finite epsilon that is the nearest to 1, by logarithms; infinity if none is finite."""
    values = results.epsilon.values
    finite = values[np.isfinite(values)]
    return float(finite[np.abs(np.log(finite)).argmin()]) if len(finite) else math.inf


def enough_table(
    title: str,
    regret: xr.DataArray,
    free: xr.DataArray,
    head: Sequence[str],
    rows: Callable[[xr.DataArray], list[list[str]]],
    *,
    ending: str = "",
) -> str:
    """Returns from which epsilon on regret is shown to be within a tenth of `free`, that without privacy.

    `rows` makes rows of the smallest such epsilon of all other dimensions; `ending` ends the title of a table.
    """
    if (seeds := regret.sizes["seed"]) < FEWEST_FOR_A_MEAN:
        return f"{title}: {no_verdict(seeds, FEWEST_FOR_A_MEAN)}"
    found = smallest_epsilon(regret - (1 + WITHIN) * free, at_most=0.0)
    return titled(title + ending, head, rows(found))


def threshold(value: Any) -> str:
    """Returns an epsilon of `enough_table` as text."""
    return f"{float(value):g}" if math.isfinite(value) else "none of these"


# ---- panels ----------------------------------------------------------------------------------------------------------
class Line(NamedTuple):
    """A bound or a reference in a panel, by the arguments of `plotting.bound`."""

    at: Any
    heights: Any
    label: str
    through: Any = None


class Panel(NamedTuple):
    """A panel: values against `x`, or what privacy costs where that is empty; lines besides; keywords of its own."""

    values: xr.DataArray
    x: str = ""
    lines: Sequence[Line] = ()
    style: Mapping[str, Any] = {}


def draw(figure: Figure, panels: Iterable[Panel], **shared: Any) -> None:
    """Draws panels on the axes of a figure, one after the other, with a style that they share."""
    for ax, panel in zip(figure.axes, panels, strict=True):
        style = {**shared, **panel.style}
        if panel.x:
            plotting.curves(panel.values, x=panel.x, ax=ax, **style)
        else:
            plotting.cost_of_privacy(panel.values, ax=ax, **style)
        for line in panel.lines:
            draw_line(ax, line)


def draw_line(ax: Any, line: Line) -> None:
    """Draws a dotted line on axes."""
    plotting.bound(ax, line.at, line.heights, through=line.through, label=line.label)
