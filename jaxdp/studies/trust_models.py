"""What trust costs in bandits: a curator, nobody, no privacy.

Plays every bandit with finitely many arms on one instance, with a
trusted curator or with rewards that are randomized before they leave
the user.
"""

import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits import bernoulli_bandit
from jaxdp.core import Interface, Space, arms
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run, simulator, sweep
from jaxdp.studies.arguments import Epsilons, GaussianDelta, Horizon, Key, NumSeeds, Registered, fixed_delta
from jaxdp.studies.command import columns, mean_and_half_width
from jaxdp.studies.declared import Study
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import check_choice, check_delta, check_horizon

EPSILONS = (0.1, 0.3, 1.0, 3.0, float("inf"))
MEANS = (0.7, 0.5, 0.5, 0.5, 0.5)
HORIZON = 10_000
NUM_SEEDS = 40
NUM_LOOKS = 8  # in the last two decades of rounds
DELTA = 1e-6
TILE_SIZE = 200
LEAST_HORIZON = 100
MODELS = {"central": "a curator who is trusted", "local": "nobody is trusted"}
UNLEARNED = "A regret near that of uniform play is of a learner that has not learned yet."


def arm_learners() -> dict[str, LearnerEntry]:
    """The registered bandits that play one of finitely many arms, by name, as they are for rewards of 0 or 1.

    Entries that differ in the kind of rewards alone are one here, and so are those whose variant is the same then.
    """
    found, seen = {}, []
    for name, entry in LEARNERS.items():
        if entry.family != "bandits":
            continue
        variant = {key: value for key, value in entry.variant.items() if key != "rewards"}
        made = dataclasses.replace(entry, variant=variant)
        if (entry.factory, variant) in seen or not _plays_arms(made):
            continue
        seen.append((entry.factory, variant))
        found[name] = made
    return found


def _plays_arms(entry: LearnerEntry) -> bool:
    learner = entry.make()
    if learner.interface is None or learner.done is not None:
        return False
    binary = Interface(learner.interface.action, Space("integers", (), 0, 1))
    return learner.interface._replace(answer=None) == binary and learner.interface.action == arms(
        entry.sizes.get("num_arms", 0)
    )


def sized(entry: LearnerEntry, num_arms: int, horizon: int) -> LearnerEntry:
    """The entry for so many arms and rounds; other sizes of it are for a tiny problem, and go to their defaults."""
    sizes: dict[str, Any] = {**dict.fromkeys(entry.sizes), "num_arms": num_arms, "horizon": horizon}
    if "explore_rounds" in sizes:  # which has no default
        sizes["explore_rounds"] = num_arms * math.ceil(horizon ** (2 / 3) / num_arms)
    return entry.sized(**sizes)


def trust_models(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    mean: Annotated[
        Sequence[float], typer.Option(help="Mean reward of an arm, in [0, 1]. Repeat for every arm.")
    ] = MEANS,
    horizon: Horizon = HORIZON,
    delta: GaussianDelta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of bandits on Bernoulli arms, for every learner, epsilon, number of rounds and seed.

    Learners have the constants of their proofs where they have any. They play by counts, where they have them (then
    worlds differ from those of the others), else by blocks or rounds. Explore-then-commit explores for T^(2/3) rounds.

    Args:
        epsilon: privacy budgets, > 0; infinity is no privacy.
        learner: names, of `arm_learners`; empty is all.
        num_seeds: repetitions.
        mean: of each arm, at least two, in [0, 1], not all equal.
        horizon: rounds, >= 100, and >= 10 for each arm.
        delta: of learners with Gaussian noise, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `pseudo_regret` and `best_arm_plays`, of dimensions (learner, epsilon, round, seed). Coordinates
        `mean` and, by learner, `trust_model`.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    known = arm_learners()
    names = list(learner) or list(known)
    for name in names:
        check_choice("learner", name, tuple(known))
    world = bernoulli_bandit(mean)
    if len(set(mean)) == 1:
        raise ValueError(f"mean must have two different numbers, got {list(mean)}")
    num_arms = len(mean)
    horizon = check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * num_arms))
    looks = np.unique(np.geomspace(horizon / 100, horizon, NUM_LOOKS).round().astype(int)).tolist()

    def build(learner: str) -> Run:
        entry = sized(known[learner], num_arms, horizon)
        made = entry.make()
        run = simulator(made, world, horizon, checkpoints=looks, engine="counts" if made.counts else "auto")
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
    models = [LEARNERS[name].make().guarantee(**LEARNERS[name].values).trust_model for name in names]
    results = results.assign_coords(mean=("arm", np.asarray(mean, float)), trust_model=("learner", models))
    return results.assign_coords(delta=delta).transpose("learner", "epsilon", "round", "seed", ...)


def uniform_regret(results: xr.Dataset) -> float:
    """Of uniform play, after all rounds."""
    means = results["mean"].values
    return float((means.max() - means.mean()) * results["round"].values[-1])


def figure(results: xr.Dataset) -> Figure:
    """The figure: regret against epsilon with a curator, and without one; and against rounds without privacy."""
    results = results.sortby("epsilon")
    shown = [model for model in MODELS if model in results.trust_model.values]
    without = np.isinf(results.epsilon.values).any()
    figure = plotting.panels(1, len(shown) + bool(without), height=4.0)
    panels = iter(figure.axes)
    style: dict[str, Any] = {
        "hue": "learner",
        "yscale": "log",
        "ylabel": "regret",
        "labels": plotting.prefixed(results.trust_model),
    }
    for model in shown:
        ax = next(panels)
        mine = results.pseudo_regret.where(results.trust_model == model)  # all learners: colours are those of places
        plotting.cost_of_privacy(mine, ax=ax, title=MODELS[model], **style)
        plotting.bound(ax, results.epsilon.values, uniform_regret(results), label="uniform play")
        style["ylabel"] = ""
    if without:
        regret = results.pseudo_regret.sel(epsilon=math.inf, drop=True)
        plotting.curves(regret, x="round", ax=next(panels), xscale="log", title="no privacy", **style)
    plotting.level(figure)
    rounds = f"{int(results['round'].values[-1]):,} rounds."
    figure.explain(
        title=f"What trust costs in bandits ({len(results['mean'])} arms)",
        note=f"Of the panels by budget each has one model's learners alone. {rounds} {UNLEARNED}",
    )
    return figure


def report(results: xr.Dataset) -> str:
    """What the command prints: mean regret after all rounds, +- half width of its 95% confidence interval."""
    mean, half = mean_and_half_width(results.pseudo_regret.isel(round=-1))
    rows = [["", *(plotting.epsilon_label(value) for value in results.epsilon.values)]]
    for name, label in sorted(plotting.prefixed(results.trust_model).items(), key=lambda pair: pair[1]):
        pairs_ = zip(mean.sel(learner=name).values, half.sel(learner=name).values, strict=True)
        rows.append([label, *(f"{m:,.0f} +- {h:,.0f}" for m, h in pairs_)])
    rows.append(["uniform play", *[f"{uniform_regret(results):,.0f}"] * results.sizes["epsilon"]])
    means = ", ".join(f"{value:g}" for value in results["mean"].values)
    title = f"regret after {int(results['round'].values[-1]):,} rounds, arms of means {means}"
    notes = [
        f"+-, bands: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}.",
        f"{UNLEARNED} Central learners trust a curator with every reward; local ones randomize each before it leaves "
        f"the user. delta = {float(results.delta):g} where noise is Gaussian.",
    ]
    return "\n\n".join(["\n".join([title, *columns(rows)]), *notes])


STUDY = Study(trust_models, figure, report)
