"""Simulate and rank the registered private algorithms on your problem.

Simulates every algorithm that --trust and the other options allow. Most
problems have an easy and a hard instance. Reports the algorithm with the
least loss at your epsilon, the algorithms that are statistically
indistinguishable from it, and whether another algorithm has the least loss
at another epsilon.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
import xarray as xr

from jaxdp.core import Visits
from jaxdp.registry.table import paper
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.processor import cores
from jaxdp.simulation.sweeps.progress import listen_to_chunks
from jaxdp.studies.advise_costs import (
    FEWEST_ROUNDS,
    SECONDS_OF_A_CANDIDATE,
    SECONDS_OF_COMPILING,
    Sizes,
    affordable,
    engine_of,
    scaled_rounds,
)
from jaxdp.studies.advise_problems import PROBLEMS, Problem, algorithm_of, run_of, with_means, with_people
from jaxdp.studies.advise_report import figure, print_first_means, report
from jaxdp.studies.arguments import Delta, Key, NumSeeds, Registered
from jaxdp.studies.declared import Study
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import (
    check_choice,
    check_count,
    check_delta,
    check_horizon,
    check_positive,
    check_probability,
    check_within,
)

AROUND = (0.1, 0.3, 1.0, 3.0, 10.0)
TRUST = {"central": ("central", "shuffle", "local", "joint"), "shuffle": ("shuffle", "local"), "local": ("local",)}
NUM_SEEDS = 16
FEWEST_SEEDS = 5
DELTA = 1e-6
LEAST_HORIZON = 100
WITH_PEOPLE = ("bandit", "duels", "experts")
REPORTS = (1, 2, 5, 10)  # numbers of visits per person that candidates use


def advise(
    *,
    problem: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(PROBLEMS)}. Default: bandit; best-arm with --means or --rate.", show_default=False
        ),
    ] = None,
    means: Annotated[
        Sequence[float],
        typer.Option(
            help="For best-arm: the mean of each arm, in [0, 1], such as .022 .02 .02. One must be the largest."
        ),
    ] = (),
    rate: Annotated[
        float | None,
        typer.Option(
            help="For best-arm: the mean of all arms except the best, in (0, 1). Give --lift, too.", show_default=False
        ),
    ] = None,
    lift: Annotated[
        float | None,
        typer.Option(help="For best-arm: the best mean is rate * (1 + lift); > 0.", show_default=False),
    ] = None,
    num_arms: Annotated[
        int | None, typer.Option("--arms", help="Number of arms or experts, >= 2. Default: 10.", show_default=False)
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(help="Features of a context or of a comparison. Default: 5.", show_default=False),
    ] = None,
    horizon: Annotated[
        float | None,
        typer.Option(
            "--horizon",
            "--samples",
            help="Rounds or labels, >= 100 and >= 10 per arm, such as 1e6. Default: 1e6; contextual 1e5, labels 1e4; "
            "1e9 with --means or --rate.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Shorten the horizon so that each candidate's rounds take about this time on one core, or less, but "
            "not below 5,000 rounds; no effect with --people. Default: 10; fast candidates are then also compared at "
            "the full horizon.",
            show_default=False,
        ),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            help="For bandit, duels, experts: number of people, who each come several times. Budgets are then for a "
            "person, and candidates differ in how many visits of a person they use. Give --visits, too.",
            show_default=False,
        ),
    ] = None,
    visits: Annotated[
        int | None,
        typer.Option(help="Visits of each person, in random order; rounds are people * visits.", show_default=False),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Your privacy budget epsilon, > 0.")] = 1.0,
    trust: Annotated[
        str, typer.Option(help="Whom you trust. central: a curator. shuffle: a shuffler at most. local: nobody.")
    ] = "central",
    pure: Annotated[bool, typer.Option("--pure", help="Only candidates whose claim has no delta.")] = False,
    no_variants: Annotated[
        bool,
        typer.Option(
            "--no-variants",
            help="Leave out variants: only the first entry of each algorithm, such as ucb_central without "
            "ucb_central_tree. No effect with --learner.",
        ),
    ] = False,
    learner: Registered = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    delta: Delta = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates all candidates for a problem, on one or two instances, at several budgets around `epsilon`.

    Most problems have an easy and a hard instance. The instances of "labels" have sure and unsure users, and "experts"
    has only one instance.

    Candidates use the constants of their proofs, and know the horizon. A candidate is simulated by counts if it
    supports counts, and otherwise by blocks or rounds. If its lanes have at most 10^6 rounds together (fewer if there
    are more than 10 arms or 5 dimensions), it is simulated by rounds, which compile sooner. At the same seed, the
    random outcomes by counts differ from the outcomes by blocks or rounds. If some candidates are too slow for the
    horizon, all candidates are compared at a shorter horizon. The candidates that are fast enough are then also
    compared at the full horizon, but not if `seconds` is given. Results are never extrapolated.

    The loss is the regret. For "best-arm" it is the number of rounds until a learner stops (all rounds for a run that
    is cut off), and for "labels" it is the l2 error of the estimate. The budgets are from a tenth to ten times
    `epsilon`. With `means`, or with `rate` and `lift`, "best-arm" is simulated only on the given instance.

    With `people` and `visits` the claims are for a person. From each learner, `jaxdp.per_person` makes candidates that
    use 1, 2, 5 and 10 visits of a person (at most `visits`), such as "ucb (2 reports)". All candidates are simulated
    for people * visits rounds, by heard rounds if they support this engine, and `seconds` has no effect.

    Returns:
        A dataset with `loss`, of dimensions (learner, instance, epsilon, horizon, seed), NaN where a candidate is too
        slow for a horizon or a minimisation fails. "best-arm" also has `censored` (1 if a run was cut off) and `wrong`
        (1 if a run named an arm that is not the best), and "labels" also has `unsolved` (1 if a minimisation missed its
        tolerance). Coordinates by learner are `claim`, `trust_model` and `unit` (the privacy unit and the adjacency) at
        your budget, `proof`, `played` (counts, blocks, heard rounds, rounds or labels), `summary` and `paper`, and
        `reports` if there are people. The coordinates `asked` and `problem` are your budget and problem; sizes are also
        coordinates.

    Raises:
        ValueError: if a value is out of range, values do not fit together, there are fewer than 5 seeds, or no
            candidate remains.
    """
    given_means = _given_means(means, rate, lift, num_arms, PROBLEMS["best-arm"].sizes["num_arms"])
    if problem is None:
        problem = "best-arm" if given_means else "bandit"
    check_choice("problem", problem, tuple(PROBLEMS))
    if given_means and problem != "best-arm":
        raise ValueError(f"problem must be best-arm with means or rate, got {problem}")
    check_choice("trust", trust, tuple(TRUST))
    if not math.isfinite(check_positive("epsilon", epsilon)):
        raise ValueError(f"epsilon must be finite, got {epsilon}")
    check_delta(delta)
    setting, entries = PROBLEMS[problem], PROBLEMS[problem].candidates()
    for name in learner:
        check_choice("learner", name, tuple(entries))
    firsts = {entry.factory: name for name, entry in reversed(list(entries.items()))}
    variants = [name for name in entries if no_variants and not learner and firsts[entries[name].factory] != name]
    candidates = {name: (entries[name], 0) for name in learner or entries if name not in variants}
    if given_means:
        setting, num_arms = with_means(setting, given_means), len(given_means)
    if people is not None or visits is not None:
        schedule = _schedule(problem, people, visits, horizon)
        setting = with_people(setting, schedule)
        candidates = {
            f"{name} ({reports} report{'s' * (reports > 1)})": (entry, reports)
            for name, (entry, _) in candidates.items()
            for reports in REPORTS
            if reports <= schedule.most
        }
    sizes = _sizes(problem, num_arms=num_arms, dim=dim)
    least = max(LEAST_HORIZON, 10 * sizes.get("num_arms", 0))
    rounds = _check_rounds(setting.horizon if horizon is None else horizon, least)
    check_count("num_seeds", num_seeds, FEWEST_SEEDS)

    epsilons = [float(f"{epsilon * factor:.3g}") if factor != 1 else float(epsilon) for factor in AROUND]
    lanes = len(epsilons) * len(setting.instances) * num_seeds
    claims, algorithms, left_out, errors = {}, {}, [f"{name} (a variant)" for name in variants], []
    first = next(iter(setting.instances.values()))
    for name, (entry, reports) in candidates.items():
        try:
            run = run_of(setting, entry, sizes, [rounds], delta, first, reports=reports)
            (claim,) = run.guarantee(epsilon=epsilon).values()
        except ValueError as error:
            errors.append(f"{name} ({error})")
            continue
        if claim.is_private and claim.trust_model in TRUST[trust] and (claim.kind == "pure" or not pure):
            claims[name] = claim
            algorithms[name] = algorithm_of(setting, entry, sizes, rounds, reports)
    left_out += errors
    if not algorithms:
        reasons = f"; these candidates raise errors: {'; '.join(errors)}" if errors else ""
        raise ValueError(
            f"trust must leave a candidate for {problem}, got {trust}{' with pure' if pure else ''}{reasons}"
        )
    costs = {name: setting.seconds(algorithm, sizes) for name, algorithm in algorithms.items()}
    limit = SECONDS_OF_A_CANDIDATE if seconds is None else check_positive("seconds", seconds)
    fewest = max(FEWEST_ROUNDS, least)
    common = rounds if setting.visits else affordable(list(costs.values()), rounds, lanes, limit, fewest)
    fast = [name for name, cost in costs.items() if affordable([cost], rounds, lanes, limit, fewest) == rounds]
    horizons = [common] if common == rounds or seconds is not None or not fast else [common, rounds]
    horizons_of = {name: [n if n == common or name in fast else 0 for n in horizons] for name in costs}
    listening = contextlib.nullcontext()
    if scheduling.get("progress"):
        _print_time(setting, costs, horizons_of, lanes)
        listening = listen_to_chunks(print_first_means(setting, float(epsilon), common))

    def build(learner: str, instance: str = "") -> Run:
        value = setting.instances[instance] if instance else None
        entry, reports = candidates[learner]
        return run_of(setting, entry, sizes, horizons_of[learner], delta, value, reports=reports, lanes=lanes)

    instances = list(setting.instances)
    order = [name for name in setting.first if name in algorithms]
    order += [name for name in algorithms if name not in order]
    with listening:
        results = sweep(
            build,
            axes={"epsilon": epsilons, **({setting.value: list(setting.instances.values())} if setting.value else {})},
            static_axes={"learner": order, **({} if setting.value else {"instance": instances})},
            num_seeds=num_seeds,
            key=key,
            tile_size=cpu_tile(min(lanes, setting.tile), scheduling),
            **scheduling,
        )
    results = results.rename({setting.value: "instance"} if setting.value else {}).sel(learner=list(algorithms))
    rounds_of = {name: scaled_rounds(sizes, lanes, max(numbers)) for name, numbers in horizons_of.items()}
    texts = {
        "claim": [str(claim) for claim in claims.values()],
        "trust_model": [claim.trust_model for claim in claims.values()],
        "unit": [f"{claim.privacy_unit}, {claim.adjacency}" for claim in claims.values()],
        "proof": [candidates[name][0].proof for name in algorithms],
        "played": [engine_of(algorithm, rounds_of[name]) for name, algorithm in algorithms.items()],
        "summary": [candidates[name][0].summary for name in algorithms],
        "paper": [paper(candidates[name][0].source) for name in algorithms],
    }
    by_learner: dict[str, Any] = {name: ("learner", values) for name, values in texts.items()}
    if setting.visits:
        by_learner["reports"] = ("learner", [candidates[name][1] for name in algorithms])
    settings_coords = {"instance": instances, "horizon": horizons, "asked": epsilon, "problem": problem, **sizes}
    results = results.assign_coords({**by_learner, **settings_coords})
    is_played = xr.DataArray([[n > 0 for n in horizons_of[name]] for name in algorithms], dims=("learner", "horizon"))
    results = results.assign({name: results[name].where(is_played) for name in ("loss", *setting.shares)})
    results.attrs["left_out"] = "; ".join(left_out)
    if common < rounds:
        results.attrs |= {"full_horizon": rounds, "too_slow": ", ".join(name for name in costs if name not in fast)}
    results.attrs["instances_text"] = setting.instances_text
    return results.transpose("learner", "instance", "epsilon", "horizon", "seed", ...)


