"""Reads pairs of responses from files (JSON lines, Parquet, .npy), as public features and private labels."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdp.core.ids import check_ids
from jaxdp.preferences.files import file_error, short_repr, utf8_text
from jaxdp.preferences.pairs import FLOATS, ORIENTATIONS, Pairs, orient_pairs
from jaxdp.validation import check_choice, check_flag, check_key, refuse_private

TIES = ("half", "coin", "drop")
Name = str | os.PathLike[str] | None
_LARGEST = float(np.finfo(np.float32).max)


def read_pairs(
    table: str | os.PathLike[str] | None = None,
    *,
    first: Name = None,
    second: Name = None,
    label: Name = None,
    chosen: Name = None,
    rejected: Name = None,
    tie: Name = None,
    person: Name = None,
    ties: str = "half",
    ties_public: bool = False,
    drop_duplicates: bool = False,
    drop_identical: bool = False,
    orient: str = "bytes",
    key: jax.Array | None = None,
) -> Pairs:
    """Reads pairs of responses from files (JSON lines, Parquet, .npy), as public features and private labels.

    The columns are either (first, second, label) or (chosen, rejected). In both cases, only the labels of the result
    depend on which response won, as in `pairs_from_chosen_rejected`. The order of rows and the sign of the features do
    not, even if `first` is always the winner in the file.

    Other columns are not read, because they may depend on the winner (such as a judge's score). If a column that may
    depend on the winner has invalid or absent entries, the error has the number of these rows, but not their positions.
    If a line of a .jsonl file is not a JSON object, however, the error names the line. Write null for a missing label.

    Args:
        table: a file of JSON lines (`.jsonl`) or Parquet (`.parquet`, which needs `pip install 'jaxdp[parquet]'`). None
            if all columns are .npy files.
        first: features of one response. They are a column of the table with lists of dim numbers or, if the name ends
            in `.npy`, a file of [num_rows, dim] float16, float32 or float64, in the order of the table's rows. The file
            is mapped into memory and never loaded as a whole.
        second: features of the other response.
        label: with `first` and `second`, a column or a .npy file of labels in {0, 1/2, 1}; 1 if the first response was
            preferred, 1/2 for a tie. None (null) and NaN are missing labels, which count as ties; it is also private
            which labels are missing.
        chosen: features of the preferred response, instead of `first`.
        rejected: features of the other response, instead of `second`.
        tie: with `chosen` and `rejected`, a column or a .npy file of booleans, which are true if the two responses
            tied. Tied responses may be in either column.
        person: a column or a .npy file with the public id (text or integer) of the person who gave each label.
        ties: "half" returns float32 labels, in which 1/2 is a tie. "coin" breaks ties by a fair coin of the key, for
            algorithms that take only labels 0 and 1. "drop" removes rows with a tie or without a label. With "coin" and
            "drop" the labels are int32.
        ties_public: whether others may know which rows have a tie or no label. It must be True for "drop", in which
            case `Pairs.restate` states it in claims; otherwise it must be False.
        drop_duplicates: whether to keep only one row for each unordered pair (with `person`: for each unordered pair
            and person), the first row in the file, no matter which response won. With ties="drop" no row remains if the
            first row has a tie or no label.
        drop_identical: whether to remove rows in which the two responses are equal.
        orient: see `pairs_from_chosen_rejected`.
        key: PRNG key for ties="coin" or orient="coin", as secret as the labels; otherwise None.

    Returns:
        Features, labels, row numbers (from 0) and persons.

    Raises:
        ValueError: if columns are missing or have wrong types, lengths or labels, features are not finite, arguments do
            not fit together, a file is malformed, or the table is Parquet and pyarrow is not installed.
        OSError: if a file cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> np.save(folder / "won.npy", np.float16([[1, 0], [0, 3]]))
        >>> np.save(folder / "lost.npy", np.float16([[0, 1], [2, 0]]))
        >>> pairs = read_pairs(chosen=folder / "won.npy", rejected=folder / "lost.npy")
        >>> swapped = read_pairs(chosen=folder / "lost.npy", rejected=folder / "won.npy")
        >>> print((pairs.features == swapped.features).all(), pairs.labels + swapped.labels)
        True [1. 1.]
    """
    arguments = {"first": first, "second": second, "label": label, "chosen": chosen, "rejected": rejected}
    for argument, name in (arguments | {"tie": tie, "person": person}).items():
        if not isinstance(name, str | os.PathLike | None):
            raise ValueError(
                f"{argument} must be the name of a column or of a .npy file, got {type(name).__name__}; for arrays use "
                "pairs_from_chosen_rejected"
            )
    first, second, label, chosen, rejected, tie, person = (
        None if name is None else os.fspath(name) for name in (first, second, label, chosen, rejected, tie, person)
    )
    by_winner = chosen is not None or rejected is not None
    responses = (chosen, rejected) if by_winner else (first, second)
    if None in responses or (by_winner and not (first is second is label is None)):
        raise ValueError(
            "columns must be first, second and label, or chosen and rejected, got "
            f"first={first!r}, second={second!r}, label={label!r}, chosen={chosen!r}, rejected={rejected!r}"
        )
    if responses[0] == responses[1]:
        raise ValueError(f"columns of the two responses must differ, got {responses[0]!r} for both")
    if by_winner is (label is not None) or (tie is not None and not by_winner):
        raise ValueError(
            "label must be given with first and second, and tie only with chosen and rejected, got "
            f"label={label!r}, tie={tie!r}"
        )
    check_choice("ties", ties, TIES)
    check_flag("drop_duplicates", drop_duplicates)
    check_flag("drop_identical", drop_identical)
    if check_flag("ties_public", ties_public) is not (ties == "drop"):
        raise ValueError(
            'ties_public must be True with ties="drop", which shows which rows tie or have no label, and False '
            f'otherwise, got ties={ties!r}, ties_public={ties_public}; ties="half" and ties="coin" protect ties'
        )
    check_choice("orient", orient, ORIENTATIONS)
    if (key is None) is (ties == "coin" or orient == "coin"):
        raise ValueError(
            f'key must be given for ties="coin" or orient="coin", and None otherwise, got ties={ties!r}, '
            f"orient={orient!r}, key={key}"
        )
    coins: tuple[Any, ...] = (None, None) if key is None else tuple(jax.random.split(check_key(key)))
    left_name, right_name = (str(name) for name in responses)  # not None, as checked above
    names = [name for name in (left_name, right_name, label, tie, person) if name is not None]
    columns = _columns(table, names)
    left, right = _responses(columns, left_name, right_name)
    for name in names:
        if len(columns[name]) != len(left):
            raise ValueError(f"{name} must have as many entries as {left_name}, {len(left)}, got {len(columns[name])}")
    ids = None if person is None else check_ids(person, _as_list(person, columns[person]))
    values = np.ones(len(left), np.float32) if label is None else _labels(label, columns[label])
    if tie is not None:
        values = np.where(_truths(tie, columns[tie]), np.float32(0.5), values)
    pairs, digests = orient_pairs(left, right, coins[0] if orient == "coin" else None)
    values = values[pairs.rows]
    labels = np.where(pairs.labels == 1, values, 1 - values)
    keep = np.ones(len(labels), bool)
    if ties == "drop":
        keep &= labels != 0.5
    if drop_identical:
        keep &= pairs.features.any(axis=1)
    if drop_duplicates:
        # Duplicates are found among all rows, because the public rule must not depend on rows that were removed for
        # their labels.
        keep &= ~_mark_repeats(digests, None if ids is None else ids[pairs.rows])
    if ties == "coin":
        heads = np.asarray(jax.random.bits(coins[1], labels.shape) & 1)
        labels = np.where(labels == 0.5, heads, labels)
    labels = labels.astype(np.float32 if ties == "half" else np.int32)
    persons = None if ids is None else ids[pairs.rows][keep]
    return Pairs(
        pairs.features if keep.all() else pairs.features[keep], labels[keep], pairs.rows[keep], persons, ties == "drop"
    )


def read_ids(table: str | os.PathLike[str] | None, name: str, beside: str) -> np.ndarray:
    """Reads the public ids of persons from a column or a .npy file, in the order of rows.

    Raises a ValueError if there are not as many ids as the column or file `beside` has rows, or if the ids are not all
    text or all integers.
    """
    columns = _columns(table, [name, beside])
    if len(columns[name]) != len(columns[beside]):
        raise ValueError(
            f"{name} must have one id for each of the {len(columns[beside])} rows, got {len(columns[name])}"
        )
    return check_ids(name, _as_list(name, columns[name]))


def _columns(table: str | os.PathLike[str] | None, names: Sequence[str]) -> dict[str, Any]:
    """Reads the named columns of the table. Names that end in .npy are files, which are mapped into memory."""
    files = [name for name in names if name.endswith(".npy")]
    in_table = [name for name in names if name not in files]
    if in_table and table is None:
        raise ValueError(
            f"table must be given for the columns {', '.join(in_table)}: only names that end in .npy are files"
        )
    columns: dict[str, Any] = {}
    for name in files:
        try:
            columns[name] = np.load(name, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError):
            raise ValueError(f"{name} must be a .npy file of numbers or text, got another file") from None
    if table is not None and in_table:
        read = {".jsonl": _json_columns, ".parquet": _parquet_columns}.get(Path(table).suffix.lower())
        if read is None:
            raise ValueError(f"table must end in .jsonl or .parquet, got {os.fspath(table)!r}")
        columns |= read(Path(table), in_table)
    return columns


def _json_columns(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Reads columns of a file of JSON lines. The line that lacks a value is private, so errors do not name it."""
    columns: dict[str, list[Any]] = {name: [] for name in names}
    keys: set[str] = set()
    num_rows = num_incomplete = 0
    for number, line in enumerate(utf8_text(path.read_bytes(), str(path)).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise file_error(str(path), f"line {number}", "not a JSON object")
        keys |= row.keys()
        num_rows += 1
        num_incomplete += not row.keys() >= columns.keys()
        for name, values in columns.items():
            values.append(row.get(name))
    if not num_rows:
        raise file_error(str(path), "line 1", "the file is empty")
    if absent := [name for name in names if name not in keys]:
        raise file_error(str(path), "all lines", f"no column {absent[0]!r} among {short_repr(sorted(keys))}")
    if num_incomplete:
        raise file_error(
            str(path),
            f"{num_incomplete} of {num_rows} lines",
            f"not all of the columns {', '.join(columns)}; write null for a missing value",
        )
    return columns


def _parquet_columns(path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(f"{path}: reading Parquet needs pyarrow: pip install 'jaxdp[parquet]'") from error
    try:
        schema = pq.read_schema(path).names
        missing = [name for name in names if name not in schema]
        read = None if missing else pq.read_table(path, columns=list(names))
    except pa.ArrowException:
        raise file_error(str(path), "data", "not a readable Parquet file") from None
    if read is None:
        raise file_error(str(path), "schema", f"no column {missing[0]!r} among {short_repr(sorted(schema))}")
    return {name: _parquet_values(read.column(name)) for name in names}


def _parquet_values(column: Any) -> np.ndarray | list[Any]:
    """Returns a column as an array if its values are lists of numbers with equal lengths, otherwise as a list."""
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        array = column.combine_chunks()
        numeric = kinds.is_integer(kind.value_type) or kinds.is_floating(kind.value_type)
        lengths = array.value_lengths()
        values = array.flatten()
        if numeric and len(array) and len(lengths.unique()) == 1 and not array.null_count and not values.null_count:
            wide = values.to_numpy(zero_copy_only=False)
            return (wide if wide.dtype == np.float16 else wide.astype(np.float32)).reshape(len(array), -1)
    return column.to_pylist()


def _responses(columns: dict[str, Any], left: str, right: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the features of both responses: two [num_rows, dim] arrays with the same float dtype.

    Error messages do not change if the two responses of a row are swapped, because which response won is private.
    """
    tables = [columns[name] for name in (left, right)]
    if all(isinstance(table, np.ndarray) for table in tables):
        kinds = sorted({f"{table.dtype} {table.shape}" for table in tables})
        if len(kinds) > 1 or tables[0].ndim != 2 or 0 in tables[0].shape or tables[0].dtype.name not in FLOATS:
            raise ValueError(
                f"{left} and {right} must be tables of {', '.join(FLOATS)} with one shape and type, got "
                f"{' and '.join(kinds)}"
            )
        return tables[0], tables[1]
    tables = [
        table.tolist() if isinstance(table, np.ndarray) and not name.endswith(".npy") else table
        for name, table in zip((left, right), tables, strict=True)
    ]
    if any(isinstance(table, np.ndarray) for table in tables):
        raise ValueError(
            f"{left} and {right} must be two columns of the table, or two .npy files, got a column and a file"
        )
    rows = [row for table in tables for row in table]
    dim = max((len(row) for row in rows if isinstance(row, list)), default=0)
    num_rows = len(tables[0])
    is_wrong = np.array([not _is_vector(row, dim) for row in rows]).reshape(2, num_rows).any(axis=0)
    if dim == 0 or is_wrong.any():
        size = f"{dim} numbers" if dim else "numbers"
        raise ValueError(
            f"{left} and {right} must be lists of {size}, got other values in {is_wrong.sum()} of {num_rows} rows: "
            "features are embeddings, not texts; they may also be two .npy files"
        )
    wide = np.asarray(rows, np.float32).reshape(2, num_rows, dim)
    return wide[0], wide[1]


def _is_vector(row: Any, dim: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == dim
        and all(type(number) in (int, float) and abs(number) <= _LARGEST for number in row)
    )


def _labels(name: str, column: Any) -> np.ndarray:
    """Returns a column of labels as [num_rows] float32, with 1/2 for missing labels; rejects invalid labels."""
    values = [0.5 if value is None or value != value else value for value in _as_list(name, column)]
    refuse_private(name, "0, 1/2, 1 or missing", np.array([value not in (0, 0.5, 1) for value in values]))
    return np.asarray(values, np.float32)


def _truths(name: str, column: Any) -> np.ndarray:
    values = _as_list(name, column)
    refuse_private(name, "true or false", np.array([value not in (True, False) for value in values]))
    return np.asarray(values, bool)


def _as_list(name: str, column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {column.shape}")
        return column.tolist()
    return column


def _mark_repeats(digests: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Marks the rows that have the same digest and, if given, the same id as a previous row.

    The result is [num_rows] bool.
    """
    number = np.zeros(len(digests), np.uint64)
    if ids is not None:
        number = np.unique(ids, return_inverse=True)[1].astype(np.uint64)
    _, earliest = np.unique(np.column_stack([digests, number]), axis=0, return_index=True)
    repeats = np.ones(len(digests), bool)
    repeats[earliest] = False
    return repeats
