"""Writes the gallery: thumbnails of figures of executed notebooks and of studies, each with a link to its page."""

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

from jaxdp.studies import STUDIES

WIDTH = 480  # pixels of a thumbnail
OF_STUDIES = Path(__file__).parents[1] / "gallery" / "studies"  # committed thumbnails, by `docs/make_studies.py`
SEEN = OF_STUDIES.with_suffix(".json")  # one sentence for each of these figures on what it shows


class Shown(NamedTuple):
    """A figure of a notebook.

    Attributes:
        name: the notebook's name and the figure's number, such as `03_dueling_bandits_1`.
        tutorial: the name of the notebook.
        title: the notebook's title.
        part: the last heading above the figure.
        alt: the alternative text in the metadata of the figure's cell; empty if it has none.
        picture: the bytes of the PNG file.
    """

    name: str
    tutorial: str
    title: str
    part: str
    alt: str
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
                alt, image = cell.get("metadata", {}).get("alt", ""), base64.b64decode("".join(picture))
                yield Shown(f"{tutorial}_{number}", tutorial, title, part, alt, image)


def thumbnail(picture: bytes) -> bytes:
    """Returns a PNG file of at most `WIDTH` pixels' width."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail((WIDTH, image.height))
    file = io.BytesIO()
    image.quantize(128).save(file, "PNG", optimize=True)
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
                f"      :img-alt: {escape(shown.alt or f'Figure of the tutorial {caption}')}",
                f"      :link: /tutorials/{shown.tutorial}",
                "      :link-type: doc",
                "",
                f"      {escape(caption)}",
                "",
            ]
    grid = [".. grid:: 1 2 3 3", "   :gutter: 3", ""]
    return "\n".join(
        [
            *heading("Gallery", "="),
            "This page shows every figure of the tutorials and the figure of each study. A click leads to its page.",
            "",
            *heading("Tutorials", "-"),
            *([*grid, *cards] if cards else []),
            *heading("Studies", "-"),
            "``python -m jaxdp run NAME --quick`` draws these figures, each in seconds to a minute, and larger forms",
            "without ``--quick``. A few studies need the arguments that ``docs/make_studies.py`` gives them.",
            "",
            *grid,
            *(line for name, seen in alternative_texts().items() for line in _study_card(name, seen)),
        ]
    )


def alternative_texts() -> dict[str, str]:
    """Returns the alternative text of each study's figure, in the order of the studies.

    Raises:
        ValueError: if `SEEN` lacks a study or names one that does not exist.
    """
    texts = json.loads(SEEN.read_text(encoding="utf-8"))
    if different := sorted(set(STUDIES) ^ set(texts)):
        raise ValueError(f"{SEEN.name} must have one text for each study, but it differs in {', '.join(different)}")
    return {name: texts[name] for name in STUDIES}


def _study_card(name: str, seen: str) -> list[str]:
    """Returns the card of a study, which links to the study's command."""
    return [
        "   .. grid-item-card::",
        f"      :img-top: /gallery/{OF_STUDIES.name}/{name}.png",
        f"      :img-alt: {escape(seen)}",
        f"      :link: commands.html#python-m-jaxdp-run-{name}",
        "",
        f"      ``{name}``: {escape(STUDIES[name])}",
        "",
    ]
