"""Checks that the site describes every public name and has no dead link inside: `python docs/check_site.py SITE`."""

import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from site_pages.names import everything


class Page(HTMLParser):
    """A page of HTML: the targets of its links and pictures, and the anchors that links may name."""

    def __init__(self, text: str) -> None:
        """Reads a page of HTML."""
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records the link targets and anchors of a tag."""
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.places.add(value)
            elif name in ("href", "src"):
                self.targets.append(value)


def dead_links(pages: dict[Path, Page]) -> list[str]:
    """Returns links to missing files and to missing anchors of pages.

    Args:
        pages: every page of the site, by its absolute path.
    """
    found = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not aim.exists() or (place and aim in pages and place not in pages[aim].places):
                found.append(f"{path.name}: {target}")
    return found


def inventory(path: Path) -> set[str]:
    """Returns the Python names that a site describes, from its objects.inv."""
    data = path.read_bytes()
    for _ in range(4):  # the lines before the compressed part
        _, _, data = data.partition(b"\n")
    lines = zlib.decompress(data).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if " py:" in line}


def main() -> int:
    """Runs the command. Returns 1 if something is missing."""
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead, known = dead_links(pages), inventory(site / "objects.inv")
    missing = [name.path for name in everything() if name.path not in known]
    for problem in (*dead, *(f"not described: {name}" for name in missing)):
        print(problem)
    print(f"{len(pages)} pages, {len(known)} names, {len(dead)} dead links, {len(missing)} names missing")
    return 1 if dead or missing else 0


if __name__ == "__main__":
    sys.exit(main())
