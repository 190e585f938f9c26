"""The study of duels of arms with features: what its texts and figure say, and errors."""

import math
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.studies import dueling_linear as study
from jaxdp.studies.declared import BoundStudy

EPSILONS, DIMS, ROUNDS = [0.1, 1.0, 10.0, math.inf], [2, 5], [10_000, 100_000, 1_000_000]


def made_up(num_seeds=12):
    """Makes regret of sqrt(T) plus 19 d / eps."""
    coords = {"dim": DIMS, "epsilon": EPSILONS, "round": ROUNDS, "seed": range(num_seeds)}
    noise = np.random.default_rng(0).uniform(0.99, 1.01, num_seeds)
    shape = xr.DataArray(np.ones([len(values) for values in coords.values()]), coords, list(coords))
    regret = shape * noise[None, None, None] * (shape["round"] ** 0.5 + 19 * shape.dim / shape.epsilon)
    left = xr.where(shape.epsilon > 0.5, shape, 3 * shape)
    return (
        xr.Dataset({"pseudo_regret": regret, "num_left": left, "correct": left == 1})
        .assign(uniform_regret=(("dim", "round"), [[2.0 * t for t in ROUNDS]] * 2))
        .assign_coords(gap=("dim", [0.1, 0.25]))
        .assign_attrs(num_arms=20)
    )


def lines_of(text):
    return {line.split("  ")[0]: line.split("  ", 1)[1].split() for line in text.splitlines()[2:]}


def test_the_texts():
    results = made_up()
    enough = lines_of(study.sufficient_epsilons(results))
    assert enough["d = 2"][:2] == ["10", "1"]  # of 100 and of 1000
    assert enough["d = 5"][:2] == ["10", "1"]
    costs = lines_of(study.costs(results))
    assert costs["d = 2"][0] == "38.0%"  # 380 of 1000
    assert costs["d = 5"][4] == "9.5%"  # after an interval
    assert lines_of(study.table(results))["d = 2"][-1] == "2,000,000"
    assert lines_of(study.decisions(results))["d = 5"] == ["0%,", "0%", *["100%,", "100%"] * 3]
    report = study.report(results)
    assert "0.100 (d = 2), 0.250 (d = 5)" in report
    for part in (study.table, study.decisions, study.costs, study.sufficient_epsilons):
        assert part(results) in report
    alone = results.sel(epsilon=[1.0])
    assert not study.costs(alone)
    assert not study.sufficient_epsilons(alone)
    assert "no verdict: at least 2 seeds are needed, got 1." in study.sufficient_epsilons(results.isel(seed=[0]))
    assert "regret after" in study.report(alone)


@pytest.mark.parametrize(("dims", "panels"), [([2, 5], 3), ([5], 2)])
def test_the_figure(dims, panels):
    figure = study.figure(made_up(3).sel(dim=dims))
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == panels


def test_a_small_run():
    made = study.STUDY.bind(epsilon=[1.0, math.inf], dim=[2], num_seeds=2, num_arms=4, horizon=200_000)
    assert isinstance(made, BoundStudy)
    results = made.simulate()
    assert results.pseudo_regret.dims == ("dim", "epsilon", "round", "seed")
    assert (results.pseudo_regret.diff("round") >= 0).all()
    assert (results.pseudo_regret < results.uniform_regret.isel(round=-1) * 2).all()
    assert bool(results.correct.sel(epsilon=math.inf).isel(round=-1).all())
    assert made.report(results)


def test_errors():
    cases: Any = (
        ({"dim": []}, "dim must have values"),
        ({"dim": [0]}, "dim must be"),
        ({"dim": [21]}, r"dim must have values in \[1, 20\]"),
        ({"num_arms": 1}, "num_arms must be"),
        ({"horizon": 10}, "horizon must be"),
        ({"number": -1}, "number must be"),
        ({"epsilon": [0.0]}, "epsilon must be"),
    )
    for wrong, said in cases:
        with pytest.raises(ValueError, match=said):
            study.dueling_linear(key=jax.random.key(5), **wrong)
