"""Writes the generated pages of the reference, for the site's build or as `python docs/site_pages/pages.py`.

They are the functions and types of every public module, the table of algorithms, the environments, the theorems, the
deviations from the papers, and the help of every command.
"""

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages.commands import commands_page
from site_pages.docstrings import escaped, section, to_rst
from site_pages.names import KINDS, Name, described, everything

from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, claims_table

API = Path(__file__).parents[1] / "reference" / "api"
TITLES = {
    "simulation": "Runs and sweeps",
    "core": "The vocabulary",
    "mechanisms": "Mechanisms and channels",
    "estimation": "Reward estimation",
    "bandits": "Bandits with finitely many arms",
    "convex": "Bandits on a ball",
    "contextual": "Contextual bandits",
    "dueling": "Dueling bandits",
    "experts": "Prediction from experts",
    "preferences": "Preferences and data",
    "design": "Optimal designs",
    "random": "Random bits and samplers",
    "stats": "Statistics",
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


def heading(text: str, mark: str) -> list[str]:
    """A heading of reStructuredText."""
    return [text, mark * max(len(text), 3), ""]


def role(name: Name) -> str:
    """A link to what describes a name."""
    return f":py:obj:`{name.path.rpartition('.')[2]} <{name.path}>`"


def table(head: list[str], rows: list[list[str]], widths: str) -> list[str]:
    """A table whose cells are reStructuredText of one line. One of many columns scrolls on a narrow screen."""
    kind = "wide many" if len(head) > 3 else "wide"
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", f"   :class: {kind}", ""]
    for row in [head, *rows]:
        lines += [f"   {'* -' if number == 0 else '  -'} {cell}" for number, cell in enumerate(row)]
    return [*lines, ""]


def directive(name: Name) -> list[str]:
    """What makes autodoc describe a name."""
    if inspect.isclass(name.value):
        return [f".. autoclass:: {name.path}", "   :members:", ""]
    if inspect.isfunction(name.value):
        return [f".. autofunction:: {name.path}", ""]
    return [f".. py:data:: {name.path.rpartition('.')[2]}", "", f"   {escaped(name.summary)}", ""]


def module_page(page: str, modules: dict[str, list[Name]]) -> str:
    """The page of one entry of `PAGES`."""
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
            rows = [[role(name), escaped(name.summary)] for name in group]
            lines += table(["name", "what it is"], rows, "30 70")
            for name in group:
                lines += directive(name)
    return "\n".join(lines) + "\n"


def algorithms_page() -> str:
    """The registry's table of claims, each algorithm with a link to its description."""
    paths = {id(inspect.unwrap(name.value)): name for name in everything()}
    by_name = {name.path.rpartition(".")[2]: name for name in everything() if name.kind in ("Learners", "Estimators")}
    entries = {**LEARNERS, **ESTIMATORS}
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_table().splitlines()]
    cells = []
    for name, *rest in rows:
        factory = inspect.unwrap(entries[name.strip("`")].factory)
        known = paths.get(id(factory)) or by_name.get(name.strip("`"))
        link = f":py:obj:`{name.strip('`')} <{known.path}>`" if known else f"``{name.strip('`')}``"
        cells.append([link, *(escaped(cell) for cell in rest)])
    mechanisms = [[f"``{name}``", escaped(entry.summary)] for name, entry in MECHANISMS.items()]
    return "\n".join(
        [
            *heading("Algorithms and their claims", "="),
            "Every registered learner and estimator, by its paper and by what it claims.",
            "``python -m jaxdp list --claims`` prints this table,",
            "the ``Privacy`` section of a docstring says why the claim holds, and",
            "``python -m jaxdp audit`` attacks it. A claim is proved where its proof is in the paper or in the",
            "docstring.",
            "",
            *table(head, cells, "27 29 10 15 10 9"),
            *heading("Mechanisms", "-"),
            "What the registry has beside them, each with a claim of its own that the same command attacks:",
            "",
            *table(["mechanism", "what it is"], mechanisms, "30 70"),
        ]
    )


def environments_page() -> str:
    """Every environment and every problem of every family."""
    lines = [
        *heading("Environments and problems", "="),
        "What learners play, and what estimators estimate. A learner plays any environment whose actions and feedback",
        "have its shapes; a simulator checks that before it compiles.",
        "",
    ]
    pages = described()
    for page, modules in pages.items():
        found = [each for names in modules.values() for each in names if each.kind in ("Environments", "Problems")]
        if found:
            lines += heading(TITLES[page], "-")
            lines += table(["name", "what it is"], [[role(each), escaped(each.summary)] for each in found], "30 70")
    return "\n".join(lines)


def theorems_page() -> str:
    """The functions of `jaxdp.theory`, by paper and by the number that their `Source` names."""
    lines = [
        *heading("Theorems by number", "="),
        "Each bound of the papers that is a function here, under its number in the paper. Constants are as printed;",
        "``corrected=True`` applies the corrections that the docstring names, and an order bound has an argument",
        "``scale`` for the constant that the paper does not specify.",
        "",
    ]
    for path, names in described()["theory"].items():
        module = importlib.import_module(path)
        rows = []
        for name in names:
            source = " ".join(section(name.value, "Source").split())
            found = NUMBER.search(source)
            rows.append([escaped(found.group() if found else source), role(name), escaped(name.summary)])
        if rows:
            rows.sort(key=lambda row: [int(part) for part in re.findall(r"\d+", row[0])] or [10**6])
            lines += heading((module.__doc__ or "").partition("\n")[0].rstrip(".").replace("`", "``"), "-")
            lines += table(["number", "function", "what it bounds"], rows, "18 30 52")
    return "\n".join(lines)


def deviations_page() -> str:
    """The `Deviations` section of everything that has one with content."""
    lines = [
        *heading("Deviations from the papers", "="),
        "Where an algorithm here is not what its paper prints, its docstring says so and gives the reason, under",
        "``Deviations``. This page collects those sections. What is not listed follows its source.",
        "",
    ]
    for page, modules in described().items():
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
    """Writes every generated page, and leaves a page alone whose text is the same.

    Returns:
        The text of each page by its name.
    """
    pages = {page: module_page(page, modules) for page, modules in described().items()}
    pages |= {
        "algorithms": algorithms_page(),
        "environments": environments_page(),
        "theorems": theorems_page(),
        "deviations": deviations_page(),
        "commands": commands_page(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return pages


def tidied(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook whose bars of progress show their last state alone, as a terminal would."""
    for cell in notebook["cells"]:
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
    """Puts the executed notebooks among the tutorials.

    Args:
        executed: where `notebooks/make.py run` wrote them.
        folder: of the tutorials.

    Returns:
        Their names, in order.
    """
    names = []
    for path in sorted(executed.glob("[0-9][0-9]_*.ipynb")):
        text, target = json.dumps(tidied(json.loads(path.read_text(encoding="utf-8")))), folder / path.name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
        names.append(path.stem)
    return names


if __name__ == "__main__":
    print(*write(), sep="\n")
