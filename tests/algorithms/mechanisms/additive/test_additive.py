import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.mechanisms import gaussian, laplace
from jaxdp.mechanisms.additive import geometric
from jaxdp.numerics import fixed_point

NUM_DRAWS = 100_000
MEAN = 3.0


def laplace_noise(key, values, scale):
    return laplace(key, values, jnp.float32(2.0 / scale), l1_sensitivity=2.0)


def check_noise(mechanism, distribution):
    """Checks independent noise of this distribution: mean absolute value to 5 standard errors, and the whole CDF.

    |X| has mean m and variance E X^2 - m^2, so the mean of n draws has standard error sqrt((E X^2 - m^2) / n). By
    Dvoretzky, Kiefer, Wolfowitz and Massart the empirical CDF is off by more than sqrt(ln(2 / p) / 2n) with probability
    at most p, where p = 5.7e-7 is the probability of 5 standard errors. Neighbours' products have mean 0, variance (E
    X^2)^2.
    """
    values = np.full(NUM_DRAWS, MEAN, np.float32)
    noise = np.asarray(mechanism(jax.random.key(1), values), np.float64) - MEAN
    second_moment, mean_abs = distribution.var(), distribution.expect(abs)
    assert abs(np.abs(noise).mean() - mean_abs) <= 5 * math.sqrt((second_moment - mean_abs**2) / NUM_DRAWS)
    distance = scipy.stats.kstest(noise, distribution.cdf).statistic
    assert distance <= math.sqrt(math.log(2 / 5.7e-7) / (2 * NUM_DRAWS))
    assert abs((noise[1:] * noise[:-1]).mean()) <= 5 * second_moment / math.sqrt(NUM_DRAWS)


@pytest.mark.precision
@pytest.mark.parametrize("scale", [0.5, 4.0])
@pytest.mark.parametrize(("mechanism", "family"), [(laplace_noise, scipy.stats.laplace), (gaussian, scipy.stats.norm)])
def test_noise_has_its_distribution(mechanism, family, scale):
    distribution = family(scale=scale)
    check_noise(lambda key, values: mechanism(key, values, scale), distribution)
    for wrong in [0.8, 1.25]:
        with pytest.raises(AssertionError):
            check_noise(lambda key, values, wrong=wrong: mechanism(key, values, wrong * scale), distribution)
    with pytest.raises(AssertionError):  # one draw for all coordinates
        check_noise(lambda key, values: values + (mechanism(key, values[:1], scale) - values[:1]), distribution)


@pytest.mark.precision
def test_no_noise():
    values = np.array([[-1.5, 0.0, 1e30]], np.float32)
    key = jax.random.key(0)
    np.testing.assert_array_equal(laplace(key, values, math.inf, l1_sensitivity=5), values)
    np.testing.assert_array_equal(gaussian(key, values, 0.0), values)


def test_one_compilation_for_every_scale_and_vmap_equals_loop():
    scales = np.array([0.1, 1.0, 30.0, np.inf], np.float32)
    key, values = jax.random.key(2), jnp.zeros((5, 2), jnp.float32)
    for mechanism in [lambda x: laplace(key, values, x, l1_sensitivity=x), lambda x: gaussian(key, values, 1 / x)]:
        traces = []

        @jax.jit
        def noisy(x, mechanism=mechanism, traces=traces):
            traces.append(x)
            return mechanism(x)

        loop = np.stack([noisy(jnp.asarray(x)) for x in scales[:3]])
        noisy(jnp.float32(np.inf))
        assert len(traces) == 1
        np.testing.assert_allclose(jax.vmap(noisy)(scales[:3]), loop, rtol=1e-6)
    with_inf = jax.vmap(lambda epsilon: laplace(key, values, epsilon, l1_sensitivity=1.0))(scales)
    assert np.all(with_inf[-1] == 0)
    assert np.all(with_inf[:-1] != 0)


@pytest.mark.precision
def test_traced_equals_host_scalars():
    key, values = jax.random.key(3), jnp.zeros(4, jnp.float32)
    np.testing.assert_array_equal(
        laplace(key, values, 0.5, l1_sensitivity=2), laplace(key, values, jnp.float32(0.5), l1_sensitivity=jnp.int32(2))
    )
    np.testing.assert_array_equal(gaussian(key, values, np.float32(0.7)), gaussian(key, values, jnp.float32(0.7)))
    # 0.7 is rounded up, not to nearest
    up = np.nextafter(np.float32(0.7), np.float32(1))
    np.testing.assert_array_equal(gaussian(key, values, 0.7), gaussian(key, values, up))


@pytest.mark.precision
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32, float])
def test_dtype_and_shape_are_those_of_the_values(dtype):
    values = jnp.ones((2, 3), dtype)
    for noisy in [laplace(jax.random.key(0), values, 1.0, l1_sensitivity=1), gaussian(jax.random.key(0), values, 1.1)]:
        assert (noisy.dtype, noisy.shape) == (values.dtype, values.shape)
    assert gaussian(jax.random.key(0), jnp.float32(1), 1.0).shape == ()


def test_errors():
    key, values = jax.random.key(0), np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="values must be floats or integers, got dtype bool"):
        laplace(key, np.zeros(2, bool), 1.0, l1_sensitivity=1.0)
    with pytest.raises(ValueError, match=r"values must have a dtype that int.. holds, got uint"):
        gaussian(key, np.zeros(2, np.uint64 if jax.config.read("jax_enable_x64") else np.uint32), 1.0)
    for bad in [0.0, -1.0, math.nan]:
        with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
            laplace(key, values, bad, l1_sensitivity=1.0)
        with pytest.raises(ValueError, match=f"l1_sensitivity must be > 0, got {bad}"):
            laplace(key, values, 1.0, l1_sensitivity=bad)
    with pytest.raises(ValueError, match="must be >= 0"):
        gaussian(key, values, -1.0)
    with pytest.raises(ValueError, match="epsilon must be a scalar"):
        laplace(key, values, jnp.ones(2, jnp.float32), l1_sensitivity=1.0)
    with pytest.raises(ValueError, match="noise_stddev must be a scalar"):
        gaussian(key, values, jnp.ones(2, jnp.float32))


@pytest.mark.precision
def test_geometric_noise_is_for_integers():
    values, key = np.asarray([3, -2], np.int32), jax.random.key(5)
    np.testing.assert_array_equal(geometric(key, values, math.inf), values)
    released = np.asarray(geometric(key, values, 0.5))
    np.testing.assert_array_equal(released, np.rint(released))
    assert np.isnan(geometric(key, values, jnp.float32(-1.0))).all()
    with pytest.raises(ValueError, match="values must be integers, got a Sum"):
        geometric(jax.random.key(0), fixed_point.zero(3), 1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="values must be integers, got dtype float32"):
        geometric(key, jnp.zeros(2, jnp.float32), 1.0)
    with pytest.raises(ValueError, match="epsilon must be"):
        geometric(key, values, 1e-12)
