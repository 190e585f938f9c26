"""Ranking from comparisons under label privacy: how much budget does an order need?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import typer
import xarray as xr

from jaxdp import plotting
from jaxdp.estimation import comparison_table, debiased_rr, mle, objective_perturbation
from jaxdp.preferences import ComparisonTable, baseball1987, read_comparisons
from jaxdp.simulation import Run, estimation_run, sweep
from jaxdp.studies.output import claim_folder, save

EPSILONS = (0.5, 1.0, 2.0, 4.0, float("inf"))
DELTA = 1e-3
RADIUS = 5.0

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
    radius: float = RADIUS,
    delta: float = DELTA,
    key: jax.Array,
    progress: bool = False,
) -> xr.Dataset:
    """Abilities and ranks of the items of a table, for every estimator, epsilon and seed.

    The comparisons are what they are; the seeds differ in privacy's randomness only. Which pairs were compared, and how
    often, is public; who won each comparison is private.

    Args:
        table: who was compared with whom, and who won.
        epsilon: privacy budgets, > 0; infinity is no privacy.
        num_seeds: repetitions.
        radius: bound on the norm of the abilities (log odds, mean zero), > 0.
        delta: of the central estimator, in (0, 1).
        key: root key.
        progress: show a progress bar.

    Returns:
        A dataset with `ability` and `rank` (dimensions estimator, epsilon, item, seed), `agreement` (Kendall's tau with
        the ranking at no privacy; estimator, epsilon, seed), `certificate`, `steps` and `converged`.

    Raises:
        ValueError: if a value is out of range.
    """
    compared = {
        "mle": mle(zero_sum=True),
        "objective_perturbation": objective_perturbation(zero_sum=True),
        "debiased_rr": debiased_rr(zero_sum=True),
    }

    def build() -> Run:
        return estimation_run(compared, comparison_table(table))

    results = sweep(
        build,
        axes={"epsilon": list(epsilon), "delta": [delta], "radius": [radius]},
        num_seeds=num_seeds,
        key=key,
        tile_size=16,
        progress=progress,
    )
    results = results.squeeze(("delta", "radius"))
    results["agreement"] = kendall_tau(results["rank"], results["rank"].sel(estimator="mle").isel(epsilon=0, seed=0))
    return results.transpose("estimator", "epsilon", "item", "seed")


def kendall_tau(rank: xr.DataArray, reference: xr.DataArray) -> xr.DataArray:
    """Kendall's tau of rankings without ties: the share of pairs in the same order minus that in the opposite one.

    Args:
        rank: dimension item, and any others.
        reference: dimension item.

    Returns:
        In [-1, 1], without the dimension item.
    """
    other = rank.rename(item="other")
    agree = xr.ufuncs.sign(rank - other) * xr.ufuncs.sign(reference - reference.rename(item="other"))
    count = reference.sizes["item"]
    return agree.sum(("item", "other")) / (count * (count - 1))


def figure(results: xr.Dataset):
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
    lines.append(
        f"\nUnder label privacy, over {results.sizes['seed']} seeds: agreement with that ranking (Kendall's tau: 1"
        " same, 0 unrelated, -1 reversed),\nand how often the same item comes first."
    )
    lines.append(
        f"{'':<{width}}" + "".join(f"{plotting.epsilon_label(e).split(' (')[0]:>22}" for e in results.epsilon.values)
    )
    first = (results["rank"].isel(item=order[0]) == 1).mean("seed")
    mean, half = plotting.mean_and_half_width(results.agreement)
    for name in results.estimator.values:
        row = zip(
            mean.sel(estimator=name).values,
            half.sel(estimator=name).values,
            first.sel(estimator=name).values,
            strict=True,
        )
        lines.append(f"{name:<{width}}" + "".join(f"{m:>8.3f} +- {h:.3f}  {f:>4.0%}" for m, h, f in row))
    return "\n".join(lines)


def command(
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
    radius: Annotated[float, typer.Option(help="Bound on the norm of the abilities (log odds, mean zero).")] = RADIUS,
    delta: Annotated[float, typer.Option(help="Failure mass of the central estimator, in (0, 1).")] = DELTA,
    seed: Annotated[int, typer.Option(help="Root seed of all randomness.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="New or empty folder for data.zarr and figure.png. Without it: results/private-ranking, or the next "
            "free results/private-ranking-2, ..."
        ),
    ] = None,
) -> None:
    """Rank items from comparisons whose outcomes are private.

    Fits Bradley-Terry abilities from outcomes in the clear, with central label
    privacy and with local label privacy. Writes data.zarr and figure.png, and
    prints how well the rankings agree.
    """
    data_set = baseball1987() if comparisons is None else read_comparisons(comparisons)
    folder = claim_folder(out, "private-ranking")
    try:
        results = private_ranking(
            data_set,
            epsilon=epsilon,
            num_seeds=seeds,
            radius=radius,
            delta=delta,
            key=jax.random.key(seed),
            progress=True,
        )
    except BaseException:
        folder.rmdir()  # it is empty: nothing is written before all is computed
        raise
    data, image = save(results, figure(results), folder)
    typer.echo(f"{len(data_set.items)} items, {data_set.num_comparisons} comparisons\n")
    typer.echo(table(results))
    typer.echo(f"\ndata:   {data}\nfigure: {image}")
