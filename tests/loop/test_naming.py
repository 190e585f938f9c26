"""Files, entries and tests that belong together are found by imports and text."""

import pytest

from tests.loop import naming

TESTS, DUELING = naming.TESTS, naming.LIBRARY / "dueling"


def test_files_of_an_entry_are_its_factorys_and_what_that_imports_from_its_package():
    files = naming.files_of("rucb")
    assert files[0] == DUELING / "_rucb" / "_rucb.py"
    assert {DUELING / "_rucb" / "kernels.py", DUELING / "_rucb" / "draws.py", DUELING / "reports.py"} < {*files}
    assert all(file.is_relative_to(DUELING) for file in files)
    assert (
        naming.files_of("g_optimal_elimination")[0] == DUELING / "_g_optimal_elimination" / "_g_optimal_elimination.py"
    )
    assert naming.files_of("laplace")[0] == naming.LIBRARY / "mechanisms" / "additive.py"
    assert all(naming.files_of(name) for name in naming.entries())


def test_entries_of_a_file():
    assert naming.entries_of(DUELING / "_rucb" / "kernels.py") == ("rucb", "rucb_blocks")
    assert {"rucb", "ebs_local"} <= {*naming.entries_of(DUELING / "reports.py")}
    assert naming.entries_of(naming.LIBRARY / "stats" / "intervals.py") == ()


def test_tests_of_a_name_and_of_a_file_with_entries():
    of_rucb = naming.tests_of("rucb")
    named = (
        "algorithms/dueling/rucb/test_rucb.py",
        "algorithms/dueling/test_golden_duels.py",
        "contract/test_shown.py",
    )
    assert {TESTS / name for name in named} < {*of_rucb}
    others = ("stats/test_paired.py", "algorithms/bandits/convex/test_box.py", "test_site.py")
    assert {TESTS / name for name in others}.isdisjoint(of_rucb)
    assert TESTS / "algorithms/dueling/rucb/test_kernels.py" in naming.tests_of("jaxdp/dueling/_rucb/kernels.py")


def test_tests_of_a_file_without_entries():
    of_stats = naming.tests_of("jaxdp/stats/_paired.py")
    assert TESTS / "stats" / "test_paired.py" in of_stats
    assert TESTS / "algorithms/dueling/rucb/test_kernels.py" not in of_stats


def test_a_test_names_what_its_helpers_name():
    """Uses a test without a learner, which compares the independent version: a table beside it has the learner."""
    wanted = naming.subject("rucb")
    file = TESTS / "algorithms/dueling/test_golden_duels.py"
    assert naming.names_in_test(file, "test_equals_the_independent_version", wanted)
    assert not naming.names_in_test(
        TESTS / "algorithms/dueling/g_optimal_elimination/test_utility_fit.py",
        "test_the_model_is_the_least_in_the_ball",
        wanted,
    )


def test_a_word_that_is_also_an_option_names_no_entry(tmp_path, monkeypatch):
    file = tmp_path / "test_some.py"
    file.write_text('def test_option():\n    assert "laplace"\n\ndef test_name():\n    assert "ebs_local"\n')
    monkeypatch.setattr(naming, "TESTS", tmp_path)
    assert not naming.names_in_test(file, "test_option", naming.subject("laplace"))
    assert naming.names_in_test(file, "test_name", naming.subject("ebs_local"))


@pytest.mark.parametrize(
    ("text", "near"), [("rucp", "rucb"), ("jaxdp/stat", "jaxdp/stats,"), ("tests/stats", ""), ("exp3", "exp3_laplace")]
)
def test_an_unknown_name_is_refused_with_near_ones(text, near):
    with pytest.raises(naming.UnknownNameError, match=f"NAME must be .*, got '{text}'; near it: {near}"):
        naming.subject(text)
    with pytest.raises(naming.UnknownNameError, match=r"got 'nothing'$"):
        naming.subject("nothing")


def test_an_algorithm_has_its_files_in_three_trees():
    place = "dueling/rucb"
    there = {naming.LIBRARY / "registry" / f"{place}.py", TESTS / "algorithms" / place / "test_rucb.py"}
    for text in ("rucb", "jaxdp/dueling/_rucb"):
        assert {DUELING / "_rucb" / "_rucb.py", *there} < {*naming.with_other_trees(naming.subject(text))}
    assert naming.subject(f"jaxdp/registry/{place}.py").entries == ("rucb", "rucb_blocks")
    for name in naming.entries():
        assert naming.entry_file(name).is_file()


def test_importers_are_of_the_same_package():
    convex = naming.LIBRARY / "bandits" / "convex"
    found = naming.with_importers(convex / "_world.py")
    assert {convex / "_world.py", convex / "_environments.py"} <= found
    assert all(file.is_relative_to(naming.LIBRARY / "bandits") and file.name != "__init__.py" for file in found)
