"""Makes docs/project/papers_reproduced.md from the records beside this file: `python benchmarks/papers/page.py`.

A record is the results.json of `python benchmarks/papers/run.py PAPER`, kept as benchmarks/papers/records/PAPER.json.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.papers import PAPERS
from benchmarks.papers.rows import AGREES, DIFFERS, FULL, NOT_MEASURED, UNDECIDED

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "project" / "papers_reproduced.md"
VERDICTS = (AGREES, DIFFERS, UNDECIDED, NOT_MEASURED)

INTRODUCTION = f"""# Papers reproduced

This page compares each table, figure and theorem of the four source papers with measurements: the statement, the
measurement, and whether the two agree. `python benchmarks/papers/run.py PAPER`, in a checkout of the repository,
measures a paper again and prints the same rows; `--full` has {FULL} times the repetitions.
`benchmarks/papers/page.py` writes this page from records of such runs; do not edit it.

How to read the rows:

- **Verdicts.** *Agrees*: all numbers of the 95% interval agree with the claim. *Differs*: none does. *Undecided*: some
  do, or the rule says "else undecided", because the measurement could not contradict the claim. *Not measured* has a
  reason.
- **Intervals.** The confidence is of each number alone. The largest or smallest of several numbers has no correction
  for the choice. A number without an interval is exact, or is called a bound. It comes from a formula, a distribution
  by enumeration or quadrature, the farthest two users by optimisation, or a grey box, which measures how far one
  person moves the data.
- **Audits and proofs.** An audit's number is a lower bound, so it contradicts a claim or leaves it undecided. A proved
  number is an upper bound, so it confirms a claim or leaves it undecided.
- **Unknown constants.** If a bound is known up to a constant, its slope is compared, on the named grid. Agreement means
  that growth at these sizes is as claimed, and not that the bound is proved. A difference may mean that the sizes are
  too small for a limit.
- **Loose bounds.** Only a number above a claimed bound contradicts it. If numbers stay far below, the note says that
  the bound is not tight, and by how much. If a bound is loose by a large factor, the row could hardly have differed,
  and its agreement says little.
- **Errata.** A corrected row has the correct form, and the measurement of that form.
"""


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """Writes the page in Markdown.

    Args:
        records: of `reproduced`, one a paper at most.

    Returns:
        Markdown: a table of verdicts, and a section for each paper with its claims and its errata.

    Raises:
        ValueError: if a paper is unknown, or there twice.
    """
    names = [record["paper"] for record in records]
    for name in names:
        if name not in PAPERS or names.count(name) > 1:
            raise ValueError(f"records must be of different papers of {', '.join(PAPERS)}, got {names}")
    parts = [INTRODUCTION, _counts(records), *(_paper(record) for record in records)]
    return "\n".join(parts).rstrip() + "\n"


def _counts(records: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| paper | rows | " + " | ".join(VERDICTS) + " | errata shown |", "|---" * (len(VERDICTS) + 3) + "|"]
    for record in records:
        verdicts = [row["verdict"] for row in record["rows"]]
        shown = sum(row["verdict"] == DIFFERS and row["corrected_verdict"] == AGREES for row in record["rows"])
        cells = [record["paper"], len(verdicts), *(verdicts.count(each) for each in VERDICTS), shown]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, ""])


def _paper(record: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    full = " --full" if record["size"] == "full" else ""
    head = (
        f"## {record['paper']}\n\n{record['citation']}.\n\n`python benchmarks/papers/run.py {record['paper']}{full}`, "
        f"seed {record['seed']}: {record['processor_seconds']:.0f} s of processor time, {record['seconds']:.0f} s by "
        f"the clock ({record['machine']}; {versions}).\n"
    )
    claims = [row for row in record["rows"] if not row["corrected"]]
    errata = [row for row in record["rows"] if row["corrected"]]
    return "\n".join([head, _cards(_claims(claims)), "### Errata\n", _cards(_errata(errata))])


def _cards(table: str) -> str:
    """Marks a table: the site shows each row as a card, with buttons that filter by verdict."""
    return f":::{{container}} cards\n\n{table}\n:::\n"


def _claims(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| statement | claim | measured | found | verdict |", "|---|---|---|---|---|"]
    for row in rows:
        notes = f"**{row['verdict']}**" + (f". {row['why']}" if row["why"] else "")
        cells = [f"**{row['number']}**", row["claim"], row["measured"] or "nothing", _found(row["numbers"]), notes]
        lines.append(_cells(cells))
    return "\n".join([*lines, ""])


def _errata(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| place | claim | shown by | found | corrected form | found of it |", "|---|---|---|---|---|---|"]
    for row in rows:
        own = [each for each in row["numbers"] if each["of"] != "corrected"]
        mended = [each for each in row["numbers"] if each["of"] == "corrected"]
        verdict = f"{_found(own)}<br>**{row['verdict']}**"
        right = "<br>".join(filter(None, [_found(mended), f"**{row['corrected_verdict'] or 'no number of its own'}**"]))
        corrected = f"{row['corrected']} {row['why']}".strip()
        lines.append(_cells([f"**{row['number']}**", row["claim"], row["measured"], verdict, corrected, right]))
    return "\n".join([*lines, ""])


def _found(numbers: Sequence[Mapping[str, Any]]) -> str:
    texts = []
    for each in numbers:
        wanted = f" (agrees if {each['rule']})" if each["rule"] else ""
        texts.append(f"{each['measure']}: {each['text']}{wanted}")
    return "<br>".join(texts)


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Escapes text for Markdown: no cell ends within it, and only text between two asterisks is emphasis."""
    parts = text.split("**")
    for old, new in (("|", "\\|"), ("_", "\\_"), ("*", "\\*"), ("~", "\\~"), ("$", "\\$"), ("<=", "≤"), (">=", "≥")):
        parts = [part.replace(old, new) for part in parts]
    return "**".join(parts)


def committed_page() -> str:
    """Returns the page of the records that are kept beside this file."""
    files = [HERE / "records" / f"{name}.json" for name in PAPERS]
    return page([json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()])


if __name__ == "__main__":
    PAGE.write_text(committed_page(), encoding="utf-8")
