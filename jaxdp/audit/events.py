"""Which event tells two inputs apart: scores that order the outputs, and thresholds on them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.classifier import logit, train
from jaxdp.audit.intervals import log_ratio_bound
from jaxdp.audit.sampling import Score

BUCKETS = 2**18
LARGEST_ALPHABET = 2**12  # distinct outcomes up to which a histogram is used
LARGEST_VECTOR = 8  # coordinates up to which each is a score by itself
NUM_THRESHOLDS = 512
SHOWN = 6  # outcomes listed in a description
_HASH = 0x9E3779B1  # odd, near 2^32 / golden ratio


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


def learn_scores(key: jax.Array, first: np.ndarray, second: np.ndarray) -> list[Score]:
    """Scores that order outputs by how much likelier one input makes them.

    Args:
        key: of the classifier's training.
        first: [n, m] outputs under the first input, int32 or float.
        second: [n, m] outputs under the second.

    Returns:
        Of integers from a small alphabet one score, a smoothed histogram of the log likelihood ratio. Else a classifier
        and, of few coordinates, each coordinate itself.
    """
    if first.dtype == np.int32:
        table = _histogram_score(first, second)
        if table is not None:
            return [table]
        first, second = (x.astype(jax.dtypes.canonicalize_dtype(float)) for x in (first, second))
    size = first.shape[1]
    coordinates = range(size) if size <= LARGEST_VECTOR else ()
    return [
        *(Score(_coordinate, np.int32(i), "output" if size == 1 else f"output[{i}]") for i in coordinates),
        Score(_logit, train(key, first, second), "estimated log ratio"),
    ]


def candidate_thresholds(score: Score, outputs: np.ndarray) -> np.ndarray:
    """Thresholds on a score, fine towards both tails.

    Args:
        score: of outputs.
        outputs: [n, m], from both inputs.

    Returns:
        [NUM_THRESHOLDS] ascending, halfway between values that occur, so that rounding cannot move an outcome across.
    """
    values = np.unique(np.asarray(_evaluate(score.function, score.weights, outputs), np.float64))
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return np.full(NUM_THRESHOLDS, values[0] if len(values) else 0.0)
    ranks = np.geomspace(1, len(values) - 1, NUM_THRESHOLDS // 2).round().astype(int)
    ranks = np.sort(np.concatenate([ranks, len(values) - ranks]))
    return (values[ranks - 1] + values[ranks]) / 2


def choose(
    scores: list[Score],
    thresholds: np.ndarray,
    above: np.ndarray,
    other_above: np.ndarray,
    trials: int,
    *,
    delta: float,
    confidence: float,
) -> Event:
    """The event with the largest lower bound on epsilon, by counts that did not shape the scores.

    Args:
        scores: S of them.
        thresholds: [S, T].
        above: [S, T], how many of `trials` outputs under the first input scored above each threshold.
        other_above: [S, T], under the second input.
        trials: outputs under each input.
        delta: claimed failure mass.
        confidence: of each bound.

    Returns:
        The event. Its bound here is optimistic, having been chosen: count it again on fresh outputs.
    """
    error = (1 - confidence) / (2 * NUM_THRESHOLDS)  # stricter: among so many, a rare event looks good by luck
    likely = np.stack([above, other_above, trials - above, trials - other_above])
    unlikely = likely[[1, 0, 3, 2]]
    bounds = log_ratio_bound(likely, trials, unlikely, trials, delta=delta, error=error)
    kind, score, threshold = (int(i) for i in np.unravel_index(np.argmax(bounds), bounds.shape))
    return Event(scores[score], float(thresholds[score, threshold]), above=kind < 2, first=kind % 2 == 0)


def describe(event: Event, outputs: np.ndarray) -> str:
    """The event in words; of a histogram, the outcomes among these outputs [n, m] that are in it."""
    if event.score.function is not _table_score:
        return f"{event.score.name} {'>' if event.above else '<='} {event.threshold:.6g}"
    outcomes, counts = np.unique(outputs, axis=0, return_counts=True)
    scored = np.asarray(_evaluate(event.score.function, event.score.weights, outcomes))
    inside = (scored > event.threshold) == event.above
    members = outcomes[inside][np.argsort(-counts[inside], kind="stable")]
    words = [str(m[0]) if len(m) == 1 else f"({', '.join(map(str, m))})" for m in members[:SHOWN].tolist()]
    rest = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return f"output in {{{', '.join(words)}}}{rest}"


def _histogram_score(first: np.ndarray, second: np.ndarray) -> Score | None:
    buckets = [np.asarray(_evaluate(_bucket, None, x)) for x in (first, second)]
    if len(np.unique(np.concatenate(buckets))) > LARGEST_ALPHABET:
        return None
    here, there = (np.bincount(b, minlength=BUCKETS) for b in buckets)
    # one imagined outcome each: what was seen once is no evidence yet
    return Score(_table_score, np.log((here + 1) / (there + 1)).astype(np.float32), "outcome")


def _bucket(weights: Any, outputs: jax.Array) -> jax.Array:
    """Outcomes hashed. Any function of an output gives a valid event: a collision can only blunt the attack."""
    del weights
    powers = np.asarray([pow(_HASH, i + 1, 2**32) for i in range(outputs.shape[1])], np.uint32)
    mixed = jnp.sum(outputs.astype(jnp.uint32) * powers[None], axis=1, dtype=jnp.uint32)
    return (mixed // np.uint32(2**32 // BUCKETS)).astype(jnp.int32)


def _table_score(table: jax.Array, outputs: jax.Array) -> jax.Array:
    return jnp.asarray(table)[_bucket(None, outputs)]


def _coordinate(index: jax.Array, outputs: jax.Array) -> jax.Array:
    return jnp.take(outputs, index, axis=1)


def _logit(weights: Any, outputs: jax.Array) -> jax.Array:
    return logit(weights, outputs.astype(weights.center.dtype))


_evaluate = jax.jit(lambda function, weights, outputs: function(weights, jnp.asarray(outputs)), static_argnums=0)
