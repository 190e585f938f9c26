"""Standings of learners, with a table for each combination of family, trust model, privacy unit and kind of claim."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.comparisons import tables
from jaxdp.comparisons._comparison import MOST_CURVES, not_worse
from jaxdp.comparisons.tables import Cell, Contents
from jaxdp.plotting.style import grey_style, style
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.stats import mean_interval
from jaxdp.suite import _attack, v1

Group = tuple[str, str, str, str]  # family, trust model, privacy unit (with the number of visits), kind of claim
LEAST_SCORES = {str(family): 1e-4 for family in v1.FAMILIES}  # replaces smaller mean scores in summaries and figures
LEAST_SCORES["rewards"] = 1e-2  # for rankings, the error is the distance from the non-private estimate, and can be 0
PER_UNIFORM = "regret divided by the regret of uniform play"
FORMATS = ("markdown", "text", "latex", "csv")


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns all results in a folder, keyed by the learner's name and, if they apply, " (tuned)" and " (person)".

    Raises:
        ValueError: if the folder has no results; if a result was played with another version of the suite; if results
            differ in their protocol or number of seeds; if two files have the same key; or if a file is damaged or
            incomplete.
    """
    records: dict[str, dict[str, Any]] = {}
    num_seeds = None
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"standings must be a folder of results, got {path}, which is not JSON") from error
        if not isinstance(record, dict) or record.get("suite_hash") != v1.suite_hash():
            raise ValueError(f"standings must be a folder of results of this version of the suite, got {path}")
        if missing := _missing(record):
            raise ValueError(f"standings must be a folder of complete results, got {path} without {missing}")
        first = next(iter(records.values()), record)
        if record["protocol"] != first["protocol"]:
            raise ValueError(
                f"standings must have one protocol, got {first['protocol']} and, in {path}, {record['protocol']}"
            )
        for instance, played in record["instances"].items():
            for values in played.get("values", {}).values():
                if (num_seeds := num_seeds or len(values)) != len(values):
                    raise ValueError(
                        f"standings must have one number of seeds, got {num_seeds} and, in {path} for {instance}, "
                        f"{len(values)}; play this learner again"
                    )
        if (name := _label(record)) in records:
            raise ValueError(f"standings must have one file for each learner, got a second one for {name}: {path}")
        records[name] = record
    if not records:
        raise ValueError(f"standings must be a folder with results of `bench`, got {folder}, which has none")
    return records


def _missing(record: Mapping[str, Any]) -> str:
    """Returns the name of the first field that is missing in a record of results; empty if the record is complete."""
    for name in ("protocol", "unit", "learner", "tuned", "proof", "attack", "instances"):
        if name not in record:
            return name
    for name in ("attack", "instances"):
        if not isinstance(record[name], dict):
            return f"an object named {name}"
    played = {name: part for name, part in record["instances"].items() if "skipped" not in part}
    for name, part in played.items():
        epsilons = part.get("values", {})
        if missing := [f"{epsilon:g}" for epsilon in v1.EPSILONS if f"{epsilon:g}" not in epsilons]:
            return f"values of {name} at epsilon {missing[0]}"
        if "1" not in part.get("claims", {}):
            return f"a claim of {name} at epsilon 1"
    return "" if played else "an instance that was played"


def standings(records: Mapping[str, Mapping[str, Any]], format: str = "markdown") -> str:
    """Formats all standings, in one of `FORMATS`.

    CSV has one table of all scores, with columns for the family, the trust model, the privacy unit and the kind of
    claim. In other formats, all rows of a table agree in these four. In Markdown, where wide tables would be broken
    into several lines, each instance (problem of the benchmark) has a table of its own.
    """
    if format == "csv":
        return _as_csv(records)
    texts = []
    for group, scores in score_tables(records).items():
        title = f"{group[0]}: {group[1]} model, {group[2]}, {'no' if group[3] == 'none' else group[3]} claims"
        contents, (rows, note) = _contents(scores, records, group), _summary(scores, records, group)
        if format == "latex":
            escaped = [[cell.translate(tables.LATEX) for cell in row] for row in rows]
            texts.append(tables.latex_table(escaped, f"{title}. {note}"))
            texts.append(tables.as_latex(contents._replace(caption=f"{title}. {contents.caption}")))
        elif format == "text":
            lines = [line.rstrip() for line in tables.align(rows)]
            texts += [title, "\n".join([*lines, "", *textwrap.wrap(note, tables.WIDTH)]), tables.as_text(contents)]
        else:
            parts = _by_instance(contents, scores.sizes["epsilon"])
            captions = [*[""] * (len(parts) - 1), contents.caption]
            texts += [f"## {title}", tables.markdown_table(rows, len(rows[0])), note]
            texts += [
                tables.as_markdown(part._replace(caption=caption)).rstrip()
                for part, caption in zip(parts, captions, strict=True)
            ]
    return "\n\n".join(texts)


