"""Differences of all pairs: SciPy's p-values for each pair, Bonferroni by hand."""

import itertools

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp.stats import all_pairs

NAMES = ["a", "b", "c", "d"]


def values(num_seeds=9):
    rng = np.random.default_rng(0)
    own = np.array([3.0, 2.0, 2.0, 1.5])[:, None, None] + rng.normal(size=(4, 2, num_seeds))
    return xr.DataArray(
        own + rng.normal(size=(1, 2, num_seeds)),
        {"learner": NAMES, "epsilon": [0.5, 1.0]},
        ("learner", "epsilon", "seed"),
    )


def test_each_pair_is_as_in_scipy():
    given = values()
    pairs = all_pairs(given, "learner", confidence=0.9)
    for (first, second), epsilon in itertools.product(itertools.permutations(NAMES, 2), (0.5, 1.0)):
        one, other = (given.sel(learner=name, epsilon=epsilon).values for name in (first, second))
        test = scipy.stats.ttest_rel(one, other)
        interval = test.confidence_interval(1 - 0.1 / 6)
        pair = pairs.sel(learner=first, against=second, epsilon=epsilon)
        assert float(pair.difference) == pytest.approx(np.mean(one - other))
        assert (float(pair.low), float(pair.high)) == pytest.approx((interval.low, interval.high))
        assert float(pair.p_adjusted) == pytest.approx(min(1.0, 6 * test.pvalue))
        assert (float(pair.p_adjusted) < 0.1) == (not float(pair.low) <= 0 <= float(pair.high))


def test_the_diagonal_and_a_single_label():
    pairs = all_pairs(values(), "learner")
    for name in NAMES:
        same = pairs.sel(learner=name, against=name)
        assert (same.difference == 0).all()
        assert (same.p_adjusted == 1).all()
    alone = all_pairs(values().isel(learner=[1]), "learner")
    assert alone.sizes == {"against": 1, "learner": 1, "epsilon": 2}
    assert (alone.p_adjusted == 1).all()


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"confidence must be .* got 1"):
        all_pairs(values(), "learner", confidence=1.0)
    with pytest.raises(ValueError, match="along 'algorithm'"):
        all_pairs(values(), "algorithm")
