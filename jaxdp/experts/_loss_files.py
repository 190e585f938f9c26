"""Reads losses from files."""

import csv
import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.core import default_float
from jaxdp.preferences.files import file_error, short_repr, utf8_text
from jaxdp.validation import check_finite, warn_caller


def read_losses(path: str | os.PathLike[str]) -> np.ndarray:
    """Reads losses from a .csv, .npy or .parquet file with one row per round and one column per expert.

    - `.csv`: a UTF-8 file of numbers, quoted or not, separated by commas. The first line may contain names of experts;
      blank lines are skipped. The reader rejects a file in which a header or an index could be mistaken for losses:
      (a) the first line contains integers that do not look like the later lines; (b) the first column seems to contain
      row numbers, and the other columns do not; (c) the first column has the name of an index ("index" only if the
      column contains row numbers); or (d) some name is empty. In case (b), the reader only warns if there are one or
      two rows.
    - `.npy`: a matrix written by `numpy.save`. The matrix is memory-mapped: its parts are read when they are needed.
    - `.parquet`: columns of numbers or booleans without missing values. The reader rejects a table with a column that
      is an index. Reading it requires pyarrow: `pip install 'jaxdp[parquet]'`.

    `loss_sequence` checks the range of the losses.

    Args:
        path: the file.

    Returns:
        [rounds, num_experts] numbers or booleans, finite. The dtype is the file's dtype for `.npy`, and the common
        dtype of all columns for `.parquet`. For `.csv` it is uint8 if all entries are integers in [0, 255], otherwise
        JAX's default float dtype.

    Warns:
        UserWarning: if the first line is 0,1,... and the other lines do not show whether it is a header; or if there
            are only one or two rounds and the first column seems to contain row numbers.

    Raises:
        ValueError: if the file is malformed, has no rounds or fewer than two experts, has an extension that is not
            supported, or is Parquet while pyarrow is not installed. For a fault in one line or row, the message
            contains the line number counted from 1, or the row number counted from 0.
        OSError: if the file cannot be read, for example a FileNotFoundError.
    """
    name = os.fspath(path)
    ending = Path(name).suffix.lower()
    if ending not in _READERS:
        raise ValueError(f"path must end in one of {', '.join(_READERS)}, got {name}")
    losses = _READERS[ending](name)
    if losses.ndim != 2 or losses.shape[0] < 1 or losses.shape[1] < 2:
        raise file_error(name, "data", f"losses must be at least one round of two experts, got shape {losses.shape}")
    if losses.dtype != bool:
        try:
            for first in range(0, len(losses), _ROWS):
                check_finite("losses", losses[first : first + _ROWS])
        except ValueError as error:
            location = "data" if not np.issubdtype(losses.dtype, np.floating) else _first_bad(losses)
            raise file_error(name, location, str(error)) from None
    return losses


_ROWS = 2**16  # number of rows that are checked at a time
_WHOLE = re.compile("[0-9]{1,15}")
_INDEX_REASON = "the first column looks like an index, not like an expert: leave it out (in pandas index=False)"


def _first_bad(losses: np.ndarray) -> str:
    for first in range(0, len(losses), _ROWS):
        bad = np.flatnonzero(~np.isfinite(losses[first : first + _ROWS]).all(axis=1))
        if len(bad):
            return f"row {first + int(bad[0])}"
    return "data"


def _read_csv(name: str) -> np.ndarray:
    try:
        return _parse_csv(utf8_text(Path(name).read_bytes(), name), name)
    except csv.Error as error:  # for example, a quote that is never closed
        raise file_error(name, "data", str(error)) from error


def _parse_csv(text: str, name: str) -> np.ndarray:
    first, _, later_lines = text.partition("\n")
    titles = next(csv.reader([first]), [])
    has_names = any(title.strip() for title in titles) and not any(map(_is_number, titles))
    lines = later_lines if has_names else text
    if not lines.strip():
        return np.zeros((0, 0))
    try:
        values = np.loadtxt(io.StringIO(lines), delimiter=",", ndmin=2, comments=None, quotechar='"')
    except ValueError:
        raise _bad_line(text, name, has_names) from None
    if not np.isfinite(values).all():
        raise _bad_line(text, name, has_names)
    is_index = has_names and _is_index(titles[0], values[:, 0])
    counts_rows = _counts_rows(lines, values)
    if (has_names and not all(title.strip() for title in titles)) or is_index or (counts_rows and len(values) > 2):
        raise file_error(name, "line 1", _INDEX_REASON)
    if counts_rows:
        warn_caller(
            f"{name}, line {1 + has_names}: the first column was read as an expert's losses. If it numbers the rows, "
            "leave it out (in pandas index=False); if it holds losses, write them with decimals, such as 1.0"
        )
    if not has_names and _are_column_numbers([title.strip() for title in titles], later_lines, values[1:]):
        reason = f"{short_repr(first.strip())} may name columns or be a round: use names, or decimals such as 1.0"
        raise file_error(name, "line 1", reason)
    if values.shape[1] > 1 and [title.strip() for title in titles] == [
        str(column) for column in range(values.shape[1])
    ]:
        warn_caller(
            f"{name}, line 1: {short_repr(first.strip())} was read as a round of losses. If it numbers the columns, "
            "leave it out (in pandas header=False); if it is a round, write it with decimals, such as 1.0"
        )
    is_small = values.min() >= 0 and values.max() <= 255 and (values == np.floor(values)).all()
    return values.astype(np.uint8 if is_small else default_float())


