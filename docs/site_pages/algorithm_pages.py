"""Writes one page for each registered algorithm, a page of its source, and the index that filters them."""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from site_pages.docstrings import escape, formulas, plain, sections, to_rst
from site_pages.examples import examples, outputs
from site_pages.measured import measured_section
from site_pages.names import everything
from site_pages.references import links
from site_pages.rst import heading, table
from site_pages.speed import speed_section

from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, Entry
from jaxdp.registry.registered import claim_of, entry_modules
from jaxdp.registry.table import HOW, paper
from jaxdp.registry.titles import display_name

ROOT = Path(__file__).parents[2]
HEAD = ["algorithm", "family", "trust model", "private is", "claim", "proof", "paper"]


class Algorithm(NamedTuple):
    """A registered factory.

    Attributes:
        path: the public path of the function, such as `jaxdp.dueling.rucb`.
        function: the function whose docstring the page shows.
        entries: its entries in the registry, by name.
    """

    path: str
    function: Callable[..., Any]
    entries: dict[str, Entry]

    @property
    def name(self) -> str:
        """The function's name, which is also the name of the page."""
        return self.path.rpartition(".")[2]

    @property
    def source(self) -> Path:
        """The file that defines the function."""
        return Path(inspect.getsourcefile(inspect.unwrap(self.function)) or "")


def algorithms() -> dict[str, Algorithm]:
    """Returns every registered factory, by its name, in the order of the registry."""
    public = {id(inspect.unwrap(name.value)): name for name in everything()}
    by_name = {name.path.rpartition(".")[2]: name for name in everything()}
    found: dict[str, Algorithm] = {}
    kinds: tuple[Mapping[str, Entry], ...] = (LEARNERS, ESTIMATORS, MECHANISMS)
    for name, entry in (item for entries in kinds for item in entries.items()):
        factory: Any = entry.factory
        # an entry's own wrapper has the name of the function that it wraps
        known = public.get(id(inspect.unwrap(factory))) or by_name[factory.__name__]
        algorithm = found.setdefault(known.path.rpartition(".")[2], Algorithm(known.path, known.value, {}))
        algorithm.entries[name] = entry
    return found


@functools.cache
def uses() -> dict[str, dict[str, str]]:
    """Returns, for each algorithm, sentences on when to use it ("use") and when not ("not"): `USES` of its module."""
    return {name: sentences for module in entry_modules() for name, sentences in getattr(module, "USES", {}).items()}


def claim_cells(entry: Entry) -> list[str]:
    """Returns trust model, privacy unit, kind of claim and state of the proof."""
    claim = claim_of(entry)
    if not claim.is_private:
        return ["-", "nothing", "no claim", "-"]
    size = getattr(entry, "multiple", "")
    kind = HOW[claim.kind]
    return [claim.trust_model, claim.privacy_unit, f"{size} · {kind}" if size else kind, entry.proof]


def index_page() -> str:
    """Returns the index: one row for each entry, with filters, and links to the pages."""
    found = algorithms()
    rows = []
    for algorithm in found.values():
        for name, entry in algorithm.entries.items():
            link = f":doc:`{name} <algorithm/{algorithm.name}>`"
            cells = [entry.family, *claim_cells(entry), paper(entry.source)]
            rows.append([link, *(escape(cell) for cell in cells)])
    return "\n".join(
        [
            *heading("Algorithms and their claims", "="),
            "This page lists every registered learner, estimator and mechanism, with its claim. Each name leads to a",
            "page with the algorithm's formulas, an example and its parameters. ``python -m jaxdp list --claims``",
            "prints the claims of learners and estimators, and ``python -m jaxdp audit`` attacks them. A claim counts",
            "as proved if its proof is in the paper, on the algorithm's page or among the",
            ":doc:`proofs </proofs/index>`. A name with an ending, such as ``linear_ucb_ball``, is a variant; its page",
            "has the arguments. Claims here leave out the delta of rounding, which printed claims add. The menus",
            "filter the rows.",
            "",
            *table(HEAD, rows, "25 14 10 16 11 10 28", classes="algorithms"),
            ".. toctree::",
            "   :hidden:",
            "",
            *(f"   algorithm/{name}" for name in found),
            "",
        ]
    )


