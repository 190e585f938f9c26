"""Tables of the registered entries, as text."""

import io
import itertools
import re

from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import ESTIMATORS, KINDS, LEARNERS, TABLES, claim_of
from jaxdp.validation import check_choice, check_count

HOW = {"pure": "ε-DP", "approximate": "(ε, δ)-DP", "zcdp": "ρ-zCDP", "gaussian": "μ-GDP"}  # noqa: RUF001
_SHORT = {"Theorem": "Thm", "Algorithms": "Algs", "Algorithm": "Alg.", "Definition": "Def."}
WIDTH = 80  # default width in characters
ROOMY = 84  # with at least this width next to the names, claim, text and paper have separate columns
BESIDE = 30  # with at least this width next to the names, claim, text and paper share one column; else below the names


def listing(kind: str | None = None, *, sources: bool = False, width: int | None = WIDTH) -> str:
    """Returns a table of the registered entries, with each entry's claim at its example values.

    Args:
        kind: "mechanism", "learner" or "estimator"; None means all.
        sources: whether to print the full source, and whether the claim is proved, instead of summary and paper.
        width: characters of a line, >= 40; None prints each entry in one line of any length, for searching. A name is
            never cut: if it is longer than a line, it continues on the next line.

    Returns:
        Lines of text. A wide table has separate columns for claim, text and paper; a narrow table prints these one
        below another.

    Raises:
        ValueError: if kind is unknown, or width is not an integer >= 40.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    if width is not None:
        check_count("width", width, 40)
    load_plugins()
    rows = []
    for entry_kind, (_, entries) in TABLES.items():
        for name, entry in entries.items() if kind in (None, entry_kind) else ():
            claim = claim_of(entry)
            last = (entry.proof, entry.source) if sources else (entry.summary, paper(entry.source))
            rows.append((entry_kind, name, str(claim) if claim.is_private else "no claim", *last))
    heads = ("EXAMPLE CLAIM", *(("PROOF", "SOURCE") if sources else ("WHAT IT DOES", "PAPER")))
    return _lines([("KIND", "NAME", *heads), *rows]) if width is None else _table(rows, heads, width)


def _lines(rows: list[tuple[str, ...]]) -> str:
    """Formats each row of cells as one line, with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _table(rows: list[tuple[str, ...]], heads: tuple[str, ...], width: int) -> str:
    """Formats rows (kind, name, *details) as lines of at most `width` characters; `heads` are the details' headings."""
    from rich.console import Console, Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text  # does not interpret brackets as markup

    left = width - max((len(name) for _, name, *_ in rows), default=0)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", expand=left >= ROOMY)
    if left >= ROOMY:
        for head in ("KIND", "NAME", *heads):
            short = head in ("KIND", "NAME", "PROOF")
            table.add_column(head, no_wrap=short, ratio=None if short else 2 if head == "EXAMPLE CLAIM" else 3)
        for row in rows:
            table.add_row(*map(Text, row))
    else:
        table.add_column("NAME", no_wrap=left >= BESIDE, overflow="fold")
        if left >= BESIDE:
            table.add_column(", ".join(heads), overflow="fold")
        for kind, group in itertools.groupby(rows, lambda row: row[0]):
            table.add_row(f"{kind}s:")
            for _, name, *details in group:
                lines = Text("\n".join(filter(None, details)))
                cells = (Text(name), lines) if left >= BESIDE else (Group(Text(name), Padding(lines, (0, 0, 0, 2))),)
                table.add_row(*cells)
    page = io.StringIO()
    Console(file=page, width=width, color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def paper(source: str) -> str:
    """Shortens a source to the first paper that it names.

    Examples:
        >>> paper("Zhu, Jiao & Jordan (2023), Theorem 3.1; Bradley & Terry (1952)")
        'Zhu et al. 2023, Thm 3.1'
        >>> paper("standard; noise by Dwork & Roth (2014), Theorem 3.6")
        'noise by Dwork & Roth 2014, Thm 3.6'
        >>> paper("Auer, Cesa-Bianchi & Fischer (2002), UCB1")
        'Auer et al. 2002, UCB1'
    """
    clauses = source.split("; ")
    text = next((clause for clause in clauses if re.search(r"\(\d{4}\)", clause)), source)
    text = re.sub(r"^([\w-]+)(?:, [\w-]+)+ & [\w -]+(?= \()", r"\1 et al.", text)
    text = re.sub(r" \((\d{4})\)", r" \1", text)
    return re.sub("|".join(_SHORT), lambda match: _SHORT[match.group()], text)


def claims_table() -> str:
    """Returns a Markdown table of every registered learner and estimator: paper, trust model, unit, claim and proof."""
    load_plugins()
    lines = ["| algorithm | paper | trust model | private is | claim | proof |", "|---|---|---|---|---|---|"]
    for name, entry in (*LEARNERS.items(), *ESTIMATORS.items()):
        claim = claim_of(entry)
        cells = ("-", "nothing", "no claim", "-")
        if claim.is_private:
            size = getattr(entry, "multiple", "")
            how = f"{size} · {HOW[claim.kind]}" if size else HOW[claim.kind]
            cells = (claim.trust_model, claim.privacy_unit, how, entry.proof)
        lines.append(f"| {' | '.join((f'`{name}`', paper(entry.source), *cells))} |")
    return "\n".join(lines)
