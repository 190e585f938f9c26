"""Ties in tables of comparisons, and battles of two models in CSV and JSON lines."""

import json

import numpy as np
import pytest

from jaxdp.preferences import ComparisonTable, read_comparisons
from jaxdp.preferences.tables import parse_comparisons

BATTLES = [
    ("gpt", "llama", "model_a"),
    ("llama", "gpt", "model_a"),
    ("gpt", "llama", "tie"),
    ("llama", "gpt", "model_b"),
    ("llama", "gpt", "both_bad"),
    ("gpt", "owl", "model_b"),
]


def check(table):
    assert table.items == ("gpt", "llama", "owl")
    assert table.pairs.tolist() == [[0, 1], [0, 2]]
    assert table.wins.tolist() == [2, 0]
    np.testing.assert_array_equal(table.ties, [2, 0])
    assert table.totals.tolist() == [5, 1]
    assert table.design()[1].tolist() == [1, 1, 0.5, 0.5, 0, 0]


def test_battles_in_csv(tmp_path):
    path = tmp_path / "battles.csv"
    rows = [f"{number},{a}, {b},{winner},en" for number, (a, b, winner) in enumerate(BATTLES)]
    path.write_text("question,model_a,model_b,winner,language\n" + "\n".join(rows))
    check(read_comparisons(path))


def test_battles_in_json_lines(tmp_path):
    path = tmp_path / "battles.jsonl"
    rows = [{"model_a": a, "turn": [1], "model_b": b, "winner": winner} for a, b, winner in BATTLES]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    check(read_comparisons(path))


def test_a_column_for_ties(tmp_path):
    winner, loser, tie = ["gpt", "gpt", "llama", "llama", "owl"], ["llama"] * 2 + ["gpt"] * 2 + ["gpt"], [0, 1, 0, 1, 0]
    weight = [2, 1, 1, 1, 1]
    check(ComparisonTable.from_arrays(winner, loser, weight, tie))
    check(ComparisonTable.from_arrays(winner, loser, weight, np.array(tie, bool)))
    path = tmp_path / "games.csv"
    rows = [
        f"{a},{b},{w},{t}" for a, b, w, t in zip(winner, loser, weight, ["", "TRUE", "0", "1", "false"], strict=True)
    ]
    path.write_text("winner,loser,weight,tie\n" + "\n".join(rows))
    check(read_comparisons(path))
    path = tmp_path / "games.jsonl"
    rows = [
        json.dumps({"winner": a, "loser": b, "weight": w, "tie": bool(t)})
        for a, b, w, t in zip(winner, loser, weight, tie, strict=True)
    ]
    path.write_text("\n".join(rows))
    check(read_comparisons(path))


@pytest.mark.parametrize("kind", ["bool", "int64"])
def test_ties_in_parquet(kind, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"winner": ["gpt", "gpt"], "loser": ["llama", "llama"], "tie": np.array([0, 1], kind)}
    pq.write_table(pa.table(columns), tmp_path / "games.parquet")
    table = read_comparisons(tmp_path / "games.parquet")
    np.testing.assert_array_equal([table.wins, table.ties, table.totals], [[1], [1], [2]])
    pq.write_table(pa.table({"model_a": ["a"], "model_b": ["b"], "winner": ["tie"]}), tmp_path / "games.parquet")
    with pytest.raises(ValueError, match="battles are read from CSV and JSON lines"):
        read_comparisons(tmp_path / "games.parquet")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "winner,loser,tie\na,b,2\n", r"x.csv, line 2: tie must be 0 or 1, true or false, got '2'"),
        ("x.csv", "model_a,winner\na,b\n", r"x.csv, line 1: missing columns \['model_b'\]"),
        (
            "x.csv",
            "model_a,model_b,winner\na,b,a\n",
            r"x.csv, line 2: winner must be one of model_a, model_b, tie, tie \(bothbad\), both_bad, got 'a'",
        ),
        ("x.csv", "model_a,model_b,winner\na,a,tie\n", "x.csv, line 2: model_a and model_b are both 'a'"),
        ("x.csv", "model_a,model_b,winner\na,,tie\n", "x.csv, line 2: model_b is empty"),
        ("x.jsonl", "", "x.jsonl, line 1: the file is empty"),
        ("x.jsonl", '\n{"model_a": "a"', "x.jsonl, line 2: not a JSON object"),
        ("x.jsonl", "[1]", r"x.jsonl, line 1: not a JSON object, got \[1\]"),
        ("x.jsonl", '{"winner": "a"}', r"x.jsonl, line 1: missing columns \['loser'\]"),
        ("x.jsonl", '{"winner": "a", "loser": null}', "x.jsonl, line 1: loser must be text or a number, got None"),
        ("x.jsonl", '{"winner": "a", "loser": NaN}', "x.jsonl, line 1: loser must be text or a number, got nan"),
        ("x.jsonl", '{"winner": true, "loser": "a"}', "x.jsonl, line 1: winner must be text or a number, got True"),
        ("x.jsonl", '{"winner": "a", "loser": "b", "winner": "b"}', r"x.jsonl, line 1: .* names \['winner'\]"),
        ("x.jsonl", '{"winner": "a", "loser": "b", "date": 1}', r"x.jsonl, line 1: unknown columns \['date'\]"),
    ],
)
def test_malformed_rows(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_comparisons(tmp_path / name)


def test_tables_without_ties_have_none():
    assert parse_comparisons(b"winner,loser\na,b\n", "x.csv").ties is None
