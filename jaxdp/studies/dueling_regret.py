"""Cost of privacy in dueling bandits (Saha & Asi, 2024: DP-Dueling, Theorems 1 and 2).

Plays every dueling bandit on one instance, with a trusted curator or
with outcomes that are randomized before they leave the user.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdp import dueling, plotting
from jaxdp.preferences import preference_gaps, utility_matrix
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Horizon, Key, NumSeeds, Registered
from jaxdp.studies.comparison import Line
from jaxdp.studies.declared import Study
from jaxdp.theory import dueling as theory
from jaxdp.validation import check_delta, check_finite, check_horizon

EPSILONS = (0.1, 0.3, 1.0, 3.0, float("inf"))
UTILITIES = (2.0, 1.0, 0.0)
HORIZON = 20_000
NUM_SEEDS = 20
NUM_CHECKPOINTS = 10  # in the last three decades of rounds
DELTA = 1e-6
TILE_SIZE = 20
ABREAST = 3  # panels side by side
LEAST_HORIZON = 100  # exponents are fitted over a decade of rounds

UPPER_LABEL = "Thm 1 (upper bound of DP-EBS, central), constants as printed"
LOWER_LABEL = "order of Thm 2 (lower bound), through the lowest first mark"


def duel_learners() -> dict[str, LearnerEntry]:
    """Returns the registered dueling bandits, keyed by name."""
    return {name: entry for name, entry in LEARNERS.items() if entry.family == "dueling"}


def dueling_regret(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    utility: Annotated[
        Sequence[float], typer.Option(help="Utility of an arm. Repeat for each arm; the largest must be unique.")
    ] = UTILITIES,
    horizon: Horizon = HORIZON,
    delta: Annotated[float, typer.Option(help="Delta of Gaussian noise and of shuffled reports, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the regret of dueling bandits, for every learner, epsilon, number of rounds and seed.

    Learners use the constants of their proofs, if there are proofs, and failure_prob = 0.05. Learners that support
    counts are simulated from counts, which are totals over many rounds; all other learners are simulated block by block
    or round by round. The two groups see different random outcomes of duels.

    Returns:
        A dataset with `pseudo_regret`, the sum of 2 max r - r[left] - r[right], and the environment's other outcomes,
        of dimensions (learner, epsilon, round, seed). Rounds are evenly spaced on a logarithmic scale, from the maximum
        of num_arms + 1 and a thousandth of the horizon to the horizon. The dataset has the coordinates `utility` along
        arm, `trust_model` along learner, and `delta`.
    """
    check_delta(delta)
    known = duel_learners()
    names = shared.select_names(learner, known)
    utilities = check_finite("utility", utility)
    if utilities.ndim != 1 or len(utilities) < 2 or np.sum(utilities == utilities.max()) != 1:
        raise ValueError(f"utility must be at least two numbers with a unique maximum, got {list(utility)}")
    duels = dueling.utility_duels(utilities)
    num_arms, horizon = len(utilities), check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * len(utilities)))
    spaced = np.geomspace(max(horizon / 1000, num_arms + 1), horizon, NUM_CHECKPOINTS)
    checkpoints = np.unique(spaced.round().astype(int)).tolist()

    def build(learner: str) -> Run:
        return shared.entry_run(known[learner], duels, num_arms, horizon, checkpoints=checkpoints, delta=delta)

    results = shared.compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )
    models = shared.trust_models_of(known, names)
    return results.assign_coords(utility=("arm", utilities.astype(float)), trust_model=("learner", models), delta=delta)


def gaps(results: xr.Dataset) -> np.ndarray:
    """Returns the gaps P[best, i] - 1/2 ([num_arms - 1] float64) for all other arms i.

    P[best, i] is the probability that the best arm beats arm i.
    """
    utilities = results.utility.values
    return np.delete(preference_gaps(utility_matrix(utilities)), utilities.argmax())


