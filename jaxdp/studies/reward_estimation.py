"""Cost of label privacy in reward estimation (Chowdhury et al., 2023: DP-Reward, Figure 1).

Compares non-private estimates with estimates under central label privacy
(objective perturbation, with and without weights that clip features of large
norm) and under local label privacy (randomized response).
"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.core import Estimator
from jaxdp.estimation import (
    debiased_rr,
    gaussian_rewards,
    literal_objective_perturbation,
    mle,
    mle_rr,
    objective_perturbation,
    sgd,
    sgd_objective_perturbation,
    sgd_rr,
)
from jaxdp.mechanisms.numerical import MAX_DIM
from jaxdp.simulation import Run, estimation_run
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.command import convergence_notes
from jaxdp.studies.comparison import compare, mean_table
from jaxdp.studies.declared import Study
from jaxdp.studies.orders import LABEL as ORDER_LABEL
from jaxdp.studies.orders import sample_orders, with_orders
from jaxdp.validation import check_choice, check_delta

EPSILONS = (0.1, 0.5, 1.0, float("inf"))
NUM_SAMPLES = (1000, 1800, 3000, 5500, 10000)
DELTA = 1e-3  # as in Figure 1 of DP-Reward; too large for real data with more than a few hundred labels
SOLVERS = ("exact", "averaged", "literal")
UNCOVERED_NOTE = "No theorem is known for cut weights."
TILE_SIZE = 16  # a tile with 10,000 samples per lane is about as large as the caches

LABELS = {
    "mle": "no privacy: mle",
    "objective_perturbation": "central: objective_perturbation",
    "objective_perturbation_cut": "central: objective_perturbation, weights cut",
    "objective_perturbation_cut_k_norm": "central, pure ε: weights cut, K-norm noise",
    "debiased_rr": "local: debiased_rr",
    "mle_rr": "local: mle_rr",
    "sgd": "no privacy: sgd",
    "sgd_objective_perturbation": "central: sgd_objective_perturbation",
    "sgd_objective_perturbation_cut": "central: sgd_objective_perturbation, weights cut",
    "literal_objective_perturbation": "central (as in the paper, no proof): literal_objective_perturbation",
    "sgd_rr": "local: sgd_rr",
}


def estimators(solver: str, dim: int = 1) -> dict[str, Estimator]:
    """Returns the estimators to compare, keyed by name.

    Args:
        solver: "exact" minimises over the ball of radius |theta*|. Central estimators have analytic Gaussian noise; the
            central estimator with cut weights also has a variant with K-norm noise, which is purely epsilon-DP.
            "averaged" makes one pass of SGD with the constant step 0.1, projected onto this ball, also with analytic
            Gaussian noise; the estimate is the average of the second half of the iterates. "literal" follows the
            paper's text: one pass with step 0.1, the last iterate, no projection, and the paper's sigma.
        dim: maximum number of features, for K-norm noise.

    Raises:
        ValueError: if solver is unknown.
    """
    check_choice("solver", solver, SOLVERS)
    if solver == "exact":
        return {
            "mle": mle(),
            "objective_perturbation": objective_perturbation(),
            "objective_perturbation_cut": objective_perturbation(weights="cut"),
            "objective_perturbation_cut_k_norm": objective_perturbation(
                weights="cut", noise="k_norm", max_dim=max(dim, MAX_DIM["k_norm"])
            ),
            "debiased_rr": debiased_rr(),
            "mle_rr": mle_rr(),
        }
    if solver == "averaged":
        return {
            "sgd": sgd(),
            "sgd_objective_perturbation": sgd_objective_perturbation(),
            "sgd_objective_perturbation_cut": sgd_objective_perturbation(weights="cut"),
            "sgd_rr": sgd_rr(),
        }
    return {
        "sgd": sgd(average="none"),
        "literal_objective_perturbation": literal_objective_perturbation(),
        "sgd_rr": sgd_rr(average="none"),
    }


def reward_estimation(
    *,
    epsilon: Epsilons = EPSILONS,
    num_features: Annotated[Sequence[int], grid("Number of features d. Repeat for several.")] = (5,),
    num_samples: Annotated[Sequence[int], grid("Number of comparisons n. Repeat for several.")] = NUM_SAMPLES,
    num_seeds: NumSeeds = 200,
    solver: Annotated[
        str,
        typer.Option(
            help="exact: minimisers over the ball of radius |theta*|. averaged: one pass of projected SGD, averaged. "
            "literal: SGD as the paper describes it; its error does not fall with n (constant step, last iterate).",
        ),
    ] = "exact",
    delta: Annotated[
        float,
        typer.Option(
            help="Delta of a central estimator with Gaussian noise, in (0, 1). The default is the value in the paper's "
            "Figure 1; real data needs a delta far below 1 / num_samples, such as 1e-6."
        ),
    ] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates errors of reward estimates, for every estimator, epsilon, num_features, num_samples and seed.

    The parameter, the features and the labels differ from seed to seed. `estimators` explains `solver`.

    Returns:
        A dataset with `l2_error`, `semi_norm_error`, `certificate`, `steps` and `converged`, each with dimensions
        (estimator, epsilon, num_features, num_samples, seed).

    Raises:
        ValueError: if a value is out of range, or solver is unknown.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6.
    """
    check_delta(delta)
    compared = estimators(solver, max(num_features))
    known_values = ("feature_norm",) if solver == "literal" else ("radius", "feature_norm")

    def build(num_features: int, num_samples: int) -> Run:
        return estimation_run(compared, gaussian_rewards(num_samples=num_samples, dim=num_features, known=known_values))

    static_axes = {"num_features": list(num_features), "num_samples": list(num_samples)}
    options = {"epsilon": epsilon, "fixed": {"delta": delta}, "num_seeds": num_seeds, "key": key, "tile": TILE_SIZE}
    results = compare(build, static_axes, **options, **scheduling)
    return results.transpose("estimator", "epsilon", "num_features", "num_samples", "seed")


