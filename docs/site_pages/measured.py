"""Shows committed results of the benchmark on the pages of algorithms, and all standings on one page.

Pages of learners without full results show their quick results. `python docs/site_pages/measured.py` prints the
learners whose results are outdated, or that have no full results. With --remove it removes outdated files, with
--remove-all all files, so that `python -m jaxdp bench --all` plays these learners again.
"""

import functools
import itertools
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages import accuracy, choices, pictures, results, stopping
from site_pages.docstrings import escape
from site_pages.rst import heading, table

from jaxdp.comparisons.tables import format_budget
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, Entry, MechanismEntry
from jaxdp.suite import v1
from jaxdp.suite._bench import file_name
from jaxdp.suite._standings import LEAST_SCORES, draw_standings, score_tables, standings

SUITE = Path(__file__).parents[2] / "benchmarks" / "suite"
FOLDERS = {"full": SUITE / "full", "quick": SUITE / "quick"}  # of committed results, by protocol
FOLDER = "measured"  # of the pictures, beside the generated pages
NOT_YET = "not measured yet"
APART = (choices, stopping)  # modules that measure what plays no instance of the benchmark
NOT_PLAYED = {  # learners that the benchmark refuses, and why
    "explore_then_commit_bounded": "the benchmark chooses the rewards, and plays it as explore_then_commit",
    "fkm_box": "its domain is a box, and every convex instance has a ball",
    "mirror_descent_paper": "its claim at epsilon is the number of experts times epsilon",
    "thompson_central_bounded": "the benchmark chooses the rewards, and plays it as thompson_central",
}


@functools.cache
def records(protocol: str = "full") -> dict[str, dict]:
    """Returns the committed results of a protocol, by the learner's name; none before the first ones are committed."""
    return results.read_records(FOLDERS[protocol], protocol)


@functools.cache
def measurements(protocol: str = "full") -> dict[str, dict[str, results.Measurement]]:
    """Returns the committed results of a protocol per round, by instance and learner."""
    return results.measurements(records(protocol))


def protocol_of(name: str) -> str:
    """Returns the protocol of the results that a learner's page shows: "full" if it has such results, or "quick"."""
    return "full" if any(name in learners for learners in measurements().values()) else "quick"


def not_measured() -> list[str]:
    """Returns the learners and estimators that have no full results, although the benchmark plays them."""
    others = {*NOT_PLAYED, *itertools.chain.from_iterable(module.ENTRIES for module in APART)}
    return [name for name in (*LEARNERS, *ESTIMATORS) if name not in {*records(), *others}]


def scores_of(name: str) -> dict[str, list[float]]:
    """Returns a learner's mean scores, by instance: regret, or error, over the regret or error of uniform play."""
    protocol = protocol_of(name)
    return {
        instance: (learners[name].means / v1.INSTANCES[instance].uniform(quick=protocol == "quick")).tolist()
        for instance, learners in measurements(protocol).items()
        if name in learners
    }


def measured_section(algorithm: str, entries: Mapping[str, Entry]) -> list[str]:
    """Returns the section of an algorithm's page with its measured regrets or errors, or with its noise.

    Args:
        algorithm: the name of the page.
        entries: the algorithm's entries in the registry, by name.
    """
    mechanisms = _mechanisms(entries)
    if mechanisms:
        return _noise_section(algorithm, mechanisms)
    if module := _module_apart(entries):
        return module.section(entries)
    what, unit = "error" if entries.keys() & ESTIMATORS.keys() else "regret", _unit(entries)
    lines = heading(f"Measured {what}", "-")
    shown = [name for name in entries if scores_of(name)]
    if not shown:
        benchmark = ":doc:`frozen benchmark </howto/bench>`"
        return [*lines, *(line for name in entries for line in (_not_shown(name, f" with the {benchmark}"), ""))]
    first = scores_of(shown[0])
    lines += [
        *_picture(f"../{FOLDER}/{algorithm}.svg", pictures.scores_in_words(shown[0], unit, _short(first))),
        f"Mean {what} in the :doc:`frozen benchmark </howto/bench>`, ± half the width of its 95% interval. In",
        "brackets: the median of the means of its peers. Peers are the other measured learners of the same family and",
        "trust model, except variants on this page. Their privacy units and kinds of claim may differ;",
        f":doc:`standings <../standings>` keep these apart. The last columns have the {what} of {unit}, and the least",
        f"non-private mean (ε = ∞) in the family. In the picture, the score is the {what} divided by the {what} of",
        f"{unit}; scores below {pictures.LEAST_SCORE:g} are drawn at this value.",
        "",
    ]
    if any(protocol_of(name) == "quick" for name in shown):
        lines += [
            "Results of the quick form have few seeds and few rounds. They do not enter the standings, and should not",
            "be cited. Their peers are learners with results of the quick form.",
            "",
        ]
    for name in entries:
        lines += _table_of(name, frozenset(entries), unit) if name in shown else [_not_shown(name), ""]
    return lines


