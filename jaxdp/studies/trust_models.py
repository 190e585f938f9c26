"""Compare bandits with a trusted curator, with local privacy and without privacy.

Plays every bandit with finitely many arms on one instance. Either a
curator is trusted with the rewards, or each reward is randomized before
it leaves the user.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits import bernoulli_bandit
from jaxdp.core import Interface, Space, arms
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, GaussianDelta, Horizon, Key, NumSeeds, Registered
from jaxdp.studies.comparison import UNIFORM, Line, Panel
from jaxdp.studies.declared import Study
from jaxdp.validation import check_delta, check_horizon

EPSILONS = (0.1, 0.3, 1.0, 3.0, float("inf"))
MEANS = (0.7, 0.5, 0.5, 0.5, 0.5)
HORIZON = 10_000
NUM_SEEDS = 40
NUM_CHECKPOINTS = 8  # in the last two decades of rounds
DELTA = 1e-6
TILE_SIZE = 200
LEAST_HORIZON = 100
MODELS = {"central": "trusted curator", "local": "nobody is trusted"}
UNLEARNED = "A learner with regret close to the regret of uniform play has not learned yet."


def arm_learners() -> dict[str, LearnerEntry]:
    """Returns the registered bandits with finitely many arms, configured for rewards of 0 or 1, keyed by name.

    Learners that may stop by themselves are left out. If several entries differ only in the kind of rewards, only the
    first entry is returned.
    """
    return shared.distinct_learners(("rewards",), lambda entry: entry.family == "bandits" and _plays_arms(entry))


def _plays_arms(entry: LearnerEntry) -> bool:
    """Returns whether a learner plays one of finitely many arms for rewards of 0 or 1, and never stops by itself."""
    learner = entry.make()
    if learner.interface is None or learner.done is not None:
        return False
    binary = Interface(learner.interface.action, Space("integers", (), 0, 1))
    return learner.interface._replace(recommendation=None) == binary and learner.interface.action == arms(
        entry.sizes.get("num_arms", 0)
    )


def trust_models(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    mean: Annotated[
        Sequence[float], typer.Option(help="Mean reward of an arm, in [0, 1]. Repeat for each arm.")
    ] = MEANS,
    horizon: Horizon = HORIZON,
    delta: GaussianDelta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates bandits on Bernoulli arms, for every learner, epsilon, number of rounds and seed.

    Learners use the constants of their proofs, if there are proofs. Learners that support counts are simulated from
    counts, which are totals over many rounds; all other learners are simulated block by block or round by round. The
    two groups see different random rewards. Explore-then-commit explores for about T^(2/3) rounds.

    Returns:
        A dataset with `pseudo_regret` and `best_arm_plays`, of dimensions (learner, epsilon, round, seed). The dataset
        has the coordinates `mean` along arm, `trust_model` along learner, and `delta`.

    Raises:
        ValueError: if a value is out of range, a learner is unknown, or all means are equal. The horizon must be at
            least 100 and at least 10 times the number of arms.
    """
    check_delta(delta)
    known = arm_learners()
    names = shared.select_names(learner, known)
    world = bernoulli_bandit(mean)
    if len(set(mean)) == 1:
        raise ValueError(f"mean must have at least two different values, got {list(mean)}")
    num_arms = len(mean)
    horizon = check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * num_arms))
    checkpoints = np.unique(np.geomspace(horizon / 100, horizon, NUM_CHECKPOINTS).round().astype(int)).tolist()

    def build(learner: str) -> Run:
        return shared.entry_run(known[learner], world, num_arms, horizon, checkpoints=checkpoints, delta=delta)

    results = shared.compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )
    models = shared.trust_models_of(LEARNERS, names)
    return results.assign_coords(mean=("arm", np.asarray(mean, float)), trust_model=("learner", models), delta=delta)


def uniform_regret(results: xr.Dataset) -> float:
    """Returns the regret of uniform play after all rounds."""
    means = results["mean"].values
    return float((means.max() - means.mean()) * results["round"].values[-1])


def figure(results: xr.Dataset) -> Figure:
    """Draws regret against epsilon with and without a curator, and non-private regret against rounds."""
    results = results.sortby("epsilon")
    models = [model for model in MODELS if model in results.trust_model.values]
    has_infinity = np.isinf(results.epsilon.values).any()
    figure = plotting.panels(1, len(models) + bool(has_infinity), height=4.0)
    uniform = Line(results.epsilon.values, uniform_regret(results), UNIFORM)
    panels = [  # each panel has all learners, so that colours agree
        Panel(
            results.pseudo_regret.where(results.trust_model == model), lines=[uniform], style={"title": MODELS[model]}
        )
        for model in models
    ]
    if has_infinity:
        regret = results.pseudo_regret.sel(epsilon=math.inf, drop=True)
        panels.append(Panel(regret, "round", style={"xscale": "log", "title": "no privacy"}))
    first, *later_panels = panels
    panels = [first, *(panel._replace(style={"ylabel": "", **panel.style}) for panel in later_panels)]
    labels = shared.learner_labels(results.trust_model)
    shared.draw(figure, panels, hue="learner", yscale="log", ylabel="cumulative regret", labels=labels)
    plotting.share_limits(figure)
    rounds = f"{int(results['round'].values[-1]):,} rounds."
    figure.explain(
        title=f"Bandits with and without a trusted curator ({len(results['mean'])} arms)",
        note=f"Panels against ε: one trust model each. {rounds} {UNLEARNED}",
    )
    return figure


def report(results: xr.Dataset) -> str:
    """Formats the mean regret after all rounds."""
    means = ", ".join(f"{value:g}" for value in results["mean"].values)
    labels = sorted(shared.learner_labels(results.trust_model).items(), key=lambda pair: pair[1])
    table = shared.mean_table(
        f"regret after {int(results['round'].values[-1]):,} rounds, arms with means {means}",
        results.pseudo_regret.isel(round=-1),
        dict(labels),
        below={UNIFORM: uniform_regret(results)},
    )
    notes = [
        f"+- and bands: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}.",
        f"{UNLEARNED} Central learners trust a curator with every reward; local learners randomize each reward before "
        f"it leaves the user. delta = {float(results.delta):g} for Gaussian noise.",
    ]
    return "\n\n".join([table, *notes])


STUDY = Study(trust_models, figure, report, quick={"horizon": 2000, "learner": ("ucb", "ucb_central")}, minutes=1)
