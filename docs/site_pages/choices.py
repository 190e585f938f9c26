"""Measures estimators of rewards from choices among K, which play no instance of the benchmark, for their pages.

`python docs/site_pages/choices.py` writes `benchmarks/suite/choices.json`.
"""

import functools
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages import pictures
from site_pages.docstrings import escape
from site_pages.rst import heading, table

import jaxdp
from jaxdp import estimation, plotting
from jaxdp.comparisons.tables import Cell, format_budget
from jaxdp.registry import ESTIMATORS
from jaxdp.stats import mean_interval
from jaxdp.suite._programs import code_hash
from jaxdp.suite.v1 import DELTA, EPSILONS

PATH = Path(__file__).parents[2] / "benchmarks" / "suite" / "choices.json"
ENTRIES = (
    "plackett_luce_mle",
    "plackett_luce_debiased_krr",
    "plackett_luce_objective_perturbation",
    "plackett_luce_objective_perturbation_cut_k_norm",
    "sgd_krr",
)
METRIC = "l2_error"
NUM_SAMPLES, NUM_FEATURES, NUM_CHOICES, NUM_SEEDS = 2_000, 5, 4, 100
NORM = 2.0  # longer features, and a longer parameter, are shrunk to this norm


def measure() -> jaxdp.Comparison:
    """Returns the comparison of all estimators on the same choices, at the benchmark's values of epsilon."""
    problem = estimation.plackett_luce_rewards(
        num_samples=NUM_SAMPLES, num_actions=NUM_CHOICES, dim=NUM_FEATURES, feature_norm=NORM, parameter_norm=NORM
    )
    return jaxdp.compare(
        {name: (ESTIMATORS[name].factory, ESTIMATORS[name].variant) for name in ENTRIES},
        problem=problem,
        epsilon=list(EPSILONS),
        num_seeds=NUM_SEEDS,
        key=jax.random.key(0),
        metric=METRIC,
        values={"delta": DELTA},
    )


@functools.cache
def records(path: Path = PATH) -> dict[str, Any]:
    """Returns the committed measurements: an estimator's program hash, and mean, low and high at each epsilon."""
    return json.loads(path.read_text(encoding="utf-8"))


def outdated_entries() -> list[str]:
    """Returns the estimators whose measurements are missing, or of another program than the current one."""
    return [name for name in ENTRIES if records().get(name, {}).get("code") != code_hash(name)]


def section(names: Collection[str]) -> list[str]:
    """Returns the section of a page with the measured errors of its entries."""
    first = _names(names)[0]
    ends = [f"{records()[first]['error'][index][0]:.3g}" for index in (0, -1)]
    words = f"Mean error of {first} against epsilon: {ends[0]} at epsilon 0.1, {ends[1]} without privacy."
    rows = [
        [f"``{name}``", *(Cell(*cell, not_worse=False).text("±").replace(" ", "\u00a0") for cell in record["error"])]
        for name, record in records().items()
    ]
    return [
        *heading("Measured error", "-"),
        f".. image:: ../measured/{first}.svg",
        f"   :alt: {escape(words)}",
        "",
        "The :doc:`frozen benchmark </howto/bench>` has no choices among more than two options, so these estimators",
        f"are compared on data of their own: {NUM_SAMPLES:,} choices among {NUM_CHOICES} with {NUM_FEATURES} Gaussian",
        f"features; features and parameter have norm at most {NORM:g}; {NUM_SEEDS} seeds. The table has the mean",
        "Euclidean error of the estimate, ± half the width of its 95% interval.",
        "",
        *table(["estimator", *(f"ε = {format_budget(epsilon)}" for epsilon in EPSILONS)], rows, "40 15 15 15 15"),
    ]


def draw(algorithm: str, names: Collection[str]) -> plotting.Figure:
    """Draws the errors of a page's entries against epsilon; the algorithm's name is the title."""
    errors = {name: [cell[0] for cell in records()[name]["error"]] for name in _names(names)}
    return pictures.draw_errors(algorithm, errors)


def _names(names: Collection[str]) -> list[str]:
    return [name for name in ENTRIES if name in names]


def main() -> None:
    """Measures, and writes the file."""
    values, written = measure().values(), {}
    for name in ENTRIES:
        interval = mean_interval(values.sel(estimator=name).squeeze())
        cells = zip(*(interval[part].values.tolist() for part in ("mean", "low", "high")), strict=True)
        written[name] = {
            "code": code_hash(name),
            "error": [[float(f"{number:.4g}") for number in cell] for cell in cells],
        }
    PATH.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