def _not_shown(name: str, where: str = "") -> str:
    """Returns the sentence on a learner without results."""
    if name in NOT_PLAYED:
        return f"``{name}`` is not played{where}: {NOT_PLAYED[name]}."
    return f"``{name}``: {NOT_YET}{where}."


def write_pictures(algorithms: Mapping[str, Mapping[str, Entry]], folder: Path) -> None:
    """Writes the picture of each page, and of the standings, and removes other pictures.

    Args:
        algorithms: the entries of each page, by its name.
        folder: the folder of the generated pages.
    """
    drawn = {}
    for algorithm, entries in algorithms.items():
        if module := _module_apart(entries):
            drawn[algorithm] = module.draw(algorithm, entries)
        elif mechanisms := _mechanisms(entries):
            if noise := _noises(algorithm, tuple(mechanisms)):
                drawn[algorithm] = pictures.draw_noises(
                    algorithm, _label(algorithm, mechanisms), noise, is_probability=_is_probability(algorithm)
                )
        elif shown := [name for name in entries if scores_of(name)]:
            title = shown[0] + (", quick form" if protocol_of(shown[0]) == "quick" else "")
            drawn[algorithm] = pictures.draw_scores(title, _unit(entries), _short(scores_of(shown[0])))
    if _best():
        drawn["standings"] = draw_standings(records())
    for path in (folder / FOLDER).glob("*.svg"):
        if path.stem not in drawn:
            path.unlink()
    for name, figure in drawn.items():
        pictures.write_changed(folder / FOLDER / f"{name}.svg", pictures.svg(figure))


def standings_page(pages: Mapping[str, str]) -> str:
    """Returns the page of the standings, in Markdown.

    Args:
        pages: the page of each registered entry, by the entry's name.
    """
    lines = [
        "# Standings",
        "",
        "This page compares the committed full results of the [frozen benchmark](../../howto/bench.md), in a table for "
        "each family, trust model, privacy unit and kind of claim. Learners of different tables are not ranked. "
        "[How to read the standings](../../howto/bench.md#how-to-read-the-standings) explains scores, marks and the "
        "column on privacy.",
        "",
    ]
    if best := _best():
        words = f"Mean log score of every learner against epsilon, a panel for each table. Least at epsilon 1: {best}."
        lines += [f"![{words}]({FOLDER}/standings.svg)", ""]
    if records():
        lines += [_with_links(standings(records()), pages), ""]
    if missing := not_measured():
        lines += [f"## {NOT_YET.capitalize()}", "", f"{_names(missing, pages)}.", ""]
    apart = [name for module in APART for name in module.ENTRIES]
    lines += [
        "## Measured otherwise",
        "",
        "Two kinds of entries play no instance: learners that stop by themselves, and estimators from choices among "
        f"more than two alternatives. Their pages show other measurements: {_names(apart, pages)}.",
        "",
        "## Not played",
        "",
        *(f"- {_names([name], pages)}: {reason}." for name, reason in NOT_PLAYED.items()),
        "",
    ]
    return "\n".join(lines)


