"""Readers of pairs: features, rows and ids of persons do not depend on who won, who tied, or who gave no label."""

import json
import math
import sys
from typing import Any

import jax
import numpy as np
import pytest

from jaxdp.core import Guarantee
from jaxdp.preferences import pairs_from_chosen_rejected, read_pairs
from jaxdp.preferences.pair_files import _mark_repeats

KEY = jax.random.key(3)
CLAIM = Guarantee.pure(1.0, trust_model="local", privacy_unit="one label", argument="randomized response")
BY_WINNER: dict[str, Any] = {"chosen": "chosen", "rejected": "rejected"}
BY_LABEL: dict[str, Any] = {"first": "a", "second": "b", "label": "label"}


def responses(num=60, dtype: Any = np.float32):
    """Makes responses with few different entries: some pairs repeat, and some have equal responses."""
    rng = np.random.default_rng(1)
    return rng.integers(-1, 2, (2, num, 2)).astype(dtype)


def write_jsonl(path, **columns):
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
    path.write_text("\n".join(lines))  # blank lines are skipped
    return path


def same_public_parts(one, other):
    """Checks bytes, so that zeros have one sign."""
    assert (one.features.dtype, one.features.tobytes()) == (other.features.dtype, other.features.tobytes())
    np.testing.assert_array_equal(one.rows, other.rows)
    assert one.labels.dtype == other.labels.dtype
    if one.persons is not None:
        np.testing.assert_array_equal(one.persons, other.persons)


def test_all_files_of_one_table_give_the_same_pairs(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    chosen, rejected = responses()
    tie, ids = [False] * 60, [f"p{row // 4}" for row in range(60)]
    columns = {"chosen": chosen.tolist(), "rejected": rejected.tolist(), "tie": tie, "who": ids, "score": [1.0] * 60}
    names: dict[str, Any] = {**BY_WINNER, "tie": "tie", "person": "who"}
    from_lines = read_pairs(write_jsonl(tmp_path / "a.jsonl", **columns), **names)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    from_parquet = read_pairs(tmp_path / "a.parquet", **names)
    for name, array in (("chosen", chosen), ("rejected", rejected.astype(np.float32))):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float16))
    files: dict[str, Any] = {"chosen": tmp_path / "chosen.npy", "rejected": tmp_path / "rejected.npy"}
    from_files = read_pairs(tmp_path / "a.jsonl", **files, tie="tie", person="who")
    expected = pairs_from_chosen_rejected(*responses(dtype=np.float16))
    for pairs in (from_lines, from_parquet, from_files):
        np.testing.assert_array_equal(np.sort(pairs.rows), np.arange(60))
        signs = np.where(pairs.labels == 1, 1, -1)[:, None]
        np.testing.assert_array_equal(signs * pairs.features, (chosen - rejected)[pairs.rows])
        np.testing.assert_array_equal(pairs.persons, np.asarray(ids)[pairs.rows])
    same_public_parts(from_lines, from_parquet)
    same_public_parts(from_files._replace(labels=expected.labels), expected._replace(persons=from_files.persons))
    np.testing.assert_array_equal(from_files.labels, expected.labels)


def test_a_swapped_table_changes_labels_alone(tmp_path):
    chosen, rejected = responses()
    swap = np.random.default_rng(3).random(60) < 0.5
    other = [np.where(swap[:, None], *pair) for pair in ((rejected, chosen), (chosen, rejected))]
    tables = [
        read_pairs(write_jsonl(tmp_path / f"{n}.jsonl", chosen=a.tolist(), rejected=b.tolist()), **BY_WINNER)
        for n, (a, b) in enumerate([(chosen, rejected), other])
    ]
    same_public_parts(*tables)
    differs = swap & (chosen != rejected).any(axis=1)
    np.testing.assert_array_equal(tables[0].labels != tables[1].labels, differs[tables[0].rows])
    signed = [np.where(pairs.labels == 1, 1, -1)[:, None] for pairs in tables]
    planted = [
        pairs._replace(features=sign * (left - right)[pairs.rows])
        for pairs, sign, (left, right) in zip(tables, signed, [(chosen, rejected), other], strict=True)
    ]
    np.testing.assert_array_equal(planted[0].features, planted[1].features)
    with pytest.raises(AssertionError):  # planted: the sign of zeros is the label
        same_public_parts(*planted)


def test_a_file_whose_first_response_always_wins_does_not_show_it(tmp_path):
    winner, loser = responses()
    swap = np.random.default_rng(3).random(60) < 0.5
    labels = np.where(swap, 0, 1)
    first, second = (np.where(swap[:, None], *pair) for pair in ((loser, winner), (winner, loser)))
    table = write_jsonl(tmp_path / "a.jsonl", a=first.tolist(), b=second.tolist(), label=labels.tolist())
    sorted_by_winner = write_jsonl(tmp_path / "b.jsonl", a=winner.tolist(), b=loser.tolist(), label=[1] * 60)
    one, other = read_pairs(table, **BY_LABEL), read_pairs(sorted_by_winner, **BY_LABEL)
    same_public_parts(one, other)
    differs = (winner != loser).any(axis=1)[one.rows]
    np.testing.assert_array_equal(one.labels[differs], other.labels[differs])
    assert 10 < one.labels.sum() < 50


