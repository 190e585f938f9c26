"""Tables of comparisons, and functions that read them. A table counts how often each item beat every other item."""

import csv
import importlib.resources
import io
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.preferences.battles import allows_ties, check_columns, is_of_battles, json_rows, outcome
from jaxdp.preferences.files import file_error, short_repr, utf8_text
from jaxdp.preferences.parquet import parquet_rows
from jaxdp.validation import refuse_masked

_MAX_WEIGHT = 2**53  # float64 cannot represent all larger integers
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)  # Decimal() also accepts digits of other scripts
_MAX_DESIGN_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class ComparisonTable:
    """The numbers of comparisons and of wins for each pair of items.

    Under label privacy the compared pairs and their numbers of comparisons are public, and wins and ties are private.
    Therefore the order of items and pairs depends neither on the order of lines in a file nor on who won.

    Attributes:
        items: sorted names; sorted as numbers if all names are numbers, otherwise as text.
        pairs: [num_pairs, 2] int32, the compared pairs as indices into items, with first < second; rows are sorted.
        wins: [num_pairs] int64, number of comparisons that the first item of the pair won; private.
        totals: [num_pairs] int64 >= 1, number of comparisons of the pair, including ties.
        ties: [num_pairs] int64, number of comparisons of the pair that ended in a tie; private. None if ties are
            impossible. Whether ties are possible is public.
    """

    items: tuple[str, ...]
    pairs: np.ndarray
    wins: np.ndarray
    totals: np.ndarray
    ties: np.ndarray | None = None

    @classmethod
    def from_arrays(cls, winner: Any, loser: Any, weight: Any = None, tie: Any = None) -> "ComparisonTable":
        """Builds a table from columns, which are NumPy arrays, lists, or pandas Series.

        The rules of `read_comparisons` apply: a file with the same columns gives the same table.

        Args:
            winner: [rows] names as text, or integers, which are converted to text. Categories are read as their values.
            loser: [rows] names, like winner.
            weight: [rows] integers >= 0, the number of comparisons that a row represents; None means 1 for each row.
            tie: [rows] bools, or 0 and 1: whether the two items tied, in which case either item may be in either
                column. None if ties are impossible.

        Returns:
            The table.

        Raises:
            ValueError: if a column is not one-dimensional or has masked entries, columns differ in length, there is no
                comparison, or a row is malformed. For a malformed row, the error names the argument and the row,
                counted from 0.

        Examples:
            >>> table = ComparisonTable.from_arrays(["b", "a", "b"], ["a", "b", "c"], weight=[2, 1, 1])
            >>> table.items, table.wins.tolist(), table.totals.tolist()
            (('a', 'b', 'c'), [1, 1], [3, 1])
        """
        columns = {"winner": _column("winner", winner), "loser": _column("loser", loser)}
        if weight is not None:
            columns["weight"] = _column("weight", weight)
        if tie is not None:
            columns["tie"] = _column("tie", tie)
        for name, column in columns.items():
            if len(column) != len(columns["winner"]):
                raise ValueError(
                    f"{name} must have as many rows as winner, {len(columns['winner'])}, got {len(column)}"
                )
        if not columns["winner"]:
            raise ValueError("winner must have at least one row, got none")
        first: dict[tuple[str, ...], list[int]] = {}  # maps a row's texts to its first index and its count
        for number, row in enumerate(zip(*columns.values(), strict=True)):
            first.setdefault(row, [number, 0])[1] += 1
        header = list(columns)
        return _tally(
            ((f"row {number}", header, list(row), times) for row, (number, times) in first.items()),
            "from_arrays",
            "the last row",
        )

    @property
    def num_comparisons(self) -> int:
        """The number of comparisons."""
        return sum(self.totals.tolist())

    def design(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns features and labels with one row for each comparison.

        Returns:
            features: [num_comparisons, num_items] float32, e_first - e_second. Features depend only on pairs and
                totals.
            labels: [num_comparisons] int32 in {0, 1}; 1 if the first item of the pair won. If ties are possible, labels
                are float32 in {0, 1/2, 1}; 1/2 is a tie, which counts as half a win for each item.

        Raises:
            ValueError: if the features would take more than 2 GiB.
        """
        num_items, num_bytes = len(self.items), 4 * self.num_comparisons * len(self.items)
        if num_bytes > _MAX_DESIGN_BYTES:
            raise ValueError(
                f"features of {self.num_comparisons} comparisons of {num_items} items would take {num_bytes} bytes, "
                f"more than {_MAX_DESIGN_BYTES}"
            )
        # Features are public under label privacy, so they must not reveal who won. Therefore rows are sorted by pair,
        # and the positive entry is the first item of the pair, not the winner. The rows of a pair are equal, so their
        # labels may have any order. Wins come first, so changing the outcome of one comparison changes one label, or
        # two labels by 1/2 each if the pair has ties and a win becomes a loss or a loss becomes a win.
        rows = np.arange(self.num_comparisons)
        features = np.zeros((len(rows), num_items), np.float32)
        features[rows, np.repeat(self.pairs[:, 0], self.totals)] = 1
        features[rows, np.repeat(self.pairs[:, 1], self.totals)] = -1
        if self.ties is None:
            values, counts = np.array([1, 0], np.int32), [self.wins, self.totals - self.wins]
        else:  # even if there is no tie, because the dtype of labels is public
            values = np.array([1, 0.5, 0], np.float32)
            counts = [self.wins, self.ties, self.totals - self.wins - self.ties]
        return features, np.repeat(np.tile(values, len(self.pairs)), np.stack(counts, axis=1).ravel())


def read_comparisons(path: str | os.PathLike[str]) -> ComparisonTable:
    """Reads a table of comparisons from a CSV, Parquet (`.parquet`) or JSON lines (`.jsonl`) file.

    The columns, in any order, are `winner` and `loser`, and optionally `weight` and `tie`. `weight` is the number of
    comparisons that a row represents (an integer, by default 1). A row with weight 0 only adds its items to the table.
    `tie` is 1 or true if the two items tied, and 0, false or empty otherwise; tied items may be in either column. Rows
    with the same items are added up, and spaces around names are removed. Write each tie as one row, because two rows,
    with a win for each item, would be two comparisons and so two privacy units.

    CSV and JSON lines files may instead contain battles, which are comparisons of two models in the format of arenas,
    with the columns `model_a`, `model_b` and `winner`. `winner` is "model_a" or "model_b", or for a tie "tie",
    "tie (bothbad)" or "both_bad". With battles, all other columns except `weight` are ignored. Without battles, other
    columns are errors.

    CSV is UTF-8 text with the names of columns in the first line. JSON lines are UTF-8 text with one object in each
    line. Blank lines are ignored. In a Parquet file the names are text or integers, and weights are integers or floats
    of any width. Reading Parquet needs pyarrow: `pip install 'jaxdp[parquet]'`.

    Args:
        path: path of the file.

    Returns:
        The table. Item names are text, even if they are numbers.

    Raises:
        ValueError: if the file is malformed, or if it is Parquet and pyarrow is not installed. For a malformed file the
            error names the file, the line (for Parquet the row) and the reason.
        OSError: if the file cannot be read, for example FileNotFoundError.
    """
    data, name = Path(path).read_bytes(), os.fspath(path)
    ending = Path(name).suffix.lower()
    if ending == ".jsonl":
        return _tally(json_rows(data, name), name, "the last line")
    return (parse_parquet_comparisons if ending == ".parquet" else parse_comparisons)(data, name)


def parse_comparisons(data: bytes, name: str) -> ComparisonTable:
    """Parses the bytes of a CSV file of comparisons or battles into a table; errors show `name`, the file's name."""
    rows = _csv_rows(data, name)
    if not rows:
        raise file_error(name, "line 1", "the file is empty")
    line, header = rows[0]
    header = [column.strip() for column in header]
    try:
        check_columns(header)
    except ValueError as error:
        raise file_error(name, f"line {line}", str(error)) from None
    return _tally(((f"line {line}", header, row, 1) for line, row in rows[1:]), name, f"line {rows[-1][0]}")


def parse_parquet_comparisons(data: bytes, name: str) -> ComparisonTable:
    """Parses the bytes of a Parquet file of comparisons into a table; errors show `name`, the file's name."""

    def check(columns: list[str]) -> None:
        if is_of_battles(columns):
            raise ValueError("battles are read from CSV and JSON lines")
        check_columns(columns)

    return _tally(parquet_rows(data, name, check), name, "the last row")


def baseball1987() -> ComparisonTable:
    """Returns the 273 games between seven teams of the American League East in 1987, 13 for each pair.

    Source:
        Agresti, Categorical Data Analysis (1990).

    Examples:
        >>> table = baseball1987()
        >>> table.items[0], len(table.pairs), table.num_comparisons
        ('Baltimore', 21, 273)
    """
    source = importlib.resources.files("jaxdp.preferences") / "baseball1987.csv"
    with importlib.resources.as_file(source) as path:
        return read_comparisons(path)


def _column(name: str, values: Any) -> list[str]:
    """Returns the values of the column `name` as texts, as in a file; missing values become empty texts."""
    if isinstance(values, str | bytes | dict | set):
        raise ValueError(f"{name} must be a column of values, got {short_repr(values)}")
    refuse_masked(name, values)
    column = np.asarray(values, dtype=object)
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {column.shape}")
    types = (int, np.integer) if name != "weight" else (int, np.integer, float, np.floating, Decimal)
    rule = "text or integers" if name != "weight" else "numbers"
    texts = []
    for number, value in enumerate(column):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):  # missing, in pandas
            texts.append("")
        elif isinstance(value, str) and name != "weight":
            texts.append(value)
        elif name == "tie" and isinstance(value, bool | np.bool_):
            texts.append(str(bool(value)))
        elif isinstance(value, types) and not isinstance(value, bool):
            texts.append(str(value))
        elif isinstance(value, float | np.floating) and np.isnan(value):
            texts.append("")
        else:
            raise ValueError(f"from_arrays, row {number}: {name} must be {rule}, got {short_repr(value)}")
    return texts


