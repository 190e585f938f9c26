"""What local privacy costs in bandits (Zheng et al., 2020: LDP-Bandits, Table 1).

Plays bandits that see each round through one randomized response,
and compares how regret grows with what the table claims.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.simulation import Run, simulator
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.comparison import Line, Panel
from jaxdp.studies.declared import Study
from jaxdp.studies.ldp_problems import PROBLEMS
from jaxdp.theory import ldp_bandits as theory
from jaxdp.theory.ldp_bandits import Order
from jaxdp.validation import check_count, check_horizon

EPSILONS = (0.25, 0.5, 1.0, 4.0, float("inf"))
HORIZONS = (10_000, 100_000)
NUM_SEEDS = 20
TILE_SIZE = 50
SMALL = 1.0  # epsilon, up to which the second moment of a report is noise for the most part
LEARNS = 0.3  # of the trivial regret: exponents are fitted where a bound is below it
ORDER_LABEL = "order as tuned, through the first mark"


def ldp_bandits(
    *,
    problem: Annotated[Sequence[str], grid(f"Repeat for several, of {', '.join(PROBLEMS)}; or all.")] = ("all",),
    epsilon: Epsilons = EPSILONS,
    horizon: Annotated[Sequence[int], grid("Rounds T, which learners know. Repeat for several.")] = HORIZONS,
    dim: Annotated[int, typer.Option(help="Dimension of points.")] = 2,
    num_seeds: NumSeeds = NUM_SEEDS,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of locally private bandits, whose steps are tuned to their reports' second moment.

    Reports are randomized responses, which have the smallest second moment.

    Returns:
        A dataset with `pseudo_regret` of dimensions (problem, horizon, epsilon, seed), and `upper`, the bound on its
        mean, of (problem, horizon, epsilon), and `trivial`, of (problem, horizon): regret of who learns nothing.
    """
    given = [] if list(problem) == ["all"] else list(dict.fromkeys(problem))
    names = shared.chosen(given, PROBLEMS, "problem")
    dim = check_count("dim", dim)
    horizons = sorted({check_horizon(value, minimum=2) for value in horizon})
    if not horizons:
        raise ValueError("horizon must have at least one value, got none")

    def build(problem: str, horizon: int) -> Run:
        learner, environment = PROBLEMS[problem].make(horizon, dim)
        run = simulator(learner, environment, horizon)
        return shared.at_the_end(run, ["pseudo_regret"], PROBLEMS[problem].values)

    results = shared.compare(
        build,
        {"problem": names, "horizon": horizons},
        epsilon=epsilon,
        num_seeds=num_seeds,
        key=key,
        tile=TILE_SIZE,
        **scheduling,
    )
    uppers = [
        [[float(PROBLEMS[name].upper(float(e), rounds, dim)) for e in epsilon] for rounds in horizons] for name in names
    ]
    trivial = [[PROBLEMS[name].trivial * rounds for rounds in horizons] for name in names]
    return results.assign(
        upper=(("problem", "horizon", "epsilon"), uppers), trivial=(("problem", "horizon"), trivial)
    ).assign_attrs(dim=dim)


def labels_of(results: xr.Dataset) -> dict[str, str]:
    """Problems' texts in legends and tables."""
    return {name: f"{name.replace('_', ' ')}: {PROBLEMS[name].learner}" for name in map(str, results.problem.values)}


def by_cost(values: xr.Dataset) -> xr.Dataset:
    """The same along the cost c of finite epsilons, in place of epsilon. Without privacy there is no noise to pay."""
    values = values.sel(epsilon=np.isfinite(values.epsilon.values))
    cost = theory.noise_factor(values.epsilon.values).round(3)
    return values.assign_coords(cost=("epsilon", cost)).swap_dims(epsilon="cost").drop_vars("epsilon").sortby("cost")


def figure(results: xr.Dataset) -> Figure:
    """The figure: regret against T at one epsilon, and against c at the largest T."""
    at, longest = shared.nearest_epsilon(results), int(results.horizon.max())
    costs = by_cost(results.sel(horizon=longest, drop=True))

    def panel(values: xr.DataArray, x: str, **style: Any) -> Panel:
        at = values[x].values.astype(float)
        positive = [
            name for name in map(str, results.problem.values) if (values.sel(problem=name).mean("seed") > 0).all()
        ]
        return Panel(values, x, [Line(at, _growth(name, x, at), ORDER_LABEL, name) for name in positive], style)

    rounds = results.pseudo_regret.sel(epsilon=at, drop=True)
    panels = [panel(rounds, "horizon", xlabel="rounds T", ylabel="regret", title=plotting.epsilon_label(at))]
    if costs.sizes["cost"]:
        style = {"xlabel": "c = (exp ε + 1) / (exp ε - 1)", "ylabel": "", "title": f"T = {longest:,}"}
        panels.append(panel(costs.pseudo_regret, "cost", **style))
    figure = plotting.panels(1, len(panels), height=3.8)
    shared.draw(figure, panels, hue="problem", labels=labels_of(results), xscale="log", yscale="log")
    figure.explain(
        title="What local privacy costs in bandits",
        note=f"Reports are randomized responses; points have {results.attrs['dim']} dimensions. Dotted: T and c to the "
        "powers of Table 1 as tuned, through the first mark; compare slopes.",
    )
    return figure