@pytest.mark.parametrize("missing", [None, math.nan, 0.5])
def test_ties_and_missing_labels_are_protected_or_declared(tmp_path, missing):
    first, second = responses()
    labels = [[1, 0, missing][row % 3] for row in range(60)]
    table = write_jsonl(tmp_path / "a.jsonl", a=first.tolist(), b=second.tolist(), label=labels)
    half = read_pairs(table, **BY_LABEL)
    assert half.labels.dtype == np.float32
    np.testing.assert_array_equal(half.labels == 0.5, half.rows % 3 == 2)
    coin = read_pairs(table, **BY_LABEL, ties="coin", key=KEY)
    assert coin.labels.dtype == np.int32
    same_public_parts(half._replace(labels=coin.labels), coin)
    tossed = coin.labels[half.labels == 0.5]
    assert abs(tossed.mean() - 0.5) < 5 * 0.5 / math.sqrt(len(tossed))
    np.testing.assert_array_equal(coin.labels[half.labels != 0.5], half.labels[half.labels != 0.5])
    drop = read_pairs(table, **BY_LABEL, ties="drop", ties_public=True)
    assert len(drop.labels) == 40
    assert "which rows tie is public" in str(drop.restate(CLAIM))
    assert half.restate(CLAIM) == coin.restate(CLAIM) == CLAIM
    clear = write_jsonl(tmp_path / "b.jsonl", a=first.tolist(), b=second.tolist(), label=[1] * 60)
    same_public_parts(half, read_pairs(clear, **BY_LABEL))
    with pytest.raises(AssertionError):  # planted: dropping ties shows them
        same_public_parts(drop, read_pairs(clear, **BY_LABEL, ties="drop", ties_public=True))


def test_duplicates_are_found_by_public_columns_alone(tmp_path):
    chosen, rejected = responses()
    ids = [row % 2 for row in range(60)]
    swap = np.random.default_rng(3).random(60) < 0.5
    other = [np.where(swap[:, None], *pair) for pair in ((rejected, chosen), (chosen, rejected))]
    kept, by_winner = [], []
    for number, (left, right) in enumerate([(chosen, rejected), other]):
        table = write_jsonl(tmp_path / f"{number}.jsonl", chosen=left.tolist(), rejected=right.tolist(), who=ids)
        pairs = read_pairs(table, **BY_WINNER, person="who", drop_duplicates=True, drop_identical=True)
        kept.append(pairs)
        by_winner.append(len({(*map(tuple, rows), who) for *rows, who in zip(left, right, ids, strict=True)}))
    same_public_parts(*kept)
    keys = {(frozenset([tuple(a), tuple(b)]), who) for a, b, who in zip(chosen, rejected, ids, strict=True)}
    assert len(kept[0].rows) == sum(len(pair) == 2 for pair, _ in keys) < 60
    assert by_winner[0] != by_winner[1]  # planted: rows that differ in who won are different rows
    first_rows = {}
    for row, (left, right, who) in enumerate(zip(chosen, rejected, ids, strict=True)):
        first_rows.setdefault((frozenset([tuple(left), tuple(right)]), who), row)
    assert set(kept[0].rows) <= set(first_rows.values())


def test_repeats_are_of_the_same_person():
    digests = np.array([[1, 1], [1, 1], [1, 1], [1, 2]], np.uint64)
    assert _mark_repeats(digests, None).tolist() == [False, True, True, False]
    assert _mark_repeats(digests, np.array(["b", "a", "b", "b"])).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"chosen": [[1, 2]], "rejected": [[1]]},
            "chosen and rejected must be lists of 2 numbers, got other values in 1 of",
        ),
        ({"chosen": ["Hi"], "rejected": ["Ho"]}, "lists of numbers, got .*: features are embeddings, not texts"),
        ({"chosen": [[1e300]], "rejected": [[1]]}, "must be lists of 1 numbers"),
        ({"chosen": [[10**400]], "rejected": [[1]]}, "must be lists of 1 numbers"),
        ({"chosen": [[True]], "rejected": [[1]]}, "must be lists of 1 numbers"),
        ({"chosen": [[1]], "loser": [[1]]}, "all lines: no column 'rejected' among"),
        ({"chosen": [], "rejected": []}, "the file is empty"),
    ],
)
def test_wrong_responses_are_refused_without_the_winner(tmp_path, columns, message):
    texts = set()
    for swap in (False, True) if "rejected" in columns else (False,):
        values = dict(zip(columns, reversed(columns.values()), strict=True)) if swap else columns
        with pytest.raises(ValueError, match=message) as caught:
            read_pairs(write_jsonl(tmp_path / "a.jsonl", **values), **BY_WINNER)
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.parametrize("name", ["a", "b", "label"])
def test_an_error_about_absent_values_only_counts(tmp_path, name):
    rows: list[dict[str, Any]] = [{"a": [1], "b": [0], "label": 1} for _ in range(3)]
    del rows[1][name]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=r"a\.jsonl, 1 of 3 lines: not all of the columns a, b, label; write null for"):
        read_pairs(tmp_path / "a.jsonl", **BY_LABEL)


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{}\n{"a": "\xe9"}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: not UTF-8 text"):
        read_pairs(tmp_path / "a.jsonl", **BY_LABEL)


