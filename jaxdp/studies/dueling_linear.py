"""Cost of privacy in duels of arms with features (Saha & Asi, 2024: DP-Dueling, Theorem 3).

Plays elimination by optimal designs for several dimensions. Reports the
smallest epsilon at and above which privacy adds at most 10% to the regret.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.dueling import g_optimal_elimination, linear_duels
from jaxdp.simulation import Run, simulator
from jaxdp.stats import paired
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.comparison import Line
from jaxdp.studies.declared import Study
from jaxdp.studies.seeds import FEWEST_FOR_A_MEAN, warn_of_few_seeds
from jaxdp.theory import linear_dueling as theory
from jaxdp.validation import check_count, check_horizon

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, float("inf"))
DIMS = (2, 5, 10)
NUM_ARMS = 20
HORIZON = 10**9
NUM_SEEDS = 20
NUM_CHECKPOINTS = 11  # in the last five decades of rounds
LEAST_HORIZON = 1000
TILE_SIZE = 80
FAILURE_PROB = 0.05
SLOPE = math.exp(-2) / (1 + math.exp(-2)) ** 2  # kappa of Theorem 3 for weights of norm 1

PUBLISHED = "order of Thm 3 (upper bound, published constants), through the first mark"
CORRECTED = "the same with d^3 in place of d^6 (corrected)"


def instance(num_arms: int, dim: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns features [num_arms, dim] and weights [dim], drawn uniformly from the unit sphere with the seed `number`.

    With dim = 1, the features are evenly spaced in [-1, 1], and the weight is 1.
    """
    points = np.random.default_rng([number, num_arms, dim]).normal(size=(num_arms + 1, dim))
    if dim == 1:  # there are only two points of norm 1
        points = np.concatenate([np.linspace(-1, 1, num_arms), [1.0]])[:, None]
        return points[:-1], points[-1]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[:-1], points[-1]


