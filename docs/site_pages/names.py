"""Lists every public name of the library, and the page of the reference that describes it."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import jaxdp

# The public modules that a page describes, in the order of its sections. A name that several modules export is
# described on the page of the shortest one.
PAGES: dict[str, tuple[str, ...]] = {
    "simulation": ("jaxdp", "jaxdp.simulation"),
    "core": ("jaxdp.core",),
    "mechanisms": (
        "jaxdp.mechanisms",
        "jaxdp.mechanisms.calibration",
        "jaxdp.mechanisms.local_randomizers",
        "jaxdp.mechanisms.continual_counting",
        "jaxdp.mechanisms.shuffle",
    ),
    "estimation": ("jaxdp.estimation",),
    "bandits": ("jaxdp.bandits",),
    "convex": ("jaxdp.bandits.convex",),
    "contextual": ("jaxdp.bandits.contextual",),
    "dueling": ("jaxdp.dueling",),
    "experts": ("jaxdp.experts", "jaxdp.experts.classes"),
    "preferences": ("jaxdp.preferences",),
    "design": ("jaxdp.design",),
    "random": ("jaxdp.random",),
    "stats": ("jaxdp.stats",),
    "abtests": ("jaxdp.abtests",),
    "comparisons": ("jaxdp.comparisons",),
    "suite": ("jaxdp.suite", "jaxdp.suite.v1"),
    "plotting": ("jaxdp.plotting",),
    "audit": ("jaxdp.audit",),
    "registry": ("jaxdp.registry",),
    "studies": ("jaxdp.studies",),
    "testing": ("jaxdp.testing",),
    "theory": (
        "jaxdp.theory",
        "jaxdp.theory.reward_estimation",
        "jaxdp.theory.dueling",
        "jaxdp.theory.linear_dueling",
        "jaxdp.theory.tracking",
        "jaxdp.theory.ldp_bandits",
        "jaxdp.theory.contextual",
    ),
}
# The return type of a factory, and its heading on a page.
KINDS = {
    "Learner": "Learners",
    "Estimator": "Estimators",
    "Environment": "Environments",
    "Problem": "Problems",
    "LocalRandomizer": "Channels",
    "Counter": "Counters",
}


# Values without a docstring of their own.
DATA = {
    "jaxdp.core.Outcome": "The numbers that a round adds to sums: a scalar for each name, such as `pseudo_regret`.",
    "jaxdp.core.Scalar": "The type of a scalar leaf of `Params`: a number of Python or NumPy, or a scalar array.",
    "jaxdp.preferences.logistic": "The Bradley-Terry link: the logistic function of a difference of utilities.",
    "jaxdp.preferences.probit": "The Thurstone link: the normal distribution function of a difference of utilities.",
    "jaxdp.registry.ESTIMATORS": "Every registered estimator, by name: an `EstimatorEntry` each.",
    "jaxdp.registry.KINDS": "The kinds of entries: mechanism, learner and estimator.",
    "jaxdp.registry.LEARNERS": "Every registered learner, by name: a `LearnerEntry` each.",
    "jaxdp.registry.MECHANISMS": "Every registered mechanism, by name: a `MechanismEntry` each.",
    "jaxdp.suite.INSTANCES": "The frozen instances of version 1, by name: an `Instance` each.",
    "jaxdp.studies.STUDIES": "Every study, by its name in `python -m jaxdp run`: the first sentence of its module.",
}


class Name(NamedTuple):
    """One public name.

    Attributes:
        path: the path that users import, such as `jaxdp.dueling.rucb`.
        value: the object.
        kind: its heading on its page.
    """

    path: str
    value: Any
    kind: str

    @property
    def module(self) -> str:
        """The module that exports it."""
        return self.path.rpartition(".")[0]

    @property
    def summary(self) -> str:
        """The first line of its docstring, or its line in `DATA`; empty without either."""
        if self.kind == "Data":
            return DATA.get(self.path, "")
        return (self.value.__doc__ or "").strip().partition("\n")[0]


def public_modules() -> list[str]:
    """Returns the modules that users import from: no part of the name is private, and `__all__` lists the exports.

    Modules that such a module exports are public as well, with all their definitions.
    """
    found = ["jaxdp"]
    for each in pkgutil.walk_packages(jaxdp.__path__, "jaxdp."):
        if any(part.startswith("_") for part in each.name.split(".")):
            continue
        module = importlib.import_module(each.name)
        parent, _, last = each.name.rpartition(".")
        exported = last in getattr(importlib.import_module(parent), "__all__", ())
        if hasattr(module, "__all__") or exported or (parent == "jaxdp" and last in jaxdp._MODULES):
            found.append(each.name)
    return found


def exports(module: ModuleType) -> list[str]:
    """Returns the names that a public module exports: `__all__`, or else the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def kind_of(value: Any) -> str:
    """Returns the heading of a value on its page."""
    if inspect.isfunction(value):
        returned = inspect.signature(value).return_annotation
        returned = getattr(returned, "__name__", str(returned))
        return KINDS.get(returned, "Functions")
    return "Types" if inspect.isclass(value) else "Data"


def names_by_page() -> dict[str, dict[str, list[Name]]]:
    """Returns, for each page and module of the reference, the names that it describes; each name occurs once."""
    seen: set[int] = set()
    pages: dict[str, dict[str, list[Name]]] = {}
    for page, modules in PAGES.items():
        pages[page] = {}
        for path in modules:
            module = importlib.import_module(path)
            pages[page][path] = []
            for name in exports(module):
                value = getattr(module, name)
                if inspect.ismodule(value) or id(value) in seen:
                    continue
                seen.add(id(value))
                pages[page][path].append(Name(f"{path}.{name}", value, kind_of(value)))
    return pages


def everything() -> Iterator[Name]:
    """Yields every name that the reference describes, page by page."""
    for modules in names_by_page().values():
        for names in modules.values():
            yield from names


def missing(names: list[Name], modules: list[str]) -> list[str]:
    """Returns exports of public modules that no name describes, or that have no docstring.

    Args:
        names: the names of the reference.
        modules: names of public modules, as `public_modules` gives them.
    """
    values = {id(name.value) for name in names}
    found = [name.path for name in names if not name.summary]
    for path in modules:
        module = importlib.import_module(path)
        if not (module.__doc__ or "").strip():
            found.append(path)
        for name in exports(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                if value.__name__ not in modules:
                    found.append(f"{path}.{name}")
            elif id(value) not in values:
                found.append(f"{path}.{name}")
    return found
