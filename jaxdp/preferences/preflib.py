"""Reads and writes ballots in PrefLib's formats for ordinal preferences: soc, soi, toc and toi.

A file is UTF-8 text. It begins with metadata, each in a line `# KEY: value`. One line `count: order` follows for each
distinct order. An order lists the numbers of alternatives, separated by commas, from the best to the worst. Numbers
start at 1, and tied alternatives are in braces: `13: 1,{3,4},2`. The type of a file restricts its orders:

- soc: complete orders without ties;
- soi: possibly incomplete orders without ties;
- toc: complete orders with possible ties;
- toi: possibly incomplete orders with possible ties.

Source: PrefLib, Format Specification (https://preflib.github.io/PrefLib-Jekyll/format); Mattei & Walsh (2013).
"""

import os
import re
import unicodedata
from pathlib import Path

from jaxdp.preferences.ballots import DATA_TYPES, MAX_BALLOTS, Ballots, Order, name_fault, order_fault
from jaxdp.preferences.files import file_error, short_repr, utf8_text

_NAME = "ALTERNATIVE NAME"
_TOTALS = ("NUMBER ALTERNATIVES", "NUMBER VOTERS", "NUMBER UNIQUE ORDERS")
_INTEGER = re.compile("[0-9]{1,40}")  # int() also accepts digits of other scripts, and rejects very long numbers
_GROUP = re.compile(r"[ \t]*(?:\{([^{}]*)\}|([0-9]+))[ \t]*(,|$)")


def read_ballots(path: str | os.PathLike[str]) -> Ballots:
    """Reads ballots from a PrefLib file of type soc, soi, toc or toi.

    The metadata NUMBER ALTERNATIVES, NUMBER VOTERS, NUMBER UNIQUE ORDERS and ALTERNATIVE NAME 1, 2, ... are required
    and must agree with the orders. The type is given by the file name's extension or by the metadata DATA TYPE. At
    least one of these is required; if both are present, they must agree. Other metadata and blank lines are ignored. A
    file may declare a more general type than its orders need (for example, toi without ties), although PrefLib expects
    the most restrictive type that fits. Files in the format before 2022, which begin with the number of alternatives,
    are rejected.

    Args:
        path: path of the file.

    Returns:
        The ballots; alternative 1 of the file is item 0.

    Raises:
        ValueError: if the file is malformed; the error names the file, the line and the reason.
        OSError: if the file cannot be read, for example FileNotFoundError.
    """
    return parse_ballots(Path(path).read_bytes(), os.fspath(path))


def write_ballots(ballots: Ballots, path: str | os.PathLike[str]) -> None:
    """Writes ballots to a new PrefLib file, from which `read_ballots` restores the ballots.

    Args:
        ballots: the ballots to write. PrefLib expects the most restrictive type, `ballots.data_type`, but every type
            that the orders fit is accepted.
        path: path of the file. The file name's extension must be .soc, .soi, .toc or .toi; it determines the type.

    Raises:
        ValueError: if the name has another extension, control characters or lone surrogates, or if the orders do not
            fit the type.
        FileExistsError: if the file exists.
        OSError: if the file cannot be written.
    """
    name = os.fspath(path)
    kind = _ending(name)
    if kind is None:
        raise ValueError(f"path must end in one of .{', .'.join(DATA_TYPES)}, got {name}")
    title = Path(path).name  # the title is written into the file, which is UTF-8 and read line by line
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in title):
        raise ValueError(f"path must have a file name without control characters, got {name!r}")
    data = format_ballots(ballots, kind, title).encode()
    with Path(path).open("xb") as file:
        file.write(data)


