"""Checks that the site describes every public name and has no dead link inside: `python docs/check_site.py SITE`.

It also checks that every algorithm's page has a displayed formula, an example, a picture, and a reference or a proof.
Readers must find the pages of `WALKS` by at most three links from the home page, and committed results of the benchmark
must be results of the current programs.
"""

import functools
import html
import os
import re
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from site_pages.algorithm_pages import algorithms
from site_pages.measured import APART, FOLDERS
from site_pages.names import everything
from site_pages.references import references
from site_pages.results import outdated_learners, read_records

WORKERS = 2  # processes that read pages
Walks = dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]]
INDEX = "reference/api/algorithms.html"
ALGORITHM = "reference/api/algorithm/{}.html"
# For each question of a reader: the pages from the home page to the answer, the last page's heading, and texts in it.
WALKS: Walks = {
    "how to install": (("howto/install.html",), "Install", ("requirements.lock",)),
    "RUCB's rule and its privacy proof": (
        (INDEX, ALGORITHM.format("rucb")),
        "RUCB (rucb)",
        ('display="block"', 'id="privacy-claim"'),
    ),
    "pure local claims for contextual bandits": (
        (INDEX,),
        "Algorithms and their claims",
        ("linear_ucb_ball", "generalized_linear_ball", "greedy_sgd"),
    ),
    "the corrected step size of SGD with randomized responses": (
        (INDEX, ALGORITHM.format("sgd_rr")),
        "SGD, RR (sgd_rr)",
        ("corrected step size", 'display="block"'),
    ),
    "how to run 10^5 seeds on a GPU": (
        ("howto/gpu_and_memory.html",),
        "Use a GPU, and bound memory",
        ("For 10^5 seeds",),
    ),
}


class Page(HTMLParser):
    """A page of HTML: the targets of its links and pictures, and the anchors that links may name."""

    def __init__(self, text: str) -> None:
        """Reads a page of HTML."""
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.text = text
        self.links: list[str] = []  # in the text itself, not in menus
        self.heading = ""
        self.in_article = self.in_heading = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records the link targets and anchors of a tag."""
        self.in_article += tag == "article"
        self.in_heading += tag == "h1"
        if tag == "a" and self.in_article:
            self.links.append(dict(attrs).get("href") or "")
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.places.add(value)
            elif name in ("href", "src"):
                self.targets.append(value)

    def handle_endtag(self, tag: str) -> None:
        """Records where the text of the page and its heading end."""
        self.in_article -= tag == "article"
        self.in_heading -= tag == "h1"

    def handle_data(self, data: str) -> None:
        """Records the heading of the page, without the sign of its link."""
        if self.in_heading:
            self.heading += data.rstrip("¶#")

    @property
    def article(self) -> str:
        """The text of the page without its menus."""
        return self.text.partition("<article")[2].partition("</article")[0]


def read_page(path: Path) -> Page:
    """Reads a page of the site."""
    return Page(path.read_text(encoding="utf-8"))


def dead_links(pages: dict[Path, Page]) -> list[str]:
    """Returns links to missing files and to missing anchors of pages.

    Args:
        pages: every page of the site, by its absolute path.
    """
    found = []
    exists = functools.cache(os.path.exists)  # most pages have the same links
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            aim = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            place = unquote(parts.fragment)
            if not exists(aim) or (place and aim in pages and place not in pages[aim].places):
                found.append(f"{path.name}: {target}")
    return found


def inventory(path: Path) -> set[str]:
    """Returns the Python names that a site describes, from its objects.inv."""
    data = path.read_bytes()
    for _ in range(4):  # the lines before the compressed part
        _, _, data = data.partition(b"\n")
    lines = zlib.decompress(data).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if " py:" in line}


def incomplete_algorithms(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Returns the gaps in algorithms' pages: no page, formula, example or picture, or neither reference nor proof."""
    gaps = []
    for name in algorithms():
        page = pages.get(site / ALGORITHM.format(name))
        if page is None:
            gaps.append(f"{name}: no page")
            continue
        parts = dict(re.findall(r'<section id="([a-z-]+)">(.*?)(?=<section|</article)', page.text, re.DOTALL))
        gaps += [f"{name}: no displayed formula"] * ('display="block"' not in parts.get("mathematics", ""))
        gaps += [f"{name}: no example"] * (parts.get("example", "").count('<div class="highlight"') != 2)
        is_drawn = re.search(rf'<img[^>]* src="[^"]*/{name}\.svg"', page.text) is not None
        gaps += [f"{name}: no picture"] * (not is_drawn)
        words = len(re.sub("<.*?>", " ", parts.get("paper", "")).split())
        gaps += [f"{name}: neither reference nor proof"] * (words < 3 and "/proofs/" not in page.text)
    return gaps


