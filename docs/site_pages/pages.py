"""Writes the generated pages of the reference: `python docs/site_pages/pages.py`, before Sphinx builds the site.

These pages list the functions and types of every public module, the algorithms, the environments, the theorems, the
deviations from the papers, the references, the literature, the standings of the benchmark, and the help of every
command. The build itself writes the gallery, because it shows figures of executed notebooks.
"""

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages.algorithm_pages import algorithm_pages, algorithms, index_page
from site_pages.commands import commands_page
from site_pages.docstrings import escape, section, to_rst
from site_pages.gallery import gallery_page
from site_pages.literature import literature_page
from site_pages.measured import standings_page, write_pictures
from site_pages.names import KINDS, Name, names_by_page
from site_pages.pictures import write_changed
from site_pages.references import references_page
from site_pages.rst import heading, table

API = Path(__file__).parents[1] / "reference" / "api"
EXECUTED = Path(__file__).parents[2] / "results" / "notebooks"  # what `notebooks/make.py run` writes
TITLES = {
    "simulation": "Runs and sweeps",
    "core": "The vocabulary",
    "mechanisms": "Mechanisms and local randomizers",
    "estimation": "Reward estimation",
    "bandits": "Bandits with finitely many arms",
    "convex": "Bandits on a ball or a box",
    "contextual": "Contextual bandits",
    "dueling": "Dueling bandits",
    "experts": "Prediction from experts",
    "preferences": "Preferences and data",
    "design": "Optimal designs",
    "random": "Random bits and samplers",
    "stats": "Statistics",
    "abtests": "Tests of two arms",
    "comparisons": "Comparisons",
    "suite": "The benchmark",
    "plotting": "Figures",
    "audit": "Audits",
    "registry": "The registry",
    "studies": "Studies",
    "testing": "Checks of your own algorithms",
    "theory": "Theorems as functions",
}
ORDER = [*KINDS.values(), "Functions", "Types", "Data"]
NUMBER = re.compile(
    r"\b(?:Theorems?|Thms?|Table|Lemmas?|Corollary|Corollaries|Proposition|Remark|Prop\.|[Ss]ection|Algorithm|eq\.)"
    r"\s*\(?[A-Z]?\.?\d+(?:\.\d+)*\)?"
)


def role(name: Name) -> str:
    """Returns a link to the description of a name."""
    return f":py:obj:`{name.path.rpartition('.')[2]} <{name.path}>`"


def directive(name: Name) -> list[str]:
    """Returns the directive with which autodoc describes a name."""
    if inspect.isclass(name.value):
        return [f".. autoclass:: {name.path}", "   :members:", ""]
    if inspect.isfunction(name.value):
        return [f".. autofunction:: {name.path}", ""]
    return [f".. py:data:: {name.path.rpartition('.')[2]}", "", f"   {escape(name.summary)}", ""]


def module_page(page: str, modules: dict[str, list[Name]]) -> str:
    """Returns the page of one entry of `PAGES`."""
    lines = heading(TITLES[page], "=")
    for path, names in modules.items():
        if len(modules) > 1:
            lines += ["", *heading(f"``{path}``", "-")]
        lines += [f".. py:module:: {path}", "", *to_rst(importlib.import_module(path).__doc__ or ""), ""]
        groups = {kind: [name for name in names if name.kind == kind] for kind in ORDER}
        for kind, group in groups.items():
            if not group:
                continue
            if sum(map(bool, groups.values())) > 1:
                lines += heading(kind, "^")
            rows = [[role(name), escape(name.summary)] for name in group]
            lines += table(["name", "summary"], rows, "30 70")
            for name in group:
                lines += directive(name)
    return "\n".join(lines) + "\n"


def environments_page() -> str:
    """Returns the page with the environments and problems of every family."""
    lines = [
        *heading("Environments and problems", "="),
        "Learners play environments, and estimators solve problems. A learner can play any environment with actions",
        "and feedback of its shapes; a simulator checks the shapes before it compiles.",
        "",
    ]
    pages = names_by_page()
    for page, modules in pages.items():
        found = [each for names in modules.values() for each in names if each.kind in ("Environments", "Problems")]
        if found:
            lines += heading(TITLES[page], "-")
            lines += table(["name", "summary"], [[role(each), escape(each.summary)] for each in found], "30 70")
    return "\n".join(lines)


