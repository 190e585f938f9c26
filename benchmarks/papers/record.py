"""Measures a paper's rows, prints each as it is done, and writes a record of all."""

import csv
import importlib.metadata
import json
import math
import os
import platform
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers import PAPERS, rows_of
from benchmarks.papers.rows import (
    DIFFERS,
    FULL,
    NOT_MEASURED,
    UNDECIDED,
    Interval,
    Measures,
    Row,
    Rule,
    Size,
    verdict,
)
from jaxdp.validation import did_you_mean

WIDTH = 80  # of a terminal
INDENT = "  "
VERSIONS = ("jaxdp", "jax", "numpy", "scipy")
COLUMNS = ("number", "verdict", "measure", "value", "low", "high", "rule", "of", "claim", "corrected", "why", "seconds")

Record = dict[str, Any]


def listed() -> str:
    """Lists the papers, with the time that each takes."""
    lines = [
        "Papers whose statements are measured. Time is of processor time, an estimate for a first run, which compiles; "
        f"with its programs in the cache a run takes a third of it. --full has {FULL} times the repetitions."
    ]
    for name, paper in PAPERS.items():
        count = len(rows_of(name))
        lines.append(
            f"{name}: {paper.citation}. {count} rows, about {paper.minutes} min; --full at most {FULL * paper.minutes}."
        )
    return "\n".join("\n".join(textwrap.wrap(line, WIDTH, subsequent_indent=INDENT)) for line in lines)


def chosen(name: str, only: Sequence[str]) -> tuple[Row, ...]:
    """Returns the rows of a paper with one of these texts in their number, in any case; all rows if there is no text.

    Raises:
        ValueError: if there is no such paper, or a text is in no number.
    """
    rows = rows_of(name)
    for text in only:
        if not text.strip():
            raise ValueError(f"row must be a text that numbers of rows have, got {text!r}")
        if not any(text.lower() in each.number.lower() for each in rows):
            numbers = [each.number for each in rows]
            raise ValueError(f"row must be in one of {'; '.join(numbers)}, got {text!r}{did_you_mean(text, numbers)}")
    return tuple(each for each in rows if not only or any(text.lower() in each.number.lower() for text in only))


def reproduced(name: str, rows: Sequence[Row], size: Size, tell: Callable[[str], object]) -> Record:
    """Measures rows one after the other.

    Args:
        name: of the paper.
        rows: of it.
        size: how much to simulate.
        tell: called with the text of each row as it is done.

    Returns:
        A record as JSON has it: `paper`, `citation`, `size`, `seed`, `machine`, `versions`, `seconds` and
        `processor_seconds`, and `rows`, one for each of `rows`.
    """
    began, worked, done = time.perf_counter(), time.process_time(), []
    for row in rows:
        start = time.process_time()
        found = row.measure(size) if row.measure else {}
        done.append(make_record(row, found, time.process_time() - start))
        tell(told(done[-1]))
    return {
        "paper": name,
        "citation": PAPERS[name].citation,
        "size": size.name,
        "seed": size.seed,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {each: importlib.metadata.version(each) for each in VERSIONS},
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - worked, 1),
        "rows": done,
    }


def make_record(row: Row, found: Measures, seconds: float = 0.0) -> Record:
    """Makes the record of a row's measures, as JSON has it."""
    return {
        "number": row.number,
        "claim": row.claim,
        "measured": row.measured,
        "verdict": verdict(row.rules, found),
        "corrected": row.corrected,
        "corrected_verdict": verdict(row.corrected_rules, found) if row.corrected_rules else "",
        "why": row.why,
        "seconds": round(seconds, 1),
        "numbers": [
            *(_number(name, found[name], rule, "claim") for name, rule in row.rules.items()),
            *(_number(name, found[name], rule, "corrected") for name, rule in row.corrected_rules.items()),
            *(_number(name, found[name], None, "") for name in _further(row, found)),
        ],
    }


def _further(row: Row, found: Measures) -> list[str]:
    """Returns the measures without a rule, unless the same measure serves another row, to which they may belong."""
    return [] if _shared(row) else [name for name in found if name not in {**row.rules, **row.corrected_rules}]


def _shared(row: Row) -> bool:
    """Returns whether the same measure serves another row of its paper, which reports its other numbers."""
    name = next((name for name in PAPERS if row in rows_of(name)), None)
    return name is not None and sum(each.measure == row.measure for each in rows_of(name)) > 1


def _number(name: str, found: Interval, rule: Rule | None, of: str) -> Record:
    finite = {limit: value if math.isfinite(value) else None for limit, value in found._asdict().items()}
    judged = "" if rule is None else rule.judge(found)
    return {
        "measure": name,
        **finite,
        "text": str(found),
        "rule": "" if rule is None else str(rule),
        "of": of,
        "says": judged,
    }


def told(record: Record) -> str:
    """Formats a row for a terminal of 80 columns."""
    lines = [f"{record['number']}: {record['verdict'].upper()}" + _mended(record)]
    lines += _wrapped(record["claim"])
    for each in record["numbers"]:
        rule = f"; {'corrected form' if each['of'] == 'corrected' else 'claim'}: {each['rule']}" if each["rule"] else ""
        lines += _wrapped(f"{each['measure']}: {each['text']}{rule}", INDENT * 2)
    if record["corrected"]:
        lines += _wrapped(f"Corrected: {record['corrected']}")
    if record["why"] and record["verdict"] in (DIFFERS, UNDECIDED, NOT_MEASURED):
        lines += _wrapped(f"Why: {record['why']}")
    return "\n".join(lines) + "\n"


def _mended(record: Record) -> str:
    return f" (corrected form: {record['corrected_verdict']})" if record["corrected_verdict"] else ""


def _wrapped(text: str, indent: str = INDENT) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + INDENT)


def summary(record: Record) -> str:
    """Formats the last lines of a run: how many rows agree."""
    verdicts = [each["verdict"] for each in record["rows"]]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(sorted(verdicts)))
    text = (
        f"{record['paper']}, {record['size']} size, seed {record['seed']}: {counts}. "
        f"{record['processor_seconds']:.0f} s of processor time, {record['seconds']:.0f} s by the clock."
    )
    return "\n".join(textwrap.wrap(text, WIDTH))


def write(record: Record, folder: Path) -> tuple[Path, Path]:
    """Writes results.json, and results.csv with a line for each number."""
    data, table = folder / "results.json", folder / "results.csv"
    with data.open("x", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False, indent=1, allow_nan=False)
        file.write("\n")
    with table.open("x", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        for row in record["rows"]:
            for each in row["numbers"] or [{}]:
                writer.writerow({**row, **each})
    return data, table
