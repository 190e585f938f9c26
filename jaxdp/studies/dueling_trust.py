"""Compare dueling bandits that trust a curator, a shuffler or nobody.

Plays DP-EBS in every trust model, and RUCB and double Thompson sampling
with a curator and without one, on arms with evenly spaced utilities.
Reports the learner with the least regret, and by how much it wins.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import dueling, plotting
from jaxdp.registry import LEARNERS
from jaxdp.registry.titles import display_name
from jaxdp.simulation import Run
from jaxdp.stats import paired
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Horizon, Key, NumSeeds, Registered, grid
from jaxdp.studies.comparison import UNIFORM, Line, Panel
from jaxdp.studies.declared import Study
from jaxdp.studies.tables import table_of
from jaxdp.validation import check_count, check_delta, check_horizon, check_positive

EPSILONS = (0.1, 0.3, 1.0)
SIZES = (4, 32)
SPAN = 1.0
HORIZON = 10_000
NUM_SEEDS = 8
DELTA = 1e-6
LEAST_HORIZON = 100
SECONDS_OF_COMPILING = 5.5  # per program, on two cores
FEW_ROUNDS = 50_000  # up to this number, simulating single rounds takes less time than compiling blocks of rounds
ELIMINATIONS = ("ebs_phased", "ebs_elimination", "ebs_shuffle", "ebs_local")  # forms of DP-EBS, for every trust model
OTHERS = ("rucb_blocks", "rucb", "double_thompson_blocks", "double_thompson")
MODELS = ("central", "shuffle", "local")
ADVICE = (
    "A proved rate is not practical performance: DP-EBS has a proof of its order of growth, but large constants. "
    "Compare it with double Thompson sampling by blocks, which trusts the same curator and has no such proof."
)


def learners() -> list[str]:
    """Returns the names of the registered learners to compare."""
    return [name for name in (*ELIMINATIONS, *OTHERS) if name in LEARNERS]


def dueling_trust(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Registered = (),
    num_arms: Annotated[Sequence[int], grid("Number of arms, >= 2. Repeat for several.")] = SIZES,
    num_seeds: NumSeeds = NUM_SEEDS,
    span: Annotated[float, typer.Option(help="Difference between the best and the worst utility, > 0.")] = SPAN,
    horizon: Horizon = HORIZON,
    delta: Annotated[float, typer.Option(help="Delta of claims that have one, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates dueling bandits in three trust models, for every learner, number of arms, epsilon and seed.

    Utilities are evenly spaced from `span` to 0, and the link is logistic. A learner with a proof uses the constants of
    its proof; failure_prob is 0.05. Learners that support counts are simulated from counts, which are totals over many
    rounds. Their random outcomes differ from the outcomes of learners that are simulated by blocks or by rounds.

    Returns:
        A dataset with `pseudo_regret`, the sum of 2 max r - r[left] - r[right], and the environment's other outcomes,
        of dimensions (num_arms, learner, epsilon, round, seed). The values are after a tenth of the rounds and after
        all rounds. Further coordinates are `span`, `delta`, and the `trust_model` of each learner.
    """
    check_delta(delta)
    names = shared.select_names(learner, learners())
    sizes = [check_count("num_arms", size, 2) for size in num_arms]
    horizon = check_horizon(horizon, minimum=max(LEAST_HORIZON, 10 * max(sizes, default=2)))
    span = check_positive("span", span)
    if scheduling.get("progress"):
        programs = len(names) * len(sizes)
        minutes = max(1, round(SECONDS_OF_COMPILING * programs / 60))
        typer.echo(
            f"{programs} programs, one for each learner and number of arms: compiling them takes about {minutes} min, "
            "for any number of seeds. Use --num-arms and --learner to select fewer.",
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
    """Draws regret after all rounds against epsilon, with one panel for each number of arms."""
    results = results.sortby("epsilon")
    sizes = results.num_arms.values
    figure = plotting.panels(1, len(sizes), height=4.0)
    uniform = Line(results.epsilon.values, uniform_regret(results), UNIFORM)
    panels = [
        Panel(
            results.pseudo_regret.sel(num_arms=size, drop=True),
            lines=[uniform],
            style={"title": f"{int(size)} arms", "ylabel": "" if index else shared.UTILITY_REGRET},
        )
        for index, size in enumerate(sizes)
    ]
    shared.draw(figure, panels, hue="learner", yscale="log", labels=shared.learner_labels(results.trust_model))
    plotting.share_limits(figure)
    figure.explain(
        title=f"Dueling bandits in three trust models ({int(results['round'].values[-1]):,} rounds)",
        note=f"{ADVICE} DP-EBS near the dotted line has dropped no arm yet.",
    )
    return figure


def uniform_regret(results: xr.Dataset) -> float:
    """Returns the regret of uniform play after all rounds, which is the same for any number of arms."""
    return float(results.span) * int(results["round"].values[-1])


def table(results: xr.Dataset, num_arms: int) -> str:
    """Formats the mean regret after all rounds, by trust model."""
    labels = shared.learner_labels(results.trust_model)
    order = sorted(labels, key=lambda name: MODELS.index(labels[name].split(":")[0]))
    return shared.mean_table(
        f"regret after {int(results['round'].values[-1]):,} rounds, {num_arms} arms",
        results.pseudo_regret.sel(num_arms=num_arms).isel(round=-1),
        {name: labels[name] for name in order},
        below={UNIFORM: uniform_regret(results)},
    )


def winners(results: xr.Dataset) -> str:
    """Formats the learner with the smallest regret, overall and by trust model, for every number of arms and epsilon.

    Further columns have the learner with the second smallest regret and the best form of DP-EBS, each with its paired
    difference from the learner with the smallest regret.
    """
    regret, models = results.pseudo_regret.isel(round=-1), results.trust_model.values
    trust = dict(zip(regret.learner.values.tolist(), models.tolist(), strict=True))
    trust_levels = [model for model in MODELS if model in models]
    rows = [["arms", "ε", "least regret", "second", "best DP-EBS", *(f"best {model}" for model in trust_levels)]]
    for size in results.num_arms.values:
        for epsilon in results.epsilon.values:
            point_regret = regret.sel(num_arms=size, epsilon=epsilon, drop=True)
            order = [
                str(name)
                for name in point_regret.learner.values[np.argsort(point_regret.mean("seed").values, kind="stable")]
            ]
            eliminations = [name for name in order if name in ELIMINATIONS]
            compared = [order[1] if len(order) > 1 else None, eliminations[0] if eliminations else None]
            excesses = [
                "-"
                if name in (None, order[0])
                else f"{display_name(name)} {_format_excess(point_regret, name, order[0])}"
                for name in compared
            ]
            best = [display_name(next(name for name in order if trust[name] == model)) for model in trust_levels]
            rows.append([str(size), plotting.epsilon_label(epsilon), display_name(order[0]), *excesses, *best])
    return table_of("least regret, and the excess of others (paired by seed; 95% confidence)", rows)


def _format_excess(regret: xr.DataArray, name: str, best: str) -> str:
    """Formats the regret of learner `name` minus the regret of learner `best`, paired by seed, with an interval."""
    excess = paired(regret.sel(learner=[best, name]), "learner", against=best).isel(learner=0)
    return f"{float(excess.difference):+,.0f} ({float(excess.low):+,.0f} to {float(excess.high):+,.0f})"


def report(results: xr.Dataset) -> str:
    """Formats regret by number of arms, the winners, and notes on both."""
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        ADVICE,
        f"+- and intervals: 95% confidence (Student's t) over {seeds}, for each comparison separately. The learner "
        "with the least regret is selected on the same seeds: if the interval of another learner's excess reaches 0, "
        "the two may be equal. Learners that are simulated by counts (totals over many rounds) draw other outcomes "
        "than the other learners: their paired intervals are valid, but not narrower than unpaired ones.",
        "Central learners trust a curator with the outcome of every duel. With a shuffler, each user randomizes the "
        "outcome, and nobody sees who sent it. Local learners trust nobody. "
        f"delta = {float(results.delta):g} for claims that have one.",
    ]
    tables = [table(results, int(size)) for size in results.num_arms.values]
    return "\n\n".join([*tables, winners(results), *notes])


STUDY = Study(
    dueling_trust,
    figure,
    report,
    quick={"horizon": 2000, "num_arms": (4,), "learner": ("ebs_phased", "ebs_shuffle", "ebs_local")},
    minutes=1.5,
)
