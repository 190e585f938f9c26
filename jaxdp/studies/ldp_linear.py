"""What privacy costs in contextual linear bandits (Zheng et al., 2020: LDP-Bandits, Algorithm 5).

Plays optimistic learners with local, joint and no privacy, the local
one with constants as published and with tight ones; or, with
--contexts, on data of yours.
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
from jaxdp.studies.declared import Made, Study
from jaxdp.studies.linear_learners import LEARNERS, PUBLISHED, at_delta, check_learners, labels_of, refused
from jaxdp.studies.seeds import FEWEST_FOR_A_MEAN, warn_of_few_seeds
from jaxdp.theory.ldp_bandits import TUNED
from jaxdp.validation import check_count, check_delta, check_horizon

EPSILONS = (0.5, 1.0, 2.0, 4.0, 64.0, 4096.0, float("inf"))
DIMS = (2, 5)
NUM_ARMS = 20
HORIZON = 100_000
DELTA = 1e-6
NUM_SEEDS = 8
NUM_LOOKS = 9  # in the last two decades of rounds
LEAST_HORIZON = 100
TILE_SIZE = 64
LEARNS = 0.5  # of uniform play's regret: exponents are fitted where regret is below it
ORDER_LABEL = "order of a theorem, through the first mark"
LARGEST_FITTED = 4.0  # epsilon, up to which noise is most of the regret


def own(
    path: Annotated[
        Path | None,
        typer.Option(
            "--contexts",
            help="Data of yours in place of random contexts: .npz with contexts [T, K, d] and rewards [T, K], or with "
            "actions [T] and rewards [T] as logged. Or .npy with contexts [T, K, d] alone, on which arms pay what a "
            "linear model says.",
            show_default=False,
        ),
    ] = None,
) -> logged.Data | None:
    """Contexts and rewards of a user; None for random ones."""
    return None if path is None else logged.read_contexts(path)


def ldp_linear(
    *,
    learner: Annotated[Sequence[str], grid(f"Repeat for several, of {', '.join(LEARNERS)}; all without.")] = (),
    epsilon: Epsilons = EPSILONS,
    dim: Annotated[Sequence[int], grid("Dimension of contexts. Repeat for several.")] = DIMS,
    num_seeds: NumSeeds = NUM_SEEDS,
    contexts: Annotated[logged.Data | None, Made(own)] = None,
    num_arms: Annotated[int, typer.Option(help="Arms of a round.")] = NUM_ARMS,
    horizon: Horizon = HORIZON,
    delta: GaussianDelta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of optimistic learners in a linear model, against rounds, epsilon and dimension.

    Contexts are uniform on the sphere; |theta*| = 1/2; rewards have uniform noise in [-1/2, 1/2]. Learners are made for
    the largest number of rounds.

    With `contexts` of a user, as `read_contexts` reads them, the results are those of `ldp_linear_logged`, and dim,
    num_arms and horizon are to be left out.

    Returns:
        A dataset with `pseudo_regret` and `theta_error`, the distance of the model from theta*, of dimensions (dim,
        learner, epsilon, round, seed); NaN for "paper" where its noise is not proved to be enough (a finite epsilon of
        1.5 or more). `uniform_regret`, of (dim, round): of uniform play, in expectation.
    """
    check_delta(delta)
    if contexts is not None:
        told = {"dim": (list(dim), list(DIMS)), "num_arms": (num_arms, NUM_ARMS), "horizon": (horizon, HORIZON)}
        for name, (given, default) in told.items():
            if given != default:
                raise ValueError(f"{name} must be left out with contexts, which have their own, got {given}")
        given = {"learner": learner, "epsilon": epsilon, "delta": delta, "num_seeds": num_seeds, "key": key}
        return logged.ldp_linear_logged(contexts, **given, **scheduling)
    names = check_learners(learner)
    dims = sorted({check_count("dim", value) for value in dim})
    if not dims:
        raise ValueError("dim must have at least one value, got none")
    horizon = check_horizon(horizon, minimum=LEAST_HORIZON)
    if math.inf in list(epsilon) and "gaussian" in names:
        warn_of_few_seeds(num_seeds, FEWEST_FOR_A_MEAN, "which epsilons come close to no privacy")
    looks = np.unique(np.geomspace(horizon / 100, horizon, NUM_LOOKS).round().astype(int)).tolist()

    def build(learner: str, dim: int) -> Run:
        made = LEARNERS[learner].make(num_arms, dim, horizon)
        run = simulator(made, linear_contexts(num_arms=num_arms, dim=dim), horizon, checkpoints=looks)
        return at_delta(run, learner, delta, horizon)

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
    left_out = xr.DataArray([[refused(name, float(e)) for e in epsilon] for name in names], dims=("learner", "epsilon"))
    uniform = [[uniform_regret(num_arms, each) * rounds for rounds in looks] for each in dims]
    return (
        results.where(~left_out)
        .assign(uniform_regret=(("dim", "round"), uniform))
        .assign_coords(delta=delta)
        .assign_attrs(num_arms=num_arms)
    )