def theorems_page() -> str:
    """Returns the page with the functions of `jaxdp.theory`, by paper and by the number in their `Source`."""
    lines = [
        *heading("Theorems by number", "="),
        "This page lists the bounds that are functions here, by their number in the paper. Constants are as printed;",
        "``corrected=True`` applies the corrections that the docstring names. If the paper does not specify a constant",
        "factor, the argument ``scale`` is this factor.",
        "",
    ]
    for path, names in names_by_page()["theory"].items():
        module = importlib.import_module(path)
        rows = []
        for name in names:
            source = " ".join(section(name.value, "Source").split())
            found = NUMBER.search(source)
            rows.append([escape(found.group() if found else source), role(name), escape(name.summary)])
        if rows:
            rows.sort(key=lambda row: [int(part) for part in re.findall(r"\d+", row[0])] or [10**6])
            lines += heading((module.__doc__ or "").partition("\n")[0].rstrip(".").replace("`", "``"), "-")
            lines += table(["number", "function", "bound"], rows, "18 30 52")
    return "\n".join(lines)


def deviations_page() -> str:
    """Returns the page with all `Deviations` sections that are not empty."""
    lines = [
        *heading("Deviations from the papers", "="),
        "If an algorithm here differs from its paper, the ``Deviations`` section of its docstring says so, with the",
        "reason. This page collects those sections. Algorithms that are not listed follow their source.",
        "",
    ]
    for page, modules in names_by_page().items():
        found = [each for names in modules.values() for each in names if _deviates(each)]
        if found:
            lines += heading(TITLES[page], "-")
        for name in found:
            text = section(name.value, "Deviations")
            lines += [f".. rubric:: {role(name)}", "", *to_rst(text[:1].upper() + text[1:]), ""]
    return "\n".join(lines)


def _deviates(name: Name) -> bool:
    text = section(name.value, "Deviations").strip().lower().rstrip(".")
    return text not in ("", "none")


def write(folder: Path = API) -> dict[str, str]:
    """Writes every generated page except the gallery, and leaves files with unchanged text as they are.

    Returns:
        The text of each page by its name, except the standings, which are Markdown.
    """
    pages = {page: module_page(page, modules) for page, modules in names_by_page().items()}
    pages |= {
        "algorithms": index_page(),
        "environments": environments_page(),
        "theorems": theorems_page(),
        "deviations": deviations_page(),
        "commands": commands_page(),
        "references": references_page(),
        "literature": literature_page(),
        **algorithm_pages(),
    }
    found = algorithms()
    write_pictures({name: algorithm.entries for name, algorithm in found.items()}, folder)
    page_of = {entry: name for name, algorithm in found.items() for entry in algorithm.entries}
    write_changed(folder / "standings.md", standings_page(page_of))
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix().removesuffix(".rst") not in (*pages, "gallery"):
            path.unlink()
    for name, text in pages.items():
        write_changed(folder / f"{name}.rst", text)
    return pages


def tidy(notebook: dict[str, Any]) -> dict[str, Any]:
    """Returns a notebook for the site.

    It has only the last state of each progress bar, as a terminal would show it, and pictures have the alternative text
    in their cell's metadata `alt`.
    """
    for cell in notebook["cells"]:
        if alt := cell.get("metadata", {}).get("alt"):
            cell["metadata"]["mystnb"] = {"image": {"alt": alt}}
        kept: list[dict[str, Any]] = []
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream":
                text = "".join(output["text"])
                if kept and kept[-1]["output_type"] == "stream" and kept[-1]["name"] == output["name"]:
                    kept[-1]["text"] += text
                    continue
                output = {**output, "text": text}
            kept.append(output)
        for output in kept:
            if output["output_type"] == "stream":
                lines = output["text"].split("\n")
                output["text"] = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
        if "outputs" in cell:
            cell["outputs"] = kept
    return notebook


def copy_notebooks(executed: Path, folder: Path) -> list[str]:
    """Copies the executed notebooks to the tutorials.

    Args:
        executed: the folder that `notebooks/make.py run` wrote.
        folder: the folder of the tutorials.

    Returns:
        Their names, in order.
    """
    names = []
    for path in sorted(executed.glob("[0-9][0-9]_*.ipynb")):
        text, target = json.dumps(tidy(json.loads(path.read_text(encoding="utf-8")))), folder / path.name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
        names.append(path.stem)
    return names


def write_gallery(folder: Path = API) -> None:
    """Writes the page of the gallery, and its thumbnails."""
    write_changed(folder / "gallery.rst", gallery_page(EXECUTED, folder / "thumbnails"))


if __name__ == "__main__":
    print(f"{len(write())} pages of the reference")
