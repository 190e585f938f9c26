"""Mistakes of `plackett_luce`."""

import dataclasses

import numpy as np

from jaxdp.audit import Attack
from jaxdp.core import Estimator
from jaxdp.estimation import (
    plackett_luce_objective_perturbation,
)
from tests.privacy.case import Case, claim

ACTIONS = np.asarray([[[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]], [[0.3, 0.4], [0.1, 0.0], [0.0, 0.0]]], np.float32)
BEFORE, AFTER = np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32)


def report_of(estimator: Estimator):
    def release(key, params, data):
        return estimator.privatize(key, params, *data)

    return release


def half_the_choice_statistic() -> Case:
    right = plackett_luce_objective_perturbation()
    data = (ACTIONS, BEFORE), (ACTIONS, AFTER)
    params = right.params(epsilon=1.0, delta=1e-3)
    half = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 2)
    attack = Attack(report_of(right), params, data, claim(1.0, 1e-3))
    return Case(wrong=attack._replace(params=half), right=(attack,), trials=40_000)


CASES = {
    "choices' statistic at half its noise": half_the_choice_statistic,
}
