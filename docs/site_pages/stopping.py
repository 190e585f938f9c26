"""Measures learners that stop by themselves, which the frozen benchmark does not play, and shows the numbers on pages.

`python docs/site_pages/stopping.py` measures learners without numbers, or with numbers of another program; with --all
it measures all of them. It writes benchmarks/suite/stopping.json after each learner.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages import pictures
from site_pages.docstrings import escape
from site_pages.rst import heading, table

import jaxdp
from jaxdp import bandits, plotting
from jaxdp.comparisons.tables import Cell, format_budget
from jaxdp.plotting.style import style
from jaxdp.registry import LEARNERS
from jaxdp.simulation import Run, simulator
from jaxdp.simulation.run.values import parameters
from jaxdp.stats import mean_interval, share_interval
from jaxdp.suite._programs import code_hash

PATH = Path(__file__).parents[2] / "benchmarks" / "suite" / "stopping.json"
FIXED = "noisy_argmax"  # plays a fixed number of rounds, so its errors are shown and not its rounds
ENTRIES = (
    FIXED,
    "pairwise_elimination",
    "pairwise_elimination_central",
    "lil_ucb",
    "lil_ucb_gaussian",
    "successive_elimination",
    "successive_elimination_bounded",
)
MEANS = (0.8, 0.6, 0.5, 0.4)  # the best arm is the first one
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
FAILURE_PROB = 0.05  # alpha
DELTA = 1e-6  # of Gaussian reports
NUM_ROUNDS = 400  # of noisy_argmax
CAP = 3_000_000  # rounds after which a run is cut off
ROUND_BY_ROUND_CAP = 1_000_000  # for learners without blocks and counts, which are slower
SEEDS = 200
FIXED_SEEDS = 2_000  # errors of noisy_argmax are rare, and its runs are short
TILE_SIZE = 200


def settings(name: str) -> dict[str, Any]:
    """Returns the settings of a learner's measurement, which are stored beside its numbers."""
    learner = _learner(name)
    cap = CAP if learner.blocks or learner.counts else ROUND_BY_ROUND_CAP
    return {
        "rewards": LEARNERS[name].variant.get("rewards", "binary"),
        "means": list(MEANS),
        "cap": NUM_ROUNDS if name == FIXED else cap,
        "seeds": FIXED_SEEDS if name == FIXED else SEEDS,
        "values": {
            key: value
            for key, value in {"failure_prob": FAILURE_PROB, "delta": DELTA}.items()
            if key in parameters(learner.params)
        },
    }


def measure(name: str, epsilons: Iterable[float] = EPSILONS) -> dict[str, dict[str, float]]:
    """Plays a learner, and returns its numbers by epsilon.

    Each learner has the same key and each epsilon the same seeds.

    Args:
        name: one of `ENTRIES`.
        epsilons: the budgets.

    Returns:
        For each epsilon: `mean`, `low` and `high`, the mean and its 95% interval of the rounds until the stop, where
        runs that are cut off count with the cap, or for noisy_argmax of the share of wrong answers; `wrong`, the number
        of seeds that stopped with another arm than the best one; `cut_off`, the number of seeds that did not stop.
    """
    played = settings(name)
    axes = {"epsilon": list(epsilons), **{key: [value] for key, value in played["values"].items()}}
    results = jaxdp.sweep(
        _run(name), axes=axes, num_seeds=played["seeds"], key=jax.random.key(0), tile_size=TILE_SIZE
    ).squeeze(list(played["values"]))
    cut_off = results["censored"].astype(bool)
    wrong = ~cut_off & ~results["correct"].isel(round=-1).astype(bool)
    if name == FIXED:
        interval = share_interval(wrong.astype(float)).rename(share="mean")
    else:
        interval = mean_interval(results["rounds"].astype(float))
    numbers = {part: interval[part].astype(float) for part in ("mean", "low", "high")}
    numbers |= {"wrong": wrong.sum("seed"), "cut_off": cut_off.sum("seed")}
    return {
        f"{epsilon:g}": {part: _round_number(values.sel(epsilon=epsilon)) for part, values in numbers.items()}
        for epsilon in axes["epsilon"]
    }


