"""Ballots: PrefLib files that are read and refused, and what ballots say about pairs."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxdp.preferences import Ballots, pair_features, read_ballots, write_ballots
from jaxdp.preferences.preflib import parse_ballots

HEADER = ["# FILE NAME: x", "# NUMBER ALTERNATIVES: 3", "# NUMBER VOTERS: 7", "# NUMBER UNIQUE ORDERS: 2"]
NAMES = ["# ALTERNATIVE NAME 1: Ann", "# ALTERNATIVE NAME 2: Bob: the 2nd", "# ALTERNATIVE NAME 3: Çelik, D."]
ELECTION = Path(__file__).parents[3] / "shared/data/00002-00000002.soi"


def text(*orders: str, changes=(), names=NAMES) -> bytes:
    lines = [*HEADER, *names, *orders]
    for old, new in changes:
        assert old in lines
        lines[lines.index(old)] = new
    return "\n".join(lines).encode()


def test_reads_ties_gaps_and_spaces():
    ballots = parse_ballots(b"\xef\xbb\xbf" + text("5:  3, {2 ,1} ", "", "2: 2").replace(b"\n", b"\r\n"), "x.toi")
    assert ballots.items == ("Ann", "Bob: the 2nd", "Çelik, D.")
    assert ballots.orders == (((2,), (0, 1)), ((1,),))
    assert ballots.counts == (5, 2)
    assert (ballots.num_ballots, ballots.data_type) == (7, "toi")


@pytest.mark.parametrize(
    ("orders", "fitting"),
    [
        (("5: 1,2,3", "2: 3,1,2"), {"soc", "soi", "toc", "toi"}),
        (("5: 1,2,3", "2: 3,1"), {"soi", "toi"}),
        (("5: 1,2,3", "2: {1,3},2"), {"toc", "toi"}),
        (("5: 1,2,3", "2: {1,3}"), {"toi"}),
    ],
)
def test_types_hold_what_they_say(orders, fitting, tmp_path):
    ballots = parse_ballots(text(*orders), "x.toi")
    assert ballots.data_type == next(kind for kind in ("soc", "soi", "toc", "toi") if kind in fitting)
    for kind in ("soc", "soi", "toc", "toi"):
        path = tmp_path / f"votes.{kind}"
        if kind in fitting:
            write_ballots(ballots, path)
            assert read_ballots(path) == ballots == parse_ballots(text(*orders), f"x.{kind}")
            with pytest.raises(FileExistsError):
                write_ballots(ballots, path)
            assert read_ballots(path) == ballots
        else:
            with pytest.raises(ValueError, match=rf"^x.{kind}, line 9: the order (has a tie|leaves alternatives out)"):
                parse_ballots(text(*orders), f"x.{kind}")
            with pytest.raises(ValueError, match=rf"ballots must fit the type {kind}, got"):
                write_ballots(ballots, path)
            assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "orders", "line", "reason"),
    [
        ((), ("5: 1,2,3",), 3, "NUMBER VOTERS is 7, but the orders make 5"),
        ((), ("7: 1,2,3",), 4, "NUMBER UNIQUE ORDERS is 2, but the orders make 1"),
        ((), (), 3, "NUMBER VOTERS is 7, but the orders make 0"),
        (((HEADER[2], "# NUMBER VOTERS: 0"), (HEADER[3], "# NUMBER UNIQUE ORDERS: 0")), (), 7, "no orders"),
        (((HEADER[1], "# NUMBER ALTERNATIVES: 4"),), (), 2, "NUMBER ALTERNATIVES is 4, but 3 are named"),
        (((HEADER[1], f"# NUMBER ALTERNATIVES: {10**12}"),), (), 2, "NUMBER ALTERNATIVES is 1000000000000, but 3"),
        (((HEADER[1], f"# NUMBER ALTERNATIVES: {'9' * 5000}"),), (), 2, "NUMBER ALTERNATIVES must be an integer"),
        (((HEADER[1], "# NUMBER ALTERNATIVES: 2"),), (), 7, "ALTERNATIVE NAME 3, where NUMBER ALTERNATIVES is 2"),
        (((HEADER[1], "# NUMBER ALTERNATIVES: ٣"),), (), 2, "NUMBER ALTERNATIVES must be an integer, got '٣'"),
        (((HEADER[2], "# NUMBER VOTERS: -7"),), (), 3, "NUMBER VOTERS must be an integer, got '-7'"),
        (((HEADER[2], "# Number voters: 7"),), ("5: 1,2,3",), 7, "no metadata NUMBER VOTERS"),
        (((HEADER[0], "# NUMBER VOTERS: 7"),), (), 3, "'NUMBER VOTERS' was given in line 1 already"),
        (((HEADER[0], "# no key"),), (), 1, "metadata must read '# KEY: value', got '# no key'"),
        (((HEADER[0], "# DATA TYPE: cat"),), (), 1, "DATA TYPE must be one of soc, soi, toc, toi, got 'cat'"),
        (((HEADER[0], "# DATA TYPE: soi"),), (), 1, "DATA TYPE is soi, but the name ends in .toi"),
        (((NAMES[1], "# ALTERNATIVE NAME 2: Ann"),), (), 6, "the name 'Ann' was given in line 5 already"),
        (((NAMES[1], "# ALTERNATIVE NAME 2:"),), (), 6, "ALTERNATIVE NAME 2 must be a name, got ''"),
        (((NAMES[1], "# ALTERNATIVE NAME 2: a\0b"),), (), 6, "ALTERNATIVE NAME 2 must have no control characters"),
        (((NAMES[1], "# ALTERNATIVE NAME 02: x"), (HEADER[0], NAMES[1])), (), 6, "a second ALTERNATIVE NAME 2"),
        (((NAMES[1], "# ALTERNATIVE NAME: x"),), (), 6, "the number of an ALTERNATIVE NAME must be an integer"),
        ((), ("5: 1,2,3", "2: 1,2,3"), 9, "the same order as in line 8"),
        ((), ("5: {2,1},3", "2: {1,2},3"), 9, "the same order as in line 8"),
        ((), ("5: 1,2,3", "# TITLE: x"), 9, "metadata after the first order"),
        ((), ("1,2,3",), 8, "an order must read 'count: order', got '1,2,3'"),
        ((), ("five: 1,2,3",), 8, "count must be an integer, got 'five'"),
        ((), ("0: 1,2,3",), 8, "count must be >= 1, got 0"),
        ((), (f"{10**30}: 1,2,3", "2: 1"), 3, f"NUMBER VOTERS is 7, but the orders make {10**30 + 2}"),
        (((HEADER[2], f"# NUMBER VOTERS: {10**30}"),), (f"{10**30 - 1}: 1", "1: 2"), 9, "more than 2**53 ballots"),
        ((), ("5: 1,2,4",), 8, "alternatives must be in [1, 3], got '1,2,4'"),
        ((), ("5: 0,1",), 8, "alternatives must be in [1, 3], got '0,1'"),
        ((), ("5: 1,2,1",), 8, "the order must rank each alternative at most once"),
        ((), ("5:",), 8, "an order must read like 1,{3,4},2, got ''"),
        ((), ("5: 1,,2",), 8, "an order must read like 1,{3,4},2, got ',2'"),
        ((), ("5: 1,2,",), 8, "an order must read like 1,{3,4},2, got ''"),
        ((), ("5: {}",), 8, "alternative must be an integer, got ''"),
        ((), ("5: {1,{2}}",), 8, "an order must read like"),
        ((), ("5: " + "{" * 10**5,), 8, "an order must read like"),
        ((), ("5: 1;2",), 8, "an order must read like 1,{3,4},2, got '1;2'"),
        ((), ("5: ٣",), 8, "an order must read like 1,{3,4},2, got '٣'"),
    ],
)
def test_malformed_files(changes, orders, line, reason):
    with pytest.raises(ValueError, match=re.escape(f"x.toi, line {line}: ") + ".*" + re.escape(reason)) as caught:
        parse_ballots(text(*orders, changes=changes), "x.toi")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "x.soi", "line 1: the file is empty"),
        (b"\n \n", "x.soi", "line 1: the file is empty"),
        (text("7: 1").decode().encode("utf-16"), "x.soi", "line 1: not UTF-8 text"),
        (text("7: 1").replace(b"Ann", b"\xc4nn"), "x.soi", "line 5: not UTF-8 text"),
        (b"3\n1,Ann\n2,Bob\n", "x.soi", "line 1: the file begins with a number, as in PrefLib's format before 2022"),
        (text("7: 1"), "x.txt", "line 7: no DATA TYPE, and the name ends in none of .soc, .soi, .toc, .toi"),
    ],
)
def test_what_is_no_such_file(data, name, reason):
    with pytest.raises(ValueError, match="^" + re.escape(f"{name}, {reason}")):
        parse_ballots(data, name)


def test_lines_may_end_in_cr_alone():
    data = text("5: 1,2", "2: 2,3")
    assert parse_ballots(data.replace(b"\n", b"\r"), "x.soi") == parse_ballots(data, "x.soi")


@pytest.mark.parametrize("name", ["a\nb.soi", "a\rb.soi", "a\udcffb.soi"])
def test_a_file_name_that_the_file_cannot_hold_leaves_no_file(name, tmp_path):
    ballots = parse_ballots(text("5: 1,2", "2: 2,3"), "x.soi")
    with pytest.raises(ValueError, match="path must have a file name without control characters, got"):
        write_ballots(ballots, tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_ballots(ballots, tmp_path / "Çelik # 1: .soi")
    assert read_ballots(tmp_path / "Çelik # 1: .soi") == ballots


def test_the_type_may_be_declared(tmp_path):
    data = text("5: 1,2", "2: 2,3", changes=((HEADER[0], "# DATA TYPE: soi"),))
    assert parse_ballots(data, "votes.txt").data_type == "soi"
    with pytest.raises(ValueError, match=r"path must end in one of .soc, .soi, .toc, .toi, got .*votes.txt"):
        write_ballots(parse_ballots(data, "votes.txt"), tmp_path / "votes.txt")
    with pytest.raises(FileNotFoundError):
        read_ballots(tmp_path / "none.soi")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((("a", ""), (((0,),),), (1,)), "items[1] must be a name, got ''"),
        ((("a", "b "), (((0,),),), (1,)), "items[1] must have no control characters and no spaces at its ends"),
        ((("a", "a"), (((0,),),), (1,)), "items must all be different"),
        ((("a", "b"), (), ()), "orders and counts must have the same length >= 1, got 0 and 0"),
        ((("a", "b"), (((0,),),), (1, 2)), "the same length >= 1, got 1 and 2"),
        ((("a", "b"), ((),), (1,)), "orders[0] must rank at least one alternative"),
        ((("a", "b"), (((0,), ()),), (1,)), "in groups that are not empty"),
        ((("a", "b"), (((0,), (2,)),), (1,)), "orders[0] must rank alternatives in [0, 2), got ((0,), (2,))"),
        ((("a", "b"), (((0,), (0,)),), (1,)), "orders[0] must rank each alternative at most once"),
        ((("a", "b"), (((0, 1),), ((1, 0),)), (1, 1)), "orders must all be different"),
        ((("a", "b"), (((0,),),), (0,)), "counts[0] must be an integer >= 1, got 0"),
        ((("a", "b"), (((0,),),), (1.5,)), "counts[0] must be an integer >= 1, got 1.5"),
        ((("a", "b"), (((0,),),), (True,)), "counts[0] must be an integer >= 1, got True"),
        ((("a", "b"), (((0,),),), ("1",)), "counts[0] must be an integer >= 1, got '1'"),
        ((("a", "b"), (((0,),),), None), "counts must be a sequence, got None"),
        (("ab", (((0,),),), (1,)), "items must be a sequence, got 'ab'"),
        ((("a", "b"), None, (1,)), "orders must be a sequence, got None"),
        ((("a", "b"), (0, 1), (1,)), "orders[0] must be a sequence, got 0"),
        ((("a", "b"), ((0, 1),), (3,)), "every group of orders[0] must be a sequence, got 0"),
        ((("a", "b"), (((0,), "1"),), (3,)), "every group of orders[0] must be a sequence, got '1'"),
        ((("a", "b"), (((0, "b"),),), (3,)), "orders[0] must rank alternatives in [0, 2), got ((0, 'b'),)"),
        ((("a", "b"), (((True,),),), (1,)), "orders[0] must rank alternatives in [0, 2), got ((True,),)"),
        ((("a", "b"), (((0.0,),),), (1,)), "orders[0] must rank alternatives in [0, 2), got ((0.0,),)"),
        ((("a", "b"), (((0,),), ((1,),)), (2**53, 1)), "counts must sum to at most 2**53"),
    ],
)
def test_ballots_are_checked_when_made(values, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        Ballots(*values)


def test_whole_numbers_of_any_type_are_taken():
    for whole in (np.int64, np.uint8, np.asarray):
        loose: Any = ["a", "b"], [[[whole(1), whole(0)]], [(whole(1),)]], np.array([3, 2])
        ballots = Ballots(*loose)
        assert ballots == Ballots(("a", "b"), (((0, 1),), ((1,),)), (3, 2))
        assert all(type(number) is int for number in (*ballots.counts, *ballots.orders[0][0]))
    truth: Any = np.array([True])
    with pytest.raises(ValueError, match=r"counts\[0\] must be an integer >= 1, got np.True_"):
        Ballots(("a", "b"), (((0,),),), truth)


def above(order, first, second, unranked):
    """Returns one ballot's preference between two alternatives, item by item: 2, 0 or 1."""
    place = {item: position for position, group in enumerate(order) for item in group}
    if first not in place and second not in place:
        return 1
    if unranked == "unknown" and (first not in place or second not in place):
        return 1
    ahead, behind = place.get(first, 10**9), place.get(second, 10**9)
    return 1 + (ahead < behind) - (ahead > behind)


