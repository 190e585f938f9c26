"""Rank items from private comparisons or ballots.

Fits Bradley-Terry abilities without privacy, with central and with local
privacy. Reports how often the winner stays first and how well the rankings
agree. This is a simulation for people who may see the data: its output is
not private. --release prints one private ranking instead.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.core import Estimator, Problem
from jaxdp.estimation import (
    ballot_election,
    ballot_mle,
    ballot_objective_perturbation,
    ballot_rr,
    comparison_table,
    debiased_rr,
    mle,
    objective_perturbation,
)
from jaxdp.plotting._dot_plot import ROW_HEIGHT
from jaxdp.preferences import Ballots, ComparisonTable, baseball1987, read_ballots, read_comparisons
from jaxdp.preferences.ballots import UNRANKED
from jaxdp.simulation import Run, estimation_run
from jaxdp.studies.central_noise import SUFFIX, describe_noise, merge_noises, with_noise
from jaxdp.studies.command import root_key
from jaxdp.studies.comparison import compare
from jaxdp.studies.declared import Derived, Study, TextOnly
from jaxdp.studies.ranking_release import default_delta, default_radius, ranking_release, release_key, release_report
from jaxdp.studies.ranking_report import FEWEST_SEEDS, SURVIVES, BallotTable, report
from jaxdp.studies.seeds import warn_of_few_seeds
from jaxdp.validation import check_choice, check_delta, check_positive, name_options

EPSILONS = (0.5, 1.0, 2.0, 4.0, float("inf"))
BALLOT_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, float("inf"))
UNITS = ("pair", "ballot")
UNKNOWN = "unknown"  # default of `unranked`, the interpretation of items that a ballot does not rank
NUM_SEEDS = 200

NOT_PRIVATE = "a simulation: not private"
ONLY_NOISE = "Only the privacy noise varies over seeds."

LABELS = {
    "mle": "no privacy: mle",
    "objective_perturbation": "central: objective_perturbation",
    "debiased_rr": "local: debiased_rr",
    "ballot_mle": "no privacy: ballot_mle",
    "ballot_objective_perturbation": "central: ballot_objective_perturbation",
    "ballot_rr": "local: ballot_rr",
}


def election(
    comparisons: Annotated[
        Path | None,
        typer.Option(
            help="CSV, or Parquet or JSON lines if it ends in .parquet or .jsonl, with columns winner, loser and "
            "optionally weight (number of comparisons) and tie (0 or 1), or model_a, model_b and winner (model_a, "
            "model_b, tie); names or numbers. Without this and --ballots: the 1987 American League season."
        ),
    ] = None,
    ballots: Annotated[
        Path | None, typer.Option(help="PrefLib file of ranked ballots, of type soc, soi, toc or toi.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Privacy unit. ballot: one whole ballot, including the items that it ranks (only with --ballots, and "
            "then the default). pair: the outcome of one comparison; the compared pairs are public."
        ),
    ] = None,
    unranked: Annotated[
        str,
        typer.Option(
            help="Reading of unranked items. unknown: the ballot does not compare them with ranked items, as PrefLib "
            "defines such files. last: they lose to ranked items, as elections count them. The report names both "
            "winners."
        ),
    ] = UNKNOWN,
    *,
    quietly: bool = False,
) -> ComparisonTable | Ballots:
    """Reads the data to rank; if `quietly`, errors do not quote the contents of a malformed file."""
    check_choice("unranked", unranked, UNRANKED)
    if unit is not None:
        check_choice("unit", unit, UNITS)
    if comparisons is not None and ballots is not None:
        raise ValueError(f"ballots must be given without --comparisons, got {ballots} and {comparisons}")
    if ballots is None and unit == "ballot":
        raise ValueError("unit must be pair without --ballots, got 'ballot'")
    if ballots is None and unranked != UNKNOWN:
        raise ValueError(f"unranked must be left out without --ballots, got {unranked!r}")
    try:
        if ballots is None:
            return baseball1987() if comparisons is None else read_comparisons(comparisons)
        votes = read_ballots(ballots)
        if unit != "pair":
            return votes
        return BallotTable(**vars(votes.comparisons(unranked=unranked)), ballots=votes)
    except ValueError:
        if not quietly:
            raise
        raise ValueError(
            f"{ballots or comparisons} must be a valid file; the same command without --release, for people who may "
            "see the data, names the faulty row"
        ) from None


def key_of(
    seed: Annotated[
        int | None,
        typer.Option(
            help="Root seed of all randomness, in [0, 2**32). Default: 0; with --release: fresh entropy, because "
            "anyone who knows the seed can remove the noise."
        ),
    ] = None,
) -> jax.Array:
    """Returns the root key of the simulation; without a seed, the key of seed 0."""
    return root_key(0 if seed is None else seed)


def private_ranking(
    data: Annotated[ComparisonTable | Ballots, Derived(election)],
    *,
    unranked: str = UNKNOWN,
    epsilon: Annotated[
        Sequence[float] | None,
        typer.Option(
            help="Privacy budget epsilon, > 0; inf for no privacy. Repeat for several. Default: 0.5 to 4 and inf for "
            "pairs, 0.25 to 64 and inf for ballots."
        ),
    ] = None,
    num_seeds: Annotated[
        int | None,
        typer.Option("--seeds", help=f"Repetitions of the privacy noise. Default: {NUM_SEEDS}."),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Bound on the norm of the abilities (log odds, mean zero). Default: 3 sqrt(number of items), a root "
            "mean square ability of 3."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta of a central estimator with Gaussian noise, in (0, 1). Default: the smaller of 1e-6 and "
            "n^(-3/2), for n comparisons, or n ballots if a whole ballot is private."
        ),
    ] = None,
    key: Annotated[jax.Array, Derived(key_of)],
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates abilities and ranks of items, for every estimator, epsilon and seed. The output is not private.

    The output includes the non-private abilities, comparisons with them, and many private estimates from the same data.
    Each private estimate spends its own budget. `ranking_release` makes a ranking that may be published.

    The data are fixed, and seeds differ only in the privacy noise. Therefore the results do not include the sampling
    error of the comparisons or ballots. For comparisons, the privacy unit is one outcome; the compared pairs, and how
    often each pair was compared, are public. For ballots, the privacy unit is one whole ballot, including the items
    that it ranks; the number of ballots is public. To protect one comparison of a ballot instead, rank
    `ballots.comparisons()`.

    The central estimator is run with Gaussian and with K-norm noise, as two estimators with separate claims. At each
    epsilon, figures and texts show the estimator with the smaller predicted error; the prediction does not use the
    data.

    The default radius grows with the number of items, because a constant bound on the norm would be tighter for more
    items. `Ballots.answers` explains `unranked`, which has no effect on a `ComparisonTable`. `default_delta` returns
    the default of delta.

    Returns:
        A dataset with `ability` and `rank` (estimator, epsilon, item, seed); `survival` (1 if the non-private winner
        comes first, else 0) and `agreement` (Kendall's tau with the non-private ranking), both (estimator, epsilon,
        seed); `certificate`, `steps` and `converged`. Coordinates include the radius and `noise` (epsilon), the noise
        of the central estimator that is shown. The first estimator is not private; it maximises the likelihood of all
        comparisons, or of all preferences that ballots state. If a private fit fails, its ability, rank, survival and
        agreement are NaN.

    Raises:
        ValueError: if a value is out of range, no ballot prefers an item to another item, comparisons do not connect
            all items, the ballots' preferences would take more than 512 MiB, or the non-private fit fails.
    """
    if epsilon is None:
        epsilon = BALLOT_EPSILONS if isinstance(data, Ballots) else EPSILONS
    radius = default_radius(len(data.items)) if radius is None else check_positive("radius", radius)
    if delta is None:
        delta = default_delta(data.num_ballots if isinstance(data, Ballots) else data.num_comparisons)
    check_delta(delta)
    compared, problem = _make_estimators(data, unranked)
    num_seeds = NUM_SEEDS if num_seeds is None else num_seeds
    warn_of_few_seeds(
        num_seeds, FEWEST_SEEDS, f"from which epsilon on the winner stays first {SURVIVES:.0%} of the time"
    )

    def build() -> Run:
        return estimation_run(compared, problem)

    fixed = {"delta": delta, "radius": radius}
    results = compare(build, {}, epsilon=epsilon, fixed=fixed, num_seeds=num_seeds, key=key, tile=16, **scheduling)
    results = with_noise(results, len(data.items) - 1)
    results["rank"] = results["rank"].where(results.ability.notnull())
    reference = results["rank"].isel(estimator=0, epsilon=0, seed=0, drop=True)
    winner = results["rank"].isel(item=int(reference.argmin("item")), drop=True)
    results["survival"] = (winner == 1).astype(float).where(winner.notnull())
    results["agreement"] = kendall_tau(results["rank"], reference)
    results.attrs["privacy"] = NOT_PRIVATE
    return results.transpose("estimator", "epsilon", "item", "seed")