def _names(names: Iterable[str], pages: Mapping[str, str]) -> str:
    """Returns the names, each as a link to its page if it has one."""
    return ", ".join(f"[{name}](algorithm/{pages[name]}.rst)" if name in pages else f"`{name}`" for name in names)


def _best() -> str:
    """Returns the learner with the least mean log score at epsilon 1 in each table of the picture; empty if none."""
    parts = []
    for group, scores in score_tables(records()).items() if records() else ():
        means = xr.apply_ufunc(np.log10, scores.mean("seed", skipna=False).clip(min=LEAST_SCORES[group[0]]))
        means = means.where(np.isfinite(means))
        if means.sizes["instance"] > 1 and len(complete := means.dropna("learner")["learner"]):
            best = means.sel(learner=complete, epsilon=1.0).mean("instance")
            least = int(best.values.argmin())
            claims = "no" if group[3] == "none" else group[3]
            name = f"{complete.values[least]} ({10 ** best.values[least]:.2g})"
            parts.append(f"{group[0]}, {group[1]} model, {group[2]}, {claims} claims: {name}")
    return "; ".join(parts)


def _with_links(text: str, pages: Mapping[str, str]) -> str:
    """Returns the standings; in the first cell of a row, a registered name links to its page."""

    def link(row: re.Match[str]) -> str:
        return f"| [{row[1]}](algorithm/{pages[row[1]]}.rst){row[2]} |" if row[1] in pages else row[0]

    return re.sub(r"^\| (\w+)((?: \((?:person|refuted)\))*) \|", link, text, flags=re.MULTILINE)


def _table_of(name: str, page: frozenset[str], unit: str) -> list[str]:
    """Returns the table of one learner, a row for each instance that it played.

    Args:
        name: the learner.
        page: names on the same page, which are not peers.
        unit: what scores are relative to.
    """
    rows, counts, protocol = [], [], protocol_of(name)
    for instance, learners in measurements(protocol).items():
        if name not in learners:
            continue
        own, peers = learners[name], results.peers(learners, name, page)
        medians = results.peers_median(peers)
        counts.append(len(peers))
        cells = [
            cell.text("±").replace(" ", "\u00a0") + (f" ({_number(median)})" if peers else "")
            for cell, median in zip(own.cells, medians, strict=True)
        ]
        best, least = results.least_without_privacy(learners)
        short = instance.partition(".")[2]
        metric = "" if own.metric == "pseudo_regret" else f" ({own.metric.replace('_', ' ')})"
        uniform = _number(v1.INSTANCES[instance].uniform(quick=protocol == "quick"))
        rows.append([f"{short}{metric}", *map(escape, cells), uniform, f"{_number(least)}: ``{best}``"])
    families = sorted({instance.partition(".")[0] for instance in scores_of(name)})
    sizes = sorted({(p.seeds, p.horizon) for learners in measurements(protocol).values() if (p := learners.get(name))})
    played_at = ("quick form, " if protocol == "quick" else "") + " and ".join(
        f"{s} seeds" + (f" of {h:,} rounds" if h else "") for s, h in sizes
    )
    least_peers, most = min(counts), max(counts)
    peers_text = f"{most} peers" if least_peers == most else f"{least_peers} to {most} peers"
    left_out = [
        instance.partition(".")[2]
        for instance in v1.INSTANCES
        if instance.partition(".")[0] in families and instance not in scores_of(name)
    ]
    heads = [f"ε = {format_budget(epsilon)}" for epsilon in v1.EPSILONS]
    lines = [
        f"``{name}``, {', '.join(families)}: {played_at}, {peers_text}."
        + (f" Not played: {', '.join(left_out)}." if left_out else ""),
        "",
    ]
    return [*lines, *table(["instance", *heads, unit, "least non-private"], rows, "15 17 17 17 17 12 15")]


def _unit(entries: Mapping[str, Entry]) -> str:
    """Returns the name of the play, or estimate, that scores are relative to."""
    return "the estimate 0" if entries.keys() & ESTIMATORS.keys() else "uniform play"


def _mechanisms(entries: Mapping[str, Entry]) -> dict[str, MechanismEntry]:
    return {name: entry for name, entry in entries.items() if isinstance(entry, MechanismEntry)}


