"""Lists the operations of a traced program."""

from collections.abc import Iterator
from typing import Any


def inner_programs(equation: Any) -> Iterator[Any]:
    """Yields the programs inside an operation, such as the body of a loop."""
    for value in equation.params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(item, "eqns") or hasattr(item, "jaxpr"):
                yield item


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yields all operations of a traced program, including operations inside loops, branches and calls."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for inner in inner_programs(equation):
            yield from equations(inner)
