"""Users' tables of comparisons: parsing, refusals, and the information in their features."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.preferences import ComparisonTable, baseball1987, comparison_groups, logistic, read_comparisons
from jaxdp.preferences.connected import check_connected

FILE = Path(__file__).parents[2] / "jaxdp/preferences/baseball1987.csv"
ROWS = [line.split(",") for line in FILE.read_text().splitlines()[1:]]


def read(tmp_path: Path, content: str | bytes) -> ComparisonTable:
    path = tmp_path / "games.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_comparisons(path)


def test_reads_weights_names_and_order(tmp_path: Path):
    table = read(
        tmp_path,
        "\ufeffweight, loser ,winner\r\n2, b,a\r\n7.0,a,b\r\n\r\n"
        ' \r\n1,a,"Smith, ""J"""\r\n1,"Smith, ""J""",a\r\n0,z,a\r\n0,a,b\r\n3,b , a\r\n',
    )
    assert table.items == ('Smith, "J"', "a", "b", "z")  # z is known, though never compared
    np.testing.assert_array_equal(table.pairs, [[0, 1], [1, 2]])
    np.testing.assert_array_equal(table.wins, [1, 5])
    np.testing.assert_array_equal(table.totals, [2, 12])
    assert (table.pairs.dtype, table.wins.dtype, table.totals.dtype) == (np.int32, np.int64, np.int64)
    assert table.num_comparisons == 14


def test_weights_are_exact(tmp_path: Path):
    for weight, text in ((2**53, "9007199254740992.000"), (2**53 - 1, "9007199254740991"), (30, "0.3e2"), (1, "10E-1")):
        assert read(tmp_path, f"winner,loser,weight\na,b,{text}\n").num_comparisons == weight
    assert read(tmp_path, "winner,loser,weight\na,b,1\na,b,0e999999999\na,b,-0.0\n").num_comparisons == 1


def test_one_line_a_comparison_and_numbers(tmp_path: Path):
    table = read(tmp_path, "winner,loser\n10,9\n9,10\n10,9\n-1.5,9\n1,01\n")
    assert table.items == ("-1.5", "01", "1", "9", "10")
    np.testing.assert_array_equal(table.pairs, [[0, 3], [1, 2], [3, 4]])
    np.testing.assert_array_equal(table.wins, [1, 0, 1])
    np.testing.assert_array_equal(table.totals, [1, 1, 3])
    assert read(tmp_path, "winner,loser\n10,9\nnan,9\n").items == ("10", "9", "nan")  # not all numbers: text


def test_design(tmp_path: Path):
    features, labels = read(tmp_path, "winner,loser,weight\nb,a,2\na,b,1\nc,b,1\n").design()
    np.testing.assert_array_equal(features, [[1, -1, 0]] * 3 + [[0, 1, -1]])
    np.testing.assert_array_equal(labels, [1, 0, 0, 0])
    assert (features.dtype, labels.dtype) == (np.float32, np.int32)


def test_design_refuses_what_does_not_fit():
    pairs = np.array([[0, 1]], np.int32)
    table = ComparisonTable(("a", "b"), pairs, np.array([5]), np.array([10**9]))
    with pytest.raises(
        ValueError, match="1000000000 comparisons of 2 items would take 8000000000 bytes, more than 21474"
    ):
        table.design()


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 1, "the file is empty"),
        ("\n\n", 1, "the file is empty"),
        ("winner,weight\na,1\n", 1, "missing columns ['loser'], got ['winner', 'weight']"),
        ("a,b,1\n", 1, "missing columns ['winner', 'loser']"),
        ("\nwinner;loser\n", 2, "missing columns"),
        ("winner,loser,winner\na,b,c\n", 1, "duplicated columns ['winner']"),
        ("winner,loser,date\na,b,c\n", 1, "unknown columns ['date']"),
        ("winner,loser,\na,b,\n", 1, "unknown columns ['']"),
        ("winner,loser\na,b\na\n", 3, "1 fields where the header has 2"),
        ("winner,loser\na,b,4\n", 2, "3 fields where the header has 2"),
        ("winner,loser\n ,b\n", 2, "winner is empty"),
        ('winner,loser\na,b\n\na,""\n', 4, "loser is empty"),
        ("winner,loser\na, a\n", 2, "winner and loser are both 'a'"),
        ("winner,loser,weight\na,b,many\n", 2, "weight must be a number, got 'many'"),
        ("winner,loser,weight\na,b,\n", 2, "weight must be a number, got ''"),
        ("winner,loser,weight\na,b,-1\n", 2, "weight must be an integer in [0, 2**53], got '-1'"),
        ("winner,loser,weight\na,b,1.5\n", 2, "weight must be an integer in [0, 2**53], got '1.5'"),
        ("winner,loser,weight\na,b,nan\n", 2, "weight must be an integer in [0, 2**53], got 'nan'"),
        ("winner,loser,weight\na,b,inf\n", 2, "weight must be an integer in [0, 2**53], got 'inf'"),
        ("winner,loser,weight\na,b,1e300\n", 2, "weight must be an integer in [0, 2**53], got '1e300'"),
        ("winner,loser,weight\na,b,9007199254740993\n", 2, "weight must be an integer in [0, 2**53], got '9007"),
        ("winner,loser,weight\na,b,2.99999999999999999999\n", 2, "weight must be an integer in [0, 2**53]"),
        ("winner,loser,weight\na,b,1e-400\n", 2, "weight must be an integer in [0, 2**53], got '1e-400'"),
        ("winner,loser,weight\na,b,-0.1e-400\n", 2, "weight must be an integer in [0, 2**53]"),
        (f"winner,loser,weight\na,b,1e{10**30}\n", 2, "weight must be an integer in [0, 2**53]"),
        (f"winner,loser,weight\na,b,1e-{10**30}\n", 2, "weight must be an integer in [0, 2**53]"),
        ("winner,loser\n", 1, "no comparisons"),
        ("winner,loser,weight\na,b,0\nb,a,0\n", 3, "no comparisons"),
        ('winner,loser\na,"b\n', 2, "unexpected end of data"),
        ('winner,loser\na,b\n"a"c,b\n', 3, "expected after"),
        (b"winner,loser\na,b\n\xff,b\n", 3, "not UTF-8 text (invalid start byte)"),
        (b"winner,loser\ra,b\r\xff,b\r", 3, "not UTF-8 text (invalid start byte)"),
        ("winner,loser\na,b\n".encode("utf-16"), 1, "not UTF-8 text"),
    ],
)
def test_malformed_files(tmp_path: Path, content: str | bytes, line: int, reason: str):
    with pytest.raises(
        ValueError, match=re.escape(f"{tmp_path / 'games.csv'}, line {line}: ") + ".*" + re.escape(reason)
    ):
        read(tmp_path, content)


