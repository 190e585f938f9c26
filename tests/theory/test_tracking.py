"""The bounds of tracking against numbers worked out by hand, their limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.theory import tracking as bounds

E_4 = math.exp(4)
N_T = {"num_experts": math.exp(5), "horizon": E_4}  # ln(NT) = 9, ln N = 5

CASES = [  # function, arguments, the number by hand
    (  # ln(NT/b) = 10
        bounds.window_upper,
        {"epsilon": 0.5, **N_T, "window": 4, "failure_prob": math.exp(-1)},
        16 * 10 / 0.5 + 9 * math.sqrt(40),
    ),
    (
        bounds.window_upper,
        {"epsilon": 0.5, **N_T, "window": 4, "failure_prob": math.exp(-1), "corrected": True},
        16 * 10 * 4 / 0.5 + 9 * math.sqrt(40),
    ),
    (bounds.shifting_upper, {"epsilon": 0.5, **N_T, "num_switches": 4}, 2 * 3 * math.exp(2) + 4 * 9 / 0.5),
    (bounds.shifting_upper, {"epsilon": math.inf, **N_T, "num_switches": 4, "scale": 2.0}, 12 * math.exp(2)),
    (
        bounds.shifting_lower,
        {"epsilon": 0.5, **N_T, "num_switches": math.exp(2)},
        math.exp(3) * math.sqrt(5) + math.exp(2) * 3 / 0.5,
    ),
    (  # ln(T/delta) = 6, epsilon^(2/3) = 1/4
        bounds.oblivious_upper,
        {"epsilon": 0.125, **N_T, "num_switches": 4, "delta": math.exp(-2)},
        6 * math.exp(2) + 4 * math.exp(4 / 3) * 6 * 9 * 4,
    ),
    (bounds.adaptive_lower, {"epsilon": 0.5, "horizon": 4 * E_4, "num_switches": 3}, 3 / 4),
    (bounds.adaptive_lower, {"epsilon": 1e-3, "horizon": 4 * E_4, "num_switches": 3}, 4 * E_4),
    (bounds.adaptive_upper, {"epsilon": 0.5, **N_T, "num_switches": 4}, (2 * math.exp(2) * 27 + 36) / 0.5),
]
FIRST = {function: values for function, values, _ in reversed(CASES)}  # one grid point for each function


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_by_hand(function, values, expected):
    found = function(**values)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_every_public_function_is_tried():
    public = {f for f in vars(bounds).values() if inspect.isfunction(f) and f.__module__ == bounds.__name__}
    assert {f for f in public if not f.__name__.startswith("_")} == set(FIRST)
    assert theory.tracking is bounds


@pytest.mark.parametrize("function", FIRST)
def test_more_privacy_costs_more_and_none_is_the_limit(function):
    epsilons = np.array([1e-3, 0.1, 1.0, 30.0, 1e12, np.inf])
    found = function(**{**FIRST[function], "epsilon": epsilons})
    assert np.isfinite(found).all()
    assert np.all(np.diff(found) <= 0)
    np.testing.assert_allclose(found[-2], found[-1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("function", FIRST)
def test_arguments_broadcast(function):
    values, horizons = FIRST[function], np.array([100.0, 1000.0])
    found = function(**{**values, "epsilon": np.array([[0.5], [1.0], [np.inf]]), "horizon": horizons})
    assert found.shape == (3, 2)
    assert found[1, 0] == pytest.approx(function(**{**values, "epsilon": 1.0, "horizon": 100.0}), rel=1e-12)


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        (function, name, value)
        for function, values in FIRST.items()
        for name, wrong in {
            "epsilon": (np.nan, 0.0, -1.0, "1", True),
            "horizon": (np.nan, 1, np.inf),
            "num_experts": (np.nan, 1, np.inf),
            "num_switches": (np.nan, -1, np.inf, 1e9),
            "window": (0, 1e9),
            "failure_prob": (0.0, 1.0),
            "delta": (0.0, 1.0, np.nan),
            "scale": (0.0, np.inf, np.nan),
        }.items()
        if name in inspect.signature(function).parameters
        for value in wrong
    ],
)
def test_a_wrong_value(function, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*got"):
        function(**{**FIRST[function], name: value})


def test_lower_bounds_lie_below_upper_ones():
    grid = {"epsilon": np.array([0.1, 1.0]), "horizon": 1e5, "num_experts": 100}
    for switches in (1, 10):
        assert np.all(
            bounds.shifting_lower(**grid, num_switches=switches) <= bounds.shifting_upper(**grid, num_switches=switches)
        )
    with pytest.raises(ValueError, match="num_switches must be <= num_experts, got 101"):
        bounds.shifting_lower(**grid, num_switches=101)
    with pytest.raises(ValueError, match="num_switches must be > 0, got 0"):
        bounds.shifting_lower(**grid, num_switches=0)
