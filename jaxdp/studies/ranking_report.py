"""The text of the ranking study: who is first, how often that survives privacy, and what to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.estimation import ballot_mle, estimate
from jaxdp.preferences import Ballots, ComparisonTable, comparison_groups, pair_features
from jaxdp.preferences.ballots import UNRANKED
from jaxdp.stats import seeds_needed, share_interval
from jaxdp.studies.central_noise import noise_lines, shown
from jaxdp.studies.command import columns, convergence_notes, mean_and_half_width
from jaxdp.studies.seeds import no_verdict

NOT_PRIVATE = (
    "Not private: this output, the figure and the data are made from what is to be protected, and are for whoever may"
    " see it.\n--release prints what may be published."
)
ONLY_NOISE = (
    "Only privacy's noise varies over seeds. What the comparisons' (or ballots') own chance adds, their sampling error,"
    " is in none\nof the numbers below: a winner that survives privacy every time may still be first by luck."
)
ON_THE_BOUND = 0.999  # of the radius
ALIKE = 1e-3  # abilities closer than this may be ranked either way by the solver's rounding
SURVIVES = 0.95  # of the seeds
FEWEST_SEEDS = seeds_needed(SURVIVES, sides=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class BallotTable(ComparisonTable):
    """The comparisons that ballots make.

    Attributes:
        ballots: that make them.
    """

    ballots: Ballots


def report(results: xr.Dataset, data: ComparisonTable | Ballots, *, unranked: str = "unknown") -> str:
    """What the command prints: the size of the data, the rankings, when the winner survives, and what to know."""
    results = shown(results)
    whole = isinstance(data, Ballots)
    count, kind = (data.num_ballots, "ballots") if whole else (data.num_comparisons, "comparisons")
    size = f"{len(data.items)} items, {count} {kind}"
    unit = "one whole ballot" if whole else "the outcome of one comparison"
    delta = float(results.delta)
    claim = f"What the private estimators protect: {unit}."
    if "gaussian" in results.noise:
        claim += f" The central estimator's δ is {delta:g}: {delta * count:.2g} / number of {kind}."
    claim = "\n".join([claim, *noise_lines(results), ""])
    extremes = _never_beaten(data, unranked) if _on_the_bound(results) else {}
    ballots = data if whole else getattr(data, "ballots", None)
    if ballots is not None:
        size += other_reading(results, ballots, unranked)
    parts = [size, NOT_PRIVATE, ranking(results, extremes), ONLY_NOISE, claim + table(results), survival(results)]
    return "\n\n".join([*parts, *notes(data, results, unranked=unranked)])


def silent_ballots(ballots: Ballots, unranked: str) -> str:
    """Returns the sentence on how many ballots say nothing about any pair."""
    silent, count = ballots.num_silent(unranked=unranked), ballots.num_ballots
    single = sum(times for order, times in zip(ballots.orders, ballots.counts, strict=True) if len(sum(order, ())) == 1)
    return (
        f"{single:,} of {count:,} ballots rank one item. With --unranked {unranked} {silent:,} of {count:,} say nothing"
        " of any pair."
    )


def other_reading(results: xr.Dataset, ballots: Ballots, unranked: str) -> str:
    """Returns how many ballots say nothing, and who is first where unranked items are read the other way.

    Empty where every ballot ranks all items. A file does not say which reading it means: in an election unranked items
    lose, and a voter who was asked about some items says nothing of the others.
    """
    if ballots.data_type.endswith("c"):
        return ""
    other = next(reading for reading in UNRANKED if reading != unranked)
    text = f"\n{silent_ballots(ballots, unranked)}"
    table = ballots.comparisons(unranked=other) if ballots.num_silent(unranked=other) < ballots.num_ballots else None
    if table is None or len(comparison_groups(table)) > 1:
        return f"{text} Read the other way, --unranked {other}, they do not connect all items."
    radius = float(results.radius)
    try:
        design = ballots.design(unranked=other)
    except ValueError:  # too many answers for the memory, which one reading alone may fit
        return f"{text} There are too many to see who is first the other way, --unranked {other}."
    fit = estimate(ballot_mle(), *design, key=jax.random.key(0), radius=radius)
    theta = np.asarray(fit.theta)
    clear, order = _without_privacy(results)
    place, first = int(theta.argmax()), str(clear["item"].values[order[0]])
    if ballots.items[place] == first:
        return f"{text} {first} comes first with --unranked {other}, too."
    return (
        f"{text}\nWARNING: who comes first depends on how unranked items are read. So read it is {first}; with"
        f" --unranked {other},"
        + (" as elections count ballots," if other == "last" else " where they say nothing,")
        + f"\nit is {ballots.items[place]}, by {theta[place] - theta[ballots.items.index(first)]:.3f} log odds."
    )


def ranking(results: xr.Dataset, remarks: Mapping[str, str] | None = None) -> str:
    """Formats the abilities without privacy, the best first, with remarks on some items, by name."""
    remarks = remarks or {}
    clear, order = _without_privacy(results)
    width = max(len(str(name)) for name in results["item"].values)
    lines = [
        "Without privacy, read from the data as they are:",
        f"{'rank':>4}  {'item':<{width}}  ability (log odds above the last)",
    ]
    names, abilities = clear["item"].values[order], clear.ability.values[order]
    for position, (name, ability) in enumerate(zip(names, abilities, strict=True)):
        line = f"{position + 1:>4}  {name:<{width}}  {ability - abilities[-1]:.3f}"
        lines.append(f"{line}  {remarks[name]}" if name in remarks else line)
    return "\n".join(lines)


def table(results: xr.Dataset) -> str:
    """How often the non-private winner comes first, and how far the rankings agree, at every epsilon."""
    results = shown(results)
    _, order = _without_privacy(results)
    seeds = plotting.seed_count(results.sizes["seed"])
    lines = [
        f"Over {seeds} of privacy's noise, how often {results['item'].values[order[0]]} comes first (95% confidence"
        " interval, Clopper-Pearson), and\nKendall's tau with the ranking without privacy (1 same, 0 unrelated, -1"
        " reversed; +- 95% confidence interval of\nthe mean, Student's t):"
    ]
    private = results.estimator.values[1:]
    share, low, high = _shares(results)
    mean, half = mean_and_half_width(results.agreement)
    rows = [["", *(text for name in private for text in (f"{name}: first", "tau"))]]
    for epsilon in results.epsilon.values:
        row = [plotting.epsilon_label(epsilon).split(" (")[0]]
        for name in private:
            point = {"estimator": name, "epsilon": epsilon}
            row.append(_share(*(float(value.sel(point)) for value in (share, low, high))))
            row.append(f"{float(mean.sel(point)):.3f} +- {float(half.sel(point)):.3f}")
        rows.append(row)
    return "\n".join([*lines, *columns(rows)])


def _shares(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """How often the non-private winner comes first, with the limits of its 95% confidence interval."""
    found = share_interval(results.survival)
    return found.share, found.low, found.high


def survival(results: xr.Dataset) -> str:
    """From which epsilon of the grid on the non-private winner comes first 95% of the time.

    First where the confidence interval's lower limit says so, as a share of few seeds is high by luck somewhere; then
    where the share itself does.
    """
    results = shown(results)
    _, order = _without_privacy(results)
    lines = [
        f"{results['item'].values[order[0]]} comes first at least {SURVIVES:.0%} of the time,"
        " over privacy's noise alone"
    ]
    if (seeds := results.sizes["seed"]) < FEWEST_SEEDS:
        return f"Whether {lines[0]}: {no_verdict(seeds, FEWEST_SEEDS)}"
    limits = [values.sortby("epsilon") for values in _shares(results)]
    for name in results.estimator.values[1:]:
        share, low, high = (values.sel(estimator=name) for values in limits)
        first = _from(share)
        if first is None:
            lines.append(f"  {name}: not shown at any of these.")
            continue
        surely = _from(low)
        sure = "not shown at any of these" if surely is None else _onwards(surely)
        there = _share(*(float(values.sel(epsilon=first)) for values in (share, low, high)))
        guess = "" if surely == first else f"; by the point estimate {_onwards(first)}"
        lines.append(f"  {name}: {sure} with 95% confidence{guess}, where it is {there}.")
    return "\n".join(lines)


def _from(share: xr.DataArray) -> float | None:
    """The smallest epsilon from which on the share is enough; None if it is not at the largest. NaN is not."""
    failing = np.flatnonzero(~(share.values >= SURVIVES))
    first = int(failing[-1]) + 1 if failing.size else 0
    return None if first == share.size else float(share.epsilon.values[first])


def _onwards(epsilon: float) -> str:
    return "at ε = ∞ alone" if np.isinf(epsilon) else f"from {plotting.epsilon_label(epsilon)} on"


def notes(data: ComparisonTable | Ballots, results: xr.Dataset, *, unranked: str = "unknown") -> list[str]:
    """What a reader of the results has to know.

    Args:
        data: what was ranked.
        results: of `private_ranking`.
        unranked: that the results were made with.

    Returns:
        Notes on an order that is not the one that private estimators aim at, on abilities that the bound limits, and on
        minimisations that did not converge; none where all is well.
    """
    found = []
    clear, order = _without_privacy(results)
    first, second = clear["item"].values[order[:2]]
    if clear.ability.values[order[0]] - clear.ability.values[order[1]] < ALIKE:
        found.append(f"note: without privacy {first} and {second} are tied for the first place, up to rounding.")
    if isinstance(data, Ballots):
        found += _other_order(data, clear, order, unranked)
    if _on_the_bound(results):
        found.append(
            "note: without privacy the abilities lie on the bound (norm "
            f"{np.linalg.norm(clear.ability):.4g}, radius {float(results.radius):.4g}) and would be"
            " larger without it:\nan item or a group of items won or lost all its comparisons with the others, or the"
            " radius is too small (--radius)."
        )
    return found + convergence_notes(results)


def _on_the_bound(results: xr.Dataset) -> bool:
    clear, _ = _without_privacy(results)
    return bool(np.linalg.norm(clear.ability) >= ON_THE_BOUND * float(results.radius))


def _never_beaten(data: ComparisonTable | Ballots, unranked: str) -> dict[str, str]:
    """Returns a remark for each item that never lost or never won."""
    table = data.comparisons(unranked=unranked) if isinstance(data, Ballots) else data
    wins, losses = np.zeros((2, len(table.items)), np.int64)
    ties = np.zeros_like(table.wins) if table.ties is None else table.ties  # half a win and half a loss
    for (first, second), won, tied, total in zip(table.pairs, table.wins, ties, table.totals, strict=True):
        wins[[first, second]] += won + tied, total - won
        losses[[first, second]] += total - won, won + tied
    limit = "the bound (--radius) alone limits its ability"
    return {
        name: f"never {'lost' if won else 'won'}: {limit}"
        for name, won, lost in zip(table.items, wins, losses, strict=True)
        if not (won and lost)
    }


def _other_order(ballots: Ballots, clear: xr.Dataset, order: np.ndarray, unranked: str) -> list[str]:
    """A note where the estimators of whole ballots would order the items otherwise if they had no noise."""
    margins = np.asarray(ballots.counts, float) @ (ballots.answers(unranked=unranked).astype(float) - 1)
    scores = margins @ pair_features(len(ballots.items)).astype(float)  # orders as their abilities do
    drops = scores[order[:-1]] - scores[order[1:]]
    apart = clear.ability.values[order[:-1]] - clear.ability.values[order[1:]] >= ALIKE
    if not np.any((drops < 0) | ((drops == 0) & apart)):
        return []
    best, winner = np.flatnonzero(scores == scores.max()), order[0]
    if best.tolist() != [winner]:
        aim = f"first is {' or '.join(ballots.items[i] for i in best)} and not {ballots.items[winner]}"
    else:
        aim = f"the order is {_in_order(ballots.items, scores)}"
    return [
        "note: for a pair of items about which a ballot says nothing, the private estimators of ballots count half a"
        f" win\nfor either side, so as not to tell whom a voter ranked. So counted, {aim}, even without noise:\n"
        "tau with the ranking above is below 1 at ε = ∞ too."
    ]


def _in_order(items: tuple[str, ...], scores: np.ndarray) -> str:
    """The items by their scores, the best first; "=" between equal ones."""
    ordered = np.argsort(-scores, kind="stable")
    joints = ["", *(" = " if drop == 0 else ", " for drop in -np.diff(scores[ordered]))]
    return "".join(joint + items[index] for joint, index in zip(joints, ordered, strict=True))


def _without_privacy(results: xr.Dataset) -> tuple[xr.Dataset, np.ndarray]:
    """The results without privacy, and the positions of items in their order."""
    clear = results.isel(estimator=0, epsilon=0, seed=0)
    return clear, np.argsort(clear["rank"].values)


def _share(share: float, low: float, high: float) -> str:
    return f"{share:.1%} ({low:.1%} to {high:.1%})"
