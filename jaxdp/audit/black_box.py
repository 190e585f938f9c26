"""Computes lower bounds on a mechanism's true budget from how well its outputs distinguish two neighbouring inputs."""

import functools
import math
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
from jaxdp.audit.sampling import (
    Outputs,
    Release,
    Score,
    chunk_size,
    draw,
    histogram,
    lanes_of_call,
    numbers_of,
    output_size,
)
from jaxdp.core import Guarantee
from jaxdp.core.made_by import shorten
from jaxdp.validation import check_count, check_key, check_probability

SHARE = 10  # at most a tenth of the trials shapes the scores, a tenth chooses the guesses, the rest evaluate them
LARGEST_SAMPLE = 2**17  # maximum number of outputs under each input that shape the scores
LARGEST_KEPT = 2**24  # maximum count of numbers in these outputs, for each input
FEWEST_TRIALS = 100
MOST_TRIALS = 2**52  # float64 is exact for the trials under both inputs together
MAIN = 0.6  # fraction of the error probability for the first of several guesses, usually the most promising
NOTHING_SHOWN = "nothing shown"

Pair = tuple[np.ndarray, np.ndarray]  # arrays under the first and under the second input


class Attack(NamedTuple):
    """A mechanism, its claim, and two inputs that should be hard to distinguish.

    Attributes:
        release: (key, params, data) -> output, a pytree of arrays: everything that the adversary sees. Each function
            object is compiled once: pass the same object to several audits.
        params: the mechanism's params.
        neighbours: two adjacent inputs with the same shapes and dtypes.
        guarantee: the mechanism's claim.
        exact: data -> the output without noise; None if it is not known. The audit counts the coordinates that equal
            the coordinates of the exact output. So it detects that one of many coordinates has no noise, even if a
            different coordinate lacks noise in each output.
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
        guarantee: the attacked claim.
        currency: which number the claim states: "epsilon", "rho" or "mu".
        claimed: the claimed number; infinity if nothing is claimed.
        delta: the claimed delta; 0 for pure, zCDP and Gaussian claims.
        lower_bound: lower bound on the true number, >= 0; valid with probability at least `confidence`. `result.bound`
            is the same number, and so is `result.epsilon`, `result.rho` or `result.mu`, whichever the claim states.
        confidence: confidence of the bound.
        trials: number of outputs drawn under each input. For a claim on epsilon, a fair coin chooses the input of each
            output, and this is half the number of outputs.
        verdict: "violated" if the lower bound exceeds `claimed`; "nothing shown" if the bound is 0 although something
            is claimed (the attack may have no power at all); otherwise "consistent", which is no proof.
        event: description of the event that distinguishes the inputs, with its frequencies in the trials that evaluate
            it; or of two events, one for each input; or of the histogram that bounds the Rényi divergence.
        seconds: time of the audit, compilation included.
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
        if self.verdict == NOTHING_SHOWN:
            what = f"{self.trials:,} trials, power unknown; {self.currency} {self.claimed:g} is claimed"
            return shorten(f"{type(self).__name__}({NOTHING_SHOWN}: {what})")
        bound = f"{self.currency} >= {self.lower_bound:.4g} where {self.claimed:g} is claimed"
        text = f"{self.verdict}: {bound}, {self.trials:,} trials, confidence {self.confidence:g}"
        return shorten(f"{type(self).__name__}({text})")

    def __getattr__(self, name: str) -> Any:
        currency = self.__dict__.get("currency", "epsilon")  # missing while a copy is made
        if name in ("bound", currency):
            return self.lower_bound
        raise AttributeError(f"{type(self).__name__} has no {name!r}; its bound on {currency} is lower_bound")


def audit(
    key: jax.Array, attack: Attack, *, trials: int = 10**6, confidence: float = 0.95, low_bits: bool = False
) -> AuditResult:
    """Computes a lower bound on a mechanism's budget from how well its outputs distinguish two neighbouring inputs.

    A score is a number that orders the outputs. At most a tenth of the trials fits the scores. If outputs repeat, one
    score is the log likelihood ratio, estimated from a histogram of outputs. Unless every outcome occurred often, there
    are further scores: single coordinates (if there are few) and classifiers (see
    `docs/explanation/what_audits_cannot_see.md`).

    Another tenth of the trials chooses at most four guesses. A guess names one input for all outputs with a score above
    a threshold (or not above it), and says nothing about other outputs. For a claim on epsilon, a guess may also name
    the other input for outputs with a score not above a second threshold, which is lower or equal. The first guess,
    which has the largest expected lower bound, gets most of the error probability; the other guesses share the rest,
    and two of them may use rare events.

    The remaining trials are fresh outputs. The audit counts how often each guess is right. Nothing else is tried on
    these outputs, so no other correction for multiple testing is needed. For a claim on epsilon, a fair coin chooses
    the input of each output, and the number of correct guesses bounds epsilon at the claimed delta, by a
    Clopper-Pearson limit. For a Gaussian claim, counts under both inputs bound mu.

    For a zCDP claim there are no guesses: the same tenth of the trials chooses an order of the Rényi divergence and a
    step function of a score, and on fresh outputs the means of two transforms of this function bound rho.

    Args:
        key: a typed PRNG key.
        attack: the mechanism, its claim and the two inputs.
        trials: number of outputs under each input, >= 100; for a claim on epsilon the average number, because coins
            choose the input. To detect a violation by an event of probability q, use many times 1 / q trials.
        confidence: confidence of the lower bound, in (0, 1).
        low_bits: whether scores also use the largest power of two that divides a float. This can reveal the input if
            noise was added in floating-point arithmetic. The audit then reports violations of claims that hold only for
            real numbers.

    Returns:
        The result, for the number that the claim states. Without a claim the verdict is never "violated".

    Raises:
        ValueError: if key is not a single typed key, the inputs differ in structure, shape or dtype, the output is
            empty or not numeric, `exact` returns more or fewer numbers than the release, or trials or confidence is out
            of range.

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
    return audit_singles(key, attack, trials=trials, confidence=confidence, low_bits=low_bits, singles=0)


