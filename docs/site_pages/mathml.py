"""Renders formulas as MathML, which browsers show without a script, a font or a network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

SPACE = '<mspace width="0.17em" />'
LOGARITHM = re.compile(r"(<\w+>|</\w+>|^)<mi>ln</mi>(<mo|<|)")


def mathml(latex: str, display: str) -> str:
    """Returns a formula as MathML.

    Args:
        latex: the formula.
        display: "inline" or "block".

    Raises:
        ValueError: if the converter does not know a command of the formula.
    """
    converted = convert(latex, display=display)
    if "\\" in converted:
        raise ValueError(f"latex must have commands that latex2mathml knows, got {latex}")
    return LOGARITHM.sub(_add_spaces, converted)


def _add_spaces(found: re.Match[str]) -> str:
    """Sets a logarithm apart from the symbols beside it, which the converter does not."""
    before = "" if found[1] == "<mrow>" else SPACE
    return f"{found[1]}{before}<mi>ln</mi>{'' if found[2] == '<mo' else SPACE}{found[2]}"


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    anchors = "".join(f'<span id="{name}"></span>' for name in node.get("ids", ()))
    translator.body.append(f'<div class="formula">{anchors}{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connects the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
