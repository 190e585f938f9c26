"""Finds the factory of a learner or estimator by name, and hashes the program in its source files."""

import ast
import contextlib
import hashlib
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxdp.registry import ESTIMATORS, LEARNERS

# Values of required arguments, as functions of the number of rounds used. They are the same for every learner.
FIXED: Mapping[str, Callable[[int], int]] = {
    "explore_rounds": lambda horizon: 64 * max(1, horizon // 640),  # a multiple of the number of arms of every bandit
    "num_rounds": lambda horizon: horizon // 10,
    "num_switches": lambda horizon: 1,
}


def resolve(name: str) -> tuple[Any, dict[str, Any]]:
    """Returns the factory of a learner or estimator, and the arguments that select its variant.

    The arguments include neither the kind of rewards nor the arguments in `FIXED`, which the benchmark chooses.

    Args:
        name: "module:attribute", with a module that may be in the current folder; or the name of a registered entry.

    Raises:
        ValueError: if there is no such module, attribute or entry.
    """
    entry = LEARNERS.get(name) or ESTIMATORS.get(name)
    if entry is not None:
        variant = {key: value for key, value in entry.variant.items() if key not in {*FIXED, "rewards"}}
        return entry.factory, variant
    module, colon, attribute = name.partition(":")
    if not colon or not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"learner must be module:name, or a name that `python -m jaxdp list --all` prints, got {name!r}"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"learner must be module:name that can be imported, got {name!r}: {error}") from error
    return factory, {}


def earlier_entry(name: str) -> str:
    """Returns the name of an earlier learner that the benchmark plays in the same way; empty if there is none."""
    if name not in LEARNERS:
        return ""
    earlier = itertools.takewhile(lambda other: other != name, LEARNERS)
    return next((other for other in earlier if resolve(other) == resolve(name)), "")


def code_hash(name: str) -> str:
    """Returns the first 16 hexadecimal digits of the SHA-256 of the program in the learner's source files.

    The source files are the file that defines the learner's factory and, for "module:attribute", the file of the
    module. The program is the code without comments and docstrings. The result is empty if there is no source file.

    Args:
        name: as for `resolve`.

    Raises:
        ValueError: if there is no such learner or estimator.
    """
    factory, _ = resolve(name)
    module = name.partition(":")[0]
    files = [getattr(sys.modules[module], "__file__", None)] if ":" in name else []
    with contextlib.suppress(TypeError):  # an instance of a class has no source file
        files.append(inspect.getsourcefile(inspect.unwrap(factory)))
    programs = [_without_comments(Path(file).read_bytes()) for file in dict.fromkeys(files) if file]
    return hashlib.sha256(b"\n".join(programs)).hexdigest()[:16] if programs else ""


def _without_comments(source: bytes) -> bytes:
    """Returns a text that does not depend on docstrings, comments or line breaks; `source` if it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    for node in ast.walk(tree):
        may_have_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if may_have_docstring and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return repr(_syntax(tree)).encode()


def _syntax(node: Any) -> Any:
    """Returns nested tuples of a syntax tree, without empty fields: these differ between versions of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, _syntax(value)) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return type(node).__name__, *fields
    return tuple(map(_syntax, node)) if isinstance(node, list) else node
