"""Finds the files and tests that belong to a registered name, or to a file: by imports and text alone.

A test names a file if it refers to a definition of the file, by import or through the helpers of tests; and it names an
entry if it refers to its factory, or has its name as a string. Nothing is compiled here, and no test is imported.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LIBRARY, TESTS = ROOT / "jaxdp", ROOT / "tests"
ALGORITHMS = ("mechanisms", "estimation", "bandits", "dueling", "experts")
ZOO = TESTS / "privacy" / "test_mutants.py"
OVER_ENTRIES = re.compile(r"parametrize\(.*\b(LEARNERS|MECHANISMS|ESTIMATORS|ENTRIES|NAMES|algorithms)\b")
FROM_TESTS = re.compile(r"^from (tests[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
Definition = tuple[Path, str]  # a file, and a name at its top level


class Module(NamedTuple):
    """The imports and definitions of a file.

    Attributes:
        imports: dotted path by local name.
        uses: what each definition refers to: dotted paths, and other names of the file after a dot.
        strings: of each definition.
    """

    imports: dict[str, str]
    uses: dict[str, frozenset[str]]
    strings: dict[str, frozenset[str]]


class Subject(NamedTuple):
    """The subject of a check.

    Attributes:
        text: the name, or the path from the root.
        entries: registered names.
        files: of the library that belong to it.
        own: files that no other registered algorithm uses, or the path's own.
        factories: of its entries.
    """

    text: str
    entries: tuple[str, ...]
    files: tuple[Path, ...]
    own: frozenset[Path]
    factories: frozenset[Definition]


class UnknownNameError(ValueError):
    """No registered entry, file or folder has that name."""


@cache
def entries() -> dict[str, Any]:
    """Returns the library's entries by name."""
    from jaxdp.registry.registered import TABLES as KINDS
    from jaxdp.registry.registered import user_entries

    mine = user_entries()
    return {name: entry for _, table in KINDS.values() for name, entry in table.items() if name not in mine}


def subject(text: str) -> Subject:
    """Returns the subject of a registered name, or of a file or folder of the library.

    Raises:
        UnknownNameError: if there is no such entry, file or folder; it names some that are near.
    """
    if text in entries():
        files, factory = files_of(text), factory_of(text)
        alike = {name for name in entries() if factory_of(name) == factory}
        own = frozenset(file for file in files if alike.issuperset(entries_of(file)))
        return Subject(text, (text,), files, own, frozenset([factory]))
    path = (ROOT / text).resolve()
    files = (path,) if path.is_file() else tuple(sorted(path.rglob("*.py"))) if path.is_dir() else ()
    if not files or not path.is_relative_to(LIBRARY) or any(file.suffix != ".py" for file in files):
        paths = {each for file in LIBRARY.rglob("*.py") for each in (file, file.parent)}
        known = [*entries(), *sorted(each.relative_to(ROOT).as_posix() for each in paths)]
        longer = [name for name in entries() if text and text in name]
        near = difflib.get_close_matches(text, known, 4) or longer
        raise UnknownNameError(
            f"NAME must be a registered name, or a file or folder of jaxdp, such as rucb or jaxdp/stats, got {text!r}"
            f"{'; near it: ' * bool(near)}{', '.join(near[:4])}"
        )
    names = tuple(name for name in entries() if set(files) & {*files_of(name), entry_file(name)})
    factories = frozenset(factory_of(name) for name in names)
    return Subject(path.relative_to(ROOT).as_posix(), names, files, frozenset(files), factories)


@cache
def factory_of(name: str) -> Definition:
    """Returns where the factory of an entry is defined, or the library's factory that its own one calls."""
    factory = inspect.unwrap(entries()[name]._maker)
    found = definition(f"{factory.__module__}.{factory.__name__}")
    assert found is not None, name
    if found[0].is_relative_to(LIBRARY / "registry"):
        called = (definition(use) for use in module(found[0]).uses[found[1]] if use.startswith("jaxdp."))
        algorithms = [each for each in called if each is not None and _package(each[0]) in ALGORITHMS]
        return next((each for each in algorithms if each[1] == factory.__name__), found)
    return found


@cache
def files_of(name: str) -> tuple[Path, ...]:
    """Returns the file that defines an entry's factory, and all that it imports from its own package."""
    start, _ = factory_of(name)
    seen, ahead = {start: None}, [start]
    while ahead:
        for path in module(ahead.pop()).imports.values():
            file = next(iter(_parts(path)), None)
            if file and file not in seen and file.name != "__init__.py" and _package(file) == _package(start):
                seen[file] = None
                ahead.append(file)
    return tuple(seen)


@cache
def entries_of(path: Path) -> tuple[str, ...]:
    """Returns the registered names to which a file of the library belongs."""
    return tuple(name for name in entries() if path.resolve() in files_of(name))


