"""Mistakes of `objective_perturbation_full`."""

import dataclasses

import numpy as np

from jaxdp.audit import Attack
from jaxdp.core import Estimator
from jaxdp.estimation import (
    objective_perturbation_full,
)
from tests.privacy.case import Case, claim

FULL = {"epsilon": 1.0, "delta": 1e-3, "feature_norm": 1.0}


def report_of(estimator: Estimator):
    def release(key, params, data):
        return estimator.privatize(key, params, *data)

    return release


def a_tenth_of_the_noise_for_records() -> Case:
    """Attacks one record of maximal length that turns by a right angle.

    Half the noise would still hide it (`excess_delta`).
    """
    right = objective_perturbation_full()
    label = np.asarray([0], np.int32)
    data = (np.asarray([[2.0, 0.0]], np.float32), label), (np.asarray([[0.0, 2.0]], np.float32), label)
    params = right.params(**FULL)
    tenth = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 10)
    attack = Attack(report_of(right), params, data, claim(1.0, 1e-3))
    return Case(wrong=attack._replace(params=tenth), right=(attack,), trials=50_000)


CASES = {
    "objective perturbation for records at a tenth of its noise": a_tenth_of_the_noise_for_records,
}
