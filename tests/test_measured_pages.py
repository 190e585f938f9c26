"""Pages show committed results of the benchmark beside those of peers, for no, some or all results, and noise."""

import json
import math
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import check_site  # noqa: E402
from site_pages import accuracy, choices, measured, pages, pictures, results  # noqa: E402
from site_pages.algorithm_pages import algorithm_page, algorithms  # noqa: E402

from jaxdp.mechanisms import (  # noqa: E402
    above_threshold,
    debias_scalar,
    noisy_leads,
    noisy_max,
    randomize_scalar,
    randomized_response,
    shuffled_ones,
    tree_counter,
)
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS  # noqa: E402
from jaxdp.suite import v1  # noqa: E402
from jaxdp.suite._bench import _write, bench  # noqa: E402
from jaxdp.suite._programs import code_hash  # noqa: E402

UNIFORM = v1.INSTANCES["arms.easy"].uniform(quick=False)


def record(name, mean, trust="local", kind="pure", **changes):
    """Returns a learner's results on one instance: `mean` at every epsilon, half of it at epsilon infinity."""
    claim = {"claim": "", "kind": kind, "trust_model": trust, "privacy_unit": "one round's reward"}
    keys = [f"{epsilon:g}" for epsilon in v1.EPSILONS]
    values = {key: [(mean - 1) / (2 if key == "inf" else 1), (mean + 1) / (2 if key == "inf" else 1)] for key in keys}
    played = {"metric": "pseudo_regret", "horizon": 100_000, "values": values, "claims": dict.fromkeys(keys, claim)}
    return {
        "suite": "v1",
        "suite_hash": v1.suite_hash(),
        "protocol": "full",
        "learner": name,
        "code": code_hash(name),
        "unit": "round",
        "tuned": {},
        "proof": "",
        "attack": {},
        "instances": {"arms.easy": played, "arms.hard": {"skipped": "no reason"}},
        **changes,
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns a function that writes results where pages look for them, instead of the committed ones."""

    def clear():
        measured.records.cache_clear()
        measured.measurements.cache_clear()

    def write(*records):
        for each in records:
            place = tmp_path / ("quick" if each["protocol"] == "quick" else "")
            (place / f"{each['learner']}.json").write_text(json.dumps(each))
        clear()
        return tmp_path

    monkeypatch.setitem(measured.FOLDERS, "full", tmp_path)
    monkeypatch.setitem(measured.FOLDERS, "quick", tmp_path / "quick")
    (tmp_path / "quick").mkdir()
    clear()
    yield write
    clear()


def rows_of(page):
    """Returns the cells of the table rows on a page's section of measurements."""
    section = re.split(r"\n(?:Speed|Parameters)\n", page.partition("\nMeasured regret\n")[2])[0]
    return [row.strip().split("\n     - ") for row in section.split("   * - ")[2:]]


def test_without_results_every_page_says_so(folder):
    folder()
    for name, algorithm in algorithms().items():
        page = algorithm_page(algorithm)
        is_measured = any(entry in LEARNERS or entry in ESTIMATORS for entry in algorithm.entries)
        is_measured &= not any(algorithm.entries.keys() & set(module.ENTRIES) for module in measured.APART)
        assert (measured.NOT_YET in page) == is_measured, name
    assert measured.standings_page({}).count("`") == 2 * len([*LEARNERS, *ESTIMATORS])


@pytest.mark.parametrize("name", measured.NOT_PLAYED)
def test_the_benchmark_refuses_what_the_standings_call_not_played(name, tmp_path):
    with pytest.raises(ValueError, match=r"plays none|would play the same"):
        bench(name, tmp_path / "x.json", quick=True)
    assert f"``{name}`` is not played: {measured.NOT_PLAYED[name]}." in measured._not_shown(name)


def test_a_page_shows_means_beside_the_median_of_peers_and_the_least_without_privacy(folder):
    folder(
        record("ucb", 400),
        record("thompson", 100),
        record("tsallis_inf", 300),
        record("lil_ucb", 5_000),
        record("ucb_central", 60, trust="central"),  # no peer: another trust model
        record("explore_then_commit", 20, kind="none"),  # no peer: it claims nothing
    )
    page = algorithm_page(algorithms()["ucb"])
    finite = "400\u00a0±\u00a013 (300)"  # 12.7 is Student's, and 300 the median of 100, 300 and 5,000
    (row,) = rows_of(page)
    assert row == [
        "easy",
        finite,
        finite,
        finite,
        "200.0\u00a0±\u00a06.4 (150)",
        "35,000",
        "10.0: ``explore_then_commit``",
    ]
    assert "2 seeds of 100,000 rounds, 3 peers. Not played: hard" in page
    assert f"easy from {400 / UNIFORM:.3g} to {200 / UNIFORM:.3g}" in page
    (alone,) = rows_of(algorithm_page(algorithms()["ucb_central"]))
    assert alone[1] == "60\u00a0±\u00a013"
    assert "``ucb_central_tree``: not measured yet" in algorithm_page(algorithms()["ucb_central"])


def test_standings_are_one_table_for_each_trust_model_with_links(folder):
    folder(record("ucb", 400), record("thompson", 100), record("ucb_central", 60, trust="central"))
    page = measured.standings_page({"ucb": "ucb", "thompson": "a_page"})
    assert page.count("\n## arms: ") == 2
    assert "| [thompson](algorithm/a_page.rst) | 1 of 1 |" in page
    assert "`thompson`" not in page
    missing, _, otherwise = page.partition("\n## Not measured yet\n")[2].partition("\n## Measured otherwise\n")
    assert "`hedge`" in missing
    assert "`lil_ucb`" in otherwise
    assert "`lil_ucb`" not in missing


def test_pictures_are_the_same_in_every_build_and_others_are_removed(folder, tmp_path):
    folder(record("ucb", 400))
    site = tmp_path / "site"
    old = site / measured.FOLDER / "gone.svg"
    old.parent.mkdir(parents=True)
    old.write_text("")
    pages_of = {"ucb": {"ucb": LEARNERS["ucb"]}, "rucb": {"rucb": LEARNERS["rucb"]}}
    texts = []
    for _ in range(2):
        measured.write_pictures(pages_of, site)
        texts.append((site / measured.FOLDER / "ucb.svg").read_text())
    assert [path.name for path in old.parent.iterdir()] == ["ucb.svg"]
    assert texts[0] == texts[1]
    assert "fill: #ffffff" in texts[0]  # a ground of its own: readable in dark mode


def test_results_of_another_program_are_named(folder, monkeypatch, capsys):
    path = folder(record("ucb", 400), record("thompson", 100, code="0" * 16))
    assert check_site.outdated_results() == [
        f"thompson: its results in {path.name}/ are of another program; make pages-data plays it again"
    ]
    monkeypatch.setattr("sys.argv", ["measured.py"])
    assert measured.main() == 1
    monkeypatch.setattr("sys.argv", ["measured.py", "--remove"])
    assert measured.main() == 0
    assert "thompson: removed its full results per round" in capsys.readouterr().out
    assert [file.name for file in path.glob("*.json")] == ["ucb.json"]
    gone = {**record("ucb", 400), "learner": "gone"}
    assert results.outdated_learners({"gone": gone}) == ["gone"]


def test_results_per_person_are_in_standings_of_their_own_and_no_peers(folder):
    person = record("thompson", 50, unit="person")
    for claim in person["instances"]["arms.easy"]["claims"].values():
        claim["privacy_unit"] = "one person"
    path = folder(record("ucb", 400), record("thompson", 100))
    (path / "thompson.person.json").write_text(json.dumps(person))
    folder()
    page = measured.standings_page({"ucb": "ucb", "thompson": "a_page"})
    assert page.count("\n## arms: ") == 2
    of_people = page.partition("\n## arms: local model, one person of 20 visits, pure claims\n")[2]
    assert "| [thompson](algorithm/a_page.rst) (person) | 1 of 1 |" in of_people.partition("\n## ")[0]
    assert "1 peers" in algorithm_page(algorithms()["ucb"])


def test_outdated_results_per_person_are_removed_with_the_others(folder, monkeypatch):
    path = folder(record("ucb", 400), record("thompson", 100))
    (path / "thompson.person.json").write_text(json.dumps(record("thompson", 50, unit="person", code="0" * 16)))
    folder()
    monkeypatch.setattr("sys.argv", ["measured.py", "--remove"])
    assert measured.main() == 0
    assert [file.name for file in path.glob("*.json")] == ["ucb.json"]


def test_a_learner_without_full_results_shows_quick_ones_beside_quick_peers(folder):
    quick = UNIFORM / v1.INSTANCES["arms.easy"].horizon(quick=False) * v1.INSTANCES["arms.easy"].horizon(quick=True)
    folder(
        record("ucb", 400),
        record("tsallis_inf", 300, protocol="quick"),
        record("thompson", 100, protocol="quick"),
        record("ucb", 50, protocol="quick"),  # a peer; its own page shows the full results
    )
    page = algorithm_page(algorithms()["thompson"])
    (row,) = rows_of(page)
    assert row[1] == "100\u00a0±\u00a013 (175)"
    assert "arms: quick form, 2 seeds" in page
    assert "should not\nbe cited" in page
    assert f"easy from {100 / quick:.3g} to {50 / quick:.3g}" in page
    full = algorithm_page(algorithms()["ucb"])
    assert rows_of(full)[0][1] == "400\u00a0±\u00a013"
    assert "quick form" not in full
    assert "thompson" not in measured.standings_page({}).partition("\n## Not measured yet\n")[0]


def test_results_in_the_folder_of_another_protocol_are_refused(folder):
    path = folder(record("ucb", 400, protocol="quick"))
    with pytest.raises(ValueError, match="results must be full ones, got quick ones of ucb"):
        results.read_records(path / "quick", "full")


def test_a_result_has_one_line_for_each_list(tmp_path):
    written = {**record("ucb", 400), "proof": "[1,\n 2]"}
    _write(tmp_path / "ucb.json", written)
    text = (tmp_path / "ucb.json").read_text()
    assert json.loads(text) == written
    assert text.count("[399.0, 401.0]\n") + text.count("[399.0, 401.0],\n") == 3


@pytest.mark.parametrize("name", ["laplace", "gaussian", "k_norm"])
def test_the_noise_of_a_picture_is_that_of_the_mechanism(name):
    entry = MECHANISMS[name]
    made, data = entry.make(), jnp.zeros(2)
    params = made.params(**{**entry.values, "epsilon": 0.7})
    keys = jax.random.split(jax.random.key(0), 40_000)
    noise = np.asarray(jax.jit(jax.vmap(lambda key: made.release(key, params, data)))(keys))
    assert pictures.noise_of(entry, 0.7) == pytest.approx(noise.std(), rel=0.02)


def share(draw, wanted, num_draws=20_000):
    """Returns how often a mechanism's answer is `wanted`."""
    return float(np.mean(np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(3), num_draws))) == wanted))


