"""The bounds of locally private bandits against numbers worked out by hand, their limits, and refusals."""

import inspect
import math

import numpy as np
import pytest

from jaxdp import theory
from jaxdp.theory import ldp_bandits as bounds

LN_3 = math.log(3)  # c = 2
E_4 = math.exp(4)
CASES = [  # function, arguments, the number by hand
    (bounds.noise_factor, {"epsilon": LN_3}, 2.0),
    (bounds.claimed_order, {"problem": "convex", "epsilon": 0.5, "horizon": 16.0}, 8 / 0.5),
    (bounds.claimed_order, {"problem": "two_point", "epsilon": 0.5, "horizon": 16.0, "scale": 3.0}, 3 * 4 / 0.25),
    (bounds.claimed_order, {"problem": "two_point_strongly_convex", "epsilon": 0.5, "horizon": E_4}, 4 / 0.25),
    (bounds.tuned_order, {"problem": "convex", "epsilon": LN_3, "horizon": 16.0}, 8 * math.sqrt(2)),
    (bounds.tuned_order, {"problem": "smooth", "epsilon": LN_3, "horizon": 8.0}, 4 * 2 ** (2 / 3)),
    (bounds.tuned_order, {"problem": "linear", "epsilon": 0.25, "horizon": 16.0}, 8 * 2),
    (bounds.tuned_order, {"problem": "multi_armed_stochastic", "epsilon": LN_3, "horizon": E_4}, 4 * 4),
    (  # del = sqrt(2 * 4 / 2) / 20 = 1 / 10
        bounds.fkm_upper,
        {"second_moment": 16.0, "horizon": 160_000.0, "dim": 2, "lipschitz": 0.5},
        2 * 4 * 400 * 10 + 2 * 160_000 / 10,
    ),
    (  # D = 2, s = 5: del = sqrt(2 * 4 * 4 / 5 / G) / 20 = 1 / 10
        bounds.fkm_upper,
        {"second_moment": 16.0, "horizon": 160_000.0, "dim": 4, "lipschitz": 1.6, "domain": "box"},
        2 * 4 * 4 * 400 * 10 + 5 * 1.6 * 160_000 / 10,
    ),
    (  # del = R: the bound of one who stays at the centre
        bounds.fkm_upper,
        {"second_moment": 16.0, "horizon": 1.0, "dim": 2, "lipschitz": 0.5, "radius": 0.5},
        2 * 4 + 4 * 0.5 * 0.5,
    ),
    (  # d^2 M2 (1 + ln T) / mu = 320, del = (320 / (4 E_4 * 0.5))^(1/3) > 1
        bounds.strongly_convex_one_point_upper,
        {"second_moment": 4.0, "horizon": E_4, "dim": 2, "strong_convexity": 0.25, "lipschitz": 0.5},
        160 + 2 * E_4,
    ),
    (  # del = (320 / (4 E_4 * 64))^(1/3) = (1.25 / E_4)^(1/3)
        bounds.strongly_convex_one_point_upper,
        {"second_moment": 4.0, "horizon": E_4, "dim": 2, "strong_convexity": 0.25, "lipschitz": 64.0},
        160 * (E_4 / 1.25) ** (2 / 3) + 256 * (1.25 / E_4) ** (1 / 3) * E_4,
    ),
    (  # s = 5
        bounds.strongly_convex_one_point_upper,
        {
            **{"second_moment": 4.0, "horizon": E_4, "dim": 4, "strong_convexity": 1.0, "lipschitz": 64.0},
            "domain": "box",
        },
        160 * (E_4) ** (2 / 3) + 320 * E_4 ** (2 / 3),
    ),
    (bounds.two_point_upper, {"second_moment": 4.0, "horizon": 100.0, "dim": 3, "radius": 2.0}, 2 * 3 * 20 + 8),
    (
        bounds.two_point_upper,
        {"second_moment": 4.0, "horizon": 100.0, "dim": 4, "radius": 2.0, "domain": "box"},
        4 * 4 * 20 + 5 * 2,
    ),
    (
        bounds.two_point_strongly_convex_upper,
        {"second_moment": 4.0, "horizon": E_4, "dim": 3, "strong_convexity": 0.5},
        36 * 5 + 4,
    ),
    (  # del = 1
        bounds.barrier_smooth_upper,
        {"second_moment": 8.0, "horizon": E_4, "dim": 2, "smoothness": 0.01, "loss_bound": 3.0},
        2 * math.sqrt(64 * E_4) * 2 + 0.005 * E_4 + 6,
    ),
    (  # theta = 2, del = 1
        bounds.barrier_smooth_upper,
        {"second_moment": 4.0, "horizon": E_4, "dim": 2, "smoothness": 0.01, "loss_bound": 3.0, "domain": "box"},
        2 * math.sqrt(64 * E_4) * 2 + 0.005 * E_4 + 6,
    ),
    (  # theta = 4, D = 2
        bounds.barrier_strongly_convex_upper,
        {"range_bound": 2.0, "horizon": E_4, "dim": 4, "strong_convexity": 1.0, "smoothness": 2.5, "domain": "box"},
        4 * 4 * 2 * math.sqrt(9 * 4 * E_4) + 4 + 20,
    ),
    (
        bounds.barrier_strongly_convex_upper,
        {"range_bound": 2.0, "horizon": E_4, "dim": 3, "strong_convexity": 0.5, "smoothness": 2.0},
        4 * 3 * 2 * math.sqrt(9 * 4 * E_4) + 4 + 4,
    ),
    (bounds.tsallis_inf_upper, {"epsilon": LN_3, "horizon": 25.0, "num_arms": 4}, 2 * (40 + 1)),
    (
        bounds.tsallis_inf_upper,
        {"epsilon": LN_3, "horizon": E_4, "num_arms": 4, "estimator": "rv"},
        2 * (4 * math.exp(2) + 160 + 16),
    ),
]
FIRST = {function: values for function, values, _ in reversed(CASES)}


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_by_hand(function, values, expected):
    found = function(**values)
    assert np.asarray(found).dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_every_public_function_is_tried():
    public = {f for f in vars(bounds).values() if inspect.isfunction(f) and f.__module__ == bounds.__name__}
    assert {f for f in public if not f.__name__.startswith("_")} == set(FIRST)
    assert theory.ldp_bandits is bounds


