"""LinUCB on one continual counter: the counted vector, its sensitivity, the ellipsoid, OFUL at infinity, bad input."""

import functools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import linear_contexts, linear_ucb, linear_ucb_joint
from jaxdp.bandits.contextual._linear_ucb_joint import Report, joint_moments, joint_vector
from jaxdp.mechanisms import tape
from jaxdp.numerics.fixed_point import UNITS, to_float

KEY = partial(jax.random.key, 9)
DTYPE = jnp.result_type(float)
PRIVATE = {"epsilon": 1.0, "delta": 1e-3}
COUNTERS = ("toeplitz", "tree")


# ---- counted values --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_joint_vector_has_the_norm_of_the_moments(dim):
    x, z = np.random.default_rng(0).normal(size=(2, dim)).astype(DTYPE)
    both = joint_vector(jnp.asarray(x), jnp.asarray(0.5, DTYPE)) - joint_vector(
        jnp.asarray(z), jnp.asarray(-2.0, DTYPE)
    )
    outer, cross = np.outer(x, x) - np.outer(z, z), 0.5 * x + 2 * z
    np.testing.assert_allclose(np.sum(np.square(both)), np.sum(outer**2) + np.sum(cross**2), rtol=1e-5)
    found = joint_moments(both, dim)
    np.testing.assert_allclose(found[0], outer[np.triu_indices(dim)], atol=1e-5)
    np.testing.assert_allclose(found[1], cross, atol=1e-5)


def counted(learner, angle, reward):
    """Returns the vector [D] that the counter gets for a user, and its declared sensitivity."""
    params = learner.params(**PRIVATE, reward_bound=2.0)
    state = learner.init(KEY(), params)
    context = jnp.asarray([[math.cos(angle), math.sin(angle)]] * 2, DTYPE)
    with tape.recording() as entries:
        report = learner.privatize(KEY(), params, state.public, context, 1, jnp.asarray(reward, DTYPE))
        learner.update(KEY(), params, state, report)
    (entry,) = entries
    return np.asarray(to_float(entry.value, DTYPE), float), float(entry.sensitivity), float(entry.noise_stddev)


@pytest.mark.parametrize("counter", COUNTERS)
def test_the_sensitivity_is_that_of_users_at_60_degrees(counter):
    learner = linear_ucb_joint(num_arms=2, dim=2, horizon=6, counter=counter, update_every=6)
    (base, declared, _), *others = (
        counted(learner, angle, reward)
        for angle, reward in [(0.0, 9.0), *((angle, -9.0) for angle in np.radians([40, 50, 60, 70, 80, 180]))]
    )
    assert declared == pytest.approx(math.sqrt(4.5), rel=1e-4)
    assert declared >= math.sqrt(4.5) + math.sqrt(5) / UNITS  # of five entries, each rounded
    apart = [np.linalg.norm(other[0] - base) for other in others]
    assert max(apart) == apart[2] == pytest.approx(math.sqrt(4.5), rel=1e-4)
    separate = math.sqrt(2) + 2  # the two moments' own sensitivities, added
    assert declared < 0.9 * separate


def test_a_user_shows_the_curator_no_action_and_what_is_clipped():
    learner = linear_ucb_joint(num_arms=3, dim=2, horizon=9)
    params = learner.params(**PRIVATE, reward_bound=2.0)
    public = learner.init(KEY(), params).public
    context = jnp.asarray([[30.0, 40.0], [30.0, 40.0], [np.nan, 0.5]], DTYPE)
    told = jax.jit(lambda arm, y: learner.privatize(KEY(), params, public, context, arm, jnp.asarray(y, DTYPE)))
    for y, clipped in ((7.0, 2.0), (-math.inf, -2.0), (math.nan, 0.0)):
        for arm in (0, 1):
            np.testing.assert_allclose(told(arm, y).context, [0.6, 0.8], atol=1e-6)
            assert float(told(arm, y).reward) == clipped
    np.testing.assert_allclose(told(2, 1.0).context, [0, 0.5], atol=1e-6)


# ---- the model -------------------------------------------------------------------------------------------------------
@functools.cache
def compiled(learner, rounds, **record):
    """Compiles a run of two dimensions, and the run of many lanes, once."""
    run = jaxdp.simulator(learner, linear_contexts(num_arms=4, dim=2), rounds, checkpoints=5, record=record)
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def simulated(learner, rounds, lanes, *, values, **record):
    run, go = compiled(learner, rounds, **record)
    found = go(jax.random.split(KEY(), lanes), run.params(**values))
    return {name: np.asarray(value) for name, value in found.items()}


def test_without_privacy_it_is_oful():
    values = {"epsilon": math.inf, "delta": 1e-3}
    sizes: Any = {"num_arms": 4, "dim": 2, "horizon": 60}
    joint, local = (
        simulated(make(**sizes, update_every=1), 60, 8, values=values)["pseudo_regret"]
        for make in (linear_ucb_joint, linear_ucb)
    )
    np.testing.assert_allclose(joint, local, rtol=1e-4, atol=1e-4)
    wider = {**values, "confidence_multiplier": 1.5}
    planted = simulated(linear_ucb_joint(**sizes, update_every=1), 60, 8, values=wider)["pseudo_regret"]
    assert np.abs(planted - local).max() > 0.1, "planted: a wider ellipsoid"
    later = simulated(linear_ucb_joint(**sizes, update_every=10), 60, 8, values=values)["pseudo_regret"]
    assert np.abs(later - local).max() > 0.1, "planted: a model that is solved for in every tenth round"