def uniform_regret(num_arms: int, dim: int, theta_norm: float = 0.5) -> float:
    """Of uniform play in a round: the largest of so many means, in expectation, by quadrature.

    A coordinate z of a uniform point of the sphere has (1 + z) / 2 of the law Beta((dim - 1) / 2, (dim - 1) / 2).
    """
    from scipy.stats import beta

    if dim == 1:
        return theta_norm * (1 - 0.5 ** (num_arms - 1))
    share = (np.arange(20_000) + 0.5) / 20_000
    largest = 2 * beta.ppf(share ** (1 / num_arms), (dim - 1) / 2, (dim - 1) / 2) - 1
    return theta_norm * float(largest.mean())


# ---- what is told ----------------------------------------------------------------------------------------------------
def of_a_user(results: xr.Dataset) -> bool:
    """Whether results are of contexts that were given, which are drawn and told otherwise."""
    return "is_logged" in results.coords


def learning(results: xr.Dataset) -> xr.DataArray:
    """Where the mean regret is below `LEARNS` of uniform play's, bool."""
    return results.pseudo_regret.mean("seed") < LEARNS * results.uniform_regret


def table(results: xr.Dataset, dim: int) -> str:
    """Mean regret after all rounds."""
    last = results.sel(dim=dim).isel(round=-1)
    uniform = f"of uniform play {float(last.uniform_regret):,.0f}"
    title = f"regret after {int(last['round']):,} rounds, {dim} dimensions; {uniform}"
    return shared.mean_table(title, last.pseudo_regret, labels_of(results), dash=True)


def _dimensions(results: xr.Dataset) -> list[str]:
    return [f"{dim} dimensions" for dim in results.dim.values]


def gains(results: xr.Dataset) -> str:
    """How many times less the regret is than with the published constants, at the epsilon nearest 1."""
    at = shared.nearest_epsilon(results)
    last = results.pseudo_regret.sel(epsilon=at).isel(round=-1)
    others = [name for name in ("gaussian", "ball", "joint") if name in last.learner.values]
    if "paper" not in last.learner.values or not others or at >= PUBLISHED:
        return ""
    rows = []
    for name in others:
        ratios = last.sel(learner="paper").mean("seed") / last.sel(learner=name).mean("seed")
        rows.append([LEARNERS[name].label, *(f"{float(ratio):.2f}" for ratio in ratios)])
    head = f"times less regret than with the published constants, {plotting.epsilon_label(at)}"
    return shared.titled(head, _dimensions(results), rows)


def differences(results: xr.Dataset) -> str:
    """Joint less local regret, paired by seed, with intervals."""
    if not {"gaussian", "joint"} <= set(results.learner.values) or results.sizes["seed"] < 2:
        return ""
    last = results.pseudo_regret.sel(learner=["gaussian", "joint"]).isel(round=-1)
    found = paired(last, "learner", against="gaussian").sel(learner="joint")
    rows = []
    for dim in results.dim.values:
        own = found.sel(dim=dim)
        cells = zip(own.difference.values, own.low.values, own.high.values, strict=True)
        rows.append([f"{dim} dimensions", *(f"{m:,.0f} ({lo:,.0f} to {hi:,.0f})" for m, lo, hi in cells)])
    title = "regret of joint less that of local with Gaussian reports, paired"
    return shared.titled(title, shared.budgets(results), rows)


def exponents(results: xr.Dataset) -> str:
    """Fitted exponents of T and of 1 / epsilon, where learners learn, beside those that are claimed."""
    rounds, budgets = results["round"].values, results.epsilon.values
    decade, fitted = rounds >= rounds.max() / 10, budgets <= LARGEST_FITTED
    shown = [value for value in budgets if value <= LARGEST_FITTED or np.isinf(value)]
    head, rows = [*(f"T, {plotting.epsilon_label(value)}" for value in shown), "claimed", "1/ε", "claimed"], []
    for dim in results.dim.values:
        own, learns = results.pseudo_regret.sel(dim=dim), learning(results.sel(dim=dim))
        for name, label in labels_of(results).items():
            mine, where = own.sel(learner=name), learns.sel(learner=name)
            cells = [
                shared.exponent(mine.sel(epsilon=value), "round", decade & where.sel(epsilon=value).values)
                for value in shown
            ]
            price = shared.exponent(mine.isel(round=-1), "epsilon", fitted & where.isel(round=-1).values, -1)
            claims = [f"{LEARNERS[name].rounds:.2f}", "-" if name == "joint" else f"{TUNED['linear'].privacy:.2f}"]
            rows.append([f"{dim} dimensions, {label}", *cells, claims[0], price, claims[1]])
    return shared.titled("exponents of regret", head, rows)


