"""Mistakes of `objective_perturbation`."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.estimation import WithCut, objective_perturbation
from jaxdp.mechanisms import k_norm
from tests.privacy.case import Case, claim

UNCUT = objective_perturbation()
FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]], np.float32)


def noisy_statistic(key, params, labels):
    return UNCUT.privatize(key, params, jnp.asarray(FEATURES), labels)


def half_the_objective_perturbation() -> Case:
    labels = (np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32))
    params = UNCUT.params(epsilon=1.0, delta=1e-3)
    half = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 2)
    right = Attack(noisy_statistic, params, labels, claim(1.0, 1e-3))
    return Case(wrong=right._replace(params=half), right=(right,), trials=40_000)


ESTIMATOR = objective_perturbation(weights="cut", noise="k_norm")
LABELS = (np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32))
OPPOSITE = np.asarray([[1.0, 0.0], [-0.5, 0.0]], np.float32)


def report(key, params, labels):
    return ESTIMATOR.privatize(key, params, jnp.asarray(FEATURES), labels)


def weighted(key, epsilon, labels, lengths):
    """Computes the statistic with samples cut by `lengths`."""
    features = jnp.asarray(FEATURES)
    cut = jnp.max(lengths)
    weights = jnp.minimum(1, cut / jnp.linalg.norm(features, axis=1))
    statistic = (weights * labels.astype(features.dtype)) @ features
    return WithCut(k_norm(key, statistic, epsilon, sensitivity=cut), cut)


def cut_by_labels(key, params, labels):
    """Cuts at the longest feature among samples with the label 1, which the report reveals."""
    lengths = jnp.linalg.norm(jnp.asarray(FEATURES), axis=1)
    return weighted(key, params.epsilon, labels, jnp.where(labels == 1, lengths, 0))


def weights_by_labels(key, params, labels):
    """Cuts the features that the sum has, those with the label 1; `fit` needs to know which these are."""
    features, cut = jnp.asarray(FEATURES), jnp.float32(0.5)
    lengths = jnp.linalg.norm(features * labels.astype(features.dtype)[:, None], axis=1)
    weights = jnp.where(lengths > cut, cut / jnp.maximum(lengths, cut), 1)
    statistic = (weights * labels.astype(weights.dtype)) @ features
    return k_norm(key, statistic, params.epsilon, sensitivity=cut), weights


def sum_that_is_cut(key, params, labels):
    """Cuts the sum, and noises it as if one label could move it by the cut alone."""
    statistic = labels.astype(jnp.float32) @ jnp.asarray(OPPOSITE)
    cut = jnp.float32(0.3)
    return k_norm(key, statistic * jnp.minimum(1, cut / jnp.linalg.norm(statistic)), params.epsilon, sensitivity=cut)


def _of_labels(wrong, *, with_twin: bool = False) -> Case:
    """Skips all twins except one, as they are the same."""
    right = Attack(report, ESTIMATOR.params(epsilon=1.0), LABELS, claim(1.0))
    return Case(wrong=right._replace(release=wrong), right=(right,) if with_twin else (), trials=20_000)


def weights_from_labels() -> Case:
    return _of_labels(weights_by_labels, with_twin=True)


def cut_after_the_labels() -> Case:
    return _of_labels(cut_by_labels)


def cut_on_the_sum() -> Case:
    return _of_labels(sum_that_is_cut)


SAME = np.tile(np.asarray([[1.0, 0.0]], np.float32), (4, 1))  # one person's four labels, all about the same pair
OF_PERSONS = objective_perturbation(privacy_unit="person")


def persons_statistic(key, params, labels):
    return OF_PERSONS.privatize(key, params, jnp.asarray(SAME), labels)


def noise_of_one_label() -> Case:
    """Adds the noise that suffices if each label comes from another person."""
    labels = (np.zeros(4, np.int32), np.ones(4, np.int32))
    params = OF_PERSONS.params(epsilon=1.0, delta=1e-3, persons=np.zeros(4, np.int32))
    right = Attack(persons_statistic, params, labels, claim(1.0, 1e-3))
    wrong = dataclasses.replace(params, persons=np.arange(4, dtype=np.int32))
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=20_000)


WHITENED = objective_perturbation(geometry="whitened")
UNEVEN = np.asarray([[3.0, 0.0], [0.0, 0.1], [0.0, 0.1], [0.0, 0.1], [0.0, 0.1]], np.float32)  # the first: leverage 1


def whitened_statistic(key, params, labels):
    return WHITENED.privatize(key, params, jnp.asarray(UNEVEN), labels)


def half_the_leverage(key, params, labels):
    """Calibrates whitened noise to half of the largest leverage, that is to the length of features over root 2."""
    exact = WHITENED.privatize(key, WITHOUT_NOISE, jnp.asarray(UNEVEN), labels)
    return exact + (whitened_statistic(key, params, labels) - exact) / jnp.sqrt(jnp.float32(2))


WITHOUT_NOISE = WHITENED.params(epsilon=np.inf, delta=1e-3)


def whitened_noise_of_half_the_leverage() -> Case:
    labels = (np.asarray([0, 1, 0, 1, 0], np.int32), np.asarray([1, 1, 0, 1, 0], np.int32))
    right = Attack(whitened_statistic, WHITENED.params(epsilon=1.0, delta=1e-3), labels, claim(1.0, 1e-3))
    return Case(wrong=right._replace(release=half_the_leverage), right=(right,), trials=40_000)


CASES = {
    "objective perturbation at half its noise": half_the_objective_perturbation,
    "weights that depend on labels": weights_from_labels,
    "a cut chosen after the labels are seen": cut_after_the_labels,
    "a cut on the norm of the sum": cut_on_the_sum,
    "the noise of one label where a person has four": noise_of_one_label,
    "whitened noise of half the largest leverage": whitened_noise_of_half_the_leverage,
}
