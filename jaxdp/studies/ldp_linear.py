"""Cost of privacy in contextual linear bandits (Zheng et al., 2020: LDP-Bandits, Algorithm 5).

Plays optimistic learners with local privacy, with joint privacy and without
privacy. The local learner uses published or tight constants. With --contexts,
learners play on your own data.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits.contextual import linear_contexts
from jaxdp.simulation import Run, simulator
from jaxdp.stats import paired
from jaxdp.studies import comparison as shared
from jaxdp.studies import ldp_linear_logged as logged
from jaxdp.studies.arguments import Epsilons, GaussianDelta, Horizon, Key, NumSeeds, grid
from jaxdp.studies.comparison import UNIFORM, Line, Panel
from jaxdp.studies.declared import Derived, Study
from jaxdp.studies.linear_learners import LEARNERS, PUBLISHED, are_refused, bind_delta, check_learners, labels_of
from jaxdp.studies.seeds import FEWEST_FOR_A_MEAN, warn_of_few_seeds
from jaxdp.theory.ldp_bandits import TUNED
from jaxdp.validation import check_count, check_delta, check_horizon

EPSILONS = (0.5, 1.0, 2.0, 4.0, 64.0, 4096.0, float("inf"))
DIMS = (2, 5)
NUM_ARMS = 20
HORIZON = 100_000
DELTA = 1e-6
NUM_SEEDS = 8
NUM_CHECKPOINTS = 9  # in the last two decades of rounds
LEAST_HORIZON = 100
THETA_NORM = 0.5
TILE_SIZE = 64
LEARNS = 0.5  # exponents are fitted where regret is below this number times uniform play's regret
ORDER_LABEL = "order of a theorem, through the first mark"
LARGEST_FITTED = 4.0  # largest epsilon at which noise causes most of the regret
BASELINE = "gaussian"  # the regret of this learner at an infinite epsilon is the non-private regret


def read_contexts(
    path: Annotated[
        Path | None,
        typer.Option(
            "--contexts",
            help="Your data in place of random contexts: .npz with contexts [T, K, d] and rewards [T, K], or with "
            "logged actions [T] and rewards [T], and propensities [T, K] unless arms were uniform; or .npy with "
            "only contexts [T, K, d], for which rewards follow a linear model.",
            show_default=False,
        ),
    ] = None,
) -> logged.Data | None:
    """Reads the user's contexts and rewards; returns None, for random contexts, if `path` is None."""
    return None if path is None else logged.read_contexts(path)


