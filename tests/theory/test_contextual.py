"""The bounds of contextual bandits against numbers worked out by hand, their limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.theory import contextual as bounds

E = math.e
PRIVATE = {"epsilon": 0.5, "delta": math.exp(-4), "horizon": 8.0, "dim": 2}  # sqrt(ln(1 / delta)) / epsilon = 4
CASES = [  # function, arguments, the number by hand
    (bounds.linear_order, {**PRIVATE, "failure_prob": math.exp(-9)}, 4 * 3 * 8),
    (bounds.linear_order, {**PRIVATE, "failure_prob": math.exp(-9), "scale": 5.0, "corrected": True}, 5 * 2 * 3 * 8),
    (bounds.generalized_linear_order, {**PRIVATE, "dim": 8 / E, "failure_prob": math.exp(-9)}, 12 * (64 / E) ** 0.75),
    (bounds.joint_linear_order, {**PRIVATE, "horizon": 9.0, "dim": 16}, 3 * (16 + 8 * 2)),
    (bounds.joint_linear_order, {**PRIVATE, "horizon": 9.0, "dim": 16, "epsilon": np.inf}, 3 * 16),
    (  # lambda + T / d = e^2, so T / (lambda d) = e^2 / 2 - 1
        bounds.oful_upper,
        {"horizon": 2 * (E**2 - 2), "dim": 2, "failure_prob": math.exp(-2), "noise_proxy": 4.0},
        4 * math.sqrt(8 * (E**2 - 2)) * (math.sqrt(2) + 2 * math.sqrt(4 + 2 * (2 - math.log(2)))),
    ),
]
FIRST = {function: values for function, values, _ in reversed(CASES)}


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_by_hand(function, values, expected):
    np.testing.assert_allclose(function(**values), expected, rtol=1e-12)


def test_every_public_function_is_tried():
    public = {f for f in vars(bounds).values() if inspect.isfunction(f) and f.__module__ == bounds.__name__}
    assert {f for f in public if not f.__name__.startswith("_")} == set(FIRST)
    assert theory.contextual is bounds


def test_growth():
    """Checks the exponents of the claims, of the claims after tuning, and of the joint model."""
    horizon = np.array([1e4, 1e8])
    for corrected, privacy in ((False, 1), (True, 0.5)):
        by_rounds = bounds.linear_order(1.0, 1e-5, horizon, 5, corrected=corrected)
        by_epsilon = bounds.linear_order([1.0, 0.01], 1e-5, 1e4, 5, corrected=corrected)
        np.testing.assert_allclose(by_rounds[1] / by_rounds[0], 1e4**0.75, rtol=1e-12)
        np.testing.assert_allclose(by_epsilon[1] / by_epsilon[0], 100**privacy, rtol=1e-12)
    joint = bounds.joint_linear_order(1.0, 1e-5, horizon, 5)
    np.testing.assert_allclose(joint[1] / joint[0], 100, rtol=1e-12)
    assert bounds.linear_order(np.inf, 1e-5, 100, 5) == 0


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        (function, name, value)
        for function in FIRST
        for name, wrong in {
            "epsilon": (np.nan, 0.0, -1.0, "1", True),
            "delta": (np.nan, 0.0, 1.0),
            "horizon": (np.nan, 0.5, np.inf),
            "dim": (np.nan, 0.5, np.inf),
            "failure_prob": (np.nan, 0.0, 1.0),
            "regularizer": (np.nan, 0.5),
            "noise_proxy": (np.nan, 0.0),
            "scale": (0.0, np.inf, np.nan),
        }.items()
        if name in inspect.signature(function).parameters
        for value in wrong
    ],
)
def test_a_wrong_value(function, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*got"):
        function(**{**FIRST[function], name: value})


def test_fewer_rounds_than_dimensions():
    with pytest.raises(ValueError, match="horizon / dim must be > 1"):
        bounds.generalized_linear_order(**{**PRIVATE, "dim": 8})
