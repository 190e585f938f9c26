"""Helpers for functions that read users' files: text decoding, and errors that name the file and the line."""

_SHOWN = 80  # maximum number of characters of a value in an error


def file_error(name: str, where: str, reason: str) -> ValueError:
    """Returns the error for a file with invalid content: "file, line 3: reason"."""
    return ValueError(f"{name}, {where}: {reason}")


def short_repr(value: object) -> str:
    """Returns the repr of a value for an error, shortened if it is long."""
    text = repr(value[: 2 * _SHOWN] if isinstance(value, str | list) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def utf8_text(data: bytes, name: str) -> str:
    """Decodes UTF-8 text, and removes a byte order mark. If the text has no LF, replaces each CR by LF.

    Raises:
        ValueError: if the data are not UTF-8. The error names the file and the line.
    """
    try:
        text = data.decode("utf-8-sig")
        return text if "\n" in text else text.replace("\r", "\n")
    except UnicodeDecodeError as error:
        line_end = b"\n" if b"\n" in error.object else b"\r"
        line = error.object[: error.start].count(line_end) + 1
        raise file_error(name, f"line {line}", f"not UTF-8 text ({error.reason})") from error
