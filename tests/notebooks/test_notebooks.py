"""Every notebook runs in its small form, shows a picture and a claim, and is paired with its script."""

import re

import pytest

from notebooks.make import SCRIPTS, execute, outputs, paired, pictures, read

pytestmark = pytest.mark.once

BY_NUMBER = {script.stem[:2]: script for script in SCRIPTS}
CLAIM = re.compile(r"-DP|-zCDP|-GDP|none")
ADDRESS = re.compile(r"0x[0-9a-f]")


def texts(notebook):
    """Everything that the cells show, but for pictures' data."""
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


def test_there_are_twelve():
    assert sorted(BY_NUMBER) == [f"{number:02}" for number in range(1, 13)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_notebook_is_that_of_its_script(script):
    """`python notebooks/make.py pair` writes it anew."""
    assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == paired(script)
    assert re.search(
        r"^ *assert .*(low|<)", script.read_text(encoding="utf-8"), re.MULTILINE
    )  # a number in its interval


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_its_small_form_runs(script):
    check(execute(read(script, small=True)))


@pytest.mark.slow
def test_a_learner_of_ones_own_takes_the_place_of_the_first_notebooks():
    """The learner that notebook 07 writes, in notebook 01."""
    first, seventh = (read(BY_NUMBER[number], small=True) for number in ("01", "07"))
    code = [cell for cell in seventh.cells if cell.cell_type == "code"]
    end = next(place for place, cell in enumerate(code) if "def successive_halving" in cell.source)
    old = "learner = jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=2_000)"
    place = next(cell for cell in first.cells if old in cell.source)
    own = "learner = successive_halving(num_arms=4, phase_rounds=1_000)"
    place.source = "\n".join([*(cell.source for cell in code[: end + 1]), place.source.replace(old, own)])
    check(execute(first))
    assert any("successive_halving" in text for text in texts(first))
