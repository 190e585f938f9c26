"""The turns of a program's loops on a GPU, by XLA's dumps: kernels, waits of the host, bytes, registers."""

import importlib.util
import math
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16} | {
    f"{kind}{bits}": bits // 8 for kind in "suf" for bits in (8, 16, 32, 64)
}
FREE = ("parameter", "get-tuple-element", "tuple", "bitcast", "constant", "while", "conditional")  # no kernels
WRAPPERS = ("kAsyncStart", "kDynamicSliceFusion")
# Steps that a CUDA graph can hold, which the host starts as one.
IN_GRAPHS = ("kCustomKernel", "kKernel", "kCopy", "kGemm", "kCublasLtMatmul", "kCuDnn", *WRAPPERS, "kAsyncDone")


@dataclass
class Thunk:
    """A step of the host's, as launching a kernel, with the steps within it by part."""

    number: int
    kind: str
    parts: dict[str, list["Thunk"]] = field(default_factory=dict)

    def inner(self) -> Iterator["Thunk"]:
        """Yields this step and all within it."""
        yield self
        for part in self.parts.values():
            for thunk in part:
                yield from thunk.inner()


@dataclass
class Loop:
    """A loop of a program.

    Attributes:
        name: XLA's.
        turns: how many, if the program knows; else the host waits after each to learn whether it was the last.
        total: turns in all, with those of the loops around it; None if one of them is unknown.
        kernels: that a turn launches, at least and at most, as branches differ; an inner loop counts one turn.
        waits: of the host for the device in a turn; an inner loop counts one turn.
        bytes: that a turn reads and writes, all lanes together.
        depth: 0 for an outermost loop.
    """

    name: str
    turns: int | None
    total: int | None
    kernels: tuple[int, int]
    waits: int
    bytes: int
    depth: int


def round_loop(loops: Sequence[Loop], turns: int) -> Loop:
    """Returns the loop that plays rounds, or blocks of them.

    Args:
        loops: of the program, each before those within it.
        turns: of this loop in all, at least, if the program knows them.
    """
    known = [loop for loop in loops if loop.total is not None and loop.total >= turns]
    unknown = [loop for loop in loops if loop.turns is None]
    return max(known or unknown or loops, key=lambda loop: (-loop.depth, loop.kernels[1]))


def loops(folder: Path) -> list[Loop]:
    """Returns the loops of a program from its dumps in a folder, each before those within it."""
    text = _largest(folder, "*gpu_after_optimizations.txt")
    (names, graphs), turns = _names(_largest(folder, "*.thunk_metadata.txt")), _turns(text)
    bodies = dict(re.findall(r"%([\w.\-]+) = .*? while\(.*?body=%([\w.\-]+)", text))
    lines = _computations(text)
    known = {number for number, name in names.items() if name in turns}

    def within(sequence: Sequence[Thunk], total: int | None, depth: int) -> Iterator[Loop]:
        for thunk in sequence:
            if thunk.kind != "kWhile":
                for part in thunk.parts.values():
                    yield from within(part, total, depth)
                continue
            name = names.get(thunk.number, "")
            own = turns.get(name)
            body = thunk.parts.get("body", [])
            inside = None if own is None or total is None else total * own
            waits = _waits(body, graphs, known) + (own is None)
            traffic = _traffic(lines.get(bodies.get(name, ""), []))
            yield Loop(name, own, inside, _kernels(body), waits, traffic, depth)
            yield from within(body, inside, depth + 1)

    return list(within(_sequence(_largest(folder, "*.thunk_sequence.txt")), 1, 0))


def registers(folder: Path, architecture: str) -> int:
    """Returns the most registers of a kernel, with bytes that it spills added.

    Args:
        folder: with PTX.
        architecture: as "sm_90a".
    """
    most = 0
    for path in folder.glob("*.ptx"):
        command = [_ptxas(), f"-arch={architecture}", "-v", str(path), "-o", "/dev/null"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        for used, spilled in re.findall(r"(?:Used (\d+) registers|(\d+) bytes spill stores)", told):
            most = max(most, int(used or 0), int(spilled or 0) and 255 + int(spilled))
    return most


def _ptxas() -> str:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("cu*/bin/ptxas")]
    return str(found[0]) if found else "ptxas"


def _largest(folder: Path, pattern: str) -> str:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size).read_text()


