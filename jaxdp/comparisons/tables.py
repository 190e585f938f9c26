"""Formats tables of means with intervals as text, Markdown, LaTeX, CSV and HTML."""

import csv
import html
import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

WIDTH = 80  # characters per line of the caption of a text table; the caption of a wider table is as wide as the table
MARKED = "{marked}"  # placeholder in a caption, which is replaced by the format's word for marked means
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "ε": r"$\varepsilon$",
        "∞": r"$\infty$",
    }
)


class Cell(NamedTuple):
    """A mean with its interval, and whether the mean is the best of its column or is not shown to be worse."""

    mean: float
    low: float
    high: float
    not_worse: bool

    @property
    def half_width(self) -> float:
        """The half width of the interval."""
        return (self.high - self.low) / 2

    def text(self, sign: str = "+-") -> str:
        """Formats the mean and the half width, with at least two significant digits of the half width.

        The half width is "0" if it is at most 1e-12 of the mean. A mean that is not finite is "-" (NaN), "∞" or "-∞",
        without a half width.
        """
        half = self.half_width
        if not math.isfinite(self.mean):
            return "-" if math.isnan(self.mean) else "∞" if self.mean > 0 else "-∞"
        if not math.isfinite(half):
            return f"{self.mean:,.4g} {sign} {half:g}"
        if half <= 1e-12 * abs(self.mean):  # values are equal, except for rounding
            return f"{self.mean:,.4g} {sign} 0"
        digits = max(0, 1 - math.floor(math.log10(half)))
        return f"{self.mean:,.{digits}f} {sign} {half:,.{digits}f}"


class Contents(NamedTuple):
    """The content of a comparison's table, as rows and columns of cells without a format.

    Attributes:
        columns: for each column, a mapping with "epsilon", and with "unit", "horizon" and "instance" if the column has
            them.
        rows: for each contestant's name, one cell per column.
        trust: for each name, the trust model.
        units: for each name, the privacy unit of the claim in each column.
        unpaired: names of contestants that were simulated in other worlds than the other contestants.
        caption: the sentences below the table; `MARKED` is a placeholder for the format's word for marked means.
        metric: name of the output.
    """

    columns: Sequence[Mapping[str, Any]]
    rows: Mapping[str, Sequence[Cell]]
    trust: Mapping[str, str]
    units: Mapping[str, Sequence[str]]
    unpaired: Sequence[str]
    caption: str
    metric: str

    def headings(self) -> list[str]:
        """Returns the heading of each column."""
        return [
            (f"per {column['unit']}, " if "unit" in column else "")
            + (f"T = {int(column['horizon']):,}, " if "horizon" in column else "")
            + (f"{column['instance']}, " if "instance" in column else "")
            + f"ε = {format_budget(column['epsilon'])}"
            for column in self.columns
        ]


def align(rows: Sequence[Sequence[str]], names: int = 1) -> list[str]:
    """Formats rows as lines; aligns the first `names` columns to the left and all other columns to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index < names else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def markdown_table(rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """Formats rows as a table in Markdown; columns after the first `names` are aligned to the right."""
    head, *body = rows
    rows = [head, ["---"] * names + ["---:"] * (len(head) - names), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)


def latex_table(rows: Sequence[Sequence[str]], caption: str, names: int = 1) -> str:
    """Formats rows of LaTeX text as a table with rules of the package booktabs; escapes the caption."""
    head, *body = (" & ".join(row) + r" \\" for row in rows)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption.translate(LATEX)}}}",
            rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(rows[0]) - names)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Formats rows of HTML text as an HTML table; the first row contains the headings."""
    tags = ["th", *["td"] * (len(rows) - 1)]
    lines = (
        "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(tags, rows, strict=True)
    )
    return f"<table>{''.join(lines)}</table>"


def _rows(contents: Contents, text: Callable[[Cell], str]) -> list[list[str]]:
    """Returns the rows of a table as texts; the first row contains the headings. `text` formats a cell."""
    rows = [[name, contents.trust[name], *map(text, cells)] for name, cells in contents.rows.items()]
    return [["", "trust", *contents.headings()], *rows]


def as_text(contents: Contents) -> str:
    """Formats the table as aligned text; marked means get a star."""
    rows = _rows(contents, lambda cell: cell.text() + (" *" if cell.not_worse else "  "))
    lines = [line.rstrip() for line in align(rows, 2)]
    width = max(WIDTH, *map(len, lines))
    return "\n".join([*lines, "", *textwrap.wrap(_caption(contents, "*"), width)])


def as_markdown(contents: Contents) -> str:
    """Formats the table in Markdown; marked means are bold."""
    rows = _rows(contents, lambda cell: f"**{cell.text('±')}**" if cell.not_worse else cell.text("±"))
    return f"{markdown_table(rows, 2)}\n\n{_caption(contents, 'Bold')}"


def as_latex(contents: Contents) -> str:
    """Formats the table in LaTeX with rules of the package booktabs; marked means are bold."""
    head, *body = _rows(contents, _latex_cell)
    rows = [[cell.translate(LATEX) for cell in head], *([row[0].translate(LATEX), *row[1:]] for row in body)]
    return latex_table(rows, _caption(contents, "Bold"), 2)


def _latex_cell(cell: Cell) -> str:
    number = cell.text(r"\pm").replace(",", "{,}").translate({ord("∞"): r"\infty"})
    if number == "-":
        return "--"
    return rf"$\mathbf{{{number}}}$" if cell.not_worse else f"${number}$"


def as_csv(contents: Contents) -> str:
    """Formats the table as CSV with one row for each mean; numbers have all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    keys = list(contents.columns[0])
    head = ["name", "trust_model", "privacy_unit", *keys, "metric"]
    writer.writerow([*head, "mean", "low", "high", "not_worse", "unpaired"])
    for name, cells in contents.rows.items():
        for column, privacy_unit, cell in zip(contents.columns, contents.units[name], cells, strict=True):
            numbers = map(repr, map(float, (cell.mean, cell.low, cell.high)))
            ends = (int(cell.not_worse), int(name in contents.unpaired))
            row = [name, contents.trust[name], privacy_unit, *column.values(), contents.metric]
            writer.writerow([*row, *numbers, *ends])
    return file.getvalue()


def as_html(contents: Contents) -> str:
    """Formats the table in HTML for notebooks, in the notebook's colours; marked means are bold."""
    rows = [[html.escape(cell) for cell in row] for row in _rows(contents, lambda cell: cell.text("±"))]
    for row, cells in zip(rows[1:], contents.rows.values(), strict=True):
        row[2:] = [f"<b>{text}</b>" if cell.not_worse else text for text, cell in zip(row[2:], cells, strict=True)]
    return f"{html_table(rows)}<p>{html.escape(_caption(contents, 'Bold'))}</p>"


def _caption(contents: Contents, marked: str) -> str:
    return contents.caption.replace(MARKED, marked)


def format_budget(epsilon: float) -> str:
    """Formats an epsilon; infinity becomes ∞."""
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


FORMATS: Mapping[str, Callable[[Contents], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
}
