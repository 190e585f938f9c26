"""Attacks a learner written in ordinary Python.

Pilot runs choose neighbours and fit scores; fresh runs then give a lower bound on the true budget.
"""

import functools
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.audit._python_users import Pair, Setting, user_pairs
from jaxdp.audit._search import separation
from jaxdp.audit.additive import Bins, boost_bins
from jaxdp.audit.adversary import UserData
from jaxdp.audit.black_box import Attack, AuditResult, audit_singles
from jaxdp.audit.checks import budget
from jaxdp.audit.host import python_release
from jaxdp.audit.sampling import BUCKETS, Outputs
from jaxdp.core import Guarantee, default_float
from jaxdp.simulation.sweeps.progress import is_seen, make_bar
from jaxdp.validation import warn_caller

PILOTS = ((160, 12), (640, 3))  # stages of the pilot: (runs under each neighbour, pairs that are kept)
LAST_SHARE, MOST_LAST = 10, 10_000  # one more stage has a tenth of the trials, clipped to [640, MOST_LAST]
RIDGES = (1e-9, 0.3)  # the first finds sums in which noise cancels; the second has a smaller estimation error
LARGEST = 1e9  # numbers are clipped to this magnitude before they are scored
PREFIXES = (3, 5, 8)  # rounds after which sequences of actions are compared
SHOWN_AFTER = 2  # seconds before a progress line is shown

Sample = tuple[np.ndarray, np.ndarray]  # actions, observed
Run = Callable[[np.ndarray, UserData], Sample]  # (seed words, users) -> sample


@dataclass(frozen=True, kw_only=True)
class PythonAuditResult(AuditResult):
    """The result of an attack on a learner written in ordinary Python.

    Attributes:
        neighbours: the users under which the attack was run.
        changed: [rounds] bool, the rounds in which the neighbours differ.
        repeatable: whether equal seeds gave equal runs. If not, the code draws from a source that is not seeded here,
            reads a clock, or keeps state from run to run. In the last two cases runs are not independent, and the bound
            may be wrong.
    """

    neighbours: tuple[UserData, UserData]
    changed: np.ndarray
    repeatable: bool

    __repr__ = AuditResult.__repr__  # otherwise the dataclass would generate another one


class Scores(NamedTuple):
    """Scores of a run, fitted to pilot runs.

    Attributes:
        centre: [entries], mean of the runs' vectors from `_row`.
        weights: [entries, scores], coefficients of the linear scores of such a vector.
        boosted: a sum of step functions of the entries of a vector from `with_differences`.
        tables: for each number n of rounds, the log likelihood ratio of the first n actions that are seen, by their
            hash.
    """

    centre: np.ndarray
    weights: np.ndarray
    boosted: Bins
    tables: dict[int, dict[int, float]]