@pytest.mark.parametrize("name", ["noisy_max_laplace", "noisy_max_gumbel", "noisy_max_exponential"])
def test_the_largest_score_is_selected_as_often_as_pictures_say(name):
    entry, scores = MECHANISMS[name], jnp.zeros(3).at[1].set(accuracy.LEAD)
    drawn = share(lambda key: noisy_max(key, scores, 0.4, noise=entry.variant["noise"]), 1)
    assert accuracy.SHOWN["noisy_max"].value(entry, 0.4) == pytest.approx(drawn, abs=0.02)
    of_half_the_noise = accuracy.SHOWN["noisy_max"].value(entry, 0.8)
    assert of_half_the_noise != pytest.approx(drawn, abs=0.02), "half of the noise must be seen"


@pytest.mark.parametrize("name", ["above_threshold", "above_threshold_optimal_split"])
def test_answers_are_wrong_as_often_as_pictures_say(name):
    entry, queries = MECHANISMS[name], jnp.full(9, -accuracy.LEAD).at[8].set(accuracy.LEAD)
    kept = share(lambda key: above_threshold(key, queries, 1.5, threshold=0.0, split=entry.variant["split"]), 8)
    assert accuracy.SHOWN["above_threshold"].value(entry, 1.5) == pytest.approx(1 - kept, abs=0.02)
    assert accuracy.SHOWN["above_threshold"].value(entry, 3.0) != pytest.approx(1 - kept, abs=0.02)


