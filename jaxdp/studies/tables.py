"""Formats tables of studies as aligned text, Markdown, LaTeX or CSV."""

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Annotated, NamedTuple

import typer

from jaxdp.comparisons.tables import LATEX, align, latex_table, markdown_table

FORMATS = ("text", "markdown", "latex", "csv")


def parse_format(text: str) -> str:
    """Returns the name of a format; raises Typer's error for a bad option if there is no such format."""
    if text not in FORMATS:
        raise typer.BadParameter(f"must be text, markdown, latex or csv, got {text!r}")
    return text


TableFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="Format of the tables: text, markdown, latex or csv. If it is not text, stdout has only the tables, and "
        "stderr the report.",
        parser=parse_format,
        metavar="<format>",
    ),
]
SIGN = " +- "  # between a mean and its half width


class Table(NamedTuple):
    """A table of texts; the first row contains the headings, and the first column contains the names of the rows."""

    title: str
    rows: Sequence[Sequence[str]]


_collected: ContextVar[list[Table] | None] = ContextVar("_collected", default=None)


@contextlib.contextmanager
def collect_tables() -> Iterator[list[Table]]:
    """Yields a list to which `columns` appends its tables until the context ends."""
    tables: list[Table] = []
    token = _collected.set(tables)
    try:
        yield tables
    finally:
        _collected.reset(token)


def columns(rows: Sequence[Sequence[str]], title: str = "") -> list[str]:
    """Formats rows of texts as lines; aligns the first column to the left and all other columns to the right."""
    if (tables := _collected.get()) is not None:
        tables.append(Table(" ".join(title.split()), rows))
    return align(rows)


def table_of(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Formats rows of texts as lines below a title; the first row contains the headings."""
    return "\n".join([title, *columns(rows, title)])


def format_tables(tables: Sequence[Table], form: str) -> str:
    """Formats tables as "markdown", "latex" or "csv"."""
    if form == "csv":
        return _as_csv(tables)
    return "\n\n".join(map(_as_markdown if form == "markdown" else _as_latex, tables))


def _as_markdown(table: Table) -> str:
    rows = [[cell.replace(SIGN, " ± ") for cell in row] for row in table.rows]
    return (f"**{table.title}**\n\n" if table.title else "") + markdown_table(rows)


def _as_latex(table: Table) -> str:
    rows = [[cell.translate(LATEX).replace(SIGN, r" $\pm$ ") for cell in row] for row in table.rows]
    return latex_table(rows, table.title)


def _as_csv(tables: Sequence[Table]) -> str:
    """Formats one CSV line for each cell, with the table's title, row, column, value and half width."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["table", "row", "column", "value", "half_width"])
    for table in tables:
        head, *body = table.rows
        for row in body:
            for heading, cell in zip(head[1:], row[1:], strict=True):
                value, _, half = cell.partition(SIGN)
                writer.writerow([table.title, row[0], heading, _plain(value), _plain(half)])
    return file.getvalue().rstrip("\n")


def _plain(text: str) -> str:
    """Returns a text without surrounding spaces; removes thousands separators from a number."""
    number = text.strip().replace(",", "")
    try:
        float(number)
    except ValueError:
        return text.strip()
    return number
