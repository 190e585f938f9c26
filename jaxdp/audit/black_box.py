"""Black-box audit: how well two neighbouring inputs can be distinguished by a mechanism's outputs alone."""

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.checks import check_alike, native
from jaxdp.audit.events import Event, Merit, candidate_thresholds, choose, describe, learn_scores
from jaxdp.audit.guesses import fast_guess_bound, guess_bound
from jaxdp.audit.intervals import mu_bound
from jaxdp.audit.renyi import choose_cells, rho_bound
from jaxdp.audit.sampling import MANY_TRIALS, Outputs, Release, Score, chunk_size, draw, histogram, output_size
from jaxdp.core import Guarantee
from jaxdp.core.made_by import shorten
from jaxdp.validation import check_count, check_key, check_probability

SHARE = 10  # one trial in this many shapes the scores, another one chooses the guesses, the rest evaluate them
LARGEST_SAMPLE = 2**17  # outputs kept to shape the scores
LARGEST_KEPT = 2**24  # numbers kept in all
FEWEST_TRIALS = 100
MOST_TRIALS = 2**52  # float64 counts twice as many, those of both inputs together
MAIN = 0.6  # share of the error for the first of several guesses, usually the most promising
WIDTHS = (2, 8)  # numbers of evaluating thresholds on a score: few choices, to compile seldom

Pair = tuple[np.ndarray, np.ndarray]  # under the first input, and under the second


