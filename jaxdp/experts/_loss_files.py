"""Users' losses from files."""

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.core import default_float
from jaxdp.preferences.files import malformed, shown, utf8_text
from jaxdp.validation import check_finite


def read_losses(path: str | os.PathLike[str]) -> np.ndarray:
    """Reads losses from a file: a row is a round, a column an expert. What the name ends in says which format it has.

    - `.csv`: numbers with commas between them, UTF-8; the first line may name the experts; blank lines are skipped.
    - `.npy`: a matrix as `numpy.save` writes it. It stays in the file, and parts are read where they are used.
    - `.parquet`: columns of numbers or truth values. Reading it takes pyarrow: `pip install 'jaxdp[parquet]'`.

    The range of the losses is checked by `loss_sequence`.

    Args:
        path: the file.

    Returns:
        [rounds, num_experts] numbers or truth values, finite. Of `.npy` and `.parquet` the file's type, of Parquet the
        smallest one that holds all columns; of `.csv`, uint8 if all are whole numbers in [0, 255], else JAX's default
        float type.

    Raises:
        ValueError: if the file is malformed, with the file, the line or the row (from 0) and the reason; if its name
            ends otherwise; or if it is Parquet and pyarrow is not installed.
        OSError: if it cannot be read, such as FileNotFoundError.
    """
    name = os.fspath(path)
    ending = Path(name).suffix.lower()
    if ending not in _READERS:
        raise ValueError(f"path must end in one of {', '.join(_READERS)}, got {name}")
    losses = _READERS[ending](name)
    if losses.ndim != 2 or losses.shape[0] < 1 or losses.shape[1] < 2:
        raise malformed(name, "data", f"losses must be at least one round of two experts, got shape {losses.shape}")
    if losses.dtype != bool:
        try:
            for first in range(0, len(losses), _ROWS):
                check_finite("losses", losses[first : first + _ROWS])
        except ValueError as error:
            place = "data" if not np.issubdtype(losses.dtype, np.floating) else _first_bad(losses)
            raise malformed(name, place, str(error)) from None
    return losses


_ROWS = 2**16  # checked at a time


def _first_bad(losses: np.ndarray) -> str:
    for first in range(0, len(losses), _ROWS):
        bad = np.flatnonzero(~np.isfinite(losses[first : first + _ROWS]).all(axis=1))
        if len(bad):
            return f"row {first + int(bad[0])}"
    return "data"


def _read_csv(name: str) -> np.ndarray:
    text = utf8_text(Path(name).read_bytes(), name)
    first, _, rest = text.partition("\n")
    has_names = bool(first.strip()) and not any(_is_number(field) for field in first.split(","))
    lines = rest if has_names else text
    if not lines.strip():
        return np.zeros((0, 0))
    try:
        values = np.loadtxt(io.StringIO(lines), delimiter=",", ndmin=2, comments=None)
    except ValueError:
        raise _bad_line(text, name, has_names) from None
    if not np.isfinite(values).all():
        raise _bad_line(text, name, has_names)
    is_small = values.min() >= 0 and values.max() <= 255 and (values == np.floor(values)).all()
    return values.astype(np.uint8 if is_small else default_float())


def _bad_line(text: str, name: str, has_names: bool) -> ValueError:
    """The error of the first line that is not one of finite numbers, as many as in the first."""
    reader, fields = csv.reader(io.StringIO(text, newline="")), 0
    for row in reader:
        if not "".join(row).strip() or (has_names and reader.line_num == 1):
            continue
        fields = fields or len(row)
        if len(row) != fields:
            return malformed(name, f"line {reader.line_num}", f"{len(row)} fields where there were {fields} before")
        for field in row:
            if not _is_number(field) or not np.isfinite(float(field)):
                return malformed(name, f"line {reader.line_num}", f"a loss must be a finite number, got {shown(field)}")
    return malformed(name, "data", "not a table of numbers")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _read_npy(name: str) -> np.ndarray:
    try:
        return np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise malformed(name, "data", f"not a readable npy file of numbers ({shown(str(error))})") from error


def _read_parquet(name: str) -> np.ndarray:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(f"{name}: reading Parquet takes pyarrow: pip install 'jaxdp[parquet]'") from error
    data = Path(name).read_bytes()
    try:
        table = pq.read_table(pa.BufferReader(data))
        table.validate(full=True)
    except Exception as error:  # damaged bytes fail in more ways than pyarrow documents
        raise malformed(name, "data", f"not a readable Parquet file ({shown(str(error))})") from error
    columns = [_column(column, title, name) for title, column in zip(table.column_names, table.columns, strict=True)]
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _column(column: Any, title: str, name: str) -> np.ndarray:
    import pyarrow.types as kinds

    kind = column.type
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        raise malformed(name, "schema", f"column {shown(title)} must hold numbers or truth values, got {kind}")
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise malformed(name, f"row {row}", f"no value in column {shown(title)}")
    return column.to_numpy()


_READERS: dict[str, Callable[[str], np.ndarray]] = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}
