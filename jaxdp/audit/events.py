"""Chooses events that distinguish two inputs: scores that order the outputs, and thresholds on scores."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import gammainc

from jaxdp.audit.additive import SIGNIFICANT, Bins, Hinges, binned_logit, fit_bins, fit_hinges, hinge_logit
from jaxdp.audit.classifier import Weights, logit, train
from jaxdp.audit.columns import (
    Columns,
    Extra,
    all_columns,
    find_extra,
    kept_columns,
    names_of_columns,
    varying_columns,
)
from jaxdp.audit.sampling import BUCKETS, Outputs, Score, evaluate

FEWEST_SEEN = 32  # a histogram suffices if each outcome occurs at least this often
CHANCE = 1e-3  # maximum probability that distinct outputs are mistaken for outputs that repeat
LARGEST_VECTOR = 8  # up to this number of coordinates, each is also a score
NUM_THRESHOLDS = 512
PART = 2**13  # outputs that are scored at a time, to stay in the cache
STEPS = 2**12  # a difference of two distances is rounded to multiples of its largest value / STEPS
GUESSED = 0.4  # error probability of a bound that is near the estimate, and finite even if no guess was wrong
CAREFUL = 0.005  # error probability of a bound that an event seldom reaches by luck
STRIDE = 8  # the search over pairs of thresholds first uses every eighth threshold
SHOWN = 6  # maximum number of outcomes listed in a description


class Event(NamedTuple):
    """A set of outputs, and the input under which it should be likely.

    Attributes:
        score: the score of an output.
        threshold: the threshold on the score.
        above: True for the event score > threshold, False for score <= threshold.
        first: True if the event should be likely under the first input and rare under the second, False for the
            reverse.
    """

    score: Score
    threshold: float
    above: bool
    first: bool


Guess = tuple[Event, ...]  # one event, or two disjoint events of one score, one for each input
Merit = Callable[[np.ndarray, np.ndarray, int, int, float], np.ndarray]  # (likely, unlikely, trials, sides, error)
Measure = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # (likely, unlikely, sides)
EventIndex = tuple[int, int, int]  # kind of event, score, threshold


def learn_scores(
    key: jax.Array,
    first: Outputs,
    second: Outputs,
    *,
    exact: tuple[np.ndarray, np.ndarray] | None = None,
    low_bits: bool = False,
    singles: int = 0,
) -> list[Score]:
    """Fits scores that order outputs by how much likelier they are under one input than under the other.

    Args:
        key: key for training the classifier.
        first: n outputs under the first input.
        second: n outputs under the second input.
        exact: [m] floats under each input, the outputs without noise; None if they are not known.
        low_bits: whether scores use the largest power of two that divides a float.
        singles: if there are many coordinates, the first `singles` coordinates are also scores.

    Returns:
        If outputs repeat, one score is a smoothed histogram of the log likelihood ratio. It is the only score if every
        outcome occurred often. Otherwise the scores include three classifiers, the inner product with the difference of
        means (divided by variances) and, if there are few coordinates, each coordinate. The classifiers use the columns
        that vary. The extra columns of `Extra` are scores, too, if they are few. If `exact` is known and differs
        between the inputs, one more score is the count of numbers that equal the first exact output, minus the count of
        numbers that equal the second exact output. If `exact` is also finite, there are three more scores: the
        differences of the distances from the exact outputs in the L1 and the L2 norm (as in the log likelihood ratio of
        noise with a density that depends on a norm), and the projection on the difference of the exact outputs.
    """
    first_counts, second_counts = (np.bincount(x.bucket, minlength=BUCKETS) for x in (first, second))
    counts = first_counts + second_counts
    occurring, ratios = np.flatnonzero(counts), np.zeros(BUCKETS, np.float32)
    # One is added to each count, so that an outcome that occurred once is little evidence.
    ratios[occurring] = np.log((first_counts[occurring] + 1) / (second_counts[occurring] + 1))
    table = Score(_table_score, ratios, "outcome")
    if counts[occurring].min() >= FEWEST_SEEN:
        return [table]
    # BUCKETS * gammainc(...) is the expected number of buckets with at least the largest count if no output repeated.
    repeats = BUCKETS * gammainc(counts.max(), counts.sum() / BUCKETS) < CHANCE
    extra = find_extra(first, second, low_bits=low_bits)
    matrices = [all_columns(extra, x) for x in (first, second)]
    size, names = first.numbers.shape[1], names_of_columns(first.numbers.shape[1], extra)
    scores = [Score(_column, (extra, i), name) for i, name in enumerate(names)]
    few = scores[: size if size <= LARGEST_VECTOR else singles]
    few += scores[size:] if len(scores) - size <= 4 * LARGEST_VECTOR else []
    columns = Columns(extra, varying_columns(*matrices))
    matrices = [np.take(matrix, columns.indices, axis=1) for matrix in matrices]
    network = Score(_logit, (columns, train(key, *matrices, all_columns=len(names))), "estimated log ratio")
    hinges = Score(_hinge_logit, (columns, fit_hinges(*matrices)), "log ratio by hinges")
    bins = Score(_binned_logit, (columns, fit_bins(*matrices)), "log ratio by histograms")
    means = Score(_product, (columns, _difference_of_means(*matrices)), "along the means")
    exact_scores = [] if exact is None else _by_exact(*exact)
    return [*([table] if repeats else []), *few, network, hinges, bins, means, *exact_scores]


def candidate_thresholds(score: Score, outputs: Outputs) -> np.ndarray:
    """Returns [NUM_THRESHOLDS] ascending thresholds on a score, dense towards both tails.

    Each threshold has the score's precision. It lies halfway between two values that occur, or at the lower value if
    this precision has no number between them. So rounding cannot move an outcome across a threshold.
    """
    starts = range(0, len(outputs.bucket), PART)
    parts = [evaluate(score, Outputs(*(field[start : start + PART] for field in outputs))) for start in starts]
    values = np.unique(np.concatenate(parts))
    if len(values) < 2:
        return np.full(NUM_THRESHOLDS, values[0])
    ranks = np.geomspace(1, len(values) - 1, NUM_THRESHOLDS // 2).round().astype(int)
    ranks = np.sort(np.concatenate([ranks, len(values) - ranks]))
    below, above = values[ranks - 1], values[ranks]
    halfway = below / 2 + above / 2  # the sum may overflow
    return np.where((below < halfway) & (halfway < above), halfway, below)


def choose(
    scores: list[Score],
    thresholds: np.ndarray,
    above: np.ndarray,
    other_above: np.ndarray,
    trials: int,
    evaluating: int,
    *,
    merit: Merit,
    sides: int,
    claimed: float,
    error: float,
) -> list[Guess]:
    """Chooses the guesses with the largest expected lower bounds, from counts of outputs that did not shape the scores.

    Args:
        scores: S scores.
        thresholds: [S, T].
        above: [S, T] integers, how many of `trials` outputs under the first input scored above each threshold.
        other_above: [S, T], the same counts under the second input.
        trials: number of outputs under each input.
        evaluating: average number of outputs under each input on which the guesses will be counted.
        merit: estimate of the bound that counts would prove.
        sides: 1 for single events; 2 for single events and pairs of events.
        claimed: the claimed number; a larger bound refutes the claim.
        error: probability with which a bound may exceed the true number.

    Returns:
        One to four different guesses:

        * the guess with the largest bound that `evaluating` outputs would prove, by a careful estimate that is capped
          at the claim (if the claim is right, an estimate above the claim is luck);
        * the guess with the largest bound that these counts prove, usually by a common event;
        * the two guesses, one of the histogram and one of the other scores, with the largest bounds that `evaluating`
          outputs would prove if the observed frequencies were true. They find rare events, for which these counts prove
          little. The histogram has a separate guess, since the other scores have many tails, and some tails look good
          by luck.
    """
    likely = np.stack([above, other_above, trials - above, trials - other_above]).astype(np.float64)
    unlikely = likely[[1, 0, 3, 2]]
    times = evaluating / trials
    strict = error / NUM_THRESHOLDS  # smaller than `error`: some of many rare events look good by luck

    def proved_bound(likely_counts: np.ndarray, unlikely_counts: np.ndarray, sides: int) -> np.ndarray:
        return merit(likely_counts, unlikely_counts, trials, sides, strict)

    def promised_bound(likely_counts: np.ndarray, unlikely_counts: np.ndarray, sides: int) -> np.ndarray:
        wrong = np.minimum(np.ceil((unlikely_counts + 0.5) * times), sides * evaluating)
        return merit(np.floor(likely_counts * times), wrong, evaluating, sides, error)

    def credible_bound(likely_counts: np.ndarray, unlikely_counts: np.ndarray, sides: int) -> np.ndarray:
        estimate, careful = (merit(likely_counts, unlikely_counts, trials, sides, e) for e in (GUESSED, CAREFUL))
        with np.errstate(invalid="ignore"):  # -inf proves nothing
            bounds = np.minimum(careful, claimed) - (estimate - promised_bound(likely_counts, unlikely_counts, sides))
        return np.where(careful > -np.inf, bounds, -np.inf)

    is_table = np.asarray([score.function is _table_score for score in scores], dtype=bool)
    every = np.ones_like(is_table)
    guesses: list[Guess] = []
    for measure, allowed in (
        (credible_bound, every),
        (proved_bound, every),
        (promised_bound, is_table),
        (promised_bound, ~is_table),
    ):
        if not allowed.any():
            continue
        rows = np.flatnonzero(allowed)
        counts = likely[:, rows], unlikely[:, rows]
        best = _best_event(measure, *counts)
        if sides > 1:
            best = max(best, _best_pair(measure, *counts), key=lambda one: one[0])
        guess = tuple(
            Event(scores[rows[row]], float(thresholds[rows[row], index]), above=kind < 2, first=kind % 2 == 0)
            for kind, row, index in best[1]
        )
        if not any(_same(guess, other) for other in guesses):
            guesses.append(guess)
    return guesses


def _best_event(measure: Measure, likely: np.ndarray, unlikely: np.ndarray) -> tuple[float, list[EventIndex]]:
    """Returns the largest merit of an event, and the event's index. Events [4, S, T] have counts under two inputs."""
    merits = measure(likely, unlikely, 1)
    best = np.unravel_index(np.argmax(merits), merits.shape)
    return float(merits[best]), [tuple(int(i) for i in best)]  # pyright: ignore[reportReturnType]


