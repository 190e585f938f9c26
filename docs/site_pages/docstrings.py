"""Converts docstrings to reStructuredText: sections become headings, and lists of arguments become definitions."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

LISTS = ("Attributes", "Args", "Raises", "Warns", "Values")
SECTIONS = (*LISTS, "Returns", "Yields", "Privacy", "Source", "Deviations", "Math", "Examples")
HEADING = re.compile(rf"({'|'.join(SECTIONS)}):")
ITEM = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}\w+)*):(?: |$)(.*)")
CODE = re.compile(r"(``.+?``|`[^`\n]+`)")
STRONG = re.compile(r"(?<![\w*])(\*\*?)(?=[^\s*])([^*\n]+?)(?<=[^\s*])\1(?![\w*])")
PROOF = re.compile(r"`*docs/proofs/(\w+)\.md`*")  # becomes a link


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields (name, lines) of each section of a docstring, without indentation; the first section has no name."""
    name, lines = "", []
    for line in inspect.cleandoc(text).splitlines():
        heading = HEADING.fullmatch(line)
        if heading:
            yield name, _dedent(lines)
            name, lines = heading[1], []
        else:
            lines.append(line)
    yield name, _dedent(lines)


def section(value: Any, name: str) -> str:
    """Returns the text of one section of an object's docstring; empty if it has none."""
    return "\n".join(dict(sections(inspect.getdoc(value) or "")).get(name, ()))


def to_rst(text: str) -> list[str]:
    """Returns the lines of a docstring as reStructuredText."""
    lines: list[str] = []
    for name, body in sections(text):
        if name:
            lines += ["", f".. rubric:: {name}", "   :class: section", ""]
        if name == "Math":
            lines += formulas(body)
        else:
            lines += _definitions(body) if name in LISTS or _names_parts(body) else plain(body)
    return lines


def plain(lines: list[str]) -> list[str]:
    """Escapes lines of prose, lists and doctests, so that reStructuredText reads them as written.

    A list may follow its paragraph without an empty line, as in Markdown.
    """
    found: list[str] = []
    in_doctest, before = False, ""
    for line in lines:
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if _starts_item(line) and before.strip() and not _belongs_to_item(before, line):
            found.append("")
        found.append(line if in_doctest else escape(line))
        before = line
    return found


def formulas(lines: list[str]) -> list[str]:
    """Converts prose with formulas between single dollars, and displayed ones between lines of two dollars."""
    converted: list[str] = []
    in_formula = False
    for line in lines:
        if line.strip() == "$$":
            in_formula = not in_formula
            converted += ["", ".. math::", ""] if in_formula else [""]
        elif in_formula:
            converted.append(f"   {line.strip()}")
        else:
            parts = line.split("$")
            converted.append(
                "".join(f":math:`{part}`\\ " if index % 2 else escape(part) for index, part in enumerate(parts))
            )
    return converted


def escape(line: str) -> str:
    """Escapes one line of prose, in which only backticks, emphasis and bullets are markup."""
    indent = line[: len(line) - len(line.lstrip())]
    rest = line[len(indent) :]
    bullet = re.match(r"[*-] ", rest)
    start = bullet[0] if bullet else ""
    parts = CODE.split(_unnest(rest[len(start) :]))
    found = ""
    for number, part in enumerate(parts):
        if number % 2:  # code
            after = parts[number + 1][:1]
            before = found[-1:]
            found += ("\\ " if before and not before.isspace() and before not in "([{-/" else "") + part
            found += "\\ " if after.isalnum() or after in ("(", "[", "{", "=", "^", "_", "*") else ""
        else:
            found += _outside(part)
    return indent + start + PROOF.sub(r":doc:`docs/proofs/\1.md </proofs/\1>`", found)


def signature(value: Any) -> str | None:
    """Returns the arguments and the result of a function, or the fields of a class, as its source writes them.

    Aliases, such as aliases of arrays, keep their names. None if there is no source, or a class has no own fields.
    """
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if isinstance(node, ast.ClassDef):
        return _fields(node)
    if not isinstance(node, ast.FunctionDef):
        return None
    return _call(node, bound=False)


def _call(node: ast.FunctionDef, *, bound: bool) -> str:
    arguments = node.args
    if bound or (arguments.args and arguments.args[0].arg in ("self", "cls")):
        arguments.args = arguments.args[1:]
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){returned}"


def _fields(node: ast.ClassDef) -> str | None:
    for each in node.body:  # a protocol is known by how it is called
        if isinstance(each, ast.FunctionDef) and each.name in ("__call__", "__init__"):
            return _call(each, bound=True)
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    if not fields:
        return None
    return f"({', '.join(_field(each) for each in fields)})"


def _field(node: ast.AnnAssign) -> str:
    text = ast.unparse(node).replace("\n", " ")
    if node.value is not None and isinstance(node.value, ast.Call):  # field(default_factory=...) and the like
        return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)} = ..."
    return text


def _dedent(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines()


def _definitions(lines: list[str]) -> list[str]:
    """Converts `name: text` at the left margin to a definition list."""
    found: list[str] = []
    body: list[str] = []

    def close() -> None:
        found.extend(f"   {line}" if line else "" for line in plain(_dedent(body)))
        body.clear()

    for line in lines:
        item = ITEM.match(line)
        if item:
            close()
            found.extend(["", f"``{item[1]}``"])
            body.append(f"    {item[2]}")
        else:
            body.append(line)
    if not any(line.startswith("``") for line in found):  # prose instead of a list
        found.extend(plain(lines))
        return found
    close()
    return [*found, ""]


def _names_parts(lines: list[str]) -> bool:
    """Returns whether a section describes several parts by name (as parts of a tuple), with later lines indented."""
    starts = [number for number, line in enumerate(lines) if ITEM.match(line)]
    return len(starts) > 1 and starts[0] == 0 and all(line.startswith(" ") or ITEM.match(line) for line in lines)


def _unnest(text: str) -> str:
    """Moves code out of bold text, because reStructuredText nests neither in the other."""
    kept = CODE.findall(text)
    numbers = iter(range(len(kept)))
    text = CODE.sub(lambda found: f"\x01{next(numbers)}\x01", text)

    def bold_outside_code(found: re.Match[str]) -> str:
        pieces = re.split("(\x01\\d+\x01)", found[1])
        return "".join(
            piece if number % 2 else re.sub(r"\S(?:.*\S)?", lambda words: f"**{words[0]}**", piece)
            for number, piece in enumerate(pieces)
        )

    text = re.sub("\\*\\*(?=\\S)([^*\n]*\x01[^*\n]*)(?<=\\S)\\*\\*", bold_outside_code, text)
    return re.sub("\x01(\\d+)\x01", lambda found: kept[int(found[1])], text)


def _starts_item(line: str) -> bool:
    return bool(re.match(r"\s*(?:[*-]|\d+\.) \S", line))


def _belongs_to_item(before: str, line: str) -> bool:
    """Returns whether a line of a list follows another line of the same list."""
    indent = len(line) - len(line.lstrip())
    return _starts_item(before) or (len(before) - len(before.lstrip())) > indent


def _outside(text: str) -> str:
    """Escapes vertical bars, lone stars and trailing underscores in prose between code."""
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
    kept: list[str] = []

    def away(found: re.Match[str]) -> str:
        kept.append(found.group())
        return f"\x00{len(kept) - 1}\x00"

    text = STRONG.sub(away, text)
    text = text.replace("*", "\\*")
    text = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    return re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text)