def tests_of(path: str | Path) -> list[Path]:
    """Returns the test files that name a file, a folder or an entry, and those that go through the registry.

    Args:
        path: a registered name, or a path from the root.
    """
    wanted = subject(str(path))
    return [file for file in test_files() if names_in_file(file, wanted) or (wanted.entries and by_registry(file))]


def folder_of(text: str) -> Path:
    """Returns where tests of an entry, a file or a folder stand: beside other layers' tests, or of algorithms."""
    if text in entries():
        return TESTS / "algorithms" / place_of(factory_of(text)[0], LIBRARY)
    parts = Path(text).relative_to("jaxdp").with_suffix("").parts
    if parts and parts[0] in ALGORITHMS:
        return TESTS / "algorithms" / place_of(ROOT / text, LIBRARY)
    return TESTS.joinpath(*parts)


def entry_file(name: str) -> Path:
    """Returns the file of the registry that has an entry."""
    return LIBRARY / "registry" / f"{place_of(factory_of(name)[0], LIBRARY)}.py"


def with_other_trees(wanted: Subject) -> list[Path]:
    """Returns a subject's files, those of the registry with entries that it defines, and its folder of tests."""
    defined = [wanted.text] if wanted.text in wanted.entries else entries_defined_in(wanted)
    return sorted({*wanted.files, *map(entry_file, defined), *folder_of(wanted.text).rglob("*.py")})


def entries_defined_in(wanted: Subject) -> list[str]:
    """Returns the entries whose factories are in a subject's own files."""
    return [name for name in wanted.entries if factory_of(name)[0] in wanted.own]


def place_of(file: Path, tree: Path) -> str:
    """Returns a file's path in a tree up to its first private name, without suffix or underscore: "dueling/rucb"."""
    names = file.relative_to(tree).with_suffix("").parts
    private = next((number for number, name in enumerate(names, 1) if name.startswith("_")), len(names))
    return "/".join((*names[: private - 1], names[private - 1].removeprefix("_")))


def test_files() -> list[Path]:
    """Returns all files with tests."""
    return sorted(TESTS.rglob("test_*.py"))


def by_registry(file: Path) -> bool:
    """Returns whether a file has tests that are run for entries of the registry, one by one."""
    return OVER_ENTRIES.search(_text(file)) is not None


def mutant_files() -> list[Path]:
    """Returns the files with the zoo's mistakes."""
    return sorted([*(TESTS / "algorithms").rglob("mutants.py"), *(TESTS / "privacy" / "mutants").glob("*.py")])


def names_in_file(file: Path, wanted: Subject) -> bool:
    """Returns whether any test of a file names the subject; of the zoo's tests, whether any mistake does."""
    if file == ZOO:
        return any(names_in_test(each, name, wanted) for each in mutant_files() for name in module(each).uses)
    if not any(_mentions(each, wanted) for each in (file, *_helpers(file))):
        return False
    return any(names_in_test(file, test, wanted) for test in module(file).uses if test.lower().startswith("test"))


def names_in_test(file: Path, test: str, wanted: Subject) -> bool:
    """Returns whether a test, or a helper that it uses, names the subject."""
    return _named(wanted, *closure(file, test))


def refers_to(file: Path, test: str, wanted: Subject) -> bool:
    """Returns whether a test, or a helper that it uses, refers to definitions in the subject's own files."""
    return any(place[0] in wanted.own for place in closure(file, test)[0])


@cache
def with_importers(path: Path) -> frozenset[Path]:
    """Returns a file of the library, and the files of its package that import it, directly or not."""
    seen, ahead = {path}, [path]
    while ahead:
        wanted = ahead.pop()
        for file in (LIBRARY / _package(path)).rglob("*.py"):
            if file not in seen and any(
                (definition(each) or (None,))[0] == wanted for each in module(file).imports.values()
            ):
                seen.add(file)
                ahead.append(file)
    return frozenset(each for each in seen if each.name != "__init__.py")


@cache
def closure(file: Path, name: str) -> tuple[frozenset[Definition], frozenset[str]]:
    """Returns the library's names that a definition of a test file refers to, directly or not, and its strings."""
    seen, ahead = set(), [(file, name)]
    library, strings = set(), set()
    while ahead:
        place = ahead.pop()
        if place in seen:
            continue
        seen.add(place)
        where, what = place
        if not where.is_relative_to(TESTS):
            library.add(place)
            continue
        known = module(where)
        strings |= known.strings.get(what, frozenset())
        for use in known.uses.get(what, ()):
            target = (where, use[1:]) if use.startswith(".") else definition(use)
            if target is not None:
                ahead.append(target)
    return frozenset(library), frozenset(strings)