def attack_runs(
    key: jax.Array,
    run: Run,
    setting: Setting,
    claim: Guarantee,
    *,
    rounds: int,
    persons: np.ndarray | None,
    observes: bool,
    trials: int,
    confidence: float,
    progress: bool,
) -> PythonAuditResult:
    """Chooses a pair of neighbours in pilot runs of a learner, and attacks this pair in fresh runs.

    `run` plays the learner. `persons` [rounds] gives the person in each round; None means that each round has a new
    person. `observes` says whether the adversary sees numbers after each round. `trials` is the number of attacked runs
    under each of the two inputs (for a claim on epsilon, a fair coin chooses the input of each of 2 * trials runs). The
    adversary sees the actions that `_sees_actions` selects.
    """
    start = time.perf_counter()
    key_pilot, key_attack = jax.random.split(key)
    pilots = (*PILOTS, (int(np.clip(trials // LAST_SHARE, PILOTS[-1][0], MOST_LAST)), 1))
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key_pilot)).ravel())
    pairs = user_pairs(
        generator,
        setting,
        rounds=rounds,
        persons=persons,
        changes_answers=claim.sensitive_fields is None or "answers" in claim.sensitive_fields,
        changes_contexts=claim.sensitive_fields is None or "contexts" in claim.sensitive_fields,
        changes_last=observes,
    )
    bar = make_bar(
        total=_num_runs(len(pairs), pilots) + 2 * trials,
        unit="run",
        leave=False,
        delay=SHOWN_AFTER,
        disable=not (progress and is_seen()),
    )
    with bar:

        def run_seen(words: np.ndarray, users: UserData, changed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            bar.update()
            actions, observed = run(words, users)
            return actions[_sees_actions(claim, changed)], observed

        words = generator.integers(2**32, size=4, dtype=np.uint32)
        pair = pairs[0]
        first, _, again = (run_seen(words, users, pair.changed) for users in (pair.first, pair.second, pair.first))
        repeatable = all(np.array_equal(old, new) for old, new in zip(first, again, strict=True))
        if not repeatable:
            warn_caller(
                "equal seeds gave different runs: the bound cannot be repeated, and may be wrong if the code reads a "
                "clock or keeps state from one learner to the next"
            )
        bar.set_description_str("chooses neighbours")
        pair, scores = _choose_pair(generator, run_seen, pairs, pilots, setting.num_actions, budget(claim).delta)
        bar.set_description_str("attacks them")
        sample = run_seen(words, pair.first, pair.changed)
        output = _output(scores, setting.num_actions, *sample)
        release = python_release(
            functools.partial(_release_run, run_seen, pair, scores, setting.num_actions), output.shape, default_float()
        )
        attack = Attack(release, np.int32(0), (np.int32(0), np.int32(1)), claim)
        singles = len(output) - sum(part.size for part in sample)
        outcome = audit_singles(
            key_attack, attack, trials=trials, confidence=confidence, low_bits=False, singles=singles
        )
    shared = {field.name: getattr(outcome, field.name) for field in fields(AuditResult)}
    shared |= {"seconds": time.perf_counter() - start}
    return PythonAuditResult(
        **shared, neighbours=(pair.first, pair.second), changed=pair.changed, repeatable=repeatable
    )


def _sees_actions(claim: Guarantee, changed: np.ndarray) -> np.ndarray:
    """Returns [rounds] bool, the rounds with an action that the adversary sees: as `visible_history` defines it."""
    if claim.trust_model != "joint" and "action" in claim.adversary_view:
        return np.ones_like(changed)
    return ~changed if claim.trust_model in ("local", "joint") else np.zeros_like(changed)


def _num_runs(num_pairs: int, pilots: tuple[tuple[int, int], ...]) -> int:
    """Returns the number of runs in all stages of the pilot; a stage is (runs under each neighbour, pairs kept)."""
    total = 0
    for draws, num_kept in pilots:
        total, num_pairs = total + 2 * draws * num_pairs, min(num_kept, num_pairs)
    return total


def _release_run(
    run_seen: Callable[..., Any], pair: Pair, scores: Scores, num_actions: int, generator: Any, params: Any, which: Any
) -> np.ndarray:
    """Plays a run with seed words from `generator` under the users `pair[which]`, and returns its `_output`."""
    del params
    words = generator.integers(2**32, size=4, dtype=np.uint32)
    return _output(scores, num_actions, *run_seen(words, pair[int(which)], pair.changed))


def _output(scores: Scores, num_actions: int, actions: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Returns one vector for a run: the values of its scores, then its actions, then the observed numbers."""
    row, boosted = _row(actions, observed, num_actions), scores.boosted
    above = with_differences(row, observed)[:, None] > boosted.edges
    tables = [table.get(_hash(actions[:end]), 0.0) for end, table in scores.tables.items()]
    sums = [boosted.start + np.sum(boosted.jumps, where=above), *tables]
    return np.concatenate([(row - scores.centre) @ scores.weights, sums, np.ravel(actions), np.ravel(observed)])


def _row(actions: np.ndarray, observed: np.ndarray, num_actions: int) -> np.ndarray:
    """Returns the vector that linear scores use: indicators of the actions, then the clipped observed numbers."""
    indicators = np.eye(num_actions)[np.ravel(actions)]
    return np.concatenate([np.ravel(indicators), np.clip(np.ravel(observed), -LARGEST, LARGEST)])


def with_differences(row: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Appends to a vector from `_row` the differences of its observed numbers between consecutive rounds.

    Only the shape of `observed`, [rounds, numbers], is used.
    """
    if observed.size == 0:
        return row
    cut = row[-observed.size :].reshape(observed.shape)
    return np.concatenate([row, np.ravel(cut[1:] - cut[:-1])])


def _hash(actions: np.ndarray) -> int:
    return zlib.crc32(actions.tobytes()) % BUCKETS  # equal in all processes, unlike `hash`


def _choose_pair(
    generator: np.random.Generator,
    run_seen: Callable[..., Any],
    pairs: list[Pair],
    pilots: tuple[tuple[int, int], ...],
    num_actions: int,
    delta: float,
) -> tuple[Pair, Scores]:
    """Returns the pair of neighbours with the largest estimated epsilon, and scores fitted to its last runs.

    Each stage of `pilots` draws fresh runs of the remaining pairs, and keeps the best pairs.
    """
    sides: list[list[Sample]] = []
    for draws, num_kept in pilots:
        entries = []
        for pair in pairs:
            sides = [
                [
                    run_seen(words, users, pair.changed)
                    for words in generator.integers(2**32, size=(draws, 4), dtype=np.uint32)
                ]
                for users in (pair.first, pair.second)
            ]
            entries.append((_estimate_epsilon(sides, num_actions, delta), pair, sides))
        best = sorted(entries, key=lambda entry: -entry[0])[:num_kept]  # stable: the first of equal pairs is kept
        pairs = [pair for _, pair, _ in best]
        sides = best[0][2]
    return pairs[0], _fit_scores(sides, num_actions)


def _estimate_epsilon(sides: list[list[Sample]], num_actions: int, delta: float) -> float:
    """Estimates the epsilon that runs under two inputs would show; half of the runs fit scores for the other half."""
    half = len(sides[0]) // 2
    scores = _fit_scores([side[:half] for side in sides], num_actions)
    scored = [side[half:] for side in sides]
    outputs = [np.stack([_output(scores, num_actions, *sample) for sample in side]) for side in scored]
    hashes = [np.asarray([_hash(actions) for actions, _ in side], np.int32) for side in scored]
    first, second = (
        Outputs(columns.astype(default_float()), columns[:, :0], words)
        for columns, words in zip(outputs, hashes, strict=True)
    )
    return float(_jitted_separation(first, second, delta))


_jitted_separation = jax.jit(lambda first, second, delta: separation(first, second, delta=delta))


def _fit_scores(sides: list[list[Sample]], num_actions: int) -> Scores:
    """Fits scores that distinguish the runs `sides[0]`, under the first input, from `sides[1]`, under the second."""
    rows = [np.stack([_row(*sample, num_actions) for sample in side]) for side in sides]
    means = [side_rows.mean(axis=0) for side_rows in rows]
    centred = np.concatenate([side_rows - mean for side_rows, mean in zip(rows, means, strict=True)])
    spread = np.abs(np.concatenate(rows)).max(axis=0) * 1e-9 + centred.std(axis=0) + 1e-12
    covariance = (centred / spread).T @ (centred / spread) / len(centred)
    difference = (means[0] - means[1]) / spread
    identity = np.eye(len(difference))
    weights = [np.linalg.solve(covariance + ridge * identity, difference) / spread for ridge in RIDGES]
    weights = [w / max(np.std(np.concatenate(rows) @ w), 1e-30) for w in weights]
    rounds, tables = len(sides[0][0][0]), {}
    for end in sorted({prefix for prefix in PREFIXES if prefix < rounds} | {rounds}):
        counts: dict[int, list[int]] = {}
        for which, side in enumerate(sides):
            for actions, _ in side:
                counts.setdefault(_hash(actions[:end]), [0, 0])[which] += 1
        tables[end] = {word: float(np.log((first + 1) / (second + 1))) for word, (first, second) in counts.items()}
    columns = [
        np.stack([with_differences(row, observed) for row, (_, observed) in zip(side_rows, side, strict=True)])
        for side_rows, side in zip(rows, sides, strict=True)
    ]
    return Scores((means[0] + means[1]) / 2, np.stack(weights, axis=1), boost_bins(*columns), tables)
