"""Pages show measured rounds of learners that stop by themselves, from the committed numbers."""

import itertools
import json
import math
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from site_pages import pictures, stopping  # noqa: E402

from jaxdp.registry import LEARNERS  # noqa: E402

PAGES = {
    "noisy_argmax": ["noisy_argmax"],
    "pairwise_elimination": ["pairwise_elimination"],
    "pairwise_elimination_central": ["pairwise_elimination_central"],
    "lil_ucb": ["lil_ucb", "lil_ucb_gaussian"],
    "successive_elimination": ["successive_elimination", "successive_elimination_bounded"],
}
STOPPING = [name for name in stopping.ENTRIES if name != stopping.FIXED]
KEYS = [f"{epsilon:g}" for epsilon in stopping.EPSILONS]


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """Returns a function that replaces the committed numbers by a copy that another function changed."""

    def replace(change):
        numbers = stopping.records()
        change(numbers)
        (tmp_path / "stopping.json").write_text(json.dumps(numbers), encoding="utf-8")
        monkeypatch.setattr(stopping, "PATH", tmp_path / "stopping.json")

    return replace


def test_committed_numbers_are_of_the_current_programs_and_settings():
    assert stopping.outdated_entries() == []
    assert list(stopping.records()) == list(stopping.ENTRIES)


def test_an_altered_hash_other_settings_and_missing_numbers_are_reported(edit):
    def change(numbers):
        numbers["lil_ucb"]["code"] = "0" * 16
        numbers["noisy_argmax"]["settings"]["seeds"] += 1
        del numbers["pairwise_elimination"]
        del numbers["successive_elimination"]["cells"]["1"]

    edit(change)
    assert stopping.outdated_entries() == ["noisy_argmax", "pairwise_elimination", "lil_ucb", "successive_elimination"]


@pytest.mark.parametrize("page", PAGES)
def test_section_shows_every_committed_number(page):
    lines = stopping.section(PAGES[page])
    text = "\n".join(lines)
    assert lines[0] == ("Measured errors" if page == stopping.FIXED else "Measured rounds")
    assert f".. image:: ../measured/{page}.svg" in lines
    cells_of_text = [line.strip("* -").replace("\u00a0", " ") for line in lines if line[3:].lstrip("* ")[:2] == "- "]
    expected = []
    for name in PAGES[page]:
        record = stopping.records()[name]
        assert f"``{name}``: {record['settings']['seeds']:,} seeds" in text
        for key in KEYS:
            cell = record["cells"][key]
            half = (cell["high"] - cell["low"]) / 2
            budget = "∞" if key == "inf" else key
            if page == stopping.FIXED:
                share = f"{cell['mean']:.4f} ({cell['low']:.4f} to {cell['high']:.4f})"
                expected += [budget, share, f"{cell['wrong']:,}"]
                continue
            digits = max(0, 1 - math.floor(math.log10(half))) if half else 0
            rounds = f"{cell['mean']:,.{digits}f}"
            if half or not cell["cut_off"]:  # without ± if every run was cut off
                rounds += f" ± {half:,.{digits}f}"
            rounds = f"≥ {rounds}" if cell["cut_off"] else rounds
            expected += [budget, rounds, f"{cell['wrong']:,}", f"{cell['cut_off']:,}"]
    heads = ("ε", "rounds", "share of wrong answers", "wrong answers of ", "not stopped of ")
    assert [cell for cell in cells_of_text if not cell.startswith(heads)] == expected


def test_a_learner_without_numbers_has_no_section_and_no_picture(edit):
    edit(lambda numbers: numbers.clear())
    assert stopping.section(["lil_ucb"]) == []
    with pytest.raises(ValueError, match="entries must have numbers"):
        stopping.draw("lil_ucb", ["lil_ucb"])
    assert stopping.outdated_entries() == list(stopping.ENTRIES)


def test_runs_that_were_cut_off_are_marked_in_the_table_the_words_and_the_picture(edit):
    def change(numbers):
        for name in ("pairwise_elimination", "successive_elimination"):
            for cell in numbers[name]["cells"].values():
                cell["cut_off"] = 0
        numbers["pairwise_elimination"]["cells"]["0.3"]["cut_off"] = 3

    edit(change)
    assert "\n".join(stopping.section(["pairwise_elimination"])).count("- ≥") == 1
    assert "The sign ≥ marks" in stopping.in_words(stopping._records_of(["pairwise_elimination"]))
    (ax,) = stopping.draw("pairwise_elimination", ["pairwise_elimination"]).axes
    assert [text.get_text() for text in ax.texts] == ["≥"]
    assert "≥" not in "\n".join(stopping.section(["successive_elimination"]))


@pytest.mark.parametrize("page", ["noisy_argmax", "lil_ucb"])
def test_picture_has_a_line_of_the_committed_means_for_each_learner(page):
    figure = stopping.draw(page, PAGES[page])
    (ax,) = figure.axes
    means = [[stopping.records()[name]["cells"][key]["mean"] for key in KEYS] for name in PAGES[page]]
    assert [list(container[0].get_ydata()) for container in ax.containers] == means
    assert pictures.svg(figure) == pictures.svg(stopping.draw(page, PAGES[page]))


@pytest.mark.parametrize("name", STOPPING)
def test_learners_stop_earlier_at_larger_epsilons(name):
    cells = list(stopping.records()[name]["cells"].values())
    means = [cell["mean"] for cell in cells]
    assert means[0] > 3 * means[-1]
    for earlier, later in itertools.pairwise(cells):
        assert later["low"] <= earlier["high"]  # equal, up to chance, where noise is negligible
    assert cells[3]["high"] < cells[1]["low"]  # epsilon 3 and 0.3


@pytest.mark.parametrize("name", STOPPING)
def test_wrong_answers_are_as_rare_as_claimed(name):
    alpha = stopping.FAILURE_PROB
    for cell in stopping.records()[name]["cells"].values():
        assert cell["wrong"] / stopping.SEEDS <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / stopping.SEEDS)
        assert cell["wrong"] + cell["cut_off"] <= stopping.SEEDS
        assert 0 < cell["low"] <= cell["mean"] <= cell["high"]


def test_errors_of_noisy_argmax_are_those_of_binomial_totals_with_exponential_noise():
    draws, count = np.random.default_rng(0), 200_000
    shape = (count, len(stopping.MEANS))
    for key, cell in stopping.records()[stopping.FIXED]["cells"].items():
        totals = draws.binomial(stopping.NUM_ROUNDS // shape[1], stopping.MEANS, shape)
        noisy = totals + draws.exponential(1 / float(key), shape) + draws.uniform(0, 1e-6, shape)  # breaks ties
        share = np.mean(noisy.argmax(axis=1) != 0)
        assert abs(cell["mean"] - share) <= 4 * math.sqrt(share * (1 - share) / stopping.FIXED_SEEDS)
        assert cell["mean"] == cell["wrong"] / stopping.FIXED_SEEDS
        assert cell["low"] < cell["mean"] < cell["high"]


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="committed results have 32 bits")
def test_a_committed_cell_is_replayed():
    name = "pairwise_elimination"
    assert stopping.measure(name, [10.0]) == {"10": stopping.records()[name]["cells"]["10"]}


def test_every_learner_here_is_registered():
    assert {*stopping.ENTRIES} <= {*LEARNERS}
