"""Every registered factory has a page with formulas, a claim, and a short program whose output is the recorded one."""

import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path

import jax
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import check_site  # noqa: E402
import site_pages.examples as examples_module  # noqa: E402
from site_pages.algorithm_pages import algorithm_page, algorithms, claim_cells, index_page, uses  # noqa: E402
from site_pages.examples import LONGEST, examples, output_of, outputs  # noqa: E402
from site_pages.literature import THEOREMS, first_sentence, literature_page, regret_bound  # noqa: E402
from site_pages.references import (  # noqa: E402
    BIBLIOGRAPHY,
    UNVERIFIED,
    bibliography,
    citations,
    cited_references,
    key_of,
    references,
    references_page,
)
from site_pages.speed import rows, speed_section  # noqa: E402

from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS  # noqa: E402

NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e-?\d+)?")


def is_close(output: str, recorded: str) -> bool:
    """Returns whether texts agree, and their numbers up to 30% or 0.15: processors round differently."""
    words, expected = (" ".join(re.sub(r"[][(),]", " ", NUMBER.sub("#", text)).split()) for text in (output, recorded))
    pairs = zip(NUMBER.findall(output), NUMBER.findall(recorded), strict=False)
    return words == expected and all(abs(float(a) - float(b)) <= max(0.3 * abs(float(b)), 0.15) for a, b in pairs)


def test_every_factory_has_a_short_program_and_its_output():
    programs = examples()
    assert set(programs) == set(algorithms()) == set(outputs())
    assert len(programs) > 60
    assert [name for name, program in programs.items() if len(program.splitlines()) > LONGEST] == []
    assert [name for name, program in programs.items() if name not in program] == []


@pytest.mark.parametrize("name", examples())
def test_a_program_prints_what_its_page_shows(name):
    with jax.enable_x64(False):  # pages show what readers see by default
        assert is_close(output_of(examples()[name]), outputs()[name])


def test_an_output_without_a_program_is_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(examples_module, "OUTPUTS", tmp_path / "outputs.json")
    monkeypatch.setattr(examples_module, "examples", lambda: {"kept": "print(1)"})
    examples_module.OUTPUTS.write_text('{"gone": "0", "kept": "1"}')
    for status, output in ((0, "gone: removed its output"), (1, "gone: no program has this name")):
        monkeypatch.setattr("sys.argv", ["examples.py", "gone"])
        assert examples_module.main() == status
        assert output in capsys.readouterr().out
        assert examples_module.outputs() == {"kept": "1"}


def test_another_output_is_seen():
    assert is_close("1-DP, local\nregret: 110", "1-DP, local\nregret: 108")
    assert not is_close("2-DP, local\nregret: 108", "1-DP, local\nregret: 108")
    assert not is_close("1-DP, central\nregret: 108", "1-DP, local\nregret: 108")


@pytest.mark.parametrize("name", algorithms())
def test_a_page_has_all_sections(name):
    assert name in uses(), f"{name} must be in USES, in its module of jaxdp/registry"
    assert name in examples(), f"{name} must have a program in docs/site_pages/examples.py"
    assert name in outputs(), f"python docs/site_pages/examples.py {name} records the output of its program"
    page = algorithm_page(algorithms()[name])
    for title in ("Mathematics", "Privacy claim", "Example", "Parameters", "Paper", "Deviations"):
        assert f"\n{title}\n{'-' * len(title)}\n" in page
    formulas = page.partition("Mathematics")[2].partition("Privacy claim")[0]
    assert ".. math::" in formulas
    paper = page.partition("\nPaper\n")[2].partition("\nDeviations\n")[0]
    papers = {key_of(*found) for found in citations(paper.partition("\nReferences: ")[0])}
    assert papers
    assert all(f"<ref-{key}>`, {references()[key].identifier}" in paper for key in papers)


def test_a_page_shows_how_to_get_a_pure_claim_without_a_curator():
    for name, arguments in {"linear_ucb": "", "generalized_linear": 'link="probit", '}.items():
        call = f'``{name}(..., {arguments}report="l2_ball").guarantee(epsilon=1.0)`` is 1-DP, local, one user'
        assert f"For a pure claim: {call}" in algorithm_page(algorithms()[name])
    for name in ("rucb", "linear_ucb_joint", "lazy_weights", "mle"):  # pure already, never pure, more values, no claim
        assert "For a pure claim" not in algorithm_page(algorithms()[name])


