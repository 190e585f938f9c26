"""All rows of the benchmarks. Each module here has its own in `ROWS`; rows of real-valued central data come first."""

import importlib
import pkgutil
from functools import cache

from benchmarks.row import LearnerRow, Row

FIRST = "real_data"


@cache
def all_rows() -> dict[str, LearnerRow | Row]:
    """Returns all rows by name.

    Raises:
        ValueError: if two have one name.
    """
    modules = sorted((module.name for module in pkgutil.iter_modules(__path__)), key=lambda name: (name != FIRST, name))
    rows = [row for name in modules for row in importlib.import_module(f"{__name__}.{name}").ROWS]
    by_name = {row.name: row for row in rows}
    if len(by_name) < len(rows):
        names = [row.name for row in rows]
        raise ValueError(
            f"rows must have different names, got twice: {sorted({n for n in names if names.count(n) > 1})}"
        )
    return by_name


def select_rows(names: list[str]) -> dict[str, LearnerRow | Row]:
    """Returns rows by their names, or by the beginnings of names up to a comma; without names, the table's rows.

    Raises:
        ValueError: if a name selects no row.
    """
    rows = all_rows()
    if not names:
        return {name: row for name, row in rows.items() if row.in_table}
    selected = {}
    for wanted in names:
        matching = {name: row for name, row in rows.items() if f"{name},".startswith(f"{wanted},")}
        if not matching:
            raise ValueError(f"row must be one of those that --list prints, or its part up to a comma, got {wanted!r}")
        selected |= matching
    return selected
