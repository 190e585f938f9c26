"""Wraps prose to the width of a terminal."""

import os
import re
import shutil
import sys
import textwrap

NARROWEST = 40  # minimum width in columns


def terminal_width() -> int | None:
    """Returns the width of the terminal in columns, at least 40.

    Returns None if the output goes to a pipe or a file and COLUMNS is not set.
    """
    if not (sys.stdout.isatty() or "COLUMNS" in os.environ):
        return None
    return max(shutil.get_terminal_size().columns, NARROWEST)


def wrap_prose(text: str, width: int | None) -> str:
    """Wraps the long lines of a text, except rows of tables, which have two or more spaces between cells.

    Args:
        text: lines of prose and of tables.
        width: maximum width in columns; None does not wrap lines.
    """
    if width is None:
        return text
    return "\n".join(wrapped for line in text.split("\n") for wrapped in _wrap_line(line, width))


def _wrap_line(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= width or re.search(r"\S {2,}\S", line):
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
