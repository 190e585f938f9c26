"""The text of the study of ballots: who is named the winner, how surely, at which budgets, by how many voters."""

import math

import numpy as np
import xarray as xr

from jaxdp import plotting
from jaxdp.dueling import ballot_matrix
from jaxdp.preferences import Ballots, borda_scores, condorcet_winner
from jaxdp.stats import seeds_needed, share_interval
from jaxdp.studies.central_noise import shown, which_noise
from jaxdp.studies.command import columns
from jaxdp.studies.ranking_report import silent_ballots
from jaxdp.studies.seeds import no_verdict

NONE = -1  # names no winner
SURELY = 0.95  # of the repetitions
NOT_PRIVATE = "a simulation: not private"
ONE_COIN = "A voter who did not rank both alternatives tosses a fair coin."


def winner_of(ballots: Ballots) -> tuple[int, str]:
    """The alternative that private duels are to find, and by which rule it wins: "Condorcet" or else "Borda"."""
    matrix = ballot_matrix(ballots)
    winner = condorcet_winner(matrix)
    return (winner, "Condorcet") if winner >= 0 else (int(np.argmax(borda_scores(matrix))), "Borda")


def report(results: xr.Dataset, ballots: Ballots, *, unranked: str = "unknown") -> str:
    """What the command prints: the election, the budgets, how often the winner is named, and from which size on.

    Args:
        results: of `dueling_ballots`.
        ballots: that it was given.
        unranked: that it was given.
    """
    seeds = plotting.seed_count(results.sizes["seed"])
    answers, count = int(results.answers), ballots.num_ballots
    times = f"{answers} " if answers > 1 else ""
    parts = [
        election(ballots.with_unranked_last() if unranked == "last" else ballots, results)
        + other_reading(ballots, unranked),
        "Not private: this output, the figure and the data are made from what is to be protected, and are for whoever "
        f"may see it.\nPrivate is one answer at ε, and so one whole ballot at {times}ε: a voter answers "
        + (
            "one duel."
            if answers == 1
            else f"up to {answers} duels (a pure ε grows so; (ε, δ) as `Guarantee.of_person` says)."
        ),
        at_hand(results, seeds),
        verdicts(results),
        larger(results),
        *notes(results, count),
    ]
    return "\n\n".join(parts)


def election(ballots: Ballots, results: xr.Dataset) -> str:
    """The winner by the ballots in the clear, and how close it is."""
    matrix, winner = ballot_matrix(ballots), str(results.winner.values)
    place = ballots.items.index(winner)
    head = f"{len(ballots.items)} alternatives, {ballots.num_ballots:,} voters. {ONE_COIN}"
    if str(results.rule.values) == "Condorcet":
        rival = min((j for j in range(len(matrix)) if j != place), key=lambda j: matrix[place, j])
        return (
            f"{head}\nWithout privacy {winner} wins against each of the others: the closest, {ballots.items[rival]}, "
            f"by {matrix[place, rival]:.2%} of the answers."
        )
    scores = borda_scores(matrix)
    second = int(np.argsort(-scores, kind="stable")[1])
    return (
        f"{head}\nWithout privacy none wins against all others (no Condorcet winner): the winner is by Borda's scores "
        f"{winner}, {scores[place]:.2%}\nof all duels, before {ballots.items[second]}, {scores[second]:.2%}. RUCB and "
        "double Thompson sampling are made for Condorcet winners."
    )


def other_reading(ballots: Ballots, unranked: str) -> str:
    """Returns how many ballots are silent, and who wins where unranked alternatives are read the other way."""
    if ballots.data_type.endswith("c"):
        return ""
    readings = {"unknown": ballots, "last": ballots.with_unranked_last()}
    other = next(reading for reading in readings if reading != unranked)
    winner, otherwise = (ballots.items[winner_of(readings[reading])[0]] for reading in (unranked, other))
    text = f"\n{silent_ballots(ballots, unranked)}"
    if winner == otherwise:
        return f"{text} {winner} wins with --unranked {other}, too."
    counted = "as elections count ballots" if other == "last" else "where voters toss coins about what they left out"
    return (
        f"{text}\nWARNING: who wins depends on how unranked alternatives are read: with --unranked {other}, {counted},"
        f"\nit is {otherwise}."
    )


