"""Full-batch Plackett-Luce: derivatives, the pairwise model at K = 2, sensitivities by enumeration, simulation."""

import itertools

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
    plackett_luce_debiased_krr,
    plackett_luce_mle,
    plackett_luce_objective_perturbation,
    plackett_luce_rewards,
    sgd_krr,
)
from jaxdp.estimation.objectives import choice_objective
from jaxdp.preferences import gaussian_choices, gaussian_comparisons
from jaxdp.simulation import estimation_run

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
PRECISION = {"tolerance": 1e-10 if X64 else 1e-6}


@pytest.mark.parametrize("depth", [1, 3])
def test_derivatives(depth):
    """Compares gradient and Hessian with automatic differentiation, and the value with its definition."""
    generator = np.random.default_rng(0)
    features = jnp.asarray(generator.normal(size=(6, 4, 3)), DTYPE)
    statistic, theta = jnp.asarray([1.0, -2.0, 0.5], DTYPE), jnp.asarray([0.3, 0.8, -1.1], DTYPE)
    objective = choice_objective(features, statistic, jnp.asarray(2.0, DTYPE), depth=depth)
    found = objective(theta)
    margins = np.asarray(features, float) @ np.asarray(theta, float)
    value = sum(np.log(np.exp(margins[:, place:]).sum(1)).mean() for place in range(depth))
    value += (-np.asarray(statistic, float) @ np.asarray(theta, float) + np.sum(np.asarray(theta, float) ** 2)) / 6
    rtol, atol = (1e-9, 1e-10) if X64 else (1e-4, 1e-5)
    np.testing.assert_allclose(found.value, value, rtol=rtol, atol=atol)
    np.testing.assert_allclose(found.gradient, jax.grad(lambda t: objective(t).value)(theta), rtol=rtol, atol=atol)
    np.testing.assert_allclose(found.hessian, jax.hessian(lambda t: objective(t).value)(theta), rtol=rtol, atol=atol)


def test_the_likelihood_of_rankings():
    """Checks that its minimiser has the smallest negative log likelihood over permutations' probabilities, place by
    place.
    """
    data = gaussian_choices(jax.random.key(1), num_samples=50, num_actions=3, dim=2, rankings=True)
    theta = np.asarray(estimate(plackett_luce_mle(), *data[:2], key=jax.random.key(0), **PRECISION).theta, float)
    features, labels = np.asarray(data.features, float), np.asarray(data.labels)

    def loss(theta):
        weights = np.exp(np.take_along_axis(features @ theta, labels, axis=1))
        return -sum(np.log(weights[:, place] / weights[:, place:].sum(1)).sum() for place in range(3))

    for step in 1e-2 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):
        assert loss(theta + step) > loss(theta)
    best_only = estimate(plackett_luce_mle(), data.features, labels[:, 0], key=jax.random.key(0)).theta
    assert np.abs(best_only - theta).max() > 0.01  # rankings say more


@pytest.mark.parametrize(
    ("pair", "k_wise", "values"),
    [
        (mle, plackett_luce_mle, {}),
        (debiased_rr, plackett_luce_debiased_krr, {"epsilon": 1.0}),
    ],
)
def test_two_actions_are_a_comparison(pair, k_wise, values):
    data = gaussian_comparisons(jax.random.key(0), num_samples=100, dim=3)
    offset = 5.0 * jax.random.normal(jax.random.key(9), (100, 1, 3))  # shared by both actions: it changes nothing
    features = jnp.stack([jnp.zeros_like(data.features), data.features], axis=1) + offset
    one, two = pair(), k_wise()
    params = one.params(**values, radius=2.0, **PRECISION)
    report = one.privatize(jax.random.key(1), params, data.features, data.labels)
    expected = one.fit(jax.random.key(2), params, data.features, report).theta
    found = two.fit(jax.random.key(2), two.params(**values, radius=2.0, **PRECISION), features, report).theta
    np.testing.assert_allclose(found, expected, atol=1e-8 if X64 else 1e-4)


