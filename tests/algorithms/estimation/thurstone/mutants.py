"""Mistakes of `thurstone`."""

import numpy as np

from jaxdp.audit import Attack
from jaxdp.core import Estimator
from jaxdp.estimation import (
    thurstone_rr,
)
from tests.privacy.case import Case, claim

FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]], np.float32)
BEFORE, AFTER = np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32)


def theta_of(estimator: Estimator):
    """Returns the estimate: the claim covers any function of the release."""

    def release(key, params, data):
        features, labels = data
        report = estimator.privatize(key, params, features, labels)
        return estimator.fit(key, params, features, report).theta

    return release


def thurstone_at_twice_epsilon() -> Case:
    right = thurstone_rr()
    data = (FEATURES, BEFORE), (FEATURES, AFTER)
    attack = Attack(theta_of(right), right.params(epsilon=1.0), data, claim(1.0))
    return Case(wrong=attack._replace(params=right.params(epsilon=2.0)), right=(attack,), trials=2_000)


CASES = {
    "Thurstone's model at twice epsilon": thurstone_at_twice_epsilon,
}
