"""Writes the page of references, from `refs.bib` and from the `Source` sections of docstrings.

`python docs/site_pages/references.py` adds an entry for each reference that a docstring cites and `refs.bib` lacks,
and removes each entry that no docstring cites.
The identifiers of an entry (`doi`, `eprint`, `url`) are typed by hand, and only from a text that prints the
identifier beside the title and the authors. An entry without any of them is marked as not verified.
"""

import re
import sys
import unicodedata
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages.docstrings import escape, section
from site_pages.names import Name, everything
from site_pages.rst import heading

BIBLIOGRAPHY = Path(__file__).parents[1] / "refs.bib"
UNVERIFIED = "identifier not verified"
AUTHOR = r"(?:de |van )?[A-Z](?!nversion|nalysis)[\w-]+"
AUTHORS = rf"{AUTHOR}(?:, {AUTHOR})*(?: (?:&|and) {AUTHOR})?(?: et al\.)?"
YEAR = r"(?:18|19|20)\d\d"
CITATION = re.compile(rf"({AUTHORS}),? \(({YEAR})\)")
INNER = re.compile(rf"(?:\(|; )({AUTHORS}), ({YEAR})(?=\)|; )")  # in parentheses, perhaps several
ENTRY = re.compile(r"@\w+\{([\w-]+),\n(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"^\s*(\w+) = \{(.*)\},?$", re.MULTILINE)


class Reference(NamedTuple):
    """An entry of `refs.bib`.

    Attributes:
        author: last names, as docstrings cite them.
        year: four digits.
        title: the title, as a text at hand prints it; empty if the note has it, or if no text does.
        note: the whole reference, as a source paper prints it; empty if none does.
        doi: the DOI, without the address of its resolver; empty if no text confirms one.
        eprint: the arXiv number; empty if no text confirms one.
        url: the paper's address, in the proceedings if it has any; empty if no text confirms one.
    """

    author: str
    year: str
    title: str = ""
    note: str = ""
    doi: str = ""
    eprint: str = ""
    url: str = ""

    @property
    def is_verified(self) -> bool:
        """Returns whether an identifier is confirmed."""
        return bool(self.doi or self.eprint or self.url)

    @property
    def identifier(self) -> str:
        """Returns the identifiers as links in reStructuredText, or the mark of an entry without any."""
        found = [
            *([f"`doi:{self.doi} <https://doi.org/{self.doi}>`__"] if self.doi else []),
            *([f"`arXiv:{self.eprint} <https://arxiv.org/abs/{self.eprint}>`__"] if self.eprint else []),
            *([f"`{urlsplit(self.url).netloc} <{self.url}>`__"] if self.url else []),
        ]
        return ", ".join(found) or f"*{UNVERIFIED}*"


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
        "has one. ``docs/refs.bib`` has the same entries. A DOI, an arXiv number or an address is given only if it",
        f"was read in a text that also has the title and the authors. Other papers are marked *{UNVERIFIED}*.",
        "",
    ]
    for key, entry in sorted(references().items()):
        title = entry.title if entry.title.endswith("?") else entry.title and f"{entry.title}."
        text = " ".join(part for part in (f"{entry.author} ({entry.year}).", title, entry.note) if part)
        names = ", ".join(f":py:obj:`{each.path.rpartition('.')[2]} <{each.path}>`" for each in users.get(key, ()))
        lines += [f".. _ref-{key}:", "", f"{escape(text)} {entry.identifier}. Cited by {names}.", ""]
    return "\n".join(lines)


def citations(text: str) -> list[tuple[str, str]]:
    """Returns authors and year of each reference that a text names."""
    words = " ".join(text.split())
    return [*CITATION.findall(words), *INNER.findall(words)]


def links(text: str) -> list[str]:
    """Returns links to the references that a text names, and their identifiers, as lines of reStructuredText."""
    known = references()
    entries = {key_of(*found): Reference(*found) for found in citations(text)}
    items = [
        f":ref:`{entry.author} ({entry.year}) <ref-{key}>`, {known.get(key, entry).identifier}"
        for key, entry in entries.items()
    ]
    return [f"References: {'; '.join(items)}.", ""] if items else []


def _citations(name: Name) -> list[tuple[str, str]]:
    return citations(section(name.value, "Source")) if callable(name.value) else []


def write() -> None:
    """Writes `refs.bib` with an entry for each cited reference; fields of present entries stay."""
    BIBLIOGRAPHY.write_text(bibliography(cited_references(), references()), encoding="utf-8")


def bibliography(cited: dict[str, tuple[str, str]], known: dict[str, Reference]) -> str:
    """Returns the text of `refs.bib`.

    Args:
        cited: authors and year of each cited reference, by key.
        known: the present entries, by key.
    """
    entries = []
    for key, found in sorted(cited.items()):
        fields = {name: value for name, value in known.get(key, Reference(*found))._asdict().items() if value}
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        entries.append(f"@misc{{{key},\n{lines}\n}}\n")
    return "\n".join(entries)


if __name__ == "__main__":
    write()
