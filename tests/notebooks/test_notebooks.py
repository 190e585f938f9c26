"""Every notebook runs in its small form, shows a picture and a claim, and is paired with its script.

It opens with its result, ends with references, and its code fits on a page.
"""

import ast
import copy
import importlib
import inspect
import re
import sys

import jax
import pytest

import jaxdp
from notebooks.make import SCRIPTS, execute, outputs, paired, pictures, read

sys.path.insert(0, str(SCRIPTS[0].parents[1] / "docs"))

from site_pages.references import key_of, references

BY_NUMBER = {script.stem[:2]: script for script in SCRIPTS}
CLAIM = re.compile(r"-DP|-zCDP|-GDP|none")
ADDRESS = re.compile(r"0x[0-9a-f]")
RESULT = re.compile(r"# [^\n]+\n\*\*Result:\*\* (.+?)(?:\n\n|\Z)", re.DOTALL)
REFERENCE = re.compile(r"(.+): (.+) \((\d{4})\)\. (.+?)[.?](?: \[[^\]]+\]\((\S+)\))?")
MAX_WORDS, MAX_COLUMNS = 30, 88
KNOWN = references()


def texts(notebook):
    """Returns everything that the cells show, except pictures' data."""
    found = []
    for output in outputs(notebook):
        found.append(str(output.get("text", "")))
        found += [str(value) for kind, value in output.get("data", {}).items() if not kind.startswith("image/")]
    return found


