"""Reads the displayed formulas of docstrings, and evaluates them."""

import inspect
import math
import re
from statistics import NormalDist
from typing import Any

COMMAND = r"\\[a-zA-Z]+"
TOKEN = re.compile(
    rf"\\[lr](?:ceil|floor)|(?:{COMMAND}|[a-zA-Z])_(?:{COMMAND}|[a-zA-Z\d])|{COMMAND}|\\[,;]|\d+\.?\d*|[a-zA-Z]'?"
    r"|[-+*/^{}()|,]"
)
ENDS = ("+", "-", ")", "}", ",", r"\rceil", r"\rfloor")
BRACKETS = {r"\lceil": math.ceil, r"\lfloor": math.floor}
FUNCTIONS = {
    r"\sqrt": math.sqrt,
    r"\ln": math.log,
    r"\Gamma": math.gamma,
    r"\sinh": math.sinh,
    r"\Phi": NormalDist().cdf,
    r"\round": round,
}
EXTREMES = {r"\min": min, r"\max": max}
FORMULA = re.compile(r"(?ms)^\$\$\n(.*?)\n\$\$$")
LAPLACE = re.compile(r"\\mathrm\{Lap(?:lace)?\}\(([^()]*)\)")


def math_section(function: Any) -> str:
    """Returns the section `Math` of a function's docstring."""
    _, _, section = (inspect.getdoc(function) or "").partition("\nMath:\n")
    return inspect.cleandoc(re.split(r"(?m)^\w+:$", section)[0])


def formulas(function: Any) -> list[str]:
    """Returns the displayed formulas of a function's docstring, each on one line."""
    return [" ".join(found.split()) for found in FORMULA.findall(math_section(function))]


def parts(function: Any) -> list[str]:
    """Returns the parts of the displayed formulas, which wide spaces separate."""
    return [part.strip().rstrip(",") for formula in formulas(function) for part in formula.split(r"\quad")]


def definition(function: Any, symbol: str) -> str:
    """Returns the right side of the formula that defines a symbol."""
    for part in parts(function):
        if part.startswith(f"{symbol} = "):
            return part.removeprefix(f"{symbol} = ").strip()
    raise AssertionError(f"no formula defines {symbol} in {formulas(function)}")


def laplace_scales(function: Any) -> list[str]:
    """Returns the scales of all Laplace distributions in the section `Math`, in its order."""
    return LAPLACE.findall(math_section(function))


class Symbols(dict[str, float]):
    """Values of symbols; others are evaluated by the formulas of a docstring that define them."""

    def __init__(self, function: Any = None, **symbols: float) -> None:
        """Takes the values, and the function whose docstring defines other symbols."""
        super().__init__({"e": math.e, r"\pi": math.pi, **symbols})
        self.function = function

    def __missing__(self, symbol: str) -> float:
        """Evaluates the definition of a symbol without a value."""
        if self.function is None:
            raise KeyError(symbol)
        self[symbol] = evaluate(definition(self.function, symbol), self)
        return self[symbol]


def value_of(function: Any, symbol: str, **symbols: float) -> float:
    """Evaluates a symbol by the formulas of a function's docstring."""
    return evaluate(definition(function, symbol), Symbols(function, **symbols))


def evaluate(latex: str, symbols: dict[str, float]) -> float:
    """Evaluates a formula of fractions, roots, powers, logarithms, and products written side by side."""
    latex = latex.replace(r"\mathrm{round}", r"\round")
    tokens = TOKEN.findall(latex)
    assert "".join(tokens) == re.sub(r"\s", "", latex), f"cannot read all of {latex}"
    tokens = [token for token in tokens if token not in (r"\Big", r"\big", r"\,", r"\;", r"\cdot")]
    value, position = _sum(tokens, 0, symbols)
    assert position == len(tokens), (latex, tokens[position:])
    return value


def _sum(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    sign = -1.0 if tokens[at] == "-" else 1.0
    value, at = _product(tokens, at + (tokens[at] == "-"), symbols)
    value *= sign
    while at < len(tokens) and tokens[at] in ("+", "-"):
        more, after = _product(tokens, at + 1, symbols)
        value, at = (value + more if tokens[at] == "+" else value - more), after
    return value, at


def _product(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    value, at = _power(tokens, at, symbols)
    while at < len(tokens) and tokens[at] not in ENDS:
        divides = tokens[at] == "/"
        more, at = _power(tokens, at + divides, symbols)
        value = value / more if divides else value * more
    return value, at


def _power(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    value, at = _atom(tokens, at, symbols)
    if at < len(tokens) and tokens[at] == "^":
        exponent, at = _atom(tokens, at + 1, symbols)
        value **= exponent
    return value, at


def _atom(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    token = tokens[at]
    if token in "({":
        value, at = _sum(tokens, at + 1, symbols)
        return value, at + 1
    if token == "\\frac":
        above, at = _atom(tokens, at + 1, symbols)
        below, at = _atom(tokens, at, symbols)
        return above / below, at
    if token in BRACKETS:
        value, at = _sum(tokens, at + 1, symbols)
        return BRACKETS[token](value), at + 1
    if token in EXTREMES:
        first, at = _sum(tokens, at + 2, symbols)
        second, at = _sum(tokens, at + 1, symbols)
        return EXTREMES[token](first, second), at + 1
    if token in FUNCTIONS:
        exponent, at = _atom(tokens, at + 2, symbols) if tokens[at + 1] == "^" else (1, at + 1)
        value, at = _atom(tokens, at, symbols)
        return FUNCTIONS[token](value) ** exponent, at
    if re.fullmatch(r"\d+\.?\d*", token):
        return float(token), at + 1
    return symbols[token], at + 1
