"""Which private algorithm to use: registered candidates, simulated and ranked.

Plays every candidate that you would trust on an easy and a hard
instance of your problem, says which lose least at your epsilon, which
cannot be told apart, and at which epsilon that changes.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer
import xarray as xr

from jaxdp.registry.table import paper
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.processor import cores
from jaxdp.studies.advise_problems import PROBLEMS, SECONDS_OF_COMPILING, Problem, Sizes, affordable, played_by, run_of
from jaxdp.studies.advise_report import figure, report
from jaxdp.studies.arguments import Delta, Key, NumSeeds, Registered
from jaxdp.studies.declared import Study
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import check_choice, check_count, check_delta, check_horizon, check_positive

AROUND = (0.1, 0.3, 1.0, 3.0, 10.0)
TRUST = {"central": ("central", "shuffle", "local", "joint"), "shuffle": ("shuffle", "local"), "local": ("local",)}
NUM_SEEDS = 16
FEWEST_SEEDS = 5
DELTA = 1e-6
LEAST_HORIZON = 100


def advise(
    *,
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")] = "bandit",
    num_arms: Annotated[
        int | None, typer.Option("--arms", help="Number of arms or experts, >= 2. Without it: 10.", show_default=False)
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(help="Features of a context or of a comparison. Without it: 5.", show_default=False),
    ] = None,
    horizon: Annotated[
        float | None,
        typer.Option(
            "--horizon",
            "--samples",
            help="Rounds or labels, >= 100, such as 1e6. Without it: 1e6; contextual 1e5, labels 1e4.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Your privacy budget, > 0.")] = 1.0,
    trust: Annotated[
        str, typer.Option(help="central: a curator may be trusted. shuffle: a shuffler at most. local: nobody.")
    ] = "central",
    pure: Annotated[bool, typer.Option("--pure", help="Only claims without a delta.")] = False,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    delta: Delta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Losses of all candidates for a problem, on an easy and a hard instance, at budgets around yours.

    Candidates have the constants of their proofs, and know the horizon. They play by counts, where they have them (then
    worlds differ from those of the others), else by blocks or rounds. Where some are too slow for the horizon, all
    are compared at a shorter one, and those that are fast enough at the whole one too; nothing is extrapolated.

    The loss is regret; for "best-arm" the rounds until a learner stops, where a run that is cut off counts as all
    rounds; for "labels" the l2 error of the estimate.

    Args:
        problem: of `PROBLEMS`.
        num_arms: arms or experts, >= 2, of problems that have some; None is 10.
        dim: of contexts or features, >= 1, of problems that have some; None is 5.
        horizon: rounds or labels, >= 100, and 10 for each arm; None is the problem's own.
        epsilon: > 0, finite. Budgets from a tenth to ten times of it are simulated.
        trust: "central" takes all candidates, "shuffle" those that trust a shuffler or nobody, "local" the latter.
        pure: whether to take only those whose claim has no delta.
        learner: names; empty is all that are left.
        num_seeds: repetitions, >= 5.
        delta: of claims that have one, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `loss`, of dimensions (learner, instance, epsilon, horizon, seed), NaN where a candidate is too
        slow for a horizon; for "best-arm" also `censored` and `wrong`, for "labels" `unsolved`: 1 where a run was cut
        off, named another arm, or a minimisation missed its tolerance. Coordinates by learner: `claim`, `trust_model`
        and `unit` (what is private, and how neighbours differ), at the budget that is asked for, `proof`, `played` (by
        counts, blocks, rounds or labels), `summary` and `paper`; and `asked`, the budget.

    Raises:
        ValueError: if a value is out of range, or no candidate is left.
    """
    check_choice("problem", problem, tuple(PROBLEMS))
    check_choice("trust", trust, tuple(TRUST))
    if not math.isfinite(check_positive("epsilon", epsilon)):
        raise ValueError(f"epsilon must be finite, got {epsilon}")
    check_delta(delta)
    setting, known = PROBLEMS[problem], PROBLEMS[problem].candidates()
    sizes = _sizes(problem, num_arms=num_arms, dim=dim)
    least = max(LEAST_HORIZON, 10 * sizes.get("num_arms", 0))
    rounds = _whole(setting.horizon if horizon is None else horizon, least)
    check_count("num_seeds", num_seeds, FEWEST_SEEDS)
    for name in learner:
        check_choice("learner", name, tuple(known))

    epsilons = [float(f"{epsilon * factor:.3g}") if factor != 1 else float(epsilon) for factor in AROUND]
    lanes = len(epsilons) * len(setting.instances) * num_seeds
    claims, made, left_out = {}, {}, []
    for name in learner or known:
        try:
            run = run_of(setting, known[name], sizes, [rounds], delta, instance=next(iter(setting.instances.values())))
            (claim,) = run.guarantee(epsilon=epsilon).values()
        except ValueError as error:
            left_out.append(f"{name} ({error})")
            continue
        if claim.is_private and claim.trust_model in TRUST[trust] and (claim.kind == "pure" or not pure):
            claims[name], made[name] = claim, setting.sized(known[name], sizes, rounds).make()
    if not made:
        raise ValueError(f"trust must leave a candidate for {problem}, got {trust}{' with pure' if pure else ''}")
    seconds = {name: setting.seconds(one, sizes) for name, one in made.items()}
    common = affordable(list(seconds.values()), rounds, lanes)
    horizons = [common] if common == rounds else [common, rounds]
    own_horizons = {
        name: [n if n == common or affordable([one], rounds, lanes) == rounds else 0 for n in horizons]
        for name, one in seconds.items()
    }
    if scheduling.get("progress"):
        _tell_time(setting, seconds, own_horizons, lanes)

    def build(learner: str, instance: str = "") -> Run:
        chosen = setting.instances[instance] if instance else None
        return run_of(setting, known[learner], sizes, own_horizons[learner], delta, chosen)

    instances = list(setting.instances)
    results = sweep(
        build,
        axes={"epsilon": epsilons, **({setting.value: list(setting.instances.values())} if setting.value else {})},
        static_axes={"learner": list(made), **({} if setting.value else {"instance": instances})},
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(min(lanes, setting.tile)),
        **scheduling,
    )
    results = results.rename({setting.value: "instance"}) if setting.value else results
    texts = {
        "claim": [str(claim) for claim in claims.values()],
        "trust_model": [claim.trust_model for claim in claims.values()],
        "unit": [f"{claim.privacy_unit}, {claim.adjacency}" for claim in claims.values()],
        "proof": [known[name].proof for name in made],
        "played": [played_by(one) for one in made.values()],
        "summary": [known[name].summary for name in made],
        "paper": [paper(known[name].source) for name in made],
    }
    by_learner: dict[str, Any] = {name: ("learner", told) for name, told in texts.items()}
    by_itself = {"instance": instances, "horizon": horizons, "asked": epsilon, "problem": problem, **sizes}
    results = results.assign_coords({**by_learner, **by_itself})
    there = xr.DataArray([[n > 0 for n in own_horizons[name]] for name in made], dims=("learner", "horizon"))
    results = results.assign({name: results[name].where(there) for name in ("loss", *setting.shares)})
    results.attrs["left_out"] = "; ".join(left_out)
    return results.transpose("learner", "instance", "epsilon", "horizon", "seed", ...)


