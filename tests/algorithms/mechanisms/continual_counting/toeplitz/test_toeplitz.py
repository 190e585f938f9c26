"""The buffered Toeplitz factorisation against dense matrices, and its noise against both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import analytic_gaussian, toeplitz_counter
from jaxdp.mechanisms.continual_counting.buffers import (
    Buffers,
    find_buffers,
    row_norms,
    sensitivity,
    square_root_coefficients,
    square_root_norm,
)
from jaxdp.mechanisms.continual_counting.steps import noise_grid
from jaxdp.mechanisms.continual_counting.toeplitz import STEP, Leaks, largest_rounding
from tests.algorithms.mechanisms.continual_counting.streams import (
    NUM_DRAWS,
    drawn_noise,
    errors,
    fed_one_by_one,
    keys_of,
)


def toeplitz(column):
    length = len(column)
    return np.asarray([[column[i - j] if i >= j else 0.0 for j in range(length)] for i in range(length)])


def decoder(buffers, length):
    """Returns B, dense."""
    powers = (1 - np.asarray(buffers.gaps, np.float64))[:, None] ** np.arange(length)
    return toeplitz(np.asarray(buffers.weights, np.float64) @ powers)


def test_the_square_root():
    column = square_root_coefficients(60)
    np.testing.assert_allclose(toeplitz(column) @ toeplitz(column), np.tril(np.ones((60, 60))), atol=1e-12)
    assert square_root_norm(60) == pytest.approx(np.square(column).sum(), rel=1e-12)
    long = square_root_coefficients(2**20)
    assert square_root_norm(2**20) == pytest.approx(np.square(long).sum(), rel=1e-10)
    norms = np.cumsum(np.square(long)) * square_root_norm(2**20) / 2  # variances at rho = 1
    assert (round(norms.max(), 1), round(norms.mean(), 1)) == (15.0, 14.1)
    assert square_root_norm(2**20) == pytest.approx(np.log(2**20) / np.pi + 1.066, abs=1e-3)


def check_factorisation(buffers, norm, length):
    """Compares sensitivity and variances with the dense matrices B and C = B^-1 A."""
    prefix = np.tril(np.ones((length, length)))
    rows = decoder(buffers, length)
    columns = np.linalg.solve(rows, prefix)
    np.testing.assert_allclose(columns, toeplitz(columns[:, 0]), atol=1e-9)
    assert columns.min() > -1e-9  # entries of opposite sign do not add up
    assert norm == pytest.approx(np.sqrt(np.square(columns).sum(axis=0).max()), rel=1e-9)
    np.testing.assert_allclose(row_norms(buffers, np.arange(1, length + 1)), np.square(rows).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 150])
def test_buffers_against_dense_matrices(length):
    exact = find_buffers(length)
    assert exact.weights.min() > 0
    assert np.all(np.diff(exact.gaps) > 0)
    rounded = Buffers(*(x.astype(np.float32) for x in exact))
    worse = Buffers(exact.weights * np.linspace(0.9, 1.2, len(exact.weights)), exact.gaps)
    for buffers in (exact, rounded, worse):
        check_factorisation(buffers, sensitivity(buffers, length), length)
    worst = row_norms(rounded, np.asarray(length)) * sensitivity(rounded, length) ** 2
    assert worst <= 1.0101 * square_root_norm(length) ** 2
    if length > 3:
        with pytest.raises(AssertionError):  # the matrix meant, not the one used
            check_factorisation(worse, sensitivity(exact, length), length)


@pytest.mark.parametrize(("horizon", "rounding"), [(2**10, 0), (2**16, 0), (2**20, 0), (10**9, 0.0081)])
def test_within_one_percent(horizon, rounding):
    """Checks the largest variance; noise that covers rounding adds the share `rounding`."""
    counter = toeplitz_counter(horizon=horizon)
    params = counter.params(rho=0.5)
    worst = square_root_norm(horizon) ** 2
    assert 0.98 * worst <= counter.variance(params, horizon) <= 1.0101 * (1 + rounding) * worst
    assert len(find_buffers(horizon).gaps) - 1 <= 8
    fewer = toeplitz_counter(horizon=horizon, num_buffers=2)
    assert fewer.variance(fewer.params(rho=0.5), horizon) > 1.01 * worst


@pytest.mark.precision
def test_estimates_are_totals_and_correlated_noise():
    length = 40
    counter = toeplitz_counter(horizon=length, num_buffers=2)
    params, keys = counter.params(rho=0.5), keys_of(1, length)
    values = jax.random.randint(jax.random.key(2), (length,), 0, 5)
    noise = drawn_noise(counter, keys, params, values) * params.noise_stddev
    buffers = find_buffers(length, 2)
    assert params.noise_stddev == pytest.approx(sensitivity(buffers, length), rel=1e-6)
    expected = np.cumsum(np.asarray(values)) + decoder(buffers, length) @ noise
    np.testing.assert_allclose(fed_one_by_one(counter, keys, params, values), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(jax.jit(counter.prefixes)(keys, params, values), expected, rtol=1e-5, atol=1e-4)
    variance = np.square(np.tril(decoder(buffers, length))).sum(axis=1) * float(params.noise_stddev) ** 2
    np.testing.assert_allclose(counter.variance(params, np.arange(1, length + 1)), variance, rtol=1e-5)


def test_simulated_covariance():
    length = 6
    counter = toeplitz_counter(horizon=length)
    params = counter.params(epsilon=1.0, delta=1e-3)
    buffers = find_buffers(length)
    stddev = analytic_gaussian(1.0, 1e-3, sensitivity(buffers, length))
    rows = stddev * decoder(buffers, length)

    def check(found):
        covariance, expected = found @ found.T / NUM_DRAWS, rows @ rows.T
        spread = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + np.square(expected))
        assert np.all(np.abs(covariance - expected) <= 5 * spread / np.sqrt(NUM_DRAWS))

    check(errors(counter, params, length))
    with pytest.raises(AssertionError):  # the same noise with every entry
        check(errors(counter, params, length, keys_of(8, 1)[jnp.zeros(length, int)]))


def used_stddev(params, horizon):
    """Returns the standard deviation including the small part that is added for rounding."""
    buffers = find_buffers(horizon)
    leaks = Leaks(buffers.gaps, buffers.weights / buffers.weights.sum())
    off = 4 * np.sqrt(horizon) * largest_rounding(leaks, horizon)
    grid = noise_grid(params, np.inf, buffers.weights.sum(), STEP, off)
    used = np.float64(grid.scale) * np.float64(grid.step) / buffers.weights.sum()
    assert 1 < used / float(params.noise_stddev) < 1.001
    return used


@pytest.mark.precision
def test_no_drift_in_float32():
    """Compares leaky sums after 2^15 entries with exact arithmetic; decays as floats would leak 0.4% too much.

    In 64 bits they differ by the rounding of noise to steps, which are at least 2^-27 of its standard deviation.
    """
    length = 2**15
    counter = toeplitz_counter(horizon=2**20)
    params, keys = counter.params(rho=0.5), keys_of(4, length)
    found = fed_one_by_one(counter, keys, params, jnp.zeros(length, int))
    noise = drawn_noise(counter, keys, params, jnp.zeros(length, int)) * used_stddev(params, 2**20)
    exact, sums = find_buffers(2**20), 0.0
    for z in noise:
        sums = sums * (1 - exact.gaps) + z
    assert abs(found[-1] - exact.weights @ sums) < (1e-3 if found.dtype == np.float32 else 1e-7)


def test_variance_and_radius_have_the_noise_that_covers_rounding():
    counter = toeplitz_counter(horizon=2**30, num_buffers=2)
    params = counter.params(rho=1e-5)
    keys = jax.random.split(jax.random.key(5), (1000, 1))
    found = np.asarray(jax.jit(jax.vmap(lambda keys: counter.prefixes(keys, params, jnp.zeros(1))))(keys))
    variance, radius = counter.variance(params, 1), float(counter.radius(params, 1, 0.1))
    assert np.mean(found**2) == pytest.approx(variance, rel=5 * np.sqrt(2 / 1000))
    assert abs(np.mean(np.abs(found) > radius) - 0.1) < 5 * np.sqrt(0.09 / 1000)
    assert jax.jit(lambda: counter.variance(params, 1))() == variance  # while JAX traces
