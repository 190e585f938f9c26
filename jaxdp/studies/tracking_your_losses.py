"""Compare private learners in tracking the best expert on your own losses.

Plays learners on the losses of a file, and compares them with the best
sequence of experts, for several epsilon. The output is not private.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import experts, plotting
from jaxdp.registry.titles import display_name
from jaxdp.simulation import Run
from jaxdp.stats import paired, smallest_epsilon
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds
from jaxdp.studies.comparison import compare, learner_labels, mean_table
from jaxdp.studies.declared import Derived, Study
from jaxdp.studies.seeds import no_verdict, warn_of_few_seeds
from jaxdp.studies.tables import table_of
from jaxdp.studies.tracking import LEARNERS, Names, NotPure, check_learners, claim_of, tracking_run
from jaxdp.validation import check_count, check_delta, check_positive, check_within

# Minimum number of seeds. With fewer seeds, an event of probability 1/2 occurs in all of them with probability > 5%.
FEWEST_FOR_A_SHARE = 5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, float("inf"))
COMPARED = (
    "exponential_weights",
    "svt_restarts",
    "limited_updates_oblivious",
    "lazy_weights_static",
    "lazy_weights",
    "counter_weights_static",
    "counter_weights",
    "mirror_descent",
)
SWITCHES = 5
SHARE = 0.5
DELTA = 1e-6
NUM_SEEDS = 10
TILE_SIZE = 30
NOT_PRIVATE = "a simulation: not private"


def read_losses(
    path: Annotated[
        Path,
        typer.Option(
            "--losses",
            help="File of losses, a row for each round and a column for each expert; .csv, .npy or .parquet.",
            show_default=False,
        ),
    ],
) -> np.ndarray:
    """Reads the losses of a file with `jaxdp.experts.read_losses`."""
    return experts.read_losses(path)


def tracking_your_losses(
    losses: Annotated[Any, Derived(read_losses)],
    *,
    scale: Annotated[float, typer.Option(help="The entry that counts as loss 1; entries are in [0, scale].")] = 1.0,
    num_switches: Annotated[
        int,
        typer.Option("--switches", help="Switches S of the sequences that learners are tuned for and compared with."),
    ] = SWITCHES,
    share: Annotated[
        float,
        typer.Option(
            help="Fraction of the best sequence's gain over uniform play that a learner must reach, in [0, 1]."
        ),
    ] = SHARE,
    epsilon: Epsilons = EPSILONS,
    learner: Names = COMPARED,
    num_seeds: NumSeeds = NUM_SEEDS,
    delta: NotPure = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates learners on the user's losses, for every learner, epsilon and seed.

    This is a simulation, and its output is not private. The losses, [rounds, num_experts] in [0, scale], are fixed, so
    seeds differ only in the learners' randomness.

    Returns:
        A dataset with `loss`, `regret`, `best_loss`, `dynamic_regret` and `best_sequence_loss` in units of `scale`, and
        `gained`, the learner's gain over uniform play as a fraction of the best sequence's gain. `gained` is 1 for a
        learner that is as good as the best sequence, negative for a learner that is worse than uniform play, and NaN if
        the best sequence has no gain. The dataset has the dimensions (learner, epsilon, seed), the coordinates `claim`
        along learner, `uniform_loss`, `horizon`, `num_experts`, `num_switches`, `delta` and `asked_share` (the option
        `share`), and the attribute `privacy`.

    Raises:
        ValueError: if a value is out of range, a learner is unknown, or a loss is not in [0, scale].
    """
    check_delta(delta)
    check_within("share", share, 0.0, 1.0)
    names = check_learners(learner)
    if (largest := float(np.max(losses))) > check_positive("scale", scale):
        raise ValueError(
            f"losses must be in [0, {scale:g}], got {largest:g}; --scale is the entry that counts as loss 1"
        )
    environment = experts.loss_sequence(losses, scale=scale, num_switches=num_switches)
    horizon, num_experts = np.shape(losses)
    switches = check_count("num_switches", num_switches, 0)
    warn_of_few_seeds(num_seeds, FEWEST_FOR_A_SHARE, "which epsilons gain the required share")

    def build(learner: str) -> Run:
        return tracking_run(LEARNERS[learner](num_experts, horizon, switches), environment, horizon, delta)

    results = compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )
    claims = [claim_of(LEARNERS[name](num_experts, horizon, switches), delta) for name in names]
    uniform = float(np.mean(losses, dtype=np.float64)) / scale * horizon
    results = results.assign_coords(
        claim=("learner", claims),
        delta=delta,
        asked_share=share,
        uniform_loss=uniform,
        horizon=horizon,
        num_experts=num_experts,
        num_switches=switches,
    )
    possible = uniform - results.best_sequence_loss
    results["gained"] = ((uniform - results.loss) / possible).where(possible > 0)
    results.attrs["privacy"] = NOT_PRIVATE
    return results


