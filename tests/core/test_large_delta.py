"""A claim with a delta above one over the number of records raises a warning at the line that asked for it."""

import importlib
import warnings

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.estimation import estimate, gaussian_rewards, objective_perturbation
from jaxdp.validation import warn_large_delta

FEATURES, LABELS = np.eye(4), np.array([0, 1, 1, 0])
SENTENCE = r"delta should be far below 1 / 4, one over the number of records, got 0\.5"


def run_of(num_samples):
    return jaxdp.estimation_run({"central": objective_perturbation()}, gaussian_rewards(num_samples=num_samples, dim=1))


def fit(**values):
    return estimate(objective_perturbation(), FEATURES, LABELS, key=jax.random.key(0), radius=1.0, **values)


def test_estimate_warns_of_a_delta_above_one_over_the_number_of_labels():
    with pytest.warns(UserWarning, match=SENTENCE) as caught:
        fit(epsilon=1.0, delta=0.5)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_run_warns_when_its_values_are_given():
    with pytest.warns(UserWarning, match=SENTENCE) as caught:
        run_of(4).params(epsilon=1.0, delta=0.5)
    assert [warning.filename for warning in caught] == [__file__]


def bandit_run(learner, horizon=1000):
    return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.6, 0.4]), horizon)


def test_a_sweep_of_ones_own_run_warns_of_a_delta_above_one_over_the_horizon():
    run = bandit_run(jaxdp.bandits.ucb(num_arms=2, report="gaussian"))
    with pytest.warns(UserWarning, match="delta should be far below 1 / 1000, .* got 0.01") as caught:
        jaxdp.sweep(run, axes={"epsilon": [1.0], "delta": [0.01]}, num_seeds=2, key=jax.random.key(0))
    assert {warning.filename for warning in caught} == {__file__}


def test_a_run_says_nothing_of_a_small_delta_or_without_privacy():
    run = bandit_run(jaxdp.bandits.ucb(num_arms=2, report="gaussian"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.params(epsilon=1.0, delta=1e-3)
        run.params(epsilon=np.inf, delta=0.5)
        bandit_run(jaxdp.bandits.ucb(num_arms=2)).params(epsilon=1.0)


@pytest.mark.parametrize("name", ["ldp_best_arm", "ldp_linear"])
def test_a_studys_default_delta_is_far_below_one_over_its_default_horizon(name):
    study = importlib.import_module(f"jaxdp.studies.{name}")
    assert study.DELTA <= 0.1 / study.HORIZON


@pytest.mark.parametrize("values", [{"epsilon": 1.0, "delta": 0.25}, {"epsilon": np.inf, "delta": 0.5}])
def test_nothing_is_said_of_a_small_delta_or_without_privacy(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(**values)
        run_of(4).params(**values)


def test_one_over_the_number_of_records_itself_is_not_too_large():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for num_records in range(1, 2000):
            warn_large_delta(1 / num_records, num_records)
