"""Policies against brute force and NumPy, and pessimism where it helps."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxdp.estimation import (
    ConfidenceSet,
    best_of_policies,
    check_states,
    every_policy,
    greedy_policy,
    per_state_pessimistic_policy,
    pessimistic_policy,
    pessimistic_value,
    relative_features,
    suboptimality,
)

STATES, ACTIONS, DIM = 4, 3, 3
WIDTHS = (0.0, 0.1, 0.5, 2.0)
POLICIES = every_policy(STATES, ACTIONS)
search = jax.jit(pessimistic_policy, static_argnames="max_steps")


def problem(seed, states=STATES, actions=ACTIONS, dim=DIM):
    """Returns features, weights, estimate and shape of a random problem, in float64."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(states, actions, dim))
    weights = rng.dirichlet(np.ones(states))
    factor = rng.normal(size=(dim, dim))
    return features, weights, rng.normal(size=dim), factor @ factor.T + 0.1 * np.eye(dim)


def arrays(features, weights, theta, shape, width):
    """Converts them to default floats, ready for the library."""
    features, weights, theta, shape, width = (jnp.asarray(x, float) for x in (features, weights, theta, shape, width))
    return features, weights, ConfidenceSet(theta, shape, width)


def value_in_numpy(policy, features, weights, theta, shape, width):
    mean = np.einsum("s,sa,sad->d", weights, policy, features)
    return mean @ theta - width * np.sqrt(mean @ np.linalg.solve(shape, mean))


def brute_force(features, weights, theta, shape, width):
    """Finds the best deterministic policy by a loop that shares no code with the library."""
    best = -np.inf, ()
    for actions in itertools.product(range(features.shape[1]), repeat=features.shape[0]):
        policy = np.eye(features.shape[1])[list(actions)]
        best = max(best, (value_in_numpy(policy, features, weights, theta, shape, width), actions))
    return best


def test_greedy_is_the_largest_score():
    features, _, theta, _ = problem(0)
    found = greedy_policy(jnp.asarray(features, float), jnp.asarray(theta, float))
    np.testing.assert_array_equal(found, np.eye(ACTIONS)[np.argmax(features @ theta, axis=1)])
    shifted = relative_features(jnp.asarray(features, float), jnp.full((STATES, ACTIONS), 1 / ACTIONS))
    np.testing.assert_array_equal(greedy_policy(shifted, jnp.asarray(theta, float)), found)


def test_the_worst_parameter_gives_the_pessimistic_value():
    features, weights, theta, shape = problem(1)
    policy = np.random.default_rng(0).dirichlet(np.ones(ACTIONS), STATES)
    width = 0.7
    found = pessimistic_value(jnp.asarray(policy, float), *arrays(features, weights, theta, shape, width))
    mean = np.einsum("s,sa,sad->d", weights, policy, features)
    worst = minimize(
        lambda other: mean @ other,
        theta,
        jac=lambda _: mean,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda other: width**2 - (other - theta) @ shape @ (other - theta)},
    )
    assert found == pytest.approx(worst.fun, abs=1e-4)
    assert found == pytest.approx(value_in_numpy(policy, features, weights, theta, shape, width), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_finite_sets_against_brute_force(seed):
    policies = jnp.asarray(POLICIES)
    for width in WIDTHS:
        case = (*problem(seed), width)
        value, actions = brute_force(*case)
        found = best_of_policies(policies, *arrays(*case))
        assert found.value == pytest.approx(value, abs=1e-5)
        assert jnp.argmax(found.policy, axis=1).tolist() == list(actions)


def test_every_policy():
    policies = every_policy(2, 3)
    assert policies.shape == (9, 2, 3)
    assert len({tuple(policy.argmax(1)) for policy in policies}) == 9
    np.testing.assert_array_equal(policies.sum(-1), 1)
    with pytest.raises(ValueError, match=r"at most 1000000, got 10 \*\* 20"):
        every_policy(20, 10)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_is_as_good_as_its_certificate_says(seed):
    for width in WIDTHS:
        features, weights, theta, shape = problem(seed)
        case = arrays(features, weights, theta, shape, width)
        found = search(*case, tolerance=1e-3, max_steps=2000)
        assert -1e-5 < found.gap < 0.01
        policy = np.asarray(found.policy, float)
        assert policy.min() >= 0
        np.testing.assert_allclose(policy.sum(1), 1, atol=1e-5)
        assert found.value == pytest.approx(value_in_numpy(policy, features, weights, theta, shape, width), abs=1e-4)
        assert found.value + found.gap >= brute_force(features, weights, theta, shape, width)[0] - 1e-4
        # An optimiser that shares nothing: SLSQP on the softmax-free simplex, in float64.
        assert found.value + found.gap >= best_mixed(features, weights, theta, shape, width) - 1e-4
        assert found.value >= best_mixed(features, weights, theta, shape, width) - 0.01


def best_mixed(features, weights, theta, shape, width):
    states, actions, _ = features.shape

    def loss(flat):
        return -value_in_numpy(flat.reshape(states, actions), features, weights, theta, shape, width)

    result = minimize(
        loss,
        np.full(states * actions, 1 / actions),
        method="SLSQP",
        bounds=[(0, 1)] * (states * actions),
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(states, actions).sum(1) - 1},
        options={"maxiter": 200},
    )
    policy = np.clip(result.x.reshape(states, actions), 0, None)
    return value_in_numpy(policy / policy.sum(1, keepdims=True), features, weights, theta, shape, width)


