"""Compare learners against adaptive adversaries (Asi et al., 2025: Tracking, Theorem 5.1).

Compares each learner's regret against an oblivious adversary with its regret
against an adaptive adversary, who punishes repeated plays. Both regrets are at
the same ε sqrt(T / S), for T rounds and S switches.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.simulation import Run, sweep
from jaxdp.studies.arguments import Key, NumSeeds, grid
from jaxdp.studies.comparison import learner_labels, mean_rows
from jaxdp.studies.declared import Study
from jaxdp.studies.tables import table_of
from jaxdp.studies.tiles import cpu_tile
from jaxdp.studies.tracking import (
    ADVERSARIES,
    LEARNERS,
    Gap,
    Names,
    NotPure,
    Setting,
    check_gap,
    check_learners,
    claim_of,
    star,
    tracking_run,
)
from jaxdp.theory import tracking as theory
from jaxdp.validation import check_above, check_count, check_delta

RATIOS = (0.1, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
COMPARED = ("lazy_weights", "counter_weights", "mirror_descent")
PAIR = ("shifting", "punish_repeats")
HORIZONS = (2_000, 20_000)
SWITCHES = 3
NUM_EXPERTS = 10
GAP = 0.25
DELTA = 1e-6
NUM_SEEDS = 8
TILE_SIZE = 28

LABELS = {"shifting": "losses fixed in advance: shifting", "punish_repeats": "losses that react: punish_repeats"}
ORDER_LABEL = "order of Thm 5.1 (lower bound), drawn with constant 1"


def tracking_separation(
    *,
    ratio: Annotated[Sequence[float], grid("ε sqrt(T / S), > 0; inf for no privacy. Repeat for several.")] = RATIOS,
    learner: Names = COMPARED,
    horizon: Annotated[Sequence[int], grid("Rounds T. Repeat for several.")] = HORIZONS,
    num_seeds: NumSeeds = NUM_SEEDS,
    num_switches: Annotated[
        int,
        typer.Option("--switches", help="Switches S of the comparator, and shifts of the fixed losses."),
    ] = SWITCHES,
    num_experts: Annotated[int, typer.Option("--experts", help="Experts N.")] = NUM_EXPERTS,
    gap: Gap = GAP,
    delta: NotPure = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates dynamic regret per round against an oblivious adversary and against an adaptive adversary.

    At each T the privacy budgets are epsilon = ratio * sqrt(S / T).

    Returns:
        A dataset with `regret_a_round` (dynamic regret / T), `dynamic_regret` and the other outcomes, of dimensions
        (learner, adversary, horizon, ratio, seed). The dataset has the coordinates `claim` along learner, `epsilon`
        along (horizon, ratio), and the scalars `delta`, `num_switches` and `num_experts`.
    """
    check_delta(delta)
    names, settings = check_learners(learner), star(PAIR, [num_experts], horizon, [num_switches])
    num_switches = check_count("num_switches", num_switches)
    for value in ratio:
        check_above("ratio", value, 0.0)
    check_gap(gap)

    def build(learner: str, adversary: str, horizon: int) -> Run:
        setting = Setting(adversary, num_experts, horizon, num_switches)
        run = tracking_run(
            LEARNERS[learner](num_experts, horizon, num_switches),
            ADVERSARIES[adversary].make(setting, gap),
            horizon,
            delta,
        )
        scale = math.sqrt(num_switches / horizon)
        return dataclasses.replace(
            run,
            params=lambda *, ratio: run.params(epsilon=ratio * scale),
            guarantee=lambda *, ratio: run.guarantee(epsilon=ratio * scale),
        )

    results = sweep(
        build,
        axes={"ratio": list(ratio)},
        static_axes={"learner": names, "adversary": list(PAIR), "horizon": list(horizon)},
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(TILE_SIZE, scheduling),
        **scheduling,
    )
    claims = [claim_of(LEARNERS[name](*settings[0][1:]), delta) for name in names]
    epsilon = np.sqrt(num_switches / np.asarray(horizon, float))[:, None] * np.asarray(ratio, float)
    results = results.assign_coords(
        claim=("learner", claims),
        epsilon=(("horizon", "ratio"), epsilon),
        delta=delta,
        num_switches=num_switches,
        num_experts=num_experts,
    )
    results["regret_a_round"] = results.dynamic_regret / results.horizon
    return results.transpose("learner", "adversary", "horizon", "ratio", "seed", ...)


