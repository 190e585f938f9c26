"""Mistakes of estimators."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.core import Estimator
from jaxdp.estimation import (
    objective_perturbation_full,
    plackett_luce_debiased_krr,
    plackett_luce_objective_perturbation,
    sgd_krr,
    thurstone_rr,
)
from jaxdp.mechanisms import randomized_response
from tests.privacy.mutants.case import Case, claim

FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]], np.float32)
ACTIONS = np.asarray([[[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]], [[0.3, 0.4], [0.1, 0.0], [0.0, 0.0]]], np.float32)
BEFORE, AFTER = np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32)
FULL = {"epsilon": 1.0, "delta": 1e-3, "feature_norm": 1.0}


def report_of(estimator: Estimator):
    def release(key, params, data):
        return estimator.privatize(key, params, *data)

    return release


def theta_of(estimator: Estimator):
    """The claim is about whatever is released: here of the estimate."""

    def release(key, params, data):
        features, labels = data
        report = estimator.privatize(key, params, features, labels)
        return estimator.fit(key, params, features, report).theta

    return release


def forgets_the_other_labels(key, params, features, labels):
    """Keeps the label with probability sigmoid(epsilon), which is right for K = 2 only, else any other."""
    num_labels = features.shape[1]
    return randomized_response(key, labels, params.epsilon + jnp.log(num_labels - 1.0), num_labels=num_labels)


def wrong_k_ary_response() -> Case:
    """Seen through the estimate; `plackett_luce_debiased_krr` reports by the same function."""
    right = sgd_krr()
    assert right.privatize is plackett_luce_debiased_krr().privatize
    data = (ACTIONS, BEFORE), (ACTIONS, AFTER)
    attack = Attack(theta_of(right), right.params(epsilon=1.0), data, claim(1.0))
    wrong = attack._replace(release=theta_of(right._replace(privatize=forgets_the_other_labels)))
    return Case(wrong=wrong, right=(attack,), trials=2_000)


def thurstone_at_twice_epsilon() -> Case:
    right = thurstone_rr()
    data = (FEATURES, BEFORE), (FEATURES, AFTER)
    attack = Attack(theta_of(right), right.params(epsilon=1.0), data, claim(1.0))
    return Case(wrong=attack._replace(params=right.params(epsilon=2.0)), right=(attack,), trials=2_000)


def half_the_choice_statistic() -> Case:
    right = plackett_luce_objective_perturbation()
    data = (ACTIONS, BEFORE), (ACTIONS, AFTER)
    params = right.params(epsilon=1.0, delta=1e-3)
    half = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 2)
    attack = Attack(report_of(right), params, data, claim(1.0, 1e-3))
    return Case(wrong=attack._replace(params=half), right=(attack,), trials=40_000)


def a_tenth_of_the_noise_for_records() -> Case:
    """One record, at the longest, that turns by a right angle. A half would still hide that: see `excess_delta`."""
    right = objective_perturbation_full()
    label = np.asarray([0], np.int32)
    data = (np.asarray([[2.0, 0.0]], np.float32), label), (np.asarray([[0.0, 2.0]], np.float32), label)
    params = right.params(**FULL)
    tenth = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 10)
    attack = Attack(report_of(right), params, data, claim(1.0, 1e-3))
    return Case(wrong=attack._replace(params=tenth), right=(attack,), trials=50_000)
