"""The smallest budgets: integers hold every noise that `params` accepts, and others are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.dueling import ebs_elimination
from jaxdp.mechanisms.lattice import lattice_laplace

BITS_32 = not jax.config.read("jax_enable_x64")


@pytest.mark.precision
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_that_integers_cannot_hold_is_refused(noise):
    learner = ebs_elimination(num_arms=2, horizon=2**22, noise=noise)
    more = {"delta": 1e-18} if noise == "gaussian" else {}
    with pytest.raises(ValueError, match=r"epsilon must be larger: .*, which needs") as error:
        learner.params(epsilon=1e-9 if BITS_32 else 1e-18, **more)
    assert ("JAX_ENABLE_X64" in str(error.value)) == BITS_32


@pytest.mark.precision
def test_the_noise_of_the_smallest_budget_ends_below_the_largest_integer():
    learner = ebs_elimination(num_arms=2, horizon=2**22)
    largest, budgets = np.iinfo(jnp.result_type(int)).max, 2.0 ** -np.arange(0, 60, 0.25)
    scales = []
    for epsilon in budgets:
        try:
            node = learner.params(epsilon=epsilon).noise
        except ValueError:
            break
        scales.append(float(node.l1_sensitivity) / float(node.epsilon))
    assert 0 < len(scales) < len(budgets)
    assert 43.7 * scales[-1] < largest < 2 * 43.7 * max(scales[-1], 0 if BITS_32 else largest)


@pytest.mark.skipif(not BITS_32, reason="clips in 32 bits")
def test_noise_of_a_refused_budget_would_be_clipped():
    keys, epsilon = jax.random.split(jax.random.key(0), 200), 1e-9
    noise = jax.vmap(lambda key: lattice_laplace(key, (), 1.0, jnp.float32(epsilon), 6.0))(keys)
    assert (np.abs(noise) == 2**31 - 1).mean() > 0.5