def dueling_linear(
    *,
    epsilon: Epsilons = EPSILONS,
    dim: Annotated[Sequence[int], grid("Dimension of features. Repeat for several.")] = DIMS,
    num_seeds: NumSeeds = NUM_SEEDS,
    num_arms: Annotated[int, typer.Option(help="Number of arms.")] = NUM_ARMS,
    horizon: Annotated[int, typer.Option(help="Rounds, >= 1000.")] = HORIZON,
    number: Annotated[int, typer.Option(help="Index of the random instance (arms and weights), >= 0.")] = 0,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the regret of elimination by optimal designs, for every dimension, epsilon, number of rounds and seed.

    Arms and weights are points of the unit sphere (for dim = 1: arms in [-1, 1]), the same for every seed and epsilon.
    The learner uses the constants of its proof and failure_prob = 0.05, and is simulated by counts.

    Returns:
        A dataset with `pseudo_regret` (the sum of 2 max r - r[left] - r[right]), `num_left` (the number of active arms)
        and `correct` (whether the recommendation is the best arm), of dimensions (dim, epsilon, round, seed), and
        `uniform_regret`, the expected regret of duels of random arms, of dimensions (dim, round). The coordinate `gap`
        along dim is the best utility minus the second best utility.
    """
    num_arms, number = check_count("num_arms", num_arms, 2), check_count("number", number, 0)
    dims = sorted({check_count("dim", value) for value in dim})
    if not dims or dims[-1] > num_arms:
        raise ValueError(f"dim must have values in [1, {num_arms}], the number of arms, got {list(dim)}")
    horizon = check_horizon(horizon, minimum=LEAST_HORIZON)
    if math.inf in list(epsilon):
        warn_of_few_seeds(num_seeds, FEWEST_FOR_A_MEAN, "which epsilons come close to the non-private regret")
    checkpoints = np.unique(
        np.geomspace(max(horizon / 1e5, 100), horizon, NUM_CHECKPOINTS).round().astype(int)
    ).tolist()

    def build(dim: int) -> Run:
        features, weights = instance(num_arms, dim, number)
        return simulator(
            g_optimal_elimination(features=features),
            linear_duels(features, weights),
            horizon,
            checkpoints=checkpoints,
            engine="counts",
            record={"num_left": lambda snapshot: snapshot.public.active.sum()},
        )

    results = shared.compare(
        build, {"dim": dims}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )[["pseudo_regret", "num_left", "correct"]]
    utilities = [np.sort(np.matmul(*instance(num_arms, value, number))) for value in dims]
    uniform = [[2 * (values[-1] - values.mean()) * rounds for rounds in checkpoints] for values in utilities]
    gaps = [float(values[-1] - values[-2]) for values in utilities]
    return (
        results.assign(uniform_regret=(("dim", "round"), uniform))
        .assign_coords(gap=("dim", gaps))
        .assign_attrs(num_arms=num_arms)
    )


# ---- report ----------------------------------------------------------------------------------------------------------
def labels_of(results: xr.Dataset) -> dict[int, str]:
    """Returns the labels of dimensions in legends and tables."""
    return {int(value): f"d = {value}" for value in results.dim.values}


def table(results: xr.Dataset) -> str:
    """Formats the mean regret after all rounds, and the regret of duels of random arms."""
    last, labels = results.isel(round=-1), labels_of(results)
    rows = zip(shared.mean_rows(last.pseudo_regret, labels, by="dim"), last.uniform_regret.values, strict=True)
    title = f"regret after {int(last['round']):,} rounds, {results.attrs['num_arms']} arms"
    head = [*shared.epsilon_headers(results), "random duels"]
    return shared.format_table(title, head, [[*row, f"{uniform:,.0f}"] for row, uniform in rows])


def decisions(results: xr.Dataset) -> str:
    """Formats the fractions of runs with one active arm, and of runs that recommend the best arm."""
    last = results.isel(round=-1)
    shares = (last.num_left == 1).mean("seed"), last.correct.mean("seed")
    rows = shared.format_rows(labels_of(results), "{:.0%}, {:.0%}".format, *shares, by="dim")
    return shared.format_table(
        "runs with one arm left, and runs that recommend the best arm", shared.epsilon_headers(results), rows
    )


def costs(results: xr.Dataset) -> str:
    """Formats the excess regret over the non-private regret, paired by seed, relative to the non-private regret."""
    if not shared.has_infinity(results) or results.sizes["epsilon"] < 2 or results.sizes["seed"] < FEWEST_FOR_A_MEAN:
        return ""
    last = results.pseudo_regret.isel(round=-1).astype(float)
    excess = paired(last, "epsilon", against=math.inf)
    shares = excess / last.sel(epsilon=math.inf, drop=True).mean("seed")
    cells = "{:.1%} ({:.1%} to {:.1%})".format, shares.difference, shares.low, shares.high
    rows = shared.format_rows(labels_of(results), *cells, by="dim")
    return shared.format_table(
        "excess over the non-private regret, paired, as a share of it",
        shared.epsilon_headers(excess),
        rows,
    )


def sufficient_epsilons(results: xr.Dataset) -> str:
    """Formats, by rounds, the smallest epsilon at and above which regret is within 10% of non-private regret.

    At this epsilon and at all larger epsilons of the grid, tests must show this.
    """
    if not shared.has_infinity(results):
        return ""
    rounds = results["round"].values
    shown_rounds = rounds[(len(rounds) - 1) % 2 :: 2]

    def row(dim: int, label: str, smallest: xr.DataArray) -> list[str]:
        order = "-"
        if rounds[-1] * SLOPE**2 > dim:
            order = f"{float(theory.free_from(rounds[-1], dim, failure_prob=FAILURE_PROB, slope=SLOPE)):.2g}"
        return [label, *(shared.format_threshold(smallest.sel(dim=dim, round=value)) for value in shown_rounds), order]

    return shared.sufficient_epsilon_table(
        f"smallest ε of the grid that is shown to come within {shared.WITHIN:.0%} of the non-private regret",
        results.pseudo_regret,
        results.pseudo_regret.sel(epsilon=math.inf, drop=True),
        [*(f"T = {value:,}" for value in shown_rounds), "order of Thm 3"],
        lambda smallest: [row(dim, label, smallest) for dim, label in labels_of(results).items()],
        ending=" (95% confidence)",
    )


def report(results: xr.Dataset) -> str:
    """Formats regret, decisions, the cost of privacy, the epsilon at and above which this cost is small, and notes."""
    gaps = ", ".join(f"{gap:.3f} (d = {dim})" for gap, dim in zip(results.gap.values, results.dim.values, strict=True))
    notes = [
        f"+- and intervals: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}. The best "
        f"utility exceeds the second best by {gaps}. There is one instance for each d: other instances may differ.",
        "A phase plays enough duels for the sum of sampling error and noise. The duels for the sampling error grow "
        "with the square of the phase's precision, the duels for the noise with the precision: the longer the run, the "
        "less noise matters, until one arm is left. The order of Thm 3 is the ε at which its two terms are equal after "
        "all rounds.",
    ]
    parts = [table(results), decisions(results), costs(results), sufficient_epsilons(results)]
    return "\n\n".join([part for part in parts if part] + notes)


def figure(results: xr.Dataset) -> Figure:
    """Draws regret against rounds for each dimension, and regret against epsilon for all dimensions."""
    results = results.sortby("epsilon")
    regret = results.pseudo_regret

    def bounds(ax: Axes, values: xr.DataArray) -> None:
        dim, rounds = int(values.dim), values["round"].values
        lines = [Line(rounds, results.uniform_regret.sel(dim=dim).values, "duels of random arms")]
        finite = [value for value in values.epsilon.values if np.isfinite(value)]
        through = finite[0] if finite else values.epsilon.values[0]
        if rounds[0] * SLOPE**2 > dim:
            for order, label in ((theory.regret_upper, PUBLISHED), (theory.corrected_regret_upper, CORRECTED)):
                heights = order(float(through), rounds, dim, failure_prob=FAILURE_PROB, slope=SLOPE)
                lines.append(Line(rounds, heights, label, through))
        for line in lines:
            shared.draw_line(ax, line)

    figure, last = shared.draw_growth(regret, "epsilon", "dim", bounds)
    style: dict[str, Any] = {"yscale": "log", "ylabel": shared.UTILITY_REGRET}
    plotting.cost_of_privacy(regret.isel(round=-1), hue="dim", ax=last, labels=labels_of(results), **style)
    figure.explain(
        title=f"Cost of privacy in duels of {results.attrs['num_arms']} arms with features",
        note="Elimination by optimal designs with the constants of its proof, one instance for each dimension. Orders "
        "are drawn at the smallest ε: compare slopes.",
    )
    return figure


STUDY = Study(dueling_linear, figure, report, quick={"dim": (2,), "num_seeds": 8}, minutes=1)
