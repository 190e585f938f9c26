"""Cost of local privacy in rounds until the best arm is found (Zheng et al., 2020: LDP-Bandits).

Plays learners that choose when to stop. Rewards are binary, and each
reward is randomized before it leaves the user. Counts rounds and errors.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import jax
import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import bandits, plotting
from jaxdp.core import Learner
from jaxdp.registry.titles import display_name
from jaxdp.simulation import Run, simulator
from jaxdp.simulation.run.values import parameters
from jaxdp.stats import share_interval
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.comparison import bind_values, compare, epsilon_headers, format_rows, format_table, select_names
from jaxdp.studies.declared import Study
from jaxdp.theory import ldp_bandits as theory
from jaxdp.validation import check_count, check_delta, check_horizon, check_positive, check_probability

LEARNERS: dict[str, Callable[[int], Learner]] = {
    "pairwise_elimination": lambda num_arms: bandits.pairwise_elimination(num_arms=num_arms),
    "lil_ucb": lambda num_arms: bandits.lil_ucb(num_arms=num_arms),
    "lil_ucb_heuristic": lambda num_arms: bandits.lil_ucb(num_arms=num_arms, constants="heuristic"),
    "successive_elimination": lambda num_arms: bandits.successive_elimination(num_arms=num_arms),
    "lil_ucb_gaussian": lambda num_arms: bandits.lil_ucb(num_arms=num_arms, report="gaussian"),
    "successive_elimination_gaussian": lambda num_arms: bandits.successive_elimination(
        num_arms=num_arms, report="gaussian"
    ),
}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, float("inf"))
COMPARED = ("pairwise_elimination", "lil_ucb", "lil_ucb_heuristic", "successive_elimination")
ARMS = 2
GAP = 0.4
FAILURE_PROB = 0.05
HORIZON = 10**8
DELTA = 1e-9  # a tenth of 1 / horizon, because each round has a different user
NUM_SEEDS = 200
TILE_SIZE = 100
RESAMPLES = 400
METRICS = ("rounds", "censored", "wrong")


def ldp_best_arm(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Annotated[Sequence[str], grid(f"Learner: {', '.join(LEARNERS)}. Repeat for several.")] = COMPARED,
    num_seeds: NumSeeds = NUM_SEEDS,
    num_arms: Annotated[int, typer.Option("--arms", help="Arms, >= 2.")] = ARMS,
    gap: Annotated[float, typer.Option(help="Best mean minus the mean of all other arms, in (0, 1].")] = GAP,
    failure_prob: Annotated[float, typer.Option(help="Largest share of runs that may err, in (0, 1).")] = FAILURE_PROB,
    horizon: Annotated[int, typer.Option(help="Rounds after which a run is cut off.")] = HORIZON,
    delta: Annotated[float, typer.Option(help="Delta of Gaussian reports, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates stopping times and errors of learners that find the best of several binary arms.

    The mean of the best arm is (1 + gap) / 2, and the mean of every other arm is (1 - gap) / 2.

    Returns:
        A dataset with `rounds` (the number of rounds played), `censored` (1 if a run was cut off) and `wrong` (1 if a
        run stopped with an arm that is not the best), of dimensions (learner, epsilon, seed), and the scalar
        coordinates `gap`, `failure_prob`, `delta`, `num_arms` and `horizon`.
    """
    check_delta(delta)
    names = select_names(learner, LEARNERS)
    num_arms, horizon = check_count("num_arms", num_arms, 2), check_horizon(horizon)
    check_count("horizon", horizon, num_arms + 1)
    if check_positive("gap", gap) > 1:
        raise ValueError(f"gap must be in (0, 1], got {gap}")
    check_probability("failure_prob", failure_prob)
    world = bandits.bernoulli_bandit([(1 + gap) / 2, *[(1 - gap) / 2] * (num_arms - 1)])

    def build(learner: str) -> Run:
        algorithm = LEARNERS[learner](num_arms)
        engine = "counts" if algorithm.counts and not algorithm.blocks else "auto"
        run = simulator(algorithm, world, horizon, engine=engine, checkpoints=[horizon])
        fixed = {"failure_prob": failure_prob, **({"delta": delta} if "delta" in parameters(algorithm.params) else {})}
        return bind_values(keep_stopping_outputs(run), fixed)

    results = compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )
    results = results.assign_coords(gap=gap, failure_prob=failure_prob, delta=delta, num_arms=num_arms)
    return results.assign_coords(horizon=horizon)


def keep_stopping_outputs(run: Run) -> Run:
    """Returns `run` with only the outputs `METRICS`, each a scalar.

    `run` must have a single checkpoint, and may stop before it.
    """

    def simulate(key: jax.Array, params: object) -> Mapping[str, jax.Array]:
        outputs = run.simulate(key, params)
        correct, censored = outputs["correct"][-1], outputs["censored"]
        return {"rounds": outputs["rounds"], "censored": censored, "wrong": ~censored & ~correct}

    return dataclasses.replace(run, simulate=simulate, dims=dict.fromkeys(METRICS, ()), coords={})


def medians(results: xr.Dataset) -> xr.DataArray:
    """Returns median stopping times, which are infinite where at least half of the runs were cut off."""
    rounds = results.rounds.astype(np.float64).where(~results.censored.astype(bool), np.inf)
    return rounds.median("seed")


