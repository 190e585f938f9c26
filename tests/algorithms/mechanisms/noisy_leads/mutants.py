"""Mistakes of `noisy_leads`."""

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import laplace
from tests.privacy.case import Case, claim


def floats_of_counts(key, epsilon, counts):
    return laplace(key, counts.astype(jnp.float32), epsilon, l1_sensitivity=1.0)


def noisy_counts(key, epsilon, counts):
    return laplace(key, counts, epsilon, l1_sensitivity=1.0)


def large_counts_as_floats() -> Case:
    """Stores counts as floats: one more than 2^29 + 32 moves a float32 by 64."""
    counts = (np.int32(2**29 + 32), np.int32(2**29 + 33))
    right = Attack(noisy_counts, np.float32(1), counts, claim(1.0))
    return Case(wrong=right._replace(release=floats_of_counts), right=(right,), trials=2_000)


CASES = {
    "large counts as floats before their noise": large_counts_as_floats,
}