def figure(results: xr.Dataset) -> Figure:
    """Draws the l2 error against num_samples, with a column for every epsilon and a row for every num_features."""
    sizes, names = results.num_features.values.tolist(), results.estimator.values.tolist()
    orders = sample_orders(names, float(results.delta))
    return plotting.facets(
        results.l2_error,
        x="num_samples",
        hue="estimator",
        col="epsilon",
        row="num_features",
        also=with_orders(orders, ORDER_LABEL, row="num_features"),
        labels=LABELS,
        title="Cost of label privacy in reward estimation" + (f" (d = {sizes[0]})" if len(sizes) == 1 else ""),
        note="" if len(orders) == len(names) else UNCOVERED_NOTE,
        xscale="log",
        yscale="log",
        xlabel="comparisons n",
        ylabel="l2 error of the reward parameter, |θ̂ - θ*|",
    )


def table(results: xr.Dataset) -> str:
    """Formats mean l2 errors."""
    names, heads = results.estimator.values, [f"{n:,}" for n in results.num_samples.values]
    return "\n".join(
        "\n"
        + mean_table(
            f"l2 error, d = {num_features}, {plotting.epsilon_label(epsilon)}, n =",
            results.l2_error.sel(num_features=num_features, epsilon=epsilon),
            dict(zip(names, names, strict=True)),
            head=heads,
            by="estimator",
            digits=4,
        )
        for num_features in results.num_features.values
        for epsilon in results.epsilon.values
    )


def report(results: xr.Dataset) -> str:
    """Formats the table and notes."""
    seeds = plotting.seed_count(results.sizes["seed"])
    meaning = f"+- and bands: 95% confidence interval (Student's t) of the mean over {seeds}."
    return "\n\n".join([table(results), meaning, *convergence_notes(results)])


STUDY = Study(reward_estimation, figure, report, quick={"num_samples": (1000,), "num_seeds": 40}, minutes=1)