def algorithm_page(algorithm: Algorithm) -> str:
    """Returns the page of one algorithm."""
    parts = {name: "\n".join(lines) for name, lines in sections(inspect.getdoc(algorithm.function) or "")}
    first = next(iter(algorithm.entries))
    title = f"{display_name(algorithm.name)} (``{algorithm.name}``)"
    claims = [
        [_call(name, entry), *map(escape, cells), f":doc:`{proof} </proofs/{page}>`" if page else proof]
        for name, entry in algorithm.entries.items()
        for *cells, proof in [claim_cells(entry)]
        for page in [_proof_page(parts["Privacy"]) if proof == "proved" else ""]
    ]
    program = examples()[algorithm.name]
    source = parts.get("Source", "")
    lines = [
        *heading(title, "="),
        *plain(parts[""].splitlines()),
        "",
        f"Reference: :py:obj:`{algorithm.path}` · :doc:`[source] <../source/{source_name(algorithm)}>` ·",
        ":doc:`all algorithms <../algorithms>`",
        "",
        *heading("When to use it", "-"),
        escape(f"{uses()[algorithm.name]['use']} {uses()[algorithm.name]['not']}"),
        "",
        *heading("Mathematics", "-"),
        *formulas(parts["Math"].splitlines()),
        "",
        *heading("Privacy claim", "-"),
        *table(["entry", "trust model", "private is", "claim", "proof"], claims, "34 16 24 16 10"),
        *plain(parts["Privacy"].splitlines()),
        "",
        *_pure_variants(algorithm),
        f"``python -m jaxdp audit {first}`` attacks the claim.",
        "",
        *heading("Example", "-"),
        ".. code-block:: python",
        "",
        *textwrap.indent(program, "   ").splitlines(),
        "",
        ".. code-block:: text",
        "",
        *textwrap.indent(outputs()[algorithm.name], "   ").splitlines(),
        "",
        *measured_section(algorithm.name, algorithm.entries),
        *speed_section(algorithm.entries),
        *heading("Parameters", "-"),
        *_lists(parts, ("Args", "Returns", "Values", "Raises")),
        "",
        *heading("Paper", "-"),
        *plain(source.splitlines()),
        "",
        *links(source),
        *heading("Deviations", "-"),
        *(plain(parts.get("Deviations", "").splitlines()) or ["None."]),
        "",
    ]
    return "\n".join(lines)


def _proof_page(privacy: str) -> str:
    """Returns the name of the page of proofs that a section on privacy cites; empty if it cites none or several."""
    cited = set(re.findall(r"docs/proofs/(\w+)\.md", privacy))
    return cited.pop() if len(cited) == 1 else ""


def _call(name: str, entry: Entry) -> str:
    """Returns an entry's name, with the names that select its variant."""
    arguments = _selecting(entry)
    return f"``{name}``" + (f" (``{arguments}``)" if arguments else "")


def _selecting(entry: Entry) -> str:
    """Returns the names that select an entry's variant, as arguments; numbers may be those of a small audit."""
    return ", ".join(f"{name}={value!r}" for name, value in entry.variant.items() if isinstance(value, str | bool))


def _pure_variants(algorithm: Algorithm) -> list[str]:
    """Returns a line for each variant with a pure claim, if the first entry has none.

    Leaves out variants that trust others than the first entry does, or whose claim needs more than `epsilon`.
    """
    first, *others = algorithm.entries.values()
    usual = claim_of(first)
    lines = []
    for entry in others if usual.kind not in ("pure", "none") else ():
        claim, arguments = claim_of(entry), _selecting(entry).replace("'", '"')
        is_alike = claim.trust_model == usual.trust_model and set(entry.values) == {"epsilon"}
        if claim.kind == "pure" and is_alike and arguments:
            program = f"{algorithm.name}(..., {arguments}).guarantee(epsilon={entry.values['epsilon']!r})"
            lines += [f"For a pure claim: ``{program}`` is {escape(str(claim))}.", ""]
    return lines


def source_name(algorithm: Algorithm) -> str:
    """Returns the name of the page that shows the algorithm's file."""
    return ".".join(algorithm.source.relative_to(ROOT).with_suffix("").parts)


def source_page(algorithm: Algorithm) -> str:
    """Returns the page that shows the algorithm's file."""
    path = algorithm.source.relative_to(ROOT).as_posix()
    title = f"``{path}``"
    lines = [
        ":orphan:",
        "",
        *heading(title, "="),
        f".. literalinclude:: ../../../../{path}",
        "   :language: python",
    ]
    return "\n".join([*lines, ""])


def algorithm_pages() -> dict[str, str]:
    """Returns the pages of algorithms and of their sources, by their names in the folder of generated pages."""
    pages = {}
    for name, algorithm in algorithms().items():
        pages[f"algorithm/{name}"] = algorithm_page(algorithm)
        pages[f"source/{source_name(algorithm)}"] = source_page(algorithm)
    return pages


def _lists(parts: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    text = "\n\n".join(f"{name}:\n{textwrap.indent(parts[name], '    ')}" for name in names if name in parts)
    return to_rst(text)
