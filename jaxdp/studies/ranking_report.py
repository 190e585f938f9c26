"""The report of the ranking study: the winner, how often the winner stays first under privacy, and notes."""

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
from jaxdp.studies.central_noise import merge_noises, noise_lines
from jaxdp.studies.command import convergence_notes, mean_and_half_width
from jaxdp.studies.ranking_release import ON_THE_BOUND
from jaxdp.studies.seeds import no_verdict
from jaxdp.studies.tables import table_of

NOT_PRIVATE = (
    "Not private: this output, the figure and the dataset are computed from the private data. Show them only to people"
    " who may\nsee these data. --release prints a ranking that may be published."
)
ONLY_NOISE = (
    "Only the privacy noise varies over seeds. The numbers below do not include the sampling error of the comparisons"
    " (or\nballots): a winner that stays first in every seed may still be first by luck."
)
ALIKE = 1e-3  # rounding in the solver may decide the order of abilities with a smaller difference
SURVIVES = 0.95  # fraction of seeds in which the winner must stay first
FEWEST_SEEDS = seeds_needed(SURVIVES, sides=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class BallotTable(ComparisonTable):
    """A table of comparisons that was computed from ballots.

    Attributes:
        ballots: the ballots.
    """

    ballots: Ballots


def report(results: xr.Dataset, data: ComparisonTable | Ballots, *, unranked: str = "unknown") -> str:
    """Formats the size of the data, the rankings, the epsilon at and above which the winner stays first, and notes."""
    results = merge_noises(results)
    is_ballots = isinstance(data, Ballots)
    count, kind = (data.num_ballots, "ballots") if is_ballots else (data.num_comparisons, "comparisons")
    size = f"{len(data.items)} items, {count} {kind}"
    unit = "one whole ballot" if is_ballots else "the outcome of one comparison"
    delta = float(results.delta)
    claim = f"The private estimators protect {unit}."
    if "gaussian" in results.noise:
        claim += f" The central estimator's δ is {delta:g}: {delta * count:.2g} / number of {kind}."
    claim = "\n".join([claim, *noise_lines(results), ""])
    extremes = _never_beaten(data, unranked) if _on_the_bound(results) else {}
    ballots = data if is_ballots else getattr(data, "ballots", None)
    if ballots is not None:
        size += other_reading(results, ballots, unranked)
    parts = [size, NOT_PRIVATE, ranking(results, extremes), ONLY_NOISE, claim + table(results), survival(results)]
    return "\n\n".join([*parts, *notes(data, results, unranked=unranked)])


def silent_ballots(ballots: Ballots, unranked: str) -> str:
    """Returns two sentences: how many ballots rank one item, and how many state no preference under `unranked`."""
    silent, count = ballots.num_silent(unranked=unranked), ballots.num_ballots
    single = sum(times for order, times in zip(ballots.orders, ballots.counts, strict=True) if len(sum(order, ())) == 1)
    return (
        f"{single:,} of {count:,} ballots rank one item. With --unranked {unranked}, {silent:,} of {count:,} state no"
        " preference."
    )


def other_reading(results: xr.Dataset, ballots: Ballots, unranked: str) -> str:
    """Formats the number of ballots without a preference, and the winner by the other reading of unranked items.

    The text is empty if every ballot ranks all items. It has no winner if, by the other reading, ballots do not connect
    all items or `Ballots.design` rejects them. A file does not say which reading is right: in an election unranked
    items lose, but a voter who was asked only about some items does not compare the other items.
    """
    if ballots.data_type.endswith("c"):
        return ""
    other = next(reading for reading in UNRANKED if reading != unranked)
    text = f"\n{silent_ballots(ballots, unranked)}"
    table = ballots.comparisons(unranked=other) if ballots.num_silent(unranked=other) < ballots.num_ballots else None
    if table is None or len(comparison_groups(table)) > 1:
        return f"{text} With --unranked {other} they do not connect all items."
    radius = float(results.radius)
    try:
        design = ballots.design(unranked=other)
    except ValueError:  # the answers by the other reading do not fit into memory
        return f"{text} There are too many to compute the winner with --unranked {other}."
    fit = estimate(ballot_mle(), *design, key=jax.random.key(0), radius=radius)
    theta = np.asarray(fit.theta)
    clear, order = _without_privacy(results)
    winner, first = int(theta.argmax()), str(clear["item"].values[order[0]])
    if ballots.items[winner] == first:
        return f"{text} {first} comes first with --unranked {other}, too."
    return (
        f"{text}\nWARNING: the winner depends on the reading of unranked items. It is {first}, but with --unranked "
        f"{other},"
        + (" as elections count ballots," if other == "last" else " which does not compare them,")
        + f"\nit is {ballots.items[winner]}, by {theta[winner] - theta[ballots.items.index(first)]:.3f} log odds."
    )


def ranking(results: xr.Dataset, remarks: Mapping[str, str] | None = None) -> str:
    """Formats the non-private ability estimates, best first; `remarks`, keyed by item, are appended to the lines."""
    remarks = remarks or {}
    clear, order = _without_privacy(results)
    width = max(len(str(name)) for name in results["item"].values)
    lines = [
        "Without privacy:",
        f"{'rank':>4}  {'item':<{width}}  ability (log odds above the last)",
    ]
    names, abilities = clear["item"].values[order], clear.ability.values[order]
    for position, (name, ability) in enumerate(zip(names, abilities, strict=True)):
        line = f"{position + 1:>4}  {name:<{width}}  {ability - abilities[-1]:.3f}"
        lines.append(f"{line}  {remarks[name]}" if name in remarks else line)
    return "\n".join(lines)


def table(results: xr.Dataset) -> str:
    """Formats how often the non-private winner comes first, and how well the rankings agree, at every epsilon."""
    results = merge_noises(results)
    _, order = _without_privacy(results)
    seeds = plotting.seed_count(results.sizes["seed"])
    title = (
        f"Over {seeds} of privacy noise: how often {results['item'].values[order[0]]} comes first (95% confidence"
        " interval, Clopper-Pearson), and\nKendall's tau with the non-private ranking (1 same, 0 unrelated, -1"
        " reversed; +- 95% confidence interval of\nthe mean, Student's t):"
    )
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
    return table_of(title, rows)


def _shares(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Returns how often the non-private winner comes first, with the limits of its 95% confidence interval."""
    interval = share_interval(results.survival)
    return interval.share, interval.low, interval.high


def survival(results: xr.Dataset) -> str:
    """Formats the epsilon of the grid at and above which the non-private winner comes first at least 95% of the time.

    The text has the epsilon for the lower limit of the confidence interval, because a proportion over few seeds may be
    large by chance. If the epsilon for the point estimate differs, the text has both. With fewer than `FEWEST_SEEDS`
    seeds, the text has no verdict.
    """
    results = merge_noises(results)
    _, order = _without_privacy(results)
    lines = [
        f"{results['item'].values[order[0]]} comes first at least {SURVIVES:.0%} of the time, over privacy noise only"
    ]
    if (seeds := results.sizes["seed"]) < FEWEST_SEEDS:
        return f"Whether {lines[0]}: {no_verdict(seeds, FEWEST_SEEDS)}"
    limits = [values.sortby("epsilon") for values in _shares(results)]
    for name in results.estimator.values[1:]:
        share, low, high = (values.sel(estimator=name) for values in limits)
        first = _sufficient_epsilon(share)
        if first is None:
            lines.append(f"  {name}: not at any ε of the grid.")
            continue
        shown_first = _sufficient_epsilon(low)
        shown_text = "not at any ε of the grid" if shown_first is None else _onwards(shown_first)
        first_share = _share(*(float(values.sel(epsilon=first)) for values in (share, low, high)))
        estimate_text = "" if shown_first == first else f"; by the point estimate {_onwards(first)}"
        lines.append(f"  {name}: {shown_text} with 95% confidence{estimate_text}, where it is {first_share}.")
    return "\n".join(lines)


def _sufficient_epsilon(share: xr.DataArray) -> float | None:
    """Returns the smallest epsilon at and above which all proportions are at least `SURVIVES`; None if none exists.

    `share` has the dimension epsilon, in increasing order. A NaN counts as too small.
    """
    failing = np.flatnonzero(~(share.values >= SURVIVES))
    first = int(failing[-1]) + 1 if failing.size else 0
    return None if first == share.size else float(share.epsilon.values[first])


def _onwards(epsilon: float) -> str:
    return "only at ε = ∞" if np.isinf(epsilon) else f"from {plotting.epsilon_label(epsilon)} on"


def notes(data: ComparisonTable | Ballots, results: xr.Dataset, *, unranked: str = "unknown") -> list[str]:
    """Returns notes on a tied first place, the order by ballot estimators, the bound, and unconverged fits."""
    texts = []
    clear, order = _without_privacy(results)
    first, second = clear["item"].values[order[:2]]
    if clear.ability.values[order[0]] - clear.ability.values[order[1]] < ALIKE:
        texts.append(f"note: without privacy {first} and {second} are tied for the first place, up to rounding.")
    if isinstance(data, Ballots):
        texts += _other_order(data, clear, order, unranked)
    if _on_the_bound(results):
        texts.append(
            "note: without privacy the abilities lie on the bound (norm "
            f"{np.linalg.norm(clear.ability):.4g}, radius {float(results.radius):.4g}) and would be"
            " larger without it:\nan item or a group of items won or lost all its comparisons with the others, or the"
            " radius is too small (--radius)."
        )
    return texts + convergence_notes(results)


def _on_the_bound(results: xr.Dataset) -> bool:
    """Returns whether the norm of the non-private abilities is at least `ON_THE_BOUND` times the radius."""
    clear, _ = _without_privacy(results)
    return bool(np.linalg.norm(clear.ability) >= ON_THE_BOUND * float(results.radius))


def _never_beaten(data: ComparisonTable | Ballots, unranked: str) -> dict[str, str]:
    """Returns a remark for each item that never lost or never won a comparison, keyed by the item's name."""
    table = data.comparisons(unranked=unranked) if isinstance(data, Ballots) else data
    wins, losses = np.zeros((2, len(table.items)), np.int64)
    ties = np.zeros_like(table.wins) if table.ties is None else table.ties  # half a win and half a loss
    for (first, second), won, tied, total in zip(table.pairs, table.wins, ties, table.totals, strict=True):
        wins[[first, second]] += won + tied, total - won
        losses[[first, second]] += total - won, won + tied
    limit = "only the bound (--radius) limits its ability"
    return {
        name: f"never {'lost' if won else 'won'}: {limit}"
        for name, won, lost in zip(table.items, wins, losses, strict=True)
        if not (won and lost)
    }


def _other_order(ballots: Ballots, clear: xr.Dataset, order: np.ndarray, unranked: str) -> list[str]:
    """Returns a note if the estimators for whole ballots order the items differently even without noise."""
    margins = np.asarray(ballots.counts, float) @ (ballots.answers(unranked=unranked).astype(float) - 1)
    scores = margins @ pair_features(len(ballots.items)).astype(float)  # the same order as their abilities
    drops = scores[order[:-1]] - scores[order[1:]]
    is_apart = clear.ability.values[order[:-1]] - clear.ability.values[order[1:]] >= ALIKE
    if not np.any((drops < 0) | ((drops == 0) & is_apart)):
        return []
    best, winner = np.flatnonzero(scores == scores.max()), order[0]
    if best.tolist() != [winner]:
        difference = f"first is {' or '.join(ballots.items[i] for i in best)} and not {ballots.items[winner]}"
    else:
        difference = f"the order is {_in_order(ballots.items, scores)}"
    return [
        "note: for a pair of items that a ballot does not compare, the private estimators of ballots count half a win"
        f" for\neither side, to hide which items a voter ranked. Counted this way, {difference}, even without noise:\n"
        "tau with the ranking above is below 1 at ε = ∞ too."
    ]


def _in_order(items: tuple[str, ...], scores: np.ndarray) -> str:
    """Formats item names by decreasing score, with " = " between items of equal score and ", " between others."""
    order = np.argsort(-scores, kind="stable")
    separators = ["", *(" = " if drop == 0 else ", " for drop in -np.diff(scores[order]))]
    return "".join(separator + items[index] for separator, index in zip(separators, order, strict=True))


def _without_privacy(results: xr.Dataset) -> tuple[xr.Dataset, np.ndarray]:
    """Returns the results of the non-private estimator, and the indices of items from best to worst."""
    clear = results.isel(estimator=0, epsilon=0, seed=0)
    return clear, np.argsort(clear["rank"].values)


def _share(share: float, low: float, high: float) -> str:
    return f"{share:.1%} ({low:.1%} to {high:.1%})"
