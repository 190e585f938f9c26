"""Cost of local privacy in bandits (Zheng et al., 2020: LDP-Bandits, Table 1).

Plays bandits that get one randomized response per round, and compares the
growth of their regret with the orders that the table claims.
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
SMALL = 1.0  # largest epsilon at which noise dominates the second moment of a report
LEARNS = 0.3  # exponents are fitted where the bound is below this number times the trivial regret
ORDER_LABEL = "order as tuned, through the first mark"


def ldp_bandits(
    *,
    problem: Annotated[Sequence[str], grid(f"Problem: {', '.join(PROBLEMS)}; or all. Repeat for several.")] = ("all",),
    epsilon: Epsilons = EPSILONS,
    horizon: Annotated[Sequence[int], grid("Rounds T, known to the learners. Repeat for several.")] = HORIZONS,
    dim: Annotated[int, typer.Option(help="Dimension of points.")] = 2,
    num_seeds: NumSeeds = NUM_SEEDS,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates locally private bandits, for every problem, number of rounds, epsilon and seed.

    Reports are randomized responses, which have the smallest second moment. Step sizes are tuned to this moment.

    Returns:
        A dataset with `pseudo_regret`, of dimensions (problem, horizon, epsilon, seed); `upper`, the bound on the
        expected regret, of dimensions (problem, horizon, epsilon); and `trivial`, the regret without learning, of
        dimensions (problem, horizon).
    """
    requested = [] if list(problem) == ["all"] else list(dict.fromkeys(problem))
    names = shared.select_names(requested, PROBLEMS, "problem")
    dim = check_count("dim", dim)
    horizons = sorted({check_horizon(value, minimum=2) for value in horizon})
    if not horizons:
        raise ValueError("horizon must have at least one value, got none")

    def build(problem: str, horizon: int) -> Run:
        learner, environment = PROBLEMS[problem].make(horizon, dim)
        run = simulator(learner, environment, horizon)
        return shared.keep_last_round(run, ["pseudo_regret"], PROBLEMS[problem].values)

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
    """Returns the problems' labels in legends and tables."""
    return {name: f"{name.replace('_', ' ')}: {PROBLEMS[name].learner}" for name in map(str, results.problem.values)}


def by_cost(values: xr.Dataset) -> xr.Dataset:
    """Replaces the dimension epsilon by the sorted dimension `cost`, c = (e^epsilon + 1) / (e^epsilon - 1).

    Costs are rounded to three decimals. Non-private runs are dropped.
    """
    values = values.sel(epsilon=np.isfinite(values.epsilon.values))
    cost = theory.noise_factor(values.epsilon.values).round(3)
    return values.assign_coords(cost=("epsilon", cost)).swap_dims(epsilon="cost").drop_vars("epsilon").sortby("cost")


def figure(results: xr.Dataset) -> Figure:
    """Draws regret against T at one epsilon, and against c at the largest T."""
    at, longest = shared.nearest_epsilon(results), int(results.horizon.max())
    costs = by_cost(results.sel(horizon=longest, drop=True))

    def panel(values: xr.DataArray, x: str, **style: Any) -> Panel:
        at = values[x].values.astype(float)
        positive = [
            name for name in map(str, results.problem.values) if (values.sel(problem=name).mean("seed") > 0).all()
        ]
        return Panel(values, x, [Line(at, _growth(name, x, at), ORDER_LABEL, name) for name in positive], style)

    rounds = results.pseudo_regret.sel(epsilon=at, drop=True)
    panels = [panel(rounds, "horizon", xlabel="rounds T", ylabel="cumulative regret", title=plotting.epsilon_label(at))]
    if costs.sizes["cost"]:
        style = {"xlabel": "c = (exp ε + 1) / (exp ε - 1)", "ylabel": "", "title": f"T = {longest:,}"}
        panels.append(panel(costs.pseudo_regret, "cost", **style))
    figure = plotting.panels(1, len(panels), height=3.8)
    shared.draw(figure, panels, hue="problem", labels=labels_of(results), xscale="log", yscale="log")
    figure.explain(
        title="Cost of local privacy in bandits",
        note=f"Reports are randomized responses; points have {results.attrs['dim']} dimensions. Dotted: orders in T "
        "and c with tuned step sizes, through the first mark; compare slopes.",
    )
    return figure


def _growth(name: str, x: str, points: np.ndarray) -> np.ndarray:
    """Returns the growth rate of a problem's regret with tuned step sizes, up to a constant factor.

    `points` are values of T if x is "horizon", or values of c if x is "cost".
    """
    order = theory.TUNED[name]
    if x == "cost":
        return points**order.privacy
    return points**order.rounds * (np.log(points) if order.is_log else 1.0)


def table(results: xr.Dataset) -> str:
    """Formats the mean regret at the largest T, with bounds and the trivial regret."""
    longest, labels = results.isel(horizon=-1), labels_of(results)
    rows = []
    for name, row in zip(labels, shared.mean_rows(longest.pseudo_regret, labels, by="problem"), strict=True):
        rows.append([*row, f"{float(longest.trivial.sel(problem=name)):,.0f}"])
        rows.append(["  at most", *(f"{value:,.0f}" for value in longest.upper.sel(problem=name).values), ""])
    return shared.format_table(
        f"regret, T = {int(longest.horizon):,}", [*shared.epsilon_headers(results), "without learning"], rows
    )