def algorithms_that_display(site: Path, pages: dict[Path, Page], signs: str) -> int:
    """Returns the number of algorithms' pages with a displayed formula that has one of the signs."""
    shown = [
        re.findall(r'<math[^>]*display="block".*?</math>', pages[site / ALGORITHM.format(name)].text)
        for name in algorithms()
    ]
    return sum(any(sign in html.unescape(formula) for formula in formulas for sign in signs) for formulas in shown)


def lost_readers(site: Path, pages: dict[Path, Page], walks: Walks) -> list[str]:
    """Returns the questions whose walk breaks: a page lacks a link to the next one, or the last one lacks a text."""
    problems = []
    for question, (steps, heading, texts) in walks.items():
        path = site / "index.html"
        for step in steps:
            targets = {(path.parent / unquote(urlsplit(link).path)).resolve() for link in pages[path].links}
            if site / step not in targets or len(steps) > 3:
                problems.append(f"{question}: {path.name} has no link to {step}")
                break
            path = site / step
        else:
            page = pages[path]
            if page.heading != heading:
                problems.append(f"{question}: {path.name} has the heading {page.heading!r}, not {heading!r}")
            problems += [f"{question}: {path.name} lacks {text!r}" for text in texts if text not in page.article]
    return problems


def outdated_results() -> list[str]:
    """Returns a sentence for each learner whose committed results are results of another program."""
    return [
        f"{name}: its results in {folder.name}/ are of another program; make pages-data plays it again"
        for protocol, folder in FOLDERS.items()
        for name in outdated_learners(read_records(folder, protocol))
    ] + [f"{name}: {module.PATH.name} is of another program" for module in APART for name in module.outdated_entries()]


def main() -> int:
    """Runs the command. Returns 1 if something is missing."""
    site = Path(sys.argv[1]).resolve()
    paths = list(site.rglob("*.html"))
    with ProcessPoolExecutor(WORKERS) as pool:
        pages = dict(zip(paths, pool.map(read_page, paths, chunksize=10), strict=True))
    dead, known = dead_links(pages), inventory(site / "objects.inv")
    missing = [name.path for name in everything() if name.path not in known]
    incomplete, lost = incomplete_algorithms(site, pages), lost_readers(site, pages, WALKS)
    old = outdated_results()
    for problem in (*dead, *(f"not described: {name}" for name in missing), *incomplete, *lost, *old):
        print(problem)
    print(f"{len(pages)} pages, {len(known)} names, {len(dead)} dead links, {len(missing)} names missing")
    displayed = sum('display="block"' in page.text for page in pages.values())
    unverified = sum(not entry.is_verified for entry in references().values())
    print(f"{displayed} pages with displayed formulas, {len(algorithms())} algorithm pages, {len(incomplete)} gaps")
    if not incomplete:
        counts = [algorithms_that_display(site, pages, signs) for signs in ("=←", "ε", "≤≥")]
        print("algorithm pages that display {} a rule, {} a noise or another term in ε, {} a bound".format(*counts))
    print(f"{unverified} of {len(references())} references not verified")
    print(f"{len(WALKS)} walks of at most three links, {len(lost)} lost")
    counts = " and ".join(f"{len(read_records(folder, each))} {each}" for each, folder in FOLDERS.items())
    print(f"{counts} results of the benchmark, {len(old)} of another program")
    return 1 if dead or missing or incomplete or lost or old else 0


if __name__ == "__main__":
    sys.exit(main())