@pytest.mark.parametrize("unranked", ["unknown", "last"])
def test_what_ballots_say_about_pairs(unranked):
    orders = (((2,), (0, 1)), ((1,),), ((0,), (3,), (1,), (2,)), ((1, 3), (0, 2)))
    ballots = Ballots(("d", "b", "a", "c"), orders, (3, 2, 4, 1))
    pairs = list(itertools.combinations(range(4), 2))
    expected = [[above(order, i, j, unranked) for i, j in pairs] for order in orders]
    answers = ballots.answers(unranked=unranked)
    np.testing.assert_array_equal(answers, expected)
    features, labels = ballots.design(unranked=unranked)
    np.testing.assert_array_equal(labels, np.repeat(expected, [3, 2, 4, 1], axis=0))
    for row, (i, j) in zip(features, pairs, strict=True):
        np.testing.assert_array_equal(row, np.eye(4)[i] - np.eye(4)[j])
    table = ballots.comparisons(unranked=unranked)
    assert table.items == ("a", "b", "c", "d")
    wins = {}
    for order, count in zip(ballots.orders, ballots.counts, strict=True):
        for i, j in itertools.permutations(range(4), 2):
            if above(order, i, j, unranked) == 2:
                wins[ballots.items[i], ballots.items[j]] = wins.get((ballots.items[i], ballots.items[j]), 0) + count
    found = {}
    for (first, second), won, total in zip(table.pairs.tolist(), table.wins, table.totals, strict=True):
        found[table.items[first], table.items[second]] = won
        found[table.items[second], table.items[first]] = total - won
    assert {pair: count for pair, count in found.items() if count} == wins


