"""An algorithm stands at one path in three trees: its file, its entry in the registry, its tests.

Its path is the path of the file or folder that defines it, without the underscore of private names: `dueling/rucb` is
`jaxdp/dueling/_rucb`, `jaxdp/registry/dueling/rucb.py` and `tests/algorithms/dueling/rucb`. Two tests import the
registry themselves: without an algorithm its import fails, and the other tests then still name the algorithm.
"""

import ast
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.loop import naming

FAMILIES = (
    "bandits",
    "bandits/contextual",
    "bandits/convex",
    "dueling",
    "experts",
    "estimation",
    "mechanisms",
    "mechanisms/local_randomizers",
    "mechanisms/continual_counting",
)
KINDS = {"Learner", "Estimator", "LocalRandomizer", "Counter"}  # what functions that make an algorithm return
REGISTRY = naming.LIBRARY / "registry"
TREES = ("jaxdp", "jaxdp/registry", "tests/algorithms")


def algorithms(root, family):
    """Returns the places of a family's exports that make an algorithm, or draw the output of a mechanism."""
    files = exported(root, root / "jaxdp" / family / "__init__.py")
    places = {naming.place_of(file, root / "jaxdp") for file, function in files if makes_an_algorithm(function)}
    return {place for place in places if place.rpartition("/")[0] == family}


def exported(root, package):
    """Returns (file, definition) of each function that a package imports from files of its own."""
    for node in ast.parse(package.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("jaxdp."):
            where = root.joinpath(*node.module.split("."))
            names = {alias.name for alias in node.names}
            if where == package.parent:
                continue
            if where.is_dir():
                found = exported(root, where / "__init__.py")
                yield from ((file, function) for file, function in found if function.name in names)
            elif where.with_suffix(".py").exists():
                file = where.with_suffix(".py")
                functions = (each for each in ast.parse(file.read_text()).body if isinstance(each, ast.FunctionDef))
                yield from ((file, function) for function in functions if function.name in names)


def makes_an_algorithm(function):
    """Returns whether a function draws an output by a key, or returns an algorithm, and not one that it was given,
    wrapped.
    """
    first = next(iter(function.args.args), None)
    if first is not None and first.arg == "key":
        return True
    returned, given = (each and ast.unparse(each) for each in (function.returns, first and first.annotation))
    return returned in KINDS and given != returned


def entries(root, family):
    """Places of the modules that hold entries."""
    files = (root / "jaxdp/registry" / family).glob("*.py")
    return {naming.place_of(file, root / "jaxdp/registry") for file in files if not file.stem.startswith("_")}


def with_tests(root, family):
    """Places of the folders with tests, independent versions or known mistakes."""
    folders = (each for each in (root / "tests/algorithms" / family).iterdir() if any(each.glob("*.py")))
    places = {folder.relative_to(root / "tests/algorithms").as_posix() for folder in folders}
    return places - {*FAMILIES}


def missing(root, family):
    """Returns (place, tree) of each algorithm of a family and each tree that lacks it."""
    trees = dict(zip(TREES, (algorithms(root, family), entries(root, family), with_tests(root, family)), strict=True))
    every = set().union(*trees.values())
    return [(place, tree) for place in sorted(every) for tree, places in trees.items() if place not in places]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_algorithm_has_its_three_places(family):
    messages = [f"{place} has no place in {tree}" for place, tree in missing(naming.ROOT, family)]
    assert not messages, "; ".join(messages)


def test_every_family_is_here():
    files = REGISTRY.glob("*/**/*.py")
    assert {file.parent.relative_to(REGISTRY).as_posix() for file in files} == {*FAMILIES}


def test_every_entry_is_at_the_place_of_its_factory():
    from jaxdp.registry import registered

    for module in registered.entry_modules():
        path = Path(str(module.__file__))
        for name in module.ENTRIES:
            assert naming.place_of(naming.factory_of(name)[0], naming.LIBRARY) == naming.place_of(path, REGISTRY), name


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_place_that_is_missing_is_told(tmp_path, family, tree):
    """Removes one place from a copy of a family's trees, or an algorithm's export (planted)."""
    for each in TREES:
        shutil.copytree(naming.ROOT / each / family, tmp_path / each / family)
    place = sorted(entries(tmp_path, family))[-1]
    if tree == "jaxdp":
        (tmp_path / tree / family / "__init__.py").write_text("")
        assert (place, tree) in missing(tmp_path, family)
        return
    gone = tmp_path / tree / place
    shutil.rmtree(gone) if gone.is_dir() else gone.with_suffix(".py").unlink()
    assert missing(tmp_path, family) == [(place, tree)]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_private_folder_has_a_module_named_as_a_function(family):
    """Checks names: an import of such a module would replace the function."""
    package = naming.LIBRARY / family
    names = {function.name for _, function in exported(naming.ROOT, package / "__init__.py")}
    private = [each for each in package.iterdir() if each.is_dir() and each.name.startswith("_")]
    assert names.isdisjoint(each.stem for folder in private for each in folder.iterdir())


def test_the_registry_collects_all_modules_in_their_order(monkeypatch):
    """Checks that a module without `ORDER` comes last, and that one name in two modules is refused."""
    from jaxdp.registry import LEARNERS, registered

    entry = LEARNERS["rucb"]
    one, other, last = (SimpleNamespace(__name__=name, ENTRIES={name: entry}) for name in ("one", "other", "last"))
    one.ORDER, other.ORDER = 2, 1
    monkeypatch.setattr(registered, "entry_modules", lambda: iter((last, one, other)))
    assert [*registered._collect()] == ["other", "one", "last"]
    last.ENTRIES = {"one": entry}
    with pytest.raises(ValueError, match="ENTRIES must have new names, got 'one' in last: another module has it"):
        registered._collect()
