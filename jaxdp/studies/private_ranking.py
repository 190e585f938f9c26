"""Ranking from comparisons under label privacy: how much budget does an order need?"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.estimation import comparison_table, debiased_rr, mle, objective_perturbation
from jaxdp.preferences import ComparisonTable, baseball1987, read_comparisons
from jaxdp.simulation import Run, estimation_run, sweep
from jaxdp.studies.command import Delta, Seed, Study, columns, convergence_notes, root_key

EPSILONS = (0.5, 1.0, 2.0, 4.0, float("inf"))
DELTA = 1e-3
ON_THE_BOUND = 0.999  # of the radius
LARGEST_ABILITY = 3.0  # root mean square over items, in log odds: the bound that is used where none is given

LABELS = {
    "mle": "no privacy: mle",
    "objective_perturbation": "central: objective_perturbation",
    "debiased_rr": "local: debiased_rr",
}


def private_ranking(
    table: ComparisonTable,
    *,
    epsilon: Sequence[float] = EPSILONS,
    num_seeds: int = 200,
    radius: float | None = None,
    delta: float = DELTA,
    key: jax.Array,
    **scheduling: Any,
) -> xr.Dataset:
    """Abilities and ranks of the items of a table, for every estimator, epsilon and seed.

    The comparisons are what they are; the seeds differ in privacy's randomness only. Which pairs were compared, and how
    often, is public; who won each comparison is private.

    Args:
        table: who was compared with whom, and who won.
        epsilon: privacy budgets, > 0; infinity is no privacy.
        num_seeds: repetitions.
        radius: bound on the norm of the abilities (log odds, mean zero), > 0. None is 3 sqrt(number of items), a root
            mean square ability of 3: a bound on the norm alone would bind ever harder as tables grow.
        delta: of the central estimator, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `ability` and `rank` (dimensions estimator, epsilon, item, seed), `agreement` (Kendall's tau with
        the ranking at no privacy; estimator, epsilon, seed), `certificate`, `steps` and `converged`, and the radius as
        a coordinate. Where a fit failed, ability, rank and agreement are NaN.

    Raises:
        ValueError: if a value is out of range.
    """
    compared = {
        "mle": mle(zero_sum=True),
        "objective_perturbation": objective_perturbation(zero_sum=True),
        "debiased_rr": debiased_rr(zero_sum=True),
    }

    if radius is None:
        radius = LARGEST_ABILITY * math.sqrt(len(table.items))

    def build() -> Run:
        return estimation_run(compared, comparison_table(table))

    results = sweep(
        build,
        axes={"epsilon": list(epsilon), "delta": [delta], "radius": [radius]},
        num_seeds=num_seeds,
        key=key,
        tile_size=16,
        **scheduling,
    )
    results = results.squeeze(("delta", "radius"))
    results["rank"] = results["rank"].where(results.ability.notnull())
    results["agreement"] = kendall_tau(results["rank"], results["rank"].sel(estimator="mle").isel(epsilon=0, seed=0))
    return results.transpose("estimator", "epsilon", "item", "seed")


def kendall_tau(rank: xr.DataArray, reference: xr.DataArray) -> xr.DataArray:
    """Kendall's tau of rankings without ties: the share of pairs in the same order minus that in the opposite one.

    Args:
        rank: dimension item, and any others.
        reference: dimension item, of at least two items.

    Returns:
        In [-1, 1], without the dimension item; NaN where a rank is NaN.
    """
    other = rank.rename(item="other")
    agree = xr.ufuncs.sign(rank - other) * xr.ufuncs.sign(reference - reference.rename(item="other"))
    count = reference.sizes["item"]
    return agree.sum(("item", "other"), skipna=False) / (count * (count - 1))


def figure(results: xr.Dataset) -> Figure:
    """The figure: abilities in the order of the non-private ranking, one panel for every epsilon."""
    best_first = results["rank"].sel(estimator="mle").isel(epsilon=0, seed=0).argsort()
    return plotting.ability_intervals(
        results.ability.isel(item=best_first.values), title="What label privacy costs a ranking", labels=LABELS
    )


def table(results: xr.Dataset) -> str:
    """Abilities without privacy, and how far each estimator's ranking agrees with them."""
    clear = results.sel(estimator="mle").isel(epsilon=0, seed=0)
    order = np.argsort(clear["rank"].values)
    width = max(len(str(name)) for name in (*results["item"].values, *results.estimator.values))
    lines = ["Without privacy:", f"{'rank':>4}  {'item':<{width}}  ability (log odds above the last)"]
    names, abilities = clear["item"].values[order], clear.ability.values[order]
    for position, (name, ability) in enumerate(zip(names, abilities, strict=True)):
        lines.append(f"{position + 1:>4}  {name:<{width}}  {ability - abilities[-1]:.3f}")
    seeds = plotting.seed_count(results.sizes["seed"])
    lines.append(
        f"\nUnder label privacy, over {seeds}: agreement with that ranking (Kendall's tau: 1"
        " same, 0 unrelated, -1 reversed;\n+- 95% confidence interval of the mean, Student's t), and how often the same"
        " item comes first."
    )
    rank = results["rank"].isel(item=order[0])
    first = (rank == 1).where(rank.notnull()).mean("seed", skipna=False)
    mean, half = plotting.mean_and_half_width(results.agreement)
    rows = [["", *(plotting.epsilon_label(epsilon).split(" (")[0] for epsilon in results.epsilon.values)]]
    for name in results.estimator.values:
        numbers = (values.sel(estimator=name).values for values in (mean, half, first))
        rows.append([name, *(f"{m:.3f} +- {h:.3f}  {f:>4.0%}" for m, h, f in zip(*numbers, strict=True))])
    return "\n".join([*lines, *columns(rows)])