def threshold(ratio: np.ndarray, horizon: int, num_switches: int) -> np.ndarray:
    """Returns the lower bound of Theorem 5.1 on dynamic regret / T, with constant 1.

    `ratio` is epsilon * sqrt(T / S), for T = `horizon` rounds and S = `num_switches` switches.
    """
    epsilon = np.asarray(ratio, float) * math.sqrt(num_switches / horizon)
    return theory.adaptive_lower(epsilon, horizon, num_switches) / horizon


def labels_of(results: xr.Dataset) -> dict[Any, str]:
    """Returns the labels of learners, adversaries and horizons in legends and tables."""
    rounds = {int(horizon): f"T = {int(horizon):,}" for horizon in results.horizon.values}
    return {**LABELS, **rounds, **learner_labels(results.claim)}


def figure(results: xr.Dataset) -> Figure:
    """Draws regret per round against epsilon sqrt(T / S), with a column for each adversary and a row for each T."""
    results = results.sortby("ratio")
    switches = int(results.num_switches)
    finite = results.ratio.values[np.isfinite(results.ratio.values)]

    def order(ax: Axes, values: xr.DataArray) -> None:
        if str(values.adversary.values) == "punish_repeats" and len(finite):
            at = np.geomspace(finite[0], finite[-1], 100)
            heights = threshold(at, int(values.horizon), switches)
            plotting.bound(ax, at, heights, through=float(heights[0]), label=ORDER_LABEL)

    return plotting.facets(
        results.regret_a_round.drop_vars("epsilon"),
        x="ratio",
        hue="learner",
        col="adversary",
        row="horizon",
        also=order,
        labels=labels_of(results),
        width=4.4,
        height=3.0,
        xscale="log",
        yscale="log",
        xlabel="ε sqrt(T / S)",
        ylabel="dynamic regret / T",
        title="Losses fixed in advance, and losses that react to plays",
        note=f"N = {int(results.num_experts)}, S = {switches}. Thm 5.1 holds up to constants and logarithms, "
        "for N >= 2 T / S and tiny delta, against the worst adversary: these curves do not confirm its threshold.",
    )


def table(results: xr.Dataset) -> str:
    """Formats the mean of dynamic regret / T over seeds."""
    labels, blocks = labels_of(results), []
    learners = {name: labels[str(name)] for name in results.learner.values}
    for adversary in results.adversary.values:
        for horizon in results.horizon.values:
            selected = results.sel(adversary=adversary, horizon=horizon)
            rows = [
                ["ε sqrt(T / S)", *(f"{value:g}" for value in results.ratio.values)],
                ["ε", *(f"{value:.3g}" for value in selected.epsilon.values)],
                *mean_rows(selected.regret_a_round, learners, digits=3),
            ]
            head = f"dynamic regret / T, {labels[str(adversary)]}, T = {int(horizon):,}"
            blocks.append(table_of(head, rows))
    return "\n\n".join(blocks)


def report(results: xr.Dataset) -> str:
    """Formats the table and notes."""
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+- and bands: 95% confidence (Student's t) over {seeds}. ε: pure; (ε, δ): zero-concentrated or approximate, "
        f"with delta = {float(results.delta):g}.",
        "punish_repeats gives the loss 1 to the expert that was played in the previous round: a learner that keeps an "
        "expert for long loses in most rounds, for any ε. Theorem 5.1 says that below a ratio of order 1 / ln(T) every "
        "private learner has such an adversary. The theorem holds up to constants, for ε <= 1, N >= 2 T / S and "
        "delta <= (S + 1)^3 / T^3, and its proof covers only delta = 0. Runs outside these conditions do not confirm "
        "the theorem.",
    ]
    return "\n\n".join([table(results), *notes])


STUDY = Study(
    tracking_separation,
    figure,
    report,
    quick={"horizon": (2000,), "learner": ("lazy_weights", "mirror_descent")},
    minutes=1,
)
