"""The tables of studies in other formats than text."""

import csv
import io
import types

import numpy as np
import pytest
import typer
import xarray as xr

from jaxdp.studies import reward_estimation, running
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.tables import collect_tables, columns, format_tables, parse_format
from tests.cli.test_studies import reward_results

ROWS = [["", "ε = 1", "a|b"], ["x_1", "1,234 +- 56", "none"]]


def collect(rows, title):
    with collect_tables() as tables:
        columns(rows, title)
    return tables


def test_a_csv_has_the_numbers_of_the_dataset():
    results = reward_results()
    with collect_tables() as tables:
        reward_estimation.table(results)
    rows = list(csv.DictReader(io.StringIO(format_tables(tables, "csv"))))
    mean, half = mean_and_half_width(results.l2_error)
    title = "l2 error, d = 5, ε = 1, n ="
    cells = {(row["row"], row["column"]): row for row in rows if row["table"] == title}
    assert len(cells) == 4
    for (name, size), row in cells.items():
        point = {"estimator": name, "epsilon": 1.0, "num_features": 5, "num_samples": int(size.replace(",", ""))}
        np.testing.assert_allclose(float(row["value"]), mean.sel(point), atol=5.1e-5)
        np.testing.assert_allclose(float(row["half_width"]), half.sel(point), atol=5.1e-5)


def test_markdown_and_latex_escape_their_own_marks():
    markdown, latex = (format_tables(collect(ROWS, "regret, 5%\n of it"), form) for form in ("markdown", "latex"))
    assert markdown.splitlines() == [
        "**regret, 5% of it**",
        "",
        r"|  | ε = 1 | a\|b |",
        "| --- | ---: | ---: |",
        "| x_1 | 1,234 ± 56 | none |",
    ]
    assert r"\caption{regret, 5\% of it}" in latex
    assert r" & $\varepsilon$ = 1 & a|b \\" in latex.splitlines()
    assert r"x\_1 & 1,234 $\pm$ 56 & none \\" in latex.splitlines()
    assert r"\begin{tabular}{lrr}" in latex


def test_tables_are_collected_inside_the_context_only():
    columns(ROWS, "before")
    tables = collect(ROWS, "inside")
    columns(ROWS, "after")
    assert [table.title for table in tables] == ["inside"]


@pytest.mark.parametrize("form", ["text", "csv"])
def test_the_report_with_its_warnings_is_never_lost(form, capsys):
    def report(dataset):
        return "\n".join(["not private", *columns(ROWS, "regret")])

    study = types.SimpleNamespace(report=report)
    running._print_report(study, xr.Dataset(), "\n\ndata: here", form)  # pyright: ignore[reportArgumentType]
    printed = capsys.readouterr()
    said = printed.out if form == "text" else printed.err
    assert all(part in said for part in ("not private", "1,234 +- 56", "data: here"))
    assert ("regret,x_1,ε = 1,1234,56" in printed.out) == (form == "csv")
    assert ("not private" in printed.out) == (form == "text")


def test_an_unknown_format_is_refused():
    assert parse_format("latex") == "latex"
    with pytest.raises(typer.BadParameter, match="must be text, markdown, latex or csv, got 'xml'"):
        parse_format("xml")
