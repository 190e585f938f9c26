"""Tables of comparisons from columns in memory: as from a file, by the same rules."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from jaxdp.preferences import ComparisonTable, read_comparisons

FRAME = pd.DataFrame(
    {
        "winner": ["10", "9", "10", "2", "9"],
        "loser": ["9", "10", "2", "10", "2"],
        "weight": [3, 1, 2, 0, 5],
    }
)


def assert_equal(table, other):
    for field in dataclasses.fields(ComparisonTable):
        mine, theirs = getattr(table, field.name), getattr(other, field.name)
        assert type(mine) is type(theirs)
        np.testing.assert_array_equal(mine, theirs)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype


@pytest.mark.parametrize(
    "convert",
    [
        lambda column: column,
        list,
        tuple,
        lambda column: column.to_numpy(),
        lambda column: column.astype(str).astype("category") if column.name != "weight" else column.astype(float),
        lambda column: column.astype(int),
        lambda column: column.astype(int).astype("category"),
        lambda column: column.astype("int64").astype("Int64"),
        lambda column: column.astype(int).to_numpy(np.int16),
        lambda column: column.astype("string") if column.name != "weight" else column.to_numpy(np.float32),
        lambda column: pd.Index(column),
    ],
)
def test_columns_of_any_kind_equal_the_file(convert, tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    FRAME[["winner", "loser"]].to_csv(tmp_path / "plain.csv", index=False)
    columns = {name: convert(FRAME[name]) for name in FRAME}
    assert_equal(ComparisonTable.from_arrays(**columns), read_comparisons(tmp_path / "table.csv"))
    plain = ComparisonTable.from_arrays(columns["winner"], columns["loser"])
    assert_equal(plain, read_comparisons(tmp_path / "plain.csv"))


def test_names_with_spaces_and_commas_equal_the_file(tmp_path):
    frame = pd.DataFrame({"winner": [" x, y ", "Å"], "loser": ["Å", 'q"r']})
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert_equal(ComparisonTable.from_arrays(frame.winner, frame.loser), read_comparisons(tmp_path / "table.csv"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["a", "b"], ["b"]), "loser must have as many rows as winner, 2, got 1"),
        ((["a"], ["b"], [1, 2]), "weight must have as many rows as winner, 1, got 2"),
        ((np.ma.array([1, 2], mask=[True, False]), [2, 3]), "winner must have no masked entries, got 1 of them"),
        (([], []), "winner must have at least one row, got none"),
        (("ab", "ba"), "winner must be a column of values, got 'ab'"),
        ((["a"], ["b"], None, "1"), "tie must be a column of values, got '1'"),
        ((np.eye(2), ["a", "b"]), r"winner must be one-dimensional, got shape \(2, 2\)"),
        ((["a", 1.5], ["b", "c"]), "row 1: winner must be text or integers, got 1.5"),
        ((["a", True], ["b", "c"]), "row 1: winner must be text or integers, got True"),
        ((["a", "a"], ["b", None]), "row 1: loser is empty"),
        ((["a", "a"], ["b", np.nan]), "row 1: loser is empty"),
        ((["a", "a"], ["b", " "]), "row 1: loser is empty"),
        ((pd.Series(["a", None], dtype="category"), ["b", "c"]), "row 1: winner is empty"),
        ((pd.Series([1, None], dtype="Int64"), [2, 3]), "row 1: winner is empty"),
        ((["a", "b"], ["b", " b"]), "row 1: winner and loser are both 'b'"),
        ((["a", "b"], ["b", "a"], [1, -1]), r"row 1: weight must be an integer in \[0, 2\*\*53\], got '-1'"),
        ((["a", "b"], ["b", "a"], [1, 0.5]), r"row 1: weight must be an integer in \[0, 2\*\*53\], got '0.5'"),
        ((["a", "b"], ["b", "a"], [1, np.nan]), r"row 1: weight must be an integer in \[0, 2\*\*53\], got 'nan'"),
        ((["a", "b"], ["b", "a"], [1, "2"]), "row 1: weight must be numbers, got '2'"),
        ((["a", "b"], ["b", "a"], [1, None]), "row 1: weight must be a number, got ''"),
        ((["a", "b"], ["b", "a"], [2**53, 1]), r"row 1: more than 2\*\*53 comparisons up to here"),
        ((["a"], ["b"], [0]), "no comparisons up to the end"),
    ],
)
def test_what_is_refused_is_told_with_its_argument_and_row(columns, message):
    with pytest.raises(ValueError, match=message):
        ComparisonTable.from_arrays(*columns)