def ldp_linear(
    *,
    learner: Annotated[Sequence[str], grid(f"Learner: {', '.join(LEARNERS)}. Repeat for several. Default: all.")] = (),
    epsilon: Epsilons = EPSILONS,
    dim: Annotated[Sequence[int], grid("Dimension of contexts. Repeat for several.")] = DIMS,
    num_seeds: NumSeeds = NUM_SEEDS,
    contexts: Annotated[logged.Data | None, Derived(read_contexts)] = None,
    num_arms: Annotated[int, typer.Option(help="Arms per round.")] = NUM_ARMS,
    horizon: Horizon = HORIZON,
    delta: GaussianDelta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the regret of optimistic learners in a linear model, for every dimension, epsilon, round and seed.

    Contexts are uniform on the sphere, |theta*| = 1/2, and rewards have uniform noise in [-1/2, 1/2]. Learners are made
    for `horizon` rounds.

    With the user's `contexts` the results come from `ldp_linear_logged`, and dim, num_arms and horizon must have their
    defaults.

    Returns:
        A dataset with `pseudo_regret` and `theta_error` (the distance of the estimated parameter from theta*), of
        dimensions (dim, learner, epsilon, round, seed), and `uniform_regret`, the expected regret of uniform play, of
        dimensions (dim, round). The learner "paper" has NaN where its noise is not proved to suffice, which is the case
        for finite epsilons of 1.5 or more.
    """
    check_delta(delta)
    if contexts is not None:
        sizes = {"dim": (list(dim), list(DIMS)), "num_arms": (num_arms, NUM_ARMS), "horizon": (horizon, HORIZON)}
        for name, (value, default) in sizes.items():
            if value != default:
                raise ValueError(f"{name} must be left out with contexts, which determine it, got {value}")
        arguments = {"learner": learner, "epsilon": epsilon, "delta": delta, "num_seeds": num_seeds, "key": key}
        return logged.ldp_linear_logged(contexts, **arguments, **scheduling)
    names = check_learners(learner)
    dims = sorted({check_count("dim", value) for value in dim})
    if not dims:
        raise ValueError("dim must have at least one value, got none")
    horizon = check_horizon(horizon, minimum=LEAST_HORIZON)
    if math.inf in list(epsilon) and BASELINE in names:
        warn_of_few_seeds(num_seeds, FEWEST_FOR_A_MEAN, "which epsilons come close to the non-private regret")
    checkpoints = np.unique(np.geomspace(horizon / 100, horizon, NUM_CHECKPOINTS).round().astype(int)).tolist()

    def build(learner: str, dim: int) -> Run:
        model = LEARNERS[learner].make(num_arms, dim, horizon)
        run = simulator(model, linear_contexts(num_arms=num_arms, dim=dim), horizon, checkpoints=checkpoints)
        return bind_delta(run, learner, delta, horizon)

    results = shared.compare(
        build,
        {"learner": names, "dim": dims},
        order=("dim", "learner"),
        epsilon=epsilon,
        num_seeds=num_seeds,
        key=key,
        tile=TILE_SIZE,
        **scheduling,
    )[["pseudo_regret", "theta_error"]]
    uniform = [[uniform_regret(num_arms, value) * rounds for rounds in checkpoints] for value in dims]
    return (
        results.where(~are_refused(names, epsilon))
        .assign(uniform_regret=(("dim", "round"), uniform))
        .assign_coords(delta=delta)
        .assign_attrs(num_arms=num_arms)
    )


def uniform_regret(num_arms: int, dim: int) -> float:
    """Returns the expected regret per round of uniform play, if contexts are uniform on the sphere.

    The regret is the expected maximum of `num_arms` means, because the mean of a random arm has expectation 0.
    """
    from scipy.stats import beta

    if dim == 1:
        return THETA_NORM * (1 - 0.5 ** (num_arms - 1))
    levels = (np.arange(20_000) + 0.5) / 20_000
    # For a coordinate z of a uniform point of the sphere, (1 + z) / 2 is Beta((dim - 1) / 2, (dim - 1) / 2).
    largest = 2 * beta.ppf(levels ** (1 / num_arms), (dim - 1) / 2, (dim - 1) / 2) - 1
    return THETA_NORM * float(largest.mean())


# ---- report ----------------------------------------------------------------------------------------------------------
def has_user_contexts(results: xr.Dataset) -> bool:
    """Returns whether the results are for the user's contexts, which have another figure and another report."""
    return "is_logged" in results.coords


def learning(results: xr.Dataset) -> xr.DataArray:
    """Returns whether the mean regret over seeds is below `LEARNS` times the regret of uniform play.

    The result is bool, without the dimension seed.
    """
    return results.pseudo_regret.mean("seed") < LEARNS * results.uniform_regret


def table(results: xr.Dataset, dim: int) -> str:
    """Formats the mean regret after all rounds."""
    last = results.sel(dim=dim).isel(round=-1)
    uniform = f"uniform play: {float(last.uniform_regret):,.0f}"
    title = f"regret after {int(last['round']):,} rounds, {dim} dimensions; {uniform}"
    return shared.mean_table(title, last.pseudo_regret, labels_of(results), dash=True)


def _dimensions(results: xr.Dataset) -> list[str]:
    return [f"{dim} dimensions" for dim in results.dim.values]


def gains(results: xr.Dataset) -> str:
    """Formats the ratio of the regret with the published constants to each other learner's regret.

    The epsilon is the finite epsilon nearest to 1 on a logarithmic scale. The text is empty if no epsilon is finite,
    this epsilon is not below `PUBLISHED`, "paper" is missing, or there is no other learner.
    """
    at = shared.nearest_epsilon(results)
    last = results.pseudo_regret.sel(epsilon=at).isel(round=-1)
    compared = [name for name in ("gaussian", "ball", "joint") if name in last.learner.values]
    if "paper" not in last.learner.values or not compared or at >= PUBLISHED:
        return ""
    means = last.mean("seed")
    labels = {name: LEARNERS[name].label for name in compared}
    rows = shared.format_rows(labels, "{:.2f}".format, means.sel(learner="paper", drop=True) / means)
    head = f"regret with the published constants / regret, {plotting.epsilon_label(at)}"
    return shared.format_table(head, _dimensions(results), rows)


def differences(results: xr.Dataset) -> str:
    """Formats the regret of "joint" minus the regret of "gaussian" (local), paired by seed, with intervals.

    The text is empty if a learner is missing, or there is only one seed.
    """
    if not {"gaussian", "joint"} <= set(results.learner.values) or results.sizes["seed"] < 2:
        return ""
    last = results.pseudo_regret.sel(learner=["gaussian", "joint"]).isel(round=-1)
    difference = paired(last, "learner", against="gaussian").sel(learner="joint")
    labels = dict(zip(results.dim.values, _dimensions(results), strict=True))
    cells = "{:,.0f} ({:,.0f} to {:,.0f})".format, difference.difference, difference.low, difference.high
    rows = shared.format_rows(labels, *cells, by="dim")
    title = "regret of joint minus regret of local with Gaussian reports, paired"
    return shared.format_table(title, shared.epsilon_headers(results), rows)


def exponents(results: xr.Dataset) -> str:
    """Formats the fitted exponents of T and 1 / epsilon at points where learners learn, and the exponents of bounds.

    For local learners, the bound's exponent of 1 / epsilon is from the radii (`TUNED`), not from Table 1.
    """
    rounds, budgets = results["round"].values, results.epsilon.values
    is_last_decade, is_fitted = rounds >= rounds.max() / 10, budgets <= LARGEST_FITTED
    shown_epsilons = [value for value in budgets if value <= LARGEST_FITTED or np.isinf(value)]
    head, rows = [*(f"T, {plotting.epsilon_label(value)}" for value in shown_epsilons), "bound", "1/ε", "bound"], []
    for dim in results.dim.values:
        dim_regret, learns = results.pseudo_regret.sel(dim=dim), learning(results.sel(dim=dim))
        for name, label in labels_of(results).items():
            regret, learner_learns = dim_regret.sel(learner=name), learns.sel(learner=name)
            cells = [
                shared.exponent(
                    regret.sel(epsilon=value), "round", is_last_decade & learner_learns.sel(epsilon=value).values
                )
                for value in shown_epsilons
            ]
            price = shared.exponent(
                regret.isel(round=-1), "epsilon", is_fitted & learner_learns.isel(round=-1).values, -1
            )
            claims = [f"{LEARNERS[name].rounds:.2f}", "-" if name == "joint" else f"{TUNED['linear'].privacy:.2f}"]
            rows.append([f"{dim} dimensions, {label}", *cells, claims[0], price, claims[1]])
    return shared.format_table("exponents of regret", head, rows)


def sufficient_epsilons(results: xr.Dataset) -> str:
    """Formats, for each learner, the smallest epsilon with regret shown to be within 10% of non-private regret.

    At this epsilon and at all larger epsilons of the grid, the learner's regret must be shown to be within 10%. All
    learners are compared with `BASELINE` at an infinite epsilon. If a learner with wide confidence bounds were compared
    with itself at an infinite epsilon, the learner would seem to need only a small epsilon. The text is empty if
    `BASELINE` was not run at an infinite epsilon.
    """
    if not shared.has_infinity(results) or BASELINE not in results.learner.values:
        return ""
    last, labels = results.pseudo_regret.isel(round=-1), labels_of(results)
    return shared.sufficient_epsilon_table(
        f"smallest ε of the grid at which regret is shown to be within {shared.WITHIN:.0%} of the non-private regret "
        f"({LEARNERS[BASELINE].label}, ε = ∞; 95% confidence)",
        last,
        last.sel(epsilon=math.inf, learner=BASELINE, drop=True),
        _dimensions(results),
        lambda smallest: shared.format_rows(labels, shared.format_threshold, smallest),
    )


def report(results: xr.Dataset) -> str:
    """Formats regret, ratios, differences, exponents, budgets and notes."""
    if has_user_contexts(results):
        return logged.report(results)
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}. "
        f"delta = {float(results.delta):g} for Gaussian noise; reports on a sphere are purely private. Local: users "
        "report noisy moments. Joint: a curator sees contexts and rewards, and all others see one counter's releases. "
        f"Published constants are proved only for ε below {PUBLISHED:g}.",
        f"Exponents are fitted where the mean regret is below {LEARNS:.0%} of uniform play's: in T over the last "
        f"decade of rounds, in 1/ε after all rounds over ε <= {LARGEST_FITTED:g}. A dash: fewer than two such points. "
        "The claim is (dT)^(3/4) for local privacy, with 1/ε as printed, or 1/ε^(1/2) from the radii; T^(1/2) for "
        "joint privacy.",
    ]
    dims = [int(value) for value in results.dim.values]
    parts = [
        *(table(results, dim) for dim in dims),
        gains(results),
        differences(results),
        exponents(results),
        sufficient_epsilons(results),
    ]
    return "\n\n".join([part for part in parts if part] + notes)


