"""Parses rows of comparisons (winner, loser, tie), and rows of battles.

A battle is a comparison of two models, in the format in which arenas publish battles.
"""

import json
from collections import Counter

from jaxdp.preferences.files import file_error, short_repr, utf8_text

BATTLE_COLUMNS = ("model_a", "model_b", "winner")
_COLUMNS = ("winner", "loser", "weight", "tie")
_TIES = ("tie", "tie (bothbad)", "both_bad")
_YES, _NO = ("1", "true"), ("", "0", "false")


def is_of_battles(columns: list[str]) -> bool:
    """Returns whether a table with these columns contains battles: one of its columns is `model_a` or `model_b`."""
    return "model_a" in columns or "model_b" in columns


def allows_ties(columns: list[str]) -> bool:
    """Returns whether a table with these columns can contain ties.

    The result is public, but which rows are ties is private.
    """
    return is_of_battles(columns) or "tie" in columns


def check_columns(header: list[str]) -> None:
    """Raises a ValueError if the columns do not form a table of comparisons; the message has no file and no line."""
    if duplicated := sorted(column for column, count in Counter(header).items() if count > 1):
        raise ValueError(f"duplicated columns {short_repr(duplicated)}")
    needed = BATTLE_COLUMNS if is_of_battles(header) else _COLUMNS[:2]
    if missing := [column for column in needed if column not in header]:
        raise ValueError(f"missing columns {missing}, got {short_repr(header)}")
    if not is_of_battles(header) and (unknown := [column for column in header if column not in _COLUMNS]):
        raise ValueError(f"unknown columns {short_repr(unknown)}")


def outcome(fields: dict[str, str]) -> tuple[str, str, bool]:
    """Returns (winner, loser, whether they tied) of a row; `fields` maps columns to the row's texts.

    Raises a ValueError if a field other than the weight is wrong; its message has no file and no line.
    """
    if "model_a" in fields:
        names, winner = ("model_a", "model_b"), fields["winner"]
        if winner not in (*names, *_TIES):
            raise ValueError(f"winner must be one of {', '.join((*names, *_TIES))}, got {short_repr(winner)}")
        names, is_tie = names[::-1] if winner == "model_b" else names, winner in _TIES
    else:
        names, text = ("winner", "loser"), fields.get("tie", "").lower()
        if text not in (*_YES, *_NO):
            raise ValueError(f"tie must be 0 or 1, true or false, got {short_repr(fields['tie'])}")
        is_tie = text in _YES
    for column in names:
        if not fields[column]:
            raise ValueError(f"{column} is empty")
    first, second = (fields[column] for column in names)
    if first == second:
        raise ValueError(f"{names[0]} and {names[1]} are both {short_repr(first)}")
    return first, second, is_tie


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Returns the (name, value) pairs of a JSON object as a dict; raises a ValueError if a name has duplicates.

    `json` itself would keep the last of several equal names.
    """
    if duplicated := sorted(name for name, count in Counter(name for name, _ in pairs).items() if count > 1):
        raise ValueError(f"duplicated names {short_repr(duplicated)}")
    return dict(pairs)


def json_rows(data: bytes, name: str) -> list[tuple[str, list[str], list[str], int]]:
    """Returns the rows of a JSON lines file, each as ("line 3", columns, fields, 1).

    Each line of the file contains one object; blank lines are ignored. For battles, all columns except `BATTLE_COLUMNS`
    and `weight` are left out. The 1 is the row's count, because no rows are merged. Raises a ValueError if a line is
    malformed or the file is empty.
    """
    rows = []
    for number, line in enumerate(utf8_text(data, name).split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            members = json.loads(line, object_pairs_hook=_unique_members)
        except (ValueError, RecursionError) as error:
            raise file_error(name, where, f"not a JSON object ({short_repr(str(error))})") from None
        if not isinstance(members, dict):
            raise file_error(name, where, f"not a JSON object, got {short_repr(members)}")
        try:
            check_columns(list(members))
        except ValueError as error:
            raise file_error(name, where, str(error)) from None
        if is_of_battles(list(members)):
            members = {column: members[column] for column in (*BATTLE_COLUMNS, "weight") if column in members}
        for column, value in members.items():
            is_name = column not in ("weight", "tie")
            if not isinstance(value, str | int | float) or value != value or (is_name and isinstance(value, bool)):
                raise file_error(name, where, f"{column} must be text or a number, got {short_repr(value)}")
        rows.append((where, list(members), [str(value) for value in members.values()], 1))
    if not rows:
        raise file_error(name, "line 1", "the file is empty")
    return rows
