"""Optimism in a generalized linear model: against a plain version, its ellipsoid, what leaves the device, bad input."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import _descent, generalized_linear, generalized_linear_contexts
from jaxdp.bandits.contextual._generalized_linear import smallest_slope
from jaxdp.core import default_float
from jaxdp.preferences import Link, logistic, probit

KEY = partial(jax.random.key, 5)
SIZES: Any = {"num_arms": 4, "dim": 2, "horizon": 100}
PRIVATE = {"epsilon": 1.0, "delta": 1e-3}


def test_the_slope_of_links():
    assert smallest_slope(logistic) == pytest.approx(math.e / (1 + math.e) ** 2, rel=1e-5)
    assert smallest_slope(probit) == pytest.approx(math.exp(-0.5) / math.sqrt(2 * math.pi), rel=1e-5)
    flat = Link("flat", lambda z: 0.5 + 0 * z, lambda z: math.log(0.5) + 0 * z, lambda z: 0 * z, lambda z: 0 * z)
    with pytest.raises(ValueError, match=r"link must have a slope > 0 on \[-1, 1\], got 0.0 of flat"):
        generalized_linear(**SIZES, link=flat)


# ---- without privacy -------------------------------------------------------------------------------------------------
ARMS, DIM, ROUNDS = 5, 3, 40


def plain(contexts, uniforms, theta, *, curvature, bound, residual=3.0, failure_prob=0.05, slow=1.0):
    """Plays GLOC with gradient descent, as Jun et al. (2017) and the paper write it, in NumPy, without noise."""
    gram, cross, iterate, played = 2 * np.eye(DIM), np.zeros(DIM), np.zeros(DIM), []
    rate = slow / (residual * math.sqrt(ROUNDS))
    for t in range(ROUNDS):
        inverse = np.linalg.inv(gram)
        width = math.sqrt(3) + bound(t, rate, curvature, math.log(6 * ROUNDS / failure_prob))
        x = contexts[t]
        arm = int(np.argmax(x @ inverse @ cross + width * np.sqrt(np.sum((x @ inverse) * x, axis=1))))
        played.append(arm)
        mean, predicted = (1 / (1 + np.exp(-x[arm] @ w)) for w in (theta, iterate))
        gram = gram + np.outer(x[arm], x[arm])
        cross = cross + x[arm] * (x[arm] @ iterate)
        iterate = iterate - rate * (predicted - (uniforms[t] < mean)) * x[arm]
        iterate = iterate / max(1.0, np.linalg.norm(iterate))
    return played, np.linalg.inv(gram) @ cross, iterate


def bound_by_hand(t, rate, curvature, log_term, residual=3.0):
    learned = 1 / (2 * rate) + rate / 2 * residual**2 * t
    # mu Z <= B + sqrt(2 l Z), with R = 1
    root = (math.sqrt(2 * log_term) + math.sqrt(2 * log_term + 4 * curvature * learned)) / (2 * curvature)
    assert curvature * root**2 == pytest.approx(learned + math.sqrt(2 * log_term) * root, rel=1e-9)
    return root


@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_without_privacy(report):
    rng = np.random.default_rng(2)
    contexts = rng.normal(size=(ROUNDS, ARMS, DIM))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True) + rng.uniform(size=(ROUNDS, ARMS, 1))
    uniforms, theta = rng.uniform(size=ROUNDS), np.array([0.6, -0.6, 0.3])
    learner = generalized_linear(num_arms=ARMS, dim=DIM, horizon=ROUNDS, report=report, update_every=1)
    params = learner.params(epsilon=math.inf, **({"delta": 1e-3} if report == "gaussian" else {}))

    def step(state, round_):
        x, uniform, key = round_
        keys = jax.random.split(key, 3)
        arm = learner.act(keys[0], params, state.public, x)
        reward = (uniform < jax.nn.sigmoid(x[arm] @ jnp.asarray(theta, x.dtype))).astype(x.dtype)
        told = learner.privatize(keys[1], params, state.public, x, arm, reward)
        return learner.update(keys[2], params, state, told), arm

    dtype = default_float()
    given = contexts.astype(dtype), uniforms.astype(dtype), jax.random.split(KEY(), ROUNDS)
    state, found = jax.jit(lambda: jax.lax.scan(step, learner.init(KEY(), params), given))()
    options = {"curvature": math.e / (1 + math.e) ** 2, "bound": bound_by_hand}
    played, centre, iterate = plain(contexts, uniforms, theta, **options)
    assert found.tolist() == played
    np.testing.assert_allclose(state.public.model.theta, centre, rtol=0, atol=1e-4)
    np.testing.assert_allclose(state.public.iterate, iterate, rtol=0, atol=1e-4)
    planted = plain(contexts, uniforms, theta, **options, slow=0.5)
    assert np.abs(planted[2] - iterate).max() > 1e-2


# ---- the ellipsoid ---------------------------------------------------------------------------------------------------
def test_widths_are_those_of_the_proof():
    """Compares widths with the formulas of `_descent.py`, in float64, at 5 dimensions."""
    dim, horizon, log = 5, 1000, math.log(6 * 1000 / 0.05)
    slope = math.e / (1 + math.e) ** 2
    for report, values in (("gaussian", PRIVATE), ("l2_ball", {"epsilon": 2.0})):
        made = generalized_linear(num_arms=2, dim=dim, horizon=horizon, report=report).params(
            **values, residual_bound=1.5, noise_proxy=0.25
        )
        randomizer = made.randomizer
        spread, cross, radius = (1.5 * float(each) for each in randomizer_sizes(randomizer))
        rate = float(made.descent.learning_rate)
        for t in (0, 7, horizon):
            if report == "gaussian":
                squares = 1.5**2 * t + spread**2 * (math.sqrt(t * dim) + math.sqrt(2 * log)) ** 2
                drift = (2 + 1.5 * rate) * spread * math.sqrt(2 * t * log)
            else:
                mean = dim * spread**2
                squares = mean * t + math.sqrt(2 * log * mean * t) * radius + radius**2 * log / 3
                drift = 2 * cross * math.sqrt(2 * t * log)
            learned = 1 / (2 * rate) + rate / 2 * squares + drift
            root = float(_descent.prediction_width(made.descent, jnp.asarray(t, default_float())))
            # mu Z = B + sqrt(2 R^2 l Z)
            np.testing.assert_allclose(slope * root**2, learned + math.sqrt(2 * 0.25 * log) * root, rtol=1e-4)
            if t == horizon:
                assert rate == pytest.approx(squares**-0.5, rel=1e-5)


def randomizer_sizes(randomizer):
    return randomizer.noise_stddev, randomizer.cross_stddev, randomizer.report_radius


def distances(lanes, rounds, report="gaussian", dim=2, **values):
    """Returns |theta~ - theta|_V / beta at ten checkpoints."""
    learner = generalized_linear(num_arms=4, dim=dim, horizon=rounds, report=report, update_every=0.05)

    def distance(snapshot):
        model = snapshot.public.model
        apart = model.lower.T @ (model.theta - snapshot.world.theta)
        return jnp.sqrt(jnp.sum(apart**2)) / model.width

    environment = generalized_linear_contexts(num_arms=4, dim=dim)
    run = jaxdp.simulator(learner, environment, rounds, checkpoints=10, record={"distance": distance})
    told = {"residual_bound": 1.0, "noise_proxy": 0.25, **values}
    return np.asarray(
        jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), lanes), run.params(**told))["distance"]
    )


def test_the_ellipsoid_covers_theta():
    found = distances(40, 100, epsilon=4.0, delta=1e-2)
    assert (found < 1).all()
    assert found.max() > 0.2, "a bound that is much too wide"


@pytest.mark.parametrize(
    ("report", "values"),
    [("gaussian", {"epsilon": 1.0, "delta": 1e-5}), ("l2_ball", {"epsilon": 1.0}), ("l2_ball", {"epsilon": math.inf})],
)
def test_the_ellipsoid_covers_theta_in_a_thousand_runs(report, values):
    found = distances(1000, 2000, report, 5, **values)
    assert (found > 1).any(axis=1).mean() <= 0.05
    assert found.max() > 0.2


# ---- what leaves the device ------------------------------------------------------------------------------------------
def test_residuals_are_clipped_and_contexts_scaled_down():
    learner = generalized_linear(**SIZES)
    params = learner.params(epsilon=math.inf, delta=1e-3)
    state = learner.init(KEY(), params)
    iterate = jnp.asarray([0.6, -0.8], default_float())
    public = state.public._replace(iterate=iterate)
    context = jnp.asarray([[30.0, 40.0], [np.nan, 0.5]] * 2, default_float())
    tell = jax.jit(
        lambda arm, y: learner.privatize(KEY(), params, public, context, arm, jnp.asarray(y, default_float()))
    )
    x = np.array([0.6, 0.8])
    mean = 1 / (1 + math.exp(-(x @ np.asarray(iterate, float))))
    for y, residual in ((0.0, mean), (1.0, mean - 1), (-7.0, 3.0), (math.inf, -3.0), (math.nan, 0.0)):
        outer, cross = tell(0, y)
        np.testing.assert_allclose(outer, np.outer(x, x)[np.triu_indices(2)], atol=1e-6)
        np.testing.assert_allclose(cross, residual * x, atol=1e-6)
    np.testing.assert_allclose(tell(1, 0.0)[1], [0, 0.5 / (1 + math.exp(0.4))], atol=1e-6)


def test_noise_of_gradients_is_that_of_their_bound():
    """Checks that noise is 2 C + 1 times the noise of x x^T; a planted C is detected."""
    learner = generalized_linear(**SIZES)
    params = learner.params(**PRIVATE)
    public = learner.init(KEY(), params).public
    context = jnp.zeros((4, 2), default_float())
    tell = jax.jit(
        jax.vmap(lambda key: learner.privatize(key, params, public, context, 0, jnp.zeros((), default_float())))
    )
    outer, cross = tell(jax.random.split(KEY(), 2000))
    stddev = float(params.randomizer.noise_stddev)
    error = 5 / math.sqrt(2 * 4000)
    np.testing.assert_allclose(np.std(np.asarray(outer)[:, [0, 2]]) / stddev, 1, atol=error)
    np.testing.assert_allclose(np.std(outer[:, 1]) / stddev, math.sqrt(0.5), atol=error)
    ratio = np.std(cross) / stddev
    np.testing.assert_allclose(ratio, 3, atol=3 * error)
    assert abs(ratio - 1) > 3 * error


def test_the_iterate_stays_in_the_ball_and_moves_against_the_gradient():
    learner = generalized_linear(**SIZES)
    descent = learner.params(**PRIVATE, learning_rate=0.5).descent
    here = jnp.asarray([0.6, 0.0], default_float())
    np.testing.assert_allclose(
        _descent.step(descent, here, jnp.asarray([0.4, -0.2], here.dtype)), [0.4, 0.1], atol=1e-6
    )
    far = _descent.step(descent, here, jnp.asarray([-7.0, 2.0], here.dtype))
    np.testing.assert_allclose(far, np.array([4.1, -1]) / math.hypot(4.1, 1), atol=1e-6)


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_arms": 1}, "num_arms must be"),
        ({"dim": 0}, "dim must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"report": "rr"}, "report must be one of gaussian, l2_ball, got 'rr'"),
        ({"link": "cauchy"}, "link must be one of logistic, probit, got 'cauchy'"),
        ({"link": None}, "link must be a Link or the name of a link"),
        ({"update_every": 0.0}, "update_every must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        generalized_linear(**{**SIZES, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"delta": 0.0}, "delta must be in"),
        ({"residual_bound": 0.0}, "residual_bound must be > 0"),
        ({"residual_bound": math.nan}, "residual_bound must be"),
        ({"noise_proxy": -1.0}, "noise_proxy must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"failure_prob": 1.0}, "failure_prob must be in"),
        ({"confidence_multiplier": math.inf}, "confidence_multiplier must be"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        generalized_linear(**SIZES).params(**{**PRIVATE, **values})


def test_contexts_of_whole_numbers():
    """Checks that a user's own environment may have integer contexts, as for `linear_ucb`."""
    learner = generalized_linear(num_arms=2, dim=2, horizon=9)
    params = learner.params(epsilon=math.inf, delta=1e-3)
    public = learner.init(jax.random.key(0), params).public
    told = learner.privatize(jax.random.key(0), params, public, jnp.eye(2, dtype=jnp.int8), 1, jnp.int32(1))
    np.testing.assert_allclose(told.outer, [0, 0, 1])
    np.testing.assert_allclose(told.cross, [0, -0.5])
