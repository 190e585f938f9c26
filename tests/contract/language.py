"""Counts habits of prose and of names that readers stumble over, for each package.

`language.json` has the largest count that each package may have; a habit without an entry may not occur. Counts only
fall: `python -m tests.contract.language` lowers the file to the counts of today, and never raises one; with names of
files it prints the habits in them. If code moves to another package, its counts move with it by hand.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "jaxdp"
FILE = Path(__file__).with_suffix(".json")
COMMAND = "python -m tests.contract.language"
SENTENCES = {  # by habit: a pattern of docstrings and comments
    "what it is": re.compile(r"\b[Ww]hat (?:is|are|it|was|they|has|a|the)\b"),
    "opens with what": re.compile(r"(?:^|[.] +)(?:What|Which|Whose) [^?.]*[.]"),
    "opens with of": re.compile(r"(?:^|[.;:] +)Of (?!course)"),
    "of which, whose": re.compile(r"\b(?:of which|of whom|whose)\b"),
    "that of, those of": re.compile(r"\b(?:those|that) (?:of|which|who|whose)\b"),
    "tells, told": re.compile(r"\b(?:tells?|told)\b"),
    "archaic": re.compile(r"\b(?:anew|begun|hence|whatever|beforehand)\b"),
    "but for": re.compile(r"\bbut (?:for|to|by|with)\b"),
    "law": re.compile(r"\blaws?\b"),
}
NO_VERB, PARTICIPLE, VAGUE = "docstring without a verb", "function named by a participle", "vague local name"
NOUN_AFTER_VERB = re.compile(
    r"(?:Returns|Reports|Says|Gives|Shows|Names|Finds|Computes) (?:what|which|whose|of|the law)\b"
)
DESCRIBES_A_THING = {"property", "cached_property", "Shared", "factory"}  # decorators of functions described by a noun
ADJECTIVES_AND_NOUNS = {
    "batched",
    "bed",
    "bleed",
    "delayed",
    "embed",
    "feed",
    "hundred",
    "need",
    "red",
    "seed",
    "shed",
    "speed",
}
IRREGULAR_PARTICIPLES = """
apart begun built chosen drawn each found given grown heard held here hidden kept known left lost made met
mine own paid put rest said seen sent shown sought spent taken theirs there thrown told won
"""
VAGUE_NAMES = """
a about apart arr aux b c cur d each elem f fn found func g given h here inner item kept known mine most new
now obj old others out own place places prev res rest result results ret said shown temp theirs there tmp
told val vals wanted whole wrapper x y z
"""
VERBS = """
accepts accumulates adapts adds advances aggregates aligns allocates annotates appends applies approximates
asks asserts assigns assumes attaches attacks audits averages balances binds bins bisects blends blocks
bounds breaks broadcasts builds caches calculates calibrates calls caps carries casts centers centres
certifies changes charges checks chooses clamps cleans clears clips closes coerces collapses collects
combines commits compares compiles completes composes compresses computes concatenates conditions configures
confirms conforms connects constructs continues contracts converts copies corrects counts covers creates
cuts decides declares decodes decomposes decorates decreases defines deletes delivers derives describes
detects determines differentiates disables discards displays distinguishes distributes divides does doubles
downloads draws drops eliminates embeds emits enables encloses encodes ends ensures enters enumerates
estimates evaluates evicts exchanges executes expands explains explores exports expresses extends extracts
factors feeds fetches fills filters finds finishes fits flags flattens flips folds follows forces formats
forms forwards freezes gathers generates gets gives groups grows guesses handles hashes hides holds
identifies ignores implements imports improves includes increases indexes infers initialises initializes
inserts installs integrates interpolates inverts iterates joins judges keeps labels launches lays learns
leaves lets limits lists loads locates locks logs looks loops lowers makes maps marks masks matches
materialises materializes maximises maximizes measures merges minimises minimizes mixes models modifies
moves multiplies names narrows normalises normalizes notes notifies observes obtains offers opens orders
organises organizes overrides packs pads pairs parses partitions passes pays performs perturbs picks places
plans plants plays plots points pools predicts prefixes prepares prescribes presents prevents prints
privatises privatizes proceeds processes produces projects promises protects proves provides pulls pushes
puts queries quotes raises ranks reads rebuilds recalls receives recommends recomputes reconstructs records
recovers redraws reduces refers refines reflects refuses registers rejects releases reloads removes renames
renders reorders repeats replaces replays replicates reports represents reproduces requires resamples
rescales resets reshapes resolves responds restarts restores restricts resumes retries retrieves returns
reuses reverses reverts rewrites roll rolls rotates rounds routes runs samples saves says scales scans
schedules scores searches seeds selects sends separates serialises serializes sets settles shapes shards
shifts shortens shows shrinks shuffles signals simplifies simulates skips slices smooths solves sorts
specifies splits spreads squares stacks standardises standardizes starts states steps stops stores streams
strips submits subtracts suggests summarises summarizes sums supplies swaps switches symmetrises symmetrizes
takes terminates tests tightens traces tracks trains transforms translates transposes traverses treats tries
triggers trims truncates tunes turns undoes unpacks unstacks updates uses validates verifies views visits
waits walks warns weighs weights whitens widens wraps writes yields
"""

IRREGULAR, VAGUE_LOCALS, THIRD_PERSON = (
    frozenset(words.split()) for words in (IRREGULAR_PARTICIPLES, VAGUE_NAMES, VERBS)
)


class Finding(NamedTuple):
    """One occurrence of a habit.

    Attributes:
        habit: a name from this module.
        place: path and line.
        text: the name, or the words that match.
    """

    habit: str
    place: str
    text: str


def packages() -> dict[str, list[Path]]:
    """Returns the source files of each package, and under "." those beside the packages."""
    folders = sorted(path for path in LIBRARY.iterdir() if (path / "__init__.py").exists())
    return {".": sorted(LIBRARY.glob("*.py")), **{folder.name: sorted(folder.rglob("*.py")) for folder in folders}}


def findings(path: Path) -> list[Finding]:
    """Returns the habits in a source file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return [
        Finding(habit, f"{name}:{line}", text)
        for habit, line, text in (*_names(nodes), *_prose([*_docstrings(nodes), *_comments(source, nodes)]))
    ]


