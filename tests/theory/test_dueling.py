"""DP-Dueling's bounds against numbers worked out by hand, their limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.preferences import lower_bound_matrix, preference_gaps
from jaxdp.theory import dueling as bounds

E_4 = math.exp(4)  # ln T = 4 and ln(T)^2.5 = 32
GAPS = [0.25, 0.5]  # 1 / Delta sums to 6, K = 3

CASES = [  # function, arguments, the number by hand
    (  # ln(KT) = ln 3 + 4: 16 6 (ln 3 + 4) + 2 128 32 (ln 3 + 4) / (1/2)
        bounds.regret_upper,
        {"epsilon": 0.5, "horizon": E_4, "gaps": GAPS},
        (96 + 16384) * (math.log(3) + 4),
    ),
    (bounds.regret_upper, {"epsilon": math.inf, "horizon": E_4, "gaps": GAPS}, 96 * (math.log(3) + 4)),
    (bounds.regret_upper, {"epsilon": 2.0, "horizon": E_4, "gaps": [0.125]}, (128 + 2048) * (math.log(2) + 4)),
    (bounds.regret_lower, {"epsilon": 0.5, "horizon": E_4, "gaps": GAPS}, 24 + 6),
    (bounds.regret_lower, {"epsilon": 0.5, "horizon": E_4, "gaps": GAPS, "scale": 0.1}, 3.0),
    (bounds.regret_lower, {"epsilon": math.inf, "horizon": E_4, "gaps": [0.125]}, 32.0),
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
    assert theory.dueling is bounds


def test_on_the_lower_bounds_instance():
    gaps = preference_gaps(lower_bound_matrix(5))[1:]
    assert bounds.regret_lower(1.0, E_4, gaps) == pytest.approx(4 * 4 * 4 + 5)


@pytest.mark.parametrize("function", FIRST)
def test_more_privacy_costs_more_and_none_is_the_limit(function):
    epsilons = np.array([1e-3, 0.1, 1.0, 30.0, 1e9, np.inf])
    found = function(epsilons, E_4, GAPS)
    assert np.isfinite(found).all()
    assert np.all(np.diff(found) <= 0)
    np.testing.assert_allclose(found[-2], found[-1], rtol=1e-6)
    tiny = function(np.array([1e-8, 1e-9]), E_4, GAPS)  # 1 / epsilon takes over
    assert np.log10(tiny[1] / tiny[0]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("function", FIRST)
def test_arguments_broadcast(function):
    gaps = np.array([[0.25, 0.5], [0.1, 0.2]])
    found = function(np.array([[0.5], [1.0], [np.inf]]), np.array([100, 1000]), gaps)
    assert found.shape == (3, 2)
    assert found[1, 0] == function(1.0, 100, gaps[0])
    assert found[2, 1] == function(np.inf, 1000, gaps[1])


@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (np.nan, 0.0, -1.0, [1.0, np.nan], "1", True)),
        *(("horizon", value) for value in (np.nan, 0, 1, -5, np.inf, [100, np.nan], "9")),
        *(("gaps", value) for value in (np.nan, [np.nan, 0.1], [0.0], [0.1, -0.1], [0.1, 0.6], [np.inf], 0.2, [])),
    ],
)
def test_a_wrong_value(function, name, value):
    with pytest.raises(ValueError, match=rf"{name} must .*got"):
        function(**{**FIRST[function], name: value})


def test_a_wrong_scale_or_fewer_rounds_than_arms():
    for scale in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"scale must be in \(0, inf\), got"):
            bounds.regret_lower(1.0, 10, GAPS, scale=scale)
    with pytest.raises(ValueError, match=r"horizon must be finite and >= 3, got 2.0"):
        bounds.regret_upper(1.0, 2, GAPS)
    with pytest.raises(ValueError, match=r"gaps must be <= 0.5, got 0.6"):
        bounds.regret_upper(1.0, 5, [0.2, 0.6])
