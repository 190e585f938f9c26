"""Mistakes of users, and limits of floats: reported, never turned into a plausible number."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdp.core import scalar_leaf
from jaxdp.estimation import (
    debiased_rr,
    estimate,
    l2_error,
    mle,
    mle_rr,
    objective_perturbation,
    semi_norm_error,
    sgd,
    sgd_objective_perturbation,
    sgd_rr,
)
from jaxdp.estimation.newton import newton_on_ball
from jaxdp.estimation.objectives import Evaluation, sum_over_samples
from jaxdp.estimation.one_pass import Pass, Recipe, one_pass, plain_pass
from jaxdp.numerics import compensated
from jaxdp.preferences import gaussian_comparisons

DTYPE = jax.dtypes.canonicalize_dtype(float)


@pytest.fixture(scope="module")
def data():
    return gaussian_comparisons(jax.random.key(5), num_samples=300, dim=3)


def test_newton_damps_the_steps_after_a_rise_of_the_objective():
    """Checks that each rise quadruples the damping, from 0.1 on, and each fall quarters it.

    A rise within rounding is none.
    """
    optimizer, eps = newton_on_ball(jnp.asarray(np.inf, DTYPE)), float(jnp.finfo(DTYPE).eps)
    step, theta, one = jax.jit(optimizer.update), jnp.zeros(1, DTYPE), jnp.ones(1, DTYPE)
    state, damping = optimizer.init(theta), []
    for value in (1, 2, 2, 2, 1 + 3 * eps, 1, 1 + 6 * eps, 1, 1, 1):  # always at the same point, of slope 1
        evaluation = Evaluation(jnp.asarray(value, DTYPE), jnp.asarray(1, DTYPE), one, one[None], 0 * one[0])
        moved, state = step(one, state, theta, evaluation=evaluation)
        damping.append(-1 / float(moved[0]) - 1)
    np.testing.assert_allclose(damping, [0, 0.1, 0.4, 1.6, 0.4, 0.1, 0.4, 0.1, 0.025, 0], atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("radius", [np.inf, 1.0])
def test_the_unit_of_the_features_does_not_matter(data, unit, radius):
    reference = estimate(mle(), data.features, data.labels, key=jax.random.key(0), radius=radius)
    scaled = estimate(mle(), data.features * unit, data.labels, key=jax.random.key(0), radius=radius / unit)
    assert scaled.converged
    assert scaled.steps < 20
    np.testing.assert_allclose(scaled.theta * unit, reference.theta, rtol=1e-4, atol=1e-5)


def test_many_comparisons_do_not_stall():
    """Sums 800,000 wins to 400,000 of two items: a running float32 sum of the gradient is off by several standard
    errors.
    """
    labels = (jnp.arange(1_200_000) % 3 > 0).astype(jnp.int32)
    features = jnp.broadcast_to(jnp.asarray([1.0, -1.0], DTYPE), (len(labels), 2))
    for make in (mle, mle_rr):
        estimator = make(zero_sum=True)
        params = estimator.params(radius=5.0, **({"epsilon": np.inf} if make is mle_rr else {}))
        result = jax.jit(estimator.fit)(jax.random.key(0), params, features, labels)
        assert result.converged
        assert result.theta[0] - result.theta[1] == pytest.approx(np.log(2), abs=1e-4)


def test_sums_over_many_samples():
    columns = jnp.ones((1, 2**24 + 2**16 + 300), jnp.float32)
    for count in (3, 255, 2**16, 2**16 + 1, 2**16 + 2**8, 2**24 + 300):
        for careful in (False, True):
            found = sum_over_samples(columns[:, :count], jnp.ones(count, jnp.float32), careful=careful)
            assert found[0] == np.float32(count)


def test_regularization_has_the_unit_of_the_paper(data):
    """Checks beta |theta|^2 / 2 in the sum of losses, for any scale of features inside the solver."""
    estimator = objective_perturbation()
    beta = 40.0
    params = estimator.params(epsilon=np.inf, delta=1e-3, regularization=beta)
    report = estimator.privatize(jax.random.key(0), params, data.features, data.labels)
    theta = np.asarray(estimator.fit(jax.random.key(0), params, data.features, report).theta, np.float64)
    features, labels = np.asarray(data.features, np.float64), np.asarray(data.labels)
    gradient = features.T @ (1 / (1 + np.exp(-features @ theta)) - labels) + beta * theta
    np.testing.assert_allclose(gradient, 0, atol=300 * 1e-4)


def test_nan_features_give_nan_and_stop(data):
    estimator = mle()
    broken = data.features.at[0, 0].set(jnp.nan)
    result = estimator.fit(jax.random.key(0), estimator.params(), broken, data.labels)
    assert np.isnan(result.theta).all()
    assert np.isnan(result.certificate)
    assert not result.converged
    assert result.steps == 1


def test_an_optimizer_that_diverges_gives_nan(data):
    broken = optax.GradientTransformation(
        lambda params: (), lambda updates, state, params=None: (jax.tree.map(lambda u: u * jnp.nan, updates), state)
    )
    estimator = mle(optimizer=broken)
    result = estimator.fit(jax.random.key(0), estimator.params(), data.features, data.labels)
    assert np.isnan(result.theta).all()
    assert not result.converged


def test_an_optimizer_with_a_line_search(data):
    reference = estimate(mle(), data.features, data.labels, key=jax.random.key(0))
    with jax.numpy_dtype_promotion("standard"):  # Optax's own line search mixes dtypes
        result = estimate(mle(optimizer=optax.lbfgs()), data.features, data.labels, key=jax.random.key(0))
    assert result.converged
    np.testing.assert_allclose(result.theta, reference.theta, atol=1e-3)


def test_steps_that_float_cannot_hold_are_capped(data):
    result = estimate(
        sgd(step_size="inverse_time"),
        data.features,
        data.labels,
        key=jax.random.key(0),
        radius=10,
        coverage=1,
        feature_norm=9,
    )
    assert np.isfinite(result.theta).all()
    assert np.linalg.norm(result.theta) <= 10 * (1 + 1e-5)


def stationary(num_samples):
    """Makes the gradient vanish at zero; `linear` moves the iterate to the bound at once, where it stays."""
    recipe = Recipe(lambda margin, target: jnp.zeros_like(margin), "last_half", inverse_time=False, zero_sum=False)
    return recipe, Pass(
        features=jnp.zeros((num_samples, 1), DTYPE),
        targets=jnp.zeros(num_samples, DTYPE),
        gain=jnp.ones((), DTYPE),
        rate=jnp.ones((), DTYPE),
        radius=jnp.asarray(0.3, DTYPE),
        linear=-jnp.ones(1, DTYPE),
    )


def test_averages_of_many_iterates_do_not_stall():
    recipe, one = stationary(2_000_000)
    lanes = jax.tree.map(lambda leaf: leaf[None], one)
    kernel = jax.jit(jax.vmap(lambda data: one_pass(data, recipe)))(lanes)[0]
    plain = jax.jit(lambda data: plain_pass(data, recipe))(one)
    np.testing.assert_allclose(np.concatenate([kernel, plain]), 0.3, rtol=2e-6)


def test_compensated_sums_survive_jit_where_plain_ones_stall():
    count = 2**25
    one = jnp.float32(1)

    def step(index, carry):
        running, plain = carry
        return compensated.add(running, one), plain + one

    running, plain = jax.jit(lambda: jax.lax.fori_loop(0, count, step, (compensated.zero(one), jnp.float32(0))))()
    assert running.total == count
    assert plain == 2**24  # the purpose of the compensation


@pytest.mark.parametrize(
    ("estimator", "values"),
    [
        (mle(), {"learning_rate": 0.1}),
        (sgd(), {"coverage": 1.0}),
        (sgd(step_size="inverse_time"), {"learning_rate": 0.1, "radius": 1.0, "coverage": 1.0, "feature_norm": 1.0}),
        (sgd_rr(optimizer=optax.sgd(0.1)), {"epsilon": 1.0, "learning_rate": 0.1}),
        (objective_perturbation(), {"epsilon": 1.0, "delta": 1e-3, "learning_rate": 0.1}),
        (objective_perturbation(), {"epsilon": 1.0, "delta": 1e-3, "feature_norm": 1.0}),
        (sgd_objective_perturbation(), {"epsilon": 1.0, "delta": 1e-3, "tolerance": 0.1}),
    ],
)
def test_a_value_that_would_be_ignored_is_refused(estimator, values):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        estimator.params(**values)


def test_a_step_size_beside_an_optimizer_is_refused():
    with pytest.raises(ValueError, match="step_size must be left at 'constant' if an optimizer is given"):
        sgd(step_size="inverse_time", optimizer=optax.sgd(0.1))


def test_a_guarantee_claims_only_what_params_accept():
    with pytest.raises(ValueError, match="epsilon"):
        objective_perturbation(constants="classical").guarantee(epsilon=2.0, delta=1e-3)
    with pytest.raises(TypeError):
        debiased_rr().guarantee(epsilon=1.0, nonsense=3)
    assert "none" in objective_perturbation().guarantee(epsilon=np.inf, delta=1e-3).argument


def test_a_feature_norm_below_the_features_does_not_lower_the_noise(data):
    estimator = objective_perturbation(constants="paper")
    spread = []
    for feature_norm in (1e-3, np.inf):
        params = estimator.params(epsilon=1.0, delta=1e-3, feature_norm=feature_norm)
        spread.append(estimator.privatize(jax.random.key(0), params, data.features, data.labels))
    np.testing.assert_array_equal(*spread)


@pytest.mark.skipif(jnp.float64 == DTYPE, reason="float64 holds them")
@pytest.mark.parametrize("value", [1e-60, 1e60])
def test_leaves_that_float32_cannot_hold_are_refused(value):
    with pytest.raises(ValueError, match="radius must be within the range of float32, got 1e"):
        debiased_rr().params(epsilon=1.0, radius=value)
    assert np.isinf(scalar_leaf("radius", np.inf))


def test_errors_against_numpy(data):
    theta = jnp.asarray([0.3, -1.0, 2.0], DTYPE)
    difference = np.asarray(theta - data.parameter, np.float64)
    features = np.asarray(data.features, np.float64)
    matrix = features.T @ features / len(features) + 0.7 * np.eye(3)
    np.testing.assert_allclose(l2_error(theta, data.parameter), np.sqrt(difference @ difference), rtol=1e-5)
    semi_norm = semi_norm_error(theta, data.parameter, data.features, jnp.asarray(0.7, DTYPE))
    np.testing.assert_allclose(semi_norm, np.sqrt(difference @ matrix @ difference), rtol=1e-5)


def test_params_are_frozen():
    params = debiased_rr().params(epsilon=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.epsilon = 2.0
