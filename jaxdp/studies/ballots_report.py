"""The report of the ballot study: the winner, how often learners name the winner, and how many voters they need."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.comparisons.tables import format_budget
from jaxdp.dueling import ballot_matrix
from jaxdp.preferences import Ballots, borda_scores, condorcet_winner
from jaxdp.registry.titles import display_name
from jaxdp.stats import seeds_needed, share_interval
from jaxdp.studies.central_noise import describe_noise, merge_noises
from jaxdp.studies.comparison import format_rows, learner_labels
from jaxdp.studies.ranking_report import silent_ballots
from jaxdp.studies.seeds import no_verdict
from jaxdp.studies.tables import table_of

NONE = -1  # no winner is named
SURELY = 0.95  # fraction of repetitions in which a learner must name the winner
NOT_PRIVATE = "a simulation: not private"
ONE_COIN = "A voter who did not rank both alternatives tosses a fair coin."


def winner_of(ballots: Ballots) -> tuple[int, str]:
    """Returns the winner and the rule, which is "Condorcet" if there is a Condorcet winner, or else "Borda"."""
    matrix = ballot_matrix(ballots)
    winner = condorcet_winner(matrix)
    return (winner, "Condorcet") if winner >= 0 else (int(np.argmax(borda_scores(matrix))), "Borda")


def report(results: xr.Dataset, ballots: Ballots, *, unranked: str = "unknown") -> str:
    """Formats the election, the budgets, how often the winner is named, and how many voters learners need."""
    seeds = plotting.seed_count(results.sizes["seed"])
    answers, count = int(results.answers), ballots.num_ballots
    times = f"{answers} " if answers > 1 else ""
    parts = [
        election(ballots.with_unranked_last() if unranked == "last" else ballots, results)
        + other_reading(ballots, unranked),
        "Not private: this output, the figure and the dataset are computed from the private data. Show them only to "
        f"people who may\nsee these data. One answer is private at ε, and one whole ballot at {times}ε: a voter "
        "answers "
        + (
            "one duel."
            if answers == 1
            else f"up to {answers} duels (for pure ε; for (ε, δ) see `Guarantee.at_user_level`)."
        ),
        these_voters(results, seeds),
        verdicts(results),
        larger(results),
        *notes(results, count),
    ]
    return "\n\n".join(parts)


def election(ballots: Ballots, results: xr.Dataset) -> str:
    """Formats the non-private winner of the election and its closest rival, with their shares of duels."""
    matrix, winner = ballot_matrix(ballots), str(results.winner.values)
    winner_index = ballots.items.index(winner)
    head = f"{len(ballots.items)} alternatives, {ballots.num_ballots:,} voters. {ONE_COIN}"
    if str(results.rule.values) == "Condorcet":
        rival = min((j for j in range(len(matrix)) if j != winner_index), key=lambda j: matrix[winner_index, j])
        return (
            f"{head}\nWithout privacy {winner} wins against every other alternative; against the closest, "
            f"{ballots.items[rival]}, with {matrix[winner_index, rival]:.2%} of the answers."
        )
    scores = borda_scores(matrix)
    second = int(np.argsort(-scores, kind="stable")[1])
    return (
        f"{head}\nWithout privacy no alternative wins against all others (no Condorcet winner). The Borda winner is "
        f"{winner}, with {scores[winner_index]:.2%}\nof all duels, before {ballots.items[second]}, with "
        f"{scores[second]:.2%}. RUCB and double Thompson sampling are made for Condorcet winners."
    )


def other_reading(ballots: Ballots, unranked: str) -> str:
    """Formats the number of ballots without a preference, and the winner by the other reading of unranked items.

    The text is empty if every ballot ranks all items.
    """
    if ballots.data_type.endswith("c"):  # every ballot ranks all items
        return ""
    readings = {"unknown": ballots, "last": ballots.with_unranked_last()}
    other = next(reading for reading in readings if reading != unranked)
    winner, other_winner = (ballots.items[winner_of(readings[reading])[0]] for reading in (unranked, other))
    text = f"\n{silent_ballots(ballots, unranked)}"
    if winner == other_winner:
        return f"{text} {winner} wins with --unranked {other}, too."
    meaning = "as elections count ballots" if other == "last" else "where voters toss coins for them"
    return (
        f"{text}\nWARNING: the winner depends on the reading of unranked alternatives: with --unranked {other}, "
        f"{meaning},\nit is {other_winner}."
    )


def these_voters(results: xr.Dataset, seeds: str) -> str:
    """Formats how often each learner and each estimator names the winner if exactly the ballots' voters answer.

    `seeds` is the number of seeds, as text.
    """
    winner = str(results.winner.values)
    rows = _budgets(results)
    shares = share_interval(results.correct.isel(voters=0))
    rows += _share_rows(learner_labels(results.trust_model), shares, "learner")
    ranked = merge_noises(results[["first"]])["first"]
    winner_index = list(results["item"].values).index(winner)
    estimated = share_interval((ranked == winner_index).astype(float).where(ranked.notnull()))
    labels = {name: f"private-ranking: {name}" for name in ranked.estimator.values}
    rows += _share_rows(labels, estimated, "estimator")
    title = (
        f"How often {winner} is named if all {int(results.voters[0]):,} voters answer, over {seeds} of privacy "
        "noise, the voters' order and coins\n(95% confidence interval, Clopper-Pearson). The estimators see whole "
        "ballots, each at a voter's ε."
    )
    return table_of(title, rows)


def fewest_seeds(num_learners: int) -> int:
    """Returns the smallest number of seeds that can show that the best of `num_learners` names the winner often enough.

    A learner names the winner often enough if it does so in at least 95% of repetitions (`SURELY`).
    """
    return seeds_needed(SURELY, confidence=_confidence(num_learners), sides=2)


def _confidence(num_learners: int) -> float:
    """Returns the confidence of each of `num_learners` intervals for a simultaneous confidence of 95% (Bonferroni)."""
    return 1 - 0.05 / num_learners


def verdicts(results: xr.Dataset) -> str:
    """Formats, for each budget, the winner that the best learner names, or the number of voters that learners need."""
    learners, seeds = results.sizes["learner"], results.sizes["seed"]
    if seeds < (needed := fewest_seeds(learners)):
        return f"Whether duels name the winner in {SURELY:.0%} of the repetitions: {no_verdict(seeds, needed)}"
    confidence = _confidence(learners)
    intervals = share_interval(results.correct.isel(voters=0), confidence=confidence)
    winner, sizes = str(results.winner.values), _sufficient_voters(results, confidence)
    lines = [
        f"The winner by duels, if at least {SURELY:.0%} of the repetitions must name it (the lower limit of an "
        f"interval with {confidence:.4g} confidence,\nbecause the best of {learners} learners is reported):"
        if learners > 1
        else f"The winner by duels, if at least {SURELY:.0%} of the repetitions must name it (the interval's lower "
        "limit):"
    ]
    for index, epsilon in enumerate(results.epsilon.values):
        interval = intervals.isel(epsilon=index)
        best = int(np.nanargmax(interval.share.values))
        share, low = float(interval.share[best]), float(interval.low[best])
        name = display_name(str(results.learner.values[best]))
        voter_budget = format_budget(float(results.voter_epsilon[index]))
        budget = f"  {format_budget(epsilon)} per answer, {voter_budget} per voter: "
        if low >= SURELY:
            lines.append(f"{budget}{winner}, by {name}, with confidence {share:.1%} (at least {low:.1%}).")
            continue
        needed_voters = [
            (float(size), display_name(str(learner)))
            for learner, size in zip(sizes.learner.values, sizes.isel(epsilon=index).values, strict=True)
            if size > 0
        ]
        favourite = _most_often(results.named.isel(voters=0, epsilon=index, learner=best), results)
        shares = f", and {winner} in {share:.1%}" if favourite != winner else f", in {share:.1%}"
        text = f"no winner is shown: {name} names {favourite} most often{shares}. "
        text += (
            "{1} shows {2} from {0:,.0f} voters on.".format(*min(needed_voters), winner)
            if needed_voters
            else f"No learner shows {winner} with up to {_largest_played(results):,} voters."
        )
        lines.append(budget + text)
    return "\n".join(lines)


def larger(results: xr.Dataset) -> str:
    """Formats how many voters each learner needs to name the winner at least 95% of the time.

    Intervals must show this at this number of voters and at all larger numbers that were simulated.
    """
    seeds = results.sizes["seed"]
    if seeds < (needed := fewest_seeds(1)):
        return f"Number of voters from which on duels name the winner in {SURELY:.0%}: {no_verdict(seeds, needed)}"
    sizes, rows = _sufficient_voters(results), _budgets(results)
    for name, label in learner_labels(results.trust_model).items():
        played = results.named.sel(learner=name).notnull().any(("epsilon", "seed"))
        last = int(results.voters.values[played.values].max())
        values = sizes.sel(learner=name).values
        rows.append([label, *(f"{v:,.0f}" if v > 0 else f"more than {last:,}" for v in values)])
    title = (
        f"Number of voters from which on {results.winner.values} is named in at least {SURELY:.0%} (the lower "
        "limit of an interval with\n95% confidence, separately for each learner, budget and electorate). All "
        "electorates except the first are resampled:\nvoters drawn from these ballots with replacement."
    )
    return table_of(title, rows)


def notes(results: xr.Dataset, count: int) -> list[str]:
    """Returns the report's notes on the meaning of the numbers and on delta; `count` is the number of ballots."""
    texts = [
        "A resampled electorate votes like these voters. It shows how many answers privacy needs, and nothing about "
        "the votes of other people:\nthese numbers do not include the sampling error of the ballots.",
        "Learners that drop alternatives name the last alternative left; all other learners name the alternative that "
        "leads against the\nmost others by reported wins. Learners that need a number of rounds get the number of all "
        "rounds.\n"
        f"δ is {float(results.delta):g} for Gaussian noise.",
    ]
    if any(str(name).startswith("g_optimal") for name in results.learner.values):
        texts.append(
            "G-optimal elimination uses one feature per alternative. It provably keeps the winner only in the logistic "
            "model of utilities,\nwith weights of norm at most 1, which ballots need not follow; its privacy does not "
            "depend on the model."
        )
    noise_text = describe_noise(
        xr.Dataset(
            coords={
                "epsilon": results.voter_epsilon.values,
                "noise": ("epsilon", results.noise.values),
                "delta": float(results.estimator_delta),
            }
        )
    )
    return [
        *texts,
        *(
            [f"private-ranking: {noise_text} δ is {float(results.estimator_delta) * count:.2g} / number of voters."]
            if noise_text
            else []
        ),
    ]


