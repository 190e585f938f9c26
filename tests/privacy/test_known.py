"""Values that a problem knows must not depend on protected data: by audit of a run, and by the values it passes."""

import dataclasses
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import Attack, audit
from jaxdp.estimation import (
    Estimate,
    gaussian_rewards,
    objective_perturbation,
    objective_perturbation_full,
    plackett_luce_rewards,
    problems,
    sgd_rr,
)
from jaxdp.preferences.data import RewardData
from jaxdp.simulation import estimation_run

DTYPE = jax.dtypes.canonicalize_dtype(float)
VALUES = {"epsilon": 1.0, "delta": 1e-3}
# Neighbours: whole comparisons; one is 1000 times as long, or not.
LABELS = np.asarray([0, 1], np.int32)
SHORT = (np.asarray([[0.01, 0.0], [0.0, 0.01]], DTYPE), LABELS)
LONG = (np.asarray([[10.0, 0.0], [0.0, 0.01]], DTYPE), LABELS)


def told(estimator):
    """Builds the estimator with L as passed in place of its certificate."""

    def fit(key, params, features, report):
        del key, report
        norm = jnp.asarray(params.feature_norm, features.dtype)
        return Estimate(jnp.zeros(features.shape[1], features.dtype), norm, jnp.int32(0), jnp.asarray(True))

    return estimator._replace(fit=fit, check=lambda features, labels, *, feature_norm: None)  # takes choices, too


def audited(monkeypatch, values, change=lambda problem: problem):
    """Audits the release of an estimation run for two neighbouring data sets."""
    estimators = {"full": objective_perturbation_full()}

    def run_on(features, labels):
        def drawn(key, **_):
            return RewardData(features, labels, jnp.zeros(2), jnp.max(jnp.linalg.norm(features, axis=1)) / 2)

        with monkeypatch.context() as patch:
            patch.setattr(problems, "gaussian_comparisons", drawn)
            problem = gaussian_rewards(num_samples=2, dim=2, known=("feature_norm",))
        released = {"metrics": lambda params, sample, estimate: {"theta": estimate.theta}, "dims": {"theta": ("d",)}}
        return estimation_run(estimators, change(problem._replace(**released)))

    def release(key, params, data):
        return run_on(*data).simulate(key, params)["theta"][0]

    run = run_on(*(jnp.asarray(array) for array in SHORT))
    attack = Attack(release, run.params(**values), (SHORT, LONG), run.guarantee(**values)["full"])
    return audit(jax.random.key(0), attack, trials=30_000)


def handed_over(problem):
    """Declares a value read from the features a fact of the world (planted)."""

    def sample(key, params):
        found = problem.sample(key, params)
        return found._replace(known=found.known_from_features, known_from_features={})

    return problem._replace(sample=sample, known=problem.known_from_features, known_from_features=())


def test_a_bound_read_from_private_features_is_not_handed_over(monkeypatch):
    fixed = audited(monkeypatch, {**VALUES, "feature_norm": 1.0})
    assert fixed.lower_bound <= 1.0
    assert fixed.verdict != "violated"
    wrong = audited(monkeypatch, VALUES, handed_over)
    assert wrong.lower_bound > 5.0
    assert wrong.verdict == "violated"


def test_a_bound_read_from_private_features_must_be_given(monkeypatch):
    message = "values must have feature_norm, as full keeps features private, and the problem would read feature_norm"
    with pytest.raises(ValueError, match=re.escape(message)):
        audited(monkeypatch, VALUES)


@pytest.mark.parametrize("rewards", ["gaussian", "plackett_luce"])
def test_who_is_told_what(rewards):
    """Checks that L read from the features goes to label estimators alone; a fixed one to all; a given one wins."""
    make = partial(gaussian_rewards, num_samples=10, dim=2)
    if rewards == "plackett_luce":
        make = partial(plackett_luce_rewards, num_samples=10, num_actions=3, dim=2)
    estimators = {
        "label": told(sgd_rr()),
        "private": told(sgd_rr()._replace(features_public=False)),
    }
    # sgd_rr() with constant steps takes no feature_norm; its `Params` have the field all the same.

    def norms(problem, **values):
        run = estimation_run(estimators, problem._replace(metrics=lambda p, s, e: {"norm": e.certificate}))
        params = run.params(epsilon=1.0, **values)
        sample = problem.sample(jax.random.split(jax.random.key(0))[0], params["problem"])
        return run.simulate(jax.random.key(0), params)["norm"], sample

    (label, private), sample = norms(make())
    assert label == sample.known_from_features["feature_norm"] > 1
    assert np.isinf(private)  # its own default
    assert set(sample.known) == {"radius"}
    (label, private), sample = norms(make(feature_norm=0.5))
    assert label == private == sample.known["feature_norm"] == 0.5
    assert not sample.known_from_features
    (label, private), sample = norms(make(feature_norm=np.inf))
    assert np.isinf(label)
    assert np.isinf(private)
    assert set(sample.known) == {"radius"}
    assert not sample.known_from_features


def test_a_given_feature_norm_reaches_everyone_and_clips():
    problem = gaussian_rewards(num_samples=300, dim=2)
    full = objective_perturbation_full()
    run = estimation_run({"full": full, "label": sgd_rr(step_size="inverse_time"), "own": told(full)}, problem)
    values = {**VALUES, "coverage": 1.0, "feature_norm": 0.25}
    params = run.params(**values)
    assert params["estimators"]["full"].feature_norm == params["estimators"]["label"].feature_norm == 0.25
    assert np.isnan(params["estimators"]["full"].radius)
    outputs = run.simulate(jax.random.key(0), params)
    assert outputs["certificate"][2] == 0.25
    assert run.guarantee(**values)["full"].privacy_unit == "one comparison, features and label"
    # The estimator clips: features that are already short enough give the same.
    key_data, key_estimators = jax.random.split(jax.random.key(0))
    sample = problem.sample(key_data, params["problem"])
    norms = jnp.linalg.norm(sample.features, axis=1, keepdims=True)
    short = sample.features * jnp.minimum(1, 0.5 / norms)
    assert jnp.mean(norms > 0.5) > 0.5
    mine = dataclasses.replace(params["estimators"]["full"], radius=sample.known["radius"])
    one, two = (full.privatize(key_estimators, mine, x, sample.labels).theta for x in (sample.features, short))
    np.testing.assert_allclose(one, two, atol=1e-4)
    label = sgd_rr(step_size="inverse_time")  # without it, label estimators use the known one
    alone = estimation_run({"label": label, "central": objective_perturbation()}, problem)
    assert np.isnan(alone.params(**VALUES, coverage=1.0)["estimators"]["label"].feature_norm)


@pytest.mark.parametrize("name", registry.ESTIMATORS)
def test_features_are_public_as_the_claim_says(name):
    entry = registry.ESTIMATORS[name]
    estimator = entry.make()
    unit = estimator.guarantee(**entry.values).privacy_unit
    assert unit in ("one label", "one ballot", "one comparison, features and label")
    assert estimator.features_public == ("features" not in unit)
