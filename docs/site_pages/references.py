"""Writes the page of references, from `refs.bib` and from the `Source` sections of docstrings.

`python docs/site_pages/references.py` adds an entry for each reference that a docstring cites and `refs.bib` lacks.
"""

import re
import sys
import unicodedata
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages.docstrings import escape, section
from site_pages.names import Name, everything
from site_pages.rst import heading

BIBLIOGRAPHY = Path(__file__).parents[1] / "refs.bib"
UNVERIFIED = "identifier not verified"
AUTHOR = r"(?:de |van )?[A-Z](?!nversion|nalysis)[\w-]+"
CITATION = re.compile(rf"({AUTHOR}(?:, {AUTHOR})*(?: (?:&|and) {AUTHOR})?(?: et al\.)?),? \(((?:18|19|20)\d\d)\)")
INNER = re.compile(rf"\(({AUTHOR}(?:, {AUTHOR})*(?: & {AUTHOR}| et al\.)), ((?:18|19|20)\d\d)\)")
ENTRY = re.compile(r"@\w+\{([\w-]+),\n(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"^\s*(\w+) = \{(.*)\},?$", re.MULTILINE)


class Reference(NamedTuple):
    """An entry of `refs.bib`.

    Attributes:
        author: last names, as docstrings cite them.
        year: four digits.
        note: the whole reference, as a source paper prints it; empty if none does.
        eprint: the arXiv number, as the note or another text prints it beside the title; empty if none does.
    """

    author: str
    year: str
    note: str = ""
    eprint: str = ""


def key_of(author: str, year: str) -> str:
    """Returns the key of an entry, such as `saha-asi-2024`."""
    letters = unicodedata.normalize("NFKD", f"{author} {year}").encode("ascii", "ignore").decode().lower()
    letters = letters.replace(" and ", " ")
    return "-".join(re.findall(r"[a-z]+|\d+", letters))


def cited_references() -> dict[str, tuple[str, str]]:
    """Returns authors and year of each reference that a `Source` section names, by key."""
    return {key_of(*found): found for name in everything() for found in _citations(name)}


def references() -> dict[str, Reference]:
    """Returns the entries of `refs.bib`, by key."""
    entries = ENTRY.findall(BIBLIOGRAPHY.read_text(encoding="utf-8"))
    return {key: Reference(**dict(FIELD.findall(fields))) for key, fields in entries}


def references_page() -> str:
    """Returns the page: each reference with its identifier, and the names whose docstrings cite it."""
    users: dict[str, list[Name]] = {}
    for name in everything():
        for found in dict.fromkeys(_citations(name)):
            users.setdefault(key_of(*found), []).append(name)
    lines = [
        *heading("References", "="),
        "This page lists the papers that docstrings name as their source, with the full reference if a source paper",
        "has one. ``docs/refs.bib`` has the same entries. If no text at hand prints an arXiv number for a paper, the",
        f"paper is marked *{UNVERIFIED}*.",
        "",
    ]
    for key, entry in sorted(references().items()):
        text = f"{entry.author} ({entry.year}). {entry.note}".strip()
        identifier = f"arXiv {entry.eprint}" if entry.eprint else f"*{UNVERIFIED}*"
        names = ", ".join(f":py:obj:`{each.path.rpartition('.')[2]} <{each.path}>`" for each in users.get(key, ()))
        lines += [f".. _ref-{key}:", "", f"{escape(text)} {identifier}. Cited by {names}.", ""]
    return "\n".join(lines)


def citations(text: str) -> list[tuple[str, str]]:
    """Returns authors and year of each reference that a text names."""
    words = " ".join(text.split())
    return [*CITATION.findall(words), *INNER.findall(words)]


def links(text: str) -> list[str]:
    """Returns links to the references that a text names, as lines of reStructuredText."""
    names = dict.fromkeys(citations(text))
    items = [f":ref:`{author} ({year}) <ref-{key_of(author, year)}>`" for author, year in names]
    return [f"References: {', '.join(items)}.", ""] if items else []


def _citations(name: Name) -> list[tuple[str, str]]:
    return citations(section(name.value, "Source")) if callable(name.value) else []


def write() -> None:
    """Writes `refs.bib` with an entry for each cited reference; fields of present entries stay."""
    known = references()
    entries = []
    for key, found in sorted(cited_references().items()):
        fields = {name: value for name, value in known.get(key, Reference(*found))._asdict().items() if value}
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        entries.append(f"@misc{{{key},\n{lines}\n}}\n")
    BIBLIOGRAPHY.write_text("\n".join(entries), encoding="utf-8")


if __name__ == "__main__":
    write()
