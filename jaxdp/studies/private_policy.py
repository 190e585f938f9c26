"""Cost of label privacy to a policy (Chowdhury, Zhou & Natarajan, 2023: DP-Reward, eq. (9)).

Learns greedy and pessimistic policies for a contextual bandit from
comparisons that a good policy collected. Labels are non-private, or have
central or local label privacy.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.core import Estimator
from jaxdp.estimation import (
    debiased_rr,
    mle,
    objective_perturbation,
    offline_bandit,
    with_confidence,
)
from jaxdp.estimation.confidence import FAILURE_PROB
from jaxdp.simulation import Run, estimation_run
from jaxdp.studies.arguments import Delta, Epsilons, Key, NumSeeds, grid
from jaxdp.studies.central_noise import SUFFIX, describe_noise, merge_noises, noise_lines, with_noise
from jaxdp.studies.command import convergence_notes
from jaxdp.studies.comparison import compare, format_table, mean_rows
from jaxdp.studies.declared import Study
from jaxdp.studies.orders import Order, sample_orders, with_orders
from jaxdp.validation import check_delta

EPSILONS = (0.1, 0.3, 1.0, float("inf"))
NUM_SAMPLES = (500, 2000, 8000)
NUM_FEATURES = 5
RADIUS = 3.0
EXPERTISE = 2.0
CURVATURE = 0.25
RIDGE = 1e-4
DELTA = 1e-6
NUM_SEEDS = 100
TILE_SIZE = 16
CENTRAL = "objective_perturbation"

LABELS = {
    "mle": "no privacy: mle",
    CENTRAL: "central: objective_perturbation",
    "debiased_rr": "local: debiased_rr",
}
ORDER_LABEL = (
    "greedy: order of 2L x the l2 error, Thm 5.3 (no privacy, central with Gaussian noise) or Thm 4.5 (local), through"
    " the first mark"
)
POLICY_LABELS = {
    "greedy": "greedy",
    "pessimistic": "pessimistic, eq. (9)",
    "pessimistic_per_state": "pessimistic per state",
}


def estimators(dim: int) -> dict[str, Estimator]:
    """Returns the estimators to compare, each with its confidence set, keyed by name."""
    return {
        "mle": with_confidence(mle()),
        CENTRAL: with_confidence(objective_perturbation()),
        CENTRAL + SUFFIX: with_confidence(objective_perturbation(noise="k_norm", max_dim=dim)),
        "debiased_rr": with_confidence(debiased_rr()),
    }


def private_policy(
    *,
    epsilon: Epsilons = EPSILONS,
    num_samples: Annotated[Sequence[int], grid("Number of comparisons n. Repeat for several.")] = NUM_SAMPLES,
    num_seeds: NumSeeds = NUM_SEEDS,
    num_features: Annotated[int, typer.Option(help="Number of features d.")] = NUM_FEATURES,
    radius: Annotated[float, typer.Option(help="Norm of the reward parameter; features have norm <= 1.")] = RADIUS,
    expertise: Annotated[
        float,
        typer.Option(
            help="Expertise of the policy that collected the data: it chooses an action with odds exp(expertise x "
            "reward). With 0 all actions are equally likely."
        ),
    ] = EXPERTISE,
    curvature: Annotated[
        float,
        typer.Option(
            help="Curvature that confidence sets assume, in [0, 0.25]. 0: proved, and very wide. 0.25: the curvature "
            "at even odds, a heuristic."
        ),
    ] = CURVATURE,
    ridge: Annotated[float, typer.Option(help="Lambda of the confidence sets' norm, >= 0.")] = RIDGE,
    failure_prob: Annotated[
        float, typer.Option(help="Failure probability of the confidence sets, in (0, 1).")
    ] = FAILURE_PROB,
    delta: Delta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the suboptimality of policies, for every estimator, kind of policy, epsilon, num_samples and seed.

    The central estimator is run with Gaussian and with K-norm noise, as two estimators with separate claims. At each
    epsilon, figures and texts show the estimator with the smaller predicted error; the prediction does not use the
    data.

    Returns:
        A dataset with `suboptimality` (estimator, policy, epsilon, num_samples, seed) and, without the dimension
        policy, `covered`, `width`, `gap`, `l2_error`, `certificate`, `steps` and `converged` (see `offline_bandit`).
        The coordinate `noise` (epsilon) names the noise of the central estimator that is shown.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    compared = estimators(num_features)

    def build(num_samples: int) -> Run:
        return estimation_run(compared, offline_bandit(num_samples=num_samples, dim=num_features))

    fixed = {"delta": delta, "radius": radius, "expertise": expertise}
    fixed |= {"curvature": curvature, "ridge": ridge, "failure_prob": failure_prob}
    options = {"epsilon": epsilon, "fixed": fixed, "num_seeds": num_seeds, "key": key, "tile": TILE_SIZE}
    results = compare(build, {"num_samples": list(num_samples)}, **options, **scheduling)
    results = with_noise(results.assign_coords(num_features=num_features), num_features)
    return results.transpose("estimator", "policy", "epsilon", "num_samples", "seed")


def figure(results: xr.Dataset) -> Figure:
    """Draws suboptimality against num_samples, with a column for every epsilon and a row for every learned policy."""
    results = merge_noises(results)
    num_features = int(results.num_features)
    bounds = sample_orders(results.estimator.values.tolist(), float(results.delta), lambda _: num_features)
    pure = set(results.epsilon.values[results.noise.values == "k_norm"].tolist())
    greedy = {name: _for_greedy(order, pure if name == CENTRAL else ()) for name, order in bounds.items()}
    return plotting.facets(
        results.suboptimality.sel(policy=list(POLICY_LABELS)),
        x="num_samples",
        hue="estimator",
        col="epsilon",
        row="policy",
        also=with_orders(greedy, ORDER_LABEL, row="policy"),
        labels={**LABELS, **POLICY_LABELS},
        title=f"Cost of label privacy to a policy (d = {num_features})",
        note=f"The policy that collected the data loses {reference_loss(results):.2g}. {describe_noise(results)}",
        xscale="log",
        yscale="log",
        xlabel="comparisons n",
        ylabel="expected reward lost",
    )


def _for_greedy(order: Order, uncovered: Collection[float]) -> Order:
    """Returns `order` for the policy "greedy", and NaN for other policies and for the epsilons in `uncovered`.

    The suboptimality of a greedy policy is at most 2 L times the l2 error, where L is the bound on the norm of
    features. Therefore a bound on the l2 error up to a constant factor also bounds the suboptimality up to a constant
    factor.
    """

    def bound(num_samples: np.ndarray, epsilon: float, policy: str) -> np.ndarray:
        has_bound = policy == "greedy" and epsilon not in uncovered
        return order(num_samples, epsilon, policy) if has_bound else np.full(len(num_samples), np.nan)

    return bound


def reference_loss(results: xr.Dataset) -> float:
    """Returns the mean suboptimality, over all bandits, of the policy that collected the data."""
    return float(results.suboptimality.sel(policy="reference").mean(skipna=False))


def table(results: xr.Dataset) -> str:
    """Formats the mean suboptimality."""
    results = merge_noises(results)
    heads, lines = [f"{n:,}" for n in results.num_samples.values], []
    for epsilon in results.epsilon.values:
        rows = [
            row
            for policy in POLICY_LABELS
            for row in mean_rows(
                results.suboptimality.sel(policy=policy, epsilon=epsilon),
                {name: f"{policy}, {name}" for name in results.estimator.values},
                by="estimator",
                digits=4,
            )
        ]
        lines.append("\n" + format_table(f"expected reward lost, {plotting.epsilon_label(epsilon)}, n =", heads, rows))
    return "\n".join(lines)


def notes(results: xr.Dataset) -> list[str]:
    """Returns notes on the reference policy, on confidence sets, and on fits that failed or did not converge."""
    texts = [
        f"The policy that collected the data loses {reference_loss(results):.4f}; pessimistic policies fall back on it"
        " if the data are uninformative."
    ]
    results = merge_noises(results)
    is_finite = np.isfinite(results.gap)
    if is_finite.any():
        covered = results.covered.where(is_finite).mean("seed")
        curvature, target = float(results.curvature), 100 * (1 - float(results.failure_prob))
        texts.append(
            f"Confidence sets contain the true parameter in {float(covered.min()):.0%} to {float(covered.max()):.0%} of"
            f" the seeds, over all settings (target: {target:.12g}%, at curvature {curvature:g}"
            + (", which is assumed and not proved)." if curvature > 0 else ").")
        )
        texts.append(
            f"The lower bounds of pessimistic policies are within {float(results.gap.max()):.2g} of the largest one."
        )
    if not is_finite.all():
        texts.append(
            f"note: {int((~is_finite).sum())} of {is_finite.size} confidence sets failed, and pessimistic policies are "
            "NaN there: the comparisons do not span\nall directions and ridge is 0, or the fit failed."
        )
    return [*texts, *convergence_notes(results)]


def report(results: xr.Dataset) -> str:
    """Formats the table and notes."""
    seeds = plotting.seed_count(results.sizes["seed"])
    meaning = f"+- and bands: 95% confidence interval (Student's t) of the mean over {seeds}."
    noise = ["\n".join(lines)] if (lines := noise_lines(results)) else []
    return "\n\n".join([table(results), meaning, *noise, *notes(results)])


STUDY = Study(private_policy, figure, report, quick={"num_samples": (500,), "num_seeds": 10}, minutes=1)
