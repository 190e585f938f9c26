"""Every wrong value or data set is a ValueError that names the argument and the value."""

import functools
import inspect
import re
from typing import Any, cast

import jax
import numpy as np
import pytest

from jaxdp.core import default_float
from jaxdp.estimation import (
    check_choices,
    check_data,
    debiased_rr,
    estimate,
    gaussian_rewards,
    literal_objective_perturbation,
    mle,
    mle_rr,
    objective_perturbation,
    objective_perturbation_full,
    plackett_luce_debiased_krr,
    plackett_luce_mle,
    plackett_luce_objective_perturbation,
    plackett_luce_rewards,
    sgd,
    sgd_krr,
    sgd_objective_perturbation,
    sgd_rr,
    thurstone_rr,
)
from jaxdp.preferences import link

EPSILON, DELTA = {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-3}
ESTIMATORS = {  # factory, values
    "mle": (mle, {}),
    "debiased_rr": (debiased_rr, EPSILON),
    "mle_rr": (mle_rr, EPSILON),
    "objective_perturbation": (objective_perturbation, DELTA),
    "sgd": (sgd, {}),
    "sgd_rr": (sgd_rr, EPSILON),
    "sgd_objective_perturbation": (sgd_objective_perturbation, DELTA),
    "literal_objective_perturbation": (literal_objective_perturbation, DELTA),
    "objective_perturbation_full": (objective_perturbation_full, {**DELTA, "feature_norm": 1.0}),
    "plackett_luce_mle": (plackett_luce_mle, {}),
    "plackett_luce_debiased_krr": (plackett_luce_debiased_krr, EPSILON),
    "plackett_luce_objective_perturbation": (plackett_luce_objective_perturbation, DELTA),
    "sgd_krr": (sgd_krr, EPSILON),
    "thurstone_rr": (thurstone_rr, EPSILON),
    "inverse_time": (
        lambda: sgd_rr(step_size="inverse_time"),
        {**EPSILON, "radius": 1.0, "coverage": 1.0, "feature_norm": 1.0},
    ),
}
FEATURES, LABELS = np.array([[1.0, 0.0], [0.0, -2.0], [1.0, 1.0]]), np.array([0, 1, 1])


def raises(name, value):
    """Checks for both texts in one message, the name first."""
    return pytest.raises(ValueError, match=rf"{name}.*{re.escape(str(value))}")


def wrong_values():
    squares = float(np.sqrt(np.finfo(default_float()).max))
    for name in ESTIMATORS:
        wrong = {
            "radius": [0.0, -1.0, np.nan, 10 * squares],
            "epsilon": [0.0, -1.0, np.nan],
            "delta": [0.0, 1.0, -0.1, 1.5, np.nan],
        }
        wrong["learning_rate"] = wrong["feature_norm"] = wrong["tolerance"] = wrong["coverage"] = [0.0, -0.5, np.nan]
        wrong["regularization"] = [-1.0, np.nan]
        for argument in inspect.signature(ESTIMATORS[name][0]().params).parameters:
            assert argument in wrong
            for value in wrong[argument]:
                yield pytest.param(name, argument, value, id=f"{name}-{argument}={value}")


@pytest.mark.parametrize(("name", "argument", "value"), list(wrong_values()))
def test_a_wrong_value(name, argument, value):
    factory, values = ESTIMATORS[name]
    factory().params(**values)
    with raises(argument, value):
        factory().params(**{**values, argument: value})


@pytest.mark.parametrize("name", [name for name, (_, values) in ESTIMATORS.items() if values])
def test_no_claim_for_a_wrong_epsilon_or_delta(name):
    factory, values = ESTIMATORS[name]
    factory().guarantee(**values)
    for argument in values:
        for value in [0.0, -1.0, np.nan]:
            with raises(argument, value):
                factory().guarantee(**{**values, argument: value})


@pytest.mark.parametrize("factory", [objective_perturbation, sgd_objective_perturbation])
def test_classical_constants_need_epsilon_below_one(factory):
    params = factory(constants="classical").params
    for epsilon in [1.0, 2.5]:
        with raises("epsilon", epsilon):
            params(epsilon=epsilon, delta=1e-3)
    assert params(epsilon=0.5, delta=1e-3).noise_multiplier > 0
    assert params(epsilon=np.inf, delta=1e-3).noise_multiplier == 0


@pytest.mark.parametrize("factory", [sgd, sgd_rr])
@pytest.mark.parametrize("missing", ["radius", "coverage", "feature_norm"])
def test_inverse_time_needs_finite_values(factory, missing):
    values = {"radius": 1.0, "coverage": 0.5, "feature_norm": 2.0, **ESTIMATORS[factory.__name__][1]}
    params = factory(step_size="inverse_time").params
    params(**values)
    with raises(missing, "inf"):
        params(**{**values, missing: np.inf})
    with raises(missing, "inf"):
        params(**{name: value for name, value in values.items() if name != missing})


