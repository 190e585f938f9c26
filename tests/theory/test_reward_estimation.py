"""DP-Reward's bounds against numbers worked out by hand, their limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.estimation.noisy_statistic import noise_multiplier
from jaxdp.theory import reward_estimation as bounds

THREE = math.log(3)  # at this epsilon e^eps - 1 = 2, and randomized response reports the truth with probability 3/4
HALF = math.log(2) / 2  # with L = 1 and B = HALF: exp(2 L B) = 2
E_E = math.exp(math.e)  # ln ln n = 1
MODEL = {"feature_norm": 1.0, "radius": HALF}  # gamma = 1 / (2 + 1/2 + 2) = 2/9
ALPHA = math.exp(-4)  # ln(1 / alpha) = 4

CASES = [  # function, arguments, the number by hand
    (bounds.curvature, MODEL, 2 / 9),
    (bounds.curvature, {"feature_norm": 2.0, "radius": math.log(3) / 4}, 1 / (2 + 1 / 3 + 3)),
    (bounds.plackett_luce_curvature, MODEL, 1 / 8),
    (bounds.coverage, {"covariance": [[2.0, 1.0], [1.0, 2.0]]}, 1.0),
    (bounds.largest_coverage, {"feature_norm": 3.0, "dim": 2}, 4.5),
    (bounds.largest_coverage, {"feature_norm": 3.0, "dim": 2, "corrected": True}, 18.0),
    (bounds.local_semi_norm_lower, {"epsilon": THREE, "num_samples": 10, "dim": 2}, 0.2 * 5 / 4),
    (bounds.local_l2_lower, {"epsilon": THREE, "num_samples": 10, "dim": 2, "feature_norm": 2.0}, 0.5 * 0.25),
    (
        bounds.local_l2_lower,
        {"epsilon": THREE, "num_samples": 10, "dim": 2, "feature_norm": 2.0, "corrected": True},
        0.125 * 0.25,
    ),
    (  # (9/2) (4/2) sqrt((5 + 4) / 900) + sqrt(0.25) HALF
        bounds.local_semi_norm_upper,
        {"epsilon": THREE, "num_samples": 900, "dim": 5, **MODEL, "failure_prob": ALPHA, "ridge": 0.25},
        9 * 0.1 + HALF / 2,
    ),
    (
        bounds.local_semi_norm_upper,
        {
            **{"epsilon": THREE, "num_samples": 900, "dim": 5, **MODEL, "failure_prob": ALPHA, "ridge": 0.25},
            **{"scale": 3.0, "bias_scale": 4.0},
        },
        2.7 + 2 * HALF,
    ),
    (  # (1 / (2/9 1/2)) 2 sqrt((1 + 4) / e^e)
        bounds.local_l2_upper,
        {"epsilon": THREE, "num_samples": E_E, **MODEL, "coverage": 0.5, "failure_prob": ALPHA},
        18 * math.sqrt(5 / E_E),
    ),
    (
        bounds.local_l2_upper,
        {"epsilon": THREE, "num_samples": E_E, **MODEL, "coverage": 0.5, "failure_prob": ALPHA, "corrected": True},
        18 * math.sqrt(5 / E_E) * 3 / 8,
    ),
    (  # (1 / (1/8 1/2)) ((3 + 4) / 2) sqrt(5 / e^e)
        bounds.plackett_luce_l2_upper,
        {"epsilon": THREE, "num_samples": E_E, "num_actions": 5, **MODEL, "coverage": 0.5, "failure_prob": ALPHA},
        56 * math.sqrt(5 / E_E),
    ),
    (  # kappa 4/5 of it
        bounds.plackett_luce_l2_upper,
        {
            **{"epsilon": THREE, "num_samples": E_E, "num_actions": 5, **MODEL, "coverage": 0.5},
            **{"failure_prob": ALPHA, "corrected": True},
        },
        70 * math.sqrt(5 / E_E),
    ),
    (
        bounds.central_l2_lower,
        {"epsilon": 0.4, "num_samples": 10, "dim": 2, "feature_norm": 2.0, "delta": 0.1},
        4 / 40 + 2 / 25,
    ),
    (
        bounds.central_l2_lower,
        {"epsilon": 0.4, "num_samples": 10, "dim": 2, "feature_norm": 2.0, "delta": 0.1, "corrected": True},
        4 / 160 + 2 / 25,
    ),
    (  # [sqrt(4 / 100) + 7 (3 + 2) / 100] / (1/2 2/9)
        bounds.central_l2_upper,
        {
            **{"num_samples": 100, "dim": 9, **MODEL, "coverage": 0.5},
            **{"failure_prob": ALPHA, "noise_stddev": 7.0, "scale": 2.0},
        },
        2 * 9 * (0.2 + 0.35),
    ),
    (  # sqrt(8 2 + 4 1/2) / (1/2) = 2 sqrt(18)
        bounds.objective_perturbation_stddev,
        {"epsilon": 0.5, "delta": 2 * math.exp(-2), "feature_norm": 3.0},
        6 * math.sqrt(18),
    ),
    (
        bounds.central_sample_size,
        {"dim": 5, "feature_norm": 2.0, "coverage": 0.5, "failure_prob": 5 * math.exp(-3)},
        8 * 4 * 3 / 0.5,
    ),
    (
        bounds.central_sample_size,
        {"dim": 5, "feature_norm": 2.0, "coverage": 0.5, "failure_prob": 5 * math.exp(-3), "corrected": True},
        32 * 4 * 3 / 0.5,
    ),
    (bounds.central_semi_norm_lower, {"epsilon": 0.5, "num_samples": 10, "dim": 2}, 0.2 + 0.16),
]
FIRST = {function: values for function, values, _ in reversed(CASES)}  # one grid point for each function
OF_EPSILON = [function for function, values in FIRST.items() if "epsilon" in values]


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_by_hand(function, values, expected):
    found = function(**values)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_every_public_function_is_tried():
    own = {f for f in vars(bounds).values() if inspect.isfunction(f) and f.__module__ == bounds.__name__}
    public = {getattr(bounds, name) for name in bounds.__all__}
    assert {f for f in own if not f.__name__.startswith("_")} <= public == set(FIRST)
    assert theory.reward_estimation is bounds


@pytest.mark.parametrize("function", OF_EPSILON)
def test_more_privacy_costs_more_and_none_is_the_limit(function):
    values = {**FIRST[function]}
    if function is bounds.central_l2_lower:
        values["delta"] = 0.0
    epsilons = np.array([1e-3, 0.1, 1.0, 3.0, 30.0, 800.0, np.inf])
    found = function(**{**values, "epsilon": epsilons})
    assert np.isfinite(found).all()
    assert np.all(np.diff(found) <= 0)
    if function is not bounds.objective_perturbation_stddev:
        np.testing.assert_allclose(found[-2], found[-1], rtol=0.2)
        assert found[-1] > 0
    tiny = function(**{**values, "epsilon": np.array([1e-6, 1e-7])})  # a power of 1 / epsilon takes over
    power = np.log10(tiny[1] / tiny[0])
    squared = function.__name__.endswith("lower")
    assert power == pytest.approx(2 if squared else 1, abs=1e-3)


def test_without_privacy_the_price_vanishes():
    no = {"epsilon": np.inf, "num_samples": 10, "dim": 2}
    assert bounds.local_semi_norm_lower(**no) == bounds.central_semi_norm_lower(**no) == 0.2
    assert bounds.local_l2_lower(**no, feature_norm=2.0) == bounds.central_l2_lower(**no, feature_norm=2.0) == 0.1
    assert bounds.objective_perturbation_stddev(np.inf, 0.1, 1.0) == 0
    printed = bounds.local_l2_upper(**FIRST[bounds.local_l2_upper])
    assert bounds.local_l2_upper(**{**FIRST[bounds.local_l2_upper], "corrected": True}) < printed


def test_two_actions_are_a_comparison():
    values = {**FIRST[bounds.local_l2_upper]}
    ratio = bounds.plackett_luce_l2_upper(**values, num_actions=2) / bounds.local_l2_upper(**values)
    assert ratio == pytest.approx((2 / 9) / (1 / 8))  # except gamma


def test_the_paper_noise_is_the_estimators_noise():
    for epsilon in (0.1, 1.0, 5.0):
        expected = noise_multiplier(epsilon, 1e-3, "paper")
        assert bounds.objective_perturbation_stddev(epsilon, 1e-3, 1.0) == pytest.approx(expected)


def test_arguments_broadcast():
    found = bounds.local_semi_norm_lower(np.array([[0.5], [1.0]]), np.array([10, 100, 1000]), 3)
    assert found.shape == (2, 3)
    assert found[1, 2] == bounds.local_semi_norm_lower(1.0, 1000, 3)
    assert bounds.coverage(np.stack([np.eye(2), 2 * np.eye(2)])).tolist() == [1, 2]
    assert bounds.coverage(np.zeros((0, 2, 2))).tolist() == []


def wrong_values():
    zero_is_fine = {"ridge", "delta", "noise_stddev", "covariance"}
    for function, values in FIRST.items():
        for name in inspect.signature(function).parameters:
            if name == "corrected":
                continue
            wrong = [np.nan, np.array([1.0, np.nan]) if name != "covariance" else [[np.nan]]]
            wrong += [] if name in zero_is_fine else [0.0, -1.0]
            wrong += [] if name == "epsilon" else [np.inf]
            wrong += {"failure_prob": [1.0, 1.5], "delta": [-0.1, 1.0], "ridge": [-1.0], "num_actions": [1]}.get(
                name, []
            )
            for value in wrong:
                yield pytest.param(function, values, name, value, id=f"{function.__name__}-{name}={value}")


@pytest.mark.parametrize(("function", "values", "name", "value"), list(wrong_values()))
def test_a_wrong_value(function, values, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*got"):
        function(**{**values, name: value})


def test_too_few_samples_and_too_large_a_failure_prob_for_one_pass():
    values = FIRST[bounds.local_l2_upper]
    with pytest.raises(ValueError, match=r"num_samples must be finite and >= 4, got 3.0"):
        bounds.local_l2_upper(**{**values, "num_samples": 3})
    with pytest.raises(ValueError, match=r"failure_prob must be in \(0, 0.367879\), got 0.4"):
        bounds.local_l2_upper(**{**values, "failure_prob": 0.4})
    with pytest.raises(ValueError, match=r"epsilon must be > 0, got -1.0 at index \(1,\)"):
        bounds.local_l2_upper(**{**values, "epsilon": [1.0, -1.0]})
    with pytest.raises(ValueError, match="epsilon must be numbers"):
        bounds.local_l2_upper(**{**values, "epsilon": "1"})


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[2.0, 1.0], [0.5, 2.0]], "covariance must be symmetric, got entries that differ from their transpose by 0.5"),
        ([2.0, 1.0], r"covariance must have shape \[..., dim, dim\], got \(2,\)"),
        (np.ma.array([[2.0]], mask=[[True]]), "covariance must have no masked entries"),
    ],
)
def test_a_coverage_is_that_of_symmetric_matrices(covariance, message):
    with pytest.raises(ValueError, match=message):
        bounds.coverage(covariance)
