"""Every public name of the library, and the page of the reference that describes it."""

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
        "jaxdp.mechanisms.channel",
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
# What a factory returns, and the heading under which a page has it.
KINDS = {
    "Learner": "Learners",
    "Estimator": "Estimators",
    "Environment": "Environments",
    "Problem": "Problems",
    "Channel": "Channels",
    "Counter": "Counters",
}


# What stands for itself and has no docstring of its own.
DATA = {
    "jaxdp.core.Outcome": "What a round adds to the sums: a scalar for each name, at least `pseudo_regret`.",
    "jaxdp.core.Scalar": "What a scalar leaf of `Params` may be: a number of Python or NumPy, or a scalar array.",
    "jaxdp.preferences.logistic": "The Bradley-Terry link: the logistic function of a difference of utilities.",
    "jaxdp.preferences.probit": "The Thurstone link: the normal distribution function of a difference of utilities.",
    "jaxdp.registry.ESTIMATORS": "Every registered estimator, by name: an `EstimatorEntry` each.",
    "jaxdp.registry.KINDS": "The kinds of entries: mechanism, learner and estimator.",
    "jaxdp.registry.LEARNERS": "Every registered learner, by name: a `LearnerEntry` each.",
    "jaxdp.registry.MECHANISMS": "Every registered mechanism, by name: a `MechanismEntry` each.",
    "jaxdp.studies.STUDIES": "Every study, by its name in `python -m jaxdp run`: the first sentence of its module.",
}


class Name(NamedTuple):
    """One public name.

    Attributes:
        path: where users find it, as `jaxdp.dueling.rucb`.
        value: what it names.
        kind: the heading under which its page has it.
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
        """The first line of its docstring, or what `DATA` says of it. Empty where there is neither."""
        if self.kind == "Data":
            return DATA.get(self.path, "")
        return (self.value.__doc__ or "").strip().partition("\n")[0]


def public_modules() -> list[str]:
    """Modules that users import from: no part of the name is private, and `__all__` says what they export.

    Modules that such a module exports are public as well, with what they define.
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
    """Names that a public module exports: `__all__`, or else the public functions and classes that it defines."""
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
    """The heading under which a page has this value."""
    if inspect.isfunction(value):
        returned = inspect.signature(value).return_annotation
        returned = getattr(returned, "__name__", str(returned))
        return KINDS.get(returned, "Functions")
    return "Types" if inspect.isclass(value) else "Data"


def described() -> dict[str, dict[str, list[Name]]]:
    """The reference: for each page and each of its modules the names that it describes, each of them once."""
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
    """Every name that the reference describes, page by page."""
    for modules in described().values():
        for names in modules.values():
            yield from names


def missing(names: list[Name], modules: list[str]) -> list[str]:
    """What these public modules export and these names do not describe, or describe without a docstring.

    Args:
        names: of the reference.
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