def test_the_other_accuracies_are_those_of_the_mechanisms():
    totals = jnp.zeros(5, jnp.int32).at[2].set(int(accuracy.LEAD))
    leads = share(lambda key: noisy_leads(key, totals, 0.3, l1_sensitivity=1.0)[2], 0.0)
    assert accuracy.SHOWN["noisy_leads"].value(MECHANISMS["noisy_leads"], 0.3) == pytest.approx(leads, abs=0.02)
    entry = MECHANISMS["k_ary_randomized_response"]
    true = share(lambda key: randomized_response(key, jnp.int32(1), 1.0, num_labels=4), 1)
    assert accuracy.SHOWN["randomized_response"].value(entry, 1.0) == pytest.approx(true, abs=0.02)
    entry = MECHANISMS["shuffled_randomized_response"]
    local = float(entry.make().params(**entry.values))
    keys = jax.random.split(jax.random.key(4), 20_000)
    counts = jax.vmap(lambda key: shuffled_ones(key, 30, local, batch=100))(keys)
    error = np.std(np.asarray(counts)) / math.tanh(local / 2)
    assert accuracy.SHOWN["shuffled_ones"].value(entry, 1.0) == pytest.approx(error, rel=0.03)
    bits = jax.vmap(lambda key: randomize_scalar(key, jnp.zeros(100), 1.0, bound=1.0))(keys[:2_000])
    error = np.std(np.asarray(debias_scalar(bits, 1.0, bound=1.0)).mean(-1))
    assert accuracy.SHOWN["randomize_scalar"].value(MECHANISMS["randomize_scalar"], 1.0) == pytest.approx(
        error, rel=0.08
    )


