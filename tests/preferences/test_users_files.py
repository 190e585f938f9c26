"""Readers of users' files: every format returns the written data, and damaged files raise ValueError alone."""

import csv
import io
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdp.preferences import Ballots, ComparisonTable, read_comparisons
from jaxdp.preferences.preflib import format_ballots, parse_ballots
from jaxdp.preferences.tables import parse_comparisons, parse_parquet_comparisons

NUM_DAMAGED = 10_000
QUICK = settings(max_examples=50, deadline=None, derandomize=True, database=None)


def names(forbidden=("Cc", "Cs")) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=forbidden), min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def ballots(draw, kind: str) -> Ballots:
    items = draw(st.lists(names(), min_size=1, max_size=6, unique=True))

    def order(shuffled: list[int], last: int, joins: list[bool]):
        kept = shuffled if kind[2] == "c" else shuffled[: 1 + last % len(shuffled)]
        groups = [[kept[0]]]
        for item, joined in zip(kept[1:], joins, strict=False):
            if joined and kind[0] == "t":
                groups[-1].append(item)
            else:
                groups.append([item])
        return tuple(tuple(sorted(group)) for group in groups)

    joins = st.lists(st.booleans(), min_size=len(items), max_size=len(items))
    one = st.builds(order, st.permutations(range(len(items))), st.integers(0, 5), joins)
    orders = draw(st.lists(one, min_size=1, max_size=8, unique=True))
    counts = draw(st.lists(st.integers(1, 2**49), min_size=len(orders), max_size=len(orders)))
    return Ballots(tuple(items), tuple(orders), tuple(counts))


@pytest.mark.parametrize("kind", ["soc", "soi", "toc", "toi"])
def test_ballots_come_back(kind):
    @QUICK
    @given(ballots(kind))
    def check(votes: Ballots):
        assert parse_ballots(format_ballots(votes, kind, f"x.{kind}").encode(), f"x.{kind}") == votes

    check()


@st.composite
def comparisons(draw) -> list[tuple[str, str, int]]:
    items = draw(st.lists(names(), min_size=2, max_size=6, unique=True))
    pair = st.lists(st.sampled_from(items), min_size=2, max_size=2, unique=True)
    rows = draw(st.lists(st.tuples(pair, st.integers(0, 2**40)), min_size=1, max_size=10))
    return [*((first, second, weight) for (first, second), weight in rows), (items[0], items[1], 1)]


def as_csv(rows) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerows([("winner", "loser", "weight"), *rows])
    return text.getvalue().encode()


def as_parquet(rows) -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    winners, losers, weights = (list(column) for column in zip(*rows, strict=True))
    sink = io.BytesIO()
    pq.write_table(pa.table({"winner": winners, "weight": weights, "loser": losers}), sink)
    return sink.getvalue()


def check_table(table: ComparisonTable, rows) -> None:
    """Compares with a count that ignores pairs and orders."""
    wins = {}
    for winner, loser, weight in rows:
        wins[winner, loser] = wins.get((winner, loser), 0) + weight
    found = {}
    for (first, second), won, total in zip(table.pairs.tolist(), table.wins, table.totals, strict=True):
        assert first < second
        assert total > 0
        found[table.items[first], table.items[second]] = won
        found[table.items[second], table.items[first]] = total - won
    assert {pair: count for pair, count in found.items() if count} == {pair: n for pair, n in wins.items() if n}
    assert set(table.items) == {name for winner, loser, _ in rows for name in (winner, loser)}


FORMATS = {"csv": (as_csv, parse_comparisons), "parquet": (as_parquet, parse_parquet_comparisons)}


@pytest.mark.parametrize("name", FORMATS)
def test_comparisons_come_back(name):
    write, parse = FORMATS[name]

    @QUICK
    @given(comparisons())
    def check(rows):
        check_table(parse(write(rows), "x"), rows)

    check()


def test_parquet_of_other_types():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def parse(columns: dict[str, Any]) -> ComparisonTable:
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return parse_parquet_comparisons(sink.getvalue(), "x.parquet")

    numbers = parse({"winner": pa.array([10, 9, 10, 9], pa.uint8()), "loser": [9, 10, 9, 8]})
    assert numbers.items == ("8", "9", "10")
    assert numbers.num_comparisons == 4
    rows = 200_000  # several batches, of rows that are all alike
    alike = parse(
        {"winner": pa.array(["a"] * rows).dictionary_encode(), "loser": ["b "] * rows, "weight": [2.0] * rows}
    )
    assert (alike.items, alike.wins.tolist(), alike.totals.tolist()) == (("a", "b"), [2 * rows], [2 * rows])
    for columns, reason in (
        ({"winner": ["a"]}, r"x.parquet, schema: missing columns \['loser'\]"),
        ({"winner": ["a"], "loser": ["b"], "date": [1]}, r"x.parquet, schema: unknown columns \['date'\]"),
        ({"winner": [1.5], "loser": ["b"]}, "schema: column winner must hold text or integers, got double"),
        ({"winner": ["a"], "loser": ["b"], "weight": ["1"]}, "schema: column weight must hold numbers, got string"),
        ({"winner": ["a", None], "loser": ["b", "c"]}, "x.parquet, row 2: winner is empty"),
        ({"winner": ["a"] * 5, "loser": list("bcdea")}, "x.parquet, row 5: winner and loser are both 'a'"),
        ({"winner": ["a"], "loser": ["b"], "weight": [None]}, "schema: column weight must hold numbers, got null"),
        ({"winner": ["a"], "loser": ["b"], "weight": [0.5]}, r"row 1: weight must be an integer in \[0, 2\*\*53\]"),
        ({"winner": ["a"] * 3, "loser": ["b"] * 3, "weight": [2**52] * 3}, r"row 1: more than 2\*\*53 comparisons"),
    ):
        with pytest.raises(ValueError, match=reason):
            parse(columns)
    for data in (b"", b"PAR1", b"winner,loser\na,b\n"):
        with pytest.raises(ValueError, match=r"^x.parquet, data: not a readable Parquet file"):
            parse_parquet_comparisons(data, "x.parquet")


