"""The formulas of docstrings and pages have only commands that the site's converter knows; else `make docs` fails."""

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from site_pages.docstrings import formulas, sections  # noqa: E402

# What is between dollars in Markdown, outside code. In a docstring, only the section Math has formulas.
CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1|(`+).+?\2", re.DOTALL | re.MULTILINE)
DOLLARS = re.compile(r"(?<![\\$])(\${1,2})(?!\$)(.+?)(?<![\\$])\1(?!\$)", re.DOTALL)
# A command; \left, \big and the like with their delimiter, since the converter does not know each pair.
COMMAND = re.compile(r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\s*(?:\\[A-Za-z]+|\\.|.)|\\(?:[A-Za-z]+|.)")
# The converter is installed for the site alone, so this list of commands that it knows takes its place in the tests.
KNOWN = frozenset(
    re.findall(
        r"\S+",
        r"""
        \% \, \; \Big( \Big) \Delta \Gamma \Lambda \Phi \Pi \Sigma \Upsilon \alpha \bar \beta \big( \big) \binom
        \cdot \cosh \delta \det \dots \ell \eta \exp \frac \gamma \ge \hat \in \inf \infty \int \kappa \lambda
        \langle \lceil \le \left( \left[ \left\{ \lfloor \ln \log \mathbb \mathbf \mathrm \max \mid \min \mu \nabla
        \ne \nu \operatorname \phi \pi \pm \preceq \propto \psi \qquad \quad \rangle \rceil \rfloor \rho \right)
        \right\} \right] \sigma \sim \sinh \sqrt \square \succeq \sum \tanh \tau \text \tfrac \theta \tilde \times
        \to \top \varepsilon \varphi \xi \zeta \{ \}
        """,
    )
)


def formulas_of_docstrings(source: str) -> Iterator[str]:
    """Yields the formulas of all docstrings of a module."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        text = "\n".join("\n".join(lines) for name, lines in sections(ast.get_docstring(node) or "") if name == "Math")
        rst = "\n".join(formulas(text.splitlines()))
        yield from re.findall(r":math:`([^`]+)`", rst)
        yield from re.findall(r"^\.\. math::\n\n((?:   .*\n|\n(?=   ))+)", f"{rst}\n", re.MULTILINE)


def formulas_of_page(text: str) -> list[str]:
    """Returns the formulas of a page in Markdown."""
    return [latex for _, latex in DOLLARS.findall(CODE.sub("", text))]


def every_formula() -> dict[str, list[str]]:
    """Returns the formulas of each file that has some, by its path."""
    found = {}
    for path in (ROOT / "jaxdp").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "Math:" in source:
            found[path.relative_to(ROOT).as_posix()] = list(formulas_of_docstrings(source))
    for path in DOCS.rglob("*.md"):
        if not path.is_relative_to(DOCS / "reference" / "api"):  # written by the site's build
            found[path.relative_to(ROOT).as_posix()] = formulas_of_page(path.read_text(encoding="utf-8"))
    return {path: each for path, each in found.items() if each}


def commands(latex: str) -> set[str]:
    """Returns the commands of a formula, without spaces."""
    return {re.sub(r"\s", "", command) for command in COMMAND.findall(latex)}


def unknown(found: dict[str, list[str]]) -> list[str]:
    """Returns the commands outside `KNOWN`, each with its file."""
    return sorted(
        {f"{path}: {new}" for path, each in found.items() for latex in each for new in commands(latex) - KNOWN}
    )


def test_every_formula_has_commands_that_are_known():
    found = every_formula()
    assert sum(len(each) for each in found.values()) > 1500
    assert unknown(found) == []  # add a new command to KNOWN if the site's build accepts it


def test_a_command_that_the_converter_does_not_know_is_seen():
    page = (
        "Code: `$\\Big\\{$`.\n```\n$\\breve c$\n```\nLet $x$ and $\\breve\\mu$ be 1, and\n$$\n\\Big\\{ y \\Big)\n$$\n"
    )
    math = "    Math:\n        For $\\breve x$\n        $$\n        \\Big\\{ y\n        $$\n"
    source = f'def f():\n    r"""Does it.\n\n{math}    """\n'
    for found in (formulas_of_page(page), list(formulas_of_docstrings(source))):
        assert unknown({"here": found}) == ["here: \\Big\\{", "here: \\breve"]


@pytest.mark.skipif(importlib.util.find_spec("latex2mathml") is None, reason="installed for the site alone")
def test_the_converter_knows_every_formula():
    from site_pages.mathml import mathml

    for latex in {latex for each in every_formula().values() for latex in each}:
        assert "<math" in mathml(latex, "block")
    with pytest.raises(ValueError, match="commands that latex2mathml knows"):
        mathml(r"\Big\{ y", "block")


@pytest.mark.skipif(importlib.util.find_spec("latex2mathml") is None, reason="installed for the site alone")
def test_a_displayed_formula_is_split_at_wide_spaces_outside_of_braces():
    from site_pages.mathml import mathml, split_parts

    assert split_parts(r"a = \sqrt{b},\quad c \qquad \{d\}") == [r"a = \sqrt{b},", "c", r"\{d\}"]
    for whole in (r"\text{if \quad}", r"\begin{cases} a \quad b \end{cases}", r"\left( a \quad b \right)"):
        assert split_parts(whole) == [whole]
    for latex in {latex for each in every_formula().values() for latex in each}:
        assert all("<math" in mathml(part, "block") for part in split_parts(latex))
