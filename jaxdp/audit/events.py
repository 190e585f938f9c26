"""Which event tells two inputs apart: scores that order the outputs, and thresholds on them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammainc

from jaxdp.audit.classifier import Weights, logit, train
from jaxdp.audit.sampling import BUCKETS, LOW_BITS, Outputs, Score, evaluate

FEWEST_SEEN = 32  # times that each outcome must be seen for a histogram to need no other scores beside it
CHANCE = 1e-3  # that outputs which never repeat are taken for ones that do
LARGEST_VECTOR = 8  # coordinates up to which each is a score by itself
NUM_THRESHOLDS = 512
SHOWN = 6  # outcomes listed in a description


class Event(NamedTuple):
    """A set of outputs, and the input under which it is to be likely.

    Attributes:
        score: what is compared with the threshold.
        threshold: the event is score > threshold, or its complement.
        above: whether it is the event itself.
        first: whether it is to be likely under the first input and rare under the second, or the reverse.
    """

    score: Score
    threshold: float
    above: bool
    first: bool


class Extra(NamedTuple):
    """Columns that outputs need beside their numbers.

    Attributes:
        low: [a] int32, which numbers are of integers that were rounded: their lowest bits.
        special: [b] int32, which numbers may be NaN or infinite: three indicators each.
    """

    low: np.ndarray
    special: np.ndarray


def learn_scores(key: jax.Array, first: Outputs, second: Outputs) -> list[Score]:
    """Scores that order outputs by how much likelier one input makes them.

    Args:
        key: of the classifier's training.
        first: n outputs under the first input.
        second: n outputs under the second.

    Returns:
        Where outputs repeat a smoothed histogram of the log likelihood ratio: alone if every outcome was seen often.
        Else a classifier and, of few coordinates, each coordinate itself; numbers that were rounded or are not finite
        count as more coordinates.
    """
    here, there = (np.bincount(x.bucket, minlength=BUCKETS) for x in (first, second))
    seen = here + there
    known, ratios = np.flatnonzero(seen), np.zeros(BUCKETS, np.float32)
    # one imagined outcome each: what was seen once is no evidence yet
    ratios[known] = np.log((here[known] + 1) / (there[known] + 1))
    table = Score(_table_score, ratios, "outcome")
    if seen[known].min() >= FEWEST_SEEN:
        return [table]
    # the expected number of buckets that are as full, if every output were new
    repeats = BUCKETS * gammainc(seen.max(), seen.sum() / BUCKETS) < CHANCE
    extra = _extra(first, second)
    matrices = [np.asarray(_matrix(extra, x)) for x in (first, second)]
    size, names = first.numbers.shape[1], _names(first.numbers.shape[1], extra)
    scores = [Score(_column, (extra, np.int32(i)), name) for i, name in enumerate(names)]
    few = scores[:size] if size <= LARGEST_VECTOR else []
    few += scores[size:] if len(scores) - size <= 4 * LARGEST_VECTOR else []
    network = Score(_logit, (extra, train(key, *matrices)), "estimated log ratio")
    return [*([table] if repeats else []), *few, network]


def candidate_thresholds(score: Score, outputs: Outputs) -> np.ndarray:
    """Thresholds on a score, fine towards both tails.

    Args:
        score: of outputs.
        outputs: from both inputs.

    Returns:
        [NUM_THRESHOLDS] ascending, in the score's own precision, halfway between values that occur, so that rounding
        cannot move an outcome across.
    """
    values = np.unique(_scored(score, outputs))
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
    bound: Callable[..., np.ndarray],
    error: float,
) -> list[Event]:
    """The events that promise the largest lower bounds, by counts that did not shape the scores.

    Args:
        scores: S of them.
        thresholds: [S, T].
        above: [S, T], how many of `trials` outputs under the first input scored above each threshold.
        other_above: [S, T], under the second input.
        trials: outputs under each input.
        evaluating: outputs under each input on which the events will be counted.
        bound: (counts, trials, other counts, other trials, error=...) -> lower bounds, as `log_ratio_bound`.
        error: with which the limit on either count may fail.

    Returns:
        One to three events, each once:

        * that of the largest bound which these counts prove, a common one as a rule;
        * those of the largest bounds which `evaluating` outputs would prove if these shares held there: one of outcomes
          that repeat, and one of other scores. A rare event is found so, of which these outputs are too few to prove
          much. The two are apart since the tails of other scores are many, and some of them look good by luck.
    """
    likely = np.stack([above, other_above, trials - above, trials - other_above])
    unlikely = likely[[1, 0, 3, 2]]
    times = evaluating / trials
    ahead = np.floor(likely * times), np.minimum(np.ceil((unlikely + 0.5) * times), evaluating)
    strict = error / NUM_THRESHOLDS  # among so many events, a rare one looks good by luck
    proved = bound(likely, trials, unlikely, trials, error=strict)
    promised = bound(ahead[0], evaluating, ahead[1], evaluating, error=error)
    is_table = np.asarray([score.function is _table_score for score in scores])[None, :, None]
    found: list[Event] = []
    for bounds in (
        proved,
        *(np.where(some, promised, -np.inf) for some in (is_table, ~is_table) if some.any()),
    ):
        kind, place, index = (int(i) for i in np.unravel_index(np.argmax(bounds), bounds.shape))
        event = Event(scores[place], float(thresholds[place, index]), above=kind < 2, first=kind % 2 == 0)
        if not any(event.score is other.score and event[1:] == other[1:] for other in found):
            found.append(event)
    return found


def describe(event: Event, outputs: Outputs) -> str:
    """The event in words; of a histogram, the outcomes among these outputs that are in it."""
    if event.score.function is not _table_score:
        return f"{event.score.name} {'>' if event.above else '<='} {event.threshold:.6g}"
    _, index, counts = np.unique(outputs.bucket, return_index=True, return_counts=True)
    outcomes = Outputs(*(x[index] for x in outputs))
    inside = (_scored(event.score, outcomes) > event.threshold) == event.above
    members = outcomes.numbers[inside][np.argsort(-counts[inside], kind="stable")]
    rows = [[f"{x:.9g}" for x in member] for member in members[:SHOWN].tolist()]
    words = [row[0] if len(row) == 1 else f"({', '.join(row)})" for row in rows]
    rest = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return f"output in {{{', '.join(words)}}}{rest}"


def _extra(first: Outputs, second: Outputs) -> Extra:
    def where(flags: list[np.ndarray]) -> np.ndarray:
        return np.flatnonzero(np.any(np.stack(flags), axis=0)).astype(np.int32)

    return Extra(
        low=where([np.any(x.low != 0, axis=0) for x in (first, second)]),
        special=where([~np.all(np.isfinite(x.numbers), axis=0) for x in (first, second)]),
    )


def _names(size: int, extra: Extra) -> list[str]:
    names = ["output"] if size == 1 else [f"output[{i}]" for i in range(size)]
    low = [f"{names[i]} mod {LOW_BITS + 1}" for i in extra.low]
    return names + low + [f"{kind}({names[i]})" for kind in ("isnan", "isposinf", "isneginf") for i in extra.special]


def _columns(extra: Extra, outputs: Outputs) -> jax.Array:
    """The numbers and what they need beside them, in the order of `_names`: [n, columns] float."""
    numbers, special = outputs.numbers, jnp.take(outputs.numbers, extra.special, axis=1)
    flags = [jnp.isnan(special), jnp.isposinf(special), jnp.isneginf(special)]
    low = jnp.take(outputs.low, extra.low, axis=1) if extra.low.size else numbers[:, :0]
    return jnp.concatenate([numbers, low, *(x.astype(numbers.dtype) for x in flags)], axis=1)


def _column(weights: tuple[Extra, jax.Array], outputs: Outputs) -> jax.Array:
    extra, index = weights
    return jnp.take(_columns(extra, outputs), index, axis=1)


def _table_score(table: jax.Array, outputs: Outputs) -> jax.Array:
    return jnp.asarray(table)[outputs.bucket]


def _logit(weights: tuple[Extra, Weights], outputs: Outputs) -> jax.Array:
    extra, network = weights
    return logit(network, _columns(extra, outputs))


def _scored(score: Score, outputs: Outputs) -> np.ndarray:
    return np.asarray(_evaluate(score.function, score.weights, outputs))


_evaluate = jax.jit(evaluate, static_argnums=0)
_matrix = jax.jit(_columns)