def _as_csv(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Formats all scores as one table in CSV. A row has one learner's score on one instance at one epsilon."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    heads = ["family", "trust_model", "privacy_unit", "kind", "learner", "instance", "epsilon", "mean", "low", "high"]
    writer.writerow([*heads, "not_worse", "privacy", "proof"])
    for group, scores in score_tables(records).items():
        contents = _contents(scores, records, group)
        for name, cells in zip(scores.learner.values.tolist(), contents.rows.values(), strict=True):
            ends = (_privacy(records[name], group[0]), _proof(records[name]))
            for column, cell in zip(contents.columns, cells, strict=True):
                if not math.isnan(cell.mean):  # NaN: the instance was not played
                    numbers = map(repr, map(float, (cell.mean, cell.low, cell.high)))
                    writer.writerow([*group, name, *column.values(), *numbers, int(cell.not_worse), *ends])
    return file.getvalue().rstrip("\n")


def draw_standings(records: Mapping[str, Mapping[str, Any]]) -> plotting.Figure:
    """Draws the mean log score of every learner that played all instances of its table and has finite mean scores.

    There is one panel for each table that has at least two instances and at least one such learner. Mean scores below
    `LEAST_SCORES` are replaced by `LEAST_SCORES`.

    Raises:
        ValueError: if there is no such table.
    """
    drawn = {}
    for group, scores in score_tables(records).items():
        least = LEAST_SCORES[group[0]]
        means = xr.apply_ufunc(np.log10, scores.mean("seed", skipna=False).clip(min=least))
        means = means.where(np.isfinite(means))
        if means.sizes["instance"] > 1 and len(complete := means.dropna("learner")["learner"]):
            drawn[group] = means.sel(learner=complete)
    if not drawn:
        raise ValueError("standings must have a learner that played all instances of its table, got none")
    figure = plotting.panels(-(-len(drawn) // 2), min(2, len(drawn)), width=5.0, height=3.4)
    positions = range(len(v1.EPSILONS))
    for ax, (group, means) in zip(figure.axes, drawn.items(), strict=False):
        means = means.mean("instance").transpose("learner", "epsilon")
        for index, name in enumerate(means.sortby(means.mean("epsilon"))["learner"].values.tolist()):
            look = style(index, ax) if index < MOST_CURVES else grey_style()
            label = _display_name(name, records, group) if index < MOST_CURVES else "_others"  # not in the legend
            ax.plot(positions, means.sel(learner=name), label=label, **look)
        ax.set_xticks(positions, [tables.format_budget(epsilon) for epsilon in v1.EPSILONS])
        ax.set(
            title=f"{group[0]}, {group[1]}, {'no claim' if group[3] == 'none' else group[3]},\n{group[2]}",
            xlabel="ε",
            ylabel="mean over instances of log10 score",
        )
        ax.legend()
    for ax in figure.axes[len(drawn) :]:
        ax.set_visible(False)
    return figure


def left_out(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns texts that name the learners that `draw_standings` leaves out of a panel.

    Each text also has the number of instances in which all scores of the learner are finite. A panel shows only
    learners with finite scores in all instances of its table, because means over different sets of instances cannot be
    compared. A table with one instance has no panel.
    """
    texts = []
    for group, scores in score_tables(records).items():
        total = scores.sizes["instance"]
        counts = xr.apply_ufunc(np.isfinite, scores).all(["epsilon", "seed"]).sum("instance")
        texts += [
            f"{name} ({int(counts.sel(learner=name))} of {total} instances of {group[0]})"
            for name in scores.learner.values.tolist()
            if int(counts.sel(learner=name)) < total or total == 1
        ]
    return texts


def score_tables(records: Mapping[str, Mapping[str, Any]]) -> dict[Group, xr.DataArray]:
    """Returns the scores of each table: (learner, instance, epsilon, seed)."""
    groups: dict[Group, list[str]] = {}
    for name, record in records.items():
        for group in dict.fromkeys(_group(record, instance) for instance in record["instances"]):
            if group is not None:
                groups.setdefault(group, []).append(name)
    order = sorted(groups, key=lambda group: (v1.FAMILIES.index(group[0]), *group[1:]))
    return {group: _scores({name: records[name] for name in groups[group]}, group) for group in order}


def _label(record: Mapping[str, Any]) -> str:
    notes = [*(["tuned"] if record["tuned"] else []), *(["person"] if record["unit"] == "person" else [])]
    return record["learner"] + "".join(f" ({note})" for note in notes)


def _group(record: Mapping[str, Any], instance: str) -> Group | None:
    """Returns the table for an instance's results, given by their claim at epsilon 1; None without results."""
    played = record["instances"][instance]
    if "skipped" in played:
        return None
    claim = played["claims"]["1"]
    visits, unit = f" of {v1.VISITS} visits", claim["privacy_unit"]
    if record["unit"] == "person":
        unit += visits
    elif unit.endswith(visits):  # the claim itself has this ending; this keeps the row out of the table for persons
        unit += ", played per round"
    return instance.partition(".")[0], claim["trust_model"], unit, claim["kind"]


def _instances_of(record: Mapping[str, Any], group: Group) -> dict[str, Mapping[str, Any]]:
    """Returns a learner's results on the instances of a table, keyed by instance."""
    return {name: played for name, played in record["instances"].items() if _group(record, name) == group}


def _scores(records: Mapping[str, Mapping[str, Any]], group: Group) -> xr.DataArray:
    """Returns each metric divided by the instance's unit of scores: (learner, instance, epsilon, seed).

    The unit is `Instance.uniform`. This is the regret of uniform play or, for reward estimation, the error of the zero
    vector. The score is NaN if the instance was not played, and infinite if the metric of a played instance is NaN.
    """
    names = [name for name in v1.INSTANCES if any(name in _instances_of(record, group) for record in records.values())]
    rows = []
    for record in records.values():
        played = _instances_of(record, group)
        quick = record["protocol"].startswith("quick")
        seeds = len(next(iter(played.values()))["values"]["1"])
        missing = np.full((len(v1.EPSILONS), seeds), np.nan)
        rows.append(
            [
                _without_nan([played[name]["values"][f"{epsilon:g}"] for epsilon in v1.EPSILONS])
                / v1.INSTANCES[name].uniform(quick)
                if name in played
                else missing
                for name in names
            ]
        )
    coords = {"learner": list(records), "instance": names, "epsilon": list(v1.EPSILONS)}
    return xr.DataArray(np.asarray(rows), coords, ("learner", "instance", "epsilon", "seed"))


def _without_nan(values: Any) -> np.ndarray:
    return np.where(np.isnan(values), np.inf, values)


def _is_refuted(record: Mapping[str, Any], family: str) -> bool:
    """Returns whether an attack refuted a learner's claim in a family."""
    return any(attack.get("refuted", False) for name, attack in record["attack"].items() if _family(name) == family)


def _family(instance: str) -> str:
    return instance.partition(".")[0]


def _display_name(name: str, records: Mapping[str, Mapping[str, Any]], group: Group) -> str:
    """Returns a learner's name in a table or legend; Matplotlib would leave out a label that begins with _."""
    note = " (refuted)" if _is_refuted(records[name], group[0]) else ""
    return (" " if name.startswith("_") else "") + name + note


def _contents(scores: xr.DataArray, records: Mapping[str, Mapping[str, Any]], group: Group) -> Contents:
    names = scores.learner.values.tolist()
    # Learners with refuted claims are not marked, and do not affect the marks of other learners.
    ranked = [name for name in names if not _is_refuted(records[name], group[0])]
    marks = xr.zeros_like(scores.isel(seed=0, drop=True), dtype=bool)
    if ranked:
        marks.loc[{"learner": ranked}] = not_worse(scores.sel(learner=ranked), "learner").transpose(*marks.dims)
    interval = mean_interval(scores)
    columns = [
        {"instance": name.partition(".")[2], "epsilon": epsilon}
        for name in scores.instance.values.tolist()
        for epsilon in scores.epsilon.values.tolist()
    ]
    parts = [interval[part].transpose("learner", "instance", "epsilon").values for part in ("mean", "low", "high")]
    parts.append(marks.transpose("learner", "instance", "epsilon").values)
    flat = [part.reshape(scores.sizes["learner"], -1).tolist() for part in parts]
    display_names = [_display_name(name, records, group) for name in names]
    rows = {name: list(map(Cell, *cells)) for name, *cells in zip(display_names, *flat, strict=True)}
    score = f"Score: {'error divided by the error of the estimate 0' if group[0] == 'rewards' else PER_UNIFORM}"
    caption = (
        f"{score}; mean over {scores.sizes['seed']} seeds, with the half width of its 95% interval. {tables.MARKED}: "
        "the least mean of a column, and means not shown to be larger, by paired differences corrected for all pairs "
        "of the column."
    )
    caption += "" if len(ranked) == len(names) else " Learners with refuted claims are not marked."
    caption += "" if group[3] == "none" else f" Claims are for {group[2]}."
    trust, units = dict.fromkeys(rows, group[1]), dict.fromkeys(rows, [group[2]] * len(columns))
    return Contents(columns, rows, trust, units, (), caption, "score")


def _by_instance(contents: Contents, num_epsilons: int) -> list[Contents]:
    """Splits a table into tables for single instances. Each of them has a column for each epsilon."""
    slices = [slice(start, start + num_epsilons) for start in range(0, len(contents.columns), num_epsilons)]
    return [
        contents._replace(
            columns=contents.columns[part],
            rows={name: cells[part] for name, cells in contents.rows.items()},
            units={name: units[part] for name, units in contents.units.items()},
        )
        for part in slices
    ]


def geometric_means(scores: xr.DataArray, least: float) -> list[str]:
    """Formats the geometric mean over instances at each epsilon, and the range of means that leave out one instance.

    Args:
        scores: mean scores, (instance, epsilon); NaN for instances that were not played.
        least: lower limit; smaller scores are replaced by this number.

    Returns:
        A text for each epsilon; a dash if no instance was played.
    """
    texts = []
    for epsilon in scores.epsilon.values:
        logs = np.log(np.maximum(scores.sel(epsilon=epsilon).dropna("instance").values, least))
        if not len(logs):
            texts.append("-")
            continue
        without_one = [np.delete(logs, index).mean() for index in range(len(logs))] if len(logs) > 1 else [logs.mean()]
        low, mean, high = (math.exp(value) for value in (min(without_one), logs.mean(), max(without_one)))
        texts.append(f"{mean:.3g} ({low:.3g} to {high:.3g})")
    return texts


def _summary(
    scores: xr.DataArray, records: Mapping[str, Mapping[str, Any]], group: Group
) -> tuple[list[list[str]], str]:
    """Returns the summary of a table: rows of cells, one row for each learner, and a note to print below the rows."""
    heads = ["", "instances", *(f"ε = {tables.format_budget(epsilon)}" for epsilon in v1.EPSILONS), "privacy", "proof"]
    rows = [heads]
    means, total, least = scores.mean("seed", skipna=False), scores.sizes["instance"], LEAST_SCORES[group[0]]
    for name in scores.learner.values.tolist():
        row = means.sel(learner=name)
        played = int(row.isel(epsilon=0).notnull().sum())
        record = records[name]
        ends = [_privacy(record, group[0]), _proof(record)]
        rows.append([_display_name(name, records, group), f"{played} of {total}", *geometric_means(row, least), *ends])
    note = (
        "Geometric mean of the scores, and its least and largest value if one instance is left out; scores below "
        f"{least:g} count as {least:g}. Rows that played different instances cannot be compared."
    )
    return rows, note


def _proof(record: Mapping[str, Any]) -> str:
    """Returns the link to a proof that the record has; without one, the registered entry's state of proof or "none"."""
    entry = {**LEARNERS, **ESTIMATORS}.get(record["learner"])
    return record["proof"] or (entry.proof if entry else "none")


def _privacy(record: Mapping[str, Any], family: str) -> str:
    """Formats the result of the attack on a learner in a family. No result proves that the learner is private."""
    for name, attack in record["attack"].items():
        if _family(name) == family and "bound" in attack:
            bound = f"{attack['currency']} >= {attack['bound']:.2g} of {attack['claimed']:.3g}"
            return f"refuted: {bound}" if attack["refuted"] else f"not refuted: {bound}"
    target = _attack.TARGETS.get(family, "")
    is_played = "skipped" not in record["instances"].get(target, {"skipped": ""})
    return "not attacked yet" if is_played and target not in record["attack"] else "not attacked"