def _growth(name: str, x: str, place: np.ndarray) -> np.ndarray:
    """How a problem's regret grows in T, or in c, as tuned."""
    order = theory.TUNED[name]
    if x == "cost":
        return place**order.privacy
    return place**order.rounds * (np.log(place) if order.is_log else 1.0)


def table(results: xr.Dataset) -> str:
    """Mean regret at the largest T, with bounds and the trivial regret."""
    longest, labels = results.isel(horizon=-1), labels_of(results)
    rows = []
    for name, row in zip(labels, shared.mean_rows(longest.pseudo_regret, labels, by="problem"), strict=True):
        rows.append([*row, f"{float(longest.trivial.sel(problem=name)):,.0f}"])
        rows.append(["  at most", *(f"{value:,.0f}" for value in longest.upper.sel(problem=name).values), ""])
    return shared.titled(f"regret, T = {int(longest.horizon):,}", [*shared.budgets(results), "learns nothing"], rows)


def learning(results: xr.Dataset, name: str) -> xr.DataArray:
    """Where a problem's bound is below `LEARNS` of the trivial regret: [horizon, epsilon] bool."""
    own = results.sel(problem=name)
    return (own.upper < LEARNS * own.trivial).transpose("horizon", "epsilon")


def exponents(results: xr.Dataset) -> str:
    """Fitted exponents of T and c, where learners learn, beside those of Table 1."""
    at = shared.nearest_epsilon(results)
    kinds = list(dict.fromkeys([at, *(value for value in results.epsilon.values if np.isinf(value))]))
    head = [*(f"T, {plotting.epsilon_label(value)}" for value in kinds), "Table 1", "c", "as tuned", "Table 1, 1/ε"]
    rows = []
    for name, label in labels_of(results).items():
        learns, own = learning(results, name), results.pseudo_regret.sel(problem=name, drop=True)
        cells = []
        for value in kinds:
            kept = learns.sel(epsilon=value).values & (results.horizon.values >= results.horizon.values.max() / 10)
            cells.append(shared.exponent(own.sel(epsilon=value), "horizon", kept))
        costs = by_cost(own.isel(horizon=-1).to_dataset(name="regret")).regret
        small = costs.cost.values >= theory.noise_factor(SMALL).round(3)
        kept = small & by_cost(learns.isel(horizon=-1).to_dataset(name="learns")).learns.values
        tuned, claimed = theory.TUNED[name], theory.CLAIMED.get(name)
        power = "ln T" if tuned.is_log else f"{tuned.rounds:.2f}"
        cells += [power, shared.exponent(costs, "cost", kept), f"{tuned.privacy:.2f}"]
        rows.append([label, *cells, _text(claimed)])
    return shared.titled("exponents of regret", head, rows)


def _text(claimed: Order | None) -> str:
    return "-" if claimed is None else f"{claimed.privacy:.2f}"


def report(results: xr.Dataset) -> str:
    """What the command prints: regret, bounds, exponents, and what that means."""
    seeds = plotting.seed_count(results.sizes["seed"])
    above = [
        name
        for name in map(str, results.problem.values)
        if bool((_above(results.sel(problem=name)) > results.upper.sel(problem=name)).any())
    ]
    worlds = "; ".join(f"{name}: {PROBLEMS[name].world}" for name in map(str, results.problem.values))
    notes = [
        f"+- and intervals: 95% confidence (Student's t) over {seeds}. At most: the bound on the expected regret, with "
        "its constants. "
        + (
            f"Mean + 3 standard errors exceeds it: {', '.join(above)}."
            if above
            else "Mean + 3 standard errors stays below it at every point."
        ),
        f"Exponents are fitted where the bound is below {LEARNS:g} of the regret of who learns nothing (the centre, or "
        f"uniform arms), in T over the last decade, in c at the largest T over ε <= {SMALL:g}; - is fewer than two "
        "such points. For convex losses with one point that takes T of 10^6 and more: --problem convex --horizon "
        "1000000 --horizon 10000000.",
        "Noise enters a step by the second moment of the report, of order c^2, and not by its size times the whole "
        "regret, as Table 1 has it: exploration is paid for by a bias that the step size balances against the noise. "
        "Tuned to the second moment, convex losses cost c^(1/2) where Table 1 has 1/ε, and with strong convexity or "
        "smoothness c^(2/3); two points cost c where Table 1 has 1/ε^2, which its untuned step makes. c is near 2/ε.",
        f"Losses: {worlds}. Reports: randomized responses.",
    ]
    return "\n\n".join([table(results), exponents(results), *notes])


def _above(results: xr.Dataset) -> xr.DataArray:
    """Mean regret plus 3 standard errors."""
    regret = results.pseudo_regret
    count = regret.sizes["seed"]
    return regret.mean("seed") + (3 * regret.std("seed", ddof=1) / np.sqrt(count) if count > 1 else 0.0)


STUDY = Study(ldp_bandits, figure, report)
