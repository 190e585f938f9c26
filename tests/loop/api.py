"""Every public name with its signature, in a file for reviews of changes.

Usage: `python tests/loop/api.py` renews `docs/reference/api.txt`.
"""

import difflib
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from site_pages.docstrings import signature  # noqa: E402
from site_pages.names import everything, exports, public_modules  # noqa: E402

FILE = ROOT / "docs" / "reference" / "api.txt"
COMMAND = "python tests/loop/api.py"


def lines_now() -> list[str]:
    """Returns a line for each public name, sorted: its path and signature, or the path under which it is described."""
    described = {id(name.value): name.path for name in everything()}
    lines = set()
    for path in public_modules():
        module = importlib.import_module(path)
        for name in exports(module):
            value = getattr(module, name)
            where = described.get(id(value), f"{path}.{name}")
            if inspect.ismodule(value):
                continue
            if where != f"{path}.{name}":
                lines.add(f"{path}.{name} = {where}")
            else:
                lines.update(_lines(where, value))
    return sorted(lines)


def lines_in_file() -> list[str]:
    """Returns the lines that the file has."""
    return FILE.read_text(encoding="utf-8").splitlines()


def differences(old: list[str], new: list[str]) -> Iterator[str]:
    """Yields a sentence for each public name that is gone, new, or has another signature.

    Args:
        old: lines of the file.
        new: lines of today.
    """
    place = f"docs/reference/{FILE.name}"
    renew = f"if this is meant, renew the file: {COMMAND}"
    was, is_now = ({_name(line): line for line in lines} for lines in (old, new))
    for name in sorted({*was, *is_now}):
        if name not in was:
            near = difflib.get_close_matches(name, [each for each in was if each not in is_now], 1)
            yield f"{name}: it is not in {place}{f', which has {near[0]}' if near else ''}; {renew}"
        elif name not in is_now:
            yield f"{name}: {place} has it, and no public module does; {renew}"
        elif was[name] != is_now[name]:
            yield f"{name}: it was {was[name]} in {place} and is {is_now[name]} now; {renew}"


def _name(line: str) -> str:
    return line.split("(", 1)[0].split(" ", 1)[0].rstrip(":")


def _lines(path: str, value: Any) -> Iterator[str]:
    """Yields the lines of one name: of a class, its public methods and properties as well."""
    if not callable(value):
        yield f"{path}: {type(value).__name__}"
        return
    yield f"{path}{signature(value) or ''}"
    if inspect.isclass(value):
        for name, attribute in vars(value).items():
            if name.startswith("_"):
                continue
            if isinstance(attribute, property):
                yield f"{path}.{name}: property"
            elif isinstance(attribute, classmethod | staticmethod) or inspect.isfunction(attribute):
                yield f"{path}.{name}{signature(getattr(attribute, '__func__', attribute)) or ''}"


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines_now()), encoding="utf-8")
