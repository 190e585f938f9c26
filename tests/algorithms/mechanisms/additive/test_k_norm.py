"""K-norm noise: its distribution, its span, exact sums, and refusals."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp import registry
from jaxdp.audit import Attack, audit
from jaxdp.estimation.label_noise import search_basis
from jaxdp.mechanisms import k_norm, laplace
from jaxdp.mechanisms.additive import _coordinates
from jaxdp.numerics import fixed_point

X64 = bool(jax.config.read("jax_enable_x64"))
NUM_DRAWS = 50_000
SCALE = 2.0 / 0.5  # of sensitivity 2 at epsilon 0.5
CLOSE = math.sqrt(math.log(2 / 5.7e-7) / (2 * NUM_DRAWS))  # as in test_additive


def draws(dim, noise=None):
    keys = jax.random.split(jax.random.key(3), NUM_DRAWS)
    value = jnp.full(dim, 3.0, jnp.float32)
    noise = noise or (lambda key, value: k_norm(key, value, 0.5, sensitivity=2.0))
    return np.asarray(jax.jit(jax.vmap(noise, (0, None)))(keys, value), np.float64) - 3.0


def check_distribution(noise, rank):
    """Checks that the length is Gamma(rank), the direction uniform, and that they are independent."""
    length = np.linalg.norm(noise, axis=1)
    assert scipy.stats.kstest(length, scipy.stats.gamma(rank, scale=SCALE).cdf).statistic <= CLOSE
    direction = noise / length[:, None]
    if rank == 1:
        assert abs(np.sign(noise).mean()) <= 5 / math.sqrt(NUM_DRAWS)
        return
    # A coordinate of a uniform direction: (1 + u) / 2 is Beta((d - 1) / 2, (d - 1) / 2).
    beta = scipy.stats.beta((rank - 1) / 2, (rank - 1) / 2)
    for coordinate in range(rank):
        assert scipy.stats.kstest((1 + direction[:, coordinate]) / 2, beta.cdf).statistic <= CLOSE
    assert abs(np.corrcoef(length, direction[:, 0])[0, 1]) <= 5 / math.sqrt(NUM_DRAWS)
    covariance, expected = noise.T @ noise / NUM_DRAWS, (rank + 1) * SCALE**2
    assert np.all(np.abs(covariance - expected * np.eye(rank)) <= 5 * 3 * expected / math.sqrt(NUM_DRAWS))


@pytest.mark.precision
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_distribution(dim):
    noise = draws(dim)
    check_distribution(noise, dim)
    with pytest.raises(AssertionError):  # planted: the length of one dimension less, or more
        check_distribution(noise, dim + 1)
    if dim > 1:

        def shorter(key, value):  # planted: Gamma(d - 1)
            key_length, key_direction = jax.random.split(key)
            length = jax.random.gamma(key_length, dim - 1.0, dtype=value.dtype)
            direction = jax.random.normal(key_direction, (dim,), value.dtype)
            return value + jnp.float32(SCALE) * length * direction / jnp.linalg.norm(direction)

        with pytest.raises(AssertionError):
            check_distribution(draws(dim, shorter), dim)


@pytest.mark.precision
def test_noise_in_a_span():
    basis = jnp.asarray(np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0], jnp.float32)
    value = basis @ jnp.asarray([5.0, -7.0], jnp.float32)
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    noise = np.asarray(jax.vmap(lambda key: k_norm(key, value, 0.5, sensitivity=2.0, basis=basis) - value)(keys))
    check_distribution(noise @ np.asarray(basis), 2)
    assert np.abs(noise - noise @ np.asarray(basis) @ np.asarray(basis).T).max() < 1e-4


@pytest.mark.precision
def test_noise_in_a_span_is_the_same_if_traced_programs_are_batched():
    basis, keys = jnp.eye(3, 2, dtype=jnp.float32), jax.random.split(jax.random.key(2), 5)

    def release(key):
        return k_norm(key, jnp.ones(3, jnp.float32), 1.0, sensitivity=1.0, basis=basis)

    np.testing.assert_array_equal(jax.vmap(jax.jit(release))(keys), jax.vmap(release)(keys))


def offset_from_grid(noisy, basis, step):
    """Returns the largest distance of the coordinates of outputs from multiples of a step, in steps."""
    steps = noisy.astype(float) @ np.asarray(basis, float) / step
    return np.abs(steps - np.round(steps)).max()


@pytest.mark.precision
def test_rounding_does_not_move_a_value_out_of_the_span():
    # Rounding the entries moves a value beside the line, where no noise hides it: the cells that outputs come from then
    # identify it, as a line between the cells' diagonals meets other cells.
    basis = jnp.asarray([[1.0, 2**0.5]], jnp.float32).T / jnp.float32(3**0.5)
    keys = jax.random.split(jax.random.key(6), 1000)

    def rounds_entries(key, value):  # planted: the mechanism as it was
        noise = basis[:, 0] * jax.random.laplace(key, dtype=jnp.float32)
        step = jnp.float32(2.0**-15)
        noisy = (jnp.round(value / step) + jnp.floor(noise / step)) * step
        return basis @ (basis.T @ noisy)

    def release(key, value):
        return k_norm(key, value, 1.0, sensitivity=1.0, basis=basis)

    for length in (0.0, 0.3):
        noisy = np.asarray(jax.vmap(release, (0, None))(keys, basis[:, 0] * jnp.float32(length)))
        assert offset_from_grid(noisy[np.abs(noisy).max(1) < 2], basis, 2.0**-14) < 0.05
    noisy = np.asarray(jax.vmap(rounds_entries, (0, None))(keys, basis[:, 0] * jnp.float32(0.3)))
    assert offset_from_grid(noisy[np.abs(noisy).max(1) < 2], basis, 2.0**-15) > 0.3


@pytest.mark.precision
def test_coordinates_of_long_vectors_are_exact():
    with jax.enable_x64(True):
        generator = np.random.default_rng(0)
        for size in (3, 100):
            basis = np.linalg.qr(generator.normal(size=(size, size)))[0][:, 1:]
            values = generator.normal(size=size) * 1e10 / math.sqrt(size)
            coordinates, larger = _coordinates(jnp.asarray(values), jnp.asarray(basis), jnp.float64(1), jnp.float64(1))
            first = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(basis[:, 0], values, strict=True)]
            assert abs(Fraction(float(coordinates[0])) - sum(first)) < Fraction(1, 2**13)
            assert larger == 1 + 2**-11


def test_a_zero_sum_statistic_is_rounded_in_its_span():
    # With these features, one of three classes of outputs had probability 0 for one label, and 1/2 for the other.
    features = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (2, 3)), jnp.float32)
    estimator = jaxdp.estimation.objective_perturbation(noise="k_norm", zero_sum=True)
    params, keys = estimator.params(epsilon=1.0), jax.random.split(jax.random.key(4), 500)
    centred = np.asarray(features, float) - np.asarray(features, float).mean(1, keepdims=True)
    sensitivity = np.linalg.norm(centred, axis=1).max()
    step = 2.0 ** (math.floor(math.log2(sensitivity / math.sqrt(2))) - 14)
    basis = search_basis(features, zero_sum=True)
    for label in (0, 1):
        labels = jnp.asarray([label, 1], jnp.int32)
        noisy = np.asarray(jax.vmap(lambda key, y=labels: estimator.privatize(key, params, features, y))(keys))
        assert offset_from_grid(noisy[np.abs(noisy).max(1) < 4 * sensitivity], basis, step) < 0.1


@pytest.mark.precision
def test_no_noise_and_every_shape():
    key = jax.random.key(0)
    values = np.array([[-1.5, 0.0, 1e30]], np.float32)
    np.testing.assert_array_equal(k_norm(key, values, math.inf, sensitivity=5), values)
    assert k_norm(key, jnp.float32(1), 1.0, sensitivity=1.0).shape == ()
    noisy = k_norm(key, jnp.zeros((2, 3), jnp.float32), 1.0, sensitivity=1.0)
    np.testing.assert_array_equal(noisy.ravel(), k_norm(key, jnp.zeros(6, jnp.float32), 1.0, sensitivity=1.0))


@pytest.mark.precision
def test_integers_and_exact_sums_get_the_same_noise():
    key, counts = jax.random.key(0), jnp.asarray([7, -3], jnp.int32)
    floats = counts.astype(jnp.float32)
    exact = fixed_point.Sum(counts.astype(int), jnp.zeros(2, int))
    expected = k_norm(key, floats, 1.0, sensitivity=1.0)
    np.testing.assert_allclose(k_norm(key, exact, 1.0, sensitivity=1.0), expected, rtol=1e-6)
    if not X64:  # where integers become float64, and other words are drawn
        np.testing.assert_allclose(k_norm(key, counts, 1.0, sensitivity=1.0), expected, rtol=1e-6)


def test_one_compilation_for_every_epsilon():
    traces = []

    @jax.jit
    def noisy(epsilon):
        traces.append(epsilon)
        return k_norm(jax.random.key(0), jnp.zeros(3, jnp.float32), epsilon, sensitivity=epsilon * 2)

    for epsilon in (0.1, 2.0):
        np.testing.assert_allclose(noisy(jnp.float32(epsilon)), noisy(jnp.float32(1.0)), rtol=1e-3)  # steps of 2^-14
    assert len(traces) == 1


def test_what_is_refused():
    key, value = jax.random.key(0), jnp.zeros(3, jnp.float32)
    for name in ("epsilon", "sensitivity"):
        for wrong in (0.0, -1.0, math.nan):
            given = {"epsilon": 1.0, "sensitivity": 1.0, name: wrong}
            with pytest.raises(ValueError, match=rf"{name} must be > 0, got {wrong}"):
                k_norm(key, value, given["epsilon"], sensitivity=given["sensitivity"])
    with pytest.raises(ValueError, match="value must have at least one entry"):
        k_norm(key, jnp.zeros(0, jnp.float32), 1.0, sensitivity=1.0)
    for wrong, shape in [(jnp.ones((2, 1), jnp.float32), r"\(2, 1\)"), (jnp.ones(3, jnp.float32), r"\(3,\)")]:
        with pytest.raises(ValueError, match=f"a basis of shape {shape}"):
            k_norm(key, value, 1.0, sensitivity=1.0, basis=wrong)
    nowhere = k_norm(key, value + 1, 1.0, sensitivity=1.0, basis=jnp.ones((3, 0), jnp.float32))
    np.testing.assert_array_equal(nowhere, np.zeros(3))


@pytest.mark.parametrize("dim", [1, 2])
def test_the_auditor_finds_most_of_epsilon(dim):
    entry = registry.MECHANISMS["k_norm"].sized(num_counts=dim)
    made = entry.make()
    for epsilon in (1.0, 0.3):
        attack = Attack(
            made.release, made.params(epsilon=epsilon), entry.make_neighbours(), made.guarantee(epsilon=epsilon)
        )
        found = audit(jax.random.key(0), attack, trials=1_000_000)
        assert found.verdict == "consistent"
        assert found.lower_bound >= 0.8 * epsilon


@pytest.mark.precision
@pytest.mark.parametrize("add", [laplace, k_norm], ids=["laplace", "k_norm"])
def test_subnormal_values_are_exact(add):
    """Checks neighbours that differ by a unit in the last place, on both sides of the least normal number."""
    normal = jnp.asarray(np.float32(2.0**-126))
    subnormal = jnp.asarray(np.nextafter(np.float32(2.0**-126), np.float32(0)))
    name = "l1_sensitivity" if add is laplace else "sensitivity"
    keys = jax.random.split(jax.random.key(7), 400)

    def share_above(value):
        noisy = jax.vmap(lambda key: add(key, value, 1.0, **{name: 2.0**-130}))(keys)
        return float((np.asarray(noisy) >= 2.0**-126).mean())

    assert abs(share_above(normal) - share_above(subnormal)) < 0.05  # the noise is the same
    assert share_above(jnp.zeros((), jnp.float32)) == 0.0  # planted: a value that was flushed
    assert share_above(normal) > 0.4
