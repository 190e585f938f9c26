"""Runs of estimators: the owners of noise, data and values."""

import inspect
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Guarantee
from jaxdp.estimation import (
    Estimate,
    ballot_election,
    ballot_mle,
    gaussian_rewards,
    mle,
    plackett_luce_mle,
    plackett_luce_rewards,
    sgd,
    sgd_objective_perturbation,
    sgd_rr,
    thurstone_rr,
)
from jaxdp.preferences import Ballots


def run_of(*names):
    estimators = {"clear": sgd(), "local": sgd_rr(), "central": sgd_objective_perturbation()}
    return jaxdp.estimation_run(
        {name: estimators[name] for name in names}, gaussian_rewards(num_samples=40, dim=2, known=("feature_norm",))
    )


def test_names_of_estimators_are_text():
    with pytest.raises(ValueError, match="estimators must have strings as names, got 1"):
        jaxdp.estimation_run({1: mle()}, gaussian_rewards(num_samples=40, dim=2))  # pyright: ignore[reportArgumentType]


def test_values_of_an_estimation_run_are_checked():
    run = run_of("local", "central")
    with pytest.raises(ValueError, match=r"values must be among .*delta, epsilon, .*got epsilom"):
        run.params(epsilom=1.0, delta=1e-3)
    with pytest.raises(ValueError, match="delta, which central needs"):
        run.params(epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon must be > 0, got -1"):
        run.params(epsilon=-1.0, delta=1e-3)
    with pytest.raises(ValueError, match="values must be among"):
        run.guarantee(epsilon=1.0, delta=1e-3, regret=2)
    with pytest.raises(ValueError, match="at least one, got none"):
        jaxdp.estimation_run({}, gaussian_rewards(num_samples=40, dim=2))
    claims = run.guarantee(epsilon=0.5, delta=1e-3)
    assert {name: (claim.epsilon, claim.delta) for name, claim in claims.items()} == {
        "local": (0.5, 0.0),
        "central": (0.5, 1e-3),
    }


def test_another_estimator_does_not_change_the_others():
    values, key = {"epsilon": 2.0, "radius": 3.0}, jax.random.key(4)
    alone, more = run_of("local"), run_of("central", "clear", "local")
    errors = []
    for run, given in [(alone, values), (more, {**values, "delta": 1e-3})]:
        outputs = jax.jit(run.simulate)(key, run.params(**given))
        errors.append(float(outputs["l2_error"][run.coords["estimator"].index("local")]))
    np.testing.assert_allclose(errors, errors[0], rtol=1e-3)
    assert jax.jit(alone.simulate)(jax.random.key(5), alone.params(**values))["l2_error"] != pytest.approx(
        errors[0], rel=0.01
    )


def test_an_estimators_noise_is_its_own():
    """Runs the same estimator under two names: the same data, with other randomness."""
    twins = jaxdp.estimation_run(
        {"one": sgd_rr(), "two": sgd_rr(), "clear": sgd(), "also": sgd()},
        gaussian_rewards(num_samples=40, dim=2),
    )
    outputs = jax.jit(twins.simulate)(jax.random.key(0), twins.params(epsilon=1.0))
    one, two, clear, also = outputs["l2_error"]
    assert one != two
    assert clear == also


def test_what_the_problem_knows_reaches_the_estimators():
    """Runs an estimator that returns its radius as the certificate."""

    def fit(key, params, features, report):
        del key, report
        radius = jnp.asarray(params.radius, features.dtype)
        return Estimate(jnp.zeros(features.shape[1], features.dtype), radius, jnp.int32(0), jnp.asarray(True))

    key, radii = jax.random.key(3), {}
    for known in [("radius",), ()]:
        problem = gaussian_rewards(num_samples=15, dim=2, known=known)
        run = jaxdp.estimation_run({"local": sgd_rr()._replace(fit=fit)}, problem)
        outputs = jax.jit(run.simulate)(key, run.params(epsilon=0.1))
        radii[known] = float(outputs["certificate"][0])
        norm = outputs["l2_error"][0]  # of the parameter, as the estimate is zero
    assert radii == {("radius",): pytest.approx(float(norm), rel=1e-5), (): math.inf}


def test_a_value_that_is_given_wins_over_what_the_problem_knows():
    run = jaxdp.estimation_run({"local": sgd_rr(step_size="inverse_time")}, gaussian_rewards(num_samples=10, dim=2))
    given = run.params(epsilon=1.0, coverage=1.0, radius=0.5)
    assert given["estimators"]["local"].radius == 0.5
    assert np.isnan(given["estimators"]["local"].feature_norm)
    with pytest.raises(ValueError, match=r"radius must be > 0, got -0\.5"):
        run.params(epsilon=1.0, coverage=1.0, radius=-0.5)
    params = run.params(epsilon=1.0, coverage=1.0)  # radius and feature_norm need not be given
    assert np.isnan(params["estimators"]["local"].radius)
    key = jax.random.key(0)
    assert run(key, given)["l2_error"] != run(key, params)["l2_error"]
    assert np.isfinite(run(jax.random.key(0), params)["l2_error"]).all()


# Three ballots about the three pairs of three items have the shapes [3, 3] and [3, 3], which broadcast.
BALLOTS = Ballots(("a", "b", "c"), (((0,), (1,), (2,)), ((1,), (2,), (0,))), (2, 1))


@pytest.mark.parametrize(
    ("estimator", "problem", "shapes"),
    [
        (mle(), ballot_election(BALLOTS), r"features \(3, 3\) and labels \(3, 3\)"),
        (sgd_rr(), ballot_election(BALLOTS), r"features \(3, 3\) and labels \(3, 3\)"),
        (
            sgd(),
            plackett_luce_rewards(num_samples=10, num_actions=3, dim=2),
            r"features \(10, 3, 2\) and labels \(10,\)",
        ),
        (thurstone_rr(), plackett_luce_rewards(num_samples=10, num_actions=3, dim=2), r"features \(10, 3, 2\) and"),
        (plackett_luce_mle(), ballot_election(BALLOTS), r"features \(3, 3\) and labels \(3, 3\)"),
        (ballot_mle(), gaussian_rewards(num_samples=3, dim=3), r"features \(3, 3\) and labels \(3,\)"),
    ],
)
def test_an_estimator_refuses_a_problem_of_another_kind(estimator, problem, shapes):
    run = jaxdp.estimation_run({"E": estimator}, problem)
    values = {"epsilon": 1.0} if "epsilon" in inspect.signature(run.params).parameters else {}
    with pytest.raises(ValueError, match=rf"estimators\['E'\] must take the problem's data.*{shapes}"):
        run.simulate(jax.random.key(0), run.params(radius=1.0, **values))


def test_a_claim_that_depends_on_a_fact_needs_its_value():
    def guarantee(*, radius, tolerance=0.0):
        del tolerance
        return Guarantee.pure(radius, trust_model="central", privacy_unit="one label", argument="none")

    problem = gaussian_rewards(num_samples=15, dim=2, known=("radius",))
    run = jaxdp.estimation_run({"mine": mle()._replace(guarantee=guarantee)}, problem)
    with pytest.raises(ValueError, match=r"values must have radius, as the claim of mine depends on it, .* got none"):
        run.guarantee()
    assert run.guarantee(radius=7.0)["mine"].epsilon == 7.0