def test_refusals_of_pairs():
    with pytest.raises(ValueError, match="unranked must be one of unknown, last, got 'first'"):
        Ballots(("a", "b"), (((0,),),), (1,)).answers(unranked="first")
    with pytest.raises(ValueError, match="items must have at least two names for comparisons, got 1"):
        Ballots(("a",), (((0,),),), (1,)).answers()
    with pytest.raises(
        ValueError, match="ballots must rank an alternative above another one at least once, got no such"
    ):
        Ballots(("a", "b"), (((0,),), ((0, 1),)), (1, 2)).comparisons()
    with pytest.raises(ValueError, match="answers of 9007199254740992 ballots about all pairs of 2 items would take"):
        Ballots(("a", "b"), (((0,),),), (2**53,)).design()
    many = Ballots(tuple(map(str, range(10**5))), (((0,),),), (1,))
    with pytest.raises(ValueError, match="answers of 1 ballots about all pairs of 100000 items would take"):
        many.comparisons()


@pytest.mark.skipif(not ELECTION.exists(), reason=f"{ELECTION.name} is not there")
def test_the_debian_election_of_2003():
    ballots = read_ballots(ELECTION)
    assert (len(ballots.items), ballots.num_ballots, len(ballots.orders), ballots.data_type) == (5, 488, 109, "soi")
    lines = [line.partition(":") for line in ELECTION.read_text().splitlines() if not line.startswith("#")]
    votes = [(int(count), order.strip().split(",")) for count, _, order in lines]
    wins = np.zeros((5, 5), int)
    for count, order in votes:
        for better, worse in itertools.combinations(order, 2):
            wins[int(better) - 1, int(worse) - 1] += count
    table = ballots.comparisons()
    for (first, second), won, total in zip(table.pairs.tolist(), table.wins, table.totals, strict=True):
        i, j = ballots.items.index(table.items[first]), ballots.items.index(table.items[second])
        assert (won, total) == (wins[i, j], wins[i, j] + wins[j, i])
    assert np.all(pair_features(5).sum(axis=1) == 0)
    # The file breaks ties; the ballots themselves elected Michlmayr, by 228 to Garbee's 224.
    garbee, michlmayr = "Bdale Garbee", "Martin Michlmayr"
    leader = ballots.items.index(garbee)
    assert (wins[leader] > wins[:, leader]).sum() == 4
    last = ballots.comparisons(unranked="last")
    pair = last.pairs.tolist().index([last.items.index(garbee), last.items.index(michlmayr)])
    assert (last.wins[pair], last.totals[pair] - last.wins[pair]) == (252, 228)