def format_ballots(ballots: Ballots, kind: str, name: str) -> str:
    """Formats ballots as a PrefLib file of type `kind` that is named `name`.

    Raises a ValueError if the orders do not fit the type.
    """
    for index, order in enumerate(ballots.orders):
        if reason := _type_fault(order, kind, len(ballots.items)):
            raise ValueError(f"ballots must fit the type {kind}, got {ballots.data_type}: orders[{index}] {reason}")
    totals = (len(ballots.items), ballots.num_ballots, len(ballots.orders))
    descriptive = ("TITLE", "DESCRIPTION", "MODIFICATION TYPE", "RELATES TO", "RELATED FILES")
    dates = ("PUBLICATION DATE", "MODIFICATION DATE")
    lines = [f"# FILE NAME: {name}", *(f"# {key}: " for key in descriptive[:2]), f"# DATA TYPE: {kind}"]
    lines += [f"# {key}: " for key in (*descriptive[2:], *dates)]
    lines += [f"# {key}: {total}" for key, total in zip(_TOTALS, totals, strict=True)]
    lines += [f"# {_NAME} {number}: {item}" for number, item in enumerate(ballots.items, 1)]
    lines += [f"{count}: {_order_text(order)}" for order, count in zip(ballots.orders, ballots.counts, strict=True)]
    return "\n".join([*lines, ""])


