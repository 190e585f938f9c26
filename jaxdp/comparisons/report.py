"""Writes a comparison as one HTML file.

The file contains the loss, bounds on the probability of a correct guess between two neighbouring inputs (see
`guess_probability`), the claims, the versions and the command.
"""

import base64
import hashlib
import html
import io
import json
import math
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
import xarray as xr

from jaxdp.audit.checks import native
from jaxdp.comparisons import tables
from jaxdp.comparisons._compare import METRICS
from jaxdp.comparisons._comparison import Comparison, is_against_rounds
from jaxdp.core import Guarantee
from jaxdp.simulation import open as open_store
from jaxdp.simulation.store.provenance import provenance
from jaxdp.validation import check_choice

STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}"
    "svg{max-width:100%;height:auto}code{background:#f4f4f4;padding:.1em .3em;overflow-wrap:anywhere}"
)
SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"


def report_store(
    store: Annotated[Path, typer.Argument(help="A store that `compare` or `sweep` wrote.")],
    page: Annotated[Path, typer.Option("--out", help="The new HTML file.")],
    metric: Annotated[
        str | None, typer.Option(help="The output to report; by default the regret.", show_default=False)
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget that you chose.", show_default=False)] = None,
    audit: Annotated[
        Path | None, typer.Option(help="A file of `audit --json`; rows belong to learners of the same name and unit.")
    ] = None,
    best: Annotated[str, typer.Option(help="Whether the least or the largest values are good.")] = "least",
    unpaired: Annotated[
        list[str] | None,
        typer.Option(help="A learner that was played by counts. Repeat for several.", show_default=False),
    ] = None,
) -> None:
    """Writes a store's comparison to one HTML file, with losses, privacy claims and versions.

    For each claim, the file bounds the probability that an adversary guesses correctly whether one unit of data was
    replaced.
    """
    if page.exists():
        raise ValueError(f"out must be a new file, got {page}, which exists; choose another name")
    rows = [] if audit is None else read_audit(audit)
    command = shlex.join(["python", "-m", "jaxdp", *sys.argv[1:]])
    text = write_report(
        open_store(store),
        metric=metric,
        epsilon=epsilon,
        audit=rows,
        command=command,
        best=best,
        unpaired=unpaired or (),
    )
    page.write_bytes(text.encode(errors="backslashreplace"))  # names of files in the command may not be UTF-8
    typer.echo(f"wrote {page}")


def write_report(
    dataset: xr.Dataset,
    *,
    metric: str | None = None,
    epsilon: float | None = None,
    audit: Sequence[Mapping[str, Any]] = (),
    command: str = "",
    best: str = "least",
    unpaired: Sequence[str] = (),
) -> str:
    """Formats a comparison as an HTML page, which loads no resources and runs no scripts.

    All names in the page are escaped.

    Args:
        dataset: the results of `compare` without a list of horizons, or of a sweep with the axis "epsilon". The sweep
            may also have the axis "unit", and one of the axes "learner" and "estimator".
        metric: the output to compare. It may have the dimensions learner or estimator, unit, epsilon, seed and round,
            but no others. None chooses the first of pseudo_regret, regret and dynamic_regret that is such an output, or
            else the dataset's first such output.
        epsilon: one of the dataset's budgets. A figure against epsilon marks it if it is finite, and the table of
            guesses has only this budget. With None, the figure marks no budget and the table has all budgets.
        audit: rows of `python -m jaxdp audit --json`. A row belongs to a claim if it has the name of the claim's
            learner or estimator, the claim's privacy unit, and the claimed number (such as epsilon) at a delta that is
            not smaller. If several rows belong to a claim, the last one is shown. If the dataset has units, a row's
            name may include the unit, such as "ucb per person". A row without a privacy unit is about a round, unless
            its name ends in "per person".
        command: the command that wrote the page; "" leaves it out.
        best: "least" if small values of the metric are good, or "largest" if large values are good.
        unpaired: names of the learners that were simulated by counts, as in `Comparison.unpaired`. A dataset does not
            record which learners were simulated by counts.

    Raises:
        ValueError: if the dataset lacks the dimension epsilon, the metric, the given epsilon or an unpaired learner; if
            best is neither "least" nor "largest"; if every output, or the metric, has a dimension that is not among
            learner or estimator, unit, epsilon, seed and round; if `Comparison.not_worse` raises; or if the dataset was
            not returned by `compare` or `sweep`.
    """
    comparison = _comparison(dataset, metric, best, tuple(unpaired))
    budgets = dataset["epsilon"].values.tolist()
    if epsilon is not None and epsilon not in budgets:
        raise ValueError(f"epsilon must be one of {', '.join(f'{budget:g}' for budget in budgets)}, got {epsilon:g}")
    record = provenance(dataset)
    axis, marked = ("rounds", None) if is_against_rounds(dataset[comparison.metric]) else ("ε", epsilon)
    sections = [
        (f"Loss against {axis}", _figure(comparison, marked) + comparison._repr_html_()),
        ("What ε means", _odds_table(record.points, audit, comparison.along, epsilon)),
        ("Claims", _claims_table(record.points, comparison.along)),
        ("How it was computed", _origin(record.record, command)),
    ]
    body = "".join(f"<h2>{html.escape(title)}</h2>{content}" for title, content in sections)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
        f"<title>jaxdp report</title><style>{STYLE}</style></head>"
        f"<body><h1>The cost of privacy</h1>{body}</body></html>\n"
    )


