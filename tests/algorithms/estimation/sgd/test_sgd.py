"""One-pass SGD against a plain NumPy loop, written from the paper (eq. 10, Algorithm 1 and Theorem 4.5's proof)."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import expit, ndtr

from jaxdp.estimation import literal_objective_perturbation, sgd, sgd_objective_perturbation, sgd_rr
from jaxdp.mechanisms import randomized_response
from jaxdp.preferences import probit

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
NUM_SAMPLES, DIM = 61, 3
BOUND, COVERAGE, FEATURE_NORM = 1.5, 0.9, 0.7


@pytest.fixture
def data():
    """Makes differential features of norm at most 2 L."""
    generator = np.random.default_rng(4)
    features = generator.normal(size=(NUM_SAMPLES, DIM))
    features *= 2 * FEATURE_NORM / np.linalg.norm(features, axis=1).max()
    labels = generator.uniform(size=NUM_SAMPLES) < expit(features @ [1.0, -0.8, 0.3])
    return jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)


def logistic_slope(z, report, epsilon):
    """Computes Algorithm 1, line 6: sum over y of grad log p_y / (e^epsilon + 1), less grad log p_report.

    Grad along x.
    """
    gradients = np.array([-expit(z), expit(-z)])  # of log p_0 and log p_1
    return gradients.sum() / (math.exp(min(epsilon, 700)) + 1) - gradients[report]


def probit_slope(z, report, epsilon):
    """Computes 2p - 1 times the derivative of -[y log F(z) + (1 - y) log F(-z)] at the unbiased label y."""
    truth, density = expit(epsilon), math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    label = (report - (1 - truth)) / (2 * truth - 1)
    return (2 * truth - 1) * -(label * density / ndtr(z) - (1 - label) * density / ndtr(-z))


def loop(features, reports, epsilon, *, slope, step, radius=np.inf, zero_sum=False, average="none", drift=None):
    """Iterates theta <- P(theta - eta_t g), t = 1, 2, ...; step is t -> eta_t, and drift(theta) is added to g."""
    features, reports = np.asarray(features, float), np.asarray(reports)
    theta, iterates = np.zeros(features.shape[1]), []
    for t, (x, report) in enumerate(zip(features, reports, strict=True), start=1):
        gradient = slope(x @ theta, report, epsilon) * x + (0 if drift is None else drift(theta))
        theta = theta - step(t) * gradient
        if zero_sum:
            theta = theta - theta.mean()
        theta = theta / max(1, np.linalg.norm(theta) / radius)
        iterates.append(theta)
    kept = {"none": 1, "all": len(iterates), "last_half": math.ceil(len(iterates) / 2)}[average]
    return np.mean(iterates[-kept:], axis=0)


def inverse_time(epsilon, t):
    """Returns 1 / (gamma_eps kappa t), gamma_eps = (2 sigma(eps) - 1) gamma, gamma = 1 / (2 + e^{-2LB} + e^{2LB})."""
    gamma = 1 / (2 + math.exp(-2 * FEATURE_NORM * BOUND) + math.exp(2 * FEATURE_NORM * BOUND))
    return 1 / ((2 * expit(epsilon) - 1) * gamma * COVERAGE * t)


def check_equal(theta, expected):
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-10 if X64 else 1e-4)


CONSTANT = {"learning_rate": 0.3}
INVERSE_TIME = {"radius": BOUND, "coverage": COVERAGE, "feature_norm": FEATURE_NORM}
CASES = {
    "last": ({"average": "none"}, {**CONSTANT, "radius": 0.5}),
    "all": ({"average": "all"}, {**CONSTANT, "radius": 0.5}),
    "last_half": ({}, {**CONSTANT, "radius": np.inf}),
    "zero_sum": ({"zero_sum": True}, {**CONSTANT, "radius": 0.5}),
    "inverse_time": ({"average": "none", "step_size": "inverse_time"}, INVERSE_TIME),
    "probit": ({"link": probit}, CONSTANT),
}


@functools.cache
def make(name, factory):
    estimator = factory(**CASES[name][0])
    return estimator, jax.jit(estimator.fit)


def expectation(name, features, reports, epsilon):
    options, values = CASES[name]
    return loop(
        features,
        reports,
        epsilon,
        slope=probit_slope if "link" in options else logistic_slope,
        step=functools.partial(inverse_time, epsilon) if "step_size" in options else lambda t: values["learning_rate"],
        radius=values.get("radius", np.inf),
        zero_sum=options.get("zero_sum", False),
        average=options.get("average", "last_half"),
    )


@pytest.mark.parametrize("name", CASES)
def test_sgd_rr_is_the_papers_loop(data, name):
    features, labels = data
    estimator, fit = make(name, sgd_rr)
    for epsilon in [0.1, 1.0, 4.0, np.inf]:
        params = estimator.params(epsilon=epsilon, **CASES[name][1])
        reports = estimator.privatize(jax.random.key(0), params, features, labels)
        assert np.isinf(epsilon) == bool(np.all(reports == labels)) or epsilon == 4.0
        result = fit(jax.random.key(1), params, features, reports)
        check_equal(result.theta, expectation(name, features, reports, epsilon))
        assert (result.certificate, result.steps, result.converged) == (np.inf, NUM_SAMPLES, False)


def check_lanes(name, features, labels):
    """Checks many lanes in one program: epsilons x orders of samples.

    The features of one order at a time are shared.
    """
    estimator, fit = make(name, sgd_rr)
    epsilons, shifts = [0.1, 1.0, np.inf], [0, 3]
    points = [estimator.params(epsilon=epsilon, **CASES[name][1]) for epsilon in epsilons]
    orders = jnp.stack([jnp.roll(features, shift, axis=0) for shift in shifts])
    reports = jnp.stack(
        [
            jnp.stack([estimator.privatize(jax.random.key(shift), point, features, labels) for point in points])
            for shift in shifts
        ]
    )
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *points)
    many = jax.jit(jax.vmap(jax.vmap(fit, (None, 0, None, 0)), (None, None, 0, 0)))
    thetas = many(jax.random.key(1), stacked, orders, reports).theta
    for i, j in np.ndindex(len(shifts), len(epsilons)):
        check_equal(thetas[i, j], expectation(name, orders[i], reports[i, j], epsilons[j]))


@pytest.mark.parametrize("name", CASES)
def test_many_lanes_at_once_are_the_papers_loop(data, name):
    check_lanes(name, *data)


@pytest.mark.parametrize("num_samples", [1, 20, 2, 7, 40])
def test_many_lanes_of_few_samples(data, num_samples):
    check_lanes("last_half", data[0][:num_samples], data[1][:num_samples])


@pytest.mark.parametrize("name", CASES)
def test_sgd_is_the_loop_at_infinite_epsilon(data, name):
    features, labels = data
    estimator, fit = make(name, sgd)
    params = estimator.params(**CASES[name][1])
    np.testing.assert_array_equal(estimator.privatize(jax.random.key(0), params, features, labels), labels)
    theta = fit(jax.random.key(1), params, features, labels).theta
    check_equal(theta, expectation(name, features, labels, np.inf))


def test_an_odd_half_and_a_single_sample(data):
    """Checks that the last 2 of 3 iterates are averaged, and the only one of 1."""
    features, labels = data
    estimator = sgd(average="last_half")
    for n in [1, 2, 3]:
        theta = estimator.fit(jax.random.key(1), estimator.params(), features[:n], labels[:n]).theta
        expected = loop(features[:n], labels[:n], np.inf, slope=logistic_slope, step=lambda t: 0.1, average="last_half")
        check_equal(theta, expected)


def test_a_gradient_without_debiasing_is_caught(data):
    """Plants reports taken for labels."""
    features, labels = data
    estimator, _ = make("last", sgd_rr)
    params = estimator.params(epsilon=1.0, **CASES["last"][1])
    reports = estimator.privatize(jax.random.key(0), params, features, labels)
    wrong = make("last", sgd)[1](jax.random.key(1), sgd().params(**CASES["last"][1]), features, reports)
    with pytest.raises(AssertionError):
        check_equal(wrong.theta, expectation("last", features, reports, 1.0))


def test_a_step_size_without_epsilon_is_caught(data):
    """Plants 1 / (gamma kappa t); the same optimizer with the right step passes."""
    features, labels = data

    def theta(step_epsilon):
        optimizer = optax.sgd(lambda count: inverse_time(step_epsilon, jnp.asarray(count, DTYPE) + 1))
        estimator = sgd_rr(average="none", optimizer=optimizer)
        params = estimator.params(epsilon=1.0, radius=INVERSE_TIME["radius"])
        return jax.jit(estimator.fit)(jax.random.key(1), params, features, reports).theta

    reports = randomized_response(jax.random.key(0), labels, 1.0)
    expected = expectation("inverse_time", features, reports, 1.0)
    check_equal(theta(1.0), expected)
    with pytest.raises(AssertionError):
        check_equal(theta(np.inf), expected)


@pytest.mark.parametrize("average", ["none", "all"])
def test_sgd_on_the_perturbed_objective(data, average):
    """Checks the gradient sigmoid(x.theta) x - S~/n + (beta/n) theta; the literal form has raw labels and w / n."""
    features, labels = data
    values = {"epsilon": 5.0, "delta": 1e-2, "radius": 1.0, "regularization": 6.0, "learning_rate": 0.3}
    for factory in [sgd_objective_perturbation, literal_objective_perturbation]:
        estimator = factory(average=average)
        params = estimator.params(**values)
        report = estimator.privatize(jax.random.key(0), params, features, labels)
        theta = jax.jit(estimator.fit)(jax.random.key(1), params, features, report).theta
        lanes = jax.jit(jax.vmap(estimator.fit, (0, None, None, None)))
        keys = jax.random.split(jax.random.key(1), 2)
        check_equal(lanes(keys, params, *jax.tree.map(jnp.asarray, (features, report))).theta, [theta, theta])
        shifted = jax.vmap(estimator.fit, (None, None, 0, None))(
            keys[0], params, jnp.stack([features, features[::-1]]), report
        )
        check_equal(shifted.theta[0], theta)
        literal = factory is literal_objective_perturbation
        targets, linear = report if literal else (np.zeros(NUM_SAMPLES, int), -report)
        linear = np.asarray(linear, float)
        expected = loop(
            features,
            targets,
            np.inf,
            slope=logistic_slope,
            step=lambda t: 0.3,
            radius=1.0,
            average=average,
            drift=lambda theta, linear=linear: (linear + 6.0 * theta) / NUM_SAMPLES,
        )
        check_equal(theta, expected)


def second_gradient(start):
    """Builds an optimiser that goes to `start` at the first sample, and by minus the gradient at the second."""

    def init(params):
        del params
        return jnp.int32(0)

    def update(updates, state, params=None):
        del params
        return jnp.where(state == 0, start, -updates), state + 1

    return optax.GradientTransformation(init, update)


def check_expected_gradient(privatize, label, epsilon, num_keys=20_000):
    """Checks E[g^] = (2 sigma(eps) - 1) [sigma(x.theta) - y] x at some theta, within 5 standard errors."""
    features = jnp.array([[1.0, 0.0], [0.7, -0.4]], DTYPE)
    start = jnp.array([0.5, -1.0], DTYPE)
    labels = jnp.array([0, label], jnp.int32)
    estimator = sgd_rr(average="none", optimizer=second_gradient(start))
    params = estimator.params(epsilon=epsilon)

    def gradient(key):
        report = privatize(key, params, features, labels)
        return start - estimator.fit(key, params, features, report).theta

    gradients = np.asarray(jax.jit(jax.vmap(gradient))(jax.random.split(jax.random.key(5), num_keys)), float)
    x = np.asarray(features[1], float)
    expected = (2 * expit(epsilon) - 1) * (expit(x @ np.asarray(start, float)) - label) * x
    error = gradients.std(0) / math.sqrt(num_keys)
    assert np.all(np.abs(gradients.mean(0) - expected) <= 5 * error + 1e-6)


@pytest.mark.parametrize(("label", "epsilon"), [(0, 1.0), (1, 1.0), (1, 0.3)])
def test_the_gradient_is_unbiased(label, epsilon):
    check_expected_gradient(sgd_rr().privatize, label, epsilon)

    def wrong_probability(key, params, features, labels):
        del params, features
        truth = 0.95 * expit(epsilon)  # planted: 5% off
        return randomized_response(key, labels, math.log(truth / (1 - truth)))

    with pytest.raises(AssertionError):
        check_expected_gradient(wrong_probability, label, epsilon)