def audit_singles(
    key: jax.Array, attack: Attack, *, trials: int, confidence: float, low_bits: bool, singles: int
) -> AuditResult:
    """Computes a lower bound on a mechanism's budget, as `audit` does.

    If outputs have too many coordinates to make each one a score, only the first `singles` coordinates are scores of
    their own.
    """
    start = time.perf_counter()
    trials = check_count("trials", trials, FEWEST_TRIALS, maximum=MOST_TRIALS)
    confidence = check_probability("confidence", confidence)
    inputs = _check_inputs(key, attack)
    release, params, (currency, claimed, delta) = attack.release, attack.params, native(attack.guarantee)
    size = output_size(release, params, inputs[0])
    if size == 0:
        raise ValueError("release must return at least one number, got an empty output")
    chunk = chunk_size(size)
    # The two inputs never share a key: their counts are independent.
    keys = jax.random.split(key, 8)
    samples = max(1, min(trials // SHARE, LARGEST_SAMPLE, LARGEST_KEPT // size))
    sizes = {"chunk": chunk, "lanes": lanes_of_call(chunk, samples)}  # the same for all draws: one program

    shaping_outputs = [
        draw(k, release, params, x, trials=samples, **sizes) for k, x in zip(keys[:2], inputs, strict=True)
    ]
    exact = None if attack.exact is None else _exact(attack.exact, inputs, size)
    scores = learn_scores(keys[2], *shaping_outputs, exact=exact, low_bits=low_bits, singles=singles)
    pooled = Outputs(*map(np.concatenate, zip(*shaping_outputs, strict=True)))
    thresholds = np.stack([candidate_thresholds(score, pooled) for score in scores])
    search = _Search(
        counter=functools.partial(_above, attack, inputs, sizes=sizes),
        scores=scores,
        thresholds=thresholds,
        choosing=trials // SHARE,
        evaluating=trials - samples - trials // SHARE,
        error=(1 - confidence) / 2,
    )
    if currency == "rho":
        bound, event = _by_cells(keys[3:5], keys[5:7], search)
    elif currency == "mu":
        dealt = search.evaluating, search.evaluating
        bound, event = _by_guess(keys[3:5], keys[5:7], search, _OF_MU, claimed, dealt, pooled)
    else:
        dealt = deal(keys[7], search.evaluating)
        bound, event = _by_guess(keys[3:5], keys[5:7], search, _of_epsilon(delta), claimed, dealt, pooled)
    return AuditResult(
        guarantee=attack.guarantee,
        currency=currency,
        claimed=claimed,
        delta=delta,
        lower_bound=max(0.0, bound),
        confidence=confidence,
        trials=trials,
        verdict="violated" if bound > claimed else NOTHING_SHOWN if bound <= 0 and claimed < math.inf else "consistent",
        event=event,
        seconds=time.perf_counter() - start,
    )


class _Search(NamedTuple):
    """The fitted scores and the numbers of trials, for the choice of guesses."""

    counter: Callable[..., Pair]  # (keys, scores, thresholds, trials) -> counts above each threshold, as `_above`
    scores: list[Score]
    thresholds: np.ndarray  # [scores, thresholds]
    choosing: int  # number of trials under each input that choose guesses
    evaluating: int  # number of trials under each input that evaluate guesses; the mean, if coins choose inputs
    error: float  # (1 - confidence) / 2, for each of two bounds on means; all guesses together have 1 - confidence


def deal(key: jax.Array, trials: int) -> tuple[int, int]:
    """Draws the numbers of outputs under the two inputs, by a fair coin for each of 2 * trials outputs."""
    coins = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    first = int(coins.binomial(2 * trials, 0.5))
    return first, 2 * trials - first


class _Bound(NamedTuple):
    """A lower bound from the counts of a guess."""

    # (likely, unlikely, trials, sides, error) -> the bound. `likely` counts outputs under the guessed input, `unlikely`
    # under the other input, both summed over the events of a guess; `trials` is for each input.
    lower_bound: Callable[[int, int, int, int, float], float]
    estimate: Merit  # a fast form of `lower_bound` for arrays, to compare guesses
    sides: int  # maximum number of events of a guess


def _of_epsilon(delta: float) -> _Bound:
    def lower_bound(likely: int, unlikely: int, trials: int, sides: int, error: float) -> float:
        return guess_bound(likely, likely + unlikely, 2 * trials, sides=sides, delta=delta, error=error)

    def estimate(likely: np.ndarray, unlikely: np.ndarray, trials: int, sides: int, error: float) -> np.ndarray:
        return fast_guess_bound(likely, unlikely, 2 * trials, sides=sides, delta=delta, error=error)

    return _Bound(lower_bound, estimate, sides=2)


def _mu(likely: Any, unlikely: Any, trials: int, sides: int, error: float) -> Any:
    del sides
    return mu_bound(likely, trials, unlikely, trials, error=error / 2)


_OF_MU = _Bound(_mu, _mu, sides=1)


def _by_guess(
    choosing: jax.Array,
    evaluating: jax.Array,
    search: _Search,
    bound: _Bound,
    claimed: float,
    dealt: tuple[int, int],
    pooled: Outputs,
) -> tuple[float, str]:
    """Returns the largest of the lower bounds of at most four guesses, and a description of that guess's events."""
    counts_above, other_above = search.counter(choosing, search.scores, search.thresholds, (search.choosing,) * 2)
    guesses = choose(
        search.scores,
        search.thresholds,
        counts_above,
        other_above,
        search.choosing,
        search.evaluating,
        merit=bound.estimate,
        sides=bound.sides,
        claimed=claimed,
        error=2 * search.error,
    )
    scores = _remove_repeats(event.score for guess in guesses for event in guess)
    score_thresholds = [
        sorted(event.threshold for guess in guesses for event in guess if event.score is score) for score in scores
    ]
    thresholds = np.full((len(scores), max(map(len, score_thresholds))), np.inf, search.thresholds.dtype)
    for row, values in zip(thresholds, score_thresholds, strict=True):
        row[: len(values)] = values
    counted = search.counter(evaluating, scores, thresholds, dealt)

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
        lower = float(bound.lower_bound(likely, unlikely, search.evaluating, len(guess), 2 * search.error * share))
        best = max(best, (lower, "; ".join(texts)))
    return best


def _remove_repeats(scores: Iterable[Score]) -> list[Score]:
    """Returns each score object once, in order of first appearance."""
    return list({id(score): score for score in scores}.values())


def _by_cells(choosing: jax.Array, evaluating: jax.Array, search: _Search) -> tuple[float, str]:
    """Returns a bound on rho from a step function of one score, and its description."""

    def count_cells(keys: Iterable[jax.Array], scores: list[Score], thresholds: np.ndarray, trials: int) -> Pair:
        above, other_above = search.counter(keys, scores, thresholds, (trials, trials))
        return _between(above, trials), _between(other_above, trials)

    half = search.choosing // 2
    shaping, judging = (
        count_cells(keys, search.scores, search.thresholds, trials)
        for keys, trials in zip(
            zip(*map(jax.random.split, choosing), strict=True), (half, search.choosing - half), strict=True
        )
    )
    cells = choose_cells(search.scores, search.thresholds, shaping, judging, search.evaluating, error=search.error)
    (counts,), (other_counts,) = count_cells(evaluating, [cells.score], cells.thresholds[None], search.evaluating)
    return rho_bound(cells, counts, other_counts, error=search.error), str(cells)


def _above(
    attack: Attack,
    inputs: tuple[Any, Any],
    keys: Iterable[jax.Array],
    scores: list[Score],
    thresholds: np.ndarray,
    trials: tuple[int, int],
    *,
    sizes: dict[str, int],
) -> Pair:
    """Counts the fresh outputs with a score above each threshold, for each input, as [scores, thresholds] arrays."""
    first, second = (
        histogram(k, attack.release, attack.params, x, scores, thresholds, trials=n, **sizes)
        for k, x, n in zip(keys, inputs, trials, strict=True)
    )
    return first, second


def _between(above: np.ndarray, trials: int) -> np.ndarray:
    """Returns [..., T + 1] counts of outputs between thresholds, from [..., T] counts above each threshold."""
    ends = [np.full((*above.shape[:-1], 1), count) for count in (trials, 0)]
    return -np.diff(np.concatenate([ends[0], above, ends[1]], axis=-1))


def _exact(exact: Callable[[Any], Any], inputs: tuple[Any, Any], size: int) -> Pair:
    """Returns the exact outputs under both inputs, [m] floats each, in the order of an output's numbers."""
    first, second = (numbers_of(exact(x)) for x in inputs)
    if {len(first), len(second)} != {size}:
        raise ValueError(f"exact must return as many numbers as release, {size}, got {len(first)} and {len(second)}")
    return first, second


def _check_inputs(key: jax.Array, attack: Attack) -> tuple[Any, Any]:
    check_key(key)
    first, second = (jax.tree.map(jnp.asarray, data) for data in attack.neighbours)
    check_alike("neighbours", first, second)
    return first, second
