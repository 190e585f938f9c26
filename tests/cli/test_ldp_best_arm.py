"""The study of the best arm: what its texts and figure say, and errors."""

import math
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.studies import ldp_best_arm
from jaxdp.theory import ldp_bandits as theory

EPSILONS = [0.25, 1.0, 4.0, math.inf]


def made_up(num_seeds=200):
    """Makes stopping times of 1000 c^2, and of 100 c^3; the second learner errs in every tenth run."""
    cost, names = theory.noise_factor(EPSILONS), ["lil_ucb", "successive_elimination"]
    spread = np.random.default_rng(0).uniform(0.9, 1.1, (2, len(EPSILONS), num_seeds))
    rounds = (np.stack([1000 * cost**2, 100 * cost**3])[..., None] * spread).astype(np.int32)
    wrong = np.zeros(rounds.shape, bool)
    wrong[1, :, ::10] = True
    dims, coords = ("learner", "epsilon", "seed"), {"learner": names, "epsilon": EPSILONS}
    results = xr.Dataset(
        {"rounds": (dims, rounds), "censored": (dims, np.zeros(rounds.shape, bool)), "wrong": (dims, wrong)}, coords
    )
    return results.assign_coords(gap=0.4, failure_prob=0.05, delta=1e-6, num_arms=2, horizon=10**6)


def test_slopes():
    found = ldp_best_arm.slope(made_up())
    np.testing.assert_allclose(found["slope"], [1, 1.5], atol=0.02)
    assert (found.low < found["slope"]).all()
    assert (found["slope"] < found.high).all()
    assert (found.high - found.low < 0.05).all()


def test_slopes_of_runs_that_were_cut_off():
    results = made_up()
    results["censored"][0, 0, :120] = True
    assert np.isnan(ldp_best_arm.slope(results)["slope"].values).tolist() == [True, False]
    assert math.isinf(float(ldp_best_arm.medians(results)[0, 0]))
    assert np.isnan(ldp_best_arm.slope(results.sel(epsilon=[1.0, math.inf]))["slope"]).all()


def test_the_report():
    text = ldp_best_arm.report(made_up())
    assert "0.1000 (0.1" in text
    assert "slope" in text
    assert "Successive elimination  " in text  # the display name, not code
    assert "nan" not in text


def test_the_figure():
    figure = ldp_best_arm.figure(made_up())
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 2


def test_a_small_run():
    results = ldp_best_arm.ldp_best_arm(
        epsilon=[4.0], learner=["successive_elimination"], gap=0.9, horizon=60, num_seeds=8, key=jax.random.key(4)
    )
    assert results.rounds.sizes == {"learner": 1, "epsilon": 1, "seed": 8}
    assert (results.rounds <= 60).all()
    assert (results.rounds.where(results.censored, 60) == 60).any()
    assert not results.wrong.where(results.censored, False).any()


def test_every_learner_can_be_made():
    for make in ldp_best_arm.LEARNERS.values():
        made = make(3)
        assert made.done is not None
        assert made.guarantee(epsilon=1.0, **({"delta": 1e-6} if "gaussian" in repr(made) else {})).is_private


def test_errors():
    cases: Any = (
        ({"learner": ["rucb"]}, "learner must be one of pairwise_elimination, "),
        ({"num_arms": 1}, "num_arms must be an integer >= 2, got 1"),
        ({"gap": 1.5}, r"gap must be in \(0, 1\], got 1.5"),
        ({"gap": math.nan}, "gap must be > 0, got nan"),
        ({"failure_prob": 0.0}, r"failure_prob must be in \(0, 1\), got 0.0"),
        ({"horizon": 2}, "horizon must be an integer >= 3, got 2"),
    )
    for wrong, said in cases:
        with pytest.raises(ValueError, match=said):
            ldp_best_arm.ldp_best_arm(key=jax.random.key(4), **wrong)