@pytest.mark.parametrize("label", [2, "a", [1], -1, 10**400, {}])
def test_an_error_about_labels_only_counts(tmp_path, label):
    table = write_jsonl(tmp_path / "a.jsonl", a=[[1], [2]], b=[[0], [0]], label=[1, label])
    with pytest.raises(ValueError, match=r"^label must be 0, 1/2, 1 or missing, got 1 of 2 that are not$"):
        read_pairs(table, **BY_LABEL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chosen": "chosen"}, "columns must be first, second and label, or chosen and rejected"),
        ({"second": None}, "columns must be first, second and label, or chosen and rejected"),
        ({"second": "a"}, "columns of the two responses must differ, got 'a' for both"),
        ({"first": np.ones((2, 1))}, "first must be the name of a column or of a .npy file, got ndarray; for arrays"),
        ({"label": None}, "label must be given with first and second"),
        ({"tie": "tie"}, "tie only with chosen and rejected"),
        ({"ties": "drop"}, 'ties_public must be True with ties="drop"'),
        ({"ties_public": True}, 'ties_public must be True with ties="drop"'),
        ({"ties": "coin"}, 'key must be given for ties="coin"'),
        ({"key": KEY}, 'key must be given for ties="coin" or orient="coin", and None otherwise'),
        ({"ties": "lost"}, "ties must be one of half, coin, drop"),
        ({"drop_duplicates": "no"}, "drop_duplicates must be True or False, got 'no'"),
        ({"drop_identical": "no"}, "drop_identical must be True or False, got 'no'"),
        ({"table": None}, "table must be given for the columns a, b, label"),
        ({"table": "a.csv"}, r"table must end in .jsonl or .parquet, got 'a.csv'"),
        ({"person": "mixed"}, "mixed must be ids that are all text or all integers, got integer, text"),
        ({"first": "a.npy"}, "a.npy and b must be two columns of the table, or two .npy files"),
        ({"label": "labels.npy"}, r"labels.npy must have as many entries as a, 2, got 3"),
        ({"label": "a.npy"}, "a.npy must be one-dimensional"),
        ({"first": "bad.npy"}, "bad.npy must be a .npy file of numbers or text"),
        ({"first": "a.npy", "second": "labels.npy"}, "a.npy and labels.npy must be tables of .*float64 with one shape"),
        ({"first": "long.npy", "second": "longer.npy"}, "long.npy and longer.npy must be tables of .*, got float128"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "a.jsonl", a=[[1], [2]], b=[[0], [0]], label=[1, 0], mixed=[1, "1"])
    np.save("a.npy", np.ones((2, 1), np.float32))
    np.save("labels.npy", np.ones(3))
    np.save("long.npy", np.ones((2, 1), np.longdouble))
    np.save("longer.npy", np.ones((2, 1), np.longdouble))
    (tmp_path / "bad.npy").write_bytes(b"no array")
    values: dict[str, Any] = {"table": "a.jsonl", **BY_LABEL} | changes
    with pytest.raises(ValueError, match=message):
        read_pairs(values.pop("table"), **values)


def test_parquet_without_pyarrow_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"needs pyarrow: pip install 'jaxdp\[parquet\]'"):
        read_pairs(tmp_path / "a.parquet", **BY_WINNER)


def test_damaged_parquet_is_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="data: not a readable Parquet file"):
        read_pairs(tmp_path / "a.parquet", **BY_WINNER)
    pq.write_table(pa.table({"chosen": [[1.0]]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="schema: no column 'rejected' among"):
        read_pairs(tmp_path / "b.parquet", **BY_WINNER)
    texts = set()
    for columns in (
        {"chosen": [[1.0], [2.0]], "rejected": [[1.0], None]},
        {"chosen": [[1.0], None], "rejected": [[1.0], [2.0]]},
    ):
        pq.write_table(pa.table(columns), tmp_path / "c.parquet")
        with pytest.raises(ValueError, match="must be lists of 1 numbers, got other values in 1 of 2 rows") as caught:
            read_pairs(tmp_path / "c.parquet", **BY_WINNER)
        texts.add(str(caught.value))
    assert len(texts) == 1