def _schedule(problem: str, people: int | None, visits: int | None, horizon: float | None) -> Visits:
    """Returns a schedule in which each of `people` persons has `visits` visits, in random order.

    Raises a ValueError if one of the two numbers is None or < 1, a horizon is given, or the problem has no people.
    """
    if problem not in WITH_PEOPLE:
        raise ValueError(f"problem must be one of {', '.join(WITH_PEOPLE)} with people and visits, got {problem}")
    if people is None or visits is None:
        raise ValueError(f"people and visits must be given together, got {people} and {visits}")
    if horizon is not None:
        raise ValueError(f"horizon must be left out with people and visits, as it is their product, got {horizon:g}")
    check_count("people", people)
    return Visits.random(people=people, each=check_count("visits", visits))


def _given_means(
    means: Sequence[float], rate: float | None, lift: float | None, num_arms: int | None, default_arms: int
) -> tuple[float, ...]:
    """Returns the means that the user gave, in their order, or the means of `rate` and `lift`, best first.

    Returns () if neither is given. Raises a ValueError if values are invalid or do not fit together.
    """
    if rate is None and lift is None:
        if len(means) == 0:
            return ()
        given_means = tuple(float(mean) for mean in check_within("means", means, 0.0, 1.0))
        if num_arms is not None and num_arms != len(given_means):
            raise ValueError(f"num_arms must be left out, or the number of means, {len(given_means)}, got {num_arms}")
        if len(given_means) < 2 or given_means.count(max(given_means)) > 1:
            raise ValueError(f"means must have two or more entries with one largest, got {list(given_means)}")
        return given_means
    if len(means) or rate is None or lift is None:
        raise ValueError(f"rate and lift must be given together, without means, got {rate} and {lift}")
    check_probability("rate", rate)
    if rate * (1 + check_positive("lift", lift)) > 1:
        raise ValueError(f"lift must be at most {1 / rate - 1:.6g} at rate {rate:g}, got {lift}")
    count = default_arms if num_arms is None else check_count("num_arms", num_arms, 2)
    return (rate * (1 + lift), *[rate] * (count - 1))