def at_hand(results: xr.Dataset, seeds: str) -> str:
    """How often each learner and each estimator names the winner, with these voters."""
    winner = str(results.winner.values)
    rows = _budgets(results)
    found = share_interval(results.correct.isel(voters=0))
    for name, model in zip(results.learner.values, results.trust_model.values, strict=True):
        rows.append([f"{model}: {name}", *_shares(found.sel(learner=name))])
    ranked = shown(results[["first"]])["first"]
    place = list(results["item"].values).index(winner)
    estimated = share_interval((ranked == place).astype(float).where(ranked.notnull()))
    rows += [
        [f"of private-ranking: {name}", *_shares(estimated.sel(estimator=name))] for name in ranked.estimator.values
    ]
    return "\n".join(
        [
            f"All {int(results.voters[0]):,} voters asked: how often {winner} is named, over {seeds} of privacy's "
            "noise, of the voters' order and of coins\n(95% confidence interval, Clopper-Pearson). The estimators see "
            "whole ballots, and have a voter's ε for each.",
            *columns(rows),
        ]
    )


def fewest_seeds(num_learners: int) -> int:
    """Returns how many seeds can show that the best of so many learners names the winner surely."""
    return seeds_needed(SURELY, confidence=_confidence(num_learners), sides=2)


def _confidence(num_learners: int) -> float:
    """The best of several learners is chosen after seeing them all: their intervals share the error."""
    return 1 - 0.05 / num_learners


def verdicts(results: xr.Dataset) -> str:
    """At each budget the best learner's answer and its confidence; and where it is not sure, who is from when on."""
    learners, seeds = results.sizes["learner"], results.sizes["seed"]
    if seeds < (needed := fewest_seeds(learners)):
        return f"Whether duels name the winner in {SURELY:.0%} of repetitions: {no_verdict(seeds, needed)}"
    confidence = _confidence(learners)
    found = share_interval(results.correct.isel(voters=0), confidence=confidence)
    winner, sizes = str(results.winner.values), _from(results, confidence)
    lines = [
        f"The winner by duels, if {SURELY:.0%} of repetitions must name the same one (the lower limit of an interval "
        f"of {confidence:.4g} confidence,\nsince the best of {learners} learners is taken):"
        if learners > 1
        else f"The winner by duels, if {SURELY:.0%} of repetitions must name the same one (the interval's lower limit):"
    ]
    for index, epsilon in enumerate(results.epsilon.values):
        here = found.isel(epsilon=index)
        best = int(np.nanargmax(here.share.values))
        name, share, low = str(results.learner.values[best]), float(here.share[best]), float(here.low[best])
        budget = f"  {_each(epsilon)} per answer, {_each(float(results.voter_epsilon[index]))} per voter: "
        if low >= SURELY:
            lines.append(f"{budget}{winner}, by {name}, with confidence {share:.1%} (at least {low:.1%}).")
            continue
        own = sizes.isel(epsilon=index)
        enough = [(float(own.sel(learner=each)), str(each)) for each in own.learner.values if own.sel(learner=each) > 0]
        often = _most_often(results.named.isel(voters=0, epsilon=index, learner=best), results)
        shares = f", and {winner} in {share:.1%}" if often != winner else f", in {share:.1%}"
        text = f"none is shown: {name} names {often} most often{shares}. "
        text += (
            "{1} shows {2} from {0:,.0f} voters on.".format(*min(enough), winner)
            if enough
            else f"No learner shows {winner} by {_last(results):,} voters."
        )
        lines.append(budget + text)
    return "\n".join(lines)


