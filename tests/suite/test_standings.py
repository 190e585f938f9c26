"""Standings: tables, formats, the figure, and folders of results that are refused."""

import collections
import copy
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from jaxdp.comparisons import tables
from jaxdp.comparisons.tables import Cell
from jaxdp.suite import INSTANCES, _standings, v1


def records(played=("arms.easy", "arms.hard"), **scores):
    """Returns results with these values of every seed, as a multiple of uniform play, in some instances."""
    made = {}
    for name, (trust, values) in scores.items():
        claim = {"claim": "", "kind": "pure", "trust_model": trust, "privacy_unit": "one reward"}
        instances = {
            instance: {
                "values": {
                    e: [v * INSTANCES[instance].uniform(True) for v in values] for e in ("0.1", "1", "10", "inf")
                },
                "claims": {"1": claim},
            }
            for instance in played
        }
        made[name] = {
            "learner": name,
            "unit": "round",
            "tuned": {},
            "protocol": "quick",
            "proof": "",
            "instances": instances,
            "attack": {},
            "suite_hash": v1.suite_hash(),
        }
    return made


def test_standings_rank_within_a_trust_model_only():
    noise = np.linspace(-0.01, 0.01, 10)
    made = records(good=("local", 0.2 + noise), bad=("local", 0.1 + noise), ucb_central=("central", 0.1 + noise))
    made["good"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 0.93, "claimed": 1.0, "refuted": False}}
    made["bad"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 3.0, "claimed": 1.0, "refuted": True}}
    made["bad"]["proof"] = "https://example.org"
    text = _standings.standings(made)
    assert text.count("## arms:") == 2
    local = text[text.index("local model") :]
    assert "not refuted: epsilon >= 0.93 of 1 | none |" in local
    assert "refuted: epsilon >= 3 of 1 | https://example.org |" in local
    assert "not attacked yet | proved |" in text[: text.index("local model")]
    skipped = copy.deepcopy(made["ucb_central"])
    skipped["instances"]["arms.easy"] = {"skipped": "no"}
    assert _standings._privacy(skipped, "arms") == "not attacked", "no command will attack it"
    rows = collections.defaultdict(str)
    for line in local.splitlines():
        if "±" in line:
            rows[line.split(" | ")[0].strip("| ")] += line
    assert rows["good"].count("**") == 16
    assert "**" not in rows["bad (refuted)"], "a refuted claim has the least regret and no mark"
    made["bad"]["attack"]["arms.easy"]["refuted"] = False
    text = _standings.standings(made)
    assert sum(line.startswith("| bad | local | **") for line in text.splitlines()) == 2
    assert "private" not in text.replace("privacy", "")


def test_every_format_names_the_table_and_the_result_of_the_attack():
    noise = np.linspace(-0.01, 0.01, 10)
    made = records(good=("local", 0.2 + noise), _bad=("local", 0.1 + noise), one=("central", 0.1 + noise))
    made["_bad"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 3.0, "claimed": 1.0, "refuted": True}}
    for format in ("text", "latex", "markdown"):
        text = _standings.standings(made, format)
        assert text.count("arms: local model, one reward, pure claims") >= 1, format
        assert "bad (refuted)" in text.replace("\\", "")
        assert "refuted: epsilon >= 3 of 1" in text
    rows = list(csv.DictReader(io.StringIO(_standings.standings(made, "csv"))))
    assert len(rows) == 3 * 2 * 4
    bad = [row for row in rows if row["learner"] == "_bad"]
    assert {(row["family"], row["trust_model"], row["kind"], row["not_worse"]) for row in bad} == {
        ("arms", "local", "pure", "0")
    }
    assert {row["privacy"] for row in bad} == {"refuted: epsilon >= 3 of 1"}
    legends = [ax.get_legend() for ax in _standings.draw_standings(made).axes]
    legends = [[text.get_text() for text in legend.get_texts()] for legend in legends if legend]
    assert legends == [["one"], [" _bad (refuted)", "good"]]


