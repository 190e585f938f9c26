"""Small mistakes in the algorithms, and the tests that notice them: `python -m tests.loop.mutations --list`.

`--run [N ...]` writes each mutated file into a copy of the repository and runs the tests that name it, as `make test`
selects and compiles them, likeliest first, up to the first failure or for some CPU minutes. A failure counts if the
test passes without the mutation. `--table` prints the last outcomes again.

    python -m tests.loop.mutations --run             all of them
    python -m tests.loop.mutations --slow 3 17       the slow tests alone, of some; finders enter kept.json
    python -m tests.loop.mutations --old FOLDER      survivors, through the tests of another checkout

Kinds of mutation: the sign of a term, a number that is twice as large, a key of a split in place of another one, a
count or comparison that is off by one, two arguments in each other's place. A hash of the text of their lines alone
chooses among them: another change of a file moves none of them, and their outcomes hold.
"""

import argparse
import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("bandits", "dueling", "experts", "estimation", "mechanisms")
SHARES = {"sign": 3, "constant": 3, "key": 2, "off by one": 2, "arguments": 2}  # mutations of each package
SEED = 62
MOST_OF_A_FILE = 2
OUTCOMES = ROOT / ".cache" / "mutations.jsonl"
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
CLAIMS = ("check", "_check", "guarantee", "claim", "_claim", "__repr__", "interface")  # `claims.json` holds claims
OTHER_KINDS = re.compile(r"\b(key\w*|keys|params|shape|dtype|float_)\b")
NOTICED, SURVIVED, NOT_DECIDED, NOT_THERE = "noticed", "survived", "not decided", "not there"
# Why mutations change no result, by their identities.
EQUIVALENT: dict[str, str] = {
    "jaxdp/experts/_comparators.py off by one: _difference(switched, stay) < 0 -> (_difference(switched, stay) <= 0) "
    "in is_better = _difference(switched, stay) < 0": "of two equal sums it is the same which one is kept",
    "jaxdp/experts/_mirror_descent/parameters.py sign: 1 - 1e-9 -> (1 + 1e-09) "
    "in end = math.log(min(largest, (1 - 1e-9) / scale))": "scipy's bounded search stays 1e-5 away from its end",
    "jaxdp/dueling/_pair_blocks.py off by one: left < right -> (left <= right) "
    "in lower_won = jnp.where(left < right, won, 1 - won)": "wins of an arm over itself are never released",
    "jaxdp/mechanisms/continual_counting/steps.py off by one: grid.step > unit_of(total) -> "
    "(grid.step >= unit_of(total)) in remainder = jnp.where(grid.step > unit_of(total), "
    "jnp.round(remainder / grid.step) * grid.step, remainder)": "rounding to steps of one unit keeps whole units",
}
EITHER_WAY = {
    "maximum",
    "minimum",
    "add",
    "multiply",
    "logical_and",
    "logical_or",
    "hypot",
    "isinstance",
    "zip",
    "vdot",
}


class Mutation(NamedTuple):
    """One changed expression.

    Attributes:
        path: of the file, from the root.
        kind: of the mistake.
        line: from 1.
        column: from 1.
        start: of the expression in the file's text.
        end: of it.
        new: what stands there instead.
        old: the expression.
        text: of the line on which it begins, without space around it.
    """

    path: str
    kind: str
    line: int
    column: int
    start: int
    end: int
    new: str
    old: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self._change()}"

    @property
    def identity(self) -> str:
        """Returns its key in the stored outcomes: without line numbers, which other changes move."""
        return f"{self.path} {self._change()} in {self.text}"

    @property
    def rank(self) -> str:
        """Returns a hash; the mutations with the smallest ones are chosen."""
        seeded = f"{SEED} {self.path} {self.kind} {self.text}"
        return hashlib.sha256(seeded.encode()).hexdigest()

    @property
    def proof(self) -> str:
        """Why it changes no result; empty if it changes some."""
        return EQUIVALENT.get(self.identity, "")

    def _change(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.kind}: {old} -> {new}"

    def mutated(self, text: str) -> str:
        """Returns the file's text with the mistake.

        Raises:
            ValueError: if the file has another expression there, and has this one elsewhere not once.
        """
        if text[self.start : self.end] == self.old:
            return text[: self.start] + self.new + text[self.end :]
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path} must have this expression once, got {text.count(self.old)} times {self.old}")
        return text.replace(self.old, self.new)