@pytest.mark.parametrize(
    ("build", "name", "value"),
    [
        (functools.partial(link, "cauchit"), "link", "cauchit"),
        (functools.partial(sgd, average="first"), "average", "first"),
        (functools.partial(sgd_rr, average="first"), "average", "first"),
        (functools.partial(sgd_objective_perturbation, average="first"), "average", "first"),
        (functools.partial(literal_objective_perturbation, average="first"), "average", "first"),
        (functools.partial(sgd, step_size="linear"), "step_size", "linear"),
        (functools.partial(sgd_rr, step_size="linear"), "step_size", "linear"),
        (functools.partial(objective_perturbation, constants="tight"), "constants", "tight"),
        (functools.partial(sgd_objective_perturbation, constants="tight"), "constants", "tight"),
        (functools.partial(mle, max_steps=0), "max_steps", 0),
        (functools.partial(debiased_rr, max_steps=-1), "max_steps", -1),
        (functools.partial(mle_rr, max_steps=0), "max_steps", 0),
        (functools.partial(objective_perturbation, max_steps=0), "max_steps", 0),
        (functools.partial(objective_perturbation_full, constants="analytic"), "constants", "analytic"),
        (functools.partial(objective_perturbation_full, max_steps=0), "max_steps", 0),
        (functools.partial(plackett_luce_mle, max_steps=0), "max_steps", 0),
        (functools.partial(plackett_luce_objective_perturbation, constants="paper"), "constants", "paper"),
        (functools.partial(sgd_krr, average="first"), "average", "first"),
        (functools.partial(thurstone_rr, step_size="linear"), "step_size", "linear"),
        (functools.partial(plackett_luce_rewards, num_samples=5, num_actions=1, dim=2), "num_actions", 1),
        (functools.partial(plackett_luce_rewards, num_samples=5, num_actions=3, dim=1, zero_sum=True), "dim", 1),
        (
            functools.partial(plackett_luce_rewards, num_samples=5, num_actions=3, dim=2, parameter_norm=-1.0),
            "parameter_norm",
            -1.0,
        ),
        (functools.partial(gaussian_rewards, num_samples=5, dim=2, parameter_norm=-1.0), "parameter_norm", -1.0),
        (functools.partial(gaussian_rewards, num_samples=5, dim=1, zero_sum=True), "dim", 1),
        (functools.partial(gaussian_rewards, num_samples=5, dim=2, known=cast(Any, "radius")), "known", "radius"),
        (functools.partial(gaussian_rewards, num_samples=0, dim=2), "num_samples", 0),
        (functools.partial(gaussian_rewards, num_samples=5, dim=0), "dim", 0),
        (functools.partial(gaussian_rewards, num_samples=5, dim=2, known=("truth",)), "known", "truth"),
        (functools.partial(gaussian_rewards(num_samples=5, dim=2).params, ridge=-1.0), "ridge", -1.0),
        (functools.partial(gaussian_rewards(num_samples=5, dim=2).params, ridge=np.inf), "ridge", np.inf),
    ],
)
def test_a_wrong_argument_of_a_factory(build, name, value):
    with raises(name, value):
        build()


WRONG_DATA = {
    "label 2": (FEATURES, [0, 1, 2], "labels", "got 1 of 3 that are not"),
    "label -1": (FEATURES, [0, -1, 1], "labels", "got 1 of 3 that are not"),
    "label 0.25": (FEATURES, [0.25, 1, 1], "labels", "got 1 of 3 that are not"),
    "label NaN": (FEATURES, [0, np.nan, 1], "labels", "got 1 of 3 that are not"),
    "feature NaN": (np.where(FEATURES == -2, np.nan, FEATURES), LABELS, "features", "got nan at index (1, 1)"),
    "feature inf": (np.where(FEATURES == -2, np.inf, FEATURES), LABELS, "features", "got inf at index (1, 1)"),
    "one axis": (FEATURES[:, 0], LABELS, "features", "(3,)"),
    "three axes": (FEATURES[None], LABELS, "features", "(1, 3, 2)"),
    "no samples": (FEATURES[:0], LABELS[:0], "features", "(0, 2)"),
    "no features": (FEATURES[:, :0], LABELS, "features", "(3, 0)"),
    "too few labels": (FEATURES, LABELS[:2], "labels", "(2,)"),
    "labels in a column": (FEATURES, LABELS[:, None], "labels", "(3, 1)"),
    "features as text": ([["a", "b"]], [1], "features", "dtype"),
    "labels as text": (FEATURES, ["0", "1", "1"], "labels", "text (dtype <U1): convert it"),
    "labels as bytes": (FEATURES, [b"0", b"1", b"1"], "labels", "text (dtype |S1)"),
    "labels as objects": (FEATURES, np.array(["0", 1, 1], object), "labels", "got text (dtype "),
    "too large for squares": (FEATURES * 1e200, LABELS, "features", "got -2e+200 at index (1, 1)"),
    "too small for squares": (FEATURES * 1e-200, LABELS, "features", "got -2e-200 at index (1, 1)"),
}


