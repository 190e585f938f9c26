"""What the readers of users' files share: text from bytes, and errors that name the place."""

_SHOWN = 80  # characters of a value in an error


def malformed(name: str, where: str, reason: str) -> ValueError:
    """The error of a file whose content is wrong: "file, line 3: reason"."""
    return ValueError(f"{name}, {where}: {reason}")


def shown(value: object) -> str:
    """The value as an error tells it: its repr, cut where it is long."""
    text = repr(value[: 2 * _SHOWN] if isinstance(value, str | list) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def utf8_text(data: bytes, name: str) -> str:
    """Returns the bytes as text, without a byte order mark; lines that end in CR alone end in LF.

    Args:
        data: what the file holds.
        name: of the file, for the error.

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
        raise malformed(name, f"line {line}", f"not UTF-8 text ({error.reason})") from error