def test_no_page_has_the_bare_word_none_about_privacy():
    """Checks for a word that can mean no claim, no private state, or no privacy."""
    assert claim_cells(ESTIMATORS["mle"]) == ["-", "nothing", "no claim", "-"]
    for name, algorithm in algorithms().items():
        privacy = (inspect.getdoc(algorithm.function) or "").partition("\nPrivacy:\n")[2].partition("\n\n")[0]
        assert not re.search(r"(Private|Released|Claim): (none|nothing)\b", privacy), name


def test_the_index_has_every_entry_and_its_claim():
    page = index_page()
    for name, entry in {**LEARNERS, **ESTIMATORS, **MECHANISMS}.items():
        row = page.partition(f":doc:`{name} <algorithm/")[2].partition("* -")[0]
        assert all(cell in row.replace("\\", "") for cell in claim_cells(entry)), name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the finalizer (Appleby, 2011), a bijection", [("Appleby", "2011")]),
        ("a Weyl sequence (Steele, Lea & Flood, 2014)", [("Steele, Lea & Flood", "2014")]),
        ("known (Luce, 1959; Bradley and Terry, 1952)", [("Luce", "1959"), ("Bradley and Terry", "1952")]),
        ("Luce (1959), theorem 1", [("Luce", "1959")]),
        ("in round (T, 2 times) and in (2020)", []),
    ],
)
def test_references_are_found_in_parentheses(text, found):
    assert citations(text) == found


def test_the_bibliography_has_every_cited_reference_and_marks_what_is_not_verified():
    entries = references()
    assert set(entries) == set(cited_references()), "python docs/site_pages/references.py adds entries"
    assert all(key == key_of(entry.author, entry.year) for key, entry in entries.items())
    page = references_page()
    assert page.count(UNVERIFIED) == 1 + sum(not entry.is_verified for entry in entries.values())
    for key, link in {
        "lu-zhang-2019": "`arXiv:1909.02187 <https://arxiv.org/abs/1909.02187>`__",
        "dwork-roth-2014": "`doi:10.1561/0400000042 <https://doi.org/10.1561/0400000042>`__",
        "agarwal-singh-2017": "`proceedings.mlr.press <https://proceedings.mlr.press/v70/agarwal17a.html>`__",
    }.items():
        assert entries[key].identifier == link
        assert f"{link}. Cited by" in page.partition(f"_ref-{key}:")[2].partition("_ref-")[0]