def records() -> dict[str, dict[str, Any]]:
    """Returns the committed numbers by learner; none if there is no file."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def outdated_entries() -> list[str]:
    """Returns the learners of `ENTRIES` without numbers, or with numbers of another program or of other settings."""
    stored = records()
    return [
        name
        for name in ENTRIES
        if name not in stored
        or stored[name]["code"] != code_hash(name)
        or stored[name]["settings"] != settings(name)
        or list(stored[name]["cells"]) != [f"{epsilon:g}" for epsilon in EPSILONS]
    ]


def section(entries: Iterable[str]) -> list[str]:
    """Returns the section of an algorithm's page with its measured rounds or errors; empty without numbers.

    Args:
        entries: names of the page's entries in the registry. The first one has the page's name.
    """
    names = list(entries)
    shown = _records_of(names)
    if not shown:
        return []
    played = next(iter(shown.values()))["settings"]
    arms = ", ".join(f"{mean:g}" for mean in played["means"])
    lines = [
        *heading("Measured errors" if FIXED in shown else "Measured rounds", "-"),
        f".. image:: ../measured/{names[0]}.svg",
        f"   :alt: {escape(in_words(shown))}",
        "",
        "The :doc:`frozen benchmark </howto/bench>` does not play learners that stop before its horizon. The numbers",
        f"here are for {len(played['means'])} arms with the means {arms}, and the same seeds for every ε.",
    ]
    if FIXED in shown:
        lines += [
            f"The learner plays {played['cap']} rounds (``num_rounds``). The table shows the share of wrong answers",
            "with its 95% interval (Clopper-Pearson).",
            "",
        ]
    else:
        lines += [
            f"The failure probability alpha (``failure_prob``) is {played['values']['failure_prob']:g}. The column",
            "rounds has the mean number of rounds until the learner stops, ± half the width of its 95% interval.",
            "",
        ]
    for name, record in shown.items():
        lines += _table_of(name, record)
    return lines


def in_words(shown: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the alternative text of `draw`, from the records of the page's learners."""
    ends = []
    for name, record in shown.items():
        first, last = (_mean(record["cells"][f"{epsilon:g}"]) for epsilon in (EPSILONS[0], EPSILONS[-1]))
        ends.append(f"{name} from {first} to {last}")
    what = "Share of wrong answers" if FIXED in shown else "Mean rounds until the stop, on a logarithmic axis,"
    text = f"{what} against epsilon. From epsilon {EPSILONS[0]:g} to no privacy: {'; '.join(ends)}."
    if any(cell["cut_off"] for record in shown.values() for cell in record["cells"].values()):
        text += " The sign ≥ marks means where runs were cut off."
    return text


def draw(algorithm: str, entries: Iterable[str]) -> plotting.Figure:
    """Draws mean rounds, or shares of wrong answers, against epsilon: a line with intervals for each learner.

    Args:
        algorithm: the name of the page, which is the title.
        entries: names of the page's entries in the registry.

    Raises:
        ValueError: if no entry has numbers.
    """
    shown = _records_of(entries)
    if not shown:
        raise ValueError(f"entries must have numbers in {PATH.name}, got none for {algorithm}")
    figure = plotting.panels(width=5.2, height=3.0)
    (ax,) = figure.axes
    for index, (name, record) in enumerate(shown.items()):
        cells = [record["cells"][f"{epsilon:g}"] for epsilon in EPSILONS]
        means, lows, highs = (np.array([cell[part] for cell in cells]) for part in ("mean", "low", "high"))
        positions = range(len(cells))
        ax.errorbar(positions, means, [means - lows, highs - means], label=name, capsize=2, **style(index, ax))
        for position, cell in zip(positions, cells, strict=True):
            if cell["cut_off"]:
                ax.annotate("≥", (position, cell["mean"]), (0, 5), textcoords="offset points", ha="center")
    ax.set_xticks(range(len(EPSILONS)), [format_budget(epsilon) for epsilon in EPSILONS])
    is_share = FIXED in shown
    ax.set(title=algorithm, xlabel="ε", ylabel="share of wrong answers" if is_share else "rounds until the stop")
    if is_share:
        ax.set_ylim(bottom=0)
    else:
        ax.set_yscale("log")
        ax.margins(y=0.12)
    ax.legend(fontsize="small")
    pictures.fix_margins(figure)
    return figure


