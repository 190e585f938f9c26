"""What trust costs in dueling bandits: a curator, a shuffler, nobody.

Plays DP-EBS in every model of trust, and RUCB and double Thompson
sampling with a curator and without one, on arms of evenly spaced
utilities. Says which loses least, and by how much.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import dueling, plotting
from jaxdp.registry import LEARNERS
from jaxdp.simulation import Run
from jaxdp.stats import paired
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Horizon, Key, NumSeeds, Registered, grid
from jaxdp.studies.command import columns
from jaxdp.studies.comparison import UNIFORM, Line, Panel
from jaxdp.studies.declared import Study
from jaxdp.validation import check_count, check_delta, check_horizon, check_positive

EPSILONS = (0.1, 0.3, 1.0)
SIZES = (4, 32)
SPAN = 1.0
HORIZON = 10_000
NUM_SEEDS = 8
DELTA = 1e-6
LEAST_HORIZON = 100
SECONDS_OF_COMPILING = 5.5  # of a program, on two cores
FEW_ROUNDS = 50_000  # single rounds take less time than compiling blocks of them
ELIMINATIONS = ("ebs_phased", "ebs_elimination", "ebs_shuffle", "ebs_local")  # the paper's, in every model of trust
OTHERS = ("rucb_blocks", "rucb", "double_thompson_blocks", "double_thompson")
MODELS = ("central", "shuffle", "local")
ADVICE = (
    "The paper's rate is not what a practitioner should run: DP-EBS has a proof of its order of growth, with large "
    "constants. Compare it with double Thompson sampling by blocks, which trusts the same curator without such a proof."
)


def learners() -> list[str]:
    """The names of the learners that are compared: those of them that are registered."""
    return [name for name in (*ELIMINATIONS, *OTHERS) if name in LEARNERS]


def dueling_trust(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_arms: Annotated[Sequence[int], grid("Number of arms, >= 2. Repeat for several.")] = SIZES,
    num_seeds: NumSeeds = NUM_SEEDS,
    span: Annotated[float, typer.Option(help="The best arm's utility above the worst one's, > 0.")] = SPAN,
    horizon: Horizon = HORIZON,
    delta: Annotated[float, typer.Option(help="Failure mass where a claim has one, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Regret of dueling bandits in three models of trust, for every learner, number of arms, epsilon and seed.

    Utilities are evenly spaced from `span` to 0, and the link is logistic. Learners have the constants of their proofs
    where they have any, and failure_prob = 0.05. They play by counts, where they have them (then worlds differ from
    those of the others), else by blocks or rounds.

    Returns:
        A dataset with `pseudo_regret`, the sum of 2 max r - r[left] - r[right], and the environment's other outcomes,
        of dimensions (num_arms, learner, epsilon, round, seed), after a tenth of the rounds and after all. Coordinates
        `span`, `delta` and, by learner, `trust_model`.
    """
    check_delta(delta)
    names = shared.chosen(learner, learners())
    sizes = [check_count("num_arms", size, 2) for size in num_arms]
    horizon = check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * max(sizes, default=2)))
    span = check_positive("span", span)
    if scheduling.get("progress"):
        programs = len(names) * len(sizes)
        minutes = max(1, round(SECONDS_OF_COMPILING * programs / 60))
        typer.echo(
            f"{programs} programs, one for each learner and number of arms: compiling them takes about {minutes} min, "
            "however few the seeds. --num-arms and --learner choose some.",
            err=True,
        )

    def build(learner: str, num_arms: int) -> Run:
        return shared.entry_run(
            LEARNERS[learner],
            dueling.utility_duels(np.linspace(span, 0, num_arms)),
            num_arms,
            horizon,
            checkpoints=[horizon // 10, horizon],
            delta=delta,
            engine="rounds" if horizon <= FEW_ROUNDS else "auto",
        )

    results = shared.compare(
        build,
        {"learner": names, "num_arms": sizes},
        order=("num_arms", "learner"),
        epsilon=epsilon,
        num_seeds=num_seeds,
        key=key,
        tile=min(len(epsilon) * num_seeds, 256),
        **scheduling,
    )
    models = shared.trust_models_of(LEARNERS, names)
    return results.assign_coords(trust_model=("learner", models), span=span, delta=delta)


def figure(results: xr.Dataset) -> Figure:
    """The figure: regret after all rounds against epsilon, a panel for each number of arms."""
    results = results.sortby("epsilon")
    sizes = results.num_arms.values
    figure = plotting.panels(1, len(sizes), height=4.0)
    uniform = Line(results.epsilon.values, uniform_regret(results), UNIFORM)
    panels = [
        Panel(
            results.pseudo_regret.sel(num_arms=size, drop=True),
            lines=[uniform],
            style={"title": f"{int(size)} arms", "ylabel": "" if place else "regret (in utility)"},
        )
        for place, size in enumerate(sizes)
    ]
    shared.draw(figure, panels, hue="learner", yscale="log", labels=plotting.prefixed(results.trust_model))
    plotting.level(figure)
    figure.explain(
        title=f"What trust costs in dueling bandits ({int(results['round'].values[-1]):,} rounds)",
        note=f"{ADVICE} Eliminations near the dotted line have dropped no arm yet.",
    )
    return figure


def uniform_regret(results: xr.Dataset) -> float:
    """Of uniform play, after all rounds, for any number of arms."""
    return float(results.span) * int(results["round"].values[-1])


def table(results: xr.Dataset, num_arms: int) -> str:
    """Mean regret after all rounds, by model of trust."""
    labels = plotting.prefixed(results.trust_model)
    order = sorted(labels, key=lambda name: MODELS.index(labels[name].split(":")[0]))
    return shared.mean_table(
        f"regret after {int(results['round'].values[-1]):,} rounds, {num_arms} arms",
        results.pseudo_regret.sel(num_arms=num_arms).isel(round=-1),
        {name: labels[name] for name in order},
        below={UNIFORM: uniform_regret(results)},
    )


def winners(results: xr.Dataset) -> str:
    """For every number of arms and epsilon: which learner loses least, in all and by model of trust.

    Beside the first stands how much more the second loses, and the best of the eliminations: paired differences.
    """
    regret, models = results.pseudo_regret.isel(round=-1), results.trust_model.values
    shown = [model for model in MODELS if model in models]
    rows = [["arms", "ε", "least regret", "second", "the best DP-EBS", *(f"best {model}" for model in shown)]]
    for size in results.num_arms.values:
        for value in results.epsilon.values:
            here = regret.sel(num_arms=size, epsilon=value, drop=True)
            order = [str(name) for name in here.learner.values[np.argsort(here.mean("seed").values, kind="stable")]]
            eliminations = [name for name in order if name in ELIMINATIONS]
            compared = [order[1] if len(order) > 1 else None, eliminations[0] if eliminations else None]
            told = ["-" if name in (None, order[0]) else f"{name} {_more(here, name, order[0])}" for name in compared]
            best = [next(name for name in order if models[_place(results, name)] == model) for model in shown]
            rows.append([str(size), plotting.epsilon_label(value), order[0], *told, *best])
    return "\n".join(["who wins where, and by how much (paired by seed; 95% confidence)", *columns(rows)])


def _place(results: xr.Dataset, name: str) -> int:
    return results.learner.values.tolist().index(name)


def _more(regret: xr.DataArray, name: str, first: str) -> str:
    """By how much the regret of a learner is above that of the first one."""
    found = paired(regret.sel(learner=[first, name]), "learner", against=first).isel(learner=0)
    return f"{float(found.difference):+,.0f} ({float(found.low):+,.0f} to {float(found.high):+,.0f})"


def report(results: xr.Dataset) -> str:
    """What the command prints: regret by number of arms, who wins where, and what that means."""
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        ADVICE,
        f"+- and intervals: 95% confidence (Student's t) over {seeds}, each of one comparison by itself. Which learner "
        "is first is chosen by the same seeds: where an interval reaches 0, the two may as well be equal. Learners by "
        "counts meet worlds of their own; for them a paired interval is right, but not narrower.",
        "Central learners trust a curator with every duel's outcome. With a shuffler nobody sees an outcome that its "
        "user has not randomized, nor whose it is. Local learners trust nobody. "
        f"delta = {float(results.delta):g} where a claim has one.",
    ]
    tables = [table(results, int(size)) for size in results.num_arms.values]
    return "\n\n".join([*tables, winners(results), *notes])


STUDY = Study(dueling_trust, figure, report)
