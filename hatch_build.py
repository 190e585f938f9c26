"""Writes the description that a package index shows: the README, without links into the repository."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\\[\[\]])*)\]\((?!https?://|mailto:)([^()\s]+)\)")


def description(readme: str) -> str:
    """Returns the README as text that stands alone: links to files become names, links within the page become text.

    Args:
        readme: in Markdown. Code is left as it is.
    """
    kept: list[str] = []

    def hide(code: re.Match[str]) -> str:
        kept.append(code.group())
        return f"\x00{len(kept) - 1}\x00"

    plain = LINK.sub(_replacement, CODE.sub(hide, readme))
    while "\x00" in plain:  # a link's text may be code
        plain = re.sub("\x00(\\d+)\x00", lambda number: kept[int(number[1])], plain)
    return plain


def _replacement(link: re.Match[str]) -> str:
    picture, text, target = link.groups()
    if target.startswith("#"):
        return text
    path = target.split("#")[0]
    if picture:
        return f"(Picture: {text}. It is `{path}` of the source distribution.)"
    return f"`{path}` of the source distribution" if text == path else f"{text} (`{path}` of the source distribution)"


class CustomMetadataHook(MetadataHookInterface):
    """Fills in the project's field `readme`, which pyproject.toml declares dynamic."""

    def update(self, metadata: dict) -> None:
        """Sets the description."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}
