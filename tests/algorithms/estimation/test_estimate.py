"""The call for a notebook: it warns of what did not converge, and compiles once."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import (
    Estimate,
    debiased_rr,
    estimate,
    mle,
    objective_perturbation,
    plackett_luce_mle,
    sgd_rr,
    with_confidence,
)
from jaxdp.preferences import probit
from tests.events import durations_of

X64 = bool(jax.config.read("jax_enable_x64"))
GENERATOR = np.random.default_rng(0)
FEATURES = GENERATOR.normal(size=(60, 2))
LABELS = GENERATOR.integers(0, 2, 60)


@pytest.mark.parametrize(
    ("estimator", "values"),
    [(debiased_rr(), {}), (with_confidence(debiased_rr()), {"curvature": 0.25})],
    ids=["alone", "with a set"],
)
def test_an_estimate_that_did_not_converge_is_warned_of(estimator, values):
    """Uses epsilon 0.05, where unbiased labels are 40 apart and their loss has no minimum without a ball."""
    with pytest.warns(RuntimeWarning, match=r"did not converge in 200 steps.* Give a radius") as caught:
        estimate(estimator, FEATURES, LABELS, key=jax.random.key(0), epsilon=0.05, **values)
    assert [warning.filename for warning in caught] == [__file__]


def test_no_radius_is_advised_where_one_was_given():
    with pytest.warns(RuntimeWarning, match=r"did not converge in 1 steps.* theta\. Rescale the columns"):
        estimate(debiased_rr(max_steps=1), FEATURES, LABELS, key=jax.random.key(0), epsilon=0.05, radius=1.0)


@pytest.mark.skipif(X64, reason="64 bits reach this tolerance")
def test_a_tolerance_below_rounding_is_named():
    with pytest.warns(RuntimeWarning, match=r"The tolerance, 1e-12, may be below the rounding errors of 32-bit floats"):
        fit = estimate(mle(), FEATURES, LABELS, key=jax.random.key(0), tolerance=1e-12)
    assert fit.certificate < 1e-6


@pytest.mark.parametrize(
    ("estimator", "values"),
    [(debiased_rr(), {"epsilon": 0.05, "radius": 1.0}), (sgd_rr(), {"epsilon": 0.05}), (mle(), {})],
    ids=["in a ball", "sgd", "mle"],
)
def test_nothing_is_said_of_what_converged_or_has_no_certificate(estimator, values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(estimator, FEATURES, LABELS, key=jax.random.key(0), **values)


def test_features_as_large_as_squares_allow_are_fitted():
    for size in (1e150, 1e-130) if X64 else (1e18, 1e-11):
        found = estimate(debiased_rr(), FEATURES * size, LABELS, key=jax.random.key(0), epsilon=1.0)
        plain = estimate(debiased_rr(), FEATURES, LABELS, key=jax.random.key(0), epsilon=1.0)
        np.testing.assert_allclose(np.asarray(found.theta, float) * size, plain.theta, rtol=1e-3)


def traces_of(call):
    """Counts the functions that JAX traces or compiles in a call."""
    with durations_of("/jax/core/compile/") as events:
        call()
    return len(events)


def test_a_second_call_with_a_new_estimator_compiles_nothing():
    def call(**options):
        estimate(debiased_rr(**options), FEATURES, LABELS, key=jax.random.key(0), epsilon=1.0, radius=2.0)

    call()
    assert traces_of(call) == 0
    assert traces_of(lambda: call(max_steps=7)) > 0


def test_equal_arguments_give_one_estimator_and_others_another():
    assert mle() is mle()
    assert mle() is not mle(max_steps=200)  # as the call says
    assert mle(link=probit) is not mle()
    whole: Any = 1.0
    assert mle(max_steps=1) is not mle(max_steps=whole)
    assert with_confidence(mle()) is with_confidence(mle())
    assert repr(mle(zero_sum=True)) == "mle(zero_sum=True)"
    other = mle()._replace(fit=debiased_rr().fit)
    assert mle().fit is not other.fit
    assert with_confidence(other) is not with_confidence(mle())


def test_a_changed_estimator_is_fitted_as_changed():
    plain = estimate(mle(), FEATURES, LABELS, key=jax.random.key(0))
    changed = mle()._replace(fit=lambda key, params, features, report: plain._replace(theta=plain.theta + 1))
    np.testing.assert_array_equal(estimate(changed, FEATURES, LABELS, key=jax.random.key(0)).theta, plain.theta + 1)
    np.testing.assert_array_equal(estimate(mle(), FEATURES, LABELS, key=jax.random.key(0)).theta, plain.theta)


def test_arguments_without_a_hash_give_an_estimator_each_time():
    unhashable: Any = np.array(3)
    with pytest.raises(ValueError, match="weights must be one of"):
        objective_perturbation(weights=unhashable)
    assert plackett_luce_mle(max_steps=unhashable) is not plackett_luce_mle(max_steps=unhashable)


@pytest.mark.always
def test_labels_and_the_fit_are_drawn_from_two_keys():
    """Replaces both functions by draws from their keys."""

    def privatize(key, params, features, labels):
        del params, features, labels
        return jax.random.uniform(key)

    def fit(key, params, features, report):
        del params, features
        theta = jnp.stack([report, jax.random.uniform(key)])
        return Estimate(theta, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.asarray(True))

    estimator = debiased_rr()._replace(privatize=privatize, fit=fit, check_estimate=None)
    first, second = estimate(estimator, FEATURES, LABELS, key=jax.random.key(0), epsilon=1.0).theta
    assert first != second