def notes(comparisons: ComparisonTable, results: xr.Dataset) -> list[str]:
    """What a reader of the results has to know.

    Args:
        comparisons: the table that was ranked.
        results: of `private_ranking`.

    Returns:
        Notes on items that were never compared, on abilities that the bound limits, and on minimisations that did not
        converge; none where all is well.
    """
    found = []
    compared = set(comparisons.pairs.ravel().tolist())
    idle = [name for index, name in enumerate(comparisons.items) if index not in compared]
    if idle:
        found.append(f"note: never compared, so that their ability and rank mean nothing: {', '.join(idle)}.")
    norm = float(np.linalg.norm(results.ability.sel(estimator="mle").isel(epsilon=0, seed=0)))
    radius = float(results.radius)
    if norm >= ON_THE_BOUND * radius:
        found.append(
            f"note: without privacy the abilities lie on the bound (norm {norm:.4g}, radius {radius:.4g}) and would be"
            " larger without it:\nan item or a group of items won or lost all its comparisons with the others, or the"
            " radius is too small (--radius)."
        )
    return found + convergence_notes(results)


def report(comparisons: ComparisonTable, results: xr.Dataset) -> str:
    """What the command prints: the size of the table, the rankings, and what to know about them."""
    size = f"{len(comparisons.items)} items, {comparisons.num_comparisons} comparisons"
    return "\n\n".join([size, table(results), *notes(comparisons, results)])


def options(
    comparisons: Annotated[
        Path | None,
        typer.Option(
            help="CSV with columns winner, loser and optionally weight (number of comparisons); names or numbers. "
            "Without it: the 1987 American League season."
        ),
    ] = None,
    epsilon: Annotated[
        list[float], typer.Option(help="Privacy budget, > 0; inf is no privacy. Repeat for several.")
    ] = list(EPSILONS),  # noqa: B006  typer copies it
    seeds: Annotated[int, typer.Option(help="Repetitions of privacy's randomness.")] = 200,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Bound on the norm of the abilities (log odds, mean zero). Without it: 3 sqrt(number of items), a "
            "root mean square ability of 3."
        ),
    ] = None,
    delta: Delta = DELTA,
    seed: Seed = 0,
) -> Study:
    """Rank items from comparisons whose outcomes are private.

    Fits Bradley-Terry abilities from outcomes in the clear, with central label
    privacy and with local label privacy, and tells how well the rankings agree.
    """
    data_set = baseball1987() if comparisons is None else read_comparisons(comparisons)
    simulate = partial(
        private_ranking,
        data_set,
        epsilon=epsilon,
        num_seeds=seeds,
        radius=radius,
        delta=delta,
        key=root_key(seed),
    )
    return Study(simulate, figure, partial(report, data_set))