@functools.cache
def _noises(algorithm: str, names: tuple[str, ...]) -> dict[str, list[float]]:
    entries = {name: MECHANISMS[name] for name in names}
    if algorithm in accuracy.SHOWN:
        return accuracy.accuracies(algorithm, entries, pictures.BUDGETS)
    return pictures.noises(entries)


def _noise_section(algorithm: str, entries: Mapping[str, MechanismEntry]) -> list[str]:
    noise = _noises(algorithm, tuple(entries))
    if not noise:
        return []
    if shown := accuracy.SHOWN.get(algorithm):
        head, meaning, how = "Accuracy", shown.meaning, "from the distribution of its noise or reports"
    else:
        head, meaning, how = "Noise", f"the {_label(algorithm, entries)}", "from the mechanism's own functions"
    words = pictures.noises_in_words(meaning, noise, is_probability=_is_probability(algorithm))
    settings = "; ".join(f"``{name}``: {_settings(entries[name])}" for name in noise)
    return [
        *heading(head, "-"),
        *_picture(f"../{FOLDER}/{algorithm}.svg", words),
        f"The picture shows {meaning}, computed {how}",
        f"at the values of its entries in the registry. {settings}. A line ends where the mechanism does not accept ε.",
        "",
    ]


def _is_probability(algorithm: str) -> bool:
    return algorithm in accuracy.SHOWN and accuracy.SHOWN[algorithm].is_probability


def _settings(entry: MechanismEntry) -> str:
    fixed = {**entry.values, **entry.variant, **entry.sizes}
    fixed.pop("epsilon", None)
    if "horizon" in fixed:
        fixed["horizon"] = pictures.COUNTED
    return ", ".join(f"{name} = {value}" for name, value in fixed.items()) or "no other values"


def _module_apart(entries: Mapping[str, Entry]) -> Any:
    """Returns the module of `APART` that measures one of the entries, or None."""
    return next((module for module in APART if entries.keys() & set(module.ENTRIES)), None)


def _label(algorithm: str, entries: Mapping[str, MechanismEntry]) -> str:
    if algorithm in accuracy.SHOWN:
        return accuracy.SHOWN[algorithm].label
    kind = next(iter(entries.values())).factory
    name = getattr(kind, "__name__", "")
    if name.endswith("_counter"):
        return f"standard deviation of the {pictures.COUNTED:,}th count"
    if name.endswith("_randomizer"):
        return "root mean square of an estimate"
    return "standard deviation of the noise"


def _picture(path: str, words: str) -> list[str]:
    return [f".. image:: {path}", f"   :alt: {escape(words)}", ""]


def _short(scores: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Returns the scores by the names of instances without the family, or with it if there are several families."""
    families = {instance.partition(".")[0] for instance in scores}
    return {name if len(families) > 1 else name.partition(".")[2]: values for name, values in scores.items()}


def _number(value: float) -> str:
    """Formats a number with three significant digits; only small numbers have an exponent."""
    if not math.isfinite(value):
        return "∞"
    if 0 < abs(value) < 1e-4:
        return f"{value:.3g}"
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.{max(0, digits)}f}"


def main() -> int:
    """Runs the command. Returns 1 if results are outdated, and stay."""
    removes, stays = {"--remove", "--remove-all"} & {*sys.argv[1:]}, False
    for protocol, folder in FOLDERS.items():
        outdated = results.outdated_learners(records(protocol))
        gone = outdated if "--remove" in removes else []
        for record in records(protocol).values():
            if "--remove-all" in removes or record["learner"] in gone:
                (folder / file_name(record["learner"], record["unit"])).unlink()
                print(f"{record['learner']}: removed its {protocol} results per {record['unit']}")
        for name in () if removes else outdated:
            stays = True
            print(f"{name}: its {protocol} results are of another program: make pages-data")
    for name in not_measured():
        print(f"{name}: {NOT_YET}" + ("" if scores_of(name) else ", not in the quick form either"))
    return 1 if stays else 0


if __name__ == "__main__":
    sys.exit(main())