def _table_of(name: str, record: Mapping[str, Any]) -> list[str]:
    """Returns the settings of one learner in a sentence, and its table, a row for each epsilon."""
    played, rows = record["settings"], []
    for budget, cell in record["cells"].items():
        wrong = f"{cell['wrong']:,}"
        row = [format_budget(float(budget)), _interval_text(name, cell), wrong]
        rows.append(row if name == FIXED else [*row, f"{cell['cut_off']:,}"])
    kind = "Bernoulli" if played["rewards"] == "binary" else "Beta"
    text = f"``{name}``: {played['seeds']:,} seeds, {kind} rewards"
    if "delta" in played["values"]:
        text += f", δ = {played['values']['delta']:g}"
    if name != FIXED:
        text += f", at most {played['cap']:,} rounds"
    if LEARNERS[name].variant.get("constants") == "heuristic":
        text += "; its heuristic constants have no guarantee on wrong answers"
    lines = [f"{text}."]
    if any(cell["cut_off"] for cell in record["cells"].values()):
        lines += [
            "Runs that did not stop are cut off, and count with the rounds that they played. The sign ≥ marks means",
            "with such runs: the mean without a cut is larger, and may lie above the interval. Wrong answers are",
            "counted among runs that stopped.",
        ]
    of = f"of {played['seeds']:,}"
    if name == FIXED:
        return [*lines, "", *table(["ε", "share of wrong answers", f"wrong answers {of}"], rows, "10 50 40")]
    return [*lines, "", *table(["ε", "rounds", f"wrong answers {of}", f"not stopped {of}"], rows, "10 40 25 25")]


def _interval_text(name: str, cell: Mapping[str, float]) -> str:
    """Formats the mean of a cell with its interval; a mean of runs that were cut off has the sign ≥."""
    if name == FIXED:
        return f"{cell['mean']:.4f} ({cell['low']:.4f} to {cell['high']:.4f})"
    if cell["low"] == cell["high"]:  # every run played equally many rounds
        return _mean(cell) if cell["cut_off"] else f"{_mean(cell)}\u00a0±\u00a00"
    text = Cell(cell["mean"], cell["low"], cell["high"], not_worse=False).text("±").replace(" ", "\u00a0")
    return f"≥\u00a0{text}" if cell["cut_off"] else text


def _mean(cell: Mapping[str, float]) -> str:
    """Formats the mean of a cell without its interval."""
    text = f"{cell['mean']:,.0f}" if cell["mean"] >= 1 else f"{cell['mean']:.4f}"
    return f"≥\u00a0{text}" if cell["cut_off"] else text


def _records_of(entries: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns the records of entries that have numbers."""
    stored = records()
    return {name: stored[name] for name in entries if name in ENTRIES and name in stored}


def _learner(name: str) -> jaxdp.Learner:
    """Returns the registered variant of a learner, for the number of arms here."""
    rounds = {"num_rounds": NUM_ROUNDS} if name == FIXED else {}
    return LEARNERS[name].factory(**LEARNERS[name].variant, num_arms=len(MEANS), **rounds)


def _run(name: str) -> Run:
    """Returns the run of a learner, by counts if it has no blocks but counts."""
    learner, played = _learner(name), settings(name)
    world = (bandits.bernoulli_bandit if played["rewards"] == "binary" else bandits.bounded_bandit)(MEANS)
    engine = "counts" if learner.counts and not learner.blocks else "auto"
    return simulator(learner, world, played["cap"], engine=engine)


def _round_number(value: xr.DataArray) -> float:
    """Returns a number with eight significant digits; integers stay whole."""
    return int(value) if value.dtype.kind in "iu" else float(f"{float(value):.8g}")


def main() -> None:
    """Measures outdated learners, or all of them with --all, and writes the file after each one."""
    for name in ENTRIES if "--all" in sys.argv[1:] else outdated_entries():
        stored = records()
        stored[name] = {"code": code_hash(name), "settings": settings(name), "cells": measure(name)}
        ordered = {each: stored[each] for each in ENTRIES if each in stored}
        PATH.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: measured", flush=True)


if __name__ == "__main__":
    main()