def figure(results: xr.Dataset) -> Figure:
    """Draws regret against rounds for every epsilon, and against epsilon after all rounds."""
    suboptimality_gaps = gaps(results)
    regret = results.pseudo_regret.sortby("epsilon")
    labels = shared.learner_labels(results.trust_model)

    def bounds(ax: Axes, values: xr.DataArray) -> None:
        _draw_bounds(ax, values["round"].values, values["round"].values, float(values.epsilon), suboptimality_gaps)

    figure, last = shared.draw_growth(regret, "learner", "epsilon", bounds, labels=labels, abreast=ABREAST)
    style: dict[str, Any] = {"yscale": "log", "ylabel": shared.UTILITY_REGRET}
    plotting.cost_of_privacy(regret, hue="learner", ax=last, labels=labels, **style)
    epsilons = regret.epsilon.values
    _draw_bounds(last, epsilons, int(regret["round"][-1]), epsilons, suboptimality_gaps)
    figure.explain(
        title=f"Cost of privacy in dueling bandits ({len(suboptimality_gaps) + 1} arms)",
        note="The constants of Thm 1 are not proved: DP-EBS may lose more. Where Thm 1 is above the straight line of "
        "the first rounds, it exceeds the regret of any learner.",
    )
    return figure


def _draw_bounds(ax: Axes, x: Any, rounds: Any, epsilon: Any, suboptimality_gaps: np.ndarray) -> None:
    """Draws Theorem 1 with its constants, and the order of Theorem 2 through the lowest first mark."""
    shared.draw_line(ax, Line(x, theory.regret_upper(epsilon, rounds, suboptimality_gaps), UPPER_LABEL))
    shared.draw_line(
        ax, Line(x, theory.regret_lower(epsilon, rounds, suboptimality_gaps), LOWER_LABEL, through="lowest")
    )


def table(results: xr.Dataset) -> str:
    """Formats the mean regret after all rounds, and the bound of Theorem 1."""
    horizon = int(results["round"][-1])
    return shared.mean_table(
        f"regret after {horizon:,} rounds",
        results.pseudo_regret.isel(round=-1),
        shared.learner_labels(results.trust_model),
        below={"Thm 1 as printed (central)": theory.regret_upper(results.epsilon.values, horizon, gaps(results))},
    )


def growth(results: xr.Dataset) -> str:
    """Formats the fitted exponents of T, in the last decade at each epsilon, and of 1 / epsilon after all rounds."""
    regret = results.pseudo_regret
    horizon = int(regret["round"][-1])
    decade = regret.sel(round=regret["round"] >= 0.99 * horizon / 10)
    finite = regret.isel(round=-1).sel(epsilon=np.isfinite(regret.epsilon))
    several, values = finite.sizes["epsilon"] > 1, regret.epsilon.values
    rows = []
    for name, label in shared.learner_labels(results.trust_model).items():
        learner_regret = decade.sel(learner=name)
        price = [shared.exponent(finite.sel(learner=name), "epsilon", sign=-1)] if several else []
        rows.append([label, *(shared.exponent(learner_regret.sel(epsilon=value), "round") for value in values), *price])
    title = f"exponents of regret: of T, from {horizon / 10:,.0f} to {horizon:,} rounds"
    if several:
        ends = finite.epsilon.values
        title += f"; of 1/ε, from ε = {ends.min():g} to {ends.max():g} after {horizon:,} rounds"
    head = [*(f"T, {label}" for label in shared.epsilon_headers(regret)), *(["1/ε"] if several else [])]
    return shared.format_table(title, head, rows)


def report(results: xr.Dataset) -> str:
    """Formats regret, its growth, and notes on both."""
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {seeds}. Intervals of exponents cover the slope "
        "of the mean on logarithmic axes; they do not test whether the curve is a straight line.",
        "An exponent of T near 1: the learner has not found the best arm yet. With growth like log T the exponent "
        "falls towards 0.",
        "Central learners trust a curator with the outcome of every duel. Local learners randomize each outcome before "
        "it leaves the user. In the shuffle model they randomize less, and a shuffler hides the sender of each report. "
        f"delta = {float(results.delta):g} for Gaussian noise and shuffled reports.",
    ]
    return "\n\n".join([table(results), growth(results), *notes])


STUDY = Study(
    dueling_regret,
    figure,
    report,
    quick={"horizon": 2000, "learner": ("ebs_phased", "rucb_blocks", "ebs_local"), "num_seeds": 10},
    minutes=2,
)
