"""Shared parts of studies that compare learners: rows of means, fits, thresholds and names."""

import math

import numpy as np
import pytest
import xarray as xr

from jaxdp.studies import comparison
from jaxdp.studies.command import mean_and_half_width

COORDS = {"learner": ["one", "two"], "epsilon": [0.5, 2.0, math.inf], "seed": range(4)}


def made_up():
    noise = np.random.default_rng(0).uniform(900, 1100, [len(values) for values in COORDS.values()])
    return xr.DataArray(noise, COORDS, list(COORDS))


def cells(line):
    return [cell for cell in line.split("  ") if cell]


def test_rows_of_means():
    """Checks the order of the labels, with other rows below; NaN is a dash if asked for."""
    values = made_up()
    values.loc[{"learner": "one", "epsilon": 2.0}] = np.nan
    mean, half = mean_and_half_width(values)
    text = comparison.mean_table("title", values, {"two": "B", "one": "A"}, below={"level": 7000.4, "each": [1, 2, 3]})
    title, head, second, first, level, each = text.splitlines()
    assert title == "title"
    assert [cell.strip() for cell in cells(head)] == ["ε = 0.5", "ε = 2", "ε = ∞ (no privacy)"]
    assert [cell.strip() for cell in cells(second)] == [
        "B",
        *(f"{m:,.0f} +- {h:,.0f}" for m, h in zip(mean[1].values, half[1].values, strict=True)),
    ]
    assert first.startswith("A ")
    assert "nan +- nan" in first
    assert [cell.strip() for cell in cells(level)] == ["level", *["7,000"] * 3]
    assert [cell.strip() for cell in cells(each)] == ["each", "1", "2", "3"]
    (row,) = comparison.mean_rows(values, {"one": "A"}, half=half + 1, digits=2, dash=True)
    assert row[2] == "-"
    assert row[1] == f"{float(mean[0, 0]):.2f} +- {float(half[0, 0]) + 1:.2f}"
    turned = values.transpose("epsilon", "seed", "learner")
    assert comparison.mean_rows(turned, {"two": "B"}) == comparison.mean_rows(values, {"two": "B"})


def test_exponents():
    rounds = np.array([10.0, 100.0, 1000.0])
    noise = np.random.default_rng(1).uniform(0.99, 1.01, (3, 20))
    values = xr.DataArray(noise * rounds[:, None] ** -0.5, {"round": rounds}, ("round", "seed"))
    assert comparison.exponent(values, "round").startswith("-0.50 (-0.5")
    assert comparison.exponent(values, "round", sign=-1).startswith("0.50 (0.")
    kept = np.array([True, False, False])
    assert comparison.exponent(values, "round", kept) == "-"
    bent = values * xr.DataArray([1.0, 1.0, 10.0], dims="round")
    assert comparison.exponent(bent, "round", ~kept).startswith("0.50")
    assert not comparison.exponent(bent, "round").startswith("0.50")
    assert "nan" in comparison.exponent(values.isel(seed=[0]), "round")
    flat = comparison.exponent(xr.ones_like(values), "round", sign=-1)
    assert flat == "0.00 (0.00 to 0.00)"


def test_thresholds():
    values = made_up() / 10 + xr.DataArray([1500.0, 900.0, 900.0], dims="epsilon")  # 90 to 110 besides
    free = xr.DataArray([1000.0] * 4, dims="seed")

    def rows(found):
        return [[name, comparison.format_threshold(found.sel(learner=name))] for name in COORDS["learner"]]

    text = comparison.sufficient_epsilon_table("enough", values, free, ["from"], rows, ending=" (95%)")
    assert text.splitlines()[0] == "enough (95%)"
    assert [line.split()[1] for line in text.splitlines()[2:]] == ["2", "2"]
    far = comparison.sufficient_epsilon_table("enough", values + 500, free, ["from"], rows)
    assert [cells(line)[1].strip() for line in far.splitlines()[2:]] == ["none of these"] * 2
    alone = comparison.sufficient_epsilon_table("enough", values.isel(seed=[0]), free, ["from"], rows, ending=" (95%)")
    assert alone == "enough: no verdict: at least 2 seeds are needed, got 1."


def test_names_and_epsilons():
    assert comparison.select_names([], {"a": 1, "b": 2}) == ["a", "b"]
    assert comparison.select_names(["b"], ["a", "b"]) == ["b"]
    with pytest.raises(ValueError, match="problem must be one of a, b, got 'c'"):
        comparison.select_names(["c"], ["a", "b"], "problem")
    assert comparison.nearest_epsilon(made_up().to_dataset(name="regret")) in (0.5, 2.0)
    assert comparison.nearest_epsilon(made_up().sel(epsilon=[math.inf]).to_dataset(name="regret")) == math.inf
