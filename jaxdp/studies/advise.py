"""Which private algorithm to use: registered candidates, simulated and ranked.

Plays every candidate that you would trust on an easy and a hard
instance, says which lose least at your epsilon, which cannot be told
apart, and at which epsilon that changes.
"""

import math
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.registry.table import paper
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.processor import cores
from jaxdp.stats import paired
from jaxdp.studies.advise_problems import PROBLEMS, SECONDS_OF_COMPILING, affordable, engine, run_of, seconds
from jaxdp.studies.arguments import Delta, Key, NumSeeds, Registered
from jaxdp.studies.command import columns, mean_and_half_width
from jaxdp.studies.declared import Study
from jaxdp.validation import check_choice, check_count, check_delta, check_positive

AROUND = (0.1, 0.3, 1.0, 3.0, 10.0)
TRUST = {"central": ("central", "shuffle", "local", "joint"), "shuffle": ("shuffle", "local"), "local": ("local",)}
NUM_SEEDS = 16
FEWEST_SEEDS = 5
DELTA = 1e-6
LEVEL = 0.05
LEAST_HORIZON = 100


def advise(
    *,
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")] = "bandit",
    num_arms: Annotated[int, typer.Option("--arms", help="Number of arms or experts, >= 2.")] = 10,
    horizon: Annotated[float, typer.Option(help="Rounds, >= 100, such as 1e6.")] = 1e6,
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

    Args:
        problem: of `PROBLEMS`.
        num_arms: arms or experts, >= 2.
        horizon: rounds, >= 100.
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
        slow for a horizon. Coordinates by learner: `claim`, `trust_model` and `unit` (what is private, and how
        neighbours differ), at the budget that is asked for, `proof`, `played` (counts, blocks or rounds), `summary` and
        `paper`; and `asked`, the budget.

    Raises:
        ValueError: if a value is out of range, or no candidate is left.
    """
    check_choice("problem", problem, tuple(PROBLEMS))
    check_choice("trust", trust, tuple(TRUST))
    if not math.isfinite(check_positive("epsilon", epsilon)):
        raise ValueError(f"epsilon must be finite, got {epsilon}")
    check_delta(delta)
    size, rounds = check_count("num_arms", num_arms, 2), _whole(horizon, max(LEAST_HORIZON, 10 * num_arms))
    check_count("num_seeds", num_seeds, FEWEST_SEEDS)
    setting, known = PROBLEMS[problem], PROBLEMS[problem].candidates()
    for name in learner:
        check_choice("learner", name, tuple(known))

    epsilons = [float(f"{epsilon * factor:.3g}") if factor != 1 else float(epsilon) for factor in AROUND]
    lanes = len(epsilons) * len(setting.instances) * num_seeds
    claims, made, left_out = {}, {}, []
    for name in learner or known:
        algorithm = setting.sized(known[name], size, rounds).make()
        values = {"epsilon": epsilon, **({"delta": delta} if "delta" in known[name].values else {})}
        try:
            claim = algorithm.guarantee(**values)
        except ValueError as error:
            left_out.append(f"{name} ({error})")
            continue
        if claim.is_private and claim.trust_model in TRUST[trust] and (claim.kind == "pure" or not pure):
            claims[name], made[name] = claim, algorithm
    if not made:
        raise ValueError(f"trust must leave a candidate for {problem}, got {trust}{' with pure' if pure else ''}")
    common = affordable(list(made.values()), size, rounds, lanes)
    horizons = [common] if common == rounds else [common, rounds]
    fast = {name: affordable([one], size, rounds, lanes) == rounds for name, one in made.items()}
    if scheduling.get("progress"):
        _tell_time(made, fast, size, horizons, lanes)

    def build(learner: str) -> Run:
        own = [n if n == common or fast[learner] else 0 for n in horizons]
        return run_of(setting, known[learner], size, own, delta)

    axes = {"epsilon": epsilons, **({setting.value: list(setting.instances.values())} if setting.value else {})}
    results = sweep(
        build,
        axes=axes,
        static_axes={"learner": list(made)},
        num_seeds=num_seeds,
        key=key,
        tile_size=min(lanes, 256),
        **scheduling,
    )
    results = results.rename({setting.value: "instance"}) if setting.value else results.expand_dims("instance")
    texts = {
        "claim": [str(claim) for claim in claims.values()],
        "trust_model": [claim.trust_model for claim in claims.values()],
        "unit": [f"{claim.privacy_unit}, {claim.adjacency}" for claim in claims.values()],
        "proof": [known[name].proof for name in made],
        "played": [engine(one) for one in made.values()],
        "summary": [known[name].summary for name in made],
        "paper": [paper(known[name].source) for name in made],
    }
    by_learner: dict[str, Any] = {name: ("learner", told) for name, told in texts.items()}
    results = results.assign_coords(
        **by_learner,
        instance=list(setting.instances),
        horizon=horizons,
        asked=epsilon,
        problem=problem,
        size=size,
    )
    there = xr.DataArray(
        [[rounds == common or fast[name] for rounds in horizons] for name in made], dims=("learner", "horizon")
    )
    results["loss"] = results.loss.where(there)
    results.attrs["left_out"] = "; ".join(left_out)
    return results.transpose("learner", "instance", "epsilon", "horizon", "seed", ...)


def _whole(horizon: float, least: int) -> int:
    if not math.isfinite(horizon) or horizon != int(horizon):
        raise ValueError(f"horizon must be a whole number, got {horizon}")
    return check_count("horizon", int(horizon), least)


def _tell_time(made: Any, fast: Any, size: int, horizons: list[int], lanes: int) -> None:
    """Says about how long it takes. Programs are compiled one after the other; tiles run on all cores."""
    running = sum(
        seconds(one, size, rounds, lanes)
        for name, one in made.items()
        for rounds in horizons
        if rounds == horizons[0] or fast[name]
    )
    whole = SECONDS_OF_COMPILING * len(made) + running / cores()
    typer.echo(f"Candidates: {', '.join(made)}. They take about {max(1, round(whole / 60))} min here.", err=True)


def comparisons(loss: xr.DataArray) -> xr.Dataset:
    """Compares every two learners by paired differences.

    Args:
        loss: with dimensions learner and seed, without NaN, and no others.

    Returns:
        `difference` (learner less `against`), `low`, `high` (95%, each by itself), and `p_adjusted`, by Bonferroni over
        all pairs, so that the learners that are compared may be chosen by their means: if all pairs with p_adjusted <=
        0.05 are called different, one or more of these calls are wrong with probability at most 5%. Dimensions learner
        and against; 0 and p = 1 on the diagonal.
    """
    names = loss["learner"].values
    if len(names) == 1:
        one = xr.zeros_like(loss.isel(seed=0, drop=True), dtype=float).expand_dims(against=names)
        return xr.Dataset({"difference": one, "low": one, "high": one, "p_adjusted": one + 1.0})
    found = [
        paired(loss, "learner", against=name, adjust=None).reindex(learner=names).expand_dims(against=[name])
        for name in names
    ]
    all_ = xr.concat(found, "against", coords="minimal", compat="override", join="outer")
    pairs = len(names) * (len(names) - 1) // 2
    same = all_.learner == all_.against
    adjusted = (all_.p_value * pairs).clip(max=1.0).where(~same, 1.0)
    return all_[["difference", "low", "high"]].where(~same, 0.0).assign(p_adjusted=adjusted)


def ranking(loss: xr.DataArray) -> tuple[list[str], list[str]]:
    """Ranks learners.

    Args:
        loss: as `comparisons` takes it.

    Returns:
        The learners by their mean loss, least first; and those of them, the first included, that are not called worse
        than the first: which of these is best is undecided, unless there is one alone.
    """
    order = loss["learner"].values[np.argsort(loss.mean("seed").values, kind="stable")].tolist()
    against = comparisons(loss).sel(against=order[0])
    return order, [name for name in order if not float(against.p_adjusted.sel(learner=name)) <= LEVEL]


def measured(results: xr.Dataset, instance: str, epsilon: float, horizon: int) -> xr.DataArray:
    """The losses of those who were played for so long, of dimensions (learner, seed)."""
    return results.loss.sel(instance=instance, epsilon=epsilon, horizon=horizon, drop=True).dropna("learner", how="all")


def table(results: xr.Dataset, instance: str, horizon: int) -> str:
    """One instance's ranking at the budget that is asked for, as text."""
    loss = measured(results, instance, float(results.asked), horizon)
    order, best = ranking(loss)
    mean, half = mean_and_half_width(loss)
    against = comparisons(loss).sel(against=order[0])
    rows = [["", "trust", "loss", "more than the first", "verdict"]]
    trust = dict(zip(results.learner.values.tolist(), results.trust_model.values.tolist(), strict=True))
    for name in order:
        m, h = (float(part.sel(learner=name)) for part in (mean, half))
        low, high = (float(against[end].sel(learner=name)) for end in ("low", "high"))
        verdict = "undecided" if name in best else "worse"
        if name == order[0]:
            verdict = "least" if len(best) == 1 else "least so far"
        more = "" if name == order[0] else f"{low:,.4g} to {high:,.4g}"
        rows.append([name, trust[name], f"{m:,.4g} +- {h:,.2g}", more, verdict])
    return "\n".join([f"{instance} instance, {horizon:,} rounds, epsilon = {float(results.asked):g}", *columns(rows)])


def changes(results: xr.Dataset, instance: str, horizon: int) -> str:
    """Who is first at each budget, as text. That it changes is said where nobody may be the best at all of them."""
    told, all_best = [], []
    for epsilon in np.sort(results.epsilon.values):
        order, best = ranking(measured(results, instance, epsilon, horizon))
        others = f" (or {', '.join(name for name in best if name != order[0])})" if len(best) > 1 else ""
        told.append((f"{epsilon:g}", f"{order[0]}{others}"))
        all_best.append(set(best))
    lines = [f"  epsilon {epsilon}: {text}" for epsilon, text in told]
    everywhere = set.intersection(*all_best)
    sure = "is the same" if all(len(best) == 1 for best in all_best) else "may be the same"
    changed = sure if everywhere else "changes"
    return "\n".join([f"{instance}, {horizon:,} rounds: who loses least {changed} over these budgets", *lines])


def advice(results: xr.Dataset) -> str:
    """What to use, in one sentence for each horizon."""
    lines = []
    for horizon in results.horizon.values.tolist():
        all_best = [
            ranking(measured(results, instance, float(results.asked), horizon))[1]
            for instance in results.instance.values
        ]
        both = [name for name in all_best[0] if all(name in best for best in all_best)]
        if len(both) == 1:
            text = f"use {both[0]}"
        elif both:
            text = f"{', '.join(both)} cannot be told apart; more seeds may"
        else:
            text = "none is best on every instance: it depends on how hard yours is"
        lines.append(f"ADVICE at epsilon = {float(results.asked):g}, {horizon:,} rounds: {text}.")
    return "\n".join(lines)


def report(results: xr.Dataset) -> str:
    """What the command prints: advice, rankings, where they change, and what each candidate claims."""
    horizons, instances = results.horizon.values.tolist(), results.instance.values.tolist()
    settings = [(instance, horizon) for horizon in horizons for instance in instances]
    parts = [advice(results), *(part(results, *each) for part in (table, changes) for each in settings)]
    told = [
        f"  {name}: {claim}; {proof}; by {played}; {summary} ({source})"
        for name, claim, proof, played, summary, source in zip(
            *(results[part].values for part in ("learner", "claim", "proof", "played", "summary", "paper")), strict=True
        )
    ]
    seeds = results.sizes["seed"]
    notes = [
        f"+- and ranges: 95% confidence (Student's t) over {plotting.seed_count(seeds)}, paired by "
        "seed where worlds are common. Verdicts hold for all pairs of a table together, with 5% that one or more is "
        "wrong, as far as means over seeds are normal.",
        f"What did not happen in {seeds} seeds, such as a wrong arm kept for good, may still have a probability of up "
        f"to {1 - 0.05 ** (1 / seeds):.0%} (95% confidence). Intervals and verdicts do not know of it: a candidate "
        "that seldom loses much can be called best or worse for what it did in these seeds.",
        "Candidates have the constants of their proofs. Instances: one best, all others equal, far behind and close "
        "behind (duels: evenly spaced utilities, sure and unsure users; experts: one instance). Yours may differ.",
    ]
    if len(set(results.trust_model.values.tolist())) > 1:
        notes.append(
            "An epsilon does not promise the same in every model of trust: of a local algorithm it holds against the "
            "curator, too. The ranking is by losses alone; --trust leaves out what you would not trust."
        )
    if len(units := dict.fromkeys(results.unit.values.tolist())) > 1:
        notes.append(f"Candidates protect different units ({'; '.join(units)}), and are ranked by losses alone.")
    if len(horizons) > 1:
        slow = results.learner.values[np.isnan(results.loss.isel(horizon=-1)).all(["instance", "epsilon", "seed"])]
        notes.append(
            f"Too slow for {horizons[-1]:,} rounds here: {', '.join(slow)}. So all are compared at {horizons[0]:,} "
            "rounds, where they were measured; nothing is extrapolated."
        )
    if results.attrs.get("left_out"):
        notes.append(f"Left out: {results.attrs['left_out']}.")
    return "\n\n".join([*parts, "\n".join(["candidates: claim; its proof; played by", *told]), *notes])


def figure(results: xr.Dataset) -> Figure:
    """The figure: loss against epsilon, a panel for each instance, at the horizon that all were played for."""
    horizon = int(results.horizon.values[0])
    return plotting.facets(
        results.loss.sel(horizon=horizon, drop=True).sortby("epsilon"),
        x="epsilon",
        hue="learner",
        col="instance",
        labels=plotting.prefixed(results.trust_model),
        title=f"Which algorithm: {PROBLEMS[str(results.problem.values)].what} ({int(results['size'])})",
        note=f"{horizon:,} rounds.",
        xscale="log",
        yscale="log",
        ylabel=PROBLEMS[str(results.problem.values)].loss,
    )


STUDY = Study(advise, figure, report)