def test_an_axis_of_scores_has_few_ticks_and_no_gap():
    assert pictures.score_ticks(0.6, 1.25) == pytest.approx([0.7, 1.0])
    assert pictures.score_ticks(0.008, 1.25) == pytest.approx([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    long = pictures.score_ticks(8e-4, 2e6)
    assert long == pytest.approx([1e-3, 0.1, 10, 1e3, 1e5])


def test_noise_is_drawn_where_mechanisms_accept_epsilon():
    names = ("gaussian", "classical_gaussian")
    noise = pictures.noises({name: MECHANISMS[name] for name in (*names, "noisy_max_gumbel")})
    assert tuple(noise) == names
    assert not any(map(math.isnan, noise["gaussian"]))
    assert math.isnan(noise["classical_gaussian"][-1])
    words = pictures.noises_in_words("noise", noise)
    assert "gaussian from 17.4 at epsilon 0.1 to 0.406 at epsilon 10" in words
    assert "classical_gaussian from 37.8 at epsilon 0.1 to 5.5" in words
    page = algorithm_page(algorithms()["gaussian"])
    assert ".. image:: ../measured/gaussian.svg" in page


def test_the_last_count_has_the_noise_of_the_counter():
    entry = MECHANISMS["tree_counter"]
    counter = tree_counter(**{**entry.variant, "horizon": pictures.COUNTED})
    exact = counter.variance(counter.params(epsilon=1.0), pictures.COUNTED)
    assert pictures.noise_of(entry, 1.0) == pytest.approx(math.sqrt(exact))


def test_estimators_from_choices_show_errors_on_their_own_data(monkeypatch):
    page = algorithm_page(algorithms()["sgd_krr"])
    assert ".. image:: ../measured/sgd_krr.svg" in page
    errors = {name: np.asarray([cell[0] for cell in record["error"]]) for name, record in choices.records().items()}
    assert list(errors) == list(choices.ENTRIES)
    assert np.ptp(errors["plackett_luce_mle"]) == 0  # it has no privacy
    for name, values in errors.items():
        assert (np.diff(values) <= 0).all(), name
        assert (
            choices.Cell(*choices.records()[name]["error"][0], not_worse=False).text("±").replace(" ", "\u00a0") in page
        )
    assert errors["plackett_luce_objective_perturbation"][0] < errors["plackett_luce_debiased_krr"][0]
    assert choices.outdated_entries() == []
    monkeypatch.setitem(choices.records()["sgd_krr"], "code", "0" * 16)
    assert check_site.outdated_results()[-1] == "sgd_krr: choices.json is of another program"


def test_the_page_of_standings_is_in_the_table_of_contents():
    assert "api/standings" in (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    assert pages.standings_page is measured.standings_page
