"""Rows of the scoreboard, as text and as JSON."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from jaxdp.core.made_by import shorten
from jaxdp.core.shown import unit_word

COLUMNS = (
    "NAME",
    *("CURRENCY", "CLAIMED", "DELTA", "UNIT", "LOWER BOUND", "RATIO", "EXACT", "PATH", "TRIALS", "SECONDS"),
    "VERDICT",
)
WIDTHS = (8, 8, 8, 10, 11, 6, 8, 8, 9, 7)
NARROW = ("NAME", "CLAIM", "BOUND", "RATIO", "PATH", "VERDICT")
NARROW_WIDTHS = (13, 7, 6, 7)
LAST = 11  # characters of the longest verdict


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One black-box attack in a row of the scoreboard.

    Attributes:
        path: the path on which outputs were computed.
        point: values or sizes that differ from the registered ones, such as "epsilon=0.1"; empty if there are none.
        inputs: "given", or "found" by a search.
        trials: number of outputs under each input. For a claim on epsilon a fair coin chooses the input of each output,
            and this is half the number of outputs.
        claimed: the claimed epsilon, rho or mu at that point.
        lower_bound: lower bound on the true epsilon, rho or mu.
        confidence: confidence of this one bound.
    """

    path: str
    point: str
    inputs: str
    trials: int
    claimed: float
    lower_bound: float
    confidence: float


@dataclass(frozen=True, kw_only=True)
class ScoreboardRow:
    """The findings about one claim.

    Attributes:
        name: the target's name.
        currency: which number the claim states: "epsilon", "rho" or "mu".
        claimed: the claimed number at `point`; infinity if nothing is claimed.
        delta: the claimed delta; 0 for pure, zCDP and Gaussian claims.
        lower_bound: lower bound on the true number, by the black-box attack with the largest ratio; 0 if no attack gave
            a bound.
        ratio: lower_bound / claimed. A ratio near 1 shows that the algorithm spends nearly its whole claimed budget; a
            ratio above 1 shows that it violates the claim; 0 if nothing is claimed.
        exact: the true number, computed from exact distributions at the registered values and inputs; None if the
            distributions are not known or cannot be computed.
        path: the path of the attack that gave the lower bound; empty if no attack gave a bound.
        trials: number of outputs under each input in the attack that gave the lower bound, as in `Attempt`; the
            requested number if no attack gave a bound.
        seconds: time of all attacks and audits of the row, compilation included.
        verdict: "violated" if a lower bound, an exact number (also at the target's second point) or the grey box
            refutes the claim. "inconclusive" if no attack, no grey box and no exact distribution gave a result. "blunt"
            if all bounds, as fractions of their claims, are less than half of the fraction that attacks reach on
            correct code: the noise may be too large, or inputs may have no effect. This is judged only if that fraction
            is known and at least 1,000,000 trials are requested. "nothing shown" if every bound is 0 and nothing else
            was measured. Otherwise "consistent", which is no proof.
        event: the event that distinguishes the inputs in the attack that gave the lower bound.
        faults: faults found by the grey box, as sentences.
        notes: attacks that were skipped or failed, with reasons; questions that the grey box left open; exact numbers
            that contradict lower bounds or claims.
        point: values or sizes that gave the lower bound, if they differ from the registered ones; else empty.
        code: Python code that audits the inputs that gave the lower bound, if a search found them; else empty.
        confidence: confidence that all lower bounds of the row hold.
        attempts: the black-box attacks that gave a bound, in order.
        privacy_unit: the unit of the claim, such as "one label"; empty if nothing is claimed.
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
    point: str = ""
    code: str = ""
    confidence: float = 0.95
    attempts: tuple[Attempt, ...] = ()
    privacy_unit: str = ""

    def __repr__(self) -> str:
        bound = f"{self.currency} >= {self.lower_bound:.4g} where {self.claimed:g} is claimed"
        exact = "" if self.exact is None else f", exactly {self.exact:.6g}"
        counts = f"{len(self.faults)} faults, {len(self.notes)} notes"
        return shorten(f"ScoreboardRow({self.name}: {self.verdict}, {bound}{exact}, {self.trials} trials, {counts})")


def format_header(names: Iterable[str], width: int | None = None) -> str:
    """Formats the table's first line; the names of the rows set the first column's width.

    Args:
        names: the names of all rows.
        width: maximum number of characters of a line; None if there is no limit. Numbers below 58 count as 58. If the
            table is wider, some columns are omitted.
    """
    names = list(names)
    return _wide(COLUMNS, names) if _fits(names, width) else _narrow(NARROW, names, width)


def format_row(row: ScoreboardRow, names: Iterable[str], width: int | None = None) -> str:
    """Formats a row for a header with the same names and width; a name too long for the width gets its own line."""
    names = list(names)
    if not _fits(names, width):
        claim, bound = f"{row.currency} {row.claimed:.4g}", f"{row.lower_bound:.4f}"
        return _narrow((row.name, claim, bound, f"{row.ratio:.3f}", row.path or "-", row.verdict), names, width)
    cells = (
        row.name,
        row.currency,
        f"{row.claimed:g}",
        f"{row.delta:g}",
        unit_word(row.privacy_unit) or "-",
        f"{row.lower_bound:.4f}",
        f"{row.ratio:.3f}",
        "-" if row.exact is None else f"{row.exact:.6g}",
        row.path or "-",
        str(row.trials),
        f"{row.seconds:.1f}",
        row.verdict,
    )
    return _wide(cells, names)


def format_notes(row: ScoreboardRow) -> list[str]:
    """Returns lines to print below a row: faults, notes, where its bound was found, and code that shows a violation."""
    texts = [*(f"fault: {fault}" for fault in row.faults), *(f"note: {note}" for note in row.notes)]
    if row.point:
        texts.append(f"worst at {row.point}")
    if row.code:
        texts.append("worst between inputs that a search found" + (":" if row.verdict == "violated" else ""))
    lines = [f"  {' '.join(text.split())}" for text in texts]
    return [*lines, *row.code.splitlines()] if row.verdict == "violated" else lines


def to_json(rows: Iterable[ScoreboardRow]) -> str:
    """Returns the rows as a JSON array of objects; infinity, which JSON lacks, becomes the string "inf"."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    return json.dumps([plain(asdict(row)) for row in rows], indent=2, allow_nan=False)


def _longest(names: Iterable[str]) -> int:
    return max(map(len, (COLUMNS[0], *names)))


def _fits(names: Iterable[str], width: int | None) -> bool:
    return width is None or _longest(names) + sum(WIDTHS) + 2 * (len(WIDTHS) + 1) + LAST <= width


def _wide(cells: tuple[str, ...], names: Iterable[str]) -> str:
    middle = (cell.rjust(w) for cell, w in zip(cells[1:-1], WIDTHS, strict=True))
    return "  ".join((cells[0].ljust(_longest(names)), *middle, cells[-1]))


def _narrow(cells: tuple[str, ...], names: Iterable[str], width: int | None) -> str:
    assert width is not None
    room = min(_longest(names), max(4, width - sum(NARROW_WIDTHS) - 2 * (len(NARROW_WIDTHS) + 1) - LAST))
    middle = (cell.rjust(w) for cell, w in zip(cells[1:-1], NARROW_WIDTHS, strict=True))
    numbers = "  ".join((*middle, cells[-1]))
    if len(cells[0]) > room:
        return f"{cells[0]}\n{' ' * room}  {numbers}"
    return f"{cells[0].ljust(room)}  {numbers}"