def _sequence(text: str) -> list[Thunk]:
    """Returns the steps as a tree: steps within a step are indented.

    "condition:" and the like are lines without indent.
    """
    root: list[Thunk] = []
    open_: list[tuple[int, Thunk]] = []
    labels: dict[int, str] = {}
    pending = ""
    for line in text.splitlines():
        row = re.match(r"( *)(\d+): (\w+)\s*\[", line)
        if row is None:
            pending = line.strip().rstrip(":") or pending
            continue
        indent = len(row.group(1))
        thunk = Thunk(int(row.group(2)), row.group(3))
        if pending and pending != "No thunks.":
            labels[indent] = pending
        pending = ""
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        if open_:
            owner = open_[-1][1]
            part = "inner" if owner.kind in WRAPPERS else labels.get(indent, "inner")
            owner.parts.setdefault(part, []).append(thunk)
        else:
            root.append(thunk)
        open_.append((indent, thunk))
    return root


def _kernels(sequence: Sequence[Thunk]) -> tuple[int, int]:
    """Counts the kernels that a pass through the steps launches, at least and at most."""
    low = high = 0
    for thunk in sequence:
        if thunk.kind == "kConditional":
            each = [_kernels(part) for part in thunk.parts.values()]
            each += [(0, 0)] if len(each) == 1 else []
            low, high = low + min(a for a, _ in each), high + max(b for _, b in each)
        elif thunk.kind == "kWhile" or thunk.kind in WRAPPERS:
            for part in thunk.parts.values():
                a, b = _kernels(part)
                low, high = low + a, high + b
        elif thunk.kind != "kAsyncDone":
            low, high = low + 1, high + 1
    return low, high


def _waits(sequence: Sequence[Thunk], graphs: Collection[int], known: Collection[int]) -> int:
    """Counts the host's waits in a pass through the steps, at branches and loops that are in no CUDA graph.

    The host does not wait for a turn of a `known` loop: it knows the number of turns.
    """
    waits = 0
    in_graph = False
    for thunk in sequence:
        in_graph = thunk.number in graphs or (in_graph and _fits_a_graph(thunk, graphs))
        if not in_graph and thunk.kind in ("kConditional", "kWhile"):
            inner = max((_waits(part, graphs, known) for part in thunk.parts.values()), default=0)
            waits += inner + (thunk.number not in known)
    return waits


def _fits_a_graph(thunk: Thunk, graphs: Collection[int]) -> bool:
    """Returns whether a step can be in the graph of the steps before it: none begins within."""
    return all(
        each.kind in (*IN_GRAPHS, "kConditional") and (each is thunk or each.number not in graphs)
        for each in thunk.inner()
    )


def _names(text: str) -> tuple[dict[int, str], set[int]]:
    """Returns the steps' names in XLA's program by number, and the steps with which CUDA graphs begin."""
    names, graphs = {}, set()
    for part in text.split("thunk_metadata {")[1:]:
        name, number = re.search(r'profile_annotation: "([^"]*)"', part), re.search(r"thunk_id: (\d+)", part)
        graph = re.search(r"command_buffer_(\d+)", name.group(1)) if name else None
        if graph:
            graphs.add(int(graph.group(1)))
        elif name and number:
            names[int(number.group(1))] = name.group(1)
    return names, graphs


def _turns(text: str) -> dict[str, int]:
    """Returns the numbers of turns that the program knows, by the name of the loop."""
    lines = re.findall(r"%([\w.\-]+) = .*? while\(.*?known_trip_count\":\{\"n\":\"(\d+)\"", text)
    return {name: int(turns) for name, turns in lines}


def _computations(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        head = re.match(r"(?:ENTRY )?%([\w.\-]+) \(.*\{$", line)
        if head:
            name = head.group(1)
            found[name] = []
        elif line.startswith("}"):
            name = ""
        elif name and "=" in line:
            found[name].append(line)
    return found


def _sizes(shape: str) -> list[int]:
    arrays = re.findall(r"\b(\w+)\[([\d,]*)\]", shape)
    return [BYTES.get(dtype, 4) * math.prod(int(size) for size in dims.split(",") if size) for dtype, dims in arrays]


def _traffic(lines: Sequence[str]) -> int:
    """Counts bytes that kernels of a computation read and write, by XLA's shapes; a gather counts its operand."""
    total, sizes = 0, dict[str, list[int]]()
    for line in lines:
        match = re.match(r"\s*(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)", line)
        if not match:
            continue
        name, shape, operation, rest = match.groups()
        sizes[name] = _sizes(shape)
        if operation in FREE:
            continue
        total += sum(sizes[name]) + _read(rest.split("), ")[0], sizes)
    return total


def _read(operands: str, sizes: Mapping[str, list[int]]) -> int:
    total = 0
    for name, index in set(re.findall(r"%([\w.\-]+)(?:#(\d+))?", operands)):
        parts = sizes.get(name, [])
        total += parts[int(index)] if index and int(index) < len(parts) else sum(parts)
    return total
