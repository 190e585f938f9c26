"""One program serves every epsilon; a batch of lanes equals the lanes one by one; no privacy is epsilon = inf."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from jaxdp.estimation import (
    debiased_rr,
    estimate,
    literal_objective_perturbation,
    mle,
    mle_rr,
    objective_perturbation,
    sgd,
    sgd_objective_perturbation,
    sgd_rr,
)
from jaxdp.preferences import probit

DTYPE = jax.dtypes.canonicalize_dtype(float)
EPSILONS = [{"epsilon": 1.0, "radius": 1.0}, {"epsilon": 4.0, "radius": 2.0}, {"epsilon": np.inf, "radius": 0.5}]
BUDGETS = [{**point, "delta": 1e-3, "regularization": 1.0} for point in EPSILONS]
NO_EPSILON = [{"radius": point["radius"]} for point in EPSILONS]
STEPS = [{**point, "coverage": 0.9, "feature_norm": 0.7} for point in EPSILONS]
ESTIMATORS = {  # the estimator, three grid points
    "mle": (mle(), NO_EPSILON),
    "debiased_rr": (debiased_rr(), EPSILONS),
    "mle_rr": (mle_rr(), EPSILONS),
    "objective_perturbation": (objective_perturbation(), BUDGETS),
    "sgd": (sgd(), NO_EPSILON),
    "sgd_rr": (sgd_rr(step_size="inverse_time"), STEPS),
    "sgd_objective_perturbation": (sgd_objective_perturbation(), BUDGETS),
    "literal_objective_perturbation": (literal_objective_perturbation(), BUDGETS),
}


@pytest.fixture
def data():
    generator = np.random.default_rng(9)
    features = generator.normal(size=(90, 3))
    labels = generator.uniform(size=90) < expit(features @ [0.8, -0.5, 0.3])
    return jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_trace_and_a_batch_equals_its_lanes(data, name):
    estimator, points = ESTIMATORS[name]
    traces = []

    def lane(key, params):
        traces.append(name)
        key_privatize, key_fit = jax.random.split(key)
        return estimator.fit(key_fit, params, data[0], estimator.privatize(key_privatize, params, *data)).theta

    params = [estimator.params(**point) for point in points]
    keys = jax.random.split(jax.random.key(1), 3)
    batch = jax.jit(jax.vmap(jax.vmap(lane, (None, 0)), (0, None)))
    together = batch(keys, jax.tree.map(lambda *leaves: np.stack(leaves), *params))
    batch(keys, jax.tree.map(lambda *leaves: np.stack(leaves[::-1]), *params))
    assert len(traces) == 1  # for the three grid points, and the same in another order

    single = jax.jit(lane)
    apart = [[single(key, point) for point in params] for key in keys]
    assert len(traces) == 2
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-5)
    assert np.ptp(together, axis=1).max() > 0.01  # the grid points differ


def test_infinite_epsilon_is_the_non_private_estimator(data):
    def thetas(estimator, **values):
        fit = jax.jit(estimator.fit)
        for radius in [0.7, np.inf]:
            params = estimator.params(**values, radius=radius)
            report = estimator.privatize(jax.random.key(3), params, *data)
            yield fit(jax.random.key(4), params, data[0], report).theta

    clear = np.stack(list(thetas(mle())))
    np.testing.assert_array_equal(list(thetas(debiased_rr(), epsilon=np.inf)), clear)
    # What gets noise is added up with more care than a sum of exact labels.
    np.testing.assert_allclose(list(thetas(objective_perturbation(), epsilon=np.inf, delta=1e-3)), clear, atol=2e-6)
    np.testing.assert_allclose(list(thetas(mle_rr(), epsilon=np.inf)), clear, atol=2e-4)
    assert np.linalg.norm(clear[0]) < np.linalg.norm(clear[1])


@pytest.mark.parametrize("link", [None, probit])
def test_infinite_epsilon_sgd(data, link):
    options = {} if link is None else {"link": link}
    clear = estimate(sgd(**options), *data, key=jax.random.key(3), radius=1.0)
    local = estimate(sgd_rr(**options), *data, key=jax.random.key(3), epsilon=np.inf, radius=1.0)
    np.testing.assert_array_equal(local.theta, clear.theta)
