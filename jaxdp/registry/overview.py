"""The table of `python -m jaxdp list`: a row for each algorithm, with its variants in a column."""

import itertools
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import KINDS, TABLES, claim_of
from jaxdp.registry.table import HOW
from jaxdp.validation import check_choice, check_count

WIDTH = 100
_HEADS = ("NAME", "TRUST", "CLAIM", "VARIANTS")
_GAP = "  "
_PUBLISHED = "paper"  # the value of `constants` by which a factory takes a paper's own
_NOTE = (
    "A variant's name is the algorithm's name, then _ and the variant (fkm: gaussian is fkm_gaussian), or the "
    "whole name. Its trust model is given where it differs. --all lists every variant with its claim at example "
    "values, what it does and its paper."
)


class _Row(NamedTuple):
    family: str
    name: str
    trust: str
    claim: str
    variants: str


def overview(kind: str | None = None, *, width: int = WIDTH) -> str:
    """Returns a table of algorithms, with a group of rows for each family.

    Args:
        kind: "mechanism", "learner" or "estimator"; None is all.
        width: columns that a line may fill, >= 40. A row, or a name, that is longer goes on in the next line.

    Returns:
        Lines of text. An algorithm's trust model and claim are those of its first entry, a claim in short, as "ε-DP".

    Raises:
        ValueError: if kind is unknown, or width is no whole number >= 40.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    check_count("width", width, 40)
    load_plugins()
    rows = [row for made, (_, entries) in TABLES.items() if kind in (None, made) for row in _rows(made, entries)]
    widths = [max(map(len, column)) for column in zip(_HEADS, *(row[1:] for row in rows), strict=True)]
    lines = _wrapped(_HEADS, widths, width)
    for family, group in itertools.groupby(rows, lambda row: row.family):
        lines += ["", f"{family}:", *(line for row in group for line in _wrapped(row[1:], widths, width))]
    return "\n".join([*lines, "", *textwrap.wrap(_NOTE, width)])


def _rows(kind: str, entries: Mapping[str, Any]) -> list[_Row]:
    """Returns the rows of a kind, families in the order of their first entries."""
    families: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for name, entry in entries.items():
        title = entry.family if entry.family.startswith(kind) else f"{entry.family} ({kind}s)"
        family = families.setdefault(title, [])
        group = next((group for factory, group in family if factory == entry.factory), None)
        if group is None:
            family.append((entry.factory, {name: entry}))
        else:
            group[name] = entry
    return [_row(title, group) for title, family in families.items() for _, group in family]


def _row(family: str, group: Mapping[str, Any]) -> _Row:
    """Returns the row of entries that have one factory."""
    claims = {name: claim_of(entry) for name, entry in group.items()}
    first = next(iter(group))
    factory = getattr(group[first].factory, "__name__", first)
    name = first if len(group) == 1 or not all(each.startswith(f"{factory}_") for each in group) else factory
    trust = _trust(claims[first])
    variants = []
    for each, entry in group.items():
        remarks = [] if _trust(claims[each]) == trust else [_trust(claims[each])]
        if entry.variant.get("constants") == _PUBLISHED:
            remarks.append("as published")
        if each != name:
            variants.append(each.removeprefix(f"{name}_") + (f" ({', '.join(remarks)})" if remarks else ""))
    claim = HOW[claims[first].kind] if claims[first].is_private else "none"
    return _Row(family, name, trust, claim, ", ".join(variants))


def _trust(claim: Any) -> str:
    return claim.trust_model if claim.is_private else "-"


def _wrapped(cells: tuple[str, ...], widths: list[int], width: int) -> list[str]:
    """Returns a row as lines; the last cell goes on below its first line, or below the name where there is no room."""
    head = _GAP.join(cell.ljust(wide) for cell, wide in zip(cells[:-1], widths[:-1], strict=True)) + _GAP
    if len(head) + 20 <= width:
        lines = textwrap.wrap(cells[-1], width, initial_indent=head, subsequent_indent=" " * len(head))
        return [line.rstrip() for line in lines] or [head.rstrip()]
    text = f"{cells[0]}: {', '.join(filter(None, cells[1:-1]))}" + (f"; {cells[-1]}" if cells[-1] else "")
    return textwrap.wrap(text, width, subsequent_indent=" " * 4)