def _make_estimators(data: ComparisonTable | Ballots, unranked: str) -> tuple[dict[str, Estimator], Problem]:
    """Returns the estimators for this kind of data, the non-private estimator first, and their problem."""
    count = len(data.items)
    if isinstance(data, Ballots):
        estimators = {
            "ballot_mle": ballot_mle(),
            "ballot_objective_perturbation": ballot_objective_perturbation(),
            "ballot_objective_perturbation" + SUFFIX: ballot_objective_perturbation(noise="k_norm", max_dim=count),
            "ballot_rr": ballot_rr(),
        }
        return estimators, ballot_election(data, unranked=unranked)
    estimators = {
        "mle": mle(zero_sum=True),
        "objective_perturbation": objective_perturbation(zero_sum=True),
        "objective_perturbation" + SUFFIX: objective_perturbation(noise="k_norm", zero_sum=True, max_dim=count),
        "debiased_rr": debiased_rr(zero_sum=True),
    }
    return estimators, comparison_table(data)


def kendall_tau(rank: xr.DataArray, reference: xr.DataArray) -> xr.DataArray:
    """Returns Kendall's tau of rankings without ties.

    Tau is the fraction of pairs in the same order minus the fraction of pairs in the opposite order. The result has no
    dimension item, is in [-1, 1], and is NaN where a rank is NaN. There must be at least two items.
    """
    other = rank.rename(item="other")
    agree = xr.ufuncs.sign(rank - other) * xr.ufuncs.sign(reference - reference.rename(item="other"))
    count = reference.sizes["item"]
    return agree.sum(("item", "other"), skipna=False) / (count * (count - 1))


