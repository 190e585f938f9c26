"""Mistakes of continual counters."""

import dataclasses
from unittest import mock

import jax
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import tree_counter
from jaxdp.mechanisms.continual_counting import gaussian_tree
from tests.privacy.case import Case, claim

COUNTER = tree_counter(horizon=3, arity=2, combine=False)
STREAMS = np.asarray([0, 0, 0], np.int32), np.asarray([1, 0, 0], np.int32)


def estimates(key, params, stream):
    return COUNTER.prefixes(jax.random.split(key, len(stream)), params, stream)


def counter_at_twice_epsilon() -> Case:
    right = Attack(estimates, COUNTER.params(epsilon=1.0), STREAMS, claim(1.0))
    return Case(wrong=right._replace(params=COUNTER.params(epsilon=2.0)), right=(right,), trials=40_000)


def counter_at_the_noise_of_one_level() -> Case:
    """Adds noise to every block as if an entry were in no other."""
    right = Attack(estimates, COUNTER.params(epsilon=1.0), STREAMS, claim(1.0))
    params = COUNTER.params(epsilon=1.0)
    wrong = dataclasses.replace(params, l1_sensitivity=params.l1_sensitivity / params.l1_sensitivity.dtype.type(2))
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=40_000)


def little_noise_in_inner_blocks(horizon: int, trials: int) -> Case:
    """Gives the inner blocks of a Gaussian tree a quarter of their noise."""
    values, stream = {"epsilon": 1.0, "delta": 1e-3}, np.zeros(horizon, np.int32)
    moved = stream.copy()
    moved[0] = 1
    stddevs = gaussian_tree.fresh_stddevs

    def too_small(variances: np.ndarray) -> np.ndarray:
        right = stddevs(variances)
        return np.concatenate([right[:1], right[1:] / 4])

    def attack() -> Attack:
        counter = tree_counter(horizon=horizon, arity=2, noise="gaussian")

        def release(key, params, stream):
            return counter.prefixes(jax.random.split(key, horizon), params, stream)

        return Attack(release, counter.params(**values), (stream, moved), claim(**values))

    with mock.patch.object(gaussian_tree, "fresh_stddevs", too_small):
        wrong = attack()
    return Case(wrong=wrong, right=(attack(),), trials=trials)


def little_noise_in_blocks_of_four() -> Case:
    return little_noise_in_inner_blocks(4, 20_000)


def little_noise_in_blocks_of_sixteen() -> Case:
    return little_noise_in_inner_blocks(16, 20_000)


CASES = {
    "a continual counter at twice epsilon": counter_at_twice_epsilon,
    "a continual counter at the noise of one level": counter_at_the_noise_of_one_level,
    "a Gaussian tree of four entries with little noise in inner blocks": little_noise_in_blocks_of_four,
    "a Gaussian tree of sixteen entries with little noise in inner blocks": little_noise_in_blocks_of_sixteen,
}
