"""Which means are not worse: its level on equal learners, its power, and the sentences made from it."""

import numpy as np
import pytest
import xarray as xr

from jaxdp import Comparison
from jaxdp.comparisons._comparison import not_worse
from jaxdp.stats import paired

DATASETS = 2000


def equal_learners(count, num_seeds=10):
    """Draws data sets of learners with equal means in common worlds; each is a value of epsilon."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(count, DATASETS, num_seeds)) + rng.normal(size=(1, DATASETS, num_seeds))
    coords = {"learner": [f"learner {index}" for index in range(count)], "epsilon": np.arange(1.0, DATASETS + 1)}
    return xr.Dataset({"regret": (("learner", "epsilon", "seed"), values)}, coords)


def share_of_wrong_tables(is_not_worse):
    return float((~is_not_worse).any("learner").mean())


@pytest.mark.parametrize("count", [3, 6, 13])
def test_equal_learners_are_called_worse_in_at_most_one_table_of_twenty(count):
    dataset = equal_learners(count)
    error = np.sqrt(0.05 * 0.95 / DATASETS)
    assert share_of_wrong_tables(Comparison(dataset, "regret").not_worse()) <= 0.05 + 3 * error
    # Planted: Holm's correction of the comparisons with the least mean only, which the same data chose.
    if count == 13:
        wrong = 0
        for index in range(400):
            table = dataset.regret.isel(epsilon=index)
            least = table.learner.values[int(table.mean("seed").values.argmin())]
            wrong += bool((paired(table, "learner", against=least).p_adjusted <= 0.05).any())
        assert wrong / 400 > 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_clear_difference_is_shown_in_either_direction():
    rng = np.random.default_rng(4)
    values = np.array([1.0, 5.0, 1.2])[:, None, None] + 0.5 * rng.normal(size=(3, 1, 30))
    coords = {"learner": ["good", "bad", "close"], "epsilon": [1.0]}
    dataset = xr.Dataset({"score": (("learner", "epsilon", "seed"), values)}, coords)
    assert Comparison(dataset, "score").not_worse().values[:, 0].tolist() == [True, False, True]
    assert Comparison(dataset, "score", "largest").not_worse().values[:, 0].tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [np.uint32, np.int8])
def test_small_integers_are_compared_as_numbers(dtype):
    values = xr.DataArray(np.array([[1, 2, 3], [120, 121, 119]], dtype), {"learner": ["a", "b"]}, ("learner", "seed"))
    assert not_worse(values, "learner", "largest").values.tolist() == [False, True]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_mean_that_is_not_finite_is_not_good(value):
    dataset = equal_learners(3).isel(epsilon=[0])
    dataset["regret"].values[1, 0, 2] = value
    assert Comparison(dataset, "regret").not_worse().values[:, 0].tolist() == [True, False, True]


def test_shares_need_more_seeds():
    values = (np.arange(20).reshape(2, 1, 10) % 3 == 0).astype(float)
    dataset = xr.Dataset({"wrong": (("learner", "epsilon", "seed"), values)}, {"learner": ["a", "b"], "epsilon": [1.0]})
    with pytest.raises(ValueError, match=r"num_seeds must be >= 72 to compare shares such as wrong.* got 10"):
        Comparison(dataset, "wrong").not_worse()
