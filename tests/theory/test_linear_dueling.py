"""DP-Dueling's bound for arms with features against numbers worked out by hand, its limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.theory import linear_dueling as bounds

# b = 1/2: ln(T / b) = 8 + 2 ln 2, ln(d T / b) = 8 + 3 ln 2, ln(T kappa^2 / d) = 8 - 4 ln 2
T, D = 2 * math.exp(8), 2
VALUES = {"horizon": T, "dim": D, "failure_prob": 0.5, "slope": 0.25}
LEARNING = 4 * 2 * math.sqrt(2) * math.exp(4) * (8 + 2 * math.log(2))
PRIVATE = 4 * (8 + 3 * math.log(2)) * (8 - 4 * math.log(2))  # epsilon = 1, without the power of d


def test_by_hand():
    for function, power in ((bounds.regret_upper, 6), (bounds.corrected_regret_upper, 3)):
        np.testing.assert_allclose(function(math.inf, **VALUES), LEARNING, rtol=1e-12)
        np.testing.assert_allclose(function(0.5, **VALUES), LEARNING + 2 * D**power * PRIVATE, rtol=1e-12)
        np.testing.assert_allclose(function(0.5, **VALUES, scale=3.0), 3 * function(0.5, **VALUES), rtol=1e-12)
        assert function(0.5, **VALUES).dtype == np.float64
    np.testing.assert_allclose(bounds.free_from(**VALUES), D**6 * PRIVATE / LEARNING, rtol=1e-12)


def test_every_public_function_is_tried():
    public = {f for f in vars(bounds).values() if inspect.isfunction(f) and f.__module__ == bounds.__name__}
    assert {f.__name__ for f in public if not f.__name__.startswith("_")} == {
        "regret_upper",
        "corrected_regret_upper",
        "free_from",
    }
    assert theory.linear_dueling is bounds


def test_arguments_broadcast_and_privacy_is_free_of_many_rounds():
    found = bounds.regret_upper(np.array([[0.5], [np.inf]]), np.array([1e4, 1e6, 1e8]), 3, failure_prob=0.1, slope=0.1)
    assert found.shape == (2, 3)
    ratios = found[0] / found[1]
    assert np.all(np.diff(ratios) < 0)
    assert np.all(ratios > 1)
    free = bounds.free_from(np.array([1e8, 1e12, 1e16]), 2, failure_prob=0.1, slope=0.1)
    assert np.all(np.diff(free) < 0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("epsilon", 0.0, "epsilon must be > 0"),
        ("epsilon", np.nan, "epsilon must be > 0"),
        ("horizon", 1, "horizon must be finite and >= 2"),
        ("horizon", 30.0, r"horizon \* slope\^2 / dim must be > 1"),
        ("dim", 0, "dim must be finite and >= 1"),
        ("failure_prob", 1.0, r"failure_prob must be in \(0, 1\)"),
        ("slope", 0.3, r"slope must be in \(0, 0.25\)"),
        ("scale", 0.0, r"scale must be in \(0, inf\)"),
    ],
)
def test_a_wrong_value(name, value, said):
    for function in (bounds.regret_upper, bounds.corrected_regret_upper):
        with pytest.raises(ValueError, match=said):
            function(**{"epsilon": 1.0, **VALUES, name: value})