def figure(results: xr.Dataset) -> Figure:
    """Draws the fraction of the possible gain against epsilon, with a line at the required fraction.

    A dotted line is at the best single expert's fraction if this fraction is > 0.
    """
    results = results.sortby("epsilon")
    figure = plotting.panels(width=5.2, height=4.2)
    (ax,) = figure.axes
    plotting.cost_of_privacy(
        results.gained,
        hue="learner",
        ax=ax,
        labels=learner_labels(results.claim),
        yscale="linear",
        ylabel="gain over uniform play, as a share of\nthe best sequence's gain",
    )
    best_expert, share = best_expert_share(results), float(results.asked_share)
    ax.axhline(share, color="0.4", linewidth=0.9, linestyle="--")
    if best_expert > 0:
        ax.axhline(best_expert, color="0.4", linewidth=0.9, linestyle=":")
    figure.explain(
        title=f"Tracking on {int(results.horizon):,} rounds of {int(results.num_experts):,} experts",
        note=f"1: the best sequence of experts with at most {int(results.num_switches):,} switches. 0: an expert drawn "
        f"again in each round. Dashed: the required share, {share:.0%}. Dotted: the best single expert.",
    )
    return figure


def best_expert_share(results: xr.Dataset) -> float:
    """Returns the best single expert's gain over uniform play as a fraction of the best sequence's gain.

    The result is NaN if the best sequence has no gain.
    """
    uniform, first = float(results.uniform_loss), results.isel(learner=0, epsilon=0, seed=0)
    possible = uniform - float(first.best_sequence_loss)
    return (uniform - float(first.best_loss)) / possible if possible > 0 else float("nan")


def table(results: xr.Dataset) -> str:
    """Formats the mean fraction of the possible gain."""
    title = "share of the best sequence's gain over uniform play"
    return mean_table(title, results.gained, learner_labels(results.claim), digits=3)


def best_learners(results: xr.Dataset) -> str:
    """Formats the learner with the smallest mean loss at each epsilon, and learners that are not shown to be worse."""
    lines = ["least mean loss"]
    for epsilon in results.epsilon.values:
        loss = results.loss.sel(epsilon=epsilon)
        best = str(loss.learner.values[loss.mean("seed").values.argmin()])
        line = f"{plotting.epsilon_label(epsilon)}: {display_name(best)}"
        if loss.sizes["learner"] > 1:
            excess = paired(loss, "learner", against=best)  # with a single seed all limits are NaN
            ties = [
                display_name(str(name)) for name in excess.learner.values if not float(excess.low.sel(learner=name)) > 0
            ]
            line += f" (not shown to lose more: {'; '.join(ties)})" if ties else ""
        lines.append(line)
    return "\n".join(lines)


def smallest_epsilons(results: xr.Dataset, share: float) -> str:
    """Formats, for each learner, the smallest epsilon at which the learner is shown to gain the fraction `share`.

    The learner must be shown to gain this fraction at this epsilon and at all larger epsilons of the grid.
    """
    head = f"smallest ε of the grid that is shown to gain {share:.0%} (95% confidence, separately for each learner)"
    if (seeds := results.sizes["seed"]) < FEWEST_FOR_A_SHARE:
        return f"{head}: {no_verdict(seeds, FEWEST_FOR_A_SHARE)}"
    smallest = smallest_epsilon(results.gained, at_least=share, method="t")
    rows = []
    for name, label in learner_labels(results.claim).items():
        value = float(smallest.sel(learner=name))
        text = "none of these" if np.isnan(value) else plotting.epsilon_label(value)
        rows.append([label, text])
    rows.sort(key=lambda row: row[1] == "none of these")
    return table_of(head, rows)


def report(results: xr.Dataset) -> str:
    """Formats the gained fractions, the best learner at each epsilon, the smallest epsilons, and notes."""
    first = results.isel(learner=0, epsilon=0, seed=0)
    uniform, sequence = float(results.uniform_loss), float(first.best_sequence_loss)
    losses = (
        f"{int(results.horizon):,} rounds, {int(results.num_experts):,} experts; total loss of uniform play "
        f"{uniform:,.0f}, of the best expert {float(first.best_loss):,.0f}, of the best sequence of at most "
        f"{int(results.num_switches):,} switches {sequence:,.0f}"
    )
    if not uniform > sequence:
        return "\n\n".join([losses, "There is nothing to gain over uniform play on these losses."])
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+- and bands: 95% confidence (Student's t) over {seeds}, which only differ in the learners' randomness. The "
        "unit of privacy is one round's losses. ε: pure; (ε, δ): zero-concentrated or approximate, with delta = "
        f"{float(results.delta):g}.",
        "This text is computed from the losses and is not private. Only use it to choose a learner on public losses, "
        "such as old or synthetic losses: a choice by private losses costs privacy.",
    ]
    return "\n\n".join(
        [losses, table(results), best_learners(results), smallest_epsilons(results, float(results.asked_share)), *notes]
    )


STUDY = Study(tracking_your_losses, figure, report, quick={"num_seeds": 5}, minutes=None)