def larger(results: xr.Dataset) -> str:
    """From how many voters on each learner names the winner surely."""
    seeds = results.sizes["seed"]
    if seeds < (needed := fewest_seeds(1)):
        return f"From how many voters on duels name the winner in {SURELY:.0%}: {no_verdict(seeds, needed)}"
    sizes, rows = _from(results), _budgets(results)
    for name, model in zip(results.learner.values, results.trust_model.values, strict=True):
        played = results.named.sel(learner=name).notnull().any(("epsilon", "seed"))
        last = int(results.voters.values[played.values].max())
        values = sizes.sel(learner=name).values
        rows.append([f"{model}: {name}", *(f"{v:,.0f}" if v > 0 else f"not by {last:,}" for v in values)])
    return "\n".join(
        [
            f"From how many voters on {results.winner.values} is named in at least {SURELY:.0%} (the lower limit of an "
            "interval of 95% confidence for\neach learner, budget and electorate by itself). All but the first "
            "electorate are\nresampled: voters drawn from these ballots with replacement.",
            *columns(rows),
        ]
    )


def notes(results: xr.Dataset, count: int) -> list[str]:
    """What a reader has to know."""
    found = [
        "A resampled electorate votes as this one does. It says how many answers privacy needs, and nothing new about "
        "what others would\nhave voted: the ballots' own sampling error is in none of these numbers.",
        "Learners that drop alternatives name one once it is left alone; the others name the one that leads against "
        "the most others by\ntheir reported wins. Those that are made for a number of rounds are made for the last one "
        f"played.\nδ is {float(results.delta):g} where a learner's noise is Gaussian.",
    ]
    if any(str(name).startswith("g_optimal") for name in results.learner.values):
        found.append(
            "g_optimal_elimination takes each alternative for a feature of its own. That it keeps the winner is proved "
            "in the logistic model of\nutilities alone, with weights of norm 1 at most, which ballots need not follow; "
            "its privacy does not depend on the model."
        )
    told = which_noise(
        xr.Dataset(
            coords={
                "epsilon": results.voter_epsilon.values,
                "noise": ("epsilon", results.noise.values),
                "delta": float(results.estimator_delta),
            }
        )
    )
    return [
        *found,
        *(
            [f"Of private-ranking's: {told} δ is {float(results.estimator_delta) * count:.2g} / voters."]
            if told
            else []
        ),
    ]


def _budgets(results: xr.Dataset) -> list[list[str]]:
    return [
        ["ε per answer", *map(_each, results.epsilon.values)],
        ["ε per voter", *map(_each, results.voter_epsilon.values)],
    ]


def _each(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def _shares(found: xr.Dataset) -> list[str]:
    limits = zip(*(found[name].values for name in ("share", "low", "high")), strict=True)
    return [f"{share:.0%} ({low:.0%} to {high:.0%})" for share, low, high in limits]


def _from(results: xr.Dataset, confidence: float = 0.95) -> xr.DataArray:
    """The smallest electorate from which on the winner is named surely in all that were played, or 0."""
    low = share_interval(results.correct, confidence=confidence).low.transpose(..., "voters")
    is_played = low.notnull().values
    failing = is_played & ~(low.values >= SURELY)
    sizes = results.voters.values
    last = np.where(is_played, np.arange(len(sizes)), -1).max(-1)
    begin = np.where(failing, np.arange(len(sizes)), -1).max(-1) + 1
    return low.isel(voters=0, drop=True).copy(data=np.where(begin <= last, sizes[np.minimum(begin, len(sizes) - 1)], 0))


def _last(results: xr.Dataset) -> int:
    played = results.named.notnull().any(("learner", "epsilon", "seed"))
    return int(results.voters.values[played.values].max())


def _most_often(named: xr.DataArray, results: xr.Dataset) -> str:
    arms, counts = np.unique(named.values.astype(int), return_counts=True)
    arm = int(arms[counts.argmax()])
    return "nobody" if arm == NONE else str(results["item"].values[arm])
