"""What privacy costs in dueling bandits (Saha & Asi, 2024: DP-Dueling, Theorems 1 and 2).

Plays every dueling bandit on one instance, with a trusted curator or
with outcomes that are randomized before they leave the user.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdp import dueling, plotting
from jaxdp.preferences import preference_gaps, utility_matrix
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run, simulator, sweep
from jaxdp.stats import power_law
from jaxdp.studies.arguments import Epsilons, Horizon, Key, NumSeeds, Registered, fixed_delta
from jaxdp.studies.command import columns, mean_and_half_width
from jaxdp.studies.declared import Study
from jaxdp.studies.tiles import cpu_tile
from jaxdp.theory import dueling as theory
from jaxdp.validation import check_choice, check_delta, check_finite, check_horizon

EPSILONS = (0.1, 0.3, 1.0, 3.0, float("inf"))
UTILITIES = (2.0, 1.0, 0.0)
HORIZON = 20_000
NUM_SEEDS = 20
NUM_LOOKS = 10  # in the last three decades of rounds
DELTA = 1e-6
TILE_SIZE = 20
ABREAST = 3  # panels
LEAST_HORIZON = 100  # so that there is a decade to fit

UPPER_LABEL = "Thm 1 (upper bound of DP-EBS, central), constants as printed"
LOWER_LABEL = "order of Thm 2 (lower bound), through the lowest first mark"


def duel_learners() -> dict[str, LearnerEntry]:
    """The registered dueling bandits, by name."""
    return {name: entry for name, entry in LEARNERS.items() if entry.family == "dueling"}


def sized(entry: LearnerEntry, num_arms: int, horizon: int) -> LearnerEntry:
    """The entry for so many arms and rounds; other sizes of it are for a tiny problem, and go to their defaults."""
    return entry.sized(**{**dict.fromkeys(entry.sizes), "num_arms": num_arms, "horizon": horizon})


def dueling_regret(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    utility: Annotated[
        Sequence[float], typer.Option(help="Utility of an arm. Repeat for every arm; one is the largest alone.")
    ] = UTILITIES,
    horizon: Horizon = HORIZON,
    delta: Annotated[
        float, typer.Option(help="Failure mass of Gaussian noise and of shuffled reports, in (0, 1).")
    ] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of dueling bandits, for every learner, epsilon, number of rounds and seed.

    Learners have the constants of their proofs where they have any, and failure_prob = 0.05. They play by counts, where
    they have them (then worlds differ from those of the others), else by blocks or rounds.

    Args:
        epsilon: privacy budgets, > 0; infinity is no privacy.
        learner: names, of `duel_learners`; empty is all.
        num_seeds: repetitions.
        utility: of each arm, at least two and one of them the largest alone; the link is logistic.
        horizon: rounds, >= 100.
        delta: of learners with Gaussian noise or shuffled reports, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `pseudo_regret`, the sum of 2 max r - r[left] - r[right], and the environment's other outcomes,
        of dimensions (learner, epsilon, round, seed). Rounds are evenly spaced in their logarithm, from a thousandth of
        the horizon on. Coordinates `utility` and, by learner, `trust_model`.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    known = duel_learners()
    names = list(learner) or list(known)
    for name in names:
        check_choice("learner", name, tuple(known))
    utilities = check_finite("utility", utility)
    if utilities.ndim != 1 or len(utilities) < 2 or np.sum(utilities == utilities.max()) != 1:
        raise ValueError(f"utility must be at least two numbers, one of them the largest alone, got {list(utility)}")
    duels = dueling.utility_duels(utilities)
    num_arms, horizon = len(utilities), check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * len(utilities)))
    spaced = np.geomspace(max(horizon / 1000, num_arms + 1), horizon, NUM_LOOKS)
    looks = np.unique(spaced.round().astype(int)).tolist()

    def build(learner: str) -> Run:
        entry = sized(known[learner], num_arms, horizon)
        made = entry.make()
        engine = "counts" if made.counts else "auto"
        run = simulator(made, duels, horizon, checkpoints=looks, engine=engine)
        fixed = fixed_delta(entry.values, delta, horizon)
        return dataclasses.replace(run, params=partial(run.params, **fixed), guarantee=partial(run.guarantee, **fixed))

    results = sweep(
        build,
        axes={"epsilon": list(epsilon)},
        static_axes={"learner": names},
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(TILE_SIZE),
        **scheduling,
    )
    models = [known[name].make().guarantee(**known[name].values).trust_model for name in names]
    results = results.assign_coords(utility=("arm", utilities.astype(float)), trust_model=("learner", models))
    return results.assign_coords(delta=delta).transpose("learner", "epsilon", "round", "seed", ...)


def gaps(results: xr.Dataset) -> np.ndarray:
    """Delta(1, i) of all arms but the best: [num_arms - 1] float64."""
    utilities = results.utility.values
    return np.delete(preference_gaps(utility_matrix(utilities)), utilities.argmax())


def figure(results: xr.Dataset) -> Figure:
    """The figure: regret against rounds for every epsilon, and against epsilon after all rounds."""
    others = gaps(results)
    regret = results.pseudo_regret.sortby("epsilon")
    labels = plotting.prefixed(results.trust_model)
    style: dict[str, Any] = {"yscale": "log", "ylabel": "regret (in utility)"}

    def bounds(ax: Axes, values: xr.DataArray) -> None:
        _draw_bounds(ax, values["round"].values, values["round"].values, float(values.epsilon), others)

    figure = plotting.facets(
        regret,
        x="round",
        hue="learner",
        col="epsilon",
        also=bounds,
        labels=labels,
        abreast=ABREAST,
        spare=1,
        sharex=False,
        xscale="log",
        **style,
    )
    last = figure.axes[regret.sizes["epsilon"]]
    plotting.cost_of_privacy(regret, hue="learner", ax=last, labels=labels, **style)
    epsilons = regret.epsilon.values
    _draw_bounds(last, epsilons, int(regret["round"][-1]), epsilons, others)
    figure.explain(
        title=f"What privacy costs in dueling bandits ({len(others) + 1} arms)",
        note="The constants of Thm 1 are not proved: DP-EBS may lose more. It is above what any learner could lose "
        "where it is above the straight line of the first rounds.",
    )
    return figure


def _draw_bounds(ax: Axes, x: Any, rounds: Any, epsilon: Any, others: np.ndarray) -> None:
    """Theorem 1 as it is, and the order of Theorem 2 through the lowest first mark."""
    plotting.bound(ax, x, theory.regret_upper(epsilon, rounds, others), label=UPPER_LABEL)
    plotting.bound(ax, x, theory.regret_lower(epsilon, rounds, others), through="lowest", label=LOWER_LABEL)


def table(results: xr.Dataset) -> str:
    """Mean regret after all rounds, +- half width of its 95% confidence interval."""
    mean, half = mean_and_half_width(results.pseudo_regret.isel(round=-1))
    rows = [["", *(plotting.epsilon_label(value) for value in results.epsilon.values)]]
    for name, label in plotting.prefixed(results.trust_model).items():
        pairs_ = zip(mean.sel(learner=name).values, half.sel(learner=name).values, strict=True)
        rows.append([label, *(f"{m:,.0f} +- {h:,.0f}" for m, h in pairs_)])
    bound = theory.regret_upper(results.epsilon.values, int(results["round"][-1]), gaps(results))
    rows.append(["Thm 1 as printed (central)", *(f"{value:,.0f}" for value in bound)])
    return "\n".join([f"regret after {int(results['round'][-1]):,} rounds", *columns(rows)])


def growth(results: xr.Dataset) -> str:
    """Fitted exponents: of T over the last decade of rounds for every epsilon, and of 1 / epsilon after all rounds."""
    regret = results.pseudo_regret
    horizon = int(regret["round"][-1])
    in_rounds = power_law(regret.sel(round=regret["round"] >= 0.99 * horizon / 10), "round")
    finite = regret.isel(round=-1).sel(epsilon=np.isfinite(regret.epsilon))
    inverse = finite.assign_coords(epsilon=1 / finite.epsilon)
    in_budget = power_law(inverse, "epsilon") if finite.sizes["epsilon"] > 1 else None
    head = [f"T, {plotting.epsilon_label(value)}" for value in regret.epsilon.values]
    rows = [["", *head, *(["1/ε"] if in_budget is not None else [])]]
    for name, label in plotting.prefixed(results.trust_model).items():
        of_rounds = [_interval(in_rounds.sel(learner=name, epsilon=value)) for value in regret.epsilon.values]
        of_budget = [] if in_budget is None else [_interval(in_budget.sel(learner=name))]
        rows.append([label, *of_rounds, *of_budget])
    text = f"exponents of regret: of T, from {horizon / 10:,.0f} to {horizon:,} rounds"
    if in_budget is not None:
        budgets = finite.epsilon.values
        text += f"; of 1/ε, from ε = {budgets.min():g} to {budgets.max():g} after {horizon:,} rounds"
    return "\n".join([text, *columns(rows)])


def _interval(fit: xr.Dataset) -> str:
    middle, low, high = (round(float(fit[name]), 2) + 0.0 for name in ("exponent", "low", "high"))  # no -0.00
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def report(results: xr.Dataset) -> str:
    """What the command prints: regret, how it grows, and what that means."""
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {seeds}. Those of exponents are about the slope "
        "of the mean on logarithmic axes, not about whether it is a straight line.",
        "An exponent of T near 1 is of a learner that has not found the best arm yet; growth like log T has one that "
        "falls towards 0.",
        "Central learners trust a curator with every duel's outcome; local ones randomize each before it leaves the "
        "user; in the shuffle model they randomize less, and a shuffler hides who sent which report. "
        f"delta = {float(results.delta):g} where noise is Gaussian or reports are shuffled.",
    ]
    return "\n\n".join([table(results), growth(results), *notes])


STUDY = Study(dueling_regret, figure, report)
