"""Every public docstring: its sections in one order, bullets on privacy, shapes of arrays."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import jaxdp
from jaxdp.registry import ESTIMATORS, LEARNERS

SECTIONS = (
    "Attributes",
    "Args",
    "Returns",
    "Yields",
    "Raises",
    "Values",
    "Privacy",
    "Source",
    "Deviations",
    "Math",
    "Examples",
)
HEADING = re.compile(rf"({'|'.join(SECTIONS)}):(.*)")
INNER = ("bandits.contextual", "bandits.convex", "mechanisms.local_randomizers", "mechanisms.continual_counting")
ARRAY = re.compile(r"^(?!.*Callable).*\b(ArrayLike|Array|ndarray)\b")


def _names(module: Any) -> list[str]:
    return getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])


def public() -> dict[str, Any]:
    """Returns functions and classes by the name under which users find them."""
    modules = [importlib.import_module(f"jaxdp.{name}") for name in (*jaxdp._MODULES, *INNER)]
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in _names(module)}
    return {
        name: each
        for name, each in found.items()
        if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__.startswith("jaxdp")
    }


PUBLIC = public()


def sections(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Returns (name, text behind the heading on its line, lines of the section) of a docstring."""
    name, behind, body = "", "", []
    for line in inspect.cleandoc(text).splitlines()[1:]:
        heading = HEADING.fullmatch(line)
        if heading:
            yield name, behind, body
            (name, behind), body = heading.groups(), []
        else:
            body.append(line)
    yield name, behind, body


def faults(text: str) -> list[str]:
    """Returns the faults in the form of a docstring."""
    found = [each for each in sections(text) if each[0]]
    names = [name for name, _, _ in found]
    wrong = [f"{name} has text behind its heading" for name, behind, _ in found if behind]
    if names != sorted(set(names), key=SECTIONS.index):
        wrong.append(f"sections are {names}")
    for name, _, body in found:
        if name == "Privacy" and not all(line.startswith(("    - ", "      ")) for line in body if line):
            wrong.append("Privacy is not in bullets")
    return wrong


def text_of(argument: str, text: str) -> str:
    """Returns the text of Args or Attributes about an argument."""
    for name, _, body in sections(text):
        if name in ("Args", "Attributes"):
            found = re.search(rf"(?ms)^    \*{{0,2}}{argument}: (.*?)(?=^    \S|\Z)", "\n".join(body))
            if found:
                return found.group(1)
    return ""


def arrays_of(function: Any) -> list[str]:
    """Returns the names of its arguments that are arrays."""
    if not inspect.isfunction(function):
        return []
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if ARRAY.search(str(each.annotation)) and each.name != "key"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_docstring_has_its_sections_in_order(name):
    assert faults(PUBLIC[name].__doc__ or "") == []


def test_arrays_have_shapes():
    missing = [
        f"{name}({argument})"
        for name, each in PUBLIC.items()
        for argument in arrays_of(each)
        if not re.search(r"\[|arrays? |as `|as for|as there|same", text_of(argument, each.__doc__ or ""))
    ]
    assert missing == []


REGISTERED = [entry.factory for entry in (*LEARNERS.values(), *ESTIMATORS.values())]
FACTORIES: list[Any] = [each for each in PUBLIC.values() if each in REGISTERED]


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: str(factory.__name__))
def test_privacy_of_what_is_registered_names_its_unit(factory):
    privacy = [body for name, _, body in sections(factory.__doc__ or "") if name == "Privacy"]
    assert privacy, factory
    assert re.search(r"- (Unit: .*adjacency: |As `|None|No claim)", "\n".join(privacy[0])), privacy


GOOD = """Does it.

    Args:
        x: [n] float.

    Privacy:
        - Unit: a row; adjacency: replace one,
          by any other.

    Source:
        Somebody.
    """


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Source:\n        ", "Source: ", "text behind"),
        ("Privacy:\n        - ", "Privacy:\n        ", "bullets"),
        ("Args:", "Returns:", ""),
        ("Args:", "Deviations:", "sections are"),
        ("Args:", "Source:", "sections are"),
    ],
)
def test_faults_are_seen(old, new, fault):
    wrong = GOOD.replace(old, new)
    assert wrong != GOOD
    assert faults(GOOD) == []
    assert [each for each in faults(wrong) if fault in each] if fault else faults(wrong) == []
