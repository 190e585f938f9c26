from jaxdp.audit import Row, heading, line, to_json
from jaxdp.audit.scoreboard import COLUMNS

ROW = Row(
    name="a_long_name",
    epsilon=1.0,
    delta=0.0,
    lower_bound=0.5,
    ratio=0.5,
    trials=1000,
    seconds=1.0,
    verdict="consistent",
    event="output > 0",
)


def test_the_first_column_is_as_wide_as_the_names():
    assert heading([]).split() == " ".join(COLUMNS).split()
    assert line(ROW, []).startswith("a_long_name  ")
    assert heading([ROW.name]).index("EPSILON") == len(ROW.name) + 2
    assert len(heading([ROW.name])) - len(COLUMNS[-1]) == len(line(ROW, [ROW.name])) - len(ROW.verdict)


def test_no_rows():
    assert to_json([]) == "[]"