def read_audit(path: Path) -> list[dict[str, Any]]:
    """Reads the rows of a file that `python -m jaxdp audit --json` wrote."""
    try:
        rows = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"audit must be a file of `jaxdp audit --json`, got {path}: {error}") from error
    rows = rows.get("rows", rows) if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "lower_bound" in row for row in rows):
        raise ValueError(f"audit must be a file of `jaxdp audit --json`, got {path}, which has no rows with bounds")
    return rows


def guess_probability(claim: Guarantee) -> float:
    """Returns a bound on the probability that anybody guesses a fair coin correctly from a private output.

    The coin decides between two neighbouring inputs. (epsilon, delta)-DP bounds the probability by (e^epsilon + delta)
    / (1 + e^epsilon). A zCDP or Gaussian claim implies such a bound for each delta; this function returns the smallest
    bound over 200 values of delta. The claim's numerical delta is added to delta; None counts as 0.

    Examples:
        >>> label = {"trust_model": "local", "privacy_unit": "one label", "argument": "randomized response"}
        >>> round(guess_probability(Guarantee.pure(1.0, **label)), 3)
        0.731
    """
    deltas = [claim.delta] if claim.kind in ("pure", "approximate") else np.logspace(-12, -0.01, 200).tolist()
    bounds = []
    for delta in deltas:
        epsilon = claim.epsilon_at(delta)
        advantage = math.tanh(epsilon / 2) if epsilon < math.inf else 1.0
        whole_delta = min(1.0, delta + (claim.numerical_delta or 0.0))
        bounds.append((1 + advantage) / 2 + whole_delta * (1 - advantage) / 2)
    return min(bounds)


def _comparison(dataset: xr.Dataset, metric: str | None, best: str, unpaired: tuple[str, ...]) -> Comparison:
    """Returns the comparison of one output of a dataset; None selects the first regret, or else the first output."""
    check_choice("best", best, ("least", "largest"))
    along = next((name for name in ("learner", "estimator") if name in dataset.dims), None)
    if along is None:
        along = "learner"
        name = next(iter(provenance(dataset).points[0].guarantees))
        dataset = dataset.expand_dims({along: [name]})
    scalars = tuple(
        str(name) for name in dataset if {*dataset[name].dims} <= {along, "unit", "epsilon", "seed", "round"}
    )
    if "epsilon" not in dataset.dims or not scalars:
        raise ValueError(
            f"dataset must have the dimension epsilon, and an output with no dimensions other than {along}, "
            f"unit, epsilon, seed and round, got {dict(dataset.sizes)}"
        )
    chosen = next((name for name in METRICS if name in scalars), scalars[0]) if metric is None else metric
    names = tuple(map(str, dataset[along].values))
    for name in unpaired:
        check_choice("unpaired", name, names)
    return Comparison(dataset.load(), check_choice("metric", chosen, scalars), best, along, unpaired)


def _figure(comparison: Comparison, epsilon: float | None) -> str:
    """Draws the figure of a comparison as SVG, with a line at `epsilon` if it is finite.

    The SVG has no styles, links, scripts or text elements; letters are paths.
    """
    import matplotlib as mpl

    from jaxdp.plotting.positions import positions_apart

    with mpl.rc_context({"svg.fonttype": "path"}):
        ax = comparison.plot()
        if epsilon is not None and math.isfinite(epsilon):
            ax.axvline(positions_apart(ax).get(epsilon, epsilon), color="black", linestyle=":", linewidth=1)
        file = io.BytesIO()
        figure: Any = ax.figure
        figure.savefig(file, format="svg", metadata={"Date": None})
    return plain_svg(file.getvalue())


def plain_svg(text: bytes) -> str:
    """Reduces an SVG from Matplotlib to shapes, groups, definitions and titles, and turns styles into attributes.

    Attributes that handle events, and attributes that link to anything outside the SVG, are removed.
    """
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    root = ET.fromstring(text)  # this drops comments
    allowed = {f"{{{SVG}}}{name}" for name in ("svg", "g", "defs", "path", "use", "clipPath", "rect", "title")}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag not in allowed:
                parent.remove(child)
    for element in root.iter():
        style = element.attrib.pop("style", "")
        for part in filter(str.strip, style.split(";")):
            name, _, value = part.partition(":")
            element.set(name.strip(), value.strip())
        for name in list(element.attrib):
            is_link = name.endswith("href") and not element.attrib[name].startswith("#")
            if is_link or name.lower().startswith("on"):
                del element.attrib[name]
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")
    root.set("role", "img")
    return ET.tostring(root, encoding="unicode")


