"""Shows an algorithm's rows of the committed table of speeds on its page."""

import functools
from collections.abc import Collection
from pathlib import Path

from site_pages.docstrings import escape
from site_pages.rst import heading, table

PAGE = Path(__file__).parents[1] / "project" / "benchmarks.md"  # `benchmarks/table.py` writes its table
HEADS = ("row", "size", "ns", "peer", "plain", "compiling")


@functools.cache
def rows(path: Path = PAGE) -> dict[str, list[str]]:
    """Returns the cells of the table of speeds, for the columns `HEADS`, by the row's name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {' | '.join(HEADS)} |"))
    found: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")][: len(HEADS)]
        found[cells[0]] = cells
    return found


def speed_section(names: Collection[str]) -> list[str]:
    """Returns the section of an algorithm's page with its measured speeds; empty if no row measures it.

    Args:
        names: the algorithm's entries in the registry. A row's name begins with an entry, up to a comma.
    """
    shown = [cells for name, cells in rows().items() if name.partition(",")[0] in names]
    if not shown:
        return []
    heads = ["row", "lanes x rounds", "ns a round", "peer", "plain JAX", "compiling"]
    return [
        *heading("Speed", "-"),
        "Nanoseconds of a round of one run on one core, how many times longer a scalar Numba loop (peer) and the plain",
        "JAX program take, and seconds of compiling; :doc:`benchmarks </project/benchmarks>` has the machine and the",
        "method.",
        "",
        *table(heads, [[escape(cell) for cell in cells] for cells in shown], "34 20 14 10 10 12"),
    ]