def test_randomising_can_be_best():
    """Plays two actions with uncertainties that cancel: each alone is worth less than nothing, the mixture is safe."""
    features = np.array([[[0.2, 1.0], [0.2, -1.0]]])
    case = arrays(features, np.ones(1), np.array([1.0, 0.0]), np.diag([100.0, 1.0]), 1.0)
    found = search(*case, max_steps=500)
    np.testing.assert_allclose(found.policy, [[0.5, 0.5]], atol=0.01)
    assert found.value == pytest.approx(0.2 - 0.02, abs=1e-3)
    alone = best_of_policies(jnp.asarray(every_policy(1, 2)), *case)
    assert alone.value == pytest.approx(0.2 - np.sqrt(1 + 0.04 / 100), abs=1e-4)


def test_per_state_is_one_bound_a_state():
    features, weights, theta, shape = problem(2)
    width = 0.4
    case = arrays(features, weights, theta, shape, width)
    norms = np.sqrt(np.einsum("sad,de,sae->sa", features, np.linalg.inv(shape), features))
    found = per_state_pessimistic_policy(case[0], case[2])
    np.testing.assert_array_equal(found, np.eye(ACTIONS)[np.argmax(features @ theta - width * norms, axis=1)])
    # More pessimistic than eq. (9): one parameter need not be the worst for all states.
    bounds = np.sum(weights * np.max(features @ theta - width * norms, axis=1))
    assert bounds <= pessimistic_value(found, *case) + 1e-6


def test_width_zero_is_greedy():
    features, weights, theta, shape = problem(3)
    case = arrays(features, weights, theta, shape, 0.0)
    greedy = greedy_policy(case[0], case[2].center)
    np.testing.assert_array_equal(per_state_pessimistic_policy(case[0], case[2]), greedy)
    found = search(*case, max_steps=500)
    np.testing.assert_array_equal(found.policy, greedy)
    assert found.steps == 0
    assert found.gap == pytest.approx(0, abs=1e-6)


def test_vmap_is_a_loop():
    cases = [arrays(*problem(seed), width) for seed, width in ((0, 0.0), (1, 0.3), (2, 1.0))]
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *cases)
    found = jax.vmap(lambda *case: search(*case, max_steps=100))(*together)
    for index, case in enumerate(cases):
        alone = search(*case, max_steps=100)
        np.testing.assert_allclose(found.policy[index], alone.policy, atol=1e-3)
        np.testing.assert_allclose(found.value[index], alone.value, atol=1e-5)


def test_a_failed_estimate_has_no_policy():
    features, weights, theta, shape = problem(4)
    nan = np.nan
    for broken in ((theta * nan, shape, 0.5), (theta, shape * nan, 0.5), (theta, shape, nan), (theta, shape, np.inf)):
        case = arrays(features, weights, *broken)
        found = search(*case, max_steps=100)
        assert np.isnan(found.policy).all()
        assert np.isnan([found.value, found.gap]).all()
        assert found.steps == 0
        among = best_of_policies(jnp.asarray(POLICIES), *case)
        assert np.isnan(among.policy).all()
        assert np.isnan([among.value, among.gap]).all()
        assert np.isnan(per_state_pessimistic_policy(case[0], case[2])).all()
    assert np.isnan(suboptimality(found.policy, case[0], case[1], jnp.asarray(theta, float)))
    assert np.isnan(greedy_policy(case[0], jnp.full(DIM, jnp.nan))).all()


def test_suboptimality_by_hand():
    features = jnp.asarray([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]])
    weights, parameter = jnp.asarray([0.25, 0.75]), jnp.asarray([1.0, 3.0])  # rewards [[1, 3], [2, 3]]
    always_first = jnp.asarray([[1.0, 0.0], [1.0, 0.0]])
    assert suboptimality(always_first, features, weights, parameter) == pytest.approx(0.25 * 2 + 0.75 * 1)
    mixed = jnp.asarray([[0.5, 0.5], [0.0, 1.0]])
    assert suboptimality(mixed, features, weights, parameter) == pytest.approx(0.25)
    assert suboptimality(greedy_policy(features, parameter), features, weights, parameter) == 0


@jax.jit
def losses(keys, uncertainty):
    """Returns mean suboptimality, and its standard error, of greedy, eq. (9) and per-state policies.

    The third action is the worst one. Its feature has a direction of its own, in which the estimate's error is 20 times
    the error in the others.
    """
    features = jnp.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]] * 2)
    weights, parameter = jnp.full(2, 0.5), jnp.asarray([0.5, 0.3, 0.0])
    spread = jnp.asarray([0.05, 0.05, 1.0])

    def trial(key):
        theta = parameter + spread * jax.random.normal(key, (3,))
        case = features, weights, ConfidenceSet(theta, jnp.diag(uncertainty**-2.0), jnp.asarray(2.0))
        policies = (
            greedy_policy(features, theta),
            pessimistic_policy(*case, max_steps=50).policy,
            per_state_pessimistic_policy(features, case[2]),
        )
        return jnp.stack([suboptimality(policy, features, weights, parameter) for policy in policies])

    found = jax.vmap(trial)(keys)
    return found.mean(0), found.std(0) / len(keys) ** 0.5