def definition(path: str) -> Definition | None:
    """Returns where the object of a dotted path is defined; a module's own name is empty.

    None outside the repository.
    """
    for _ in range(8):  # a package exports what another one imports
        found = _parts(path)
        if not found:
            return None
        file, *rest = found
        name = str(rest[0]) if rest else ""
        imported = _exported(file).get(name) if name else None
        if imported is None or imported == path:
            return file, name
        path = imported
    return None


@cache
def module(file: Path) -> Module:
    """Reads a file of the repository."""
    body = ast.parse(_text(file)).body
    nodes = [(statement, list(ast.walk(statement))) for statement in body]
    imports = _imports(each for _, inside in nodes for each in inside)
    named = [(name, inside) for statement, inside in nodes for name in _defined(statement, inside)]
    local = {name for name, _ in named}
    uses: dict[str, frozenset[str]] = {}
    strings: dict[str, frozenset[str]] = {}
    for name, inside in named:
        uses[name] = uses.get(name, frozenset()) | frozenset(_uses(inside, imports, local - {name}))
        strings[name] = strings.get(name, frozenset()) | frozenset(_strings(inside))
    return Module(imports, uses, strings)


@cache
def _exported(file: Path) -> dict[str, str]:
    """Returns the imports at a file's top level: dotted paths by local name."""
    return _imports(ast.parse(_text(file)).body)


def _imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    imports: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.split(".")[0]
                imports[each.asname or first] = each.name if each.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
    return imports


def _named(wanted: Subject, library: frozenset[Definition], strings: frozenset[str]) -> bool:
    if any(place in wanted.factories or place[0] in wanted.own for place in library):
        return True
    return any(name in strings and not _is_option(name) for name in wanted.entries)


@cache
def _is_option(name: str) -> bool:
    """Returns whether a name is also a value of an argument of algorithms, as "laplace" is."""
    files = (file for each in ALGORITHMS for file in (LIBRARY / each).rglob("*.py"))
    return any(f'"{name}"' in _text(file) for file in files if file.name != "__init__.py")


def _mentions(file: Path, wanted: Subject) -> bool:
    return _words(wanted).search(_text(file)) is not None


@cache
def _words(wanted: Subject) -> re.Pattern[str]:
    """Returns a pattern for the words without which no text names the subject."""
    words = {*wanted.entries, *(name for _, name in wanted.factories)}
    for path in wanted.own:
        words.add(path.parent.name if path.name == "__init__.py" else path.stem)
        for package in (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(LIBRARY)):
            exported = _exported(package).items() if package.is_file() else ()
            words |= {name for name, where in exported if (definition(where) or ("",))[0] == path}
    return re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")


@cache
def _helpers(file: Path) -> frozenset[Path]:
    """Returns the files of tests that a test file imports, directly or not."""
    seen: set[Path] = set()
    ahead = [file]
    while ahead:
        for folder, names in FROM_TESTS.findall(_text(ahead.pop())):
            for name in re.findall(r"\w+", names):
                found = _parts(f"{folder}.{name}")
                if found and found[0] not in seen:
                    seen.add(found[0])
                    ahead.append(found[0])
    return frozenset(seen)


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _package(file: Path) -> str:
    return file.relative_to(LIBRARY).parts[0] if file.is_relative_to(LIBRARY) else ""


@cache
def _parts(path: str) -> list[Any]:
    """Returns the file of the longest module that a dotted path begins with, then the rest; empty if there is none."""
    names = path.split(".")
    if names[0] not in ("jaxdp", "tests"):
        return []
    for length in range(len(names), 0, -1):
        folder = ROOT.joinpath(*names[:length])
        for file in (folder.with_name(f"{folder.name}.py"), folder / "__init__.py"):
            if file.is_file():
                return [file, *names[length:]]
    return []


def _defined(node: ast.stmt, inside: list[ast.AST]) -> Iterator[str]:
    """Yields the names that a statement at the top level defines; names within `if` and `with` as well."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    else:
        yield from (each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def _uses(inside: list[ast.AST], imports: dict[str, str], local: Iterable[str]) -> Iterator[str]:
    for node in inside:
        names: list[str] = []
        each = node
        while isinstance(each, ast.Attribute):
            names.insert(0, each.attr)
            each = each.value
        if isinstance(each, ast.Name) and each.id in imports:
            yield ".".join([imports[each.id], *names])
        elif isinstance(each, ast.Name) and each.id in local:
            yield f".{each.id}"
        elif isinstance(each, ast.arg) and each.arg in local:  # a fixture
            yield f".{each.arg}"
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.startswith("jaxdp."):
            yield each.value


def _strings(inside: list[ast.AST]) -> Iterator[str]:
    for each in inside:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
            yield each.value
