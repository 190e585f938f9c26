"""Measures rows of the benchmarks: `make bench`, or `make bench ONLY="rucb; ucb"` for single rows.

Run as `python benchmarks/run.py [ROW ...]`, with names of rows, or their parts up to a comma; `--list` prints them.
Without names it measures the rows of the table, which is meant to take under ten minutes. Every row is measured in the
same way: its own call and its peers' take turns, and medians count (`benchmarks/measure.py`). Columns:

- ns: of a unit of work on one core: wall time x cores / units. A unit is a lane's round, where nothing else is named.
- peer: how many times longer the row's first peer takes in the same turns: a scalar Numba loop for each lane, on the
  same cores, unless it is named. Other peers are printed below the row.
- plain: how many times longer `jit(vmap(run))` takes in one call, for the same learner by rounds, with JAX's own keys
  and on the same cores; over at most 200 rounds, its first ones included.
- compiling: seconds, of one program.
- operations: of a lane's plain round, as XLA's cost analysis counts them (`programs.operations`). Blocks and counts
  have the number of their plain rounds.
- times longer: ns, compared with so many additions and multiplications of float32 on one core, from its nearest cache,
  at the rate that is measured in the same run.
- floor (with --floors), GPU (if there is one): how many times longer these take; below 1 they are faster.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import CLOCKS, REPEATS, machine, measure
from benchmarks.rows import all_rows, select_rows
from benchmarks.table import OWN_COLUMNS, RECORD, as_markdown
from jaxdp.simulation.store.processor import cores, host_processor
from jaxdp.simulation.store.provenance import versions


def measured(names: list[str], *, quick: bool, floors: bool, repeats: int, clock: str) -> Iterator[dict[str, Any]]:
    """Yields the record of each row."""
    for name, row in select_rows(names).items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the horizon .* too short")  # of plain programs and tries
            warnings.filterwarnings("ignore", module="sklearn")
            case = row.prepare(quick=quick, floors=floors)
            yield {"name": name, **measure(case, repeats, clock)}


def describe(record: dict[str, Any]) -> str:
    """Returns a row's line, and a line for each further peer."""
    low, high = record["ns_spread"]
    lines = [f"{as_markdown([record]).splitlines()[-1]} ns from {low:.3g} to {high:.3g}"]
    others = [name for name in record["ratios"] if name not in (record["peer"], *OWN_COLUMNS)]
    return "\n".join([*lines, *(f"    {name}: {record['ratios'][name]:.2f}x" for name in others)])


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns 2 if a name is no row's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows; semicolons separate several names")
    parser.add_argument("--list", action="store_true", help="print the names of all rows; * marks those of the table")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one turn, to test that rows run")
    parser.add_argument("--floors", action="store_true", help="also measure floors")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="turns")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="processor: seconds of all cores, for busy machines"
    )
    parser.add_argument("--out", type=Path, default=RECORD, help="file of the record")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(f"{'*' if row.in_table else ' '} {name}" for name, row in all_rows().items()))
        return 0
    names = [name.strip() for text in given.rows for name in text.split(";") if name.strip()]
    repeats = 1 if given.quick else given.repeats
    try:
        select_rows(names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    start, rows = time.perf_counter(), []
    print(machine())
    for record in measured(names, quick=given.quick, floors=given.floors, repeats=repeats, clock=given.clock):
        rows.append(record)
        print(describe(record), flush=True)
        whole = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "machine": machine(),
            "versions": versions(),
            "processor": host_processor(),
            "cores": cores(),
            "device": f"{jax.devices()[0].platform}: {jax.devices()[0].device_kind}",
            "repeats": repeats,
            "load_at_the_end": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "seconds": time.perf_counter() - start,
            "rows": rows,
        }
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(whole, indent=1))
    print(f"\n{as_markdown(rows)}\n\n{given.out}: {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
