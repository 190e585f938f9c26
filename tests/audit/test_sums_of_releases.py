"""A release counts as the sum of its value and its noise up to the grid on which mechanisms draw, and not further."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit.findings import _is_sum
from jaxdp.mechanisms import gaussian, laplace
from jaxdp.mechanisms.tape import recording


def is_sum(mechanism, values, *, shift=0.0, **options):
    """Returns whether an auditor takes a release for the sum, if `shift` was added to it."""
    with recording() as entries:
        mechanism(jax.random.key(1), values, **options)
    (entry,) = entries
    first = {name: np.asarray(getattr(entry, name))[None] for name in ("value", "noise", "released")}
    return _is_sum(entry._replace(**{**first, "released": first["released"] + shift}))


@pytest.mark.parametrize("size", [1, 5, 64, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_grid_of_laplace_noise_is_no_fault_and_a_hundredth_of_the_sensitivity_is_one(size, epsilon):
    values = jnp.linspace(0.0, 1.0, size) / 3  # no multiples of a step
    options = {"epsilon": epsilon, "l1_sensitivity": float(size)}
    assert is_sum(laplace, values, **options)
    shift = 0.01 * size * max(1.0, 1 / epsilon)
    assert not is_sum(laplace, values, shift=shift, **options)


@pytest.mark.parametrize("size", [1, 64])
def test_gaussian_noise(size):
    values = jnp.linspace(0.0, 1.0, size) / 3
    assert is_sum(gaussian, values, noise_stddev=2.0, l2_sensitivity=1.0)
    assert not is_sum(gaussian, values, shift=0.05, noise_stddev=2.0, l2_sensitivity=1.0)
