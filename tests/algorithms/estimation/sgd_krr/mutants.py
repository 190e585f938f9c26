"""Mistakes of `sgd_krr`."""

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.core import Estimator
from jaxdp.estimation import (
    plackett_luce_debiased_krr,
    sgd_krr,
)
from jaxdp.mechanisms import randomized_response
from tests.privacy.case import Case, claim

ACTIONS = np.asarray([[[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]], [[0.3, 0.4], [0.1, 0.0], [0.0, 0.0]]], np.float32)
BEFORE, AFTER = np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32)


def theta_of(estimator: Estimator):
    """Returns the estimate: the claim covers any function of the release."""

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
    """Attacks through the estimate; `plackett_luce_debiased_krr` reports by the same function."""
    right = sgd_krr()
    assert right.privatize is plackett_luce_debiased_krr().privatize
    data = (ACTIONS, BEFORE), (ACTIONS, AFTER)
    attack = Attack(theta_of(right), right.params(epsilon=1.0), data, claim(1.0))
    wrong = attack._replace(release=theta_of(right._replace(privatize=forgets_the_other_labels)))
    return Case(wrong=wrong, right=(attack,), trials=2_000)


CASES = {
    "K-ary randomized response with the probability for K = 2": wrong_k_ary_response,
}