def test_pessimism_helps_where_coverage_is_poor():
    keys = jax.random.split(jax.random.key(0), 400)
    mean, error = losses(keys, jnp.asarray([0.05, 0.05, 1.0]))
    # The third action is chosen, and 0.5 lost, where its N(0, 1) exceeds the first's N(0.5, 0.05^2), or nearly so.
    assert mean[0] == pytest.approx(0.5 * 0.3087, abs=5 * float(error[0]))
    assert (mean[1:] < 0.1 * mean[0]).all()
    # A set that ignores how little the third action was covered must fail the same test.
    wrong, _ = losses(keys, jnp.asarray([0.05, 0.05, 0.05]))
    assert not (wrong[1:] < 0.1 * wrong[0]).any()


FEATURES, WEIGHTS = np.ones((2, 3, 4)), np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("features", "weights", "message"),
    [
        (np.ones((2, 3)), WEIGHTS, "action_features must have shape [num_states, num_actions, dim], all >= 1"),
        (np.ones((2, 0, 3)), WEIGHTS, "got (2, 0, 3)"),
        (np.where(FEATURES > 0, np.nan, 0), WEIGHTS, "action_features must be finite, got nan"),
        (FEATURES, np.ones(3) / 3, "state_weights must have shape [num_states] = (2,), got (3,)"),
        (FEATURES, np.array([0.5, np.nan]), "state_weights must be finite, got nan at index (1,)"),
        (FEATURES, np.array([1.5, -0.5]), "state_weights must be in [0, 1], got 1.5"),
        (FEATURES, np.array([0.5, 0.4]), "state_weights must sum to 1, got 0.9"),
    ],
)
def test_wrong_states(features, weights, message):
    check_states(FEATURES, WEIGHTS)
    with pytest.raises(ValueError, match=re.escape(message)):
        check_states(features, weights)


def test_wrong_shapes_are_told_when_traced():
    with pytest.raises(ValueError, match=r"action_features must have shape .* got \(3, 2\)"):
        jax.eval_shape(greedy_policy, jnp.ones((3, 2)), jnp.ones(2))
    with pytest.raises(ValueError, match="max_steps must be an integer >= 1, got 0"):
        pessimistic_policy(*arrays(*problem(0), 0.1), max_steps=0)


def test_policies_in_a_program_of_ones_own():
    """Compiles a function that closes over NumPy arrays, as `every_policy` gives them."""
    features, weights, confidence = arrays(*problem(3), 0.5)
    expected = best_of_policies(POLICIES, features, weights, confidence)
    found = jax.jit(lambda width: best_of_policies(POLICIES, features, weights, confidence._replace(width=width)))(0.5)
    assert (found.policy == expected.policy).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda actions, weights, known: greedy_policy(actions, known.center),
        lambda actions, weights, known: suboptimality(jnp.ones((4, 2)) / 2, actions, weights, known.center),
        lambda actions, weights, known: per_state_pessimistic_policy(actions, known),
        lambda actions, weights, known: pessimistic_policy(actions, weights, known),
        lambda actions, weights, known: pessimistic_value(jnp.ones((4, 2)) / 2, actions, weights, known),
    ],
)
def test_actions_and_parameters_of_different_sizes(call):
    known = ConfidenceSet(jnp.zeros(3), jnp.eye(3), jnp.asarray(1.0))
    with pytest.raises(
        ValueError, match=r"action_features .* with \[dim\] = \(3,\), the shape of the parameter, got \(4, 2, 5\)"
    ):
        call(jnp.ones((4, 2, 5)), jnp.ones(4) / 4, known)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("reference", lambda actions, weights, known: relative_features(actions, jnp.ones((1, 2)) / 2)),
        ("policy", lambda actions, weights, known: suboptimality(jnp.ones((1, 2)) / 2, actions, weights, known.center)),
        ("policy", lambda actions, weights, known: pessimistic_value(jnp.ones((1, 2)) / 2, actions, weights, known)),
        ("policies", lambda actions, weights, known: best_of_policies(jnp.ones((4, 2)) / 2, actions, weights, known)),
        ("state_weights", lambda actions, weights, known: pessimistic_policy(actions, weights[:1], known)),
        (
            "state_weights",
            lambda actions, weights, known: pessimistic_value(jnp.ones((4, 2)) / 2, actions, weights[:1], known),
        ),
    ],
)
def test_policies_and_weights_of_another_number_of_states(name, call):
    known = ConfidenceSet(jnp.zeros(5), jnp.eye(5), jnp.asarray(1.0))
    with pytest.raises(ValueError, match=rf"^{name} must have shape \(4,"):
        call(jnp.ones((4, 2, 5)), jnp.ones(4) / 4, known)
