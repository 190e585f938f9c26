"""Reads rows of text from Parquet files, with pyarrow."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxdp.preferences.files import file_error, short_repr

_BATCH = 2**16  # number of rows that are decoded at a time
_MAX_ROWS = 10**8
_MAX_BYTES = 2**31  # maximum uncompressed size, as declared in the file
_NUMERIC = ("weight",)


def parquet_rows(
    data: bytes, name: str, check_columns: Callable[[list[str]], None]
) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Yields the distinct rows of each batch of a Parquet file of comparisons (names, weights, ties), as text.

    A few bytes of Parquet can represent very many rows. Therefore rows are read in batches, and equal rows of a batch
    are counted.

    Args:
        data: content of the file.
        name: name of the file, for errors.
        check_columns: function that raises a ValueError if the column names are wrong; its message must not name the
            file.

    Yields:
        (text such as "row 3", with the position in the file, counted from 1, at which the row first occurs in the
        batch; column names; fields; number of times that the row occurs in the batch).

    Raises:
        ValueError: if pyarrow is not installed; or if the file is not Parquet, is damaged, is too large, or has a
            column of a wrong type.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(f"{name}: reading Parquet needs pyarrow: pip install 'jaxdp[parquet]'") from error

    schema = _decode(lambda: pq.read_schema(pa.BufferReader(data)), name)
    columns = schema.names
    try:
        check_columns(columns)
        for field in schema:
            _check_type(field)
    except ValueError as error:
        raise file_error(name, "schema", str(error)) from None
    file = _decode(lambda: pq.ParquetFile(pa.BufferReader(data), read_dictionary=["winner", "loser"]), name)
    if file.metadata.num_rows > _MAX_ROWS:
        raise file_error(name, "schema", f"{file.metadata.num_rows} rows, more than 10**8")
    groups = (file.metadata.row_group(index) for index in range(file.metadata.num_row_groups))
    if _decode(lambda: sum(group.total_byte_size for group in groups), name) > _MAX_BYTES:
        raise file_error(name, "schema", "more than 2 GiB when decompressed")

    batches = _decode(lambda: file.iter_batches(batch_size=_BATCH, use_threads=False), name)
    first = 1
    while (batch := _decode(lambda: next(batches, None), name)) is not None:
        encoded = [_decode(lambda column=column: _encode(column), name) for column in batch.columns]
        for position, times in _count_distinct_rows([codes for codes, _ in encoded]):
            fields = [values[codes[position]] for codes, values in encoded]
            yield f"row {first + position}", columns, fields, times
        first += batch.num_rows
        if first > _MAX_ROWS + 1:  # the file may declare fewer rows than it has
            raise file_error(name, f"row {first}", "more than 10**8 rows")


def _decode(step: Callable[[], Any], name: str) -> Any:
    """Runs `step`, a call of pyarrow, and turns every exception into an error that the file `name` is not readable.

    On damaged bytes, pyarrow may raise other exceptions than it documents.
    """
    try:
        return step()
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise file_error(name, "data", f"not a readable Parquet file ({short_repr(reason)})") from error


def _check_type(field: Any) -> None:
    """Raises a ValueError if a column's type does not fit its name; the message does not name the file."""
    import pyarrow.types as kinds

    kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
    text = kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)
    numeric = field.name in _NUMERIC
    is_truth = field.name == "tie" and kinds.is_boolean(kind)
    if not (kinds.is_integer(kind) or is_truth or (kinds.is_floating(kind) if numeric else text)):
        rule = "numbers" if numeric else "truth values, 0 and 1" if field.name == "tie" else "text or integers"
        raise ValueError(f"column {field.name} must hold {rule}, got {field.type}")


def _encode(column: Any) -> tuple[np.ndarray, list[str]]:
    """Returns a column as codes ([rows] int64), and the texts that the codes index; code -1 is the empty text."""
    import pyarrow.types as kinds

    if not kinds.is_dictionary(column.type):
        column = column.dictionary_encode()
    column.validate(full=True)  # checks that codes are within the dictionary and names are UTF-8
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = [*column.dictionary.to_pylist(), None]
    return codes, ["" if value is None else value if isinstance(value, str) else repr(value) for value in values]


def _count_distinct_rows(columns: list[np.ndarray]) -> list[tuple[int, int]]:
    """Returns the distinct rows of columns of codes, each as (first position, count), sorted by position."""
    combined = np.zeros_like(columns[0])
    for codes in columns:
        distinct_codes, ranks = np.unique(codes, return_inverse=True)
        _, combined = np.unique(combined, return_inverse=True)  # 2^16 rows: the next line stays below 2^32
        combined = combined * len(distinct_codes) + ranks
    _, first, times = np.unique(combined, return_index=True, return_counts=True)
    return sorted(zip(first.tolist(), times.tolist(), strict=True))
