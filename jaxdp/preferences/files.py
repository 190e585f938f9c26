"""Shared parts of the readers of users' files: text from bytes, and errors that name the place."""

_SHOWN = 80  # characters of a value in an error


def file_error(name: str, where: str, reason: str) -> ValueError:
    """Returns the error for a file with wrong content: "file, line 3: reason"."""
    return ValueError(f"{name}, {where}: {reason}")


def short_repr(value: object) -> str:
    """Returns the value as printed in an error: its repr, shortened if it is long."""
    text = repr(value[: 2 * _SHOWN] if isinstance(value, str | list) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def utf8_text(data: bytes, name: str) -> str:
    """Decodes UTF-8 text, without a byte order mark; lines that end in CR alone end in LF.

    Args:
        data: content of the file.
        name: name of the file, for the error.

    Returns:
        The text.

    Raises:
        ValueError: if it is not UTF-8, with the line.
    """
    try:
        text = data.decode("utf-8-sig")
        return text if "\n" in text else text.replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise file_error(name, f"line {line}", f"not UTF-8 text ({error.reason})") from error