def _are_column_numbers(titles: list[str], later_lines: str, values: np.ndarray) -> bool:
    """Returns whether the first line is probably a header of integers that do not look like the later lines."""
    if not all(map(_WHOLE.fullmatch, titles)) or not values.size:
        return False
    numbers = np.array([int(title) for title in titles], float)
    counts_up, largest = bool(np.all(np.diff(numbers) == 1)), values.max()
    if largest <= 1 < numbers.max():
        return True
    return counts_up and ("." in later_lines or (numbers.max() > largest and (len(numbers) > 2 or numbers.min() > 1)))


def _is_index(title: str, values: np.ndarray) -> bool:
    """Returns whether a column's name is used for an index; "index" counts only for a column of row numbers."""
    title = title.strip().lower()
    counts = len(values) > 1 and values[0] in (0, 1) and bool(np.all(np.diff(values) == 1))
    return bool(re.fullmatch(r"unnamed: \d+|__index_level_\d+__", title)) or (title == "index" and counts)


def _counts_rows(lines: str, values: np.ndarray) -> bool:
    """Returns whether the first column may contain row numbers: it increases by 1, and other columns look different."""
    # If there are only one or two rows, the column must also start at 0 or 1.
    first = values[:, 0]
    if (len(first) < 3 and first[0] not in (0, 1)) or not np.all(np.diff(first) == 1):
        return False
    is_whole = all(_WHOLE.fullmatch(row[0].strip()) for row in csv.reader(io.StringIO(lines)) if "".join(row).strip())
    other_columns = values[:, 1:]
    is_longer = len(first) > 2 and first.max() > other_columns.max(initial=-np.inf) and other_columns.size > 0
    return is_whole and (is_longer or bool(np.any(other_columns != np.floor(other_columns))))


def _bad_line(text: str, name: str, has_names: bool) -> ValueError:
    """Returns the error for the first line with a wrong number of fields, or with a field that is no finite number."""
    reader, fields = csv.reader(io.StringIO(text, newline="")), 0
    for row in reader:
        if not "".join(row).strip() or (has_names and reader.line_num == 1):
            continue
        fields = fields or len(row)
        if len(row) != fields:
            return file_error(name, f"line {reader.line_num}", f"{len(row)} fields where there were {fields} before")
        for field in row:
            if not _is_number(field) or not np.isfinite(float(field)):
                return file_error(
                    name, f"line {reader.line_num}", f"a loss must be a finite number, got {short_repr(field)}"
                )
    return file_error(name, "data", "not a table of numbers")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _read_npy(name: str) -> np.ndarray:
    try:
        losses = np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise file_error(name, "data", f"not a readable npy file of numbers ({short_repr(str(error))})") from error
    if not isinstance(losses, np.ndarray):  # NumPy opens a zip file with any extension
        losses.close()
        raise file_error(name, "data", "not an npy file but an npz archive: save one array, with numpy.save")
    return losses


def _read_parquet(name: str) -> np.ndarray:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(f"{name}: reading Parquet needs pyarrow: pip install 'jaxdp[parquet]'") from error
    data = Path(name).read_bytes()
    try:
        table = pq.read_table(pa.BufferReader(data))
        table.validate(full=True)
    except Exception as error:  # damaged files raise errors that pyarrow does not document
        raise file_error(name, "data", f"not a readable Parquet file ({short_repr(str(error))})") from error
    columns = [_column(column, title, name) for title, column in zip(table.column_names, table.columns, strict=True)]
    # A dict among the entries describes an index that is not a column.
    indices = (table.schema.pandas_metadata or {}).get("index_columns", [])
    for title, values in zip(table.column_names, columns, strict=True):
        if title in [index for index in indices if isinstance(index, str)] or _is_index(title, values):
            reason = f"column {short_repr(title)} is an index, not an expert: leave it out (in pandas index=False)"
            raise file_error(name, "schema", reason)
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _column(column: Any, title: str, name: str) -> np.ndarray:
    import pyarrow.types as arrow_types

    kind = column.type
    if not (arrow_types.is_integer(kind) or arrow_types.is_floating(kind) or arrow_types.is_boolean(kind)):
        raise file_error(name, "schema", f"column {short_repr(title)} must hold numbers or truth values, got {kind}")
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise file_error(name, f"row {row}", f"no value in column {short_repr(title)}")
    return column.to_numpy()


_READERS: dict[str, Callable[[str], np.ndarray]] = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}