def figure(results: xr.Dataset) -> Figure:
    """Draws regret against epsilon, against T at one epsilon, and against d if there are several values of d."""
    if has_user_contexts(results):
        return logged.figure(results)
    results = results.sortby("epsilon")
    at, dim = shared.nearest_epsilon(results), int(results.dim.values[-1])
    dim_results, rounds, several = results.sel(dim=dim), results["round"].values.astype(float), results.sizes["dim"] > 1
    last, epsilon_text = dim_results.isel(round=-1), plotting.epsilon_label(at)
    orders = [
        Line(rounds, LEARNERS[name].order(at, float(results.delta), rounds, dim), ORDER_LABEL, name)
        for name in map(str, results.learner.values)
        if name != "paper"
        and math.isfinite(at)
        and bool((dim_results.pseudo_regret.sel(learner=name, epsilon=at).mean("seed") > 0).all())
    ]
    panels = [
        Panel(
            last.pseudo_regret,
            lines=[Line(results.epsilon.values, float(last.uniform_regret), UNIFORM)],
            style={"ylabel": "cumulative regret", "title": f"{int(last['round']):,} rounds, d = {dim}"},
        ),
        Panel(
            dim_results.pseudo_regret.sel(epsilon=at, drop=True),
            "round",
            [Line(rounds, dim_results.uniform_regret.values, UNIFORM), *orders],
            {"xscale": "log", "xlabel": "rounds T", "ylabel": "", "title": f"{epsilon_text}, d = {dim}"},
        ),
    ]
    if several:
        uniform = results.uniform_regret.isel(round=-1)
        panels.append(
            Panel(
                results.pseudo_regret.sel(epsilon=at, drop=True).isel(round=-1, drop=True),
                "dim",
                [Line(uniform.dim.values, uniform.values, UNIFORM)],
                {"xlabel": "dimensions d", "ylabel": "", "title": f"{epsilon_text}, {int(last['round']):,} rounds"},
            )
        )
    figure = plotting.panels(1, len(panels), height=4.0)
    shared.draw(figure, panels, hue="learner", labels=labels_of(results), yscale="log")
    figure.explain(
        title="Cost of privacy in contextual linear bandits",
        note=f"{results.attrs['num_arms']} arms on the sphere. Dotted: orders of theorems, T^(3/4) for local privacy, "
        "with logarithms, and T^(1/2) for joint privacy; compare slopes. A learner with regret close to the regret of "
        "uniform play has not learned yet.",
    )
    return figure


STUDY = Study(
    ldp_linear, figure, report, quick={"dim": (2,), "horizon": 10_000, "learner": ("paper", "ball")}, minutes=1
)