def test_parquet_without_pyarrow_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "games.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(
        ValueError, match=r"games.parquet: reading Parquet needs pyarrow: pip install 'jaxdp\[parquet\]'"
    ):
        read_comparisons(path)


def test_files_are_read_by_their_ending(tmp_path):
    for name, write in (("games.csv", as_csv), ("games.Parquet", as_parquet)):
        path = tmp_path / name
        path.write_bytes(write(ROWS))
        check_table(read_comparisons(path), ROWS)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Returns the file with one to four mistakes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        mistake = rng.randrange(6)
        if mistake == 0 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif mistake == 1:
            del changed[place : place + rng.randint(1, 8)]
        elif mistake == 2:
            changed[place:place] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))
        elif mistake == 3:
            changed[place:place] = rng.choice([b"{", b"}", b",", b":", b"\n", b"9" * 30, b"\0", b'"', b"\xd9\xa3"])
        else:
            lines = bytes(changed).split(b"\n")
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            if mistake == 4:
                lines[first], lines[second] = lines[second], lines[first]
            else:
                lines.insert(second, lines[first])
            changed = bytearray(b"\n".join(lines))
    return bytes(changed)


ROWS = [("Ann", "Bob", 3), ("Bob", "Çelik, D.", 2), ("Çelik, D.", "Ann", 10), ("Ann", "Çelik, D.", 0)]
VOTES = {
    "soc": Ballots(("Ann", "Bob", "C"), (((0,), (1,), (2,)), ((2,), (0,), (1,))), (10, 3)),
    "soi": Ballots(("Ann", "Bob", "C"), (((0,), (1,), (2,)), ((2,), (0,)), ((1,),)), (10, 3, 2)),
    "toc": Ballots(("Ann", "Bob", "C"), (((0,), (1, 2)), ((2,), (0,), (1,))), (10, 3)),
    "toi": Ballots(("Ann", "Bob", "C"), (((0, 1), (2,)), ((0, 2),), ((1,),)), (10, 3, 2)),
}
SOURCES: dict[str, Callable[[], tuple[bytes, Callable[[bytes], Any]]]] = {
    "csv": lambda: (as_csv(ROWS), lambda data: parse_comparisons(data, "x.csv")),
    "parquet": lambda: (as_parquet(ROWS), lambda data: parse_parquet_comparisons(data, "x.parquet")),
    **{
        kind: lambda kind=kind: (
            format_ballots(VOTES[kind], kind, f"x.{kind}").encode(),
            lambda data: parse_ballots(data, f"x.{kind}"),
        )
        for kind in VOTES
    },
}


def survive(name: str, count: int) -> None:
    data, parse = SOURCES[name]()
    parse(data)
    rng, refused = random.Random(0), 0
    for _ in range(count):
        try:
            parse(mutated(data, rng))
        except ValueError:
            refused += 1
    assert count / 4 < refused < count  # most mistakes matter, and some, as in a name, do not


@pytest.mark.parametrize("name", SOURCES)
def test_damaged_files_raise_nothing_but_value_errors(name):
    survive(name, NUM_DAMAGED // 10 if name == "parquet" else NUM_DAMAGED)


def test_many_damaged_parquet_files_raise_nothing_but_value_errors():
    survive("parquet", NUM_DAMAGED)


def csv_of(weight: str) -> bytes:
    return f"winner,loser,weight\na,b,{weight}\n".encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (csv_of("9" * 5000), "weight must be an integer"),
        (csv_of("1e999999999"), "weight must be an integer"),
        (csv_of("٣"), "line 2: weight must be a number, got '٣'"),
        (csv_of("1_0"), "line 2: weight must be a number, got '1_0'"),
        (csv_of(str(2**53)) + f"b,c,{2**53}\n".encode() * 2000, r"line 3: more than 2\*\*53 comparisons"),
        (b"winner,loser\n" + b"a" * 200_000 + b",b\n", "field larger than field limit"),
        (b"winner,loser" + b",x" * 10**5 + b"\n", "duplicated columns"),
        (b'winner,loser\n"' + b"a\n" * 10**5, "line 65538: field larger than field limit"),
    ],
)
def test_hostile_tables(data, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        parse_comparisons(data, "x.csv")
    assert len(str(caught.value)) < 400
