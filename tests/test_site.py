"""The site describes every public name, and no link within documents is dead. `make docs` builds the site itself."""

import base64
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

import jaxdp.audit
import jaxdp.core

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from site_pages import gallery  # noqa: E402
from site_pages.algorithm_pages import algorithms  # noqa: E402
from site_pages.commands import commands_page  # noqa: E402
from site_pages.docstrings import escape, plain, section, to_rst  # noqa: E402
from site_pages.gallery import OF_STUDIES, alternative_texts, gallery_page  # noqa: E402
from site_pages.names import PAGES, everything, missing, names_by_page, public_modules  # noqa: E402
from site_pages.navigation import mark_current  # noqa: E402
from site_pages.pages import deviations_page, theorems_page, tidy  # noqa: E402

from jaxdp.studies import STUDIES  # noqa: E402

WRITTEN = {f"reference/api/{page}.rst" for page in (*PAGES, "algorithms", "environments", "theorems", "deviations")}
WRITTEN |= {
    "reference/api/commands.rst",
    "reference/api/standings.md",
    *(f"reference/api/{page}.rst" for page in ("references", "literature", "gallery")),
}
OF_ALGORITHMS = {f"reference/api/algorithm/{name}.rst" for name in algorithms()}  # their index lists them
EXECUTED = {f"tutorials/{path.stem}.ipynb" for path in (ROOT / "notebooks").glob("[0-9]*.py")}
TEXTS = {
    path: path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *sorted(DOCS.rglob("*.md")))
}
MAX_COLUMNS = 88  # of code; a page cuts off longer lines
LINK = re.compile(r"\]\(([^()\s]+)\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Returns the places of a page that a link may name: its headings, as GitHub and MyST write them."""
    titles = re.findall(
        r"^#+ +(.+?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def is_there(path: Path) -> bool:
    """Returns whether a file is in the repository, or is made by the site's build."""
    if path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in WRITTEN | OF_ALGORITHMS | EXECUTED:
        return True
    return path.exists()


def dead_links(path: Path, text: str) -> list[str]:
    """Returns relative links of a Markdown file to missing files."""
    dead = []
    for target in LINK.findall(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        aim = (path.parent / name).resolve() if name else path
        if not is_there(aim) or (place and aim in TEXTS and place not in anchors(TEXTS[aim])):
            dead.append(target)
    return dead


def entries(path: Path, text: str) -> list[Path]:
    """Returns the pages that a page's tables of contents name."""
    lines = [line for body in TOCTREE.findall(text) for line in body.splitlines()]
    return [(path.parent / line).resolve() for line in lines if line.strip() and not line.startswith(":")]


def page_of(entry: Path) -> Path | None:
    """Returns the file of an entry of a table of contents, or None."""
    files = [entry.with_name(entry.name + ending) for ending in (".md", ".rst", ".ipynb")]
    return next((file for file in files if is_there(file)), None)


def test_every_public_name_has_a_docstring_and_a_page():
    names = list(everything())
    assert missing(names, public_modules()) == []
    paths = [name.path for name in names]
    assert len(paths) == len(set(paths)) > 400


def test_a_type_of_a_signature_is_that_of_its_module():
    """Checks two public classes that are called `Space`."""
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)

    def signature(value):
        return conf._signature(None, "", "", value, None, "", "")

    assert signature(jaxdp.core.arms) == ("(num_arms: int)", "jaxdp.core.Space")
    assert "Callable[[], jaxdp.audit.Space]" in signature(jaxdp.audit.Target)[0]


def test_every_public_module_is_on_a_page():
    assert sorted(public_modules()) == sorted({path for modules in PAGES.values() for path in modules})


def test_a_name_that_no_page_has_is_seen(monkeypatch):
    import jaxdp.stats

    names, modules = list(everything()), public_modules()

    def undocumented(): ...

    monkeypatch.setattr(jaxdp.stats, "undocumented", undocumented, raising=False)
    monkeypatch.setattr(jaxdp.stats, "__all__", [*jaxdp.stats.__all__, "undocumented"])
    assert missing(names, modules) == ["jaxdp.stats.undocumented"]  # on no page
    assert missing(list(everything()), modules) == ["jaxdp.stats.undocumented"]  # on one, without a docstring
    assert missing([name for name in names if name.path != "jaxdp.stats.paired"], modules)[0] == "jaxdp.stats.paired"


def test_every_theorem_and_deviation_and_command_is_on_its_page():
    theory = [name for names in names_by_page()["theory"].values() for name in names]
    page = theorems_page()
    assert [name.path for name in theory if f"<{name.path}>" not in page] == []
    page = deviations_page()
    deviating = [
        name for name in everything() if section(name.value, "Deviations").lower().strip(". \n") not in ("", "none")
    ]
    assert len(deviating) > 30
    assert [name.path for name in deviating if f"<{name.path}>" not in page] == []
    page = commands_page()
    assert [name for name in STUDIES if f"``python -m jaxdp run {name}``" not in page] == []
    assert "``--epsilon``" in page


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_of_a_document_is_dead(path):
    assert dead_links(path, TEXTS[path]) == []


def test_dead_links_are_seen():
    path = DOCS / "index.md"
    assert dead_links(path, "[a](nothing.md) [b](index.md) [c](#no-such-place) [d](https://example.org)") == [
        "nothing.md",
        "#no-such-place",
    ]
    assert dead_links(path, "[a](reference/api/dueling.rst) [b](reference/api/duels.rst)") == [
        "reference/api/duels.rst"
    ]


def undefined_names(path: Path, text: str) -> list[str]:
    """Returns links from a name in code to a Python file that does not define it."""
    undefined = []
    for name, target in re.findall(r"\[`(\w+)`\]\(([^()\s]+\.py)\)", text):
        defines = rf"^(def|class) {name}\b|^{name}(:.*)? = "
        if not re.search(defines, (path.parent / target).read_text(encoding="utf-8"), re.MULTILINE):
            undefined.append(f"{name} in {target}")
    return undefined


CODE = DOCS / "explanation" / "how_the_code_works.md"


def test_the_page_about_the_code_links_to_files_that_define_its_names():
    assert len(re.findall(r"\.py\)", TEXTS[CODE])) > 40
    assert undefined_names(CODE, TEXTS[CODE]) == []
    assert len(TEXTS[CODE].split()) <= 1200


def test_a_name_that_moved_to_another_file_is_seen():
    text = TEXTS[CODE].replace("run/snapshot.py", "run/loop.py").replace("[`Plan`]", "[`Plans`]")
    assert undefined_names(CODE, text) == [
        "Plans in ../../jaxdp/simulation/sweeps/plan.py",
        "read_checkpoint in ../../jaxdp/simulation/run/loop.py",
    ]
    assert "../../jaxdp/bandits/_upper.py" in dead_links(CODE, text.replace("_ucb.py", "_upper.py"))


def test_every_page_is_in_a_table_of_contents_once():
    found = [(path, entry) for path, text in TEXTS.items() for entry in entries(path, text)]
    assert [str(entry) for _, entry in found if page_of(entry) is None] == []
    listed = [page_of(entry) for _, entry in found]
    assert len(listed) == len(set(listed))
    pages = {path for path in TEXTS if path.is_relative_to(DOCS)} - {DOCS / "index.md"}
    pages |= {DOCS / name for name in WRITTEN | EXECUTED}
    assert sorted(map(str, pages - set(listed))) == []


def wide_lines(text: str) -> list[str]:
    """Returns lines of code of a page that are too wide; printed outputs are as the command prints them."""
    code = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [line for kind, block in code if kind != "text" for line in block.split("\n") if len(line) > MAX_COLUMNS]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_of_a_page_is_not_cut_off(path):
    assert wide_lines(TEXTS[path]) == []


def test_wide_code_is_seen():
    line = "jaxdp " + 83 * "x"
    for kind in ("", "sh", "python"):
        assert wide_lines(f"A page.\n\n```{kind}\npip\n{line}\n```\n\n{line}\n") == [line]
        assert wide_lines(f"A page.\n\n```{kind}\n{line[:-1]}\n```\n") == []
    assert wide_lines(f"```text\n{line}\n```\n") == []


def test_progress_shows_its_last_state():
    streams = [{"output_type": "stream", "name": "stderr", "text": text} for text in ("\r 0%", "\r50%", "\r100%\n")]
    other = {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}
    cells = [{"cell_type": "code", "outputs": [*streams, other]}, {"cell_type": "markdown"}]
    found = tidy({"cells": cells})["cells"][0]["outputs"]
    assert [output["text"] for output in found] == ["100%\n", "a\nb"]


def test_pictures_of_a_notebook_have_the_alternative_text_of_their_cell():
    first, second = tidy({"cells": [{"cell_type": "code", "metadata": {"alt": "A line."}, "outputs": []}, {}]})["cells"]
    assert first["metadata"]["mystnb"] == {"image": {"alt": "A line."}}
    assert second == {}


def test_a_shared_menu_shows_the_current_page_as_the_theme_does():
    def part(number, link, current="", checked=""):
        opened = (
            f'<li class="toctree-l{number}{current} has-children"><a class="reference internal" href="{link}">A</a>'
        )
        return f'{opened}<input aria-label="Toggle"{checked} class="toctree-checkbox" id="toctree-checkbox-{number}"/>'

    def entry(link):
        return f'<li class="toctree-l3"><a class="reference internal" href="{link}">a <code>b</code></a></li>'

    other, ends = f"{part(1, '../b.html')}<ul>{entry('../b/c.html')}</ul></li>", "</ul></li></ul></li></ul>"
    menu = f"<ul>{other}{part(1, '../a.html')}<ul>{part(2, 'd.html')}<ul>{entry('e.html')}{entry('f.html')}{ends}"
    is_open, on = ' checked=""', " current"
    above = f'<ul class="current">{other}{part(1, "../a.html", on, is_open)}<ul class="current">'
    page = entry("f.html").replace('l3"', 'l3 current current-page"')
    page = page.replace('class="reference internal" href="f.html"', 'class="current reference internal" href="#"')
    expected = f'{above}{part(2, "d.html", on, is_open)}<ul class="current">{entry("e.html")}{page}{ends}'
    assert mark_current(menu, "f.html") == expected
    of_part = (
        part(2, "d.html", on, is_open)
        .replace(' href="d.html"', ' href="#"')
        .replace('<a class="', '<a class="current ')
    )
    of_part = of_part.replace('has-children"', 'has-children current-page"')
    assert mark_current(menu, "d.html") == f"{above}{of_part}<ul>{entry('e.html')}{entry('f.html')}{ends}"
    assert mark_current(menu, "g.html") == menu


def test_docstrings_become_what_is_meant():
    assert escape("|theta^ - theta*| of `x`s, *meant*, a_") == "\\|theta^ - theta\\*\\| of `x`\\ s, *meant*, a\\_"
    assert escape("* **`f(**x)` runs on the host**: it") == "* `f(**x)` **runs on the host**: it"
    assert plain(["Two:", "* one", "* two"]) == ["Two:", "", "* one", "* two"]
    lines = to_rst("Does it.\n\nArgs:\n    x: [n] float,\n        |x| <= 1.\n\nReturns:\n    A number: 1.")
    assert lines[:1] == ["Does it."]
    assert "``x``" in lines
    assert "   [n] float," in lines
    assert "   \\|x\\| <= 1." in lines
    assert lines[-1] == "A number: 1."
    lines = to_rst("Does it.\n\nReturns:\n    A number.\n\nWarns:\n    RuntimeWarning: if it is large.")
    assert {"A number.", "``RuntimeWarning``"} <= set(lines)


def test_what_the_site_needs_is_not_installed_for_the_tests():
    pinned = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "sphinx" not in pinned.lower()
    more = (DOCS / "requirements.lock").read_text(encoding="utf-8")
    versions: dict[str, set[str]] = {}  # of other Pythons, too
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", pinned, re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    both = [each for each in re.findall(r"^([\w.-]+)==(\S+)", more, re.MULTILINE) if each[0] in versions]
    assert both
    others = [name for name, version in both if version not in versions[name]]
    assert others == []  # the same versions of what both have


def test_the_paper_is_short_and_cites_what_its_bibliography_has():
    text, bibliography = ((ROOT / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    cited = set(re.findall(r"@([a-z]+(?:-[a-z]+)*-\d{4})", text))
    assert cited == set(re.findall(r"^@\w+\{(.*),$", bibliography, re.MULTILINE))
    assert len(text.split("---", 2)[2].split()) <= 1000
    assert all((ROOT / "paper" / path).exists() for path in re.findall(r"\]\((.*?)\)", text))


def test_the_gallery_shows_each_figure_of_a_notebook_with_a_link(tmp_path):
    picture = io.BytesIO()
    Image.new("RGB", (900, 300)).save(picture, "PNG")
    shown = {"output_type": "display_data", "data": {"image/png": base64.b64encode(picture.getvalue()).decode()}}
    cells = [
        {"cell_type": "markdown", "source": ["# Duels\n", "Some text."]},
        {"cell_type": "code", "outputs": [shown, {"output_type": "stream", "text": "a"}]},
        {"cell_type": "markdown", "source": "## A crossover"},
        {"cell_type": "code", "outputs": [shown], "metadata": {"alt": "Two lines cross."}},
    ]
    (tmp_path / "03_duels.ipynb").write_text(json.dumps({"cells": cells}))
    page = gallery_page(tmp_path, tmp_path / "thumbnails")
    tutorials, _, studies = page.partition("\nStudies\n")
    assert re.findall(r":link: (.*)|:img-top: (.*)|:img-alt: (.*)", tutorials) == [
        ("", "thumbnails/03_duels_1.png", ""),
        ("", "", "Figure of the tutorial Duels"),
        ("/tutorials/03_duels", "", ""),
        ("", "thumbnails/03_duels_2.png", ""),
        ("", "", "Two lines cross."),
        ("/tutorials/03_duels", "", ""),
    ]
    assert Image.open(tmp_path / "thumbnails" / "03_duels_2.png").size == (480, 160)
    assert re.findall(r":link: commands.html#python-m-jaxdp-run-(.*)", studies) == list(STUDIES)
    assert {path.stem for path in OF_STUDIES.iterdir()} == set(STUDIES)


def test_the_first_page_links_each_name_of_the_table_of_algorithms():
    rows = re.findall(r"^\| [a-z ]+ \(`jaxdp\.\w+`\) \|.*", TEXTS[DOCS / "index.md"], re.MULTILINE)
    assert len(rows) == 4
    assert min(row.count("(reference/api/algorithm/") for row in rows) >= 6


def test_each_figure_of_a_study_has_a_sentence_on_what_it_shows(tmp_path):
    shown = re.findall(r":img-alt: (.*)", gallery_page(tmp_path, tmp_path / "thumbnails"))
    assert len(shown) == len(set(shown)) == len(STUDIES)
    for name, text in alternative_texts().items():
        assert len(text.split()) >= 15, name
        assert text.endswith("."), name
        assert "Figure of" not in text, name


@pytest.mark.parametrize("change", [lambda texts: texts.pop("advise"), lambda texts: texts.update(gone="A text.")])
def test_a_figure_without_a_text_and_a_text_without_a_figure_are_refused(tmp_path, monkeypatch, change):
    texts = alternative_texts()
    change(texts)
    monkeypatch.setattr(gallery, "SEEN", tmp_path / "studies.json")
    gallery.SEEN.write_text(json.dumps(texts))
    with pytest.raises(ValueError, match=r"studies\.json must have one text for each study.* in (advise|gone)$"):
        gallery_page(tmp_path, tmp_path / "thumbnails")
