"""Loads entries from installed distributions, and from modules that a command names."""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path

from jaxdp.validation import warn_caller

GROUP = "jaxdp.register"
_tried: set[str] = set()  # values of the entry points that were tried, and `GROUP` once they were listed
_imported: dict[str, None] = {}  # names of modules that `import_modules` imported, in order


def load_plugins(report: Callable[[str], None] = warn_caller) -> None:
    """Loads the entry points of the group `jaxdp.register` of all installed distributions, once per process.

    An entry point is a module that calls `jaxdp.register` on import, or a function without arguments that calls
    `jaxdp.register`. A failure of an entry point is reported, and all other entry points are still loaded.

    Args:
        report: function that is called with one sentence for each failure, after all entry points are loaded; the
            default issues a warning.
    """
    if GROUP in _tried:
        return
    _tried.add(GROUP)
    failures = []
    for point in entry_points(group=GROUP):
        if point.value in _tried:  # declared by two distributions, or found twice
            continue
        _tried.add(point.value)
        try:
            loaded = point.load()
            if callable(loaded):
                loaded()
        except (Exception, SystemExit) as error:
            origin = f" of {point.dist.name}" if point.dist is not None else ""
            message = " ".join(str(error).split())
            kind = type(error).__name__
            failures.append(f"the entry point {point.name}{origin} ({point.value}) was not loaded: {kind}: {message}")
    for failure in failures:  # after the loop, because a warning may be an error
        report(failure)


def import_modules(names: Iterable[str]) -> None:
    """Imports modules that register entries; modules in the current folder are found, too.

    Args:
        names: dotted names of modules, as in an `import` statement.

    Raises:
        ValueError: if a name is not a dotted name, a module does not exist, its import fails, or it registers nothing.
            A module registers an entry if its code, or an import that it makes, is running when `jaxdp.register` is
            called.
    """
    from jaxdp.registry.registered import REGISTERING  # a late import: this module imports all entries

    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"with must be the dotted name of a module, got {name!r}")
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"with must name a module that can be imported, got {name!r}: {type(error).__name__}{_origin(error)}"
            ) from error
        if name not in REGISTERING:  # a module that was imported before registered its entries at that time
            raise ValueError(f"with must name a module that calls jaxdp.register, got {name!r}, which does not")
        _imported[name] = None


def _origin(error: BaseException) -> str:
    """Formats an error as ": message (file, line n)", with the file and line that raised it, if known."""
    message = " ".join(str(error).split())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    return f": {message}{where}" if message else where


def imported_modules() -> list[str]:
    """Returns the names of modules that `import_modules` has imported, for code that runs in another process."""
    return list(_imported)
