"""Writes the gallery: a thumbnail of each figure of the executed notebooks, with a link to its tutorial."""

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from site_pages.docstrings import escape
from site_pages.rst import heading

WIDTH = 480  # pixels of a thumbnail


class Shown(NamedTuple):
    """A figure of a notebook.

    Attributes:
        name: the notebook's name and the figure's number, such as `03_dueling_bandits_1`.
        tutorial: the name of the notebook.
        title: the notebook's title.
        part: the last heading above the figure.
        picture: the bytes of the PNG file.
    """

    name: str
    tutorial: str
    title: str
    part: str
    picture: bytes


def figures(notebook: dict[str, Any], tutorial: str) -> Iterator[Shown]:
    """Yields the figures of an executed notebook, in order."""
    title = part = ""
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ (.*)$", "".join(cell["source"]), re.MULTILINE)
            part = headings[-1] if headings else part
            title = title or part
        for output in cell.get("outputs", ()):
            picture = output.get("data", {}).get("image/png")
            if picture:
                number += 1
                yield Shown(f"{tutorial}_{number}", tutorial, title, part, base64.b64decode("".join(picture)))


def thumbnail(picture: bytes) -> bytes:
    """Returns a PNG file of at most `WIDTH` pixels' width."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail((WIDTH, image.height))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def gallery_page(executed: Path, thumbnails: Path) -> str:
    """Writes thumbnails of all figures of executed notebooks, and returns the page that shows them.

    Args:
        executed: the folder of the executed notebooks.
        thumbnails: the folder for the thumbnails, beside the page.
    """
    thumbnails.mkdir(parents=True, exist_ok=True)
    cards = []
    for path in sorted(executed.glob("[0-9][0-9]_*.ipynb")):
        for shown in figures(json.loads(path.read_text(encoding="utf-8")), path.stem):
            (thumbnails / f"{shown.name}.png").write_bytes(thumbnail(shown.picture))
            caption = shown.title if shown.part == shown.title else f"{shown.title}: {shown.part}"
            cards += [
                "   .. grid-item-card::",
                f"      :img-top: {thumbnails.name}/{shown.name}.png",
                f"      :img-alt: Figure of the tutorial {escape(caption)}",
                f"      :link: /tutorials/{shown.tutorial}",
                "      :link-type: doc",
                "",
                f"      {escape(caption)}",
                "",
            ]
    return "\n".join(
        [
            *heading("Gallery", "="),
            "This page shows every figure of the tutorials. A click leads to the tutorial that computes and draws it.",
            "",
            *([".. grid:: 1 2 3 3", "   :gutter: 3", "", *cards] if cards else []),
        ]
    )
