"""What privacy costs in duels of arms with features (Saha & Asi, 2024: DP-Dueling, Theorem 3).

Plays elimination by optimal designs for several dimensions, and tells
from which epsilon on privacy costs nearly nothing.
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
NUM_LOOKS = 11  # in the last five decades of rounds
LEAST_HORIZON = 1000
TILE_SIZE = 80
FAILURE_PROB = 0.05
SLOPE = math.exp(-2) / (1 + math.exp(-2)) ** 2  # kappa of weights of norm 1

PUBLISHED = "order of Thm 3 (upper bound, published constants), through the first mark"
CORRECTED = "the same with d^3 for d^6, which the correction leaves"


def instance(num_arms: int, dim: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(features [num_arms, dim], weights [dim]), all of norm 1 and uniform on the sphere."""
    points = np.random.default_rng([number, num_arms, dim]).normal(size=(num_arms + 1, dim))
    if dim == 1:  # there are two points of norm 1 alone
        points = np.concatenate([np.linspace(-1, 1, num_arms), [1.0]])[:, None]
        return points[:-1], points[-1]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[:-1], points[-1]


def dueling_linear(
    *,
    epsilon: Epsilons = EPSILONS,
    dim: Annotated[Sequence[int], grid("Dimension of features. Repeat for several.")] = DIMS,
    num_seeds: NumSeeds = NUM_SEEDS,
    num_arms: Annotated[int, typer.Option(help="Arms.")] = NUM_ARMS,
    horizon: Annotated[int, typer.Option(help="Rounds, >= 1000.")] = HORIZON,
    number: Annotated[int, typer.Option(help="Which instance of arms and weights, >= 0.")] = 0,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of elimination by optimal designs, against rounds, epsilon and dimension.

    Arms and weights are points of the unit sphere, the same for every seed and epsilon. The learner has constants of
    its proof, failure_prob = 0.05, and plays by counts.

    Returns:
        A dataset with `pseudo_regret`, the sum of 2 max r - r[left] - r[right], `num_left`, arms that are left, and
        `correct`, whether the answer is the best arm, of dimensions (dim, epsilon, round, seed). `uniform_regret`, of
        (dim, round): of duels of random arms, in expectation. Coordinate `gap`, by dim: from the best utility to the
        next one.
    """
    num_arms, number = check_count("num_arms", num_arms, 2), check_count("number", number, 0)
    dims = sorted({check_count("dim", value) for value in dim})
    if not dims or dims[-1] > num_arms:
        raise ValueError(f"dim must have values in [1, {num_arms}], the number of arms, got {list(dim)}")
    horizon = check_horizon(horizon, minimum=LEAST_HORIZON)
    if math.inf in list(epsilon):
        warn_of_few_seeds(num_seeds, FEWEST_FOR_A_MEAN, "which epsilons come close to no privacy")
    looks = np.unique(np.geomspace(max(horizon / 1e5, 100), horizon, NUM_LOOKS).round().astype(int)).tolist()

    def build(dim: int) -> Run:
        features, weights = instance(num_arms, dim, number)
        return simulator(
            g_optimal_elimination(features=features),
            linear_duels(features, weights),
            horizon,
            checkpoints=looks,
            engine="counts",
            record={"num_left": lambda look: look.public.active.sum()},
        )

    results = shared.compare(
        build, {"dim": dims}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )[["pseudo_regret", "num_left", "correct"]]
    utilities = [np.sort(np.matmul(*instance(num_arms, each, number))) for each in dims]
    uniform = [[2 * (each[-1] - each.mean()) * rounds for rounds in looks] for each in utilities]
    gaps = [float(each[-1] - each[-2]) for each in utilities]
    return (
        results.assign(uniform_regret=(("dim", "round"), uniform))
        .assign_coords(gap=("dim", gaps))
        .assign_attrs(num_arms=num_arms)
    )


# ---- what is told ----------------------------------------------------------------------------------------------------
def labels_of(results: xr.Dataset) -> dict[int, str]:
    """Dimensions' texts in legends and tables."""
    return {int(value): f"d = {value}" for value in results.dim.values}


def table(results: xr.Dataset) -> str:
    """Mean regret after all rounds, beside that of duels of random arms."""
    last, labels = results.isel(round=-1), labels_of(results)
    rows = zip(shared.mean_rows(last.pseudo_regret, labels, by="dim"), last.uniform_regret.values, strict=True)
    title = f"regret after {int(last['round']):,} rounds, {results.attrs['num_arms']} arms"
    head = [*shared.budgets(results), "random duels"]
    return shared.titled(title, head, [[*row, f"{uniform:,.0f}"] for row, uniform in rows])


def decided(results: xr.Dataset) -> str:
    """How many runs have one arm left, and whether it is the best."""
    last, rows = results.isel(round=-1), []
    for dim, label in labels_of(results).items():
        own = last.sel(dim=dim)
        alone, right = (own.num_left == 1).mean("seed").values, own.correct.mean("seed").values
        rows.append([label, *(f"{a:.0%}, {r:.0%}" for a, r in zip(alone, right, strict=True))])
    return shared.titled("runs with one arm left, and runs whose answer is the best arm", shared.budgets(results), rows)


def costs(results: xr.Dataset) -> str:
    """Regret less that without privacy, paired by seed, as shares of the latter."""
    if not shared.has_infinity(results) or results.sizes["epsilon"] < 2 or results.sizes["seed"] < FEWEST_FOR_A_MEAN:
        return ""
    last = results.pseudo_regret.isel(round=-1).astype(float)
    found = paired(last, "epsilon", against=math.inf)
    free, rows = last.sel(epsilon=math.inf).mean("seed"), []
    for dim, label in labels_of(results).items():
        own, base = found.sel(dim=dim), float(free.sel(dim=dim))
        cells = zip(own.difference.values, own.low.values, own.high.values, strict=True)
        rows.append([label, *(f"{m / base:.1%} ({lo / base:.1%} to {hi / base:.1%})" for m, lo, hi in cells)])
    return shared.titled(
        "regret less that without privacy, paired, as a share of the latter", shared.budgets(found), rows
    )


def enough(results: xr.Dataset) -> str:
    """The smallest epsilon from which on regret is shown to be within 10% of that without privacy, by rounds."""
    if not shared.has_infinity(results):
        return ""
    rounds = results["round"].values
    shown = rounds[(len(rounds) - 1) % 2 :: 2]

    def row(dim: int, label: str, found: xr.DataArray) -> list[str]:
        order = "-"
        if rounds[-1] * SLOPE**2 > dim:
            order = f"{float(theory.free_from(rounds[-1], dim, failure_prob=FAILURE_PROB, slope=SLOPE)):.2g}"
        return [label, *(shared.threshold(found.sel(dim=dim, round=value)) for value in shown), order]

    return shared.enough_table(
        f"privacy for free: smallest ε of these that is shown to come within {shared.WITHIN:.0%} of no privacy",
        results.pseudo_regret,
        results.pseudo_regret.sel(epsilon=math.inf, drop=True),
        [*(f"T = {value:,}" for value in shown), "order of Thm 3"],
        lambda found: [row(dim, label, found) for dim, label in labels_of(results).items()],
        ending=" (95% confidence)",
    )


def report(results: xr.Dataset) -> str:
    """What the command prints: regret, decisions, what privacy adds, and from which epsilon on it adds little."""
    gaps = ", ".join(f"{gap:.3f} (d = {dim})" for gap, dim in zip(results.gap.values, results.dim.values, strict=True))
    notes = [
        f"+- and intervals: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}. The best "
        f"utility is above the next one by {gaps}. One instance for each d: what is best elsewhere is not shown here.",
        "A phase plays as many duels as the sum of two errors needs, of sampling and of noise. The former grows with "
        "the square of a phase's precision, the latter with the precision: the longer the run, the less noise matters, "
        "until one arm is left. The order of Thm 3 is the ε at which its two terms are equal after all rounds.",
    ]
    parts = [table(results), decided(results), costs(results), enough(results)]
    return "\n\n".join([part for part in parts if part] + notes)


def figure(results: xr.Dataset) -> Figure:
    """The figure: for each dimension regret against rounds, and regret against epsilon in all of them."""
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

    figure = plotting.facets(
        regret,
        x="round",
        hue="epsilon",
        col="dim",
        also=bounds,
        spare=1,
        sharex=False,
        xscale="log",
        yscale="log",
        ylabel="regret (in utility)",
    )
    last = figure.axes[regret.sizes["dim"]]
    plotting.cost_of_privacy(
        regret.isel(round=-1), hue="dim", ax=last, labels=labels_of(results), yscale="log", ylabel="regret (in utility)"
    )
    figure.explain(
        title=f"What privacy costs in duels of {results.attrs['num_arms']} arms with features",
        note="Elimination by optimal designs with the constants of its proof, one instance for each dimension. Orders "
        "are of the smallest ε: compare slopes.",
    )
    return figure


STUDY = Study(dueling_linear, figure, report)
