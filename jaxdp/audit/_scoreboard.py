"""Audits of many claims as one table: what each claims, and what all attacks on it could prove."""

import json
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax

from jaxdp.audit.black_box import FEWEST_TRIALS, Attack, AuditResult, audit
from jaxdp.audit.checks import native
from jaxdp.audit.exact import exact_budget
from jaxdp.audit.findings import GreyBox
from jaxdp.audit.targets import Target, failed
from jaxdp.core.made_by import cut
from jaxdp.validation import check_count, check_key, check_probability

COLUMNS = (
    "NAME",
    *("CURRENCY", "CLAIMED", "DELTA", "LOWER BOUND", "RATIO", "EXACT", "PATH", "TRIALS", "SECONDS"),
    "VERDICT",
)
WIDTHS = (8, 8, 8, 11, 6, 8, 8, 9, 7)
SLACK = 1e-6  # relative, by which an exact budget may exceed what is claimed: laws are rounded


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was found about one claim.

    Attributes:
        name: what was attacked.
        currency: of the claim: "epsilon", "rho" or "mu".
        claimed: the number in that currency; infinity claims nothing.
        delta: of an approximate claim; 0 of zCDP and Gaussian ones.
        lower_bound: on the same number, by black-box attacks: the largest of all paths; 0 if there was none.
        ratio: lower_bound / claimed: near 1 the attack is tight and the claim is spent; above 1 it is violated; 0 where
            nothing is claimed.
        exact: the true number by exact laws; None where they are not known.
        path: that gave the lower bound; empty if there was none.
        trials: outputs under each input of each path.
        seconds: taken by all that was done, compilation included.
        verdict: "violated" if a lower bound, the exact number or the grey box says so; "cannot tell" if nothing found
            an answer; else "consistent", which is no proof.
        event: that tells the inputs apart on that path.
        faults: that the grey box found, in words.
        notes: what was not attacked, and why; and whether exact laws can be those of what was.
    """

    name: str
    currency: str
    claimed: float
    delta: float
    lower_bound: float
    ratio: float
    exact: float | None
    path: str
    trials: int
    seconds: float
    verdict: str
    event: str
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        found = f"{self.currency} >= {self.lower_bound:.4g} where {self.claimed:g} is claimed"
        exact = "" if self.exact is None else f", exactly {self.exact:.6g}"
        more = f"{len(self.faults)} faults, {len(self.notes)} notes"
        return cut(f"Row({self.name}: {self.verdict}, {found}{exact}, {self.trials} trials, {more})")


class Step(NamedTuple):
    """What a scoreboard does next.

    Attributes:
        name: of the claim.
        currency: of the claim.
        what: a path, "exact law" or "grey box".
    """

    name: str
    currency: str
    what: str


def scoreboard(
    key: jax.Array,
    targets: Mapping[str, Attack | Target],
    *,
    trials: int = 10**6,
    confidence: float = 0.95,
    before: Callable[[Step], object] = lambda step: None,
) -> Iterator[Row]:
    """Audits one claim after the other, each by all the ways that its target has.

    What raises an exception is skipped, with a note in the row: the other ways and the other claims are still tried.

    Args:
        key: a typed PRNG key. A row depends on it and on its name, not on what else is audited.
        targets: by name; an attack alone is a target with one path, "release".
        trials: outputs under each input of each path, >= 100.
        confidence: of each row by itself: each of n paths is attacked with an error probability of
            (1 - confidence) / n. Of many correct claims some may be flagged: fewer than 1 - confidence of them on
            average.
        before: called before each step, for a progress bar.

    Yields:
        One row per target, as it is done.

    Raises:
        ValueError: if key is not a single typed key, or trials or confidence is out of range.
    """
    check_key(key)
    trials, confidence = check_count("trials", trials, FEWEST_TRIALS), check_probability("confidence", confidence)
    for name, given in targets.items():
        target = given if isinstance(given, Target) else Target(claim=given.claim, attacks={"release": given})
        yield _row(jax.random.fold_in(key, zlib.crc32(name.encode())), name, target, trials, confidence, before)


def heading(names: Iterable[str]) -> str:
    """The table's first line, for rows of these names; they set the first column's width."""
    return _line(COLUMNS, names)


def line(row: Row, names: Iterable[str]) -> str:
    """A row as a line under `heading` of the same names."""
    cells = (
        row.name,
        row.currency,
        f"{row.claimed:g}",
        f"{row.delta:g}",
        f"{row.lower_bound:.4f}",
        f"{row.ratio:.3f}",
        "-" if row.exact is None else f"{row.exact:.6g}",
        row.path or "-",
        str(row.trials),
        f"{row.seconds:.1f}",
        row.verdict,
    )
    return _line(cells, names)


def remarks(row: Row) -> list[str]:
    """Lines to print below a row: what the grey box found, and what was not attacked."""
    told = [*(f"fault: {fault}" for fault in row.faults), *(f"note: {note}" for note in row.notes)]
    return [f"  {_one_line(text)}" for text in told]


def to_json(rows: Iterable[Row]) -> str:
    """The rows as a JSON array of objects; infinity is the string "inf", which every JSON reader takes."""

    def plain(value: Any) -> Any:
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(
        [{name: plain(value) for name, value in asdict(row).items()} for row in rows], indent=2, allow_nan=False
    )


def _row(
    key: jax.Array,
    name: str,
    target: Target,
    trials: int,
    confidence: float,
    before: Callable[[Step], object],
) -> Row:
    start, (currency, claimed, delta) = time.perf_counter(), native(target.claim)
    notes: list[str] = []

    def tried(what: str, attempt: Callable[[], Any]) -> Any:
        """What an attempt gives; a note and nothing if it fails."""
        before(Step(name, currency, what))
        try:
            return attempt()
        except Exception as error:
            notes.append(failed(what, error))
            return None

    found: dict[str, AuditResult] = {}
    each = 1 - (1 - confidence) / max(1, len(target.attacks))
    for number, (path, attack) in enumerate(target.attacks.items()):
        # The first path's key does not depend on its name.
        own = key if number == 0 else jax.random.fold_in(key, zlib.crc32(path.encode()))
        result = tried(path, lambda attack=attack, own=own: audit(own, attack, trials=trials, confidence=each))
        if result is not None:
            found[path] = result
    laws, box = target.laws, target.grey_box
    exact = None if laws is None else tried("exact law", lambda: exact_budget(*laws(), target.claim))
    grey = None if box is None else tried("grey box", lambda: box(jax.random.fold_in(key, zlib.crc32(b"grey box"))))
    notes += () if grey is None else grey.notes
    worst = max(found, key=lambda path: found[path].lower_bound, default="")
    lower_bound = found[worst].lower_bound if worst else 0.0
    if exact is not None and lower_bound > exact * (1 + SLACK):
        notes.append(
            "exact law: it gives less than the lower bound: by chance, or it is not the law of what was attacked"
        )
    return Row(
        name=name,
        currency=currency,
        claimed=claimed,
        delta=delta,
        lower_bound=lower_bound,
        ratio=0.0 if claimed == math.inf else lower_bound / claimed,
        exact=exact,
        path=worst,
        trials=trials,
        seconds=time.perf_counter() - start,
        verdict=_verdict(found.values(), claimed, exact, grey),
        event=found[worst].event if worst else "",
        faults=() if grey is None else grey.faults,
        notes=(*target.notes, *notes),
    )


def _verdict(results: Iterable[AuditResult], claimed: float, exact: float | None, grey: GreyBox | None) -> str:
    verdicts = {result.verdict for result in results}
    if exact is not None:
        verdicts.add("violated" if exact > claimed * (1 + SLACK) else "consistent")
    if grey is not None:
        verdicts.add(grey.verdict)
    return next((verdict for verdict in ("violated", "consistent") if verdict in verdicts), "cannot tell")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _line(cells: tuple[str, ...], names: Iterable[str]) -> str:
    width = max(map(len, (COLUMNS[0], *names)))
    middle = (cell.rjust(w) for cell, w in zip(cells[1:-1], WIDTHS, strict=True))
    return "  ".join((cells[0].ljust(width), *middle, cells[-1]))
