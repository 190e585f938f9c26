"""Noise scales below the least normal number are exact or refused: flushed to 0, they would add no noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import default_float
from jaxdp.mechanisms import gaussian, noisy_max

pytestmark = pytest.mark.precision

TINY = float(jnp.finfo(default_float()).smallest_normal)
KEYS = jax.random.split(jax.random.key(0), 2000)


def below(share: float) -> jax.Array:
    """Returns this share of the least normal number."""
    return jnp.asarray(np.asarray(TINY * share, default_float()))


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
def test_a_selection_at_a_subnormal_sensitivity_is_private(noise):
    """Attacks two scores that change by the sensitivity: the larger one was selected with certainty."""

    @jax.jit
    def chance(low, high, sensitivity):
        selected = jax.vmap(
            lambda key: noisy_max(key, jnp.stack([low, high]), 1.0, sensitivity=sensitivity, noise=noise)
        )(KEYS)
        return jnp.mean(selected == 0)

    size = 0.01
    first, second = (float(chance(*map(below, (2 + a, 2 + b)), below(size))) for a, b in ((size, 0), (0, size)))
    for one, other in ((first, second), (second, first), (1 - first, 1 - second), (1 - second, 1 - first)):
        assert one <= math.e * other + 5 * math.sqrt((one + math.e**2 * other) / len(KEYS))


def test_normal_noise_of_a_subnormal_scale_is_added_or_refused():
    release = jax.jit(lambda value, stddev: jax.vmap(lambda key: gaussian(key, value, stddev))(KEYS))
    released = np.asarray(release(below(2.0), below(0.01)))
    assert np.isnan(released).all() or len(np.unique(released)) > 100
    np.testing.assert_array_equal(release(below(2.0), jnp.zeros((), default_float())), below(2.0))


def test_a_negative_budget_selects_without_looking_at_scores():
    selected = {
        int(jax.jit(noisy_max)(jax.random.key(0), jnp.asarray(scores, default_float()), jnp.asarray(-1.0)))
        for scores in ((0.0, 100.0), (100.0, 0.0))
    }
    assert len(selected) == 1