def check(notebook):
    shown = texts(notebook)
    assert pictures(notebook)
    assert all(
        bool(cell.metadata.get("alt")) == any("image/png" in output.get("data", {}) for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    assert any(CLAIM.search(text) for text in shown)
    assert not [text for text in shown if ADDRESS.search(text)]
    assert not [text for text in shown if "Warning" in text]


def test_there_are_thirteen():
    assert sorted(BY_NUMBER) == [f"{number:02}" for number in range(1, 14)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_notebook_is_that_of_its_script(script):
    """Compares; `python notebooks/make.py pair` writes it again."""
    assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == paired(script)
    assert re.search(
        r"^ *assert .*(low|<)", script.read_text(encoding="utf-8"), re.MULTILINE
    )  # a number in its interval


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_notebook_needs_no_file_beside_it(script):
    """Checks a notebook alone, as a user may have it."""
    assert "../" not in script.read_text(encoding="utf-8")


def result_faults(text):
    """Returns the faults of a notebook's first cell, which states its result."""
    match = RESULT.match(text)
    if not match:
        return ["the first cell has no result below the title"]
    sentence = " ".join(match[1].split())
    words = [word for word in sentence.split() if re.search(r"\w", word)]
    return [
        *(["the result has no number"] if not re.search(r"\d", sentence) else []),
        *(["the result is not one sentence"] if len(re.findall(r"[.!?](?:\s|$)", sentence)) != 1 else []),
        *([f"the result has {len(words)} words"] if len(words) > MAX_WORDS else []),
    ]


def reference_faults(item):
    """Returns the differences between a reference and its entry in refs.bib."""
    match = REFERENCE.fullmatch(item)
    if not match:
        return [f"not a reference: {item}"]
    _, author, year, title, link = match.groups()
    entry = KNOWN.get(key_of(author, year))
    if entry is None:
        return [f"not in refs.bib: {author} ({year})"]
    links = [
        *([f"https://doi.org/{entry.doi}"] if entry.doi else []),
        *([f"https://arxiv.org/abs/{entry.eprint}"] if entry.eprint else []),
        *([entry.url] if entry.url else []),
    ]
    named = title.lower() == entry.title.rstrip("?").lower() if entry.title else title.lower() in entry.note.lower()
    return [
        *([f"another title: {title}"] if not named else []),
        *([f"another link: {link}"] if link not in (links or [None]) else []),
    ]


def faults(notebook):
    """Returns the faults of a notebook's form: of its result, its references, and the width of its code."""
    first, last = notebook.cells[0], notebook.cells[-1]
    found = result_faults(first.source)
    heading, *lines = last.source.split("\n")
    if last.cell_type != "markdown" or heading != "## References":
        found.append("the last cell has no references")
    else:
        items = re.sub(r"\n +", " ", "\n".join(lines)).split("\n")
        found += [fault for item in items for fault in reference_faults(item.removeprefix("* "))]
    if not any("**What not to conclude:**" in cell.source for cell in notebook.cells[:-1]):
        found.append("nothing says what not to conclude")
    code = [line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.split("\n")]
    return found + [f"a line of {len(line)} columns: {line}" for line in code if len(line) > MAX_COLUMNS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_opens_with_its_result_and_ends_with_references(script):
    assert faults(read(script)) == []


@pytest.mark.parametrize(
    ("cell", "old", "new", "fault"),
    [
        (0, "**Result:** ", "", "the first cell has no result"),
        (0, "**Result:** ", "**Result:** It is so. ", "not one sentence"),
        (0, "**Result:** ", "**Result:** " + 20 * "very ", "words"),
        (-1, "## References", "## Papers", "the last cell has no references"),
        (-1, "(2024)", "(2023)", "not in refs.bib: Saha & Asi (2023)"),
        (-1, "DP-Dueling: Learning", "Learning", "another title"),
        (-1, "DP-Dueling", "Dueling", "another title"),
        (-1, "2403.15045)", "2403.15046)", "another link"),
        (-1, " [arXiv:2403.15045](https://arxiv.org/abs/2403.15045)", "", "another link"),
        (-2, "What not", "What", "nothing says what not to conclude"),
        (2, "import time", "import time" + 80 * " " + "# late", "a line of 97 columns"),
    ],
)
def test_a_planted_fault_of_form_is_seen(cell, old, new, fault):
    notebook = copy.deepcopy(read(BY_NUMBER["03"]))
    changed = notebook.cells[cell]
    assert old in changed.source
    changed.source = changed.source.replace(old, new, 1)
    (message,) = faults(notebook)
    assert fault in message


@pytest.mark.parametrize("number", ["04", "12"])
def test_its_ballots_are_those_of_the_example(number):
    text = BY_NUMBER[number].read_text(encoding="utf-8")
    (cell,) = re.findall(r"^lunches = .*?^ballots = [^\n]*", text, re.DOTALL | re.MULTILINE)
    names = {"jaxdp": jaxdp}
    exec(cell, names)
    example = BY_NUMBER[number].parents[1] / "docs" / "examples" / "lunch.soi"
    assert names["ballots"] == jaxdp.preferences.read_ballots(example)


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="notebooks are executed in JAX's usual precision")
@pytest.mark.parametrize(
    "script",
    SCRIPTS,
    ids=lambda script: script.stem,
)
def test_its_small_form_runs(script):
    check(execute(read(script, small=True)))


def unknown(text):
    """Returns names of the library in a script that do not exist: imports, and attributes of modules."""
    modules, missing = {}, []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.split(".")[0] == "jaxdp":
                    imported = importlib.import_module(one.name)
                    modules[one.asname or "jaxdp"] = imported if one.asname else jaxdp
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxdp":
            source = importlib.import_module(node.module or "jaxdp")
            for one in node.names:
                if not hasattr(source, one.name):
                    missing.append(f"{node.module}.{one.name}")
                elif inspect.ismodule(found := getattr(source, one.name)):
                    modules[one.asname or one.name] = found
    for node in ast.walk(ast.parse(text)):
        names, inner = [], node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        found = modules.get(inner.id) if isinstance(inner, ast.Name) else None
        while names and inspect.ismodule(found):
            if not hasattr(found, name := names.pop()):
                missing.append(f"{found.__name__}.{name}")
            found = getattr(found, name, None)
    return sorted(set(missing))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_library_has_all_names_of_a_notebook(script):
    assert not unknown(script.read_text(encoding="utf-8"))


def test_names_that_are_gone_are_seen():
    text = "import jaxdp\nfrom jaxdp import bandits, no_such\nbandits.ucb(num_arms=2)\nbandits.udb()\njaxdp.stats.gone"
    assert unknown(text) == ["jaxdp.bandits.udb", "jaxdp.no_such", "jaxdp.stats.gone"]


def test_a_learner_of_ones_own_takes_the_place_of_the_first_notebooks():
    """Runs the learner that notebook 07 writes in notebook 01."""
    first, seventh = (read(BY_NUMBER[number], small=True) for number in ("01", "07"))
    code = [cell for cell in seventh.cells if cell.cell_type == "code"]
    end = next(place for place, cell in enumerate(code) if "def successive_halving" in cell.source)
    old = "learner = jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=2_000)"
    place = next(cell for cell in first.cells if old in cell.source)
    own = "learner = successive_halving(num_arms=4, phase_rounds=1_000)"
    place.source = "\n".join([*(cell.source for cell in code[: end + 1]), place.source.replace(old, own)])
    check(execute(first))
    assert any("successive_halving" in text for text in texts(first))