class Attack(NamedTuple):
    """A mechanism, its claim, and two inputs that should be hard to distinguish.

    Attributes:
        release: (key, params, data) -> output, a pytree of arrays: everything that the adversary sees. Use one function
            object for several audits: it is compiled once.
        params: of the mechanism.
        neighbours: two adjacent inputs of the same shapes and dtypes.
        guarantee: of the mechanism.
        exact: data -> the output without noise; None where it is not known. Coordinates that equal it are counted. This
            finds noise that is missing in one of many coordinates, each time in another.
    """

    release: Release
    params: Any
    neighbours: tuple[Any, Any]
    guarantee: Guarantee
    exact: Callable[[Any], Any] | None = None

    def __repr__(self) -> str:
        return shorten(f"Attack({getattr(self.release, '__name__', type(self.release).__name__)}: {self.guarantee})")


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The result of an audit.

    Attributes:
        guarantee: that was attacked.
        currency: of the claim: "epsilon", "rho" or "mu".
        claimed: the number in that currency; infinity if nothing is claimed.
        delta: of an approximate claim; 0 for zCDP and Gaussian ones.
        lower_bound: on the same number, >= 0; true with probability at least `confidence`.
        confidence: of the bound.
        trials: outputs drawn under each input.
        verdict: "violated" if the lower bound exceeds `claimed`, else "consistent", which is no proof.
        event: that distinguishes the inputs, with its frequencies in the trials that evaluate it; or two events, one
            for each input; or the cells that bound their Rényi divergence.
        seconds: of the audit, compilation included.
    """

    guarantee: Guarantee
    currency: str
    claimed: float
    delta: float
    lower_bound: float
    confidence: float
    trials: int
    verdict: str
    event: str
    seconds: float

    def __repr__(self) -> str:
        bound = f"{self.currency} >= {self.lower_bound:.4g} where {self.claimed:g} is claimed"
        return shorten(f"AuditResult({self.verdict}: {bound}, {self.trials} trials, confidence {self.confidence:g})")


def audit(
    key: jax.Array, attack: Attack, *, trials: int = 10**6, confidence: float = 0.95, low_bits: bool = False
) -> AuditResult:
    """Attacks a privacy claim by distinguishing two neighbouring inputs.

    A tenth of the trials shapes scores: a histogram of the log likelihood ratio, if outputs repeat; and, unless that
    saw every outcome often, single coordinates and three classifiers: a small network, a logistic regression on
    piecewise linear functions of each coordinate, and a histogram of each coordinate. Another tenth chooses at most
    four guesses of the input. A guess names one input where a score is above a threshold, or not above one, or the
    first input in one case and the second in the other. The chosen guesses are: the one whose lower bound promises to
    be largest on the rest if nothing is above the claim (it has most of the error probability); the one whose lower
    bound is largest on these outputs; and those whose bounds promise to be largest on the rest, which may be rarer: one
    of outcomes that repeat, one of the other scores. The rest of the trials are fresh outputs, each of an input that a
    fair coin chooses; the audit counts how often a guess is right. Guesses share the error probability: nothing else is
    tried on these outputs, so nothing else needs a correction.

    The count of right guesses bounds the epsilon at a claimed delta, by one Clopper-Pearson limit. The mu of a Gaussian
    claim is bounded by events, counted under both inputs. A zCDP claim covers all orders of Rényi divergence: the audit
    chooses an order, and a function of the output that is constant on cells of a score; a bound on rho follows from its
    two means.

    Args:
        key: a typed PRNG key.
        attack: what to attack.
        trials: outputs under each input, >= 100; for a claim on epsilon, where coins choose the input, the average
            number. A violation that needs an event of probability q needs many times 1 / q trials.
        confidence: that the lower bound holds, in (0, 1).
        low_bits: whether the power of two that divides a float is used, too. It reveals the input behind textbook
            floating-point noise, also this library's, so that claims, which hold for real numbers, fail.

    Returns:
        The result, in the currency of the claim. No claim cannot be violated.

    Raises:
        ValueError: if key is not a single typed key, the inputs differ in structure, shape or dtype, the output is
            empty or not numeric, `exact` makes another number of outputs, or trials or confidence is out of range.

    Source:
        Steinke, Nasr & Jagielski (2023) for guesses; Mironov (2012) for low bits; Dong, Roth & Su (2022) for mu;
        Birrell et al. (2021) for the variational form of Rényi divergences.

    Examples:
        >>> from jaxdp.mechanisms import randomized_response
        >>> claim = Guarantee.pure(1.0, trust_model="local", privacy_unit="one label", argument="half the noise")
        >>> def too_truthful(key, epsilon, label):
        ...     return randomized_response(key, label, 2 * epsilon)
        >>> labels = (np.int32(0), np.int32(1))
        >>> audit(jax.random.key(0), Attack(too_truthful, np.float32(1), labels, claim), trials=20_000).verdict
        'violated'
    """
    start = time.perf_counter()
    trials, confidence = (
        check_count("trials", trials, FEWEST_TRIALS, maximum=MOST_TRIALS),
        check_probability("confidence", confidence),
    )
    inputs = _check_inputs(key, attack)
    release, params, (currency, claimed, delta) = attack.release, attack.params, native(attack.guarantee)
    size = output_size(release, params, inputs[0])
    if size == 0:
        raise ValueError("release must return at least one number, got an empty output")
    chunk = chunk_size(size)
    # The two inputs never share a key: their counts are independent.
    keys = jax.random.split(key, 8)
    samples = max(1, min(trials // SHARE, LARGEST_SAMPLE, LARGEST_KEPT // size))

    shaping_outputs = [
        draw(k, release, params, x, trials=samples, chunk=chunk) for k, x in zip(keys[:2], inputs, strict=True)
    ]
    exact = None if attack.exact is None else _exact(attack.exact, inputs, size)
    scores = learn_scores(keys[2], *shaping_outputs, exact=exact, low_bits=low_bits)
    pooled = Outputs(*map(np.concatenate, zip(*shaping_outputs, strict=True)))
    thresholds = np.stack([candidate_thresholds(score, pooled) for score in scores])
    found = _Search(
        counter=functools.partial(_above, attack, inputs, chunk=chunk),
        scores=scores,
        thresholds=thresholds,
        choosing=trials // SHARE,
        evaluating=trials - samples - trials // SHARE,
        error=(1 - confidence) / 2,
    )
    if currency == "rho":
        bound, event = _by_cells(keys[3:5], keys[5:7], found)
    elif currency == "mu":
        dealt = found.evaluating, found.evaluating
        bound, event = _by_guess(keys[3:5], keys[5:7], found, _OF_MU, claimed, dealt, pooled)
    else:
        dealt = deal(keys[7], found.evaluating)
        bound, event = _by_guess(keys[3:5], keys[5:7], found, _of_epsilon(delta), claimed, dealt, pooled)
    return AuditResult(
        guarantee=attack.guarantee,
        currency=currency,
        claimed=claimed,
        delta=delta,
        lower_bound=max(0.0, bound),
        confidence=confidence,
        trials=trials,
        verdict="violated" if bound > claimed else "consistent",
        event=event,
        seconds=time.perf_counter() - start,
    )


class _Search(NamedTuple):
    """The scores and trials, before anything is chosen.

    Attributes:
        counter: (keys, scores, thresholds, trials) -> under either input, how many of `trials` fresh outputs score
            above each threshold.
        scores: S of them.
        thresholds: [S, T].
        choosing: trials that choose.
        evaluating: trials that evaluate, under each input; on average, where coins choose the input.
        error: probability with which the limit on either count, or on either mean, may fail.
    """

    counter: Callable[..., Pair]
    scores: list[Score]
    thresholds: np.ndarray
    choosing: int
    evaluating: int
    error: float


def deal(key: jax.Array, trials: int) -> tuple[int, int]:
    """Draws how many of 2 * trials outputs each of the two inputs gets, by a fair coin for each output."""
    coins = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    first = int(coins.binomial(2 * trials, 0.5))
    return first, 2 * trials - first


class _Bound(NamedTuple):
    """A lower bound from counts.

    Attributes:
        lower_bound: (likely, unlikely, trials, sides, error) -> the bound. `likely` and `unlikely` count outputs of the
            guessed input and of the other one, summed over the sides; trials are under each input.
        estimate: the same for arrays, fast, to compare guesses.
        sides: largest number of events of a guess.
    """

    lower_bound: Callable[[int, int, int, int, float], float]
    estimate: Merit
    sides: int


def _of_epsilon(delta: float) -> _Bound:
    def lower_bound(likely: int, unlikely: int, trials: int, sides: int, error: float) -> float:
        return guess_bound(likely, likely + unlikely, 2 * trials, sides=sides, delta=delta, error=error)

    def about(likely: np.ndarray, unlikely: np.ndarray, trials: int, sides: int, error: float) -> np.ndarray:
        return fast_guess_bound(likely, unlikely, 2 * trials, sides=sides, delta=delta, error=error)

    return _Bound(lower_bound, about, sides=2)


def _mu(likely: Any, unlikely: Any, trials: int, sides: int, error: float) -> Any:
    del sides
    return mu_bound(likely, trials, unlikely, trials, error=error / 2)


_OF_MU = _Bound(_mu, _mu, sides=1)


def _by_guess(
    choosing: jax.Array,
    evaluating: jax.Array,
    found: _Search,
    bound: _Bound,
    claimed: float,
    dealt: tuple[int, int],
    pooled: Outputs,
) -> tuple[float, str]:
    """Returns the largest bound of at most four guesses, and the text of its events."""
    counts_above, other_above = found.counter(choosing, found.scores, found.thresholds, (found.choosing,) * 2)
    guesses = choose(
        found.scores,
        found.thresholds,
        counts_above,
        other_above,
        found.choosing,
        found.evaluating,
        merit=bound.estimate,
        sides=bound.sides,
        claimed=claimed,
        error=2 * found.error,
    )
    # Few scores are counted faster than all of them; few trials are counted before a program for that is compiled.
    is_many = found.evaluating >= MANY_TRIALS
    scores = _different(guess[0].score for guess in guesses) if is_many else found.scores
    score_thresholds = [
        [event.threshold for guess in guesses for event in guess if event.score is score] for score in scores
    ]
    width = (
        next(size for size in WIDTHS if size >= max(map(len, score_thresholds)))
        if is_many
        else found.thresholds.shape[1]
    )
    thresholds = np.full_like(found.thresholds[: len(scores), :width], np.inf)
    for row, values in zip(thresholds, score_thresholds, strict=True):
        row[: len(values)] = sorted(values)
    counted = found.counter(evaluating, scores, thresholds, dealt)

    def counts(event: Event) -> list[int]:
        row = next(row for row, score in enumerate(scores) if score is event.score)
        column = int(np.searchsorted(thresholds[row], event.threshold))
        higher = [int(counts_above[row, column]) for counts_above in counted]
        return higher if event.above else [trials - count for trials, count in zip(dealt, higher, strict=True)]

    best = -np.inf, ""
    shares = [1.0] if len(guesses) == 1 else [MAIN, *[(1 - MAIN) / (len(guesses) - 1)] * (len(guesses) - 1)]
    for guess, share in zip(guesses, shares, strict=True):
        likely = unlikely = 0
        texts = []
        for event in guess:
            first_count, second_count = counts(event)
            likely, unlikely = (
                (likely + first_count, unlikely + second_count)
                if event.first
                else (likely + second_count, unlikely + first_count)
            )
            rates = " and ".join(
                f"{count / max(1, n):.3g}" for count, n in zip((first_count, second_count), dealt, strict=True)
            )
            texts.append(f"{describe(event, pooled)}, with frequencies {rates}")
        lower = float(bound.lower_bound(likely, unlikely, found.evaluating, len(guess), 2 * found.error * share))
        best = max(best, (lower, "; ".join(texts)))
    return best


def _different(scores: Iterable[Score]) -> list[Score]:
    """Returns each object once, in order."""
    return list({id(score): score for score in scores}.values())


def _by_cells(choosing: jax.Array, evaluating: jax.Array, found: _Search) -> tuple[float, str]:
    """Returns a bound on rho from the cells of one score, and the text of the cells."""

    def count_cells(keys: Iterable[jax.Array], scores: list[Score], thresholds: np.ndarray, trials: int) -> Pair:
        above, other_above = found.counter(keys, scores, thresholds, (trials, trials))
        return _between(above, trials), _between(other_above, trials)

    half = found.choosing // 2
    shaping, judging = (
        count_cells(keys, found.scores, found.thresholds, trials)
        for keys, trials in zip(
            zip(*map(jax.random.split, choosing), strict=True), (half, found.choosing - half), strict=True
        )
    )
    cells = choose_cells(found.scores, found.thresholds, shaping, judging, found.evaluating, error=found.error)
    (counts,), (other_counts,) = count_cells(evaluating, [cells.score], cells.thresholds[None], found.evaluating)
    return rho_bound(cells, counts, other_counts, error=found.error), str(cells)


def _above(
    attack: Attack,
    inputs: tuple[Any, Any],
    keys: Iterable[jax.Array],
    scores: list[Score],
    thresholds: np.ndarray,
    trials: tuple[int, int],
    *,
    chunk: int,
) -> Pair:
    """Counts, under either input, the fresh outputs that score above each threshold: [S, T]."""
    first, second = (
        histogram(k, attack.release, attack.params, x, scores, thresholds, trials=n, chunk=chunk)
        for k, x, n in zip(keys, inputs, trials, strict=True)
    )
    return first, second


def _between(above: np.ndarray, trials: int) -> np.ndarray:
    """Returns [..., T + 1] counts of outputs between thresholds, from those above each."""
    ends = [np.full((*above.shape[:-1], 1), count) for count in (trials, 0)]
    return -np.diff(np.concatenate([ends[0], above, ends[1]], axis=-1))


def _exact(exact: Callable[[Any], Any], inputs: tuple[Any, Any], size: int) -> Pair:
    """Returns [m] floats under either input, in the order of outputs."""
    # A draw of a release without randomness has the same layout as any other.
    exact_outputs = [
        draw(jax.random.key(0), lambda key, params, x: exact(x), None, x, trials=1, chunk=1) for x in inputs
    ]
    first, second = (outputs.numbers[0] for outputs in exact_outputs)
    if len(first) != size:
        raise ValueError(f"exact must make as many numbers as release, {size}, got {len(first)}")
    return first, second


def _check_inputs(key: jax.Array, attack: Attack) -> tuple[Any, Any]:
    check_key(key)
    first, second = (jax.tree.map(jnp.asarray, data) for data in attack.neighbours)
    check_alike("neighbours", first, second)
    return first, second