def slope(results: xr.Dataset) -> xr.Dataset:
    """Fits the slope of the log median stopping time against ln(c^2), over finite epsilons.

    The noise grows like c = (e^epsilon + 1) / (e^epsilon - 1).

    Args:
        results: results of `ldp_best_arm`.

    Returns:
        `slope`, `low` and `high`, of dimension learner. The limits have 95% confidence, and are percentiles over
        resampled seeds. The slope and its limits are NaN if the finite epsilons have fewer than two values of c. The
        slope is also NaN if, at a finite epsilon, at least half of the runs were cut off. The limits are also NaN if
        at least half of the runs of any resample were cut off there.
    """
    finite = results.sel(epsilon=np.isfinite(results.epsilon))
    names, draw = results.learner.values, np.random.default_rng(0)
    if finite.sizes["epsilon"] < 2:
        limits = np.full((3, len(names)), np.nan)
    else:
        x = 2 * np.log(theory.noise_factor(finite.epsilon.values))
        weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        rounds = finite.rounds.astype(float).where(~finite.censored.astype(bool), np.inf)
        values = rounds.transpose("learner", "epsilon", "seed").values
        count = values.shape[-1]

        def fit_slopes(values: np.ndarray) -> np.ndarray:
            middle: Any = np.median(values, axis=-1)
            is_known = np.isfinite(middle).all(axis=-1, keepdims=True)
            return np.where(is_known[:, 0], np.log(np.where(is_known, middle, 1)) @ weights, np.nan)

        resampled_slopes = [fit_slopes(values[..., draw.integers(count, size=count)]) for _ in range(RESAMPLES)]
        low, high = np.quantile(resampled_slopes, [0.025, 0.975], axis=0)
        limits = np.stack([fit_slopes(values), low, high])
    coords = {"learner": names}
    return xr.Dataset(
        {name: ("learner", row) for name, row in zip(("slope", "low", "high"), limits, strict=True)}, coords
    )


def labels_of(results: xr.Dataset) -> dict[str, str]:
    """Returns the learners' labels in legends and tables."""
    return {str(name): display_name(str(name)) for name in results.learner.values}


def table(results: xr.Dataset) -> str:
    """Formats each learner's median rounds, number of runs cut off and errors at each epsilon, and its slope."""
    middle, labels = medians(results), labels_of(results)
    wrong, head = share_interval(results.wrong.astype(np.float64)), epsilon_headers(results)
    errors = "share of runs that err (its upper limit at 95% confidence)"
    rows = {
        "median rounds until it stops": format_rows(labels, "{:,.0f}".format, middle),
        "runs cut off": format_rows(labels, "{:,}".format, results.censored.astype(int).sum("seed")),
        errors: format_rows(labels, "{:.4f} ({:.4f})".format, wrong.share, wrong.high),
    }
    fit = slope(results).expand_dims("fit", -1)
    slopes = format_rows(labels, _format_slope, fit["slope"], fit.low, fit.high)
    parts = [format_table(title, head, cells) for title, cells in rows.items()]
    return "\n\n".join([*parts, format_table("ln(median rounds) against ln(c^2), finite ε", ["slope"], slopes)])


def _format_slope(middle: float, low: float, high: float) -> str:
    return f"{middle:.3f} ({low:.3f} to {high:.3f})" if math.isfinite(middle) else "-"


def report(results: xr.Dataset) -> str:
    """Formats rounds, errors, slopes and notes."""
    return "\n\n".join(
        [
            table(results),
            f"{int(results.num_arms)} arms, gap {float(results.gap):g}, failure_prob {float(results.failure_prob):g}. "
            "c = (e^ε + 1) / (e^ε - 1): a randomized response shrinks all gaps by this factor, so rounds grow like "
            "c^2, times a logarithm of the rounds in successive elimination and an iterated logarithm in lil' UCB. "
            "Gaussian reports, which are (ε, δ)-private, have different noise. Intervals of slopes are by resampled "
            "seeds.",
            f"{plotting.seed_count(results.sizes['seed'])}. A run is cut off after {int(results.horizon):,} rounds.",
        ]
    )


def figure(results: xr.Dataset) -> Figure:
    """Draws stopping times and errors against epsilon."""
    results = results.sortby("epsilon")
    figure = plotting.panels(1, 2, height=3.2)
    rounds, errors = figure.axes
    budgets = results.epsilon.values
    plotting.cost_of_privacy(
        results.rounds.astype(float),
        hue="learner",
        ax=rounds,
        labels=labels_of(results),
        band="quantile",
        yscale="log",
        ylabel="rounds until it stops",
    )
    order = theory.noise_factor(budgets) ** 2
    plotting.bound(rounds, budgets, order, through="lowest", label="order c², through the lowest first mark")
    plotting.cost_of_privacy(
        results.wrong.astype(float),
        hue="learner",
        ax=errors,
        labels=labels_of(results),
        band="share",
        ylabel="share of runs that err",
    )
    plotting.bound(errors, budgets, float(results.failure_prob), label="failure_prob")
    cut = int(results.censored.sum())
    figure.explain(
        title=f"Cost of local privacy in finding the best of {int(results.num_arms)} arms",
        note=f"Gap {float(results.gap):g}. {cut:,} runs were cut off after {int(results.horizon):,} rounds.",
    )
    return figure


STUDY = Study(ldp_best_arm, figure, report, quick={"num_seeds": 40, "epsilon": (1.0, float("inf"))}, minutes=1)