def mutations() -> list[Mutation]:
    """Returns the mutations, the same for the same sources."""
    return [each for package in PACKAGES for each in _of_package(package)]


def _of_package(package: str) -> list[Mutation]:
    sites: dict[str, list[Mutation]] = {kind: [] for kind in SHARES}
    for path in sorted((ROOT / "jaxdp" / package).rglob("*.py")):
        if path.name != "__init__.py":
            for site in sites_of(path.read_text(), path.relative_to(ROOT).as_posix()):
                sites[site.kind].append(site)
    return sorted(choose(sites))


def choose(sites: dict[str, list[Mutation]]) -> list[Mutation]:
    """Returns as many mutations of each kind as `SHARES` has, at most one of a line and `MOST_OF_A_FILE` of a file.

    Args:
        sites: by kind, in the order of their files.
    """
    chosen: list[Mutation] = []
    ranked = {kind: sorted(each, key=lambda site: site.rank) for kind, each in sites.items()}  # stable: the first one
    for kind, share in SHARES.items():
        rest = [kind, *(other for other in SHARES if other != kind)]  # a package may lack a kind
        for site in (site for name in rest for site in ranked[name]):
            is_new = all((site.path, site.text) != (each.path, each.text) for each in chosen)
            if share and is_new and sum(each.path == site.path for each in chosen) < MOST_OF_A_FILE:
                chosen.append(site)
                share -= 1
    return chosen


def sites_of(text: str, path: str) -> Iterator[Mutation]:
    """Yields all mutations of a file's functions, except of what only claims, checks or raises."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line.decode()))
    lines = text.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for function in _functions(ast.parse(text)):
        siblings = _split_keys(function)
        for node in _compiled(function):
            for kind, new in _mistakes(node, siblings):
                assert isinstance(node, ast.expr)
                assert node.end_lineno is not None
                assert node.end_col_offset is not None
                start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
                changed, line = f"({ast.unparse(new)})", lines[node.lineno - 1].strip()
                yield Mutation(path, kind, node.lineno, node.col_offset + 1, start, end, changed, text[start:end], line)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yields the outermost functions; inner functions are in their bodies."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            if not node.name.startswith(CLAIMS):
                yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _compiled(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the expressions of a body, except of texts, claims, annotations, defaults, and what only raises."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
            continue
        if isinstance(child, ast.FunctionDef) and child.name.startswith(CLAIMS):
            continue
        if isinstance(child, ast.If) and all(isinstance(each, ast.Raise) for each in child.body):
            for other in child.orelse:
                yield from _compiled(other)
            continue
        if isinstance(child, ast.Call) and _name(child.func).startswith(CLAIMS):
            continue
        if isinstance(node, ast.FunctionDef) and (child is node.returns or child in node.decorator_list):
            continue
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        yield child
        yield from _compiled(child)


def _mistakes(node: ast.AST, siblings: dict[str, list[str]]) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right) if not _is_text(left) and not _is_text(right):
            other = SIGNS[type(operator)]()
            yield "sign", ast.BinOp(left, other, right)
            if isinstance(right, ast.Constant) and right.value == 1:
                yield "off by one", left
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", operand
        case ast.Compare(left, [operator], [right]) if type(operator) in BOUNDS:
            yield "off by one", ast.Compare(left, [BOUNDS[type(operator)]()], [right])
        case ast.Constant(int() | float() as value) if value not in (False, True, 0, 1):
            yield "constant", ast.Constant(2 * value)
        case ast.Name(name, ast.Load()) if name in siblings:
            yield "key", ast.Name(siblings[name][0], ast.Load())
        case ast.Call(function, [*arguments], keywords) if len(arguments) > 1 and _name(function) not in EITHER_WAY:
            for first, (one, other) in enumerate(pairwise(arguments)):
                if first >= (_name(function) == "where") and _may_swap(one, other):
                    swapped = [*arguments[:first], other, one, *arguments[first + 2 :]]
                    yield "arguments", ast.Call(function, swapped, keywords)
                    break


def _split_keys(function: ast.FunctionDef) -> dict[str, list[str]]:
    """Returns the other keys of the same split, by name."""
    siblings: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call):
            names = [each.id for each in node.targets[0].elts if isinstance(each, ast.Name)]
            if _name(node.value.func) == "split" and len(names) == len(node.targets[0].elts) > 1:
                siblings |= {name: [other for other in names if other != name] for name in names}
    return siblings


def _may_swap(one: ast.expr, other: ast.expr) -> bool:
    """Returns whether two arguments differ, and are not of different kinds at first sight."""
    texts = ast.unparse(one), ast.unparse(other)
    is_alike = all(isinstance(each, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp) for each in (one, other))
    return is_alike and texts[0] != texts[1] and not any(OTHER_KINDS.search(text) for text in texts)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def read_outcomes(file: Path = OUTCOMES) -> dict[str, dict]:
    """Returns the last outcome of each mutation, by its identity."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["mutation"]: row for row in rows}


