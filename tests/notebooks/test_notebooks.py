"""Every notebook runs in its small form, shows a picture and a claim, and is paired with its script."""

import ast
import importlib
import inspect
import re

import jax
import pytest

import jaxdp
from notebooks.make import SCRIPTS, execute, outputs, paired, pictures, read

BY_NUMBER = {script.stem[:2]: script for script in SCRIPTS}
CLAIM = re.compile(r"-DP|-zCDP|-GDP|none")
ADDRESS = re.compile(r"0x[0-9a-f]")


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