@pytest.mark.parametrize(
    ("field", "form"),
    [("doi", r"10\.\d{4,}/\S+"), ("eprint", r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}"), ("url", r"https?://\S+")],
)
def test_an_identifier_has_the_form_of_its_kind_and_one_owner(field, form):
    values = [value for entry in references().values() if (value := getattr(entry, field))]
    assert values
    assert [value for value in values if not re.fullmatch(form, value)] == []
    assert len(set(values)) == len(values)


def test_a_new_reference_leaves_the_identifiers_of_the_others():
    text, known = BIBLIOGRAPHY.read_text(encoding="utf-8"), references()
    cited = {key: (entry.author, entry.year) for key, entry in known.items()}
    assert bibliography(cited, known) == text
    added = bibliography({**cited, "zz-2020": ("Zz", "2020")}, known)
    assert added == f"{text}\n@misc{{zz-2020,\n  author = {{Zz}},\n  year = {{2020}}\n}}\n"


def test_a_reader_who_is_lost_and_a_page_with_gaps_are_seen(tmp_path):
    home = '<article><a href="a.html">a</a></article><a href="b.html">in a menu</a>'
    page = '<nav>menu</nav><article><h1>Title<a href="#">¶</a></h1>rule</article>'
    texts = {"index.html": home, "a.html": page, "b.html": page}
    pages = {tmp_path / name: check_site.Page(text) for name, text in texts.items()}
    walks = {
        "right": (("a.html",), "Title", ("rule",)),
        "menu": (("b.html",), "Title", ("rule",)),
        "heading": (("a.html",), "Other", ("rule",)),
        "text": (("a.html",), "Title", ("menu",)),
    }
    assert check_site.lost_readers(tmp_path, pages, walks) == [
        "menu: index.html has no link to b.html",
        "heading: a.html has the heading 'Title', not 'Other'",
        "text: a.html lacks 'menu'",
    ]
    empty = check_site.Page('<article><section id="mathematics"></section></article>')
    drawn = check_site.Page('<article><img alt="a" src="../../../_images/laplace.svg" /></article>')
    planted = {"rucb": empty, "noisy_max": empty, "laplace": drawn}
    gaps = check_site.incomplete_algorithms(
        tmp_path, {tmp_path / f"reference/api/algorithm/{name}.html": page for name, page in planted.items()}
    )
    assert "noisy_max: no picture" in gaps
    assert "laplace: no picture" not in gaps
    assert [gap for gap in gaps if gap.startswith("rucb:")] == [
        "rucb: no displayed formula",
        "rucb: no example",
        "rucb: no picture",
        "rucb: neither reference nor proof",
    ]
    assert "ucb: no page" in gaps


def test_the_literature_has_a_row_for_each_algorithm_with_its_bound_and_its_papers():
    page = literature_page()
    assert page.count("   * - ") == 1 + sum(f":doc:`{name} <" in page for name in algorithms()) > 60
    (row,) = (row for row in page.split("   * - ") if ":doc:`exp3 <" in row)
    assert all(
        cell in row for cell in (r":math:`c \sqrt{2 T K \ln K}`", "ref-tossou-dimitrakakis-2017", "one round's reward")
    )


PAPERS = {  # names in the paper
    "debiased_rr": "theta^_RR",
    "sgd_rr": "SGD-RR",
    "sgd_krr": "SGD-KRR",
    "objective_perturbation": "estimate by objective perturbation",
}


def test_the_literature_has_the_theorems_on_algorithms_whose_pages_state_no_bound():
    rows = {row.partition(":doc:`")[2].partition(" ")[0]: row for row in literature_page().split("   * - ")}
    for name, function in THEOREMS.items():
        assert f"<{function.__module__}.{function.__name__}>" in rows[name]
        assert PAPERS.get(name, f"`{name}`") in (inspect.getdoc(function) or "")
    assert r"O\Big( \frac{\sqrt{\ln(1 / \delta) \ln(1 / \alpha)} (d T)^{3/4}}{\varepsilon} \Big)" in rows["linear_ucb"]
    assert "none stated" in rows["rucb"]


def test_a_bound_on_the_regret_is_found_by_its_sentence():
    stated = "With $x$ the regret after $T$ rounds is at most (Smith, 2012)\n\n$$\n\\sqrt{T}\n$$\n"
    assert regret_bound(stated) == r"\sqrt{T}"
    assert regret_bound(stated.replace("regret", "noise")) == ""
    assert regret_bound("The rate, with which the regret is at most $T$, is\n\n$$\ny\n$$\n") == "T"
    ordered = stated.replace("at most (Smith, 2012)", "of order")
    assert regret_bound(ordered) == r"O\Big( \sqrt{T} \Big)"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("* A is B, as Smith et al. say. C is D.", "A is B, as Smith et al. say."),
        ("A is B. eta is C.", "A is B."),
        ("As for `a`. `b` is C.", "As for `a`."),
        ("A is B, as\nSmith et al. By default C.", "A is B, as Smith et al."),
        ("- A is\n  B.\n- C is D.", "A is B."),
        ("*A is B* and C\n\n* D", "*A is B* and C"),
    ],
)
def test_a_cell_on_what_differs_has_the_first_sentence_of_the_first_item(text, sentence):
    assert first_sentence(text) == sentence


def test_rows_on_one_problem_follow_each_other():
    problems = re.findall(r"^   \* - (.*)$", literature_page(), re.MULTILINE)
    starts = [b for a, b in pairwise(problems) if a != b]
    assert len(starts) == len(set(starts)) > 5


def test_every_page_says_when_to_use_the_algorithm_and_when_not():
    assert set(uses()) == set(algorithms())
    for name, sentences in uses().items():
        text = f"{sentences['use']} {sentences['not']}"
        assert sentences["use"].startswith("Use it")
        assert len(text.split()) <= 65
        named = set(re.findall(r"`(\w+)`", text)) - {"Deviations", "Privacy", "combine", "debias_scalar", "report"}
        assert named - {"predicted_errors"} <= set(algorithms()) - {name}, name
    assert "upper bounds must hold with a proved probability" in algorithm_page(algorithms()["ucb_central"])


def test_every_row_of_the_table_of_speeds_is_on_the_page_of_one_algorithm():
    owners = {
        row: [name for name, each in algorithms().items() if row.partition(",")[0] in each.entries] for row in rows()
    }
    assert len(owners) > 20
    assert {len(names) for names in owners.values()} == {1}, owners
    for row, (name,) in owners.items():
        section = algorithm_page(algorithms()[name]).partition("\nSpeed\n")[2].partition("\nParameters\n")[0]
        assert "\n     - ".join(["   * - " + rows()[row][0], *rows()[row][1:]]) in section
    assert speed_section(["laplace"]) == []
