"""The table of speeds, as Markdown, and the page that shows it.

`python benchmarks/table.py [RECORD]` writes the section "Measured" of docs/project/benchmarks.md from a record of
`benchmarks/run.py`, by default .cache/bench.json.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RECORD = Path(".cache/bench.json")
PAGE = Path(__file__).parents[1] / "docs" / "project" / "benchmarks.md"
START, END = "<!-- written by benchmarks/table.py -->\n", "<!-- end -->\n"
HEADS = ("row", "size", "ns", "peer", "plain", "compiling", "operations", "times longer")
OWN_COLUMNS = ("plain", "GPU", "floor")


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table, with a column for a floor or a GPU if there is a figure of one."""
    more = [name for name in ("floor", "GPU") if any(name in row["ratios"] for row in rows)]
    lines = [f"| {' | '.join((*HEADS, *more))} |", "|---" * (len(HEADS) + len(more)) + "|"]
    lines += [f"| {' | '.join((*_cells(row), *(_ratio(row, name) for name in more)))} |" for row in rows]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> list[str]:
    compiling, count = row["compiling_seconds"], row.get("operations")
    longer = None if count is None else row["ns"] * 1e-9 / (count / row["operations_per_second_and_core"])
    return [
        row["name"],
        row["size"],
        f"{row['ns']:.3g}" if row["ns"] < 1e6 else f"{row['ns']:,.0f}",
        _peer(row),
        _ratio(row, "plain"),
        "-" if compiling is None else f"{compiling:.1f} s",
        "-" if count is None else f"{count:,.0f}",
        "-" if longer is None else f"{longer:.2g}x",
    ]


def _peer(row: Mapping[str, Any]) -> str:
    """Returns the ratio to the main peer, with its name unless it is Numba."""
    name = row["peer"]
    if name is None or name in OWN_COLUMNS:
        return "-"
    return _ratio(row, name) + ("" if name == "Numba" else f" {name}")


def _ratio(row: Mapping[str, Any], name: str) -> str:
    ratio = row["ratios"].get(name)
    return "-" if ratio is None else f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"


def _vectors(processor: str) -> str:
    """Returns the widest vector instructions of an x86 processor as text, or an empty text for other processors."""
    features = processor.split()
    widest = [name for name in ("avx512f", "avx2", "avx") if name in features][:1]
    return "".join(f", {'AVX-512' if name == 'avx512f' else f'{name.upper()} without AVX-512'}" for name in widest)


def section(record: Mapping[str, Any]) -> str:
    """Returns the page's section "Measured" for a record."""
    minutes, seconds = divmod(round(record["seconds"]), 60)
    clock, load = record["rows"][0]["clock"], record["load_at_the_end"]
    about = f"{record['machine']}{_vectors(record['processor'])}. {record['date'][:10]}, commit {record['commit']}: "
    about += f"{len(record['rows'])} rows in {minutes} min {seconds} s; "
    about += f"medians of {record['repeats']} turns by {clock} time"
    about += "." if load is None else f"; load at the end {load:.1f}."
    return f"{about}\n\n{as_markdown(record['rows'])}\n"


def write_page(page: Path, record: Mapping[str, Any]) -> None:
    """Replaces the section "Measured" of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"page must have lines {START.strip()!r} and {END.strip()!r}, got {page}")
    page.write_text(f"{before}{START}\n{section(record)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_page(PAGE, json.loads(Path(*(sys.argv[1:] or [RECORD])).read_text()))