@pytest.mark.parametrize("kind", ["soi", "toi"])
def test_ballots_with_unranked_alternatives_last(kind):
    generator = np.random.default_rng(7)
    found: dict = {}
    for _ in range(40):
        places = generator.integers(1, 3, 5) if kind == "toi" else 1 + generator.permutation(5)
        places = places * (generator.random(5) < 0.4)
        groups = tuple(tuple(np.flatnonzero(places == place).tolist()) for place in np.unique(places[places > 0]))
        if groups:
            found[groups] = found.get(groups, 0) + 1
    ballots = Ballots(tuple("abcde"), tuple(found), tuple(found.values()))
    complete = ballots.with_unranked_last()
    assert complete.data_type.endswith("c")
    assert complete.num_ballots == ballots.num_ballots
    for name in ("wins", "totals", "pairs"):
        expected = getattr(ballots.comparisons(unranked="last"), name)
        np.testing.assert_array_equal(getattr(complete.comparisons(), name), expected)
    single = sum(count for order, count in found.items() if sum(map(len, order)) == 1)
    tied = sum(count for order, count in found.items() if len(order) == 1) - single
    assert single > 0
    assert ballots.num_silent() == single + tied
    all_tied = sum(count for order, count in found.items() if len(order) == 1 and len(order[0]) == 5)
    assert ballots.num_silent(unranked="last") == all_tied
