"""All entries, by name, and how users add their own."""

import dataclasses
import difflib
import importlib
import math
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdp.core import Guarantee
from jaxdp.registry.entries import Entry, EstimatorEntry, LearnerEntry, MechanismEntry

HERE = Path(__file__).parent
MOST = 0.85  # of a claim that attacks reach on right code with 10^6 trials, where an entry says nothing else
BUDGETS = (0.1, 4.0)  # values of epsilon at which learners and estimators are attacked besides their own


class Table(dict[str, Any]):
    """Entries by name. A name that is not there is told with those that are near it."""

    def __missing__(self, name: str) -> Any:
        near = difflib.get_close_matches(str(name), self) or list(self)
        raise KeyError(f"{name}: no entry has this name; near it: {', '.join(near)}")


def entry_modules() -> Iterator[ModuleType]:
    """Yields the modules in the packages beside this file, except those whose names begin with an underscore."""
    root = f"{__package__}."
    for module in pkgutil.walk_packages([str(HERE)], root):
        path = module.name.removeprefix(root).split(".")
        if not module.ispkg and len(path) > 1 and not path[-1].startswith("_"):
            yield importlib.import_module(module.name)


def _collected() -> dict[str, Entry]:
    """Returns the entries of all modules, in the order of their `ORDER`; of modules without one last, by their paths.

    Raises:
        ValueError: if two modules have an entry of one name.
    """
    modules = sorted(entry_modules(), key=lambda module: getattr(module, "ORDER", math.inf))
    found: dict[str, Entry] = {}
    for module in modules:
        for name, entry in module.ENTRIES.items():
            if name in found:
                raise ValueError(f"ENTRIES must have new names, got {name!r} in {module.__name__}, which another has")
            found[name] = _told_auditors(entry)
    return found


def _told_auditors(entry: Entry) -> Entry:
    """Returns an entry with the share that attacks reach, and other budgets, where it claims something.

    What it says itself stays, as do budgets that its `values` lack.
    """
    if entry.proof == "none":
        return entry
    grid = dict(entry.grid)
    if "epsilon" in entry.values and "epsilon" not in grid:
        grid["epsilon"] = tuple(x for x in BUDGETS if x != entry.values["epsilon"])
    return dataclasses.replace(entry, reached=MOST if entry.reached is None else entry.reached, grid=grid)


_ENTRIES = _collected()


def _of_kind(kind: type[Entry]) -> dict[str, Any]:
    return Table({name: entry for name, entry in _ENTRIES.items() if isinstance(entry, kind)})


MECHANISMS: dict[str, MechanismEntry] = _of_kind(MechanismEntry)
LEARNERS: dict[str, LearnerEntry] = _of_kind(LearnerEntry)
ESTIMATORS: dict[str, EstimatorEntry] = _of_kind(EstimatorEntry)
TABLES: dict[str, tuple[type[Entry], dict[str, Any]]] = {
    "mechanism": (MechanismEntry, MECHANISMS),
    "learner": (LearnerEntry, LEARNERS),
    "estimator": (EstimatorEntry, ESTIMATORS),
}
KINDS = tuple(TABLES)
_LIBRARYS = frozenset(_ENTRIES)


def register(name: str, entry: Entry, *, replace: bool = False) -> None:
    """Adds a learner, an estimator or a mechanism of your own, for this process.

    From then on it is listed by `python -m jaxdp list`, attacked by `python -m jaxdp audit` and checked by
    `jaxdp.testing.check_registered`. So that the commands find it, call this in a module that is named by
    `--with MODULE`, or that your distribution declares as an entry point of the group `jaxdp.register`.

    Args:
        name: by which commands know it: letters, digits and underscores, and nobody else's.
        entry: a `LearnerEntry`, an `EstimatorEntry` or a `MechanismEntry` of `jaxdp.registry`.
        replace: whether the entry may take the place of an earlier one of yours, as when a notebook's cell runs again.

    Raises:
        ValueError: if the name is taken, with `replace` by an entry of the library, or is no identifier; if entry is of
            another type, what its factory makes is not of its kind, or `values` do not fit.

    Examples:
        >>> from jaxdp.registry import LEARNERS
        >>> wider = LEARNERS["rucb"].sized(num_arms=8)
        >>> register("rucb_of_eight", wider)
        >>> LEARNERS.pop("rucb_of_eight").make()
        rucb(num_arms=8)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name must be letters, digits and underscores, and not start with a digit, got {name!r}")
    for kind, (_, table) in TABLES.items():
        if name in table and (name in _LIBRARYS or not replace):
            raise ValueError(f"name must be new, got {name!r}, which is a registered {kind}")
    own = next((table for made, table in TABLES.values() if isinstance(entry, made)), None)
    if own is None:
        kinds = ", ".join(made.__name__ for made, _ in TABLES.values())
        raise ValueError(f"entry must be one of {kinds}, got an instance of {type(entry).__name__}")
    claim_of(entry)
    for _, table in TABLES.values():
        table.pop(name, None)
    own[name] = entry


def own_entries() -> dict[str, Any]:
    """Returns the entries that were registered beside the library's, by name."""
    return {name: entry for _, table in TABLES.values() for name, entry in table.items() if name not in _LIBRARYS}


def claim_of(entry: Any) -> Guarantee:
    """What an entry claims at its values.

    Raises:
        ValueError: if its `params` or its `guarantee` does not take its values, or the latter makes anything else.
    """
    made = entry.make()
    try:
        made.params(**entry.values)
        claim = made.guarantee(**entry.values)
    except TypeError as error:
        raise ValueError(f"values must be what params and guarantee take, got {dict(entry.values)}: {error}") from error
    if not isinstance(claim, Guarantee):
        raise ValueError(f"guarantee must return a Guarantee, got {claim!r}")
    return claim


def entry_of(name: str) -> Any:
    """The entry of that name; a KeyError if there is none."""
    return next(table for _, table in TABLES.values() if name in table)[name]
