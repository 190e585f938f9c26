"""Habits of prose and names that readers stumble over: no package has more of them than before."""

import pytest

from tests.contract import language
from tests.contract.language import NO_VERB, PARTICIPLE, VAGUE, count, excesses, findings, lower, packages, read_limits

PACKAGES = packages()
ADVICE = (
    f"{language.COMMAND} FILE lists the habits in a new file; after a rewrite, {language.COMMAND} lowers the counts"
)
GOOD = """
def count_rows(table):
    \"\"\"Returns the number of rows.\"\"\"
    num_rows = len(table)  # the header is a row, too
    return num_rows
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_habit_is_more_frequent_than_before(package):
    found = [finding for path in PACKAGES[package] for finding in findings(path)]
    messages = excesses(read_limits().get(package, {}), found)
    assert not messages, "\n".join([*messages, ADVICE])


@pytest.mark.parametrize(
    ("old", "new", "habit"),
    [
        ("Returns the number of rows", "What is in a table", NO_VERB),
        ("Returns the number of rows", "Returns what is counted", NO_VERB),
        ("Returns the number of rows", "Returns what is counted", "what it is"),
        ("the number of rows.", "the number. Which rows they are.", "opens with what"),
        ("the number of rows.", "the number. Of tables the rows count.", "opens with of"),
        ("number of rows", "rows, the last of which counts", "of which, whose"),
        ("number of rows", "number, that of rows", "that of, those of"),
        ("the header is a row, too", "the header tells more", "tells, told"),
        ("the header is a row, too", "counted anew", "archaic"),
        ("the header is a row, too", "nothing but for the header", "but for"),
        ("the header is a row, too", "by the law of rows", "law"),
        ("count_rows", "_counted", PARTICIPLE),
        ("num_rows", "found", VAGUE),
        ("table", "theirs", VAGUE),
    ],
)
def test_a_bad_sentence_or_name_is_counted(tmp_path, old, new, habit):
    path = tmp_path / "rows.py"
    path.write_text(GOOD)
    assert not count([path])
    path.write_text(GOOD.replace(old, new))
    (message,) = [message for message in excesses({}, findings(path)) if message.startswith(habit)]
    assert f"{path}:" in message
    assert not excesses(count([path]), findings(path))


def test_habits_of_a_named_file_are_listed(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.py"
    path.write_text(GOOD.replace("num_rows", "found"))
    monkeypatch.setattr("sys.argv", ["language", str(path)])
    language.main()
    assert capsys.readouterr().out == f"{path}:4: {VAGUE}: found\n"


def test_a_hash_in_a_string_is_no_comment(tmp_path):
    path = tmp_path / "texts.py"
    path.write_text('é = "# the law"; text = f"{é} # the law"  # anew\nlong = """\n# the law\n"""\n')
    assert count([path]) == {"archaic": 1}


def test_properties_and_factories_are_described_by_nouns(tmp_path):
    path = tmp_path / "things.py"
    path.write_text('''@factory\ndef table(): """A table."""\n@property\ndef rows(): """The rows."""\n''')
    assert not count([path])


def test_limits_fall_and_never_rise():
    limits = {"core": {"law": 3, "archaic": 2, "tells, told": 1}, "gone": {"law": 1}}
    assert lower(limits, {"core": {"law": 1, "archaic": 5, "but for": 4}}) == {"core": {"archaic": 2, "law": 1}}


def test_every_limit_is_of_a_package_and_a_habit():
    habits = {NO_VERB, PARTICIPLE, VAGUE, *language.SENTENCES}
    limits = read_limits()
    assert {*limits} <= {*PACKAGES}
    assert {habit for counts in limits.values() for habit in counts} <= habits
