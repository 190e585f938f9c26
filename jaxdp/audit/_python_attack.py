"""Attack on a learner of ordinary Python: pilot runs choose neighbours and scores, fresh runs bound the claim."""

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
from jaxdp.audit.adversary import UserData
from jaxdp.audit.black_box import Attack, AuditResult, audit
from jaxdp.audit.checks import budget
from jaxdp.audit.host import python_release
from jaxdp.audit.sampling import BUCKETS, Outputs
from jaxdp.core import Guarantee, default_float
from jaxdp.simulation.sweeps.progress import is_seen, make_bar
from jaxdp.validation import warn_caller

PILOTS = ((160, 12), (640, 2))  # runs under each neighbour in a stage of the pilot, and pairs that stay after it
RIDGES = (1e-9, 0.3)  # the first finds noise that cancels, the second errs less
LARGEST = 1e9  # numbers are cut here before linear scores
PREFIXES = (3, 5, 8)  # rounds after which sequences of actions are compared
SHOWN_AFTER = 2  # seconds before a progress line is shown

Run = Callable[[np.ndarray, UserData], tuple[np.ndarray, np.ndarray]]  # (seed words, users) -> actions, observed


@dataclass(frozen=True, kw_only=True)
class PythonAuditResult(AuditResult):
    """The result of an attack on a learner of ordinary Python.

    Attributes:
        neighbours: the users under which the attack was run.
        changed: [rounds] bool, the rounds in which they differ.
        repeatable: whether equal seeds gave equal runs. If not, the code draws from a source that is not seeded here,
            reads a clock, or keeps state from run to run. In the last two cases runs are not independent, and the bound
            may be wrong.
    """

    neighbours: tuple[UserData, UserData]
    changed: np.ndarray
    repeatable: bool

    __repr__ = AuditResult.__repr__  # a dataclass writes its own otherwise