def test_tuning_costs_less_than_what_is_claimed():
    """Checks that it is never more in epsilon; c is about 2 / epsilon for a small one."""
    for problem, order in bounds.CLAIMED.items():
        assert bounds.TUNED[problem].rounds == order.rounds
        assert bounds.TUNED[problem].privacy <= order.privacy
    np.testing.assert_allclose(bounds.noise_factor([0.01, np.inf]), [200, 1], rtol=1e-4)
    with pytest.raises(ValueError, match="problem must be one of"):
        bounds.claimed_order("best_arm", 1.0, 10)


@pytest.mark.parametrize("name", ["fkm_upper", "strongly_convex_one_point_upper", "barrier_smooth_upper"])
def test_no_other_exploration_has_a_smaller_bound(name):
    """Tries many distances of exploration; the bound's is the best."""
    horizon, moment, dim = 1e6, 4.0, 2
    if name == "fkm_upper":

        def bound(explored):
            return dim * math.sqrt(moment * horizon) / explored + 4 * explored * horizon

        found = bounds.fkm_upper(moment, horizon, dim)
    elif name == "strongly_convex_one_point_upper":

        def bound(explored):
            return dim**2 * moment * (1 + math.log(horizon)) / explored**2 + 4 * explored * horizon

        found = bounds.strongly_convex_one_point_upper(moment, horizon, dim, 0.5)
    else:

        def bound(explored):
            noise = 2 * dim * math.sqrt(2 * moment * horizon * math.log(horizon))
            return noise / explored + explored**2 * horizon / 2 + 2

        found = bounds.barrier_smooth_upper(moment, horizon, dim, 1.0)
    grid = np.geomspace(1e-3, 1, 20_001)
    np.testing.assert_allclose(found, np.min(bound(grid)), rtol=1e-6)


def test_arguments_broadcast():
    found = bounds.fkm_upper(np.array([[1.0], [4.0]]), np.array([100.0, 1000.0, 1e4]), 2)
    assert found.shape == (2, 3)
    assert found[1, 0] == pytest.approx(bounds.fkm_upper(4.0, 100.0, 2), rel=1e-12)


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        (function, name, value)
        for function, values in FIRST.items()
        for name, wrong in {
            "epsilon": (np.nan, 0.0, -1.0, "1", True),
            "horizon": (np.nan, 0.5, np.inf),
            "second_moment": (np.nan, 0.0, np.inf),
            "range_bound": (np.nan, 0.0, np.inf),
            "dim": (np.nan, 0, np.inf),
            "num_arms": (np.nan, 1, np.inf),
            "strong_convexity": (np.nan, 0.0),
            "smoothness": (np.nan, 0.0),
            "lipschitz": (np.nan, 0.0),
            "loss_bound": (np.nan, 0.0),
            "radius": (np.nan, 0.0, np.inf),
            "scale": (0.0, np.inf, np.nan),
        }.items()
        if name in inspect.signature(function).parameters
        for value in wrong
    ],
)
def test_a_wrong_value(function, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*got"):
        function(**{**FIRST[function], name: value})


def test_conditions_and_names():
    with pytest.raises(ValueError, match="smoothness must be >= strong_convexity"):
        bounds.barrier_strongly_convex_upper(1.0, 100.0, 2, 1.0, 0.5)
    with pytest.raises(ValueError, match="estimator must be one of"):
        bounds.tsallis_inf_upper(1.0, 100.0, 2, estimator="both")
