"""Black-box audit: how much two neighbouring inputs can be told apart from a mechanism's outputs alone."""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.checks import budget, check_alike
from jaxdp.audit.events import Event, candidate_thresholds, choose, describe, learn_scores
from jaxdp.audit.intervals import log_ratio_bound
from jaxdp.audit.sampling import Outputs, Release, chunk_size, draw, histogram, output_size
from jaxdp.core import Guarantee
from jaxdp.validation import check_count, check_key, check_probability

SHARE = 10  # one trial in so many shapes the scores, and another chooses the event; the rest evaluate it
LARGEST_SAMPLE = 2**17  # outputs kept to shape the scores
LARGEST_KEPT = 2**24  # numbers kept in all
FEWEST_TRIALS = 100


class Attack(NamedTuple):
    """A mechanism, its claim, and two inputs that should be hard to tell apart.

    Attributes:
        release: (key, params, data) -> output, a pytree of arrays: all that the adversary sees. Use one function object
            for several audits: it is compiled once.
        params: of the mechanism.
        neighbours: two adjacent inputs of the same shapes and dtypes.
        claim: what the mechanism claims.
    """

    release: Release
    params: Any
    neighbours: tuple[Any, Any]
    claim: Guarantee


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes:
        claim: that was attacked.
        epsilon: that the claim allows at `delta`.
        delta: claimed; 0.01 for zCDP and Gaussian claims.
        lower_bound: on epsilon at that delta, >= 0; true with probability at least `confidence`.
        confidence: of the bound.
        trials: outputs drawn under each input.
        verdict: "violated" if the lower bound exceeds `epsilon`, else "consistent", which is no proof.
        event: that tells the inputs apart, and how often it happened in the trials that evaluate it.
        seconds: taken, compilation included.
    """

    claim: Guarantee
    epsilon: float
    delta: float
    lower_bound: float
    confidence: float
    trials: int
    verdict: str
    event: str
    seconds: float


def audit(key: jax.Array, attack: Attack, *, trials: int = 10**6, confidence: float = 0.95) -> AuditResult:
    """Attacks a privacy claim by telling two neighbouring inputs apart.

    A tenth of the trials shapes scores: where outputs repeat a histogram of the log likelihood ratio, and unless that
    saw every outcome often single coordinates and a small classifier. Another tenth chooses one event, a score above
    or below a threshold, by its lower bound. The rest are fresh outputs on which that one event is counted, with
    Clopper-Pearson limits at half the error probability for either input: nothing else is tried on them, so nothing
    else needs correcting for.

    >>> from jaxdp.mechanisms import randomized_response
    >>> claim = Guarantee.pure(1.0, trust_model="local", privacy_unit="one label", argument="half the noise")
    >>> def too_truthful(key, epsilon, label):
    ...     return randomized_response(key, label, 2 * epsilon)
    >>> labels = (np.int32(0), np.int32(1))
    >>> audit(jax.random.key(0), Attack(too_truthful, np.float32(1), labels, claim), trials=20_000).verdict
    'violated'

    Args:
        key: a typed PRNG key.
        attack: what to attack.
        trials: outputs under each input, >= 100. A violation that needs an event of probability q needs many times
            1 / q trials.
        confidence: that the lower bound holds, in (0, 1).

    Returns:
        The result. No claim cannot be violated. A zCDP or Gaussian claim is held to the epsilon that it implies at
        delta = 0.01.

    Raises:
        ValueError: if key is not a single typed key, the inputs differ in structure, shape or dtype, the output is
            empty or not of numbers, or trials or confidence is out of range.
    """
    start = time.perf_counter()
    trials, confidence = check_count("trials", trials, FEWEST_TRIALS), check_probability("confidence", confidence)
    inputs = _check_inputs(key, attack)
    release, params, (claimed, delta) = attack.release, attack.params, budget(attack.claim)
    size = output_size(release, params, inputs[0])
    if size == 0:
        raise ValueError("release must return at least one number, got an empty output")
    chunk = chunk_size(size, trials)
    # The two inputs never share a key: their counts are independent.
    keys = jax.random.split(key, 7)
    samples = max(1, min(trials // SHARE, LARGEST_SAMPLE, LARGEST_KEPT // size))
    choosing = trials // SHARE
    evaluating = trials - samples - choosing

    kept = [draw(k, release, params, x, trials=samples, chunk=chunk) for k, x in zip(keys[:2], inputs, strict=True)]
    scores = learn_scores(keys[2], *kept)
    pooled = Outputs(*map(np.concatenate, zip(*kept, strict=True)))
    thresholds = np.stack([candidate_thresholds(score, pooled) for score in scores])
    above, other_above = (
        histogram(k, release, params, x, scores, thresholds, trials=choosing, chunk=chunk)
        for k, x in zip(keys[3:5], inputs, strict=True)
    )
    event = choose(scores, thresholds, above, other_above, choosing, delta=delta, confidence=confidence)
    counts = [
        _count(k, attack, x, event, trials=evaluating, chunk=chunk) for k, x in zip(keys[5:], inputs, strict=True)
    ]
    likely, unlikely = counts if event.first else reversed(counts)
    bound = float(log_ratio_bound(likely, evaluating, unlikely, evaluating, delta=delta, error=(1 - confidence) / 2))
    rates = " and ".join(f"{count / evaluating:.3g}" for count in counts)
    return AuditResult(
        claim=attack.claim,
        epsilon=claimed,
        delta=delta,
        lower_bound=max(0.0, bound),
        confidence=confidence,
        trials=trials,
        verdict="violated" if bound > claimed else "consistent",
        event=f"{describe(event, pooled)}, with frequencies {rates}",
        seconds=time.perf_counter() - start,
    )


def _count(key: jax.Array, attack: Attack, data: Any, event: Event, *, trials: int, chunk: int) -> int:
    threshold = np.asarray([[event.threshold]])
    above = histogram(key, attack.release, attack.params, data, [event.score], threshold, trials=trials, chunk=chunk)
    return int(above[0, 0]) if event.above else trials - int(above[0, 0])


def _check_inputs(key: jax.Array, attack: Attack) -> tuple[Any, Any]:
    check_key(key)
    first, second = (jax.tree.map(jnp.asarray, data) for data in attack.neighbours)
    check_alike("neighbours", first, second)
    return first, second