class ClaimRow(NamedTuple):
    """A claim at a grid point of a sweep.

    Attributes:
        learner: name of the learner or estimator.
        unit: label on the axis "unit"; empty if the sweep has no such axis.
        epsilon: the grid point's budget; infinity if the sweep has no parameter epsilon.
        claim: the claim.
    """

    learner: str
    unit: str
    epsilon: float
    claim: Guarantee

    @property
    def name(self) -> str:
        """The learner's name, with the unit if the sweep has units, as "ucb per person"."""
        return f"{self.learner} per {self.unit}" if self.unit else self.learner

    def attack(self, audit: Sequence[Mapping[str, Any]]) -> str:
        """Formats the bound in the last audit row that attacks this claim; says "not attacked" if there is none."""
        rows = [row for row in audit if self._has_name_of(row)]
        same = [row for row in rows if self._has_budget_of(row)]
        if not same:
            return "not attacked at this budget" if rows else "not attacked"
        bound, claimed = float(same[-1]["lower_bound"]), float(same[-1]["claimed"])
        return f"{same[-1]['currency']} ≥ {bound:.3g} of {claimed:g}"

    def _has_budget_of(self, row: Mapping[str, Any]) -> bool:
        """Returns whether an audit row attacked the claim's number, at the claim's delta or at a larger delta."""
        currency, claimed, delta = native(self.claim)
        is_same = row["currency"] == currency and math.isclose(float(row["claimed"]), claimed, rel_tol=1e-6)
        return is_same and float(row.get("delta", delta)) >= delta * (1 - 1e-6)

    def _has_name_of(self, row: Mapping[str, Any]) -> bool:
        """Returns whether an audit row has the claim's name and privacy unit."""
        claim_unit = "person" if self.claim.unit == "person" else "round"
        # A run with the unit "round" may have a second claim, for a person, at a larger budget. Attacks on a learner
        # with the unit "person" do not attack this second claim.
        names = {self.name, self.learner} if self.unit in ("", claim_unit) else {self.name}
        unit = row.get("privacy_unit")
        if not unit and claim_unit == "person":  # a row without a unit is about a round, unless its name says otherwise
            names = {self.name} if self.unit == "person" else set()
        return row.get("name") in names and unit in (None, "", self.claim.privacy_unit)


def _claim_rows(points: Sequence[Any], along: str) -> list[ClaimRow]:
    """Returns the claims of the sweep's grid points."""
    return [
        ClaimRow(
            learner=str((point.static | point.values).get(along, algorithm)),
            unit=point.static.get("unit", ""),
            epsilon=float((point.static | point.values).get("epsilon", math.inf)),
            claim=claim,
        )
        for point in points
        for algorithm, claim in point.guarantees.items()
    ]


def _odds_table(points: Sequence[Any], audit: Sequence[Mapping[str, Any]], along: str, chosen: float | None) -> str:
    """Formats a table with each claim's bound on the probability of a correct guess, and the bound from an attack.

    Only claims at the epsilon `chosen` are shown; None shows all claims.
    """
    rows = [["", "ε", "protects", "a guess is right with at most", "shown by attack"]]
    for claim_row in _claim_rows(points, along):
        claim = claim_row.claim
        if chosen is not None and claim_row.epsilon != chosen:
            continue
        odds = f"{guess_probability(claim):.1%}" if claim.is_private else "100% (no claim)"
        bound = claim_row.attack(audit)
        rows.append([claim_row.name, tables.format_budget(claim_row.epsilon), claim.privacy_unit, odds, bound])
    note = (
        "A fair coin decides whether one unit of data is kept or replaced. If the claim holds, anybody who sees the "
        "output guesses the coin rightly with at most this probability; without the output, with 50%. An attack shows "
        "that the true privacy cost is at least its bound. No attack proves that a claim holds."
    )
    return _table(rows) + f"<p>{html.escape(note)}</p>"


def _claims_table(points: Sequence[Any], along: str) -> str:
    rows = [["", "ε", "claim", "because"]]
    rows += [
        [row.name, tables.format_budget(row.epsilon), str(row.claim), row.claim.argument]
        for row in _claim_rows(points, along)
    ]
    return _table(rows)


def _origin(record: Mapping[str, Any], command: str) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items())
    facts = [
        ["seeds", str(record.get("num_seeds", ""))],
        ["versions", versions],
        ["devices", str(record.get("devices", ""))],
    ]
    line = f"<p>Written by <code>{html.escape(command)}</code></p>" if command else ""
    return _table([["", ""], *facts]) + line


def _table(rows: Sequence[Sequence[str]]) -> str:
    return tables.html_table([[html.escape(cell) for cell in row] for row in rows])
