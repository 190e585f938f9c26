"""Audits many claims and lists, for each claim, the lower bound that is the largest relative to its claim."""

import dataclasses
import math
import time
import zlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.audit._rows import COLUMNS, Attempt, ScoreboardRow, format_header, format_notes, format_row, to_json
from jaxdp.audit._search import FULL, QUICK, SHORT, search
from jaxdp.audit.black_box import FEWEST_TRIALS, MOST_TRIALS, NOTHING_SHOWN, Attack, AuditResult, audit
from jaxdp.audit.checks import native
from jaxdp.audit.exact import exact_budget
from jaxdp.audit.findings import GreyBox
from jaxdp.audit.targets import AttackPoint, Space, Target, failure_note
from jaxdp.validation import INT64_MAX, check_count, check_key, check_probability

__all__ = [
    "COLUMNS",
    "Attempt",
    "ScoreboardRow",
    "Step",
    "expected_minutes",
    "format_header",
    "format_notes",
    "format_row",
    "scoreboard",
    "to_json",
]

SLACK = 1e-6  # relative excess of an exact budget over the claim that rounded probabilities may cause
FEW = 50_000  # minimum number of trials in the first attack by each `Way`
FIRST_LOOK = 10  # the number of trials is divided by this number in the first attack by each `Way`
LAST_LOOK = 0.5  # fraction of the error probability for the last attack, with all trials, by the most promising `Way`
FOUND = 2  # number of pairs of inputs that are attacked after a search
JUDGED = 10**6  # minimum number of trials for the verdict "blunt": `Target.reached` is a bound with this number
BLUNT = 0.5  # bounds below this fraction of the bounds on correct code are "blunt"


class Step(NamedTuple):
    """The next step of a scoreboard, for a progress bar.

    Attributes:
        name: the target's name.
        currency: "epsilon", "rho" or "mu".
        what: a path, "exact distribution", "grey box" or "search"; followed by " at " and the point if the step has
            other than the registered values or sizes.
    """

    name: str
    currency: str
    what: str


class Way(NamedTuple):
    """One possible black-box attack: a path and a point at which outputs are attacked.

    Attributes:
        path: the path on which outputs are computed.
        point: values or sizes, if they differ from the registered ones; else empty.
        make: () -> the attack.
        code: Python code that audits the same inputs, if a search found them; else empty.
    """

    path: str
    point: str
    make: Callable[[], Attack]
    code: str = ""

    @property
    def what(self) -> str:
        """The text for a progress bar and notes; every attack's key depends on it, except the first attack's."""
        return f"{self.path} at {self.point}" if self.point else self.path


class Attacked(NamedTuple):
    """The result of the attack by one `Way`."""

    way: Way
    result: AuditResult

    @property
    def ratio(self) -> float:
        """The lower bound divided by the claimed number; the lower bound if nothing is claimed."""
        claimed = self.result.claimed
        return self.result.lower_bound / (1.0 if claimed == math.inf else claimed)