def _best_pair(measure: Measure, likely: np.ndarray, unlikely: np.ndarray) -> tuple[float, list[EventIndex]]:
    """Returns the largest merit of a pair of events, and the pair: above a threshold; not above this or a lower one."""
    coarse = np.arange(0, likely.shape[2], STRIDE)
    best: tuple[float, list[EventIndex]] = -np.inf, []
    for high, low in ((0, 3), (1, 2)):
        value, row, i, j = _pairs(measure, likely[[high, low]], unlikely[[high, low]], coarse, coarse)
        around = [np.arange(max(0, x - STRIDE + 1), min(likely.shape[2], x + STRIDE)) for x in (i, j)]
        rows = np.s_[[high, low], row : row + 1]
        value, _, i, j = max((value, row, i, j), _pairs(measure, likely[rows], unlikely[rows], *around))
        if value > best[0]:
            best = value, [(high, row, i), (low, row, j)]
    return best


def _pairs(
    measure: Measure, likely: np.ndarray, unlikely: np.ndarray, highs: np.ndarray, lows: np.ndarray
) -> tuple[float, int, int, int]:
    """Returns (largest merit, score, two thresholds), from counts [2, S, T] above and not above each threshold."""
    right, wrong = (x[0][:, highs, None] + x[1][:, None, lows] for x in (likely, unlikely))
    merits = np.where(highs[:, None] >= lows[None], measure(right, wrong, 2), -np.inf)
    row, i, j = (int(x) for x in np.unravel_index(np.argmax(merits), merits.shape))
    return float(merits[row, i, j]), row, int(highs[i]), int(lows[j])


