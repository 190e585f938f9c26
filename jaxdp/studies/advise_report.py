"""What advice is made of: rankings by paired differences, where they change, and the text and figure that tell them."""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.stats import paired
from jaxdp.studies.advise_problems import PROBLEMS, Problem
from jaxdp.studies.command import columns, mean_and_half_width

LEVEL = 0.05
SIMULTANEOUS = "more than the first, all pairs"


def comparisons(loss: xr.DataArray) -> xr.Dataset:
    """Compares every two learners by paired differences.

    Args:
        loss: with dimensions learner and seed, without NaN, and no others.

    Returns:
        `difference` (learner less `against`), `low` and `high`, which hold for all pairs together with 95% confidence,
        and `p_adjusted`, all by Bonferroni over all pairs, so that the learners that are compared may be chosen by
        their means: if all pairs with p_adjusted <= 0.05 are called different, one or more of these calls are wrong
        with probability at most 5%. These are the pairs whose range is without 0. Dimensions learner and against; 0
        and p = 1 on the diagonal.
    """
    names = loss["learner"].values
    if len(names) == 1:
        one = xr.zeros_like(loss.isel(seed=0, drop=True), dtype=float).expand_dims(against=names)
        return xr.Dataset({"difference": one, "low": one, "high": one, "p_adjusted": one + 1.0})
    pairs = len(names) * (len(names) - 1) // 2
    compare = partial(paired, loss, "learner", confidence=1 - LEVEL / pairs, adjust=None)
    tables = [compare(against=name).reindex(learner=names).expand_dims(against=[name]) for name in names]
    all_ = xr.concat(tables, "against", coords="minimal", compat="override", join="outer")
    same = all_.learner == all_.against
    adjusted = (all_.p_value * pairs).clip(max=1.0).where(~same, 1.0)
    return all_[["difference", "low", "high"]].where(~same, 0.0).assign(p_adjusted=adjusted)


def ranking(loss: xr.DataArray) -> tuple[list[str], list[str]]:
    """Ranks learners.

    Args:
        loss: as `comparisons` takes it.

    Returns:
        The learners by their mean loss, least first, and last those with a loss that is NaN; and those of them, the
        first included, that are not called worse than the first: which of these is best is undecided, unless there is
        one alone.
    """
    order = loss["learner"].values[np.argsort(loss.mean("seed", skipna=False).values, kind="stable")].tolist()
    against = comparisons(loss).sel(against=order[0])
    return order, [name for name in order if not float(against.p_adjusted.sel(learner=name)) <= LEVEL]


def _problem(results: xr.Dataset) -> Problem:
    return PROBLEMS[str(results.problem.values)]


def _counted(results: xr.Dataset, horizon: int) -> str:
    return f"{horizon:,} {_problem(results).counted}"


def measured(results: xr.Dataset, instance: str, epsilon: float, horizon: int) -> xr.DataArray:
    """The losses of those who were played for so long, of dimensions (learner, seed)."""
    return results.loss.sel(instance=instance, epsilon=epsilon, horizon=horizon, drop=True).dropna("learner", how="all")


def table(results: xr.Dataset, instance: str, horizon: int) -> str:
    """One instance's ranking at the budget that is asked for, as text."""
    loss = measured(results, instance, float(results.asked), horizon)
    order, best = ranking(loss)
    mean, half = mean_and_half_width(loss)
    against = comparisons(loss).sel(against=order[0])
    shares = {
        head: results[name].sel(instance=instance, epsilon=float(results.asked), horizon=horizon).mean("seed")
        for name, head in _problem(results).shares.items()
    }
    rows = [["", "trust", "loss", SIMULTANEOUS, *shares, "verdict"]]
    trust = dict(zip(results.learner.values.tolist(), results.trust_model.values.tolist(), strict=True))
    for name in order:
        m, h = (float(part.sel(learner=name)) for part in (mean, half))
        low, high = (float(against[end].sel(learner=name)) for end in ("low", "high"))
        verdict = "undecided" if name in best else "worse"
        if name == order[0]:
            verdict = "least" if len(best) == 1 else "least so far"
        more = "" if name == order[0] else f"{low:,.4g} to {high:,.4g}"
        told = [f"{float(share.sel(learner=name)):.0%}" for share in shares.values()]
        rows.append([name, trust[name], f"{m:,.4g} +- {h:,.2g}", more, *told, verdict])
    title = f"{instance} instance, {_counted(results, horizon)}, epsilon = {float(results.asked):g}"
    return "\n".join([f"{title}: {_problem(results).loss}", *columns(rows)])


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
    title = f"{instance}, {_counted(results, horizon)}: who loses least {changed} over these budgets"
    return "\n".join([title, *lines])


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
        lines.append(f"ADVICE at epsilon = {float(results.asked):g}, {_counted(results, horizon)}: {text}.")
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
        f"+-: 95% confidence (Student's t) over {plotting.seed_count(seeds)}, of each loss alone. Ranges of "
        f'"{SIMULTANEOUS}": 95% confidence of all pairs of a table together (Bonferroni), paired by seed where '
        "worlds are common. A verdict is undecided where 0 lies in the range; with probability at most 5% one or more "
        "verdicts of a table are wrong, as far as means over seeds are normal.",
        f"What did not happen in {seeds} seeds, such as a wrong arm kept for good, may still have a probability of up "
        f"to {1 - 0.05 ** (1 / seeds):.0%} (95% confidence). Intervals and verdicts do not know of it: a candidate "
        "that seldom loses much can be called best or worse for what it did in these seeds.",
        f"Candidates have the constants of their proofs. Instances: {_problem(results).told}. Yours may differ.",
    ]
    if "censored" in results and bool((results.censored > 0).any()):
        notes.append(
            "A run that is cut off counts as all rounds: it would have taken more, so differences to those that are "
            "cut off are at least what is told. More rounds (--horizon) tell more."
        )
    if (
        "unsolved" in results
        and (unsolved := results.learner[(results.unsolved > 0).any(set(results.unsolved.dims) - {"learner"})]).size
    ):
        notes.append(f"Minimisations that missed their tolerance: of {', '.join(unsolved.values)}.")
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
            f"Too slow for {_counted(results, horizons[-1])} here: {', '.join(slow)}. So all are compared at "
            f"{_counted(results, horizons[0])}, where they were measured; nothing is extrapolated."
        )
    if results.attrs.get("left_out"):
        notes.append(f"Left out: {results.attrs['left_out']}.")
    return "\n\n".join([*parts, "\n".join(["candidates: claim; its proof; played by", *told]), *notes])


def figure(results: xr.Dataset) -> Figure:
    """The figure: loss against epsilon, a panel for each instance, at the horizon that all were played for."""
    problem, horizon = _problem(results), int(results.horizon.values[0])
    words = {"num_arms": "experts" if "experts" in problem.what else "arms", "dim": "features"}
    size_text = ", ".join(f"{int(results[name])} {words[name]}" for name in problem.sizes)
    return plotting.facets(
        results.loss.sel(horizon=horizon, drop=True).sortby("epsilon"),
        x="epsilon",
        hue="learner",
        col="instance",
        labels=plotting.prefixed(results.trust_model),
        title=f"Which algorithm: {problem.what} ({size_text})",
        note=f"{_counted(results, horizon)}.",
        xscale="log",
        yscale="log",
        ylabel=problem.loss,
    )
