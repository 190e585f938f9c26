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


def split_parts(latex: str) -> list[str]:
    r"""Splits a formula at `\quad` and `\qquad` outside of braces and environments.

    On a narrow screen the parts stand below each other; a browser does not break the lines of a formula.
    """
    parts, depth = [""], 0
    for token in re.findall(r"\\[a-zA-Z]+|\\.|[^\\]", latex, re.DOTALL):
        depth += (token in ("{", r"\begin", r"\left")) - (token in ("}", r"\end", r"\right"))
        if depth == 0 and token in (r"\quad", r"\qquad"):
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]


def _add_spaces(found: re.Match[str]) -> str:
    """Sets a logarithm apart from the symbols beside it, which the converter does not."""
    before = "" if found[1] == "<mrow>" else SPACE
    return f"{found[1]}{before}<mi>ln</mi>{'' if found[2] == '<mo' else SPACE}{found[2]}"


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    anchors = "".join(f'<span id="{name}"></span>' for name in node.get("ids", ()))
    parts = "\n".join(mathml(part, "block") for part in split_parts(node.astext()))
    translator.body.append(f'<div class="formula">{anchors}{parts}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connects the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
