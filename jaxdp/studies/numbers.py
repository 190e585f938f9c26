"""Parsers of numbers on the command line, such as 10000, 1e4 or inf."""

import copy
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.models import OptionInfo

LONGEST = 40  # maximum number of digits of an integer, including its sign


def whole_number(text: Any) -> int:
    """Parses an integer, such as 10000 or 1e4; returns values that are not text, such as defaults, unchanged.

    Raises:
        typer.BadParameter: if the text is not an integer, or the integer has more than 40 digits, including its sign.
    """
    if not isinstance(text, str):
        return text
    parts = re.fullmatch(r"([+-]?\d+)(?:\.(\d+))?[eE]\+?(\d{1,2})", text.strip())
    if parts:
        integer_digits, fraction, power = parts[1], (parts[2] or "").rstrip("0"), int(parts[3])
        if len(fraction) <= power:
            text = integer_digits + fraction + "0" * (power - len(fraction))
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise typer.BadParameter(f"{text!r} is not an integer, such as 10000 or 1e4{_repeat(text)}")
    if len(text.strip()) > LONGEST:
        raise typer.BadParameter(f"an integer must have at most {LONGEST} digits, got {len(text.strip())}")
    return int(text)


def number(text: Any) -> float:
    """Parses a number; returns values that are not text, such as defaults, unchanged.

    Raises:
        typer.BadParameter: if the text is not a number, or overflows float64.
    """
    try:
        value = text if not isinstance(text, str) else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number, such as 0.5, 1e4 or inf{_repeat(text)}") from None
    if isinstance(text, str) and math.isinf(value) and "inf" not in text.lower():
        raise typer.BadParameter(f"a number must be within the range of float64, or inf, got {text}")
    return value


def _repeat(text: str) -> str:
    return "; to give several values, repeat the option for each" if re.search(r"[,;\s]", text.strip()) else ""


PARSERS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (whole_number, "<int>"),
    float: (number, "<float>"),
}


def with_parsers(parameter: inspect.Parameter) -> inspect.Parameter:
    """Adds a parser of numbers to a command's option if the option takes numbers."""
    kind, *extras = get_args(parameter.annotation) if get_origin(parameter.annotation) is Annotated else (None,)
    number_type = next((part for part in (kind, *_nested_types(kind)) if part in PARSERS), None)
    if number_type is None:
        return parameter
    parser, metavar = PARSERS[number_type]
    changed = []
    for extra in extras:
        if isinstance(extra, OptionInfo):
            extra = copy.copy(extra)
            extra.parser, extra.metavar = parser, extra.metavar or metavar
        changed.append(extra)
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[(kind, *changed)])


def _nested_types(kind: Any) -> list[Any]:
    """Returns the types inside a list or a union."""
    return [part for arg in get_args(kind) for part in (arg, *_nested_types(arg))]


def with_repetition(message: str, arguments: Sequence[str], repeatable: Sequence[str]) -> str:
    """Adds advice to Typer's message about an extra argument, if the argument follows the value of such an option."""
    for name, value, extra in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if name in repeatable and not extra.startswith("--"):
            return f"{message}. Repeat the option for several values: {name} {value} {name} {extra}"
    return message