def _csv_rows(data: bytes, name: str) -> list[tuple[int, list[str]]]:
    """Returns the lines of a CSV file that are not blank, as (line number, fields)."""
    reader = csv.reader(io.StringIO(utf8_text(data, name), newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if len(row) > 1 or "".join(row).strip()]
    except csv.Error as error:
        raise file_error(name, f"line {reader.line_num}", str(error)) from error


def _tally(rows: Iterable[tuple[str, list[str], list[str], int]], name: str, last: str) -> ComparisonTable:
    """Builds a table from rows of (position in the file, names of columns, fields, number of copies of the row).

    Errors show `name`, the file's name. The error for a file without comparisons names the position `last`.
    """
    counts: dict[tuple[str, str], int] = {}
    ties: dict[tuple[str, str], int] | None = None
    total = 0
    for where, header, row, times in rows:
        try:
            winner, loser, weight, is_tie = _comparison(header, row)
            total += times * weight
            if total > _MAX_WEIGHT:
                raise ValueError("more than 2**53 comparisons up to here")
        except ValueError as error:
            raise file_error(name, where, str(error)) from None
        if ties is None and allows_ties(header):
            ties = {}
        destination = ties if is_tie and ties is not None else counts
        destination[winner, loser] = destination.get((winner, loser), 0) + times * weight
    if not total:
        raise file_error(name, last, "no comparisons up to the end")
    return tabulate(counts, ties)


def _comparison(header: list[str], row: list[str]) -> tuple[str, str, int, bool]:
    """Returns (winner, loser, weight, whether they tied) of a row, given the names of columns and the row's fields.

    Raises a ValueError if the row is malformed; its message has no file and no line.
    """
    if len(row) != len(header):
        raise ValueError(f"{len(row)} fields where the header has {len(header)}")
    fields = {name: field.strip() for name, field in zip(header, row, strict=True)}
    winner, loser, is_tie = outcome(fields)
    text = fields.get("weight", "1")
    if not _NUMBER.fullmatch(text) and text not in ("nan", "inf", "-inf"):
        raise ValueError(f"weight must be a number, got {short_repr(text)}")
    try:  # a Decimal is exact; a float would round to an integer or to the bound
        weight = Decimal(text)
        if 0 <= weight <= _MAX_WEIGHT and weight == weight.to_integral_value():
            return winner, loser, int(weight), is_tie
    except InvalidOperation:  # nan, or an exponent that Decimal cannot represent
        pass
    raise ValueError(f"weight must be an integer in [0, 2**53], got {short_repr(text)}")


def tabulate(counts: dict[tuple[str, str], int], ties: dict[tuple[str, str], int] | None = None) -> ComparisonTable:
    """Builds a table from counts of (winner, loser) and of ties; a count of 0 only adds the items."""
    names = {name for pair in (*counts, *(ties or ())) for name in pair}
    numbers = {name: number for name in names if (number := _number(name)) is not None}
    items = tuple(sorted(names, key=lambda name: (numbers[name], name) if len(numbers) == len(names) else (0.0, name)))
    index = {name: position for position, name in enumerate(items)}
    wins: dict[tuple[int, int], int] = {}
    totals: dict[tuple[int, int], int] = {}
    tied: dict[tuple[int, int], int] = {}
    for (winner, loser), count in counts.items():
        pair = min(index[winner], index[loser]), max(index[winner], index[loser])
        wins[pair] = wins.get(pair, 0) + (count if index[winner] == pair[0] else 0)
        totals[pair] = totals.get(pair, 0) + count
    for names_of_pair, count in (ties or {}).items():
        first, second = sorted(index[name] for name in names_of_pair)
        tied[first, second] = tied.get((first, second), 0) + count
        totals[first, second] = totals.get((first, second), 0) + count
    pairs = sorted(pair for pair, total in totals.items() if total)
    return ComparisonTable(
        items=items,
        pairs=np.array(pairs, np.int32),
        wins=np.array([wins.get(pair, 0) for pair in pairs], np.int64),
        totals=np.array([totals[pair] for pair in pairs], np.int64),
        ties=None if ties is None else np.array([tied.get(pair, 0) for pair in pairs], np.int64),
    )


def _number(name: str) -> float | None:
    try:
        number = float(name)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