def parse_ballots(data: bytes, name: str) -> Ballots:
    """Parses the bytes of a PrefLib file; `name`, the file's name, may determine the type and is shown in errors."""
    lines = [(number, line.strip()) for number, line in enumerate(utf8_text(data, name).split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise file_error(name, "line 1", "the file is empty")
    number, line = lines[0]
    if _INTEGER.fullmatch(line):
        reason = "the file begins with a number, as in PrefLib's format before 2022: get the file's current version"
        raise file_error(name, f"line {number}", reason)
    header: dict[str, tuple[int, str]] = {}
    start = next((position for position, (_, line) in enumerate(lines) if not line.startswith("#")), len(lines))
    for number, line in lines[:start]:
        key, colon, value = (part.strip() for part in line[1:].partition(":"))
        if not colon:
            raise file_error(name, f"line {number}", f"metadata must read '# KEY: value', got {short_repr(line)}")
        if key in header:
            raise file_error(name, f"line {number}", f"{short_repr(key)} was given in line {header[key][0]} already")
        header[key] = number, value

    last = f"line {lines[max(start, 1) - 1][0]}"
    kind = _kind(header, name, last)
    totals = {key: _total(header, key, name, last) for key in _TOTALS}
    items = _items(header, totals["NUMBER ALTERNATIVES"], name)
    orders: dict[Order, tuple[int, int]] = {}
    for number, line in lines[start:]:
        try:
            count, order = _ballot(line, kind, len(items))
            if order in orders:
                raise ValueError(f"the same order as in line {orders[order][0]}")
        except ValueError as error:
            raise file_error(name, f"line {number}", str(error)) from None
        orders[order] = number, count
    counts = tuple(count for _, count in orders.values())
    for key, counted in (("NUMBER VOTERS", sum(counts)), ("NUMBER UNIQUE ORDERS", len(counts))):
        if totals[key] != counted:
            raise file_error(name, f"line {header[key][0]}", f"{key} is {totals[key]}, but the orders make {counted}")
    if not counts or sum(counts) > MAX_BALLOTS:
        raise file_error(name, f"line {lines[-1][0]}", "no orders" if not counts else "more than 2**53 ballots")
    return Ballots(items, tuple(orders), counts)


def _ending(name: str) -> str | None:
    ending = Path(name).suffix.lower().removeprefix(".")
    return ending if ending in DATA_TYPES else None


def _kind(header: dict[str, tuple[int, str]], name: str, last: str) -> str:
    """Returns the type of a file (soc, soi, toc or toi), from its name and its metadata.

    If neither has the type, the error names the position `last`.
    """
    ending = _ending(name)
    line, declared = header.get("DATA TYPE", (0, None))
    if declared is None:
        if ending is None:
            raise file_error(name, last, f"no DATA TYPE, and the name ends in none of .{', .'.join(DATA_TYPES)}")
        return ending
    if declared not in DATA_TYPES:
        raise file_error(
            name, f"line {line}", f"DATA TYPE must be one of {', '.join(DATA_TYPES)}, got {short_repr(declared)}"
        )
    if ending not in (None, declared):
        raise file_error(name, f"line {line}", f"DATA TYPE is {declared}, but the name ends in .{ending}")
    return declared


def _total(header: dict[str, tuple[int, str]], key: str, name: str, last: str) -> int:
    if key not in header:
        raise file_error(name, last, f"no metadata {key}")
    line, text = header[key]
    try:
        return _integer(key, text)
    except ValueError as error:
        raise file_error(name, f"line {line}", str(error)) from None


def _items(header: dict[str, tuple[int, str]], count: int, name: str) -> tuple[str, ...]:
    """Returns the names of the `count` alternatives in the metadata, sorted by number."""
    # `count` comes from the file and may be huge, so no object larger than the header is built.
    names: dict[int, str] = {}
    lines: dict[str, int] = {}
    for key, (line, item) in header.items():
        if not key.startswith(_NAME):
            continue
        try:
            number = _integer("the number of an ALTERNATIVE NAME", key.removeprefix(_NAME).strip())
            if not 1 <= number <= count:
                raise ValueError(f"{_NAME} {number}, where NUMBER ALTERNATIVES is {count}")
            if number in names:
                raise ValueError(f"a second {_NAME} {number}")
            if reason := name_fault(item):
                raise ValueError(f"{_NAME} {number} {reason}")
            if item in lines:
                raise ValueError(f"the name {short_repr(item)} was given in line {lines[item]} already")
        except ValueError as error:
            raise file_error(name, f"line {line}", str(error)) from None
        names[number], lines[item] = item, line
    if len(names) != count:
        line, _ = header["NUMBER ALTERNATIVES"]
        raise file_error(name, f"line {line}", f"NUMBER ALTERNATIVES is {count}, but {len(names)} are named")
    return tuple(names[number] for number in range(1, count + 1))


def _ballot(line: str, kind: str, num_items: int) -> tuple[int, Order]:
    """Returns the count and the order of one line.

    Raises a ValueError if the line is malformed; its message has no file and no line.
    """
    if line.startswith("#"):
        raise ValueError("metadata after the first order")
    text, colon, ranking = (part.strip() for part in line.partition(":"))
    if not colon:
        raise ValueError(f"an order must read 'count: order', got {short_repr(line)}")
    count = _integer("count", text)
    if not count >= 1:
        raise ValueError(f"count must be >= 1, got {count}")
    groups, position, more = [], 0, True
    while more:
        match = _GROUP.match(ranking, position)
        if match is None:
            raise ValueError(f"an order must read like 1,{{3,4}},2, got {short_repr(ranking[position:])}")
        tied, single, separator = match.groups()
        texts = [single] if tied is None else tied.split(",")
        groups.append(tuple(sorted(_integer("alternative", item.strip()) - 1 for item in texts)))
        position, more = match.end(), separator == ","
    order = tuple(groups)
    if any(not 0 <= item < num_items for group in order for item in group):
        raise ValueError(f"alternatives must be in [1, {num_items}], got {short_repr(ranking)}")
    if reason := order_fault(order, num_items) or _type_fault(order, kind, num_items):
        raise ValueError(f"the order {reason}")
    return count, order


def _type_fault(order: Order, kind: str, num_items: int) -> str | None:
    """Returns the reason why a valid order does not fit the type; None if it fits."""
    if kind[0] == "s" and any(len(group) > 1 for group in order):
        return f"has a tie, which {kind} does not allow"
    if kind[2] == "c" and sum(map(len, order)) < num_items:
        return f"leaves alternatives out, which {kind} does not allow"
    return None


def _order_text(order: Order) -> str:
    groups = [",".join(str(item + 1) for item in group) for group in order]
    return ",".join(text if len(group) == 1 else f"{{{text}}}" for text, group in zip(groups, order, strict=True))


def _integer(name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{name} must be an integer, got {short_repr(text)}")
    return int(text)
