"""Numbers of the command line: whole ones as 10000 or 1e4, and one for each time that an option stands there."""

import copy
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.models import OptionInfo

LONGEST = 40  # digits of a whole number


def whole_number(text: Any) -> int:
    """Reads a whole number, such as 10000 or 1e4; defaults, which are numbers, are returned.

    Raises:
        typer.BadParameter: if text is none, or has more than 40 digits.
    """
    if not isinstance(text, str):
        return text
    parts = re.fullmatch(r"([+-]?\d+)(?:\.(\d+))?[eE]\+?(\d{1,2})", text.strip())
    if parts:
        whole, fraction, power = parts[1], (parts[2] or "").rstrip("0"), int(parts[3])
        if len(fraction) <= power:
            text = whole + fraction + "0" * (power - len(fraction))
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise typer.BadParameter(f"{text!r} is not a whole number, such as 10000 or 1e4{_repeat(text)}")
    if len(text.strip()) > LONGEST:
        raise typer.BadParameter(f"a whole number must have at most {LONGEST} digits, got {len(text.strip())}")
    return int(text)


def number(text: Any) -> float:
    """Reads a number; defaults, which are numbers, are returned.

    Raises:
        typer.BadParameter: if text is none, or is beyond the range of float64.
    """
    try:
        value = text if not isinstance(text, str) else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number, such as 0.5, 1e4 or inf{_repeat(text)}") from None
    if isinstance(text, str) and math.isinf(value) and "inf" not in text.lower():
        raise typer.BadParameter(f"a number must be within the range of float64, or inf, got {text}")
    return value


def _repeat(text: str) -> str:
    return "; where an option may have several values, repeat it for each" if re.search(r"[,;\s]", text.strip()) else ""


PARSERS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (whole_number, "<int>"),
    float: (number, "<float>"),
}


def with_parsers(parameter: inspect.Parameter) -> inspect.Parameter:
    """Returns an option of a command with the parser of its numbers, if it has some."""
    kind, *extras = get_args(parameter.annotation) if get_origin(parameter.annotation) is Annotated else (None,)
    inner = next((each for each in (kind, *_inside(kind)) if each in PARSERS), None)
    if inner is None:
        return parameter
    parser, metavar = PARSERS[inner]
    changed = []
    for extra in extras:
        if isinstance(extra, OptionInfo):
            extra = copy.copy(extra)
            extra.parser, extra.metavar = parser, extra.metavar or metavar
        changed.append(extra)
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[(kind, *changed)])


def _inside(kind: Any) -> list[Any]:
    """The types that a list, or a union of a type with None or a list, is made of."""
    return [inner for arg in get_args(kind) for inner in (arg, *_inside(arg))]


def with_repetition(message: str, arguments: Sequence[str], repeatable: Sequence[str]) -> str:
    """Returns the message about an argument too many, with what to write where it is another value of an option.

    Args:
        message: of Typer.
        arguments: of the command.
        repeatable: names of the options that may be repeated.
    """
    for name, value, extra in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if name in repeatable and not extra.startswith("--"):
            return f"{message}. Repeat the option for several values: {name} {value} {name} {extra}"
    return message
