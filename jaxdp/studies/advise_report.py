"""The report of `advise`: first means, rankings by paired differences, changes between budgets, and the figure."""

import sys
from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.stats import all_pairs
from jaxdp.studies.advise_problems import PROBLEMS, Problem
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.comparison import learner_labels
from jaxdp.studies.tables import table_of

LEVEL = 0.05
MOST_CURVES = 7  # maximum number of coloured curves if each learner has several curves, one per number of reports
SIMULTANEOUS = "more than the first, all pairs"


def print_first_means(problem: Problem, epsilon: float, rounds: int) -> Callable[[xr.Dataset, tuple[slice, ...]], None]:
    """Returns a function that prints the means of a candidate on stderr when the sweep has computed its losses.

    The function does not rank the candidates: a ranking after each candidate would be wrong more often than one ranking
    at the end.

    Args:
        problem: the problem.
        epsilon: the budget of the printed means.
        rounds: the number of rounds that all candidates are played for, which is the sweep's first horizon.
    """
    from tqdm import tqdm  # writes above a sweep's bar

    axis = problem.value or "instance"
    names = {value if problem.value else name: name for name, value in problem.instances.items()}
    heads = [
        f"Means of {problem.loss} at epsilon = {epsilon:g} after {rounds:,} {problem.horizon_unit}, as they are "
        "computed; the report with verdicts replaces them:"
    ]

    def listen(dataset: xr.Dataset, region: tuple[slice, ...]) -> None:
        losses = dataset.loss.isel(dict(zip(dataset.loss.dims, region, strict=False)))
        if losses.sizes["seed"] < dataset.sizes["seed"] or epsilon not in losses.epsilon.values:
            return
        means = losses.isel(horizon=0).sel(epsilon=epsilon).mean("seed").transpose("learner", axis)
        for learner, row in zip(means.learner.values, means.values, strict=True):
            texts = [f"{names[key]} {mean:,.4g}" for key, mean in zip(means[axis].values.tolist(), row, strict=True)]
            tqdm.write("\n".join([*heads, f"  {learner}: {', '.join(texts)}"]), file=sys.stderr)
            heads.clear()

    return listen


def ranking(loss: xr.DataArray) -> tuple[list[str], list[str]]:
    """Returns all learners by increasing mean loss (NaN last), and the learners not shown to be worse than the first.

    The second list also contains the first learner, and learners with a NaN mean.
    """
    order = loss["learner"].values[np.argsort(loss.mean("seed", skipna=False).values, kind="stable")].tolist()
    against = all_pairs(loss, "learner").sel(against=order[0])
    return order, [name for name in order if not float(against.p_adjusted.sel(learner=name)) <= LEVEL]


def _problem(results: xr.Dataset) -> Problem:
    return PROBLEMS[str(results.problem.values)]


def _horizon_text(results: xr.Dataset, horizon: int) -> str:
    return f"{horizon:,} {_problem(results).horizon_unit}"


def _budget_text(results: xr.Dataset) -> str:
    """Formats the user's budget, with the privacy unit if all candidates have the same unit."""
    units = {claim.rpartition(", ")[0] for claim in results.unit.values.tolist()}
    return f"epsilon = {float(results.asked):g}" + (f" for {units.pop()}" if len(units) == 1 else "")


def losses_at(results: xr.Dataset, instance: str, epsilon: float, horizon: int) -> xr.DataArray:
    """Returns the losses at one point, [learner, seed], of all learners that have a loss other than NaN there.

    Learners that were not simulated at this horizon have only NaN.
    """
    return results.loss.sel(instance=instance, epsilon=epsilon, horizon=horizon, drop=True).dropna("learner", how="all")


def table(results: xr.Dataset, instance: str, horizon: int) -> str:
    """Formats the ranking on one instance at the user's budget and this horizon: loss, difference and verdict."""
    loss = losses_at(results, instance, float(results.asked), horizon)
    order, best = ranking(loss)
    mean, half = mean_and_half_width(loss)
    against = all_pairs(loss, "learner").sel(against=order[0])
    shares = {
        head: results[name].sel(instance=instance, epsilon=float(results.asked), horizon=horizon).mean("seed")
        for name, head in _problem(results).shares.items()
    }
    rows = [["", "trust", "loss", SIMULTANEOUS, *shares, "verdict"]]
    trust = dict(zip(results.learner.values.tolist(), results.trust_model.values.tolist(), strict=True))
    for name in order:
        middle, half_width = (float(part.sel(learner=name)) for part in (mean, half))
        low, high = (float(against[end].sel(learner=name)) for end in ("low", "high"))
        verdict = "undecided" if name in best else "worse"
        if name == order[0]:
            verdict = "least" if len(best) == 1 else "least so far"
        more = "" if name == order[0] else f"{low:,.4g} to {high:,.4g}"
        cells = [f"{float(share.sel(learner=name)):.0%}" for share in shares.values()]
        rows.append([name, trust[name], f"{middle:,.4g} +- {half_width:,.2g}", more, *cells, verdict])
    title = f"{instance} instance, {_horizon_text(results, horizon)}, {_budget_text(results)}"
    title = f"{title}: {_problem(results).loss}"
    return table_of(title, rows)