def test_both_counters_are_the_same_without_privacy():
    values = {"epsilon": math.inf, "delta": 1e-3}
    first, second = (
        simulated(
            linear_ucb_joint(num_arms=4, dim=2, horizon=60, counter=counter, update_every=5), 60, 8, values=values
        )["pseudo_regret"]
        for counter in COUNTERS
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("counter", COUNTERS)
def test_radii_are_those_of_the_specification(counter):
    dim, rounds, share, bound = 3, 40, 0.1, 2.0
    learner = linear_ucb_joint(num_arms=2, dim=dim, horizon=rounds, counter=counter, update_every=1)
    params = learner.params(**PRIVATE, reward_bound=bound, failure_prob=share, noise_proxy=1.0)
    count = {"toeplitz": jaxdp.mechanisms.toeplitz_counter, "tree": jaxdp.mechanisms.tree_counter}[counter](
        horizon=rounds, **({"noise": "gaussian"} if counter == "tree" else {})
    )
    stddevs = np.sqrt(count.variance(count.params(**PRIVATE, l2_sensitivity=math.sqrt(4.5)), np.arange(1, rounds + 1)))
    report = Report(jnp.zeros(dim, DTYPE), jnp.zeros((), DTYPE))
    start = learner.init(KEY(), params)

    def step(state, key):
        state = learner.update(key, params, state, report)
        return state, state.public.model.width

    _, found = jax.jit(lambda: jax.lax.scan(step, start, jax.random.split(KEY(), rounds)))()
    log, t = math.log(6 * rounds / share), np.arange(1, rounds + 1)
    eigen = np.maximum(1, stddevs * (math.sqrt(2 * dim) + math.sqrt(2 * log)))
    expected = np.sqrt(3 * eigen) + bound * stddevs / np.sqrt(eigen) * (math.sqrt(dim) + math.sqrt(2 * log))
    expected += np.sqrt(2 * log + dim * np.log(1 + t / (dim * eigen)))
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    first = math.sqrt(3) + math.sqrt(2 * log)
    assert float(start.public.model.width) == pytest.approx(first, rel=1e-5)


def distance(snapshot):
    model = snapshot.public.model
    return jnp.sqrt(jnp.sum((model.lower.T @ (model.theta - snapshot.world.theta)) ** 2)) / model.width


def covered(confidence, lanes=100, rounds=100):
    learner = linear_ucb_joint(num_arms=4, dim=2, horizon=rounds, update_every=10)
    values = {**PRIVATE, "confidence_multiplier": confidence}
    return simulated(learner, rounds, lanes, values=values, distance=distance)["distance"]


def test_the_ellipsoid_covers_theta():
    assert (covered(1.0) < 1).all()
    assert (covered(0.1) > 1).any(axis=1).mean() > 0.05, "planted: a tenth of the radius"


def test_the_model_changes_where_it_is_solved_for_alone():
    learner = linear_ucb_joint(num_arms=2, dim=2, horizon=12, update_every=4)
    params = learner.params(**PRIVATE)
    report = Report(jnp.asarray([0.6, 0.8], DTYPE), jnp.ones((), DTYPE))

    def step(state, key):
        state = learner.update(key, params, state, report)
        return state, (state.public.model.solved, state.public.model.theta[0])

    _, (solved, theta) = jax.jit(lambda: jax.lax.scan(step, learner.init(KEY(), params), jax.random.split(KEY(), 12)))()
    assert solved.tolist() == [0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12]
    assert len(set(theta.tolist())) == 4


def test_memory_is_square_in_dimensions_and_of_few_levels():
    def size(counter, dim, horizon):
        learner = linear_ucb_joint(num_arms=2, dim=dim, horizon=horizon, counter=counter)
        state = jax.eval_shape(lambda: learner.init(KEY(), learner.params(**PRIVATE)))
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state))

    for counter in COUNTERS:
        for dim, horizon in ((5, 10**3), (20, 10**6)):
            words = 2 * math.log2(horizon) + 3  # noise is integers of two words
            assert size(counter, dim, horizon) <= dim * (dim + 3) / 2 * words + 2 * dim**2 + 8


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_arms": 1}, "num_arms must be"),
        ({"dim": 0}, "dim must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"counter": "honaker"}, "counter must be one of toeplitz, tree, got 'honaker'"),
        ({"update_every": 0}, "update_every must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        linear_ucb_joint(**{"num_arms": 2, "dim": 2, "horizon": 10, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"delta": 0.0}, "delta must be in"),
        ({"reward_bound": math.inf}, "reward_bound must be"),
        ({"failure_prob": 1.0}, "failure_prob must be in"),
        ({"noise_proxy": 0.0}, "noise_proxy must be"),
        ({"confidence_multiplier": -1.0}, "confidence_multiplier must be"),
    ],
)
def test_bad_values(values, message):
    learner = linear_ucb_joint(num_arms=2, dim=2, horizon=10)
    with pytest.raises(ValueError, match=message):
        learner.params(**{**PRIVATE, **values})
