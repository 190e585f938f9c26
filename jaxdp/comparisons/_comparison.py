"""The result of a comparison, with its table, figure, claims and verdict."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from jaxdp import plotting
from jaxdp.comparisons import tables
from jaxdp.comparisons.tables import Cell, Contents
from jaxdp.plotting.figure import Figure
from jaxdp.plotting.labels import plain, title_of, unit_sentence
from jaxdp.plotting.records import note
from jaxdp.simulation import claims
from jaxdp.stats import all_pairs, mean_interval, seeds_needed
from jaxdp.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

FEWEST_SEEDS = 5
LEVEL = 0.05
MOST_CURVES = 7  # in one panel


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of learners in one world, or of estimators on one problem, at one or several budgets.

    Attributes:
        dataset: every output of every seed, as `sweep` returns it; the contestants are the labels of its dimension
            `along`.
        metric: the output that is compared.
        best: "least" if small values of the metric are good, or "largest" if large values are good.
        along: "learner" or "estimator".
        unpaired: names of the contestants that were simulated by counts, in other worlds than the other contestants.
    """

    dataset: xr.Dataset
    metric: str
    best: str = "least"
    along: str = "learner"
    unpaired: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return tables.as_html(self._contents())

    def values(self) -> xr.DataArray:
        """Returns the metric after the last round, at the last checkpoint if there are any, or of the estimate.

        The dimensions are `along`, unit, horizon, epsilon and seed; unit and horizon only if the comparison has them.
        """
        values = self.dataset[self.metric]
        values = values.isel(round=-1) if "round" in values.dims else values
        dims = [name for name in ("unit", "horizon") if name in values.dims]
        return values.transpose(self.along, *dims, "epsilon", "seed")

    def not_worse(self) -> xr.DataArray:
        """Returns whether each mean is the best mean or is not shown to be worse than the best mean.

        The result has the dimensions of `values` without seed. It is False for a mean that is not finite. Suppose that
        every contestant that is marked False and has a finite mean is declared worse than the contestant with the best
        mean at the same epsilon, unit and horizon. At each epsilon, unit and horizon, the probability that any of these
        declarations is wrong is at most 5% if means over seeds are normally distributed (Bonferroni's correction, over
        all pairs of contestants).

        Raises:
            ValueError: if all values of the metric are 0 or 1, and there are fewer than 72 seeds.
        """
        return not_worse(self._values_to_compare(), self.along, self.best)

    def table(self, format: str = "text") -> str:
        """Returns a table of means with 95% confidence intervals: a row for each contestant, a column for each budget.

        If the comparison has units or horizons, there is a column for each combination of unit, horizon and budget.

        Args:
            format: "text", "markdown", "latex" (needs the LaTeX package booktabs) or "csv" (one row for each mean, with
                its interval and `not_worse`).

        Raises:
            ValueError: if the format is unknown, or if `not_worse` raises.
        """
        return tables.FORMATS[check_choice("format", format, tuple(tables.FORMATS))](self._contents())

    def caption(self) -> str:
        """Returns the sentences below the table, which explain its numbers and marks."""
        return self._contents().caption

    def claims(self) -> "pd.DataFrame":
        """Returns a table with the privacy claim of each contestant at each budget, as `jaxdp.claims` returns it."""
        return claims(self.dataset)

    def verdict(self, epsilon: float | None = None, horizon: int | None = None, unit: str | None = None) -> str:
        """Returns a sentence with the best mean, the contestants that are not shown to be worse, and the others.

        Args:
            epsilon: the budget; may be None if the comparison has only one.
            horizon: the horizon, or with checkpoints the last checkpoint; may be None if the comparison has only one
                horizon.
            unit: "round" or "person"; may be None if the comparison does not have both, and must be None if it was made
                without a unit.

        Raises:
            ValueError: if the comparison has no such epsilon, horizon or unit; if no contestant has a finite mean; or
                if `not_worse` raises.
        """
        choices = {"epsilon": epsilon, "horizon": horizon, "unit": unit}
        chosen = {name: self._choose(name, value) for name, value in choices.items()}
        column = {name: value for name, value in chosen.items() if name in self.values().dims}
        contents = self._contents()
        cells = {name: row[contents.columns.index(column)] for name, row in contents.rows.items()}
        missing = [name for name in cells if not math.isfinite(cells[name].mean)]
        sign = 1 if self.best == "least" else -1
        order = sorted((name for name in cells if name not in missing), key=lambda name: sign * cells[name].mean)
        if not order:
            raise ValueError(f"{self.metric} must have a finite mean for some contestant, got none")
        models = contents.trust
        labels_of = {name: f"{name} ({models[name]})" if len({*models.values()}) > 1 else name for name in cells}
        first, *other_names = order
        equal = [labels_of[name] for name in other_names if cells[name].not_worse]
        worse = [labels_of[name] for name in other_names if not cells[name].not_worse]
        per = f" per {column['unit']}" if "unit" in column else ""
        when = plotting.epsilon_label(column["epsilon"]) + per + self._rounds(column.get("horizon"))
        parts = [f"At {when}, {labels_of[first]} has the {self.best} mean {self._metric_text()}, {cells[first].text()}"]
        if equal:
            parts.append(f"{_list(equal)} {'is' if len(equal) == 1 else 'are'} not shown to be worse")
        if worse:
            parts.append(f"{_list(worse)} {'is' if len(worse) == 1 else 'are'} worse")
        if missing:
            parts.append(f"{_list([labels_of[name] for name in missing])}: no finite mean")
        seeds = plotting.seed_count(self.dataset.sizes["seed"])
        return f"{'; '.join(parts)} ({seeds}, 95% confidence for all pairs together)."

    def plot(self, **options: Any) -> Axes:
        """Draws the metric against epsilon or, if there is only one budget, against rounds or horizons (if any).

        With several budgets and a list of horizons, the figure shows the last horizon. If there are more than seven
        curves, the six curves with the best means at the middle budget are coloured and all others are grey. The option
        `highlight` chooses other curves to colour. (A contestant has one curve for each unit.)

        Args:
            **options: further arguments of `plotting.curves`.

        Returns:
            The axes.
        """
        ax = self._plot(options)
        note(ax, self._trust_sentence())
        if isinstance(figure := ax.get_figure(root=True), Figure):
            figure.refresh()
        return ax

    def _plot(self, options: dict[str, Any]) -> Axes:
        values = self._without_unit(self.dataset[self.metric])
        options = {"highlight": self._highlight(), **options}
        if "horizon" in values.dims:
            if values.sizes["epsilon"] == 1:
                return plotting.curves(values, x="horizon", hue=self.along, **options)
            last = int(values["horizon"].values[-1])
            options = {"title": f"after {last:,} rounds", **options}
            return plotting.curves(values.sel(horizon=last, drop=True), x="epsilon", hue=self.along, **options)
        if is_against_rounds(values):
            return plotting.curves(values.isel(epsilon=0), x="round", hue=self.along, **options)
        return plotting.cost_of_privacy(values, hue=self.along, **options)

    def _highlight(self) -> list[str] | None:
        means = self._without_unit(self.values()).astype(float).mean("seed")
        means = means.isel(horizon=-1) if "horizon" in means.dims else means
        means = means.sortby("epsilon").isel(epsilon=means.sizes["epsilon"] // 2)
        names = means.sortby(means, ascending=self.best == "least")[self.along].values.tolist()
        return None if len(names) <= MOST_CURVES else names[: MOST_CURVES - 1]

    def _without_unit(self, values: xr.DataArray) -> xr.DataArray:
        """Removes the dimension of units; if there are two units, adds the unit to each contestant's name."""
        if "unit" not in values.dims:
            return values
        if values.sizes["unit"] == 1:
            return values.isel(unit=0)
        pairs = values.stack(pair=("unit", self.along))
        names = [f"{name} per {unit}" for unit, name in pairs["pair"].values]
        return pairs.drop_vars(["pair", "unit", self.along]).rename(pair=self.along).assign_coords({self.along: names})

    def _choose(self, name: str, value: Any) -> Any:
        if name in self.values().dims:
            choices = self.dataset[name].values.tolist()
        else:  # a single horizon is no dimension; its value is the last round
            choices = (
                self.dataset["round"].values.tolist()[-1:] if name == "horizon" and "round" in self.dataset else []
            )
        if value is None and len(choices) < 2:
            return choices[0] if choices else None
        if not choices:
            raise ValueError(f"{name} must be None for a comparison without {name}s, got {value}")
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(_text, choices))}, got {value}")
        return value

    def _values_to_compare(self) -> xr.DataArray:
        values = self.values()
        numbers, seeds = values.values, values.sizes["seed"]
        if bool(np.isin(numbers, (0, 1)).all()) and seeds < (needed := seeds_needed(0.95, sides=2)):
            raise ValueError(
                f"num_seeds must be >= {needed} to compare shares such as {self.metric}, whose values are 0 or 1, "
                f"got {seeds}"
            )
        return values

    def _contents(self) -> Contents:
        values, not_worse = self._values_to_compare(), self.not_worse()
        interval = mean_interval(values)
        names = [str(name) for name in values[self.along].values]
        axes = [str(dim) for dim in not_worse.dims if dim != self.along]
        points = itertools.product(*(values[axis].values.tolist() for axis in axes))
        columns = [dict(zip(axes, point, strict=True)) for point in points]
        shape = len(names), len(columns)
        parts = [interval[part].values.reshape(shape).tolist() for part in ("mean", "low", "high")]
        cells = zip(*parts, not_worse.values.reshape(shape).tolist(), strict=True)  # one row for each contestant
        rows = {name: list(map(Cell, *row)) for name, row in zip(names, cells, strict=True)}
        units = dict(zip(names, self._privacy_units(values).reshape(shape).tolist(), strict=True))
        return Contents(columns, rows, self._trust(names), units, self.unpaired, self._caption(), self.metric)

    def _trust(self, names: Sequence[str]) -> dict[str, str]:
        table = self.claims()
        key = self.along if self.along in table else "algorithm"
        return {name: str(table[table[key] == name].trust_model.iloc[0]) for name in names}

    def _trust_sentence(self) -> str:
        """Returns a sentence on the trust models of contestants that claim privacy, for captions; "" without claims."""
        table = self.claims()
        with_claims = table[table.kind != "none"]
        key = self.along if self.along in table else "algorithm"
        groups = {str(model): list(dict.fromkeys(rows[key])) for model, rows in with_claims.groupby("trust_model")}
        if len(groups) > 1:
            parts = [f"{model} ({', '.join(map(plain, names))})" for model, names in groups.items()]
            return f"Trust models: {', '.join(parts)}."
        return "".join(f"Trust model: {model}." for model in groups)

    def _privacy_units(self, values: xr.DataArray) -> np.ndarray:
        """Returns the privacy unit of each mean; "" if the unit is unknown or there is no claim."""
        means = values.isel(seed=0, drop=True)
        return xr.broadcast(means.coords.get("privacy_unit", xr.DataArray("")), means)[0].transpose(*means.dims).values

    def _metric_text(self) -> str:
        return title_of(self.dataset[self.metric])

    def _rounds(self, horizon: int | None = None) -> str:
        if horizon is None and "round" in self.dataset.coords:
            horizon = int(self.dataset["round"].values[-1])
        return "" if horizon is None else f" after {horizon:,} rounds"

    def _caption(self) -> str:
        seeds = plotting.seed_count(self.dataset.sizes["seed"])
        other = "larger" if self.best == "least" else "smaller"
        sentences = [
            f"Mean {self._metric_text()}{self._rounds()} over {seeds}, with the half width of its 95% confidence "
            "interval (Student's t).",
            *filter(None, [unit_sentence(self.dataset)]),
            f"{tables.MARKED}: the {self.best} mean of a column, and means that are not shown to be {other} at the 5% "
            "level, corrected for all pairs of the column (Bonferroni).",
        ]
        if (count := self.dataset.sizes["seed"]) < seeds_needed(0.95):
            bound = 1 - LEVEL ** (1 / count)
            sentences.append(f"An event that happened in no seed may have a probability of up to {bound:.0%}.")
        if self.unpaired:
            sentences.append(f"Unpaired, on different worlds (played by counts): {_list(self.unpaired)}.")
        return " ".join(sentences)


def is_against_rounds(values: xr.DataArray) -> bool:
    """Returns whether values are drawn against rounds, because they have one budget and several checkpoints."""
    return values.sizes["epsilon"] == 1 and values.sizes.get("round", 1) > 1


def not_worse(values: xr.DataArray, along: str, best: str = "least") -> xr.DataArray:
    """Returns whether each mean over seeds is the best along a dimension or is not shown to be worse than the best.

    `values` have the dimension "seed"; `best` is "least" or "largest". Tests are at the 5% level, corrected for all
    pairs. The result is False for a mean that is not finite.
    """
    sign = 1 if best == "least" else -1
    signed = sign * values.astype(float)
    pairs = all_pairs(signed, along, confidence=1 - LEVEL)
    means = signed.mean("seed", skipna=False)
    is_finite = xr.apply_ufunc(np.isfinite, means)
    beside_least = pairs.isel(against=means.where(is_finite, math.inf).argmin(along))
    is_worse = (beside_least.p_adjusted <= LEVEL) | ~is_finite
    return ~is_worse.transpose(*means.dims)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