def table(chosen: Iterable[tuple[int, Mutation]], outcomes: dict[str, dict]) -> Iterator[str]:
    """Yields a line for each mutation, and the share that was noticed."""
    verdicts = []
    for number, mutation in chosen:
        row = outcomes.get(mutation.identity)
        if row is None:
            yield f"{number:3} {mutation}"
            continue
        is_equivalent = row["verdict"] == SURVIVED and mutation.proof
        verdicts.append("equivalent" if is_equivalent else row["verdict"])
        yield f"{number:3} {verdicts[-1]:11} {row['seconds']:5.0f} s  {mutation}"
        if is_equivalent:
            yield f"{'':17}as {mutation.proof}"
        if row["by"]:
            yield f"{'':17}by {row['by']}"
    if verdicts:
        yield f"{', '.join(f'{count} {verdict}' for verdict, count in Counter(verdicts).items())} of {len(verdicts)}"


def main() -> None:
    """Lists or runs the mutations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    modes = parser.add_mutually_exclusive_group(required=True)
    modes.add_argument("--list", action="store_true", help="print the mutations")
    modes.add_argument("--table", action="store_true", help="print the last outcomes")
    modes.add_argument("--run", nargs="*", type=int, metavar="N", help="run the tests of these, or of all")
    modes.add_argument("--slow", nargs="+", type=int, metavar="N", help="run the slow tests of these")
    modes.add_argument("--old", type=Path, metavar="FOLDER", help="run what survived through another checkout's tests")
    parser.add_argument("--rest", action="store_true", help="with --run: leave out those that have an outcome")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=2, help="mutations at a time")
    given = parser.parse_args()
    every = dict(enumerate(mutations(), 1))
    if given.list or given.table:
        print("\n".join(table(every.items(), read_outcomes() if given.table else {})))
        return
    from tests.loop import mutation_runs

    chosen = given.run or given.slow or list(every)
    if given.rest:
        chosen = [number for number in chosen if every[number].identity not in read_outcomes()]
    root, marks = ROOT, "not slow and not optimised"
    if given.old:
        outcomes, missed = read_outcomes(), (SURVIVED, NOT_DECIDED)
        chosen = [number for number in every if outcomes.get(every[number].identity, {}).get("verdict") in missed]
        root, marks = given.old, "not slow"
    elif given.slow:
        marks = "slow"
    file = OUTCOMES if given.run is not None else OUTCOMES.with_suffix(f".{'old' if given.old else 'slow'}.jsonl")
    copies = mutation_runs.Copies(root, given.workers, [every[number].path for number in chosen], marks)

    def run(number: int) -> None:
        row = copies.run(every[number], failing)
        with file.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        print(*list(table([(number, every[number])], {row["mutation"]: row}))[:-1], sep="\n", flush=True)

    failing, remaining = set[str](), chosen
    with ThreadPoolExecutor(given.workers) as pool:
        while remaining:
            list(pool.map(run, remaining))
            outcomes = read_outcomes(file)
            tests = {number: outcomes[every[number].identity]["by"] for number in remaining}
            failing |= copies.failing(test for test in tests.values() if test.startswith(("tests/", "jaxdp/")))
            remaining = [number for number, test in tests.items() if test in failing]
    copies.close()
    outcomes = read_outcomes(file)
    if given.slow:
        rows = [outcomes[every[number].identity] for number in chosen]
        mutation_runs.keep(ROOT, [row["by"] for row in rows if row["verdict"] == NOTICED])
    print(*table(((number, every[number]) for number in chosen), outcomes), sep="\n")


if __name__ == "__main__":
    main()