def learning(results: xr.Dataset, name: str) -> xr.DataArray:
    """Returns whether a problem's bound is below `LEARNS` times the trivial regret.

    The result is [horizon, epsilon] bool.
    """
    bounds = results.sel(problem=name)
    return (bounds.upper < LEARNS * bounds.trivial).transpose("horizon", "epsilon")


def exponents(results: xr.Dataset) -> str:
    """Formats the fitted exponents of T and c at points where learners learn, and the exponents of bounds.

    The exponent of T is fitted over the last decade of T. The exponent of c is fitted at the largest T, over epsilons
    of at most `SMALL`. The bounds are for tuned step sizes (`theory.TUNED`). The exponent of 1/epsilon is from Table 1,
    and a dash if Table 1 lacks the problem.
    """
    at = shared.nearest_epsilon(results)
    shown_epsilons = list(dict.fromkeys([at, *(value for value in results.epsilon.values if np.isinf(value))]))
    head = [
        *(f"T, {plotting.epsilon_label(value)}" for value in shown_epsilons),
        "bound",
        "c",
        "bound",
        "Table 1, 1/ε",
    ]
    rows = []
    for name, label in labels_of(results).items():
        learns, regret = learning(results, name), results.pseudo_regret.sel(problem=name, drop=True)
        cells = []
        for value in shown_epsilons:
            is_used = learns.sel(epsilon=value).values & (results.horizon.values >= results.horizon.values.max() / 10)
            cells.append(shared.exponent(regret.sel(epsilon=value), "horizon", is_used))
        costs = by_cost(regret.isel(horizon=-1).to_dataset(name="regret")).regret
        small = costs.cost.values >= theory.noise_factor(SMALL).round(3)
        is_used = small & by_cost(learns.isel(horizon=-1).to_dataset(name="learns")).learns.values
        tuned, claimed = theory.TUNED[name], theory.CLAIMED.get(name)
        power = "ln T" if tuned.is_log else f"{tuned.rounds:.2f}"
        cells += [power, shared.exponent(costs, "cost", is_used), f"{tuned.privacy:.2f}"]
        rows.append([label, *cells, _privacy_exponent(claimed)])
    return shared.format_table("exponents of regret", head, rows)


def _privacy_exponent(order: Order | None) -> str:
    """Formats the exponent of 1/epsilon in an order; a dash if the order is None."""
    return "-" if order is None else f"{order.privacy:.2f}"


def report(results: xr.Dataset) -> str:
    """Formats the regret, its bounds and exponents, and notes."""
    seeds = plotting.seed_count(results.sizes["seed"])
    above = [
        name
        for name in map(str, results.problem.values)
        if bool((_mean_plus_errors(results.sel(problem=name)) > results.upper.sel(problem=name)).any())
    ]
    worlds = "; ".join(f"{name}: {PROBLEMS[name].world}" for name in map(str, results.problem.values))
    notes = [
        f'+- and intervals: 95% confidence (Student\'s t) over {seeds}. Rows "at most" have the bound on the expected '
        "regret, with its constants. "
        + (
            f"The mean + 3 standard errors exceeds this bound for {', '.join(above)}."
            if above
            else "The mean + 3 standard errors stays below this bound at every point."
        ),
        f"Exponents are fitted where the bound is below {LEARNS:g} of the regret without learning (at the centre, or "
        f"with uniform arms): in T over the last decade, in c at the largest T over ε <= {SMALL:g}. A dash: fewer than "
        "two such points. For convex losses with one point, T must be 10^6 or more: --problem convex --horizon "
        "1000000 --horizon 10000000.",
        "Noise enters a step through the second moment of the report, which is of order c^2. In Table 1 the noise "
        "multiplies the whole regret. This is not so: exploration adds a bias, and the step size balances bias and "
        "noise. With tuned step sizes, regret grows like c^(1/2) for convex losses, where Table 1 has 1/ε, and like "
        "c^(2/3) with strong convexity or smoothness. With two points it grows like c; Table 1 has 1/ε^2, because its "
        "step size is not tuned. c is near 2/ε for small ε.",
        f"Losses: {worlds}. Reports: randomized responses.",
    ]
    return "\n\n".join([table(results), exponents(results), *notes])


def _mean_plus_errors(results: xr.Dataset) -> xr.DataArray:
    """Returns the mean regret over seeds plus 3 standard errors; only the mean if there is only one seed."""
    regret = results.pseudo_regret
    count = regret.sizes["seed"]
    return regret.mean("seed") + (3 * regret.std("seed", ddof=1) / np.sqrt(count) if count > 1 else 0.0)


STUDY = Study(
    ldp_bandits,
    figure,
    report,
    quick={"horizon": (10_000,), "problem": ("convex", "strongly_convex"), "num_seeds": 8},
    minutes=1,
)
