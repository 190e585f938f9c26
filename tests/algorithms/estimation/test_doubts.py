"""Estimates that a careful user would not trust are warned of, with advice that helps."""

import warnings

import jax
import numpy as np
import pytest

from jaxdp.estimation import (
    ballot_mle,
    debiased_rr,
    estimate,
    literal_objective_perturbation,
    mle,
    mle_rr,
    objective_perturbation,
    plackett_luce_mle,
    sgd,
    sgd_krr,
    sgd_rr,
    thurstone_rr,
)
from jaxdp.estimation.doubts import warn_rounded_features
from jaxdp.preferences import Ballots

X64 = bool(jax.config.read("jax_enable_x64"))
GENERATOR = np.random.default_rng(0)
FEATURES = GENERATOR.normal(size=(200, 3))
LABELS = (FEATURES @ [0.5, -0.3, 0.2] + GENERATOR.logistic(size=200) > 0).astype(int)
ACTIONS = GENERATOR.normal(size=(200, 4, 3))
CHOICES = (ACTIONS @ [0.5, -0.3, 0.2] + GENERATOR.gumbel(size=(200, 4))).argmax(axis=1)
SEPARATED = (FEATURES @ [0.5, -0.3, 0.2] > 0).astype(int)

QUASI = np.repeat([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]], 40, axis=0)  # three items; the first one never lost
QUASI_LABELS = np.where(np.arange(120) < 80, 1, np.arange(120) % 2)
ELECTION = Ballots(("a", "b", "c"), (((0,), (1,), (2,)), ((1,), (0,), (2,))), (120, 80))


def fit(estimator, features=FEATURES, labels=LABELS, **values):
    return estimate(estimator, features, labels, key=jax.random.key(2), **values)


@pytest.mark.parametrize("size", [1e10, 1e15, 1e18])
@pytest.mark.parametrize(
    "estimator", [objective_perturbation(noise="k_norm"), debiased_rr()], ids=["k_norm", "debiased_rr"]
)
def test_a_radius_that_bounds_nothing_for_long_features_is_named(estimator, size):
    """Checks a radius times a size that overflows margins: theta was NaN."""
    with pytest.warns(
        RuntimeWarning, match="A radius of 5 does not bound the search for theta if features have magnitude 1e"
    ) as caught:
        theta = fit(estimator, FEATURES * size, epsilon=0.05, radius=5.0).theta
    assert len(caught) == 1
    assert np.all(np.isfinite(theta))
    assert np.linalg.norm(theta) <= 5.0
    with warnings.catch_warnings():  # the warning's advice helps
        warnings.simplefilter("error")
        assert fit(estimator, FEATURES, epsilon=0.05, radius=5.0).converged


@pytest.mark.parametrize("size", [1e10, 1e18])
def test_a_radius_that_is_not_reached_leaves_long_features_alone(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theta, plain = (fit(debiased_rr(), FEATURES * s, epsilon=1.0, radius=5.0).theta for s in (size, 1.0))
    np.testing.assert_allclose(np.asarray(theta, float) * size, plain, rtol=1e-3)


@pytest.mark.skipif(X64, reason="64-bit floats hold rows of such lengths")
@pytest.mark.parametrize("size", [1e10, 1e18])
def test_a_row_far_longer_than_the_others_is_warned_of(size):
    """Cut to a weight of nearly 0 it left no curvature at all in float32: theta was 0, and `converged`."""
    features = FEATURES * np.where(np.arange(200) == 7, size, 1)[:, None]
    estimator = objective_perturbation(noise="k_norm", weights="cut")
    with pytest.warns(RuntimeWarning, match="the largest row of features has .* Rescale rows to similar norms"):
        fit(estimator, features, epsilon=1.0)


@pytest.mark.parametrize("unit", [1.0, 30.0])
def test_rows_of_like_lengths_are_not_warned_of(unit):
    features = FEATURES * np.where(np.arange(200) == 7, unit, 1)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_rounded_features(features)
        warn_rounded_features(ACTIONS + 1e6)  # as differences of actions, which choices depend on


ONE_PASS = {
    "sgd": (sgd(), {}),
    "sgd_rr": (sgd_rr(), {"epsilon": 1.0}),
    "thurstone_rr": (thurstone_rr(), {"epsilon": 1.0}),
    "literal": (literal_objective_perturbation(), {"epsilon": 1.0, "delta": 1e-3}),
    "sgd_krr": (sgd_krr(), {"epsilon": 1.0}),
}


@pytest.mark.parametrize("name", ONE_PASS)
@pytest.mark.parametrize(("size", "change"), [(1e5, "lower"), (1e10, "lower"), (1e-5, "raise")])
def test_a_step_that_does_not_suit_the_features_is_warned_of(name, size, change):
    """Checks steps for which theta times the size was 1e9, 1e19 and 1e-10, where about 1 is right."""
    estimator, values = ONE_PASS[name]
    data = (ACTIONS, CHOICES) if name == "sgd_krr" else (FEATURES, LABELS)
    with pytest.warns(RuntimeWarning, match=rf"do not rely on theta.* constant, .* or {change} learning_rate"):
        fit(estimator, data[0] * size, data[1], **values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(estimator, *data, **values)


def test_a_learning_rate_that_suits_long_features_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(sgd_rr(), FEATURES * 1e3, epsilon=1.0, learning_rate=1e-7)


@pytest.mark.parametrize(
    ("estimator", "features", "labels", "values"),
    [
        (mle(), FEATURES, SEPARATED, {}),
        (plackett_luce_mle(), ACTIONS, (ACTIONS @ [0.5, -0.3, 0.2]).argmax(axis=1), {}),
        (mle(), QUASI, QUASI_LABELS, {}),
        (ballot_mle(), *ELECTION.design(), {}),
        (mle_rr(), FEATURES, LABELS, {"epsilon": 0.05}),
        (mle_rr(), FEATURES * 1e10, LABELS, {"epsilon": 0.05, "radius": 5.0}),
    ],
    ids=[
        "separated",
        "choices",
        "one item never lost",
        "ballots, one item is always last",
        "randomized",
        "randomized, long",
    ],
)
def test_an_objective_without_a_minimum_is_warned_of(estimator, features, labels, values):
    """Checks a search that stops where the objective is flat within its tolerance: it claimed to have converged."""
    with pytest.warns(RuntimeWarning, match="do not rely on the magnitude of theta.*Give a radius"):
        fit(estimator, features, labels, **values)


def test_strong_preferences_are_not_taken_for_no_minimum():
    generator = np.random.default_rng(3)
    features = generator.normal(size=(4000, 2))
    labels = (features @ [40.0, 30.0] + generator.logistic(size=4000) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(mle(), features, labels)
        fit(mle(), FEATURES, SEPARATED, radius=5.0)
        fit(mle(), FEATURES[:10], np.arange(10) % 2)
        fit(ballot_mle(), *ELECTION.design(), radius=5.0)
        fit(mle(), QUASI, np.arange(120) % 3 > 0)