def _sizes(problem: str, **sizes: int | None) -> Sizes:
    """Returns the problem's sizes, with defaults in place of None.

    Raises a ValueError if a size is too small, or is given although the problem does not have it.
    """
    defaults = PROBLEMS[problem].sizes
    for name, size in sizes.items():
        if size is not None and name not in defaults:
            raise ValueError(f"{name} must be left out with {problem}, which has none, got {size}")
    return {
        name: default if (size := sizes[name]) is None else check_count(name, size, 2 if name == "num_arms" else 1)
        for name, default in defaults.items()
    }


def _check_rounds(horizon: float, least: int) -> int:
    """Returns `horizon` as an integer.

    Raises a ValueError unless the horizon is an integer >= `least` that JAX's integers can represent.
    """
    if not math.isfinite(horizon) or horizon != int(horizon):
        raise ValueError(f"horizon must be an integer, got {horizon}")
    return check_horizon(int(horizon), minimum=least)


def _print_time(setting: Problem, seconds: Mapping[str, float], horizons: Mapping[str, list[int]], lanes: int) -> None:
    """Prints the names of candidates and an estimate of the study's time.

    `seconds` has each candidate's seconds per lane-round, and `horizons` each candidate's numbers of rounds (0 if it is
    not simulated). Programs run on all cores.
    """
    programs = sum(n > 0 for rounds in horizons.values() for n in rounds) * (
        1 if setting.value else len(setting.instances)
    )
    running = sum(cost * lanes * sum(horizons[name]) for name, cost in seconds.items())
    total = SECONDS_OF_COMPILING * programs + running / cores()
    time = f"{round(total / 60)} min" if total >= 90 else f"{10 * max(1, round(total / 10))} s"
    typer.echo(f"Candidates: {', '.join(seconds)}. They take about {time} here.", err=True)


STUDY = Study(advise, figure, report, quick={"num_seeds": 5, "seconds": 0.25, "no_variants": True}, minutes=1)