def ability_figure(results: xr.Dataset) -> Figure:
    """Draws abilities in the order of the non-private ranking, one panel for every epsilon."""
    results = merge_noises(results)
    best_first = results["rank"].isel(estimator=0, epsilon=0, seed=0).argsort()
    abilities = results.ability.isel(item=best_first.values)
    return plotting.facets(
        abilities,
        y="item",
        hue="estimator",
        col="epsilon",
        draw=plotting.dot_plot,
        labels=LABELS,
        title=f"Cost of label privacy to a ranking ({NOT_PRIVATE})",
        note=f"{ONLY_NOISE} The mean ability of all items is 0. {describe_noise(results)}",
        reference=0.0,
        xlabel="ability (log odds)",
        abreast=results.sizes["epsilon"],
        width=2.6,
        height=1.0 + ROW_HEIGHT * len(best_first),
    )


def survival_figure(results: xr.Dataset) -> Figure:
    """Draws how often the non-private winner comes first, and how well the rankings agree, at every epsilon."""
    results = merge_noises(results)
    winner = str(
        results["item"].values[int(results["rank"].isel(estimator=0, epsilon=0, seed=0).argmin("item"))]
    ).replace("$", r"\$")  # not a formula
    figure = plotting.panels(1, 2, width=4.2, sharex=True)
    left, right = figure.axes
    options: dict[str, Any] = {"hue": "estimator", "labels": LABELS, "bars": True}
    first = f"how often {winner} comes first"
    plotting.cost_of_privacy(results.survival, ax=left, band="share", ylabel=first, **options)
    tau = "Kendall's tau with the ranking at no privacy"
    plotting.cost_of_privacy(results.agreement, ax=right, ylabel=tau, yscale="linear", **options)
    note = f"{ONLY_NOISE} {describe_noise(results)}"
    figure.explain(title=f"Cost of privacy in an election ({NOT_PRIVATE})", note=note)
    return figure


def figure(results: xr.Dataset, *, ballots: Path | None = None) -> Figure:
    """Draws `survival_figure` if the data come from a file of ballots (--ballots), else `ability_figure`."""
    return ability_figure(results) if ballots is None else survival_figure(results)


def make_release(
    options: Mapping[str, Any],
    *,
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="Print one private ranking at a single --epsilon, with pairwise intervals, and nothing else that "
            "depends on private data. For comparisons, and for ballots with --unit pair.",
        ),
    ] = False,
) -> TextOnly | None:
    """Returns the private ranking that --release prints instead of a simulation; None without --release."""
    if not release:
        return None
    budget = _release_budget(options["epsilon"], options["num_seeds"])
    key = release_key(options["seed"])
    data = election(*(options[name] for name in ("comparisons", "ballots", "unit", "unranked")), quietly=True)
    make_ranking = partial(
        ranking_release, data, epsilon=budget, delta=options["delta"], radius=options["radius"], key=key
    )
    fresh, of_ballots = options["seed"] is None, options["ballots"] is not None

    def print_ranking() -> str:
        with name_options(data="--ballots" if of_ballots else "--comparisons"):
            ranking = make_ranking()
        return release_report(ranking, fresh=fresh, of_ballots=of_ballots, unranked=options["unranked"])

    return TextOnly(print_ranking)


def _release_budget(epsilon: Sequence[float] | None, seeds: int | None) -> float:
    """Returns the only value in `epsilon`; raises ValueError unless there is exactly one value and `seeds` is None."""
    if seeds is not None:
        raise ValueError(f"seeds must be left out with --release, which draws once, got {seeds}")
    if epsilon is None or len(epsilon) != 1:
        values = ", ".join(f"{value:g}" for value in epsilon or ()) or "none"
        raise ValueError(f"epsilon must be given once with --release, got {values}")
    return epsilon[0]


STUDY = Study(private_ranking, figure, report, instead=make_release, quick={"num_seeds": 40}, minutes=0.5)