def _same(guess: Guess, other: Guess) -> bool:
    return len(guess) == len(other) and all(
        one.score is two.score and one[1:] == two[1:] for one, two in zip(guess, other, strict=True)
    )


def describe(event: Event, outputs: Outputs) -> str:
    """Formats an event; for a histogram it lists the outcomes among these outputs that belong to the event."""
    if event.score.function is not _table_score:
        return f"{event.score.name} {'>' if event.above else '<='} {event.threshold:.6g}"
    _, index, counts = np.unique(outputs.bucket, return_index=True, return_counts=True)
    outcomes = Outputs(*(x[index] for x in outputs))
    inside = (evaluate(event.score, outcomes) > event.threshold) == event.above
    members = outcomes.numbers[inside][np.argsort(-counts[inside], kind="stable")]
    rows = [[f"{x:.9g}" for x in member] for member in members[:SHOWN].tolist()]
    words = [row[0] if len(row) == 1 else f"({', '.join(row)})" for row in rows]
    more = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return f"output in {{{', '.join(words)}}}{more}"


def _column(weights: tuple[Extra, int], outputs: Outputs) -> np.ndarray:
    extra, index = weights
    return all_columns(extra, outputs)[:, index]


def _table_score(table: np.ndarray, outputs: Outputs) -> np.ndarray:
    return table[outputs.bucket]