def test_missing_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        read_comparisons(tmp_path / "none.csv")


def test_baseball():
    table = baseball1987()
    assert table.items == ("Baltimore", "Boston", "Cleveland", "Detroit", "Milwaukee", "New York", "Toronto")
    assert table.pairs.shape == (21, 2)
    np.testing.assert_array_equal(table.totals, 13)
    features, labels = table.design()
    assert features.shape == (273, 7)
    np.testing.assert_array_equal(features.sum(axis=1), 0)
    games_won = np.where(labels[:, None] == 1, features > 0, features < 0).sum(axis=0)
    assert dict(zip(table.items, games_won.tolist(), strict=True)) == {
        team: sum(int(weight) for winner, _, weight in ROWS if winner == team) for team in table.items
    }


def test_baseball_abilities():
    """Runs Newton's method on the table's design, which gives the published log-abilities, relative to Baltimore."""
    features, labels = baseball1987().design()
    x = features[:, 1:].astype(np.float64)  # without Baltimore
    theta = np.zeros(6)
    for _ in range(10):
        margins = x @ theta
        residuals = labels - np.asarray(logistic.cdf(jnp.asarray(margins, jnp.float32)), np.float64)
        weights = np.asarray(logistic.curvature(jnp.asarray(margins, jnp.float32)), np.float64)
        theta += np.linalg.solve((x.T * weights) @ x, x.T @ residuals)
    np.testing.assert_allclose(theta, [1.108, 0.684, 1.436, 1.581, 1.248, 1.294], atol=1e-3)


def test_features_do_not_tell_who_won(tmp_path: Path):
    """Swaps winners and losers, or shuffles lines: labels change at most; one game changes one label."""
    table = baseball1987()
    features, labels = table.design()

    def rewritten(rows: list[list[str]]) -> ComparisonTable:
        other = read(tmp_path, "\n".join(["winner,loser,weight", *map(",".join, rows)]))
        assert other.items == table.items
        np.testing.assert_array_equal(other.pairs, table.pairs)
        np.testing.assert_array_equal(other.design()[0], features)
        return other

    np.testing.assert_array_equal(rewritten(ROWS[::-1]).wins, table.wins)
    np.testing.assert_array_equal(rewritten([[b, a, weight] for a, b, weight in ROWS]).wins, 13 - table.wins)
    games = {"Milwaukee,Detroit": "8", "Detroit,Milwaukee": "5"}  # 7 and 6 in the file
    one_game = rewritten([[a, b, games.get(f"{a},{b}", weight)] for a, b, weight in ROWS])
    assert np.sum(one_game.design()[1] != labels) == 1


def test_groups_do_not_depend_on_who_won():
    """Checks groups: a graph of wins would be private; a chain of comparisons joins items, whoever won."""
    names = [f"i{number}" for number in range(12)]
    one = ComparisonTable.from_arrays(names[:5] + names[6:11], names[1:6] + names[7:])
    other = ComparisonTable.from_arrays(names[1:6] + names[6:11], names[:5] + names[7:])
    assert not np.array_equal(one.wins, other.wins)
    assert [len(group) for group in comparison_groups(one)] == [6, 6]
    assert comparison_groups(one) == comparison_groups(other)
    with pytest.raises(ValueError, match=r"with one another, {i0, i1, i10, i11 and 2 more}, {i2, i3"):
        check_connected(
            "table",
            ComparisonTable.from_arrays(["i0", "i1", "i10", "i11", "i4", "i2"], ["i1", "i10", "i11", "i4", "i5", "i3"]),
        )
    check_connected("table", baseball1987())