def test_captions_name_the_unit_of_scores():
    play = records(one=("local", [0.5] * 10))
    assert "Score: regret divided by the regret of uniform play; mean over 10 seeds" in _standings.standings(play)
    rewards = [name for name in INSTANCES if name.startswith("rewards.")][:1]
    estimate = records(rewards, one=("local", [0.5] * 10))
    assert "Score: error divided by the error of the estimate 0; mean" in _standings.standings(estimate)


def test_standings_have_a_table_for_each_unit():
    made = records(one=("local", [0.5] * 10))
    person = copy.deepcopy(made["one"]) | {"unit": "person"}
    for played in person["instances"].values():
        played["claims"]["1"]["privacy_unit"] = "one person"
    assert _standings._label(person) == "one (person)"
    text = _standings.standings({**made, _standings._label(person): person})
    rounds, people = text.index("one reward, pure claims"), text.index("one person of 20 visits, pure claims")
    assert "| one | 2 of 2 |" in text[rounds:]
    assert "| one (person) | 2 of 2 |" in text[people:rounds]
    assert "Claims are for one person of 20 visits." in text[people:rounds]
    figure = _standings.draw_standings({**made, _standings._label(person): person})
    assert [ax.get_title() for ax in figure.axes] == [
        "arms, local, pure,\none person of 20 visits",
        "arms, local, pure,\none reward",
    ]


def test_a_claim_for_a_round_that_names_a_person_is_in_no_table_of_a_person():
    made = records(person=("local", [0.5] * 10), round=("local", [0.1] * 10))
    made["person"]["unit"] = "person"
    for name, text in (("person", "one person"), ("round", f"one person of {v1.VISITS} visits")):
        for played in made[name]["instances"].values():
            played["claims"]["1"] = played["claims"]["1"] | {"privacy_unit": text}
    tables = {group[2]: scores.learner.values.tolist() for group, scores in _standings.score_tables(made).items()}
    assert tables == {
        "one person of 20 visits": ["person"],
        "one person of 20 visits, played per round": ["round"],
    }


def test_the_figure_has_a_panel_for_each_table_and_leaves_out_incomplete_rows():
    made = records(good=("local", [0.1] * 10), half=("local", [0.9] * 10), other=("central", [0.01] * 10))
    del made["half"]["instances"]["arms.hard"]
    figure = _standings.draw_standings(made)
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in panels] == ["arms, central, pure,\none reward", "arms, local, pure,\none reward"]
    heights = [{round(float(y), 6) for line in ax.lines for y in np.ravel(line.get_ydata())} - {0.0} for ax in panels]
    assert heights == [{-2.0}, {-1.0}]
    assert _standings.left_out(made) == ["half (1 of 2 instances of arms)"]
    made["good"]["instances"]["arms.hard"]["values"]["1"][0] = float("nan")
    assert _standings.left_out(made) == ["good (1 of 2 instances of arms)", "half (1 of 2 instances of arms)"]
    single = {"half": made["half"]}
    assert _standings.left_out(single) == ["half (1 of 1 instances of arms)"]
    del made["good"], made["other"]
    with pytest.raises(ValueError, match="a learner that played all instances"):
        _standings.draw_standings(made)


def test_a_panel_of_learners_without_a_claim_says_so():
    made = records(one=("local", [0.5] * 10))
    for played in made["one"]["instances"].values():
        played["claims"]["1"]["kind"] = "none"
    assert _standings.draw_standings(made).axes[0].get_title() == "arms, local, no claim,\none reward"


def test_geometric_means_show_what_one_instance_does():
    scores = xr.DataArray([[0.1], [0.4], [0.4]], {"instance": list("abc"), "epsilon": [1.0]}, ("instance", "epsilon"))
    assert _standings.geometric_means(scores, 0.01) == ["0.252 (0.2 to 0.4)"]
    negative = xr.DataArray([[-1.0], [np.nan]], {"instance": list("ab"), "epsilon": [1.0]}, ("instance", "epsilon"))
    assert _standings.geometric_means(negative, 0.01) == ["0.01 (0.01 to 0.01)"]


