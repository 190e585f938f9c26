"""Entries from elsewhere: installed distributions, and modules that a command names."""

import importlib
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "jaxdp.register"
_tried: set[str] = set()  # the group, once it was read, and what its entry points load
_imported: dict[str, None] = {}  # by `import_modules`, in order


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)


def load_plugins(report: Callable[[str], None] = _warn) -> None:
    """Loads the entry points of the group `jaxdp.register`, of all installed distributions, once in a process.

    Such an entry point is a module that calls `jaxdp.register` when it is imported, or a function that does when it is
    called without arguments. One that fails is reported, and the others are loaded all the same.

    Args:
        report: gets one sentence for each that fails; without it, that is a warning.
    """
    if GROUP in _tried:
        return
    _tried.add(GROUP)
    for point in entry_points(group=GROUP):
        if point.value in _tried:  # two distributions may declare it, or one that is found twice
            continue
        _tried.add(point.value)
        try:
            found = point.load()
            if callable(found):
                found()
        except Exception as error:
            origin = f" of {point.dist.name}" if point.dist is not None else ""
            told = " ".join(str(error).split())
            report(
                f"the entry point {point.name}{origin} ({point.value}) was not loaded: {type(error).__name__}: {told}"
            )


def import_modules(names: Iterable[str]) -> None:
    """Imports modules that register their entries, also from the current folder.

    Args:
        names: dotted, as `import` takes them.

    Raises:
        ValueError: if there is no module of that name, it fails when it is imported, or it registers nothing.
    """
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"with must be the dotted name of a module, got {name!r}")
        is_loaded, before = name in sys.modules, _registered()
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"with must name a module that can be imported, got {name!r}: {type(error).__name__}{_origin(error)}"
            ) from error
        # What was imported before may have registered its entries then.
        if name not in _imported and _registered() == ({} if is_loaded else before):
            raise ValueError(f"with must name a module that calls jaxdp.register, got {name!r}, which does not")
        _imported[name] = None


def _registered() -> dict[str, int]:
    """The entries that are not the library's, by name, each with what tells it from another of its name."""
    from jaxdp.registry.registered import own_entries  # which imports all entries

    return {name: id(entry) for name, entry in own_entries().items()}


def _origin(error: BaseException) -> str:
    """The message of an error, and the line of the file that raised it."""
    message = " ".join(str(error).split())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    return f": {message}{where}" if message else where


def imported_modules() -> list[str]:
    """The modules that `import_modules` has imported in this process: code for another one needs them as well."""
    return list(_imported)