def _sizes(problem: str, **given: int | None) -> Sizes:
    """The problem's sizes: those that are given, or its own; what it does not have must not be given."""
    own = PROBLEMS[problem].sizes
    for name, size in given.items():
        if size is not None and name not in own:
            raise ValueError(f"{name} must be left out with {problem}, which has none, got {size}")
    chosen = {name: given[name] for name in own}
    return {
        name: own[name] if size is None else check_count(name, size, 2 if name == "num_arms" else 1)
        for name, size in chosen.items()
    }


def _whole(horizon: float, least: int) -> int:
    if not math.isfinite(horizon) or horizon != int(horizon):
        raise ValueError(f"horizon must be a whole number, got {horizon}")
    return check_horizon(int(horizon), minimum=least)


def _tell_time(setting: Problem, seconds: Mapping[str, float], horizons: Mapping[str, list[int]], lanes: int) -> None:
    """Says about how long it takes. Programs are compiled one after the other; tiles run on all cores."""
    programs = sum(n > 0 for own in horizons.values() for n in own) * (1 if setting.value else len(setting.instances))
    running = sum(one * lanes * sum(horizons[name]) for name, one in seconds.items())
    whole = SECONDS_OF_COMPILING * programs + running / cores()
    typer.echo(f"Candidates: {', '.join(seconds)}. They take about {max(1, round(whole / 60))} min here.", err=True)


STUDY = Study(advise, figure, report)