def _logit(weights: tuple[Columns, Weights], outputs: Outputs) -> np.ndarray:
    columns, network = weights
    return logit(network, kept_columns(columns, outputs))


def _hinge_logit(weights: tuple[Columns, Hinges], outputs: Outputs) -> np.ndarray:
    columns, hinges = weights
    return hinge_logit(hinges, kept_columns(columns, outputs))


def _binned_logit(weights: tuple[Columns, Bins], outputs: Outputs) -> np.ndarray:
    columns, bins = weights
    return binned_logit(bins, kept_columns(columns, outputs))


def _exact_matches(weights: tuple[np.ndarray, np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    """Returns how many coordinates equal the first exact output, minus how many equal the second exact output."""
    columns, first, second = weights
    numbers = outputs.numbers[:, columns]
    return np.sum(numbers == first, axis=1) - np.sum(numbers == second, axis=1)


def _product(weights: tuple[Columns, np.ndarray], outputs: Outputs) -> np.ndarray:
    columns, coefficients = weights
    matrix = kept_columns(columns, outputs)
    return np.where(np.isfinite(matrix), matrix, 0) @ coefficients


def _difference_of_means(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns [m] differences of means of [n, m], over variances; 0 if perhaps by chance, or if the variance is 0."""
    first_values, second_values = (np.where(np.isfinite(x), x, 0) for x in (first, second))
    difference = first_values.mean(axis=0, dtype=np.float64) - second_values.mean(axis=0, dtype=np.float64)
    variance = (first_values.var(axis=0, dtype=np.float64) + second_values.var(axis=0, dtype=np.float64)) / 2
    differ = np.square(difference) * len(first) > SIGNIFICANT**2 * 2 * variance
    return np.where(differ & (variance > 0), difference / np.where(variance > 0, variance, 1), 0).astype(first.dtype)


def _by_exact(first: np.ndarray, second: np.ndarray) -> list[Score]:
    differing = np.flatnonzero(first != second).astype(np.int32)
    if not differing.size:
        return []
    scores = [Score(_exact_matches, (differing, first[differing], second[differing]), "bare numbers")]
    if np.isfinite(first).all() and np.isfinite(second).all():
        scores += [
            Score(_nearer_in_l1, (first, second), "nearer in L1 norm"),
            Score(_nearer_in_l2, (first, second), "nearer in L2 norm"),
            Score(_along, (first, second), "along the difference"),
        ]
    return scores


# If many outputs have nearly the same score, the rounding of the score must not reveal an output's low bits.
def _nearer_in_l1(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    first, second = weights
    reach = np.abs(first - second)
    twice = np.sign(first - second) * (2 * outputs.numbers - first - second)
    return np.sum(np.clip(twice, -reach, reach), axis=1)


def _nearer_in_l2(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    first, second = weights
    distances = [np.sqrt(np.sum(np.square(outputs.numbers - exact), axis=1)) for exact in weights]
    nearer = _along(weights, outputs) / (distances[0] + distances[1])
    reach = np.sqrt(np.sum(np.square(first - second)))
    return np.round(nearer / reach * STEPS)


def _along(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    first, second = weights
    return (2 * outputs.numbers - first - second) @ (first - second)
