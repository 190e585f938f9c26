"""The study of locally private bandits: what its texts and figure say, and errors."""

import math
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

import jaxdp
from jaxdp.studies import ldp_bandits
from jaxdp.theory import ldp_bandits as theory

EPSILONS, HORIZONS = [0.5, 1.0, 4.0, math.inf], [10_000, 1_000_000, 10_000_000]


def made_up(num_seeds=12):
    """Makes regret of T^(3/4) c^(1/2) / 2, and of 30 T^(1/2) c."""
    names = ["convex", "two_point"]
    coords = {"problem": names, "horizon": HORIZONS, "epsilon": EPSILONS, "seed": range(num_seeds)}
    noise = np.random.default_rng(0).uniform(0.99, 1.01, [len(values) for values in coords.values()])
    noise = xr.DataArray(noise, coords, list(coords))
    cost = xr.DataArray(theory.noise_factor(EPSILONS), dims="epsilon")
    rounds = xr.DataArray(np.array(HORIZONS, float), dims="horizon")
    mean = xr.concat([rounds**0.75 * cost**0.5 / 2, rounds**0.5 * cost / 2], "problem")
    upper = [
        [[float(ldp_bandits.PROBLEMS[name].upper(e, rounds, 2)) for e in EPSILONS] for rounds in HORIZONS]
        for name in names
    ]
    trivial = [[ldp_bandits.PROBLEMS[name].trivial * rounds for rounds in HORIZONS] for name in names]
    results = xr.Dataset({"pseudo_regret": noise * mean}).assign(
        upper=(("problem", "horizon", "epsilon"), upper), trivial=(("problem", "horizon"), trivial)
    )
    return results.transpose("problem", "horizon", "epsilon", "seed").assign_attrs(dim=2)


def test_exponents_are_fitted_where_learners_learn():
    results = made_up()
    learns = ldp_bandits.learning(results, "convex")
    assert not learns.isel(horizon=0).any()
    assert learns.isel(horizon=-1).all()
    head, convex, two = ldp_bandits.exponents(results).splitlines()[1:]
    assert head.split()[0] == "T,"
    numbers = [float(cell.strip("()")) for cell in convex.split() if cell.strip("()").replace(".", "").isdigit()]
    np.testing.assert_allclose([numbers[0], numbers[3], numbers[7]], [0.75, 0.75, 0.5], atol=0.02)
    assert two.split()[-2:] == ["1.00", "2.00"]
    short = ldp_bandits.exponents(results.isel(horizon=[0]))
    assert short.splitlines()[2].split()[2:] == ["-", "-", "0.75", "-", "0.50", "1.00"]


def test_the_report():
    results = made_up()
    text = ldp_bandits.report(results)
    assert "stays below this bound at every point" in text
    assert "c^(1/2) for convex losses, where Table 1 has 1/ε" in text
    assert "c^(2/3)" in text
    above = results.assign(upper=results.upper / 100)
    assert "exceeds this bound for convex, two_point." in ldp_bandits.report(above)
    assert "nan" not in ldp_bandits.report(results.isel(seed=[0])).split("exponents")[0].replace("+- nan", "")


def test_the_figure():
    results = made_up()
    for chosen, panels in ((results, 2), (results.sel(epsilon=[math.inf]), 1)):
        figure = ldp_bandits.figure(chosen)
        FigureCanvasAgg(figure).draw()
        assert len(figure.axes) == panels
    right = ldp_bandits.figure(results).axes[1]
    heights = [np.asarray(line.get_ydata(), float) for line in right.get_lines()]
    ratio = theory.noise_factor(0.5) / theory.noise_factor(4.0)
    orders = sorted(height[-1] / height[0] for height in heights)
    np.testing.assert_allclose(orders, [ratio**0.5, ratio**0.5, ratio, ratio], rtol=0.01)


def test_a_small_run():
    results = ldp_bandits.ldp_bandits(
        problem=["two_point"], epsilon=[1.0, math.inf], horizon=[20, 10], num_seeds=3, key=jax.random.key(3)
    )
    assert results.pseudo_regret.sizes == {"problem": 1, "horizon": 2, "epsilon": 2, "seed": 3}
    assert results.horizon.values.tolist() == [10, 20]
    assert np.isfinite(results.pseudo_regret).all()
    assert results.trivial.values.tolist() == [[5.0, 10.0]]
    assert ldp_bandits.report(results)


def test_every_problem_can_be_made():
    for name, problem in ldp_bandits.PROBLEMS.items():
        learner, environment = problem.make(50, 2)
        assert learner.made_by is not None
        assert learner.made_by.name == problem.learner
        assert name in theory.TUNED
        assert problem.upper(1.0, 50, 2) > problem.upper(math.inf, 50, 2) > 0
        assert jaxdp.simulator(learner, environment, 50).params(epsilon=1.0, **problem.values)


def test_errors():
    cases: Any = (
        ({"problem": ["bilinear"]}, "problem must be one of"),
        ({"horizon": []}, "horizon must have at least one value"),
        ({"horizon": [1]}, "horizon must be"),
        ({"dim": 0}, "dim must be"),
    )
    for wrong, said in cases:
        with pytest.raises(ValueError, match=said):
            ldp_bandits.ldp_bandits(key=jax.random.key(3), **wrong)
