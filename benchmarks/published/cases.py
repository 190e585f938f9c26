"""Cases of attacks on published code, and helpers of the adapters."""

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jaxdp
from jaxdp.audit import PythonLearner

FEEDBACK = {"privacy_unit": "one round's reward", "sensitive_fields": ("answers",)}
ALL_DATA = {"privacy_unit": "one round's context and reward"}


class Case(NamedTuple):
    """A learner to attack.

    Attributes:
        learner: the learner with its claim.
        rounds: length of a run.
        setting: parameters that differ from the repository's scripts, and other choices of the adapter.
        seen: what the attack sees.
    """

    learner: PythonLearner
    rounds: int
    setting: str
    seen: str


class Repository(NamedTuple):
    """A public repository.

    Attributes:
        url: its address.
        commit: the attacked commit.
        digest: start of the SHA-256 of the files that are imported, by their sorted paths.
        files: patterns of these files.
        cases: path of a checkout -> cases by name of class or function.
    """

    url: str
    commit: str
    digest: str
    files: tuple[str, ...]
    cases: Callable[[Path], dict[str, Case]]


def claim(epsilon: float, delta: float = 0.0, model: str = "central", **about: Any) -> jaxdp.Guarantee:
    """Returns a claim of the authors."""
    about = {"trust_model": model, "argument": "stated by the authors", **(about or FEEDBACK)}
    if delta:
        return jaxdp.Guarantee.approximate(epsilon, delta, **about)
    return jaxdp.Guarantee.pure(epsilon, **about)


def load(folder: Path, name: str) -> Any:
    """Imports a module of a checkout, whose folders become packages if they are none."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    package = name.partition(".")[0]
    if package != name and package not in sys.modules and not (folder / package / "__init__.py").exists():
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [str(folder / package)]  # an installed module may have the same name
    return importlib.import_module(name)