def changes(results: xr.Dataset, instance: str, horizon: int) -> str:
    """Formats the best learner at each budget; the title says "changes" unless one may be best at all of them."""
    firsts, all_best = [], []
    for epsilon in np.sort(results.epsilon.values):
        order, best = ranking(losses_at(results, instance, epsilon, horizon))
        ties = f", or {', '.join(name for name in best if name != order[0])} (undecided)" if len(best) > 1 else ""
        firsts.append((f"{epsilon:g}", f"{order[0]}{ties}"))
        all_best.append(set(best))
    lines = [f"  epsilon {epsilon}: {text}" for epsilon, text in firsts]
    everywhere = set.intersection(*all_best)
    sure = "is the same" if all(len(best) == 1 for best in all_best) else "may be the same"
    verdict = sure if everywhere else "changes"
    title = (
        f"{instance}, {_horizon_text(results, horizon)}: the learner with the least loss {verdict} over these budgets"
    )
    return "\n".join([title, *lines])


def advice(results: xr.Dataset) -> str:
    """Formats the advice, which has one sentence for each horizon."""
    lines = []
    for horizon in results.horizon.values.tolist():
        all_best = [
            ranking(losses_at(results, instance, float(results.asked), horizon))[1]
            for instance in results.instance.values
        ]
        common = [name for name in all_best[0] if all(name in best for best in all_best)]
        if len(common) == 1:
            text = f"use {common[0]}"
        elif common:
            text = f"{', '.join(common)} are statistically indistinguishable; more seeds may separate them"
        else:
            text = "no candidate is best on every instance; the best candidate depends on how hard your instance is"
        lines.append(f"ADVICE at {_budget_text(results)}, {_horizon_text(results, horizon)}: {text}.")
    return "\n".join(lines)


def report(results: xr.Dataset) -> str:
    """Formats the advice, rankings, changes between budgets, the claim of each candidate, and notes."""
    horizons, instances = results.horizon.values.tolist(), results.instance.values.tolist()
    settings = [(instance, horizon) for horizon in horizons for instance in instances]
    parts = [advice(results), *(part(results, *each) for part in (table, changes) for each in settings)]
    candidates = [
        f"  {name}: {claim}; {proof}; by {played}; {summary} ({source})"
        for name, claim, proof, played, summary, source in zip(
            *(results[part].values for part in ("learner", "claim", "proof", "played", "summary", "paper")), strict=True
        )
    ]
    seeds = results.sizes["seed"]
    notes = [
        f"+-: 95% confidence (Student's t) over {plotting.seed_count(seeds)}, for each loss alone. Column "
        f'"{SIMULTANEOUS}": 95% confidence for all pairs of a table together (Bonferroni), paired by seed if worlds '
        "are common. A verdict is undecided if 0 lies in this range. The probability that one or more verdicts of a "
        "table are wrong is at most 5%, if means over seeds are normally distributed.",
        f"An event that did not happen in {seeds} seeds, such as a wrong arm that is never dropped, may still have a "
        f"probability of up to {1 - 0.05 ** (1 / seeds):.0%} (95% confidence). Intervals and verdicts ignore such "
        "events: a candidate that seldom loses much can be called best or worse because of these seeds.",
        "Candidates use the constants of their proofs. Instances: "
        f"{results.attrs.get('instances_text', _problem(results).instances_text)}. Yours may differ.",
    ]
    if "censored" in results and bool((results.censored > 0).any()):
        notes.append(
            "A run that is cut off counts as all rounds. It would have taken more rounds, so true differences to such "
            "runs are at least as large as printed. Play more rounds with --horizon to see the differences."
        )
    if (
        "unsolved" in results
        and (unsolved := results.learner[(results.unsolved > 0).any(set(results.unsolved.dims) - {"learner"})]).size
    ):
        notes.append(f"Some minimisations missed their tolerance: {', '.join(unsolved.values)}.")
    if len(set(results.trust_model.values.tolist())) > 1:
        notes.append(
            "An epsilon does not promise the same in every trust model: a local algorithm's epsilon holds against the "
            "curator, too. The ranking is by loss alone; --trust leaves out candidates that you would not trust."
        )
    if len(units := dict.fromkeys(results.unit.values.tolist())) > 1:
        notes.append(f"Candidates protect different units ({'; '.join(units)}), and are ranked by loss alone.")
    if results.attrs.get("too_slow"):
        notes.append(
            f"Too slow for {_horizon_text(results, results.attrs['full_horizon'])} here: "
            f"{results.attrs['too_slow']}. So all are compared at "
            f"{_horizon_text(results, horizons[0])}, where they were measured; nothing is extrapolated."
        )
    if results.attrs.get("left_out"):
        notes.append(f"Left out: {results.attrs['left_out']}.")
    return "\n\n".join([*parts, "\n".join(["candidates: claim; its proof; engine", *candidates]), *notes])


def figure(results: xr.Dataset) -> Figure:
    """Draws loss against epsilon at the horizon that all candidates share, with one panel for each instance."""
    problem, horizon = _problem(results), int(results.horizon.values[0])
    nouns = {"num_arms": "experts" if "experts" in problem.title else "arms", "dim": "features"}
    order = ranking(losses_at(results, str(results.instance.values[0]), float(results.asked), horizon))[0]
    size_text = ", ".join(f"{int(results[name])} {nouns[name]}" for name in problem.sizes)
    return plotting.facets(
        results.loss.sel(horizon=horizon, drop=True).sortby("epsilon"),
        x="epsilon",
        hue="learner",
        col="instance",
        labels=learner_labels(results.trust_model),
        title=f"Candidates for {problem.title} ({size_text})",
        note=f"{_horizon_text(results, horizon)}.",
        xscale="log",
        yscale="log",
        ylabel=problem.loss,
        highlight=None if len(order) <= MOST_CURVES or "reports" not in results.coords else order[: MOST_CURVES - 1],
    )