@pytest.mark.parametrize(("num_actions", "zero_sum"), [(2, False), (3, True), (4, False), (5, True)])
def test_the_noise_is_for_the_largest_change_of_one_label(num_actions, zero_sum):
    """Enumerates the sample and its two labels, for reports at epsilon = inf."""
    data = gaussian_choices(jax.random.key(num_actions), num_samples=3, num_actions=num_actions, dim=3)
    estimator = plackett_luce_objective_perturbation(zero_sum=zero_sum)
    clear = estimator.params(epsilon=np.inf, delta=1e-3)
    labels = jnp.asarray(list(itertools.product(range(num_actions), repeat=3)), jnp.int32)
    sums = jax.vmap(lambda y: estimator.privatize(jax.random.key(0), clear, data.features, y))(labels)
    sums, labels = np.asarray(sums, float), np.asarray(labels)
    neighbours = (labels[:, None] != labels[None]).sum(-1) == 1
    sensitivity = np.linalg.norm(sums[:, None] - sums[None], axis=-1)[neighbours].max()

    params = estimator.params(epsilon=1.0, delta=1e-3)
    keys = jax.random.split(jax.random.key(1), 4000)
    drawn = jax.vmap(lambda key: estimator.privatize(key, params, data.features, jnp.zeros(3, jnp.int32)))(keys)
    stddev = float(objective_perturbation().params(epsilon=1.0, delta=1e-3).noise_multiplier) * sensitivity
    error = 5 / np.sqrt(2 * drawn.size)
    assert abs(float(drawn.std(0).mean()) / stddev - 1) < error
    assert abs(float(drawn.std(0).mean()) / (0.8 * stddev) - 1) > error  # a smaller one would be noticed


def test_no_privacy_is_maximum_likelihood():
    data = gaussian_choices(jax.random.key(3), num_samples=80, num_actions=4, dim=3)
    expected = estimate(plackett_luce_mle(), *data[:2], key=jax.random.key(0), radius=1.5, **PRECISION).theta
    for estimator, values in [
        (plackett_luce_debiased_krr(), {"epsilon": np.inf}),
        (plackett_luce_objective_perturbation(), {"epsilon": np.inf, "delta": 1e-3}),
    ]:
        found = estimate(estimator, *data[:2], key=jax.random.key(0), radius=1.5, **values, **PRECISION).theta
        np.testing.assert_allclose(found, expected, atol=1e-8 if X64 else 1e-4)


def test_zero_sum():
    data = gaussian_choices(jax.random.key(3), num_samples=80, num_actions=4, dim=3, zero_sum=True)
    for factory, values in [(plackett_luce_mle, {}), (sgd_krr, {"epsilon": 1.0})]:
        theta = estimate(factory(zero_sum=True), *data[:2], key=jax.random.key(0), **values).theta
        assert abs(float(theta.sum())) < 1e-5


def test_a_simulation_of_all():
    """Checks that errors fall with epsilon; the semi-norm is the root mean square over pairs' margins."""
    compared = {
        "mle": plackett_luce_mle(),
        "central": plackett_luce_objective_perturbation(),
        "local": plackett_luce_debiased_krr(),
        "sgd": sgd_krr(),
    }
    problem = plackett_luce_rewards(num_samples=400, num_actions=3, dim=2, parameter_norm=1.0)
    run = estimation_run(compared, problem)
    lanes = jax.jit(jax.vmap(run.simulate, (0, None)))(
        jax.random.split(jax.random.key(0), 30), run.params(epsilon=1.0, delta=1e-3)
    )
    clear, central, local, sgd = np.asarray(lanes["l2_error"]).mean(0)
    assert clear < central < local
    assert clear < sgd < 2

    sample = problem.sample(jax.random.key(1), problem.params())
    result = estimate(compared["mle"], sample.features, sample.labels, key=jax.random.key(0))
    found = problem.metrics(problem.params(), sample, result)["semi_norm_error"]
    margins = np.asarray(sample.features, float) @ np.asarray(result.theta - sample.truth, float)
    pairs = [(margins[:, j] - margins[:, k]) ** 2 for j, k in itertools.combinations(range(3), 2)]
    np.testing.assert_allclose(found, np.sqrt(np.mean(pairs)), rtol=1e-4)


@pytest.mark.always
def test_the_semi_norm_error_is_over_pairs_of_actions():
    problem = plackett_luce_rewards(num_samples=6, num_actions=4, dim=2)
    params = problem.params()
    sample = jax.jit(problem.sample)(jax.random.key(0), params)
    theta = jnp.asarray([0.3, -0.2], DTYPE)
    estimated = Estimate(theta, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.asarray(True))
    utilities = np.asarray(sample.features) @ (np.asarray(theta) - np.asarray(sample.truth))
    squares = [(row[i] - row[j]) ** 2 for row in utilities for i, j in itertools.combinations(range(4), 2)]
    error = jax.jit(problem.metrics)(params, sample, estimated)["semi_norm_error"]
    assert float(error) == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-5)