@pytest.mark.parametrize("case", WRONG_DATA)
def test_wrong_data(case):
    features, labels, name, value = WRONG_DATA[case]
    check_data(FEATURES, LABELS)
    with raises(name, value):
        check_data(features, labels)
    with raises(name, value):
        estimate(debiased_rr(), features, labels, key=jax.random.key(0), epsilon=1.0)


CHOICES, BEST = np.arange(12.0).reshape(2, 3, 2), np.array([0, 2])
WRONG_CHOICES = {
    "label 3": (CHOICES, [0, 3], "labels", "got 1 of 2 that are not"),
    "label NaN": (CHOICES, [np.nan, 0], "labels", "got 1 of 2 that are not"),
    "feature inf": (np.where(CHOICES == 11, np.inf, CHOICES), BEST, "features", "got inf at index (1, 2, 1)"),
    "two axes": (CHOICES[0], BEST, "features", "(3, 2)"),
    "one action": (CHOICES[:, :1], BEST, "features", "(2, 1, 2)"),
    "too few labels": (CHOICES, BEST[:1], "labels", "(1,)"),
    "label as text": (CHOICES, ["0", "2"], "labels", "text (dtype <U1)"),
    "a ranking": (CHOICES, [[0, 1, 2], [2, 1, 0]], "labels", "(2, 3)"),
}


@pytest.mark.parametrize("case", WRONG_CHOICES)
def test_wrong_choices(case):
    features, labels, name, value = WRONG_CHOICES[case]
    check_choices(CHOICES, BEST)
    with raises(name, value):
        check_choices(features, labels)
    with raises(name, value):
        estimate(sgd_krr(), features, labels, key=jax.random.key(0), epsilon=1.0)


def test_rankings_must_be_permutations():
    check_choices(CHOICES, np.array([[0, 1, 2], [2, 1, 0]]), rankings=True)
    with pytest.raises(
        ValueError, match=r"labels must be rankings that hold every action once, got 1 of 2 that are not$"
    ):
        estimate(plackett_luce_mle(), CHOICES, np.array([[0, 1, 2], [2, 2, 0]]), key=jax.random.key(0))
    with raises("labels", "got 1 of 2 that are not"):
        check_choices(CHOICES, np.array([[0, 1, 3], [2, 1, 0]]), rankings=True)


def test_actions_longer_than_the_feature_norm():
    check_choices(CHOICES, BEST, feature_norm=15.0)
    with pytest.raises(ValueError, match=r"feature_norm .*got 14\.0, but an action of sample 1 has norm 14\.8661"):
        check_choices(CHOICES, BEST, feature_norm=14.0)


@pytest.mark.parametrize("case", ["one axis", "no samples", "no features", "too few labels", "features as text"])
def test_wrong_shapes_of_private_records(case):
    features, labels, name, value = WRONG_DATA[case]
    with raises(name, value):
        estimate(objective_perturbation_full(), features, labels, key=jax.random.key(0), **DELTA, feature_norm=1.0)


def test_features_longer_than_twice_the_feature_norm():
    """Checks that the longest feature has norm 2, so that L = 1 is enough."""
    values = {"key": jax.random.key(0), "epsilon": 1.0, "delta": 1e-3, "radius": 1.0}
    estimator = objective_perturbation(constants="paper")
    assert np.all(np.isfinite(estimate(estimator, FEATURES, LABELS, feature_norm=1.0, **values).theta))
    with pytest.raises(ValueError, match=r"feature_norm .*got 0\.9, but feature 1 has norm 2"):
        estimate(estimator, FEATURES, LABELS, feature_norm=0.9, **values)


def test_estimate_checks_values():
    with raises("epsilon", -1.0):
        estimate(mle_rr(), FEATURES, LABELS, key=jax.random.key(0), epsilon=-1.0)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_estimate_inside_a_transformation_names_what_to_call(transform):
    features = np.ones((1, 4, 2))
    fit = transform(
        lambda features: estimate(mle(), features[0], [0, 1, 1, 0], key=jax.random.key(0), radius=1.0).theta
    )
    with pytest.raises(ValueError, match=r"estimate must be called outside of jax\.jit"):
        fit(features if transform is jax.jit else features[None])


def test_a_single_label_is_refused():
    with pytest.raises(ValueError, match="labels must be an array with one entry per record, got a single number"):
        estimate(mle(), np.ones((3, 2)), 1.0, key=jax.random.key(0))


@pytest.mark.parametrize("name", ["features", "labels", "offset"])
def test_masked_entries_are_refused(name):
    """Checks that numbers behind a mask, such as -999 for a missing entry, are not used as data."""
    data = {"features": FEATURES, "labels": LABELS, "offset": np.zeros(3)}
    data[name] = np.ma.array(data[name], mask=np.arange(data[name].size).reshape(data[name].shape) == 1)
    message = rf"{name} must have no masked entries, got 1 of them"
    with pytest.raises(ValueError, match=message):
        estimate(mle(), data.pop("features"), data.pop("labels"), key=jax.random.key(0), **data)


def test_the_smallest_integer_is_a_feature():
    check_data(np.full((2, 1), -128, np.int8), LABELS[:2])
