"""Writes the page with the literature in one table: problem, trust model, unit, bound, paper, and what differs here."""

import inspect
import re
from collections.abc import Callable

from site_pages.algorithm_pages import Algorithm, algorithms, claim_cells
from site_pages.docstrings import escape, sections
from site_pages.references import citations, key_of
from site_pages.rst import heading, table

from jaxdp.theory import contextual, dueling, linear_dueling, reward_estimation, tracking

HEAD = ["problem", "algorithm", "trust model", "private is", "bound", "papers", "first difference"]
# Theorems of `jaxdp.theory` on algorithms whose pages state no bound.
THEOREMS: dict[str, Callable[..., object]] = {
    "linear_ucb": contextual.linear_order,
    "generalized_linear": contextual.generalized_linear_order,
    "linear_ucb_joint": contextual.joint_linear_order,
    "ebs_elimination": dueling.regret_upper,
    "g_optimal_elimination": linear_dueling.corrected_regret_upper,
    "limited_updates": tracking.window_upper,
    "svt_restarts": tracking.shifting_upper,
    "debiased_rr": reward_estimation.local_semi_norm_upper,
    "sgd_rr": reward_estimation.local_l2_upper,
    "sgd_krr": reward_estimation.plackett_luce_l2_upper,
    "objective_perturbation": reward_estimation.central_l2_upper,
}
BOUND = re.compile(r"regret[^.]* (?:at most|of order)(?: \([^)]*\))?\s*$")
INLINE = re.compile(r"regret[^.$]* at most \$([^$]+)\$")


def literature_page() -> str:
    """Returns the page: a row for each algorithm that has a paper."""
    rows = [row for algorithm in algorithms().values() if (row := _row(algorithm))]
    problems = list(dict.fromkeys(row[0] for row in rows))
    return "\n".join(
        [
            *heading("The literature in one table", "="),
            "This page lists the papers behind the algorithms: the problem, whom users trust, what is private, and the",
            "bound on the regret, or on the error of an estimate, if the algorithm's page or a linked function of",
            ":doc:`jaxdp.theory <theory>` states one, or its order as :math:`O(\\cdot)`. Symbols and conditions are",
            "explained there. Trust model, unit and bound are those of the algorithm here. One paper",
            "may have the non-private algorithm, and another the private reports. The last column has the first",
            "sentence on what differs from the papers; :doc:`deviations` has all of them, with reasons.",
            "",
            *table(HEAD, sorted(rows, key=lambda row: problems.index(row[0])), "10 14 8 12 30 16 22"),
            "",
        ]
    )


def regret_bound(formulas: str) -> str:
    """Returns the LaTeX of the bound on the regret that a `Math` section states, or of its order; empty if none."""
    parts = re.split(r"^\$\$$", formulas, flags=re.MULTILINE)
    for prose, formula in zip(parts[::2], parts[1::2], strict=False):
        if found := BOUND.search(prose.rstrip()):
            bound = " ".join(formula.split())
            return rf"O\Big( {bound} \Big)" if "of order" in found[0] else bound
    inline = INLINE.search(" ".join(formulas.split()))
    return inline[1] if inline else ""


def theorem(name: str) -> str:
    """Returns the last formula of an algorithm's theorem in `THEOREMS`, with a link; empty if it has none."""
    if name not in THEOREMS:
        return ""
    function = THEOREMS[name]
    parts = {title: "\n".join(lines) for title, lines in sections(inspect.getdoc(function) or "")}
    formula = re.split(r"^\$\$$", parts["Math"], flags=re.MULTILINE)[-2]
    bound = re.split(r", \\q?quad", " ".join(formula.split()))[0]
    is_order = "up to a constant factor" in " ".join((inspect.getdoc(function) or "").split())
    bound = rf"O\Big( {bound} \Big)" if is_order else bound
    return f":math:`{bound}` (:py:obj:`{function.__name__} <{function.__module__}.{function.__name__}>`)"


def first_sentence(text: str) -> str:
    """Returns the first sentence of a section, without its bullet."""
    item = re.split(r"\n\s*\n|\n(?=[*-] )", text.strip())[0]
    words = re.sub(r"^[*-] ", "", " ".join(item.split()))
    return re.split(r"(?<=[.])(?:(?<!et al[.])|(?= +[A-Z])) +", words)[0]


def _row(algorithm: Algorithm) -> list[str]:
    """Returns the cells of an algorithm; none if it has no paper."""
    parts = {name: "\n".join(lines) for name, lines in sections(inspect.getdoc(algorithm.function) or "")}
    papers = dict.fromkeys(citations(parts.get("Source", "")))
    if not papers:
        return []
    trust, units = (
        list(dict.fromkeys(claim_cells(entry)[column] for entry in algorithm.entries.values())) for column in (0, 1)
    )
    bound = regret_bound(parts["Math"])
    return [
        escape(next(iter(algorithm.entries.values())).family),
        f":doc:`{algorithm.name} <algorithm/{algorithm.name}>`",
        escape(", ".join(trust)),
        escape(", ".join(units)),
        f":math:`{bound}`" if bound else theorem(algorithm.name) or "none stated",
        ", ".join(f":ref:`{author} ({year}) <ref-{key_of(author, year)}>`" for author, year in papers),
        escape(first_sentence(parts.get("Deviations", "")).replace("None.", "none")),
    ]
