"""Audits of many claims as one table: what each claims, and what an attack could prove against it."""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax

from jaxdp.audit.black_box import Attack, audit

COLUMNS = ("NAME", "EPSILON", "DELTA", "LOWER BOUND", "RATIO", "TRIALS", "SECONDS", "VERDICT")
WIDTHS = (7, 8, 11, 6, 9, 7)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One audit.

    Attributes:
        name: what was attacked.
        epsilon: claimed, or what the claim implies at that delta; infinity claims nothing.
        delta: claimed, or 0.01 for zCDP and Gaussian claims.
        lower_bound: on epsilon at that delta.
        ratio: lower_bound / epsilon: near 1 the attack is tight and the claim is spent; above 1 it is violated. Where
            epsilon is 0 it is infinite if the lower bound is larger, else 0.
        trials: outputs under each input.
        seconds: taken, compilation included.
        verdict: "consistent" or "violated".
        event: that tells the inputs apart.
    """

    name: str
    epsilon: float
    delta: float
    lower_bound: float
    ratio: float
    trials: int
    seconds: float
    verdict: str
    event: str


def scoreboard(
    key: jax.Array, attacks: Mapping[str, Attack], *, trials: int = 10**6, confidence: float = 0.95
) -> Iterator[Row]:
    """Audits one claim after the other.

    Args:
        key: a typed PRNG key. A row depends on it and on its name, not on what else is audited.
        attacks: by name.
        trials: outputs under each input of each attack, >= 100.
        confidence: of each row by itself. Of many correct claims some may be flagged: fewer than 1 - confidence of
            them on average.

    Yields:
        One row per attack, as it is done.

    Raises:
        ValueError: as `audit`.
    """
    for name, attack in attacks.items():
        result = audit(jax.random.fold_in(key, zlib.crc32(name.encode())), attack, trials=trials, confidence=confidence)
        yield Row(
            name=name,
            epsilon=result.epsilon,
            delta=result.delta,
            lower_bound=result.lower_bound,
            ratio=_ratio(result.lower_bound, result.epsilon),
            trials=result.trials,
            seconds=result.seconds,
            verdict=result.verdict,
            event=result.event,
        )


def heading(names: Iterable[str]) -> str:
    """The table's first line, for rows of these names; they set the first column's width."""
    return _line(COLUMNS, names)


def line(row: Row, names: Iterable[str]) -> str:
    """A row as a line under `heading` of the same names."""
    cells = (
        row.name,
        f"{row.epsilon:g}",
        f"{row.delta:g}",
        f"{row.lower_bound:.4f}",
        f"{row.ratio:.3f}",
        str(row.trials),
        f"{row.seconds:.1f}",
        row.verdict,
    )
    return _line(cells, names)


def to_json(rows: Iterable[Row]) -> str:
    """The rows as a JSON array of objects; infinity is the string "inf", which every JSON reader takes."""

    def plain(value: Any) -> Any:
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(
        [{name: plain(value) for name, value in asdict(row).items()} for row in rows], indent=2, allow_nan=False
    )


def _ratio(lower_bound: float, epsilon: float) -> float:
    """A small rho or mu implies epsilon = 0 at the delta where it is tested."""
    if epsilon > 0:
        return lower_bound / epsilon
    return math.inf if lower_bound > 0 else 0.0


def _line(cells: tuple[str, ...], names: Iterable[str]) -> str:
    width = max(map(len, (COLUMNS[0], *names)))
    middle = (cell.rjust(w) for cell, w in zip(cells[1:-1], WIDTHS, strict=True))
    return "  ".join((cells[0].ljust(width), *middle, cells[-1]))