def test_folders_that_mix_results_are_refused(tmp_path):
    with pytest.raises(ValueError, match="which has none"):
        _standings.read_results(tmp_path)
    made = records(one=("local", [0.5] * 10), two=("local", [0.5] * 10))
    made["two"]["protocol"] = "full"
    for name, record in made.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="standings must have one protocol, got quick and"):
        _standings.read_results(tmp_path)
    old = copy.deepcopy(made["one"]) | {"suite_hash": "0"}
    (tmp_path / "two.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match="of this version of the suite"):
        _standings.read_results(tmp_path)


@pytest.mark.parametrize(("instance", "epsilon"), [("arms.easy", "inf"), ("arms.hard", "1")])
def test_results_with_several_numbers_of_seeds_are_refused(instance, epsilon, tmp_path):
    (made,) = records(one=("local", [0.5] * 10)).values()
    made["instances"][instance]["values"][epsilon].pop()
    (tmp_path / "one.json").write_text(json.dumps(made))
    with pytest.raises(ValueError, match=r"must have one number of seeds, got 10 and, in .*one.json for arms\..*, 9"):
        _standings.read_results(tmp_path)


@pytest.mark.parametrize("folder", ["full", "quick"])
def test_committed_results_are_results_of_this_suite_with_or_without_late_instances(folder):
    results = _standings.read_results(Path(__file__).parents[2] / "benchmarks" / "suite" / folder)
    assert {record["unit"] for record in results.values()} <= {"round", "person"}
    assert any("arms.easy" in record["instances"] for record in results.values())
    without = {name: copy.deepcopy(record) for name, record in results.items() if "arms.easy" in record["instances"]}
    for record in without.values():
        record["instances"].pop("arms.late", None)
    tables = _standings.score_tables(without)
    assert not any("arms.late" in table["instance"] for table in tables.values())
    assert any("arms.easy" in table["instance"] for table in tables.values())


def test_results_with_another_claim_are_in_another_table():
    made = records(one=("local", [0.5] * 10), two=("local", [0.4] * 10))
    made["two"]["instances"]["arms.hard"]["claims"] = {
        "1": made["two"]["instances"]["arms.hard"]["claims"]["1"] | {"kind": "approximate"}
    }
    text = _standings.standings(made)
    pure, approximate = text[text.index("pure claims") :], text[: text.index("pure claims")]
    assert "| two | 1 of 2 |" in pure
    assert "| two | 1 of 1 |" in approximate
    assert "| one |" not in approximate


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (lambda record: record.pop("protocol"), "protocol"),
        (lambda record: record["instances"].clear(), "an instance that was played"),
        (
            lambda record: record["instances"]["arms.hard"]["values"].pop("10"),
            "values of arms.hard at epsilon 10",
        ),
        (lambda record: record["instances"]["arms.easy"].pop("claims"), "a claim of arms.easy at epsilon 1"),
        (lambda record: record.update(attack=None), "an object named attack"),
        (lambda record: record.update(instances=[]), "an object named instances"),
    ],
)
def test_results_that_lack_something_are_refused_by_the_name_of_their_file(change, missing, tmp_path):
    (record,) = records(one=("local", [0.5] * 10)).values()
    change(record)
    (tmp_path / "one.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=f"complete results, got .*one.json without {missing}"):
        _standings.read_results(tmp_path)


@pytest.mark.parametrize(
    ("mean", "text", "latex"),
    [
        (np.nan, "-", "--"),
        (np.inf, "∞", r"$\infty$"),
        (-np.inf, "-∞", r"$-\infty$"),
        (2.0, "2.00 +- 0.50", r"$2.00 \pm 0.50$"),
    ],
    ids=["nan", "inf", "-inf", "finite"],
)
def test_infinite_means_are_printed_and_nan_is_a_dash(mean, text, latex):
    cell = Cell(mean, mean - 0.5, mean + 0.5, False)
    assert (cell.text(), tables._latex_cell(cell)) == (text, latex)
