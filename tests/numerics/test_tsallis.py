"""Tsallis weights over a wide range, against bisection in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.numerics.tsallis import tsallis_weights

X64 = jax.config.read("jax_enable_x64")


def by_bisection(losses, rate):
    """Returns the root y of sum (d + y)^-2 = 1 in [1, sqrt(K)], d = rate (losses - min) / 2: [..., K] float64."""
    behind = rate * (losses - losses.min(-1, keepdims=True)) / 2
    low = np.ones_like(behind[..., :1])
    high = low * np.sqrt(losses.shape[-1])
    for _ in range(200):
        middle = (low + high) / 2
        above = (1 / (behind + middle) ** 2).sum(-1, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 1 / (behind + low) ** 2


@pytest.mark.parametrize("num_arms", [2, 3, 10, 64, 1000])
def test_weights_on_a_wide_range(num_arms):
    rng = np.random.default_rng(num_arms)
    spreads = 10.0 ** np.arange(-6, 9)
    kinds = [rng.uniform(size=num_arms), np.linspace(0, 1, num_arms) ** 6, 1.0 * (np.arange(num_arms) > num_arms // 2)]
    kinds.append(np.r_[0.0, np.ones(num_arms - 1)])
    losses = np.asarray([spread * kind for spread in spreads for kind in kinds])
    losses = losses.astype(np.float32).astype(np.float64)  # the same numbers for both
    weights = jax.jit(jax.vmap(tsallis_weights, (0, None)))
    for rate in (1e-3, 0.1, 2.0):
        rate = float(np.float32(rate))
        found = np.asarray(weights(jnp.asarray(losses), jnp.asarray(rate)))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, by_bisection(losses, rate), rtol=1e-10 if X64 else 1e-5)
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("num_arms", [7, 900])  # of lengths that no other test has compiled
def test_fewer_steps_would_show(monkeypatch, num_arms):
    """Plants a single step."""
    losses = 100 * np.linspace(0, 1, num_arms) ** 2
    expected = by_bisection(losses, 2.0)
    monkeypatch.setattr("jaxdp.numerics.tsallis.FEWEST_STEPS", 1 - X64 - 2 * (num_arms > 16))
    wrong = np.asarray(tsallis_weights(jnp.asarray(losses), jnp.asarray(2.0)))
    assert np.abs(wrong / expected - 1).max() > 1e-4


def test_excess_of_large_losses():
    """Makes losses that differ by less than their rounding, as a compensated sum can."""
    total = jnp.full(3, 2.0**24, jnp.float32)
    excess = np.array([0.0, -0.75, 0.5], np.float32)
    found = tsallis_weights(total, jnp.float32(1.5), jnp.asarray(excess))
    np.testing.assert_allclose(found, by_bisection(-excess.astype(np.float64), 1.5), rtol=1e-5)
