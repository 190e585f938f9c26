"""Mistakes of continual counters."""

import dataclasses

import jax
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import tree_counter
from tests.privacy.mutants.case import Case, claim

COUNTER = tree_counter(horizon=3, arity=2, combine=False)
STREAMS = np.asarray([0, 0, 0], np.int32), np.asarray([1, 0, 0], np.int32)


def estimates(key, params, stream):
    return COUNTER.prefixes(jax.random.split(key, len(stream)), params, stream)


def counter_at_twice_epsilon() -> Case:
    right = Attack(estimates, COUNTER.params(epsilon=1.0), STREAMS, claim(1.0))
    return Case(wrong=right._replace(params=COUNTER.params(epsilon=2.0)), right=(right,), trials=40_000)


def counter_at_the_noise_of_one_level() -> Case:
    """Every block is noised as if an entry were in no other."""
    right = Attack(estimates, COUNTER.params(epsilon=1.0), STREAMS, claim(1.0))
    params = COUNTER.params(epsilon=1.0)
    wrong = dataclasses.replace(params, l1_sensitivity=params.l1_sensitivity / params.l1_sensitivity.dtype.type(2))
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=40_000)
