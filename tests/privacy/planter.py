"""Modules of the library with a mistake in their source, and their definitions with those lines."""

import importlib
import inspect
import sys
from itertools import count
from types import ModuleType

_numbers = count()


def planted(name: str, *changes: tuple[str, str]) -> ModuleType:
    """Returns a module with replaced text; importers of the right module keep it.

    Args:
        name: of the module, dotted.
        *changes: the text, which occurs once, and its replacement.

    Raises:
        ValueError: if a text does not stand there once.
    """
    right = importlib.import_module(name)
    source = inspect.getsource(right)
    for old, new in changes:
        if source.count(old) != 1:
            raise ValueError(f"{name} must have this text once, got {source.count(old)} times {old!r}")
        source = source.replace(old, new)
    wrong = ModuleType(f"{name}_planted_{next(_numbers)}", right.__doc__)
    wrong.__package__ = right.__package__
    sys.modules[wrong.__name__] = wrong  # where dataclasses look for the names of their fields' types
    exec(compile(source, f"<{wrong.__name__}>", "exec"), wrong.__dict__)
    return wrong
