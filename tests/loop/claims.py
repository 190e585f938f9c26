"""Every registered entry's claim at its registered values, in a file for reviews of changes.

Usage: `python tests/loop/claims.py` renews `claims.json` beside it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxdp.registry.registered import TABLES, claim_of, user_entries

FILE = Path(__file__).with_name("claims.json")
COMMAND = "python tests/loop/claims.py"
DIGITS = 9  # of a number in the file
SAME = 1e-6  # relative difference of numbers that are the same: some claims are rounded to float32, some optimised
Claims = dict[str, dict[str, Any]]


def claims_now() -> Claims:
    """Returns the claim of each of the library's entries, as `Guarantee.to_dict` gives it, with rounded numbers."""
    entries = {name: entry for _, table in TABLES.values() for name, entry in table.items()}
    mine = user_entries()
    return {name: rounded(claim_of(entry).to_dict()) for name, entry in entries.items() if name not in mine}


def claims_in_file() -> Claims:
    """Returns the claims that the file has."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def as_text(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the claims as JSON, an entry each line."""
    lines = [f"{json.dumps(name)}: {json.dumps(claim, ensure_ascii=False)}" for name, claim in sorted(claims.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def differences(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each field of a claim that differs, and for each entry that only one side has.

    Args:
        old: claims of the file, by entry.
        new: claims of today.
    """
    place = f"tests/loop/{FILE.name}"
    renew = f"if this is meant, renew the file: {COMMAND}"
    for name in sorted({*old, *new}):
        if name not in old:
            yield f"{name}: its claim is not in {place}; {renew}"
        elif name not in new:
            yield f"{name}: {place} has its claim, and no entry has this name; {renew}"
        else:
            was, is_now = old[name], new[name]
            for field in [*was, *(field for field in is_now if field not in was)]:
                if not _same(was.get(field), is_now.get(field)):
                    values = f"was {was.get(field)!r} in {place} and is {is_now.get(field)!r} now"
                    yield f"{name}: {field} of its claim {values}; {renew}"


def rounded(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a claim with its numbers as the file has them."""
    return {key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for key, value in claim.items()}


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=SAME)
    return first == second


if __name__ == "__main__":
    FILE.write_text(as_text(claims_now()), encoding="utf-8")