def scoreboard(
    key: jax.Array,
    targets: Mapping[str, Attack | Target],
    *,
    trials: int = 10**6,
    confidence: float = 0.95,
    thorough: bool = False,
    searched: bool = True,
    turn: int = 0,
    before: Callable[[Step], object] = lambda step: None,
) -> Generator[ScoreboardRow]:
    """Audits one claim after another, each by several attacks.

    Outputs are attacked on every path between the given inputs. On the first path, outputs are also attacked between
    inputs that a search finds (unless the target has a grey box, which looks at many inputs), and at one point of other
    values or sizes. A single attack gets all trials. Each of several attacks gets a tenth of the trials, at least
    50,000 (all trials, if there are fewer). The most promising attack is repeated with all trials, on fresh outputs,
    unless it had all trials or refuted the claim.
    Outputs of a search only score pairs: bounds come from fresh outputs. If a target has a second point with a grey
    box, this grey box replaces the grey box of the first point, because more code runs at the second point. If the
    second point has no grey box, or its grey box fails or gives the verdict "inconclusive", outputs are attacked at the
    second point, on the first path. Outputs of blocks are not attacked if the grey box finds, at the first point, that
    blocks give the same runs as single rounds.

    An attack that raises an exception is skipped, with a note in the row; the others are still tried.

    Args:
        key: a typed PRNG key. A row's draws depend on the key and on the row's name, not on other targets.
        targets: targets keyed by name; an `Attack` counts as a target with one path, "release".
        trials: outputs under each input in the most promising attack, >= 100.
        confidence: confidence that all lower bounds of all rows hold, in (0, 1): with at least this probability no
            bound refutes a correct claim. Each of n rows has an error probability of (1 - confidence) / n. The attacks
            of a row share this probability evenly, except that a repeated attack with all trials has half of it.
        thorough: if True, every path (also blocks) gets all trials and a long search (also for a learner), every point
            is attacked (a second point on all paths), and the grey box looks at both points.
        searched: whether to search inputs and to attack `Target.points`. If False, only the given inputs at the
            registered values and at the second point are attacked, which is quicker and finds less.
        turn: index, modulo the number of points, of the point of other values to attack; unused if `thorough`.
        before: function called before each step, for a progress bar.

    Yields:
        One row for each target, as soon as it is complete.

    Raises:
        ValueError: if key is not a single typed key, or trials, confidence or turn is out of range.
    """
    check_key(key)
    trials = check_count("trials", trials, FEWEST_TRIALS, maximum=MOST_TRIALS)
    confidence = check_probability("confidence", confidence)
    turn = check_count("turn", turn, 0, maximum=INT64_MAX)
    row_confidence = 1 - (1 - confidence) / max(1, len(targets))
    for name, attack in targets.items():
        target = (
            attack if isinstance(attack, Target) else Target(guarantee=attack.guarantee, attacks={"release": attack})
        )
        if not searched:
            target = dataclasses.replace(target, spaces={}, points=())
        row_key = jax.random.fold_in(key, zlib.crc32(name.encode()))
        yield _Audit(row_key, name, target, trials, row_confidence, thorough, turn, before).row()


def expected_minutes(targets: Mapping[str, Target]) -> float:
    """Estimates how long a thorough `scoreboard` takes, in minutes on two cores, from average times of its steps.

    Args:
        targets: targets keyed by name.
    """
    seconds = 0.0
    for target in targets.values():
        is_learner = target.grey_box is not None
        attack, look = (30, 25) if is_learner else (4, 6)
        searches = len(target.spaces) + (len(target.points) if target.spaces else 0)
        seconds += 0 if target.second is None else len(target.second.attacks) * attack + 15 * is_learner
        seconds += (len(target.attacks) + 1) * attack + searches * look + len(target.points) * attack / 3
        seconds += 15 * is_learner
    return seconds / 60


