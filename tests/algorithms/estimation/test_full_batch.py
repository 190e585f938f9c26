"""The full-batch estimators against SciPy, which minimises the papers' formulas in float64, written without JAX."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr

from jaxdp.estimation import debiased_rr, mle, mle_rr, objective_perturbation
from jaxdp.estimation.objectives import (
    label_loss,
    likelihood_objective,
    randomized_label_loss,
    statistic_objective,
)
from jaxdp.preferences import logistic, probit

NUM_SAMPLES, DIM = 80, 3
X64 = bool(jax.config.read("jax_enable_x64"))
DTYPE = jax.dtypes.canonicalize_dtype(float)
TOLERANCE = 1e-9 if X64 else 3e-6
ATOL = 1e-6 if X64 else 5e-4  # the tolerance over the least curvature
LOG_CDF = {"logistic": lambda z: -np.logaddexp(0, -z), "probit": log_ndtr}
CDF = {"logistic": expit, "probit": ndtr}
DENSITY = {
    "logistic": lambda z: expit(z) * expit(-z),
    "probit": lambda z: np.exp(-z * z / 2) / np.sqrt(2 * np.pi),
}
LINKS = {"logistic": logistic, "probit": probit}


@pytest.fixture
def data():
    """Makes features, and labels for a parameter of norm about 1.3."""
    generator = np.random.default_rng(5)
    features = generator.normal(size=(NUM_SAMPLES, DIM))
    labels = generator.uniform(size=NUM_SAMPLES) < expit(features @ [1.0, -0.8, 0.3])
    return jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)


def scipy_minimum(objective, radius, zero_sum=False):
    """Minimises theta -> (value, gradient) over the ball; also returns its projected gradient's norm."""
    constraints = []
    if np.isfinite(radius):
        constraints.append({"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t})
    if zero_sum:
        constraints.append({"type": "eq", "fun": np.sum, "jac": np.ones_like})
    options = {"ftol": 1e-15, "maxiter": 1000}
    theta = minimize(objective, np.zeros(DIM), jac=True, method="SLSQP", constraints=constraints, options=options).x
    gradient = objective(theta)[1]
    moved = theta - (gradient - gradient.mean() if zero_sum else gradient)
    certificate = np.linalg.norm(theta - moved / max(1, np.linalg.norm(moved) / radius))
    assert certificate < 1e-6, "SciPy failed, not jaxdp"
    return theta


def label_objective(features, targets, link):
    """Computes the mean of -[y log F(z) + (1 - y) log F(-z)], y real."""

    def objective(theta):
        z = features @ theta
        log_win, log_loss = LOG_CDF[link](z), LOG_CDF[link](-z)
        win, loss = np.exp(np.log(DENSITY[link](z)) - log_win), np.exp(np.log(DENSITY[link](z)) - log_loss)
        value = -np.mean(targets * log_win + (1 - targets) * log_loss)
        return value, -(targets * win - (1 - targets) * loss) @ features / len(features)

    return objective


def randomized_objective(features, reports, link, epsilon):
    """Computes the mean of -log P(report), P(1) = p F(z) + (1 - p) (1 - F(z))."""
    truth = expit(epsilon)

    def objective(theta):
        z = features @ theta
        win = truth * CDF[link](z) + (1 - truth) * CDF[link](-z)
        slope = np.where(reports == 1, 1 / win, -1 / (1 - win)) * (2 * truth - 1) * DENSITY[link](z)
        return -np.mean(np.log(np.where(reports == 1, win, 1 - win))), -slope @ features / len(features)

    return objective


def statistic_sum(features, statistic, beta=0.0):
    """Computes the mean of log(1 + exp(z)), less theta . S / n, plus beta / 2n |theta|^2."""

    def objective(theta):
        z, n = features @ theta, len(features)
        value = np.mean(np.logaddexp(0, z)) - statistic @ theta / n + beta / (2 * n) * theta @ theta
        return value, expit(z) @ features / n - statistic / n + beta / n * theta

    return objective


def independent_objective(name, link, features, report):
    epsilon = VALUES[name].get("epsilon")
    features, report = np.asarray(features, float), np.asarray(report, float)
    if name == "mle":
        return label_objective(features, report, link)
    if name == "debiased_rr":
        truth = expit(epsilon)
        return label_objective(features, (report - (1 - truth)) / (2 * truth - 1), link)
    if name == "mle_rr":
        return randomized_objective(features, report, link, epsilon)
    return statistic_sum(features, report)


FACTORIES = {"mle": mle, "debiased_rr": debiased_rr, "mle_rr": mle_rr, "objective_perturbation": objective_perturbation}
CASES = [(name, link) for name in FACTORIES for link in LINKS if name != "objective_perturbation" or link == "logistic"]


VALUES = {"mle": {}, "debiased_rr": {"epsilon": 3.0}, "mle_rr": {"epsilon": 3.0}}
VALUES["objective_perturbation"] = {"epsilon": 3.0, "delta": 1e-3}


@functools.cache
def make(name, link="logistic", zero_sum=False):
    """Builds the estimator and its compiled fit."""
    options = {} if name == "objective_perturbation" else {"link": LINKS[link]}
    estimator = FACTORIES[name](zero_sum=zero_sum, **options)
    return estimator, jax.jit(estimator.fit)


def check_agrees_with_scipy(name, link, features, labels, radius, zero_sum=False):
    estimator, fit = make(name, link, zero_sum)
    params = estimator.params(**VALUES[name], radius=radius, tolerance=TOLERANCE)
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    result = fit(jax.random.key(1), params, features, report)
    objective = independent_objective(name, link, features, report)
    np.testing.assert_allclose(result.theta, scipy_minimum(objective, radius, zero_sum), rtol=0, atol=ATOL)
    assert result.converged
    assert 0 <= result.certificate <= TOLERANCE
    assert 1 <= result.steps <= 30
    assert abs(result.theta.sum()) < 1e-5 or not zero_sum
    return np.linalg.norm(result.theta)


@pytest.mark.parametrize(
    ("name", "link", "zero_sum"),
    [
        ("mle", "probit", False),
        ("mle_rr", "probit", True),
        ("objective_perturbation", "logistic", True),
        *((*case, False) for case in CASES if case != ("mle", "probit")),
        ("debiased_rr", "logistic", True),  # the golden versions try these, too
    ],
)
def test_agrees_with_scipy(data, name, link, zero_sum):
    features, labels = data
    free, inside, boundary = (
        check_agrees_with_scipy(name, link, features, labels, radius, zero_sum) for radius in [np.inf, 50.0, 0.4]
    )
    np.testing.assert_allclose(boundary, 0.4, rtol=1e-5)
    assert inside == pytest.approx(free, rel=1e-2)
    assert 0.4 < inside < 50


@pytest.mark.parametrize(("name", "link"), CASES)
def test_labels_all_one(data, name, link):
    check_agrees_with_scipy(name, link, data[0], jnp.ones(NUM_SAMPLES, jnp.int32), 2.0)


@pytest.mark.parametrize(("name", "link"), CASES)
def test_large_margins_give_no_nan(data, name, link):
    """Checks features of norm 1e4, and labels that separate or that contradict."""
    features, labels = data
    features = 1e4 * features / jnp.linalg.norm(features, axis=1, keepdims=True)
    estimator, fit = make(name, link)
    epsilons = [{"epsilon": 3.0}, {"epsilon": np.inf}] if VALUES[name] else [{}]
    for radius, label, epsilon in itertools.product(
        [1.0, np.inf], [labels, (features[:, 0] > 0).astype(int)], epsilons
    ):
        params = estimator.params(**{**VALUES[name], **epsilon}, radius=radius)
        report = estimator.privatize(jax.random.key(0), params, features, label.astype(jnp.int32))
        result = fit(jax.random.key(1), params, features, report)
        assert np.all(np.isfinite(result.theta))
        assert np.isfinite(result.certificate)
        assert np.linalg.norm(result.theta) <= radius * (1 + 1e-5)


@pytest.mark.parametrize(
    ("name", "optimizer", "radius"),
    [
        ("mle", optax.sgd(0.5), 20.0),
        ("mle", optax.sgd(0.5), 0.4),
        ("mle", optax.adam(0.1), 20.0),
        ("mle_rr", optax.sgd(0.5), 20.0),
    ],
)
def test_a_users_optimizer_reaches_the_same_answer(data, name, optimizer, radius):
    features, labels = data
    estimator = FACTORIES[name](optimizer=optimizer, max_steps=3000)
    params = estimator.params(**VALUES[name], radius=radius, tolerance=3e-6)
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    with jax.numpy_dtype_promotion("standard"):  # Optax's Adam raises a float to an integer power
        result = jax.jit(estimator.fit)(jax.random.key(1), params, features, report)
    objective = independent_objective(name, "logistic", features, report)
    np.testing.assert_allclose(result.theta, scipy_minimum(objective, radius), rtol=0, atol=5e-4)
    assert result.converged
    assert 0 <= result.certificate <= 3e-6


@pytest.mark.parametrize("learning_rate", [0.05, 30.0])
def test_too_few_steps_return_the_best_certificate(data, learning_rate):
    """Takes a large step, with which iterates jump across the ball and the last one is not the best."""
    features, labels = data
    max_steps, radius = 4, 2.0
    estimator = mle(optimizer=optax.sgd(learning_rate), max_steps=max_steps)
    result = jax.jit(estimator.fit)(jax.random.key(1), estimator.params(radius=radius), features, labels)

    objective = label_objective(np.asarray(features, float), np.asarray(labels), "logistic")
    iterates, certificates = [np.zeros(DIM)], []
    for _ in range(max_steps):
        theta, gradient = iterates[-1], objective(iterates[-1])[1]
        moved = theta - gradient
        certificates.append(np.linalg.norm(theta - moved / max(1, np.linalg.norm(moved) / radius)))
        moved = theta - learning_rate * gradient
        iterates.append(moved / max(1, np.linalg.norm(moved) / radius))
    best = int(np.argmin(certificates))
    assert (best == max_steps - 1) == (learning_rate < 1)
    np.testing.assert_allclose(result.theta, iterates[best], atol=1e-4)
    np.testing.assert_allclose(result.certificate, certificates[best], rtol=1e-3)
    assert not result.converged
    assert result.steps == max_steps


def test_a_single_sample_is_fitted_along_its_feature():
    features = jnp.array([[0.6, -0.8, 0.0]], DTYPE)
    estimator = mle()
    for label, sign in [(1, 1.0), (0, -1.0)]:
        result = jax.jit(estimator.fit)(
            jax.random.key(1), estimator.params(radius=1.5), features, jnp.array([label], jnp.int32)
        )
        np.testing.assert_allclose(result.theta, sign * 1.5 * np.asarray(features[0]), atol=1e-4)
        assert result.converged


def loss_of_labels(name):
    return label_loss(LINKS[name]), lambda z, y: -(y * LOG_CDF[name](z) + (1 - y) * LOG_CDF[name](-z))


def loss_of_reports(name, epsilon):
    def formula(z, y):
        truth, win, loss = expit(epsilon), LOG_CDF[name](z), LOG_CDF[name](-z)
        with np.errstate(divide="ignore"):
            lie = np.log(expit(-epsilon))
            log_one = np.logaddexp(np.log(truth) + win, lie + loss)
            log_zero = np.logaddexp(np.log(truth) + loss, lie + win)
        return -(y * log_one + (1 - y) * log_zero + np.log(2)) / np.tanh(epsilon / 2) ** 2

    return randomized_label_loss(LINKS[name], jnp.asarray(epsilon, DTYPE)), formula


LOSSES = [
    pytest.param(functools.partial(make, name, *values), id="-".join([kind, name, *map(str, values)]))
    for name in LINKS
    for kind, make, *values in [
        ("labels", loss_of_labels),
        ("reports", loss_of_reports, 0.3),
        ("reports", loss_of_reports, np.inf),
    ]
]


@pytest.mark.parametrize("make", LOSSES)
def test_a_loss_and_its_derivatives(make):
    """Compares with differences of the formula in float64 (labels 0 and 1); values are finite far out."""
    loss, value = make()
    near, far = np.linspace(-6, 6, 97), np.array([-1e4, -300, -20, 20, 300, 1e4])
    evaluate = jax.jit(lambda z, y: (loss.value(z, y), loss.slope(z, y), loss.curvature(z, y)))
    rtol, h = 1e-5 if X64 else 1e-3, 1e-3
    for y in [0.0, 1.0]:
        computed = np.asarray(evaluate(jnp.asarray(np.concatenate([near, far]), DTYPE), jnp.asarray(y, DTYPE)))
        before, at, after = value(near - h, y), value(near, y), value(near + h, y)
        slopes, curvatures = (after - before) / (2 * h), (after - 2 * at + before) / h**2
        for mine, expected in zip(computed[:, : len(near)], [at, slopes, curvatures], strict=True):
            np.testing.assert_allclose(mine, expected, rtol=rtol, atol=rtol * np.max(np.abs(expected)))
        assert np.all(np.isfinite(computed))
        np.testing.assert_allclose(computed[0, len(near) :], value(far, y), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not X64, reason="needs float64")
@pytest.mark.parametrize("make", [case for case in LOSSES if not str(case.id).endswith("inf")])
def test_derivatives_are_those_that_jax_finds(make):
    loss, _ = make()
    evaluate = jax.jit(jax.vmap(lambda z, y: (loss.slope(z, y), loss.curvature(z, y)), (0, None)))
    differentiate = jax.jit(jax.vmap(lambda z, y: (jax.grad(loss.value)(z, y), jax.grad(loss.slope)(z, y)), (0, None)))
    z = jnp.linspace(-5, 5, 41)
    for y in [0.0, 1.0]:
        np.testing.assert_allclose(evaluate(z, y), differentiate(z, y), atol=1e-9)


@pytest.mark.parametrize("kind", ["statistic", "probit", "mle_rr"])
def test_an_objectives_gradient_and_hessian(data, kind):
    features, labels = data
    if kind == "statistic":
        objective = statistic_objective(features, labels.astype(DTYPE) @ features, jnp.asarray(3.0, DTYPE))
    elif kind == "probit":
        objective = likelihood_objective(features, labels.astype(DTYPE), label_loss(probit))
    else:
        loss = randomized_label_loss(logistic, jnp.asarray(1.0, DTYPE))
        objective = likelihood_objective(features, labels.astype(DTYPE), loss)
    theta = jnp.array([0.4, 0.2, -1.0], DTYPE)
    evaluation, gradient, hessian = jax.jit(
        lambda t: (
            objective(t),
            jax.grad(lambda u: objective(u).value)(t),
            jax.jacfwd(lambda u: objective(u).gradient)(t),
        )
    )(theta)
    atol = 1e-10 if X64 else 3e-5
    np.testing.assert_allclose(evaluation.gradient, gradient, atol=atol)
    np.testing.assert_allclose(evaluation.hessian, hessian, atol=atol)


@pytest.mark.parametrize("link", [logistic, probit], ids=lambda link: link.name)
def test_without_privacy_the_likelihood_of_reports_is_that_of_labels(link):
    """Checks large margins too, where F underflows and only the ratio of logs remains."""
    margins = jnp.asarray([-1e4, -1e3, -100.0, -3.0, 0.0, 3.0, 100.0, 1e4], DTYPE)
    private, clear = randomized_label_loss(link, jnp.asarray(jnp.inf, DTYPE)), label_loss(link)
    for label in (0.0, 1.0):
        target = jnp.full_like(margins, label)
        np.testing.assert_allclose(private.slope(margins, target), clear.slope(margins, target), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(
            private.curvature(margins, target), clear.curvature(margins, target), rtol=1e-3, atol=2e-3
        )
