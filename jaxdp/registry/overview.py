"""The table of `python -m jaxdp list`, with a row for each algorithm and its variants in a column."""

import itertools
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxdp.core.shown import unit_word
from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import KINDS, TABLES, claim_of
from jaxdp.registry.table import HOW
from jaxdp.validation import check_choice, check_count

WIDTH = 100
_HEADS = ("NAME", "TRUST", "CLAIM", "UNIT", "VARIANTS")
_GAP = "  "
_PUBLISHED = "paper"  # the value of `constants` that selects the published constants
_NOTE = (
    "VARIANTS has full names, or suffixes: the variant gaussian of fkm is fkm_gaussian. A variant's trust model is "
    "given if it differs from the algorithm's. UNIT is the unit of data that a claim protects; jaxdp.per_person makes "
    "learners with claims for a person. --all lists every variant with its claim at example values, a summary and its "
    "paper."
)


class _Row(NamedTuple):
    family: str
    name: str
    trust: str
    claim: str
    unit: str
    variants: str


def overview(kind: str | None = None, *, width: int = WIDTH) -> str:
    """Returns a table of algorithms, with a group of rows for each family.

    Args:
        kind: "mechanism", "learner" or "estimator"; None means all.
        width: characters of a line, >= 40. A longer row or name continues on the next line.

    Returns:
        Lines of text. The trust model, the claim and its unit are taken from an algorithm's first entry. The claim is
        abbreviated, for example "ε-DP", and the unit is one word: round, user, duel, label and others. Without privacy,
        the claim is "no claim", and the trust model and the unit are "-".

    Raises:
        ValueError: if kind is unknown, or width is not an integer >= 40.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    check_count("width", width, 40)
    load_plugins()
    rows = [row for name, (_, entries) in TABLES.items() if kind in (None, name) for row in _rows(name, entries)]
    widths = [max(map(len, column)) for column in zip(_HEADS, *(row[1:] for row in rows), strict=True)]
    lines = _wrap_row(_HEADS, widths, width)
    for family, group in itertools.groupby(rows, lambda row: row.family):
        lines += ["", f"{family}:", *(line for row in group for line in _wrap_row(row[1:], widths, width))]
    return "\n".join([*lines, "", *textwrap.wrap(_NOTE, width)])


def _rows(kind: str, entries: Mapping[str, Any]) -> list[_Row]:
    """Returns rows of a kind's entries by family: one for each factory, and one for each entry without a factory."""
    families: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for name, entry in entries.items():
        title = entry.family if entry.family.startswith(kind) else f"{entry.family} ({kind}s)"
        family = families.setdefault(title, [])
        same_factory = (group for factory, group in family if factory is not None and factory == entry.factory)
        group = next(same_factory, None)
        if group is None:
            family.append((entry.factory, {name: entry}))
        else:
            group[name] = entry
    return [_row(title, group) for title, family in families.items() for _, group in family]


def _row(family: str, group: Mapping[str, Any]) -> _Row:
    """Returns one row for the entries `group`, which share a factory; the first entry's claim is shown."""
    claims = {name: claim_of(entry) for name, entry in group.items()}
    first = next(iter(group))
    factory = getattr(group[first].factory, "__name__", first)
    name = first if len(group) == 1 or not all(variant.startswith(f"{factory}_") for variant in group) else factory
    trust = _trust(claims[first])
    variants = []
    for variant, entry in group.items():
        remarks = [] if _trust(claims[variant]) == trust else [_trust(claims[variant])]
        if entry.variant.get("constants") == _PUBLISHED:
            remarks.append("as published")
        if variant != name:
            variants.append(variant.removeprefix(f"{name}_") + (f" ({', '.join(remarks)})" if remarks else ""))
    claim = HOW[claims[first].kind] if claims[first].is_private else "no claim"
    unit = unit_word(claims[first].privacy_unit) if claims[first].is_private else "-"
    return _Row(family, name, trust, claim, unit, ", ".join(variants))


def _trust(claim: Any) -> str:
    return claim.trust_model if claim.is_private else "-"


def _wrap_row(cells: tuple[str, ...], widths: list[int], width: int) -> list[str]:
    """Formats a row as lines; the last cell is wrapped in its column, or below the name if the column is too narrow."""
    head = _GAP.join(cell.ljust(wide) for cell, wide in zip(cells[:-1], widths[:-1], strict=True)) + _GAP
    if len(head) + 20 <= width:
        lines = textwrap.wrap(cells[-1], width, initial_indent=head, subsequent_indent=" " * len(head))
        return [line.rstrip() for line in lines] or [head.rstrip()]
    text = f"{cells[0]}: {', '.join(filter(None, cells[1:-1]))}" + (f"; {cells[-1]}" if cells[-1] else "")
    return textwrap.wrap(text, width, subsequent_indent=" " * 4)
