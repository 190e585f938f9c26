"""Greedy play on private gradients: reports, steps, regret with and without a variety of contexts, bad input."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import greedy_sgd, linear_contexts

DTYPE = jnp.result_type(float)
LEARNER = greedy_sgd(num_arms=2, dim=2)
X = np.array([0.6, 0.8])


def report(reward, *, context=((30.0, 40.0), (np.nan, 0.5)), action=0, theta=(0.0, 0.0), **values):
    """Returns a report of one user, by default of a context that is too long."""
    params = LEARNER.params(**{"epsilon": math.inf, **values})
    public = LEARNER.init(jax.random.key(0), params).public._replace(theta=jnp.asarray(theta, DTYPE))
    contexts = jnp.asarray(context, DTYPE)
    return LEARNER.privatize(jax.random.key(3), params, public, contexts, action, jnp.asarray(reward, DTYPE))


def test_gradients_are_computed_from_clipped_data():
    for reward, clipped in ((0.25, 0.25), (7.0, 2.0), (-math.inf, -2.0), (math.nan, 0.0)):
        found = report(reward, reward_bound=2.0, gradient_bound=9.0, theta=(1.0, 0.5))
        np.testing.assert_allclose(found, (1.0 - clipped) * X, atol=1e-6)
    np.testing.assert_allclose(report(1.0, action=1, gradient_bound=9.0), [0, -0.5], atol=1e-6)


def test_long_gradients_are_cut():
    np.testing.assert_allclose(report(1.0), -X / 2, atol=1e-6)  # half the reward bound
    np.testing.assert_allclose(report(1.0, reward_bound=3.0, gradient_bound=0.25), -X / 4, atol=1e-6)


@pytest.mark.parametrize("reward", [0.3, -0.4])
def test_reports_are_unbiased(reward):
    lanes, params = 20_000, LEARNER.params(epsilon=1.0)
    public = LEARNER.init(jax.random.key(0), params).public
    context, feedback = jnp.asarray([X, X], DTYPE), jnp.asarray(reward, DTYPE)
    draw = jax.jit(jax.vmap(lambda key: LEARNER.privatize(key, params, public, context, 0, feedback)))
    reports = np.asarray(draw(jax.random.split(jax.random.key(5), lanes)), float)
    error = reports.std(axis=0) / math.sqrt(lanes)
    assert (np.abs(reports.mean(axis=0) + reward * X) < 5 * error).all()
    assert (np.abs(reports.mean(axis=0) + 2 * reward * X) > 5 * error).any(), "planted: gradients twice as long"
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 0.5 * params.report_radius, rtol=1e-5)


def test_steps_follow_the_formula_and_stay_in_the_ball():
    params = LEARNER.params(epsilon=1.0, step_multiplier=0.7)
    state = LEARNER.init(jax.random.key(0), params)
    radius = 0.5 * math.pi / 2 / math.tanh(0.5)  # sqrt(pi) Gamma(3 / 2) / Gamma(1) = pi / 2
    for round_ in (1, 2):
        before = np.asarray(state.public.theta, float)
        state = LEARNER.update(jax.random.key(0), params, state, jnp.asarray(X, DTYPE))
        expected = before - 0.7 * 2 / (round_ + (2 * radius) ** 2) * X
        np.testing.assert_allclose(state.public.theta, expected, rtol=1e-5)
    state = LEARNER.update(jax.random.key(0), params, state, jnp.asarray(-1e6 * X, DTYPE))
    np.testing.assert_allclose(state.public.theta, X, rtol=1e-5)


def regrets(world, epsilon, *, horizon=2_000, lanes=50):
    learner = greedy_sgd(num_arms=3, dim=3)
    run = jaxdp.simulator(learner, world, horizon, checkpoints=2)
    go = jax.jit(jax.vmap(run, in_axes=(0, None)))
    found = go(jax.random.split(jax.random.key(9), lanes), run.params(epsilon=epsilon))["pseudo_regret"]
    halves = np.asarray(found, float)
    return halves[:, 0].mean(), (halves[:, 1] - halves[:, 0]).mean()


def test_regret_flattens_if_contexts_vary_and_grows_linearly_if_they_do_not():
    first, second = regrets(linear_contexts(num_arms=3, dim=3), 8.0)
    assert second < 0.8 * first
    stuck = linear_contexts(np.eye(3), theta=[0.5, 0.3, 0.3])
    first, second = regrets(stuck, math.inf)
    assert second > 0.8 * first > 0


@pytest.mark.parametrize(
    ("options", "message"), [({"num_arms": 1}, "num_arms must be"), ({"dim": 1}, "dim must be"), ({"dim": 2.5}, "dim")]
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        greedy_sgd(**{"num_arms": 2, "dim": 2, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": math.nan}, "epsilon must be > 0"),
        ({"reward_bound": -1.0}, "reward_bound must be"),
        ({"gradient_bound": 0.0}, "gradient_bound must be"),
        ({"step_multiplier": math.inf}, "step_multiplier must be"),
        (
            {"epsilon": 1e-160 if jax.config.read("jax_enable_x64") else 1e-30},
            "delay of steps at these epsilon.* must be",
        ),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        LEARNER.params(**{"epsilon": 1.0, **values})
