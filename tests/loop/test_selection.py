"""The tests that name a subject are chosen, and run most informative first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.loop import naming
from tests.loop.selection import Selection, files_for, kind_of


def item(path: str, test: str, *values: Any, slow: bool = False) -> Any:
    """Returns the parts of a collected test that a selection reads."""
    return SimpleNamespace(
        path=naming.TESTS / path,
        name=test,
        originalname=test,
        nodeid=f"tests/{path}::{test}[{'-'.join(map(str, values))}]",
        callspec=SimpleNamespace(params=dict(enumerate(values))),
        get_closest_marker=lambda name: slow or None,
    )


CONFIG: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))


def chosen(text, items):
    Selection(naming.subject(text)).pytest_collection_modifyitems(CONFIG, items)
    return items


def test_a_test_is_chosen_by_its_code_or_its_parameters():
    by_code = item("algorithms/dueling/rucb/test_kernels.py", "test_runs_are_equal")
    by_parameter = item("contract/test_shown.py", "test_learner", "rucb")
    others = [
        item("contract/test_shown.py", "test_learner", "ucb"),
        item("algorithms/dueling/test_golden_duels.py", "test_equals_the_independent_version", "double_thompson"),
        item("algorithms/dueling/g_optimal_elimination/test_utility_fit.py", "test_the_model_is_the_least_in_the_ball"),
    ]
    golden = item("algorithms/dueling/test_golden_duels.py", "test_equals_the_independent_version", "rucb")
    assert chosen("rucb", [by_code, *others, golden, by_parameter]) == [golden, by_code, by_parameter]


def test_tests_in_its_folder_are_chosen_though_they_do_not_name_it():
    own = item("algorithms/mechanisms/sparse_vector/test_sparse_vector.py", "test_the_claimed_epsilon_is_kept")
    other = item("algorithms/dueling/rucb/test_kernels.py", "test_runs_are_equal")
    assert chosen("above_threshold", [own, other]) == [own]
    assert own.path in files_for(naming.subject("above_threshold"))


def test_slow_tests_are_left_out_except_the_only_mistakes():
    test = "test_a_mistake_is_flagged_and_its_twin_is_not"
    mistake = item("privacy/test_mutants.py", test, "counters of duels at half their noise", slow=True)
    other = item("privacy/test_mutants.py", test, "sparse vector, variant 3")
    long = item(
        "algorithms/dueling/ebs_elimination/test_ebs_elimination.py", "test_they_learn", "ebs_elimination", slow=True
    )
    assert chosen("ebs_elimination", [long, mistake, other]) == [mistake]
    assert [kind_of(each) for each in (mistake, long)] == ["mutants", "tests"]


def test_a_slow_independent_version_is_not_left_out_if_it_is_the_only_one():
    folder = "algorithms/dueling/g_optimal_elimination"
    quick = item(f"{folder}/test_utility_fit.py", "test_the_model_is_the_least_in_the_ball")
    unknown = item(f"{folder}/test_golden.py", "test_the_reference_can_be_made_again", slow=True)
    golden = item(f"{folder}/test_golden.py", "test_equals_the_independent_version", slow=True)
    selection = Selection(naming.subject("g_optimal_elimination"))
    selection.durations = {golden.nodeid: 7.4, unknown.nodeid: None}
    items = [quick, unknown, golden]
    selection.pytest_collection_modifyitems(CONFIG, items)
    assert items == [golden, quick]


def test_where_all_tests_are_slow_one_is_left():
    golden, other = (
        item(f"algorithms/dueling/{file}.py", "test_it", "rucb", slow=True)
        for file in ("test_golden_duels", "rucb/test_rucb")
    )
    assert chosen("rucb", [other, golden]) == [golden]


@pytest.mark.parametrize("text", ["jaxdp/stats", "jaxdp/stats/intervals.py"])
def test_a_folder_and_a_file_have_the_tests_that_use_them_and_their_doctests(text):
    files = files_for(naming.subject(text))
    assert naming.TESTS / "stats" / "test_intervals.py" in files
    assert naming.LIBRARY / "stats" / "intervals.py" in files
    assert naming.TESTS / "algorithms/dueling/rucb/test_kernels.py" not in files
    own = item("stats/test_intervals.py", "test_against_scipy")
    assert chosen(text, [own, item("algorithms/dueling/rucb/test_kernels.py", "test_runs_are_equal")]) == [own]