def _budgets(results: xr.Dataset) -> list[list[str]]:
    return [
        ["ε per answer", *map(format_budget, results.epsilon.values)],
        ["ε per voter", *map(format_budget, results.voter_epsilon.values)],
    ]


def _share_rows(labels: Mapping[Any, str], shares: xr.Dataset, by: str) -> list[list[str]]:
    return format_rows(labels, "{:.0%} ({:.0%} to {:.0%})".format, shares.share, shares.low, shares.high, by=by)


def _sufficient_voters(results: xr.Dataset, confidence: float = 0.95) -> xr.DataArray:
    """Returns the smallest number of voters at and above which at least the fraction `SURELY` of seeds name the winner.

    At this and all larger simulated numbers of voters, the lower limit of an interval with this confidence must be at
    least `SURELY`. The result is 0 where there is no such number.
    """
    low = share_interval(results.correct, confidence=confidence).low.transpose(..., "voters")
    is_played = low.notnull().values
    is_failing = is_played & ~(low.values >= SURELY)
    sizes = results.voters.values
    last = np.where(is_played, np.arange(len(sizes)), -1).max(-1)
    first = np.where(is_failing, np.arange(len(sizes)), -1).max(-1) + 1
    return low.isel(voters=0, drop=True).copy(data=np.where(first <= last, sizes[np.minimum(first, len(sizes) - 1)], 0))


def _largest_played(results: xr.Dataset) -> int:
    """Returns the largest number of voters with which any learner was simulated."""
    played = results.named.notnull().any(("learner", "epsilon", "seed"))
    return int(results.voters.values[played.values].max())


def _most_often(named: xr.DataArray, results: xr.Dataset) -> str:
    """Returns the alternative that is most frequent among the indices `named` [seed]; "nobody" if this is `NONE`."""
    arms, counts = np.unique(named.values.astype(int), return_counts=True)
    arm = int(arms[counts.argmax()])
    return "nobody" if arm == NONE else str(results["item"].values[arm])