def count(paths: Iterable[Path]) -> Counter[str]:
    """Returns how often each habit occurs in files."""
    return Counter(finding.habit for path in paths for finding in findings(path))


def read_limits() -> dict[str, dict[str, int]]:
    """Returns the largest count of each habit, by package."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def lower(
    limits: Mapping[str, Mapping[str, int]], counts: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Returns the limits, lowered to the counts; zeros and packages that are gone are dropped."""
    lowered = {
        package: {habit: min(limit, counts[package].get(habit, 0)) for habit, limit in sorted(habits.items())}
        for package, habits in sorted(limits.items())
        if package in counts
    }
    return {package: {habit: limit for habit, limit in habits.items() if limit} for package, habits in lowered.items()}


def excesses(limits: Mapping[str, int], found: Iterable[Finding]) -> list[str]:
    """Returns a message for each habit that occurs more often than its limit, with the places."""
    places: dict[str, list[str]] = {}
    for habit, place, text in found:
        places.setdefault(habit, []).append(f"{place}: {text}")
    return [
        "\n  ".join([f"{habit}: {len(lines)}, at most {limits.get(habit, 0)} before; rewrite one of", *lines])
        for habit, lines in places.items()
        if len(lines) > limits.get(habit, 0)
    ]


def is_participle(name: str) -> bool:
    """Returns whether a name is a single past participle."""
    word = name.strip("_")
    regular = word.endswith("ed") and len(word) > 3 and "_" not in word and word not in ADJECTIVES_AND_NOUNS
    return regular or word in IRREGULAR


def opens_with_verb(docstring: str) -> bool:
    """Returns whether the first word is a verb in the third person, with an object that is not "what ..."."""
    first = re.match(r"[A-Za-z]+", docstring)
    return first is not None and first.group().lower() in THIRD_PERSON and not NOUN_AFTER_VERB.match(docstring)


def _names(nodes: list[ast.AST]) -> Iterator[tuple[str, int, str]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            if is_participle(node.name):
                yield PARTICIPLE, node.lineno, node.name
            docstring = ast.get_docstring(node)
            if docstring and not _describes_a_thing(node) and not opens_with_verb(docstring):
                yield NO_VERB, node.lineno, docstring.partition("\n")[0]
        elif isinstance(node, ast.arg) and node.arg in VAGUE_LOCALS:
            yield VAGUE, node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE_LOCALS:
            yield VAGUE, node.lineno, node.id


def _describes_a_thing(node: ast.FunctionDef) -> bool:
    calls = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(getattr(call, "id", getattr(call, "attr", None)) in DESCRIBES_A_THING for call in calls)


def _prose(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    for line, text in texts:
        for habit, pattern in SENTENCES.items():
            for match in pattern.finditer(text):
                yield habit, line, text[max(0, match.start() - 20) : match.end() + 20].strip()


def _docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), " ".join(re.sub(r">>>.*", "", text).split())


def _comments(source: str, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yields the comments; it is several times faster than to tokenize."""
    strings: dict[int, list[tuple[float, float]]] = {}  # by line: columns, in bytes, that strings cover
    for node in nodes:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            last: Any = node.end_lineno
            for line in range(node.lineno, last + 1):
                start = node.col_offset if line == node.lineno else 0
                end = node.end_col_offset if line == last and node.end_col_offset is not None else float("inf")
                strings.setdefault(line, []).append((start, end))
    for line, text in enumerate(source.splitlines(), 1):
        if "#" not in text:
            continue
        spans, data = strings.get(line, []), text.encode()
        hashes = (match.start() for match in re.finditer(b"#", data))
        if (start := next((at for at in hashes if not any(a <= at < b for a, b in spans)), None)) is not None:
            yield line, " ".join(data[start:].decode().lstrip("# ").split())


def main() -> None:
    """Prints the habits in the named files; without a name, lowers the limits to the counts of today."""
    if sys.argv[1:]:
        for file in sys.argv[1:]:
            for habit, place, text in findings(Path(file).resolve()):
                print(f"{place}: {habit}: {text}")
        return
    counts = {package: count(paths) for package, paths in packages().items()}
    FILE.write_text(json.dumps(lower(read_limits(), counts), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
