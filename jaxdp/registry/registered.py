"""The tables of all entries by name, and `register`, which adds users' entries."""

import dataclasses
import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdp.core import Guarantee
from jaxdp.registry.entries import BUDGETS, Entry, EstimatorEntry, LearnerEntry, MechanismEntry
from jaxdp.validation import check_choice

HERE = Path(__file__).parent
MOST = 0.85  # default of `reached`: fraction of the claimed budget that attacks find on correct code with 10^6 trials


class Table(dict[str, Any]):
    """Entries keyed by name. The error for an unknown name lists similar names, or all names if none is similar."""

    def __missing__(self, name: str) -> Any:
        near = difflib.get_close_matches(str(name), self)
        names = f"similar names: {', '.join(near)}" if near else f"all names: {', '.join(self)}"
        raise KeyError(f"{name}: no entry has this name; {names}")


def entry_modules() -> Iterator[ModuleType]:
    """Yields the modules in the packages of this folder, except modules with a leading underscore."""
    root = f"{__package__}."
    for module in pkgutil.walk_packages([str(HERE)], root):
        path = module.name.removeprefix(root).split(".")
        if not module.ispkg and len(path) > 1 and not path[-1].startswith("_"):
            yield importlib.import_module(module.name)


def _collect() -> dict[str, Entry]:
    """Returns the entries of all modules, with default audit settings, in the order of the modules' `ORDER`.

    Modules without `ORDER` come last, by path. Raises a ValueError if two entries have the same name.
    """
    modules = sorted(entry_modules(), key=lambda module: getattr(module, "ORDER", math.inf))
    entries: dict[str, Entry] = {}
    for module in modules:
        for name, entry in module.ENTRIES.items():
            if name in entries:
                raise ValueError(
                    f"ENTRIES must have new names, got {name!r} in {module.__name__}: another module has it"
                )
            entries[name] = _with_audit_settings(entry)
    return entries


def _with_audit_settings(entry: Entry) -> Entry:
    """Fills in `reached` and the epsilons of `grid` where an entry lacks them, unless the entry claims nothing."""
    if entry.proof == "none":
        return entry
    grid = dict(entry.grid)
    if "epsilon" in entry.values and "epsilon" not in grid:
        grid["epsilon"] = tuple(epsilon for epsilon in BUDGETS if epsilon != entry.values["epsilon"])
    return dataclasses.replace(entry, reached=MOST if entry.reached is None else entry.reached, grid=grid)


_ENTRIES = _collect()


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
_NAMES_OF_LIBRARY = frozenset(_ENTRIES)
REGISTERING: set[str] = set()  # names of the modules that were running when `register` was called


def register(name: str, entry: Entry, *, replace: bool = False) -> None:
    """Adds your own learner, estimator or mechanism to the tables, for this process.

    Then `python -m jaxdp list` lists it, `python -m jaxdp audit` attacks it, and `jaxdp.testing.check_registered`
    checks it. The commands find it if `register` is called by a module that `--with MODULE` names, or by an entry
    point (a module or a function) of the group `jaxdp.register` that your distribution declares.

    Args:
        name: a name of letters, digits and underscores that does not start with a digit; new, except with `replace`.
        entry: a `LearnerEntry`, an `EstimatorEntry` or a `MechanismEntry` of `jaxdp.registry`.
        replace: whether the entry may replace your earlier entry of this name, for example when a notebook's cell runs
            again.

    Raises:
        ValueError: if the name is taken (with `replace`: by an entry of the library) or is not an identifier; if entry
            has another type; if the factory of a learner or an estimator returns an object of another type; if `params`
            or `guarantee` does not accept `values`; or if `guarantee` does not return a Guarantee.

    Examples:
        >>> from jaxdp.registry import LEARNERS, register
        >>> wider = LEARNERS["rucb"].sized(num_arms=8)
        >>> register("rucb_of_eight", wider)
        >>> LEARNERS.pop("rucb_of_eight").make()
        rucb(num_arms=8)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name must be letters, digits and underscores, and not start with a digit, got {name!r}")
    for kind, (_, table) in TABLES.items():
        if name in table and (name in _NAMES_OF_LIBRARY or not replace):
            raise ValueError(f"name must be new, got {name!r}, which is a registered {kind}")
    table_of_kind = next((table for entry_type, table in TABLES.values() if isinstance(entry, entry_type)), None)
    if table_of_kind is None:
        kinds = ", ".join(entry_type.__name__ for entry_type, _ in TABLES.values())
        raise ValueError(f"entry must be one of {kinds}, got an instance of {type(entry).__name__}")
    claim_of(entry)
    for _, table in TABLES.values():
        table.pop(name, None)
    table_of_kind[name] = entry
    frame = inspect.currentframe()
    while frame is not None:
        REGISTERING.add(str(frame.f_globals.get("__name__")))
        frame = frame.f_back


def user_entries() -> dict[str, Any]:
    """Returns the entries that users have registered, keyed by name."""
    return {
        name: entry for _, table in TABLES.values() for name, entry in table.items() if name not in _NAMES_OF_LIBRARY
    }


def claim_of(entry: Any) -> Guarantee:
    """Returns the claim of an entry at its values.

    Raises:
        ValueError: if the factory of a learner or an estimator returns an object of another type, `params` or
            `guarantee` does not accept the values, or `guarantee` does not return a Guarantee.
    """
    algorithm = entry.make()
    try:
        algorithm.params(**entry.values)
        claim = algorithm.guarantee(**entry.values)
    except TypeError as error:
        raise ValueError(
            f"values must be the arguments of params and guarantee, got {dict(entry.values)}: {error}"
        ) from error
    if not isinstance(claim, Guarantee):
        raise ValueError(f"guarantee must return a Guarantee, got {claim!r}")
    return claim


def entry_of(name: str) -> Any:
    """Returns the entry with this name; raises ValueError if no entry has it."""
    entries = {registered: entry for _, table in TABLES.values() for registered, entry in table.items()}
    return entries[check_choice("name", name, tuple(entries))]