class _Audit:
    """The audit of one target, which computes its row."""

    def __init__(
        self,
        key: jax.Array,
        name: str,
        target: Target,
        trials: int,
        confidence: float,
        thorough: bool,
        turn: int,
        before: Callable[[Step], object],
    ) -> None:
        self.key, self.name, self.target, self.trials, self.confidence = key, name, target, trials, confidence
        self.thorough, self.before = thorough, before
        self.currency, self.claimed, self.delta = native(target.guarantee)
        self.points = target.points if thorough else target.points[turn % max(1, len(target.points)) :][:1]
        self.notes: list[str] = []
        self.done: list[Attacked] = []
        self.attempts: list[Attempt] = []
        self.distributions: list[tuple[float, float]] = []  # (exact number, claimed number)
        self.boxes: list[GreyBox] = []
        self.second = [] if target.second is None else list(target.second.attacks.items())[: None if thorough else 1]
        # A search is skipped if a grey box would find the same leaks sooner.
        self.spaces = list(target.spaces.items())[: None if thorough else int(target.grey_box is None)]
        ways = (
            len(target.attacks)
            + len(self.second)
            + FOUND * len(self.spaces)
            + (1 + FOUND * thorough) * len(self.points)
        )
        self.first = trials if ways <= 1 else min(trials, max(trials // FIRST_LOOK, FEW))
        error = (1 - confidence) * (1.0 if self.first == trials else 1 - LAST_LOOK)
        self.each, self.last = 1 - error / max(1, ways), 1 - (1 - confidence) * LAST_LOOK

    def row(self) -> ScoreboardRow:
        """Attacks the target in every way that the effort allows, and returns its row of the scoreboard."""
        start, target, second = time.perf_counter(), self.target, self.target.second
        trials = self.trials if self.thorough else self.first
        ways = {path: Way(path, "", lambda attack=attack: attack) for path, attack in target.attacks.items()}
        paths = list(ways)
        for path in paths[:1]:
            self.attack(ways[path], trials, key=self.key)  # the first path's key does not depend on its name
        exact = self.exact(target)
        first_look = self.look(target) if second is None or second.grey_box is None or self.thorough else None
        pair = None if first_look is None else first_look.pair
        if second is not None:
            self.exact(second)
            grey = self.look(second)
            if self.thorough or grey is None or grey.verdict == "inconclusive":
                for path, attack in self.second:
                    self.attack(Way(path, second.point, lambda attack=attack: attack), trials)
        # A look at the second point does not decide for the first one, where blocks may end elsewhere.
        equal_paths = () if self.thorough or first_look is None else first_look.equal_paths
        for path in paths[1:]:
            if path not in equal_paths:
                self.attack(ways[path], trials)
        for path, space in self.spaces:
            for way in self.search_ways(path, space, pair):
                self.attack(way, self.first)
        for point in self.points:
            self.attack_point(point)
        self.attack_best()
        given_bounds = [done.result.lower_bound for done in self.done if not (done.way.point or done.way.code)]
        if exact is not None and max(given_bounds, default=0.0) > exact * (1 + SLACK):
            self.notes.append(
                "exact distribution: its budget is below the lower bound: by chance, or because the attacked program "
                "does not follow this distribution"
            )
        worst = max(self.done, key=lambda done: done.ratio, default=None)
        result = None if worst is None else worst.result
        claimed = self.claimed if result is None else result.claimed
        lower_bound = 0.0 if result is None else result.lower_bound
        return ScoreboardRow(
            name=self.name,
            currency=self.currency,
            claimed=claimed,
            delta=self.delta if result is None else result.delta,
            lower_bound=lower_bound,
            ratio=0.0 if claimed == math.inf else lower_bound / claimed,
            exact=exact,
            path="" if worst is None else worst.way.path,
            trials=self.trials if result is None else result.trials,
            seconds=time.perf_counter() - start,
            verdict=self.verdict(),
            event="" if result is None else result.event,
            faults=tuple(dict.fromkeys(fault for box in self.boxes for fault in box.faults)),
            notes=(*target.notes, *self.notes),
            point="" if worst is None else worst.way.point,
            code="" if worst is None else worst.way.code,
            confidence=self.confidence,
            attempts=tuple(self.attempts),
            privacy_unit=target.guarantee.privacy_unit if target.guarantee.is_private else "",
        )

    def derive_key(self, what: str) -> jax.Array:
        return jax.random.fold_in(self.key, zlib.crc32(what.encode()))

    def run_attempt(self, what: str, attempt: Callable[[], Any]) -> Any:
        """Runs an attempt; if it raises an exception, adds a note and returns None."""
        self.before(Step(self.name, self.currency, what))
        try:
            return attempt()
        except Exception as error:
            self.notes.append(failure_note(what, error))
            return None

    def exact(self, target: Target) -> float | None:
        """Returns the exact epsilon, rho or mu of the target's distributions; None if unknown or if this fails."""
        distributions = target.distributions
        if distributions is None:
            return None
        what = f"exact distribution at {target.point}" if target.point else "exact distribution"
        exact = self.run_attempt(what, lambda: exact_budget(*distributions(), target.guarantee))
        if exact is not None:
            claimed = native(target.guarantee)[1]
            self.distributions.append((exact, claimed))
            if target.point and _exceeds(exact, claimed):
                self.notes.append(f"{what}: {self.currency} = {exact:.6g}, but {claimed:g} is claimed")
        return exact

    def look(self, target: Target) -> GreyBox | None:
        """Runs the target's grey box and returns its findings; None if there is no grey box or it fails."""
        box = target.grey_box
        if box is None:
            return None
        what = f"grey box at {target.point}" if target.point else "grey box"
        grey = self.run_attempt(what, lambda: box(self.derive_key("grey box")))
        if grey is not None:
            self.boxes.append(grey)
            self.notes += [note for note in grey.notes if note not in self.notes]
        return grey

    def attack(self, way: Way, trials: int, key: jax.Array | None = None, *, is_last: bool = False) -> None:
        """Makes the attack of a `Way`, with `trials` outputs under each input."""
        attack_key = self.derive_key(f"{way.what} {way.code}".strip()) if key is None else key
        confidence = self.last if is_last else self.each
        result = self.run_attempt(way.what, lambda: audit(attack_key, way.make(), trials=trials, confidence=confidence))
        if result is None:
            return
        self.done.append(Attacked(way, result))
        inputs = "found" if way.code else "given"
        fields = {"path": way.path, "point": way.point, "inputs": inputs, "trials": trials, "confidence": confidence}
        self.attempts.append(Attempt(claimed=result.claimed, lower_bound=result.lower_bound, **fields))

    def search_ways(self, path: str, make: Callable[[], Space | None], known_pair: Any, point: str = "") -> list[Way]:
        """Searches for pairs of inputs, and returns a `Way` to attack each pair."""
        what = f"search at {point}" if point else "search"

        def attempt() -> list[Way]:
            space = make()
            if space is None:
                return []
            first, second = space.attack.neighbours
            if space.with_place:
                first, second = first[0], second[0]
            pairs = ((first, second), *(() if known_pair is None else (known_pair,)))
            effort = FULL if self.thorough else SHORT if space.with_place else QUICK
            pairs_found = search(
                self.derive_key(f"{what} {path}"),
                space.attack.release,
                space.attack.params,
                space.attack.guarantee,
                space.domain,
                known=pairs,
                effort=effort,
                keep=FOUND,
                with_place=space.with_place,
                without=() if space.with_place else ((first, second),),
            )
            ways = []
            for pair in pairs_found:
                inputs = pair.first, pair.second
                if space.with_place:
                    inputs = tuple((x, jnp.int32(pair.changed)) for x in inputs)
                attack = space.attack._replace(neighbours=inputs)
                code = space.code(pair.first, pair.second)
                ways.append(Way(path, point, lambda attack=attack: attack, code))
            return ways

        return self.run_attempt(what, attempt) or []

    def attack_point(self, point: AttackPoint) -> None:
        """Attacks the first path at other values or sizes; if thorough, also between inputs that a search finds."""
        path = next(iter(self.target.attacks), "")
        self.attack(Way(path, point.name, point.make), self.first)
        if self.thorough:
            for way in self.search_ways(path, point.space, None, point.name):
                self.attack(way, self.first)

    def attack_best(self) -> None:
        """Repeats the most promising attack with all trials, unless it already had all trials or refuted the claim."""
        best = max(self.done, key=lambda done: done.ratio, default=None)
        if best is None or best.result.trials >= self.trials or best.result.verdict == "violated":
            return
        key = self.derive_key(f"again {best.way.what} {best.way.code}")
        self.attack(best.way, self.trials, key=key, is_last=True)

    def verdict(self) -> str:
        """Returns the worst verdict of attacks, grey boxes and exact distributions; "blunt" if bounds are too small."""
        verdicts = {done.result.verdict for done in self.done} | {grey.verdict for grey in self.boxes}
        verdicts |= {"violated" if _exceeds(exact, claimed) else "consistent" for exact, claimed in self.distributions}
        order = "violated", "consistent", NOTHING_SHOWN
        strongest = next((verdict for verdict in order if verdict in verdicts), "inconclusive")
        return "blunt" if strongest in order[1:] and self.is_blunt() else strongest

    def is_blunt(self) -> bool:
        """Returns whether all bounds are far smaller than the bounds on correct code."""
        reached = self.target.reached
        # The attack at the registered values alone may have had few trials, if another one was more promising.
        ratios = [done.ratio for done in self.done]
        return reached is not None and self.trials >= JUDGED and bool(ratios) and max(ratios) < BLUNT * reached


def _exceeds(exact: float, claimed: float) -> bool:
    return exact > claimed * (1 + SLACK)