class Scores(NamedTuple):
    """Scores of a run, which pilot runs shaped.

    Attributes:
        centre: [numbers], mean of the numbers of a run.
        weights: [numbers, scores], linear scores of the numbers.
        tables: for each number of rounds, log likelihood ratios of the actions in these rounds, by their hash.
    """

    centre: np.ndarray
    weights: np.ndarray
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
    """Chooses two pairs of neighbours by pilot runs, and attacks each by fresh runs; see `PythonLearner.audit`."""
    start = time.perf_counter()
    key_pilot, *keys = jax.random.split(key, 1 + PILOTS[-1][1])
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key_pilot)).ravel())
    pairs = user_pairs(
        generator,
        setting,
        rounds=rounds,
        persons=persons,
        changes_contexts=claim.sensitive_fields is None or "contexts" in claim.sensitive_fields,
        changes_last=observes,
    )
    bar = make_bar(
        total=_num_runs(len(pairs), trials),
        unit="run",
        leave=False,
        delay=SHOWN_AFTER,
        disable=not (progress and is_seen()),
    )
    with bar:

        def numbers(words: np.ndarray, users: UserData, changed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            bar.update()
            actions, observed = run(words, users)
            seen = ~changed if claim.trust_model == "joint" else np.ones(rounds, bool)
            return actions[seen], observed

        words = generator.integers(2**32, size=4, dtype=np.uint32)
        pair = pairs[0]
        first, _, again = (numbers(words, users, pair.changed) for users in (pair.first, pair.second, pair.first))
        repeatable = all(np.array_equal(one, other, equal_nan=True) for one, other in zip(first, again, strict=True))
        if not repeatable:
            warn_caller(
                "equal seeds gave different runs: the bound cannot be repeated, and may be wrong if the code reads a "
                "clock or keeps state from one learner to the next"
            )
        bar.set_description_str("chooses neighbours")
        chosen = _choose_pairs(generator, numbers, pairs, setting.num_actions, budget(claim).delta)
        bar.set_description_str("attacks them")
        audits = []
        for pair_key, (pair, scores) in zip(keys, chosen, strict=False):
            sample = numbers(words, pair.first, pair.changed)  # pairs of a joint claim see different numbers of rounds
            release = python_release(
                functools.partial(_release_run, numbers, pair, scores, setting.num_actions),
                (len(_output(scores, setting.num_actions, *sample)),),
                default_float(),
            )
            attack = Attack(release, np.int32(0), (np.int32(0), np.int32(1)), claim)
            audited = audit(pair_key, attack, trials=trials, confidence=1 - (1 - confidence) / len(chosen))
            audits.append((audited.lower_bound, len(audits), audited, pair))
    *_, strongest, pair = max(audits)
    shared = {field.name: getattr(strongest, field.name) for field in fields(AuditResult)}
    shared |= {"confidence": confidence, "seconds": time.perf_counter() - start}
    return PythonAuditResult(
        **shared, neighbours=(pair.first, pair.second), changed=pair.changed, repeatable=repeatable
    )


def _num_runs(num_pairs: int, trials: int) -> int:
    """Returns about how many runs an attack takes."""
    total = 0
    for draws, stay in PILOTS:
        total, num_pairs = total + 2 * draws * num_pairs, min(stay, num_pairs)
    return total + 2 * trials * num_pairs


def _release_run(
    numbers: Callable[..., Any], pair: Pair, scores: Scores, num_actions: int, generator: Any, params: Any, which: Any
) -> np.ndarray:
    """Returns the output of one fresh run under the first (0) or the second (1) users."""
    del params
    words = generator.integers(2**32, size=4, dtype=np.uint32)
    return _output(scores, num_actions, *numbers(words, pair[int(which)], pair.changed))


def _output(scores: Scores, num_actions: int, actions: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Returns the scores of a run, then its actions and the observed numbers."""
    row = _row(actions, observed, num_actions)
    tables = [table.get(_hash(actions[:end]), 0.0) for end, table in scores.tables.items()]
    return np.concatenate([(row - scores.centre) @ scores.weights, tables, np.ravel(actions), np.ravel(observed)])


def _row(actions: np.ndarray, observed: np.ndarray, num_actions: int) -> np.ndarray:
    """Returns the numbers of a run that linear scores use: an indicator of each action, and the observed numbers."""
    indicators = np.eye(num_actions)[np.ravel(actions)]
    finite = np.nan_to_num(np.ravel(observed), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
    return np.concatenate([np.ravel(indicators), np.clip(finite, -LARGEST, LARGEST)])


def _hash(actions: np.ndarray) -> int:
    return zlib.crc32(actions.tobytes()) % BUCKETS  # equal in all processes, unlike `hash`


def _choose_pairs(
    generator: np.random.Generator, numbers: Callable[..., Any], pairs: list[Pair], num_actions: int, delta: float
) -> list[tuple[Pair, Scores]]:
    """Returns the pairs that runs distinguish best, each with scores; every stage draws fresh runs."""
    chosen: list[tuple[Pair, Scores]] = []
    for draws, stay in PILOTS:
        scored = [(_score_pair(generator, numbers, pair, num_actions, draws, delta), pair) for pair in pairs]
        best = sorted(scored, key=lambda entry: -entry[0][0])[:stay]  # stable: the first of equal pairs
        chosen, pairs = [(pair, scores) for (_, scores), pair in best], [pair for _, pair in best]
    return chosen


def _score_pair(
    generator: np.random.Generator,
    numbers: Callable[..., Any],
    pair: Pair,
    num_actions: int,
    draws: int,
    delta: float,
) -> tuple[float, Scores]:
    """Shapes scores by half of the runs, and estimates by the other half how well they distinguish the neighbours."""
    runs = []
    for users in (pair.first, pair.second):
        words = generator.integers(2**32, size=(draws, 4), dtype=np.uint32)
        runs.append([numbers(w, users, pair.changed) for w in words])
    half = draws // 2
    shaping, judging = ([side[part] for side in runs] for part in (slice(half), slice(half, None)))
    scores = _shape_scores(shaping, num_actions)
    outputs = [np.stack([_output(scores, num_actions, *one) for one in side]) for side in judging]
    hashes = [np.asarray([_hash(actions) for actions, _ in side], np.int32) for side in judging]
    first, second = (
        Outputs(columns.astype(default_float()), columns[:, :0], words)
        for columns, words in zip(outputs, hashes, strict=True)
    )
    return float(_jitted_separation(first, second, delta)), scores


_jitted_separation = jax.jit(lambda first, second, delta: separation(first, second, delta=delta))


def _shape_scores(sides: list[list[tuple[np.ndarray, np.ndarray]]], num_actions: int) -> Scores:
    """Fits linear scores and tables of actions to runs under two inputs."""
    rows = [np.stack([_row(*one, num_actions) for one in side]) for side in sides]
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
    return Scores((means[0] + means[1]) / 2, np.stack(weights, axis=1), tables)