def enough(results: xr.Dataset) -> str:
    """The smallest epsilon from which on each learner is shown to be within 10% of itself without privacy."""
    if not shared.has_infinity(results) or "gaussian" not in results.learner.values:
        return ""
    last, labels = results.pseudo_regret.isel(round=-1), labels_of(results)
    return shared.enough_table(
        f"smallest ε of these that is shown to come within {shared.WITHIN:.0%} of no privacy (95% confidence)",
        last,
        last.sel(epsilon=math.inf, learner="gaussian", drop=True),
        _dimensions(results),
        lambda found: [
            [label, *map(shared.threshold, found.sel(learner=name).values)] for name, label in labels.items()
        ],
    )


def report(results: xr.Dataset) -> str:
    """What the command prints: regret, what is gained, differences, exponents, budgets, and what that means."""
    if of_a_user(results):
        return logged.report(results)
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}. "
        f"delta = {float(results.delta):g} where noise is Gaussian; reports on a sphere are pure. Local: a user "
        "reports noisy moments; joint: a curator sees contexts and rewards, and all others what one counter shows. "
        f"Published constants are proved below an ε of {PUBLISHED:g} alone.",
        f"Exponents are fitted where the mean regret is below {LEARNS:.0%} of uniform play's: in T over the last "
        f"decade of rounds, in 1/ε after all rounds over ε <= {LARGEST_FITTED:g}; - is fewer than two such points. "
        "Claimed is (dT)^(3/4) for local privacy, with 1/ε as printed, and 1/ε^(1/2) as radii have it; T^(1/2) for "
        "joint.",
    ]
    dims = [int(value) for value in results.dim.values]
    parts = [
        *(table(results, dim) for dim in dims),
        gains(results),
        differences(results),
        exponents(results),
        enough(results),
    ]
    return "\n\n".join([part for part in parts if part] + notes)


def figure(results: xr.Dataset) -> Figure:
    """The figure: regret against epsilon, against T at one epsilon, and against d where there are several."""
    if of_a_user(results):
        return logged.figure(results)
    results = results.sortby("epsilon")
    at, dim = shared.nearest_epsilon(results), int(results.dim.values[-1])
    own, rounds, several = results.sel(dim=dim), results["round"].values.astype(float), results.sizes["dim"] > 1
    last, beside = own.isel(round=-1), plotting.epsilon_label(at)
    orders = [
        Line(rounds, LEARNERS[name].order(at, float(results.delta), rounds, dim), ORDER_LABEL, name)
        for name in map(str, results.learner.values)
        if name != "paper"
        and math.isfinite(at)
        and bool((own.pseudo_regret.sel(learner=name, epsilon=at).mean("seed") > 0).all())
    ]
    panels = [
        Panel(
            last.pseudo_regret,
            lines=[Line(results.epsilon.values, float(last.uniform_regret), UNIFORM)],
            style={"ylabel": "regret", "title": f"{int(last['round']):,} rounds, d = {dim}"},
        ),
        Panel(
            own.pseudo_regret.sel(epsilon=at, drop=True),
            "round",
            [Line(rounds, own.uniform_regret.values, UNIFORM), *orders],
            {"xscale": "log", "xlabel": "rounds T", "ylabel": "", "title": f"{beside}, d = {dim}"},
        ),
    ]
    if several:
        uniform = results.uniform_regret.isel(round=-1)
        panels.append(
            Panel(
                results.pseudo_regret.sel(epsilon=at, drop=True).isel(round=-1, drop=True),
                "dim",
                [Line(uniform.dim.values, uniform.values, UNIFORM)],
                {"xlabel": "dimensions d", "ylabel": "", "title": f"{beside}, {int(last['round']):,} rounds"},
            )
        )
    figure = plotting.panels(1, len(panels), height=4.0)
    shared.draw(figure, panels, hue="learner", labels=labels_of(results), yscale="log")
    figure.explain(
        title="What privacy costs in contextual linear bandits",
        note=f"{results.attrs['num_arms']} arms on the sphere. Dotted: orders that theorems have, of T^(3/4) for "
        "local privacy, with logarithms, and T^(1/2) for joint; compare slopes. A regret near that of uniform play is "
        "of a learner that has not learned yet.",
    )
    return figure


STUDY = Study(ldp_linear, figure, report)
